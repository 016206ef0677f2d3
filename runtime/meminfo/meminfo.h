#ifndef MEMRT_MEMINFO_MEMINFO_H
#define MEMRT_MEMINFO_MEMINFO_H

#include <memrt/meminfo/create.h>

#include "runtime/base/compiler.h"
#include "runtime/meminfo/block.h"
#include "runtime/meminfo/references.h"

/// MemInfos: allocate or adopt, and their names. The functions implement the slots of memrt_api_t
/// with the same names; memrt/meminfo.h and memrt/meminfo/create.h document the contracts.

memrt_meminfo_t *memrt__meminfo_allocate(size_t nbytes);
memrt_meminfo_t *memrt__meminfo_allocate_from(size_t nbytes, memrt_policy_t *policy);
memrt_meminfo_t *memrt__meminfo_allocate_external(size_t nbytes,
                                                  memrt_external_allocator_t *allocator);
memrt_meminfo_t *memrt__meminfo_manage_memory(void *data, memrt_managed_dtor_fn dtor);

memrt_status_t memrt__meminfo_new(size_t size, const memrt_new_options_t *options,
                                  memrt_meminfo_t **out) MEMRT_MUST_CHECK;
memrt_status_t memrt__meminfo_adopt(void *data, size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out) MEMRT_MUST_CHECK;

/// Validate the options of a caller; NULL gives the defaults. `*out` is set to the caller's struct.
/// If the caller's struct is NULL or shorter than this version's, `*out` is `room`, a filled-up
/// copy.
memrt_status_t memrt__meminfo_options(const memrt_new_options_t *options, memrt_new_options_t *room,
                                      const memrt_new_options_t **out) MEMRT_MUST_CHECK;

/// Apply the name, destructor and read-only flag of the options to a new MemInfo.
/// Failure: MEMRT_ENOMEM when there is no memory for the name.
memrt_status_t memrt__meminfo_fill(memrt_meminfo_t *mi,
                                   const memrt_new_options_t *options) MEMRT_MUST_CHECK;

/// Apply the destructor and read-only flag of the options. Cannot fail; ignores the name.
void memrt__meminfo_fill_default(memrt_meminfo_t *mi, const memrt_new_options_t *options);

/// Prepare a new MemInfo on the slow path: run all steps that can fail, but notify no observer. The
/// caller then calls memrt__block_notify_alloc() or memrt__block_discard(). `options` must be
/// complete. `event` comes from memrt__tracking_alloc().
memrt_status_t memrt__meminfo_prepare(size_t size, const memrt_new_options_t *options,
                                      memrt__alloc_event_t event,
                                      memrt_meminfo_t **out) MEMRT_MUST_CHECK;

memrt_status_t memrt__meminfo_set_name(memrt_meminfo_t *mi, const char *name) MEMRT_MUST_CHECK;
void memrt__meminfo_observe(memrt_meminfo_t *mi);
void memrt__meminfo_get_name(const memrt_meminfo_t *mi, char *buffer);
size_t memrt__meminfo_dump(const memrt_meminfo_t *mi, char *buffer, size_t length);
const char *memrt__kind_text(uint32_t kind);

/// Return whether the data is device memory, which the host cannot read.
static inline bool memrt__meminfo_is_device(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_DEVICE) != 0;
}

#endif
