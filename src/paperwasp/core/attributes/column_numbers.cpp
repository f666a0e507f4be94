// The values of a column at some lids as doubles: what rank programs read. The plain twin is in tests/oracles/column_numbers.py.
//
// values: by lid, of the column's type; out[i] becomes values[lids[i]], of integers NaN where that is `unset`. Lids that stand together are
// read as the run that they are.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "clock.hpp"
#include "clones.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

template <typename T>
PAPERWASP_INLINE double number_of(T value, T unset) {
    const double number = static_cast<double>(value);
    if constexpr (std::is_floating_point_v<T>) return number;
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    uint64_t bits, unknown_bits;
    std::memcpy(&bits, &number, sizeof bits);
    std::memcpy(&unknown_bits, &unknown, sizeof bits);
    const uint64_t mask = 0 - static_cast<uint64_t>(value == unset);  // a choice, as a loop of vectors has it
    bits = (bits & ~mask) | (unknown_bits & mask);
    double chosen;
    std::memcpy(&chosen, &bits, sizeof chosen);
    return chosen;
}

template <typename T>
PAPERWASP_INLINE void run_of(const T* values, T unset, size_t count, double* out) {
    for (size_t i = 0; i < count; ++i) out[i] = number_of(values[i], unset);
}

template <typename T>
PAPERWASP_INLINE void picked_of(const T* values, const uint32_t* lids, T unset, size_t count, double* out) {
    for (size_t i = 0; i < count; ++i) out[i] = number_of(values[lids[i]], unset);
}

PAPERWASP_CLONES uint32_t greatest(const uint32_t* lids, size_t count) {
    uint32_t most = 0;
    for (size_t i = 0; i < count; ++i) most = std::max(most, lids[i]);
    return most;
}

PAPERWASP_CLONES bool stand_together(const uint32_t* lids, size_t count) {
    uint32_t gaps = 0;
    for (size_t i = 1; i < count; ++i) gaps |= lids[i] - lids[i - 1] - 1;
    return gaps == 0;
}

#define NUMBERS_OF(T)                                                                                                     \
    PAPERWASP_CLONES void run(const T* values, T unset, size_t count, double* out) { run_of(values, unset, count, out); } \
    PAPERWASP_CLONES void picked(const T* values, const uint32_t* lids, T unset, size_t count, double* out) {             \
        picked_of(values, lids, unset, count, out);                                                                       \
    }
NUMBERS_OF(int8_t)
NUMBERS_OF(int32_t)
NUMBERS_OF(int64_t)
NUMBERS_OF(float)
NUMBERS_OF(double)

template <typename T>
void column_numbers(In<T> values, In<uint32_t> lids, T unset, Out<double> out) {
    const size_t count = lids.shape(0);
    if (out.shape(0) != count) throw std::invalid_argument("a number for each lid");
    if (count == 0) return;
    const uint32_t* lid = lids.data();
    Clock clock;
    clock.spend(static_cast<int64_t>(count));
    const GilRelease release(is_much(2 * count));
    if (greatest(lid, count) >= values.shape(0)) throw std::invalid_argument("a lid without a value");
    if (stand_together(lid, count))
        run(values.data() + lid[0], unset, count, out.data());
    else
        picked(values.data(), lid, unset, count, out.data());
}

template <typename T>
void bind_one(nb::module_& m) {
    m.def("column_numbers", &column_numbers<T>, nb::arg("values").noconvert(), nb::arg("lids").noconvert(), nb::arg("unset"),
          nb::arg("out").noconvert());
}

}  // namespace

void bind_column_numbers(nb::module_& m) {
    bind_one<int8_t>(m);
    bind_one<int32_t>(m);
    bind_one<int64_t>(m);
    bind_one<float>(m);
    bind_one<double>(m);
}

}  // namespace paperwasp
