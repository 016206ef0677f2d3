#ifndef MEMRT_LOCATE_H
#define MEMRT_LOCATE_H

/// Look-up of the buffer around any address.

#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Buffer around an address.
typedef struct memrt_location {
    size_t struct_size; ///< sizeof(memrt_location_t)
    uintptr_t data;     ///< address of the first byte of data
    size_t size;        ///< bytes of data
    uintptr_t meminfo;  ///< address of the MemInfo; 0: a tiny block whose MemInfo was not requested
    uint64_t id;        ///< serial number in the live list; 0: the live list does not have it
    uint32_t scope;     ///< number of the scope that the buffer counts in; 0: no scope
    uint32_t policy;    ///< policy_index of the policy
} memrt_location_t;

/// Find the live buffer whose data contains `address`, which may be any address at all.
///
/// The search covers all blocks of the default allocator, small and large, and from other sources
/// the buffers of the live list: tracked, named, and with a weak handle. No reference is acquired.
/// Where the system refuses process_vm_readv, the search covers the live list only.
/// Threads: if another thread allocates, resizes or frees the buffer at the address meanwhile, the
///          result may be out of date.
/// A struct that ends before `scope` is accepted.
/// Failure: MEMRT_ENOENT: no such buffer is known; MEMRT_EINVAL for a shorter struct.
typedef memrt_status_t (*memrt_locate_fn)(const void *address, memrt_location_t *out);

#ifdef __cplusplus
}
#endif

#endif
