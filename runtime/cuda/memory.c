#include "runtime/cuda/memory.h"

#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/cuda/pinned_cache.h"
#include "runtime/cuda/stream.h"

#define MEMORIES (MEMRT_MEMORY_PINNED + 1)
#define CACHE_AT_LEAST ((size_t)64 << 20) ///< pinned bytes that any process may cache

/// Statistics of one kind of memory. All members are atomic and relaxed, because they publish
/// nothing.
typedef struct account {
    size_t live, peak, alloc, free, failed, lost;
    size_t inverted_limit; ///< SIZE_MAX minus the limit in bytes; 0: no limit
} account_t;

static account_t accounts[MEMORIES];
static size_t policies[MEMORIES]; ///< atomic; a memrt_policy_t *, 0: not created yet

static size_t get_limit(const account_t *account)
{
    return SIZE_MAX - memrt__load_relaxed(&account->inverted_limit);
}

static void raise_peak(account_t *account, size_t live)
{
    size_t peak = memrt__load_relaxed(&account->peak);
    while (peak < live && !memrt__cas_relaxed(&account->peak, peak, live)) {
        peak = memrt__load_relaxed(&account->peak);
    }
}

/// Count `size` bytes as live, before the request to the driver. Returns false if the
/// limit would be exceeded.
static bool reserve_bytes(account_t *account, size_t size)
{
    size_t live, after;
    do {
        live = memrt__load_relaxed(&account->live);
        if (!memrt__size_add(live, size, &after) || after > get_limit(account)) {
            return false;
        }
    } while (!memrt__cas_relaxed(&account->live, live, after));
    return true;
}

static void unreserve_bytes(account_t *account, size_t size)
{
    MEMRT__ASSERT(memrt__load_relaxed(&account->live) >= size);
    (void)memrt__fetch_add_relaxed(&account->live, (size_t)0 - size);
}

/// Return whether a stream orders the use of the memory. A per-thread stream would be another
/// stream in the thread that frees the memory.
static bool has_stream(const memrt__piece_t *piece)
{
    return piece->stream != MEMRT_CUDA_STREAM_NONE && piece->stream != MEMRT_CUDA_STREAM_PER_THREAD;
}

static memrt_status_t alloc_device_memory(const memrt__context_t *context, memrt__piece_t *piece)
{
    const memrt__driver_t *driver = context->driver;
    memrt__cu_ptr_t ptr = 0;
    piece->ordered = has_stream(piece) && memrt__context_has_pools(context);
    memrt_status_t status = piece->ordered ? MEMRT__CU(driver, mem_alloc_async, &ptr, piece->size,
                                                       memrt__stream_handle(piece->stream))
                                           : MEMRT__CU(driver, mem_alloc, &ptr, piece->size);
    piece->data = (void *)(uintptr_t)ptr;
    return status;
}

static memrt_status_t alloc_managed_memory(const memrt__context_t *context, memrt__piece_t *piece)
{
    memrt__cu_ptr_t ptr = 0;
    memrt_status_t status = MEMRT__CU(context->driver, mem_alloc_managed, &ptr, piece->size,
                                      MEMRT__CU_MEM_ATTACH_GLOBAL);
    piece->data = (void *)(uintptr_t)ptr;
    return status;
}

static memrt_status_t alloc_pinned_memory(const memrt__context_t *context, memrt__piece_t *piece)
{
    size_t size = memrt__pinned_cache_round(piece->size);
    piece->data = memrt__pinned_cache_take(size);
    if (piece->data != NULL) {
        return MEMRT_OK;
    }
    memrt_status_t status = MEMRT_ENOMEM;
    do {
        status = MEMRT__CU(context->driver, mem_host_alloc, &piece->data, size,
                           MEMRT__CU_MEMHOSTALLOC_PORTABLE);
    } while (status == MEMRT_ENOMEM && memrt__pinned_cache_empty(context) != 0);
    return status;
}

static memrt_status_t alloc_memory(const memrt__context_t *context, memrt__piece_t *piece)
{
    static memrt_status_t (*const takes[MEMORIES])(const memrt__context_t *, memrt__piece_t *) = {
        [MEMRT_MEMORY_DEVICE] = alloc_device_memory,
        [MEMRT_MEMORY_MANAGED] = alloc_managed_memory,
        [MEMRT_MEMORY_PINNED] = alloc_pinned_memory,
    };
    piece->ordered = false;
    return memrt__fault_is_due_on_device(piece->size) ? MEMRT_ENOMEM
                                                      : takes[piece->memory](context, piece);
}

