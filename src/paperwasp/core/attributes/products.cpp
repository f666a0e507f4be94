// Sums of products over the elements of rows: what weighted tokens of a query score in documents. The plain twin is in
// tests/oracles/products.py.
//
// Document i of n has the elements places[i] (offset << 24 | length, as a row of an array column) of `values`; or, where `rows` is empty,
// the one element values[lids[i]]. An element that is keys[k] counts token_weights[k], times its own weight where `weights` is not empty.
// Keys rise, each once. Sums are of 64-bit integers, which wrap around; written as doubles.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "bitmap_fill.hpp"
#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

// Where a key stands among few: open addressing over the keys' places.
template <typename T>
class Places {
  public:
    Places(const T* keys, size_t count) : keys_(keys) {
        unsigned bits = 2;
        while ((size_t{1} << bits) < count * 2) ++bits;
        shift_ = 64 - bits;
        places_.assign(size_t{1} << bits, NONE);
        for (size_t k = 0; k < count; ++k) {
            size_t at = start(keys[k]);
            while (places_[at & mask()] != NONE) ++at;
            places_[at & mask()] = static_cast<uint32_t>(k);
        }
    }

    static constexpr uint32_t NONE = 0xFFFFFFFFu;

    uint32_t find(T key) const {
        for (size_t at = start(key);; ++at) {
            const uint32_t place = places_[at & mask()];
            if (place == NONE || keys_[place] == key) return place;
        }
    }

  private:
    size_t mask() const { return places_.size() - 1; }
    size_t start(T key) const {
        if constexpr (std::is_floating_point_v<T>)
            return static_cast<size_t>(hash(static_cast<double>(key) + 0.0));
        else
            return static_cast<size_t>((static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15ull) >> shift_);
    }
    uint64_t hash(double key) const {
        uint64_t bits;
        static_assert(sizeof bits == sizeof key);
        __builtin_memcpy(&bits, &key, sizeof bits);
        return (bits * 0x9E3779B97F4A7C15ull) >> shift_;
    }

    const T* keys_;
    unsigned shift_;
    std::vector<uint32_t> places_;
};

template <typename T>
void products(In<T> values, In<uint64_t> rows, In<int32_t> weights, In<T> keys, In<int64_t> token_weights, In<uint32_t> lids,
              Out<double> sums) {
    const size_t count = lids.shape(0), elements = values.shape(0);
    const bool single = rows.shape(0) == 0;
    if (sums.shape(0) != count) throw std::invalid_argument("a sum for each document");
    if (keys.shape(0) != token_weights.shape(0)) throw std::invalid_argument("a weight for each key");
    if (weights.shape(0) != 0 && weights.shape(0) < elements) throw std::invalid_argument("a weight for each element");
    const size_t limit = single ? elements : rows.shape(0);
    const uint32_t* lid = lids.data();
    if (std::any_of(lid, lid + count, [=](uint32_t l) { return l >= limit; })) throw std::invalid_argument("a lid without a row");
    const T* value = values.data();
    const uint64_t* row = rows.data();
    const int32_t* weight = weights.shape(0) == 0 ? nullptr : weights.data();
    const int64_t* token_weight = token_weights.data();
    double* sum = sums.data();
    const Places<T> places(keys.data(), keys.shape(0));
    Clock clock;
    const GilRelease release(is_much(8 * (single ? count : count + elements)));
    for (size_t i = 0; i < count; ++i) {
        clock.spend(single ? 4 : static_cast<int64_t>(4 * number_of_elements(row[lid[i]])));
        uint64_t total = 0;
        const auto add = [&](uint64_t place) {
            const uint32_t k = places.find(value[place]);
            if (k != Places<T>::NONE) total += static_cast<uint64_t>(token_weight[k]) * static_cast<uint64_t>(weight ? weight[place] : 1);
            return false;
        };
        if (single)
            add(lid[i]);
        else
            any_element(row[lid[i]], elements, add);
        sum[i] = static_cast<double>(static_cast<int64_t>(total));
    }
}

template <typename T>
void bind_one(nb::module_& m) {
    m.def("products", &products<T>, nb::arg("values").noconvert(), nb::arg("rows").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("keys").noconvert(), nb::arg("token_weights").noconvert(), nb::arg("lids").noconvert(), nb::arg("sums").noconvert());
}

}  // namespace

void bind_products(nb::module_& m) {
    bind_one<int8_t>(m);
    bind_one<int32_t>(m);
    bind_one<int64_t>(m);
    bind_one<uint32_t>(m);
    bind_one<float>(m);
    bind_one<double>(m);
}

}  // namespace paperwasp
