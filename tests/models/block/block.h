#ifndef MEMRT_TESTS_MODELS_BLOCK_H
#define MEMRT_TESTS_MODELS_BLOCK_H

/// Run the runtime's MemInfo sources in a model with a single block: reference count, lookup and
/// destruction. The live set and the allocator are stubs.

#include "tests/models/model.h"

#include "runtime/alloc/heap/fast_header.h"
#include "runtime/thread/thread.h"

/* The checker refuses an access to several members, so the model reads the members one by one. */
static inline bool model_state_equals(const memrt_meminfo_t *mi, size_t state)
{
    return state == (mi->policy | (size_t)mi->kind << 16 | (size_t)mi->align_log2 << 24 |
                     (size_t)memrt__flags_load_relaxed(&mi->flags) << 32);
}

#define memrt__state_equals model_state_equals

/* The checker finds the first value of memrt__self only if memrt__no_thread comes before it. */
memrt__shard_t memrt__closed_shard;
memrt__thread_t memrt__no_thread = MEMRT__NO_THREAD;
MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self = &memrt__no_thread;

#include "runtime/alloc/heap/size_class.c"
#include "runtime/event/block_observers.c"
#include "runtime/event/live_observer.c"
#include "runtime/event/names_observer.c"
#include "runtime/event/trace_observer.c"
#include "runtime/event/user_observer.c"
#include "runtime/meminfo/block.c"
#include "runtime/meminfo/block_layout.c"
#include "runtime/meminfo/block_memory.c"
#include "runtime/meminfo/block_resize.c"
#include "runtime/meminfo/lookup.c"
#include "runtime/meminfo/meminfo.c"
#include "runtime/meminfo/references.c"

unsigned memrt__slow_path;
size_t memrt__guard_pages_ready;
memrt__options_t memrt__options;
memrt__link_t memrt__link;
size_t memrt__tracking_mean;
memrt_policy_t *memrt__policies[MEMRT__ACCOUNTS];
memrt_policy_t memrt__default_policy;

static memrt_meminfo_t block; /* the data is separate, in `data` */
static size_t data[2];
static unsigned destroyed, frees;

/* A live set with room for one key, whose serial number is fixed. */
#define LIVE_ID 1u
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t live;

static inline void enter_live(void)
{
    pthread_mutex_lock(&live_lock);
    live = (uintptr_t)&block;
    pthread_mutex_unlock(&live_lock);
}

bool memrt__live_remove(uintptr_t key, const memrt__live_details_t *details)
{
    (void)details;
    pthread_mutex_lock(&live_lock);
    assert(live == key);
    live = 0;
    pthread_mutex_unlock(&live_lock);
    return true;
}

/// No block of a model is in an arena.
bool memrt__arena_block_delete(const memrt_meminfo_t *mi, unsigned flags)
{
    (void)mi;
    (void)flags;
    return false;
}

/// Fail the model: no model misuses the API.
_Noreturn void memrt__abort(const char *format, ...)
{
    (void)format;
    assert(0);
    for (;;) {
    }
}

memrt__thread_t *memrt__thread_make(void)
{
    return NULL; /* no per-thread record: all calls take the slow path */
}

bool memrt__live_visit(uintptr_t key, memrt__live_visit_fn visit, void *context)
{
    (void)key;
    pthread_mutex_lock(&live_lock);
    memrt__live_entry_t entry = {.key = live, .id = LIVE_ID};
    if (live != 0) {
        visit(&entry, context);
    }
    pthread_mutex_unlock(&live_lock);
    return entry.key != 0;
}

void memrt__live_visit_all(memrt__live_visit_fn visit, void *context)
{
    memrt__live_visit(0, visit, context);
}

/// Free the memory: count the free, and overwrite the header so that a race is detected.
void memrt__allocator_free(const memrt_allocator_t *allocator, void *ptr, size_t size, size_t align)
{
    (void)allocator, (void)ptr, (void)size, (void)align;
    frees++;
    block = (memrt_meminfo_t){0};
}

/// Destroy the data. The destructor must run after all other accesses to the data.
static void destroy_data(void *where, size_t size, void *info)
{
    (void)size, (void)info;
    destroyed++;
    ((size_t *)where)[0] = ((size_t *)where)[1] = 0;
}

/// Initialise the block in the state after memrt__block_new(), with a count of 0.
static void make_the_block(unsigned flags)
{
    memrt__policies[0] = &memrt__default_policy;
    block = (memrt_meminfo_t){.data = data,
                              .size = sizeof(data),
                              .dtor = destroy_data,
                              .kind = MEMRT_KIND_ADOPTED,
                              .align_log2 = 6,
                              .lead = MEMRT_HEADER_SIZE,
                              .flags = MEMRT__FLAG_MEMINFO | flags};
}

#endif
