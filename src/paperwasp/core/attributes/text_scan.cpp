// Which strings of a dictionary fit a pattern: one byte for each string, 1 where it does. tests/core/attributes/test_filter_kernels.py
// compares it with the methods of Python's strings.
//
// `content` is UTF-8: a separator, then each string followed by one. ends[i] is where string i ends; it begins SEPARATOR bytes after the
// end of the one before (the first: SEPARATOR bytes after the start). Bytes are taken as they are where they are no UTF-8.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t SEPARATOR = 3;

struct Strings {
    const char* content;
    const uint64_t* ends;
    size_t count;

    Strings(const In<uint8_t>& bytes, const In<uint64_t>& string_ends, const Out<uint8_t>& table)
        : content(reinterpret_cast<const char*>(bytes.data())), ends(string_ends.data()), count(string_ends.shape(0)) {
        if (table.shape(0) != count) throw std::invalid_argument("a table has a byte for each string");
        uint64_t before = 0;
        for (size_t i = 0; i < count; ++i) {
            if (ends[i] < before + SEPARATOR) throw std::invalid_argument("the ends of strings rise");
            before = ends[i];
        }
        if (before > bytes.shape(0)) throw std::invalid_argument("a string ends beyond the text");
    }

    std::string_view operator[](size_t i) const {
        const uint64_t start = (i == 0 ? 0 : ends[i - 1]) + SEPARATOR;
        return {content + start, ends[i] - start};
    }
};

template <typename Test>
void each_string(In<uint8_t> content, In<uint64_t> ends, Out<uint8_t> table, Test test) {
    const Strings strings(content, ends, table);
    uint8_t* fits = table.data();
    Clock clock;
    const GilRelease release(is_much(content.shape(0) + 8 * strings.count));
    for (size_t i = 0; i < strings.count; ++i) {
        const std::string_view text = strings[i];
        clock.spend(1 + static_cast<int64_t>(text.size() / 16));
        fits[i] = test(text);
    }
}

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

void texts_beginning(In<uint8_t> content, In<uint64_t> ends, nb::bytes part, Out<uint8_t> table) {
    const std::string_view wanted = view_of(part);
    each_string(content, ends, table, [=](std::string_view text) { return text.substr(0, wanted.size()) == wanted; });
}

void texts_ending(In<uint8_t> content, In<uint64_t> ends, nb::bytes part, Out<uint8_t> table) {
    const std::string_view wanted = view_of(part);
    each_string(content, ends, table,
                [=](std::string_view text) { return text.size() >= wanted.size() && text.substr(text.size() - wanted.size()) == wanted; });
}

// Finds the part in the whole text, and then whose it is: most strings are never looked at by themselves.
void texts_having(In<uint8_t> content, In<uint64_t> ends, nb::bytes part, Out<uint8_t> table) {
    const Strings strings(content, ends, table);
    const std::string_view wanted = view_of(part);
    uint8_t* fits = table.data();
    const uint64_t size = content.shape(0);
    const GilRelease release(is_much(size / 4));
    std::fill(fits, fits + strings.count, wanted.empty());
    if (wanted.empty()) return;
    const char* from = strings.content;
    const char* const to = from + size;
    size_t i = 0;
    while (const void* found = memmem(from, static_cast<size_t>(to - from), wanted.data(), wanted.size())) {
        const uint64_t start = static_cast<uint64_t>(static_cast<const char*>(found) - strings.content);
        i = static_cast<size_t>(std::upper_bound(strings.ends + i, strings.ends + strings.count, start) - strings.ends);
        if (i == strings.count) return;
        const bool within = start >= (i == 0 ? 0 : strings.ends[i - 1]) + SEPARATOR && start + wanted.size() <= strings.ends[i];
        if (within) fits[i] = 1;
        from = within ? strings.content + strings.ends[i] : static_cast<const char*>(found) + 1;
    }
}

// The character at text[at]; moves `at` behind it. What is no UTF-8 counts as a character a byte.
uint32_t next_character(std::string_view text, size_t& at) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
    const uint32_t first = byte(at);
    const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (at + length > text.size()) {
        ++at;
        return first;
    }
    uint32_t character = length == 1 ? first : first & (0x7Fu >> length);
    for (size_t i = 1; i < length; ++i) character = character << 6 | (byte(at + i) & 0x3F);
    at += length;
    return character;
}

