// Numbers as JSON: see json_number.hpp.
#include "documents/json_number.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace paperwasp {
namespace {

constexpr size_t MOST_DIGITS = 17;

// How many digits before the point, and zeros behind it, a number has without an exponent.
template <typename T>
struct Form {
    static constexpr int MOST_BEFORE_POINT = std::is_same_v<T, float> ? 13 : 16;
    static constexpr int MOST_ZEROS_BEHIND = std::is_same_v<T, float> ? 5 : 4;
};

// Writes d.ddde±x in the fewest digits that are read back as the same number, and returns the end.
template <typename T>
char* write_shortest(T value, char* to, char* end) {
#ifdef __cpp_lib_to_chars
    return std::to_chars(to, end, value, std::chars_format::scientific).ptr;
#else
    for (int precision = 0; precision < static_cast<int>(MOST_DIGITS); ++precision) {
        const int size = std::snprintf(to, static_cast<size_t>(end - to), "%.*e", precision, static_cast<double>(value));
        T read;
        if constexpr (std::is_same_v<T, float>) {
            read = std::strtof(to, nullptr);
        } else {
            read = std::strtod(to, nullptr);
        }
        if (read == value || precision + 1 == static_cast<int>(MOST_DIGITS)) return to + size;
    }
    return to;
#endif
}

template <typename T>
void append(T value, std::string& to) {
    char written[40];
    char* const end = write_shortest(value, written, written + sizeof written - 1);
    *end = 0;
    const char* at = written;
    if (*at == '-') to += *at++;
    char digits[MOST_DIGITS + 1];
    int count = 0;
    for (; *at != 'e'; ++at)
        if (*at != '.') digits[count++] = *at;
    const int exponent = std::atoi(at + 1);
    while (count > 1 && digits[count - 1] == '0') --count;
    const auto piece = [&](int from, int until) { to.append(digits + from, static_cast<size_t>(until - from)); };
    if (exponent >= 0 && exponent < Form<T>::MOST_BEFORE_POINT) {
        const int before = exponent + 1;
        piece(0, before < count ? before : count);
        if (before > count) to.append(static_cast<size_t>(before - count), '0');
        to += '.';
        if (before < count)
            piece(before, count);
        else
            to += '0';
    } else if (exponent < 0 && exponent >= -Form<T>::MOST_ZEROS_BEHIND - 1) {
        to += "0.";
        to.append(static_cast<size_t>(-exponent - 1), '0');
        piece(0, count);
    } else {
        piece(0, 1);
        if (count > 1) {
            to += '.';
            piece(1, count);
        }
        to += exponent < 0 ? "e" : "e+";
        to += std::to_string(exponent);
    }
}

}  // namespace

void append_number(double value, std::string& to) { append(value, to); }

void append_number(float value, std::string& to) { append(value, to); }

}  // namespace paperwasp
