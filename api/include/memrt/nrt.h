#ifndef MEMRT_NRT_H
#define MEMRT_NRT_H

/// Arrays, strings and functions for C programs that call object code of Numba without Python.
///
/// `python -m memrt compile` writes the object code, and a header that includes this header. The
/// program links libmemrt_nrt, whose functions are declared at the end.

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memrt/external.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Define memrt_nrt_array<N>_t, Numba's array with N dimensions, and memrt_nrt_array<N>_borrow().
///
/// The type has these members, at the offsets that compiled code uses:
///
///   meminfo    owner of the data; NULL: the caller keeps the data alive
///   parent     always NULL without Python
///   nitems     number of elements
///   itemsize   bytes per element
///   data       first element
///   shape      elements along each dimension
///   strides    bytes between neighbours along each dimension
///
/// An array that compiled code returns holds one reference to `meminfo`. The caller releases the
/// reference with NRT_MemInfo_release(array.meminfo).
///
/// memrt_nrt_array<N>_borrow() returns an array in C order over `data`, without an owner. The
/// caller keeps the data alive while compiled code uses the array.
#define MEMRT__NRT_ARRAY(N)                                                                        \
    typedef struct memrt_nrt_array##N {                                                            \
        memrt_meminfo_t *meminfo;                                                                  \
        void *parent;                                                                              \
        int64_t nitems;                                                                            \
        int64_t itemsize;                                                                          \
        void *data;                                                                                \
        int64_t shape[N];                                                                          \
        int64_t strides[N];                                                                        \
    } memrt_nrt_array##N##_t;                                                                      \
                                                                                                   \
    static inline memrt_nrt_array##N##_t memrt_nrt_array##N##_borrow(void *data, size_t itemsize,  \
                                                                     const int64_t *shape)         \
    {                                                                                              \
        memrt_nrt_array##N##_t array;                                                              \
        array.meminfo = NULL;                                                                      \
        array.parent = NULL;                                                                       \
        array.nitems = 1;                                                                          \
        array.itemsize = (int64_t)itemsize;                                                        \
        array.data = data;                                                                         \
        for (int i = (N) - 1; i >= 0; i--) {                                                       \
            array.shape[i] = shape[i];                                                             \
            array.strides[i] = array.nitems * array.itemsize;                                      \
            array.nitems *= shape[i];                                                              \
        }                                                                                          \
        return array;                                                                              \
    }

MEMRT__NRT_ARRAY(1)
MEMRT__NRT_ARRAY(2)
MEMRT__NRT_ARRAY(3)
MEMRT__NRT_ARRAY(4)
MEMRT__NRT_ARRAY(5)
MEMRT__NRT_ARRAY(6)
MEMRT__NRT_ARRAY(7)
MEMRT__NRT_ARRAY(8)

/// Largest number of dimensions of the array types above.
#define MEMRT_NRT_DIMENSIONS_MAX 8

/// String of compiled code. A returned string holds one reference to `meminfo`, unless `meminfo` is
/// NULL.
typedef struct memrt_nrt_string {
    void *data;               ///< code points, `kind` bytes each
    int64_t length;           ///< number of code points
    int32_t kind;             ///< bytes per code point: 1 (Latin-1), 2 or 4
    uint32_t is_ascii;        ///< 1: all code points are below 128
    int64_t hash;             ///< -1: not computed
    memrt_meminfo_t *meminfo; ///< owner of the data; NULL: the caller keeps the data alive
    void *parent;             ///< always NULL without Python
} memrt_nrt_string_t;

/// Return a string over `text`, which must be ASCII and must outlive the string.
static inline memrt_nrt_string_t memrt_nrt_string_borrow(const char *text)
{
    memrt_nrt_string_t string;
    string.data = (void *)(uintptr_t)text;
    string.length = (int64_t)strlen(text);
    string.kind = 1;
    string.is_ascii = 1;
    string.hash = -1;
    string.meminfo = NULL;
    string.parent = NULL;
    return string;
}

/// Functions of libmemrt_nrt, under the names and with the signatures that object code of Numba
/// uses. The allocating functions allocate from the default policy.
///
/// Threads: any thread.
/// Failure: NULL means out of memory.

/// Release one reference to `mi`, which must not be NULL.
MEMRT_EXPORT void NRT_MemInfo_release(memrt_meminfo_t *mi);
/// Return the function table of the loaded libmemrt.
MEMRT_EXPORT const memrt_api_t *NRT_get_api(void);

MEMRT_EXPORT memrt_meminfo_t *NRT_MemInfo_alloc(size_t size);
MEMRT_EXPORT memrt_meminfo_t *NRT_MemInfo_alloc_safe(size_t size);
MEMRT_EXPORT memrt_meminfo_t *NRT_MemInfo_alloc_aligned(size_t size, unsigned align);
MEMRT_EXPORT memrt_meminfo_t *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned align);
MEMRT_EXPORT memrt_meminfo_t *
NRT_MemInfo_alloc_safe_aligned_external(size_t size, unsigned align,
                                        memrt_external_allocator_t *allocator);
MEMRT_EXPORT memrt_meminfo_t *NRT_MemInfo_alloc_dtor(size_t size, memrt_dtor_fn dtor);
MEMRT_EXPORT memrt_meminfo_t *NRT_MemInfo_alloc_dtor_safe(size_t size, memrt_dtor_fn dtor);
MEMRT_EXPORT void NRT_MemInfo_call_dtor(memrt_meminfo_t *mi);
MEMRT_EXPORT memrt_meminfo_t *NRT_MemInfo_new_varsize(size_t size);
MEMRT_EXPORT memrt_meminfo_t *NRT_MemInfo_new_varsize_dtor(size_t size, memrt_dtor_fn dtor);
MEMRT_EXPORT void *NRT_MemInfo_varsize_alloc(memrt_meminfo_t *mi, size_t size);
MEMRT_EXPORT void *NRT_MemInfo_varsize_realloc(memrt_meminfo_t *mi, size_t size);
MEMRT_EXPORT void NRT_MemInfo_varsize_free(memrt_meminfo_t *mi, void *data);
MEMRT_EXPORT void *NRT_MemInfo_data(memrt_meminfo_t *mi);
MEMRT_EXPORT void *NRT_Allocate(size_t size);
MEMRT_EXPORT void NRT_Free(void *data);
MEMRT_EXPORT memrt_external_allocator_t *_nrt_get_sample_external_allocator(void);

#ifdef __cplusplus
}
#endif

#endif
