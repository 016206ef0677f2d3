#ifndef MEMRT_MEMINFO_TINY_H
#define MEMRT_MEMINFO_TINY_H

#include "runtime/meminfo/meminfo.h"

/// Blocks of a few bytes, for which a header of 64 would be most of what they take.
///
///     | memrt__tiny_t, 16 | data |
///     ^ at a multiple of 32
///
/// So tiny data is never at a multiple of 64, where the data of every other block is: the address
/// tells the two apart. A tiny block has one holder, who knows it by its data. Its MemInfo is a
/// header of its own, made when somebody asks for it; from then on its count holds the block.
///
/// Policies that name an alignment have no tiny blocks, nor has a process that tracks or checks.

typedef struct memrt__tiny {
    size_t meminfo;  ///< its MemInfo, or 0; release by who makes it, acquire by who looks
    uint16_t policy; ///< index; fixed
    uint16_t size;   ///< bytes, as asked for
    uint32_t class;  ///< fixed
} memrt__tiny_t;

_Static_assert(sizeof(memrt__tiny_t) == MEMRT__TINY_HEADER, "data is at 16 modulo 32");

static inline bool memrt__is_tiny(const void *data)
{
    return ((uintptr_t)data & (MEMRT_ALIGN_MIN - 1)) != 0;
}

static inline memrt__tiny_t *memrt__tiny_of(const void *data)
{
    return (memrt__tiny_t *)((uintptr_t)data - sizeof(memrt__tiny_t));
}

static inline void memrt__tiny_write(memrt__tiny_t *tiny, uint32_t policy, size_t size)
{
    *tiny = (memrt__tiny_t){
        .policy = (uint16_t)policy, .size = (uint16_t)size, .class = memrt__class_of_tiny(size)};
}

/// Whether a request may be met by a tiny block, while nobody watches whom no short way serves.
static inline bool memrt__tiny_fits(const memrt_policy_t *policy, size_t size)
{
    return size - 1 < MEMRT_TINY_MAX && policy->tiny;
}

/// Data of a new tiny block. NULL: no memory for one, nothing counted.
MEMRT__COLD void *memrt__tiny_alloc(memrt_policy_t *policy, size_t size);

/// The same the short way: nothing to tell the account, and a block in the thread's bin. NULL: it
/// is not open.
static inline void *memrt__tiny_alloc_quick(memrt__thread_t *self, memrt__home_t home, size_t size)
{
    memrt__tiny_t *tiny =
        memrt__cache_take_counted(self, home, memrt__class_of_tiny(size), MEMRT__KIND_TINY, size);
    if (MEMRT__UNLIKELY(tiny == NULL)) {
        return NULL;
    }
    memrt__tiny_write(tiny, home.account, size);
    memrt__probe_birth(tiny + 1, size, home.account, MEMRT_KIND_BLOCK);
    return tiny + 1;
}

/// The holder gives the block up.
void memrt__tiny_free(void *data);

/// The last reference to its MemInfo is gone, and so is that.
void memrt__tiny_end(void *data);

/// As memrt__raw_realloc().
void *memrt__tiny_realloc(void *data, size_t size);

/// As memrt__raw_meminfo().
memrt_status_t memrt__tiny_meminfo(void *data, memrt_meminfo_t **out) MEMRT_MUST_CHECK;

#endif
