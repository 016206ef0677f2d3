#ifndef MEMRT_EXTERNAL_H
#define MEMRT_EXTERNAL_H

/// Main header for compiled code: the function table of memrt, and all types of its slots.
///
/// Types that refer to DLPack's or Arrow's own structs are in memrt/dlpack.h and memrt/arrow.h.

#include <stddef.h>
#include <stdint.h>

#include <memrt/api.h>
#include <memrt/observe/trace_file.h>
#include <memrt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Bits of memrt_api_t.features.
#define MEMRT_FEATURE_CHECKING ((uint64_t)1 << 0) ///< the slots verify arguments (MEMRT_CHECK=1)
#define MEMRT_FEATURE_COUNTERS ((uint64_t)1 << 1) ///< statistics are counted; else they read 0
#define MEMRT_FEATURE_PROBES ((uint64_t)1 << 2)   ///< static probes are compiled in

/// Test whether the table `api` has `slot`. Use the test before a slot that the library may be too
/// old to have.
#define MEMRT_HAS(api, slot)                                                                       \
    (offsetof(memrt_api_t, slot) + sizeof((api)->slot) <= (api)->struct_size)

/// Count in the MemInfo by which memrt_api_of_nrt() recognizes memrt's table.
#define MEMRT_PROBE ((size_t)0x6d656d7274707262u)

/// Return the whole table for a pointer to the six slots of Numba's NRT_api_functions, which
/// compiled code gets from Numba's NRT_get_api(). Return NULL when the slots are not memrt's.
///
/// Numba's own table states neither its size nor its maker. Therefore the function calls get_data
/// with a MemInfo that no runtime would make: Numba returns its `data`, which is NULL, and memrt
/// returns the table.
static inline const memrt_api_t *memrt_api_of_nrt(const void *nrt_api_functions)
{
    memrt_meminfo_t probe = {MEMRT_PROBE, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0};
    probe.dtor_info = &probe;
    return (const memrt_api_t *)((const memrt_api_t *)nrt_api_functions)->get_data(&probe);
}

#if defined(__GNUC__)
/// Acquire one more reference, as memrt_api_t.acquire, inlined into the caller: one locked
/// instruction, as in compiled code.
///
/// Ownership: the caller already holds a reference. Checking mode does not see the call until the
///            block is freed.
static inline void memrt_meminfo_acquire(memrt_meminfo_t *mi)
{
    __atomic_fetch_add(&mi->refct, 1, __ATOMIC_RELAXED);
}

/// Release one reference, as memrt_api_t.release, inlined into the caller. The last release goes
/// through the table.
///
/// Ownership: consumes the caller's reference. The caller must not use `mi` afterwards.
/// Threads:   earlier writes to the data happen before the destructor.
/// Failure:   aborts with a message if the count is 0.
static inline void memrt_meminfo_release(const memrt_api_t *api, memrt_meminfo_t *mi)
{
    size_t before = __atomic_fetch_sub(&mi->refct, 1, __ATOMIC_ACQ_REL);
    if (before == 1) {
        api->call_dtor(mi);
    } else if (before == 0) {
        __atomic_store_n(&mi->refct, 0, __ATOMIC_RELAXED);
        api->release(mi); /* aborts with a message */
    }
}
#endif

#if defined(__GNUC__)
#define MEMRT_EXPORT __attribute__((visibility("default")))
#else
#define MEMRT_EXPORT
#endif

/// Return the table for a caller built against `abi_major`: the same pointer at every call, valid
/// for the rest of the process.
///
/// Failure: NULL when the library has another major version. Then `*why` (unless `why` is NULL) is
///          a sentence with the remedy.
MEMRT_EXPORT const memrt_api_t *memrt_get_api(uint32_t abi_major, const char **why);

/// Return the version of the loaded library, "0.1.0".
MEMRT_EXPORT const char *memrt_version(void);

#ifdef __cplusplus
}
#endif

#endif
