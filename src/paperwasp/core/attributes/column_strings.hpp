// ColumnStrings: the strings of a column by their codes, as plans read them without the interpreter's lock.
//
// A column has its strings in a list of Python's, which only grows. To read the list needs the lock, since it moves when it grows. But a
// string never changes. So the strings are noted here, eight bytes for each, in pieces that stay where they are.
//
// Threads: any number may ask for texts, also while `extend` notes more, which is called with the interpreter's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core.hpp"

namespace paperwasp {

class ColumnStrings {
  public:
    explicit ColumnStrings(nb::list strings) : strings_(std::move(strings)) { extend(); }
    ~ColumnStrings();
    ColumnStrings(const ColumnStrings&) = delete;
    ColumnStrings& operator=(const ColumnStrings&) = delete;

    // Notes the strings that the list has more.
    void extend();

    // The text of a code in UTF-8, which is valid as long as `buffer` stays as it is. Nothing: the code is not noted yet, or its string
    // is no text, since it has surrogates.
    std::optional<std::string_view> text(uint64_t code, std::string& buffer) const;

  private:
    static constexpr size_t FIRST = 1024;  // strings of the first piece; each of the others has twice as many as the one before
    static constexpr size_t PIECES = 24;   // for all codes of 32 bits

    static size_t piece_of(uint64_t code) { return 63 - static_cast<size_t>(__builtin_clzll(code / FIRST + 1)); }
    static size_t begin_of(size_t piece) { return FIRST * ((size_t{1} << piece) - 1); }

    const nb::list strings_;
    std::mutex mutex_;  // of who notes
    std::array<std::unique_ptr<PyObject*[]>, PIECES> pieces_;
    std::atomic<size_t> count_{0};
};

}  // namespace paperwasp
