// PAPERWASP_CLONES before a function: it is compiled for several generations of x86-64, and the right one is taken when the module is
// loaded. For the few loops whose speed is that of the vector instructions. Nothing where the compiler knows no such thing.
//
// All generations give the same results: floating-point contraction is off, and lanes are added up in one order.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define PAPERWASP_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PAPERWASP_CLONES
#endif

// For what such a function calls in its loop.
#define PAPERWASP_INLINE inline __attribute__((always_inline))
#define PAPERWASP_INLINED __attribute__((always_inline))  // of a lambda, behind its parameters
