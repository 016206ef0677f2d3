#include "runtime/device/memory.h"

#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/failure.h"
#include "runtime/base/size.h"
#include "runtime/device/stream.h"

#define MEMORIES (MEMRT_MEMORY_PINNED + 1)

/// What is in use of one memory. All atomic, relaxed: figures, which publish nothing.
typedef struct account {
    size_t live, peak, alloc, free, failed, lost;
    size_t below; ///< bytes less than SIZE_MAX that may be in use: 0 is no limit
} account_t;

static account_t accounts[MEMORIES];
static size_t policies[MEMORIES]; ///< atomic; a memrt_policy_t *, 0: not made yet

static size_t limit_of(const account_t *account)
{
    return SIZE_MAX - memrt__load_relaxed(&account->below);
}

static void raise_peak(account_t *account, size_t live)
{
    size_t peak = memrt__load_relaxed(&account->peak);
    while (peak < live && !memrt__cas_relaxed(&account->peak, peak, live)) {
        peak = memrt__load_relaxed(&account->peak);
    }
}

/// False: the limit does not allow it. What is counted here is asked of the driver next.
static bool reserve(account_t *account, size_t size)
{
    size_t live, after;
    do {
        live = memrt__load_relaxed(&account->live);
        if (!memrt__size_add(live, size, &after) || after > limit_of(account)) {
            return false;
        }
    } while (!memrt__cas_relaxed(&account->live, live, after));
    return true;
}

static void unreserve(account_t *account, size_t size)
{
    (void)memrt__fetch_add_relaxed(&account->live, (size_t)0 - size);
}

static memrt_status_t take_device(const memrt__context_t *context, memrt__piece_t *piece)
{
    const memrt__driver_t *driver = context->driver;
    memrt__cu_ptr_t ptr = 0;
    /* The stream of a thread is another one where another thread gives the memory back. */
    bool has_order =
        piece->stream != MEMRT_CUDA_STREAM_NONE && piece->stream != MEMRT_CUDA_STREAM_PER_THREAD;
    piece->ordered = has_order && memrt__context_has_pools(context);
    memrt_status_t status = piece->ordered ? MEMRT__CU(driver, mem_alloc_async, &ptr, piece->size,
                                                       memrt__stream_handle(piece->stream))
                                           : MEMRT__CU(driver, mem_alloc, &ptr, piece->size);
    piece->data = (void *)(uintptr_t)ptr;
    return status;
}

static memrt_status_t take_managed(const memrt__context_t *context, memrt__piece_t *piece)
{
    memrt__cu_ptr_t ptr = 0;
    memrt_status_t status = MEMRT__CU(context->driver, mem_alloc_managed, &ptr, piece->size,
                                      MEMRT__CU_MEM_ATTACH_GLOBAL);
    piece->data = (void *)(uintptr_t)ptr;
    return status;
}

static memrt_status_t take_pinned(const memrt__context_t *context, memrt__piece_t *piece)
{
    return MEMRT__CU(context->driver, mem_host_alloc, &piece->data, piece->size,
                     MEMRT__CU_MEMHOSTALLOC_PORTABLE);
}

static memrt_status_t take(const memrt__context_t *context, memrt__piece_t *piece)
{
    static memrt_status_t (*const takes[MEMORIES])(const memrt__context_t *, memrt__piece_t *) = {
        [MEMRT_MEMORY_DEVICE] = take_device,
        [MEMRT_MEMORY_MANAGED] = take_managed,
        [MEMRT_MEMORY_PINNED] = take_pinned,
    };
    piece->ordered = false;
    return memrt__failure_due() ? MEMRT_ENOMEM : takes[piece->memory](context, piece);
}

memrt_status_t memrt__memory_take(const memrt__context_t *context, memrt__piece_t *piece)
{
    account_t *account = &accounts[piece->memory];
    memrt_status_t status = MEMRT_ENOMEM;
    if (reserve(account, piece->size)) {
        status = take(context, piece);
        if (status != MEMRT_OK) {
            unreserve(account, piece->size);
        }
    }
    if (status != MEMRT_OK) {
        (void)memrt__fetch_add_relaxed(&account->failed, 1);
        return status;
    }
    raise_peak(account, memrt__load_relaxed(&account->live));
    (void)memrt__fetch_add_relaxed(&account->alloc, 1);
    return MEMRT_OK;
}

