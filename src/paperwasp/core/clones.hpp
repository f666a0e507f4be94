// PAPERWASP_CLONES before a function: it is compiled for several generations of x86-64, and the right one is taken when the module is
// loaded. For the few loops whose speed is that of the vector instructions. Nothing where the compiler knows no such thing.
//
// All generations give the same results: floating-point contraction is off, and lanes are added up in one order.
#pragma once

// GCC knows the generations since version 11, clang (also that of ziglang) since 18.
#if defined(__clang__)
#if __clang_major__ >= 18 && !__has_feature(address_sanitizer)
#define PAPERWASP_HAS_CLONES
#endif
#elif defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PAPERWASP_HAS_CLONES
#endif

#if defined(PAPERWASP_HAS_CLONES) && defined(__x86_64__) && defined(__linux__)
#define PAPERWASP_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PAPERWASP_CLONES
#endif

// For what such a function calls in its loop.
#define PAPERWASP_INLINE inline __attribute__((always_inline))
#define PAPERWASP_INLINED __attribute__((always_inline))  // of a lambda, behind its parameters
