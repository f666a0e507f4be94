// The vector of a query as requests write it: see vector_text.hpp. The plain twin of read_numbers is in tests/oracles/vector_text.py.
#include "vectors/vector_text.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "arrays.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

using hnsw::Cell;

constexpr size_t MOST_CHARACTERS = 64;      // of a number
constexpr size_t MOST_INTEGER_DIGITS = 18;  // of a number without a fraction: JSON readers have bounds of their own

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// A cursor over the text.
class Numbers {
  public:
    explicit Numbers(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

    bool accept(char c) {
        while (at_ < end_ && is_space(*at_)) ++at_;
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }

    bool is_at_end() {
        while (at_ < end_ && is_space(*at_)) ++at_;
        return at_ == end_;
    }

    bool number(double& value) {
        while (at_ < end_ && is_space(*at_)) ++at_;
        const char* const from = at_;
        const bool is_negative = at_ < end_ && *at_ == '-';
        if (is_negative) ++at_;
        const char* const first = at_;
        if (!digits() || (*first == '0' && at_ - first > 1)) return false;
        bool is_whole = true;
        if (at_ < end_ && *at_ == '.') {
            ++at_;
            is_whole = false;
            if (!digits()) return false;
        }
        if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
            ++at_;
            is_whole = false;
            if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
            if (!digits()) return false;
        }
        const auto size = static_cast<size_t>(at_ - from);
        if (size > MOST_CHARACTERS || (is_whole && static_cast<size_t>(at_ - first) > MOST_INTEGER_DIGITS)) return false;
        if (is_whole && is_negative && *first == '0') return false;  // an integer has no negative zero
        return read(from, size, value);
    }

  private:
    bool digits() {
        const char* const from = at_;
        while (at_ < end_ && is_digit(*at_)) ++at_;
        return at_ > from;
    }

    static bool read(const char* from, size_t size, double& value) {
#ifdef __cpp_lib_to_chars
        return std::from_chars(from, from + size, value).ec == std::errc() && std::isfinite(value);
#else
        char text[MOST_CHARACTERS + 1];
        std::memcpy(text, from, size);
        text[size] = 0;
        value = std::strtod(text, nullptr);
        return std::isfinite(value);
#endif
    }

    const char* at_;
    const char* const end_;
};

float bfloat16_of(double number) {
    const auto wide = static_cast<float>(number);
    uint32_t bits;
    std::memcpy(&bits, &wide, sizeof bits);
    bits &= 0xFFFF0000u;
    float narrow;
    std::memcpy(&narrow, &bits, sizeof narrow);
    return narrow;
}

// A number as a cell of this type. Infinite where it is none.
double as_cell(double number, Cell cell) {
    switch (cell) {
        case hnsw::FLOAT64:
            return number;
        case hnsw::FLOAT32:
            return static_cast<double>(static_cast<float>(number));
        case hnsw::BFLOAT16:
            return static_cast<double>(bfloat16_of(number));
        default:
            return number >= -128 && number <= 127 ? std::trunc(number) : HUGE_VAL;
    }
}

template <typename T>
std::vector<char> packed(const std::vector<double>& numbers) {
    std::vector<char> cells(numbers.size() * sizeof(T));
    for (size_t i = 0; i < numbers.size(); ++i) {
        const T cell = static_cast<T>(numbers[i]);
        std::memcpy(cells.data() + i * sizeof(T), &cell, sizeof cell);
    }
    return cells;
}

nb::object read_vector(const nb::bytes& json, size_t count) {
    auto numbers = std::make_unique<std::vector<double>>(count);
    if (!read_numbers({json.c_str(), json.size()}, count, numbers->data())) return nb::none();
    return own(std::move(numbers));
}

}  // namespace

bool read_numbers(std::string_view json, size_t count, double* numbers) {
    Numbers in(json);
    if (!in.accept('[')) return false;
    for (size_t i = 0; i < count; ++i)
        if ((i > 0 && !in.accept(',')) || !in.number(numbers[i])) return false;
    return in.accept(']') && in.is_at_end();
}

std::optional<std::vector<char>> query_cells(std::string_view json, Cell written, Cell column, size_t dimensions) {
    std::vector<double> numbers(dimensions);
    if (!read_numbers(json, dimensions, numbers.data())) return std::nullopt;
    for (double& number : numbers) {
        number = as_cell(number, written);
        if (!std::isfinite(number)) return std::nullopt;
        // What an int8 cannot hold becomes the nearest that it can.
        if (column == hnsw::INT8) number = std::fmin(std::fmax(std::trunc(number), -128.0), 127.0);
        number = as_cell(number, column);
        if (!std::isfinite(number)) return std::nullopt;
    }
    switch (column) {
        case hnsw::FLOAT64:
            return packed<double>(numbers);
        case hnsw::INT8:
            return packed<int8_t>(numbers);
        default:
            return packed<float>(numbers);
    }
}

void bind_vector_text(nb::module_& m) {
    m.def("read_vector", &read_vector, nb::arg("json"), nb::arg("count"),
          "The numbers of a JSON array of exactly `count`; None where it has something else. Twin: tests.oracles.vector_text.read_vector");
}

}  // namespace paperwasp
