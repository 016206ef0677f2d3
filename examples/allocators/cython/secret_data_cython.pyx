# cython: language_level=3
"""NEP 49's secret_data_allocator in Cython: a header before each block, checked on free.

The capsule `allocator` is for ``memrt.Policy(allocator=...)``, and for the command
``python -m memrt check-allocator secret_data_cython:allocator``.
"""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport SIZE_MAX
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport strcmp

from memrt cimport MEMRT_ALLOCATOR_VERSION, memrt_allocator_t

cdef extern from "stdlib.h" nogil:
    void *aligned_alloc(size_t alignment, size_t size)

cdef extern from *:
    """
    static unsigned long secret_data_unmatched;
    #define count_unmatched() __atomic_fetch_add(&secret_data_unmatched, 1, __ATOMIC_RELAXED)
    """
    unsigned long secret_data_unmatched
    void count_unmatched() noexcept nogil

cdef enum:
    HEADER = 64  # bytes of the text before a block


cdef void *secret_alloc(void *ctx, size_t size, size_t align) noexcept nogil:
    cdef size_t gap = max(align, <size_t>HEADER)
    if size > SIZE_MAX // 2 - 2 * gap:
        return NULL
    cdef char *start = <char *>aligned_alloc(gap, (gap + size + gap - 1) // gap * gap)
    if start == NULL:
        return NULL
    snprintf(start + gap - HEADER, HEADER, "originally allocated %zu", size)
    return start + gap


cdef void secret_free(void *ctx, void *ptr, size_t size, size_t align) noexcept nogil:
    cdef char[HEADER] expected
    snprintf(expected, HEADER, "originally allocated %zu", size)
    if strcmp(<char *>ptr - HEADER, expected) != 0:
        count_unmatched()
        return
    free(<char *>ptr - max(align, <size_t>HEADER))


cdef memrt_allocator_t table
table.struct_size = sizeof(memrt_allocator_t)
table.version = MEMRT_ALLOCATOR_VERSION
table.name = "secret_data"
table.alloc = secret_alloc
table.free = secret_free

# The module is never unloaded, so the capsule needs no destructor.
allocator = PyCapsule_New(&table, "memrt.allocator", NULL)


def unmatched():
    """Return the number of freed blocks whose header did not fit."""
    return secret_data_unmatched
