// What kernels that look through texts of JSON have in common.
#pragma once

#include <cstddef>
#include <cstring>

namespace paperwasp {

// Where the string that begins at `at` (a quote) ends; nullptr: it does not.
inline const char* after_string(const char* at, const char* end) {
    const char* start = at + 1;
    for (const char* quote = start; quote < end; ++quote) {
        quote = static_cast<const char*>(std::memchr(quote, '"', static_cast<size_t>(end - quote)));
        if (quote == nullptr) return nullptr;
        const char* before = quote;
        while (before > start && before[-1] == '\\') --before;
        if ((quote - before) % 2 == 0) return quote + 1;
    }
    return nullptr;
}

}  // namespace paperwasp
