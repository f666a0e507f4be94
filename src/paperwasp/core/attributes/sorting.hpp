// Which rows of a column can be among the first ones in its order, without sorting the rest.
//
// Bitmap: bit (lid & 63) of word (lid >> 6); bits from the number of rows on do not count. NaN is less than any number.
// Threads: any. The writer of the column may store into single elements meanwhile: a row is then taken by its old or its new value, and may
// be missed or be one too many; nothing else happens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

namespace paperwasp {

// A value that may be stored meanwhile.
template <typename T>
inline T value_now(const T* at) {
    T value;
    __atomic_load(at, &value, __ATOMIC_RELAXED);
    return value;
}

template <typename T>
inline T comparable(T value) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(value)) return -std::numeric_limits<T>::infinity();
    }
    return value;
}

template <typename Row>
void for_rows(const uint64_t* words, size_t rows, Row row) {
    const size_t count = (rows + 63) / 64;
    for (size_t i = 0; i < count; ++i) {
        uint64_t word = words[i];
        if (i + 1 == count && rows % 64) word &= (uint64_t{1} << (rows % 64)) - 1;
        for (; word; word &= word - 1) row(i * 64 + static_cast<size_t>(__builtin_ctzll(word)));
    }
}

// Rising lids of all rows whose value comes before, or equals, that of row `wanted` in the order of the values.
template <typename T, typename Before>
std::unique_ptr<std::vector<uint32_t>> first_of(const T* values, size_t rows, const uint64_t* words, size_t wanted, Before before) {
    auto found = std::make_unique<std::vector<uint32_t>>();
    // The best so far, unordered: when twice as many as wanted, the worse half goes, and the last that stays is the bound from then on.
    std::vector<T> best;
    best.reserve(2 * wanted);
    bool bounded = false;
    T bound{};
    const auto cut = [&] {
        std::nth_element(best.begin(), best.begin() + (wanted - 1), best.end(), before);
        best.resize(wanted);
        bound = best[wanted - 1];
        bounded = true;
    };
    for_rows(words, rows, [&](size_t row) {
        const T value = comparable(value_now(values + row));
        if (bounded && !before(value, bound)) return;
        best.push_back(value);
        if (best.size() == 2 * wanted) cut();
    });
    if (best.size() >= wanted) cut();
    for_rows(words, rows, [&](size_t row) {
        if (!bounded || !before(bound, comparable(value_now(values + row)))) found->push_back(static_cast<uint32_t>(row));
    });
    return found;
}

}  // namespace paperwasp