memrt_status_t memrt__memory_take(const memrt__context_t *context, memrt__piece_t *piece)
{
    MEMRT__ASSERT(piece->memory > MEMRT_MEMORY_HOST && piece->memory < MEMORIES);
    MEMRT__ASSERT(piece->size != 0);
    account_t *account = &accounts[piece->memory];
    memrt_status_t status = MEMRT_ENOMEM;
    if (reserve_bytes(account, piece->size)) {
        status = alloc_memory(context, piece);
        if (status != MEMRT_OK) {
            unreserve_bytes(account, piece->size);
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

/// Return the maximum of cached bytes of pinned memory: the maximum of bytes in use at once, and a
/// quarter for the rounding of sizes.
static size_t compute_cache_limit(const account_t *account)
{
    size_t peak = memrt__size_max(memrt__load_relaxed(&account->peak), CACHE_AT_LEAST);
    return memrt__size_min(peak + peak / 4, get_limit(account));
}

/// Wait for all work that may use the memory, then add the memory to the cache or free it. The
/// driver's own function for freeing waits for all devices, too.
static memrt_status_t free_pinned_memory(const memrt__context_t *context,
                                         const memrt__piece_t *piece)
{
    const memrt__driver_t *driver = context->driver;
    bool done =
        has_stream(piece)
            ? driver->stream_synchronize(memrt__stream_handle(piece->stream)) == MEMRT__CU_SUCCESS
            : memrt__context_wait_for_all(driver);
    size_t size = memrt__pinned_cache_round(piece->size);
    size_t most = compute_cache_limit(&accounts[MEMRT_MEMORY_PINNED]);
    if (done && memrt__pinned_cache_add(context, piece->data, size, most)) {
        return MEMRT_OK;
    }
    return MEMRT__CU(driver, mem_free_host, piece->data);
}

/// Wait for the stream, then free device or managed memory with the function that takes no stream.
/// An error of the wait is ignored: freeing the memory is the only option left.
static memrt_status_t wait_and_free_memory(const memrt__context_t *context,
                                           const memrt__piece_t *piece)
{
    const memrt__driver_t *driver = context->driver;
    if (has_stream(piece)) {
        (void)driver->stream_synchronize(memrt__stream_handle(piece->stream));
    }
    return MEMRT__CU(driver, mem_free, (memrt__cu_ptr_t)(uintptr_t)piece->data);
}

static memrt_status_t free_memory(const memrt__context_t *context, const memrt__piece_t *piece)
{
    if (context == NULL) {
        return MEMRT_ENOTSUP;
    }
    MEMRT__ASSERT(!piece->ordered || piece->memory == MEMRT_MEMORY_DEVICE);
    if (piece->memory == MEMRT_MEMORY_PINNED) {
        return free_pinned_memory(context, piece);
    }
    if (!piece->ordered) {
        return wait_and_free_memory(context, piece);
    }
    return MEMRT__CU(context->driver, mem_free_async, (memrt__cu_ptr_t)(uintptr_t)piece->data,
                     memrt__stream_handle(piece->stream));
}

void memrt__memory_give(const memrt__context_t *context, const memrt__piece_t *piece)
{
    MEMRT__ASSERT(piece->memory > MEMRT_MEMORY_HOST && piece->memory < MEMORIES);
    account_t *account = &accounts[piece->memory];
    if (free_memory(context, piece) != MEMRT_OK) {
        (void)memrt__fetch_add_relaxed(&account->lost, 1);
    }
    (void)memrt__fetch_add_relaxed(&account->free, 1);
    unreserve_bytes(account, piece->size);
}

size_t memrt__memory_release_unused(void)
{
    memrt__context_t context;
    if (memrt__pinned_cache_bytes() == 0 ||
        memrt__context_enter(MEMRT_CUDA_DEVICE_CURRENT, &context) != MEMRT_OK) {
        return 0;
    }
    size_t bytes = memrt__pinned_cache_empty(&context);
    memrt__context_leave(&context);
    return bytes;
}

static memrt_policy_t *get_policy(memrt_memory_t memory)
{
    return (memrt_policy_t *)memrt__load_acquire(&policies[memory]);
}

/// Return the policy of a kind of memory. The policy allocates only the MemInfo headers of buffers,
/// so its options are the defaults.
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
    memrt_policy_t *policy = get_policy(memory);
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
    return get_policy(memory);
}

static bool is_cuda_memory(memrt_memory_t memory)
{
    return memory > MEMRT_MEMORY_HOST && memory < MEMORIES;
}

memrt_status_t memrt__memory_stats(memrt_memory_t memory, memrt_cuda_stats_t *out)
{
    size_t room = out->struct_size;
    if (!is_cuda_memory(memory) || room < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    const account_t *account = &accounts[memory];
    memrt_cuda_stats_t all = {
        .struct_size = room,
        .live = memrt__load_relaxed(&account->live),
        .peak = memrt__load_relaxed(&account->peak),
        .limit = get_limit(account),
        .alloc = memrt__load_relaxed(&account->alloc),
        .free = memrt__load_relaxed(&account->free),
        .failed = memrt__load_relaxed(&account->failed),
        .lost = memrt__load_relaxed(&account->lost),
        .cached = memory == MEMRT_MEMORY_PINNED ? memrt__pinned_cache_bytes() : 0,
    };
    memcpy(out, &all, memrt__size_min(room, sizeof(all)));
    return MEMRT_OK;
}

memrt_status_t memrt__memory_set_limit(memrt_memory_t memory, uint64_t limit)
{
    if (!is_cuda_memory(memory)) {
        return MEMRT_EINVAL;
    }
    memrt__store_relaxed(&accounts[memory].inverted_limit, SIZE_MAX - (size_t)limit);
    return MEMRT_OK;
}
