// XXH3 for other kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paperwasp {

// 64 bits, without a seed.
uint64_t xxh3_of(const unsigned char* bytes, size_t size);

}  // namespace paperwasp