// Strings within a number of edits of a word, by the rows of the usual table, each no wider than the edits allow.
class Near {
  public:
    Near(const uint32_t* word, size_t size, uint64_t most_edits, size_t same, bool prefix)
        : word_(word),
          size_(size),
          edits_(static_cast<size_t>(std::min<uint64_t>(most_edits, 1u << 30))),
          same_(std::min(same, size)),
          asked_same_(same),
          prefix_(prefix) {}

    bool operator()(std::string_view text) {
        decode(text);
        // The first characters, of both as many as there are.
        if (std::min(asked_same_, text_.size()) != same_ || !std::equal(word_, word_ + same_, text_.begin())) return false;
        return near(word_ + same_, size_ - same_, text_.data() + same_, text_.size() - same_);
    }

  private:
    // No more characters than can matter: others are edits too many, or behind what a prefix needs.
    void decode(std::string_view text) {
        text_.clear();
        const size_t most = size_ + edits_ + 1;
        for (size_t at = 0; at < text.size() && text_.size() < most;) text_.push_back(next_character(text, at));
    }

    bool near(const uint32_t* word, size_t n, const uint32_t* text, size_t m) {
        const size_t k = edits_;
        if (prefix_ && m > n + k) m = n + k;
        if (n > m + k || (!prefix_ && m > n + k)) return false;
        if (k >= n && (prefix_ || k >= m)) return true;  // as many edits as there are characters
        // row_[j]: edits from the first i characters of the word to the first j of the text; more than k is as good as k + 1.
        row_.resize(m + 1);
        for (size_t j = 0; j <= m; ++j) row_[j] = std::min(j, k + 1);
        for (size_t i = 1; i <= n; ++i) {
            const size_t from = i > k ? i - k : 1, to = std::min(m, i + k);
            size_t diagonal = row_[from - 1];
            row_[from - 1] = from == 1 ? std::min(i, k + 1) : k + 1;
            size_t least = row_[from - 1];
            for (size_t j = from; j <= to; ++j) {
                const size_t above = j == i + k ? k + 1 : row_[j];
                const size_t edited = std::min(std::min(above, row_[j - 1]) + 1, diagonal + (word[i - 1] != text[j - 1]));
                diagonal = row_[j];
                row_[j] = std::min(edited, k + 1);
                least = std::min(least, row_[j]);
            }
            if (least > k) return false;
        }
        if (!prefix_) return row_[m] <= k;
        const size_t from = n > k ? n - k : 0, to = std::min(m, n + k);
        return *std::min_element(row_.begin() + static_cast<ptrdiff_t>(from), row_.begin() + static_cast<ptrdiff_t>(to) + 1) <= k;
    }

    const uint32_t* word_;
    size_t size_, edits_, same_, asked_same_;
    bool prefix_;
    std::vector<uint32_t> text_;
    std::vector<size_t> row_;
};

void texts_near(In<uint8_t> content, In<uint64_t> ends, In<uint32_t> word, uint64_t most_edits, uint64_t same, bool prefix,
                Out<uint8_t> table) {
    Near near(word.data(), word.shape(0), most_edits, same, prefix);
    each_string(content, ends, table, [&](std::string_view text) { return near(text); });
}

}  // namespace

void bind_text_scan(nb::module_& m) {
    m.def("texts_beginning", &texts_beginning, nb::arg("content").noconvert(), nb::arg("ends").noconvert(), nb::arg("part"),
          nb::arg("table").noconvert());
    m.def("texts_ending", &texts_ending, nb::arg("content").noconvert(), nb::arg("ends").noconvert(), nb::arg("part"),
          nb::arg("table").noconvert());
    m.def("texts_having", &texts_having, nb::arg("content").noconvert(), nb::arg("ends").noconvert(), nb::arg("part"),
          nb::arg("table").noconvert());
    m.def("texts_near", &texts_near, nb::arg("content").noconvert(), nb::arg("ends").noconvert(), nb::arg("word").noconvert(),
          nb::arg("most_edits"), nb::arg("same"), nb::arg("prefix"), nb::arg("table").noconvert());
}

}  // namespace paperwasp
