#ifndef MEMRT_MEMINFO_MEMINFO_H
#define MEMRT_MEMINFO_MEMINFO_H

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/meminfo/block.h"
#include "runtime/meminfo/dtor.h"

/// Life of a MemInfo: new or adopted, acquired and released. The functions are those of
/// memrt_api_t with the same names; the contract stands there.

memrt_meminfo_t *memrt__meminfo_allocate(size_t nbytes);
memrt_meminfo_t *memrt__meminfo_allocate_external(size_t nbytes,
                                                  memrt_external_allocator_t *allocator);
memrt_meminfo_t *memrt__meminfo_manage_memory(void *data, memrt_managed_dtor_fn dtor);

memrt_status_t memrt__meminfo_new(size_t size, const memrt_new_options_t *options,
                                  memrt_meminfo_t **out) MEMRT_MUST_CHECK;
memrt_status_t memrt__meminfo_adopt(void *data, size_t size, const memrt_new_options_t *options,
                                    memrt_meminfo_t **out) MEMRT_MUST_CHECK;

/// Read and verify what a caller filled in; NULL gives the defaults. `*out` is the caller's struct,
/// or `room` where that lacks something.
memrt_status_t memrt__meminfo_options(const memrt_new_options_t *options, memrt_new_options_t *room,
                                      const memrt_new_options_t **out) MEMRT_MUST_CHECK;

/// Give a new MemInfo what the options say beyond its block. MEMRT_ENOMEM: no room for the name.
memrt_status_t memrt__meminfo_dress(memrt_meminfo_t *mi,
                                    const memrt_new_options_t *options) MEMRT_MUST_CHECK;

/// The same for options without a name: nothing can fail.
void memrt__meminfo_dress_plainly(memrt_meminfo_t *mi, const memrt_new_options_t *options);

/// The long way of memrt__meminfo_new as far as it can fail: memrt__block_born is to follow, or
/// memrt__block_discard. `options` are complete; `birth`: see memrt__tracking_birth.
memrt_status_t memrt__meminfo_unborn(size_t size, const memrt_new_options_t *options,
                                     memrt__birth_t birth, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

memrt_status_t memrt__meminfo_set_name(memrt_meminfo_t *mi, const char *name) MEMRT_MUST_CHECK;
void memrt__meminfo_watch(memrt_meminfo_t *mi);
void memrt__meminfo_get_name(const memrt_meminfo_t *mi, char *buffer);
size_t memrt__meminfo_dump(const memrt_meminfo_t *mi, char *buffer, size_t length);
const char *memrt__kind_text(uint32_t kind);

/// Relaxed suffices: the caller holds a reference, so nothing of the object's can be missing to it.
static inline void memrt__meminfo_acquire(memrt_meminfo_t *mi)
{
    memrt__fetch_add_relaxed(&mi->refct, 1);
}

static inline size_t memrt__meminfo_refcount(const memrt_meminfo_t *mi)
{
    return memrt__load_relaxed(&mi->refct);
}

/// Whether the data is memory of a device, which the host cannot read.
static inline bool memrt__meminfo_is_device(const memrt_meminfo_t *mi)
{
    return (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_DEVICE) != 0;
}

/// Acquire: partner of memrt__block_born, for who finds a block that was just made.
static inline bool memrt__meminfo_try_acquire(memrt_meminfo_t *mi)
{
    size_t count = memrt__meminfo_refcount(mi);
    while (count != 0) {
        if (memrt__cas_acquire(&mi->refct, count, count + 1)) {
            return true;
        }
        count = memrt__meminfo_refcount(mi);
    }
    return false;
}

/// Release of a reference that was seen to be the only one.
void memrt__meminfo_release_last(memrt_meminfo_t *mi);

/// The release of each holder is a partner of the acquire load before the destructor, so that the
/// destructor sees all that holders wrote.
static inline void memrt__meminfo_release(memrt_meminfo_t *mi)
{
    if (memrt__load_acquire(&mi->refct) == 1) {
        memrt__meminfo_release_last(mi);
    } else if (memrt__fetch_sub1_release(&mi->refct) == 1) {
        (void)memrt__load_acquire(&mi->refct);
        memrt__dtor_call(mi);
    }
}

#endif