/// These functions of the driver know of no stream. Where that is not to be waited for any more,
/// there is nothing to do but to give the memory back.
static memrt_status_t wait_and_free(const memrt__context_t *context, const memrt__piece_t *piece)
{
    const memrt__driver_t *driver = context->driver;
    if (piece->stream != MEMRT_CUDA_STREAM_NONE && piece->stream != MEMRT_CUDA_STREAM_PER_THREAD) {
        (void)driver->stream_synchronize(memrt__stream_handle(piece->stream));
    }
    return piece->memory == MEMRT_MEMORY_PINNED
               ? MEMRT__CU(driver, mem_free_host, piece->data)
               : MEMRT__CU(driver, mem_free, (memrt__cu_ptr_t)(uintptr_t)piece->data);
}

static memrt_status_t give(const memrt__context_t *context, const memrt__piece_t *piece)
{
    if (context == NULL) {
        return MEMRT_ENOTSUP;
    }
    if (!piece->ordered) {
        return wait_and_free(context, piece);
    }
    return MEMRT__CU(context->driver, mem_free_async, (memrt__cu_ptr_t)(uintptr_t)piece->data,
                     memrt__stream_handle(piece->stream));
}

void memrt__memory_give(const memrt__context_t *context, const memrt__piece_t *piece)
{
    account_t *account = &accounts[piece->memory];
    if (give(context, piece) != MEMRT_OK) {
        (void)memrt__fetch_add_relaxed(&account->lost, 1);
    }
    (void)memrt__fetch_add_relaxed(&account->free, 1);
    unreserve(account, piece->size);
}

static memrt_policy_t *policy_now(memrt_memory_t memory)
{
    return (memrt_policy_t *)memrt__load_acquire(&policies[memory]);
}

/// Its blocks are the headers of buffers, which every policy's are good enough for.
memrt_policy_t *memrt__memory_policy(memrt_memory_t memory)
{
    static const char *const names[MEMORIES] = {
        [MEMRT_MEMORY_HOST] = "cuda foreign",
        [MEMRT_MEMORY_DEVICE] = "cuda device",
        [MEMRT_MEMORY_MANAGED] = "cuda managed",
        [MEMRT_MEMORY_PINNED] = "cuda pinned",
    };
    if (memory >= MEMORIES) {
        return NULL;
    }
    memrt_policy_t *policy = policy_now(memory);
    if (policy != NULL) {
        return policy;
    }
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = names[memory]};
    if (memrt__policy_new(&options, &policy) != MEMRT_OK) {
        return NULL;
    }
    if (!memrt__cas_release(&policies[memory], 0, (size_t)policy)) {
        memrt__policy_release(policy);
    }
    return policy_now(memory);
}

static bool is_memory(memrt_memory_t memory)
{
    return memory > MEMRT_MEMORY_HOST && memory < MEMORIES;
}

memrt_status_t memrt__memory_stats(memrt_memory_t memory, memrt_cuda_stats_t *out)
{
    size_t room = out->struct_size;
    if (!is_memory(memory) || room < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    const account_t *account = &accounts[memory];
    memrt_cuda_stats_t all = {
        .struct_size = room,
        .live = memrt__load_relaxed(&account->live),
        .peak = memrt__load_relaxed(&account->peak),
        .limit = limit_of(account),
        .alloc = memrt__load_relaxed(&account->alloc),
        .free = memrt__load_relaxed(&account->free),
        .failed = memrt__load_relaxed(&account->failed),
        .lost = memrt__load_relaxed(&account->lost),
    };
    memcpy(out, &all, memrt__size_min(room, sizeof(all)));
    return MEMRT_OK;
}

memrt_status_t memrt__memory_set_limit(memrt_memory_t memory, uint64_t limit)
{
    if (!is_memory(memory)) {
        return MEMRT_EINVAL;
    }
    memrt__store_relaxed(&accounts[memory].below, SIZE_MAX - (size_t)limit);
    return MEMRT_OK;
}
