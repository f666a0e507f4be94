// What kernels that look through texts of JSON have in common.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

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

// Where the value that begins at `at` ends: at the comma or the bracket behind it. nullptr: it does not.
inline const char* after_value(const char* at, const char* end) {
    size_t depth = 0;
    while (at < end) {
        switch (*at) {
            case '"':
                at = after_string(at, end);
                if (at == nullptr) return nullptr;
                continue;
            case '{':
            case '[':
                ++depth;
                break;
            case '}':
            case ']':
                if (depth == 0) return at;
                --depth;
                break;
            case ',':
                if (depth == 0) return at;
                break;
            default:
                break;
        }
        ++at;
    }
    return nullptr;
}

// Calls visit(key with its colon, member) for each member of a compact JSON object, in its order. False: it is not such
// an object; members before the place where that shows have been visited.
template <typename Visit>
bool for_each_member(std::string_view object, Visit visit) {
    const char* at = object.data();
    const char* end = at + object.size();
    if (object.size() < 2 || *at != '{' || end[-1] != '}') return false;
    if (object.size() == 2) return true;
    for (++at; at < end;) {
        const char* member = at;
        const char* value = *at == '"' ? after_string(at, end) : nullptr;
        if (value == nullptr || value == end || *value != ':') return false;
        at = after_value(++value, end);
        if (at == nullptr || at == value) return false;
        visit(std::string_view(member, static_cast<size_t>(value - member)), std::string_view(member, static_cast<size_t>(at - member)));
        if (*at == '}') return at + 1 == end;
        if (*at != ',') return false;
        ++at;
    }
    return false;
}

}  // namespace paperwasp
