// The extension module paperwasp.core._core: binds every kernel file.
#include "core.hpp"

namespace paperwasp {
}  // namespace paperwasp

NB_MODULE(_core, m) {
    m.doc() = "Compiled kernels of paperwasp. Each has a plain NumPy twin in this package.";
}
