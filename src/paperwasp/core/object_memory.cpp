// Where the small objects of large documents lie: in the C library's memory, not in the interpreter's.
//
// CPython has objects of up to 512 bytes in arenas of 1 MiB, and gives an arena back when nothing is left in it. Of a
// document of 50,000 strings a few arenas are filled; while it is there, objects are made that stay, one of which is
// enough to keep an arena for good. The C library gives back each page that is free. CPython frees a block by where it
// lies (obmalloc.c: pymalloc_free), so a block of either kind may be freed, or enlarged, by either allocator.
//
// The allocator is replaced only while some thread asks for it: nothing else pays for the look at whose call it is.
//
// Threads: who asks, and who has asked, holds the interpreter's lock. A Python without it finds its objects by where they lie, so there
// they stay where it puts them: nothing is replaced.
#include "core.hpp"

namespace paperwasp {

namespace {

#ifdef Py_GIL_DISABLED
constexpr bool HAS_LOCK = false;
#else
constexpr bool HAS_LOCK = true;
#endif

constexpr PyMemAllocatorDomain DOMAINS[] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
constexpr size_t COUNT = std::size(DOMAINS);

PyMemAllocatorEx kept[COUNT];
bool is_replaced = false;
int asking = 0;

thread_local int asking_here = 0;

PyMemAllocatorEx& before(void* context) { return *static_cast<PyMemAllocatorEx*>(context); }

void* allocate(void* context, size_t size) {
    if (asking_here > 0) return PyMem_RawMalloc(size);
    return before(context).malloc(before(context).ctx, size);
}

void* allocate_zeros(void* context, size_t count, size_t size) {
    if (asking_here > 0) return PyMem_RawCalloc(count, size);
    return before(context).calloc(before(context).ctx, count, size);
}

void* reallocate(void* context, void* block, size_t size) {
    if (block == nullptr) return allocate(context, size);
    return before(context).realloc(before(context).ctx, block, size);
}

void release(void* context, void* block) { before(context).free(before(context).ctx, block); }

void replace() {
    for (size_t i = 0; i < COUNT; ++i) {
        PyMem_GetAllocator(DOMAINS[i], &kept[i]);
        PyMemAllocatorEx ours{&kept[i], allocate, allocate_zeros, reallocate, release};
        PyMem_SetAllocator(DOMAINS[i], &ours);
    }
    is_replaced = true;
}

// Nothing where somebody else has replaced ours meanwhile (tracemalloc): it calls ours, which calls the one before.
void put_back() {
    PyMemAllocatorEx now[COUNT];
    for (size_t i = 0; i < COUNT; ++i) {
        PyMem_GetAllocator(DOMAINS[i], &now[i]);
        if (now[i].malloc != allocate) return;
    }
    for (size_t i = 0; i < COUNT; ++i) PyMem_SetAllocator(DOMAINS[i], &kept[i]);
    is_replaced = false;
}

void begin_outside_arenas() {
    if (!HAS_LOCK) return;
    if (asking++ == 0 && !is_replaced) replace();
    ++asking_here;
}

void end_outside_arenas() {
    if (!HAS_LOCK) return;
    --asking_here;
    if (--asking == 0) put_back();
}

}  // namespace

void bind_object_memory(nb::module_& m) {
    m.def("begin_outside_arenas", &begin_outside_arenas,
          "From now on this thread's objects lie in the C library's memory. Only where CPython's own allocator is in use.");
    m.def("end_outside_arenas", &end_outside_arenas, "Ends what `begin_outside_arenas` began, on the same thread.");
}

}  // namespace paperwasp
