// Handing arrays that a kernel made over to NumPy, without a copy.
#pragma once

#include "core.hpp"

#include <memory>
#include <vector>

namespace paperwasp {

// A NumPy array that owns the vector's memory. Call with the GIL held.
template <typename T>
nb::object own(std::unique_ptr<std::vector<T>> values) {
    auto* raw = values.release();
    nb::capsule owner(raw, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    // An empty vector may have no address, and NumPy wants one.
    static T nothing{};
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(raw->empty() ? &nothing : raw->data(), {raw->size()}, owner));
}

}  // namespace paperwasp
