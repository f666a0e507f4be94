// Bytes in hexadecimal digits.
#pragma once

#include <cstddef>
#include <string_view>

namespace paperwasp {

// Each byte in two digits.
struct Hex {
    char of[256][2];
    constexpr Hex() : of() {
        constexpr std::string_view DIGITS = "0123456789ABCDEF";
        for (size_t byte = 0; byte < 256; ++byte) {
            of[byte][0] = DIGITS[byte >> 4];
            of[byte][1] = DIGITS[byte & 15];
        }
    }
};
constexpr Hex HEX;

}  // namespace paperwasp
