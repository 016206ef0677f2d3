"""Declare the C function, and the functions and types of memrt, for cffi."""

from pathlib import Path

import memrt
from cffi import FFI

SOURCE = """
#include <memrt/external.h>

/* Return the sums of the squares of the first 1, 2, ... count values, or NULL. */
static memrt_meminfo_t *running_square_sum(const memrt_api_t *api, const double *values,
                                           size_t count)
{
    memrt_meminfo_t *mi = api->allocate(count * sizeof(double));
    if (mi == NULL) {
        return NULL;
    }
    double *sums = api->get_data(mi), sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i] * values[i];
        sums[i] = sum;
    }
    return mi;
}
"""

ffi = FFI()
ffi.cdef(Path(memrt.get_include(), "memrt", "memrt.cdef").read_text())
ffi.cdef("""
memrt_meminfo_t *running_square_sum(const memrt_api_t *api, const double *values, size_t count);
""")
ffi.set_source(
    "running_square_sum._native",
    SOURCE,
    include_dirs=[memrt.get_include()],
    extra_objects=[memrt.get_library()],  # has memrt_get_api(); memrt loads the library
)
