// Numbers as JSON: see json_number.hpp.
#include "json_number.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace paperwasp {
namespace {

constexpr size_t MOST_DIGITS = 17;
constexpr int MOST_BEFORE_POINT = 16, MOST_ZEROS_BEHIND = 4;

// Writes d.ddde±x in the fewest digits that are read back as the same number, and returns the end.
char* write_shortest(double value, char* to, char* end) {
#ifdef __cpp_lib_to_chars
    return std::to_chars(to, end, value, std::chars_format::scientific).ptr;
#else
    for (int precision = 0; precision < static_cast<int>(MOST_DIGITS); ++precision) {
        const int size = std::snprintf(to, static_cast<size_t>(end - to), "%.*e", precision, value);
        if (std::strtod(to, nullptr) == value || precision + 1 == static_cast<int>(MOST_DIGITS)) return to + size;
    }
    return to;
#endif
}

}  // namespace

void append_number(double value, std::string& to) {
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
    if (exponent >= 0 && exponent < MOST_BEFORE_POINT) {
        const int before = exponent + 1;
        piece(0, before < count ? before : count);
        if (before > count) to.append(static_cast<size_t>(before - count), '0');
        to += '.';
        if (before < count)
            piece(before, count);
        else
            to += '0';
    } else if (exponent < 0 && exponent >= -MOST_ZEROS_BEHIND - 1) {
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

}  // namespace paperwasp
