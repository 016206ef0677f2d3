#include "runtime/cuda/pinned_cache.h"

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"

#define SMALLEST ((size_t)4096) ///< the driver pins whole pages
#define LARGEST ((size_t)1 << 30)
#define BLOCKS_MAX 256

typedef struct block {
    void *data;
    size_t size;
} block_t;

/// Cached blocks, in the order of their frees. Under MEMRT__RANK_LARGE_CACHE.
static block_t blocks[BLOCKS_MAX];
static size_t count;
static size_t bytes; ///< atomic, so that reads need no lock

size_t memrt__pinned_cache_round(size_t size)
{
    if (!memrt__options.cache || size > LARGEST) {
        return size;
    }
    if (size <= SMALLEST) {
        return SMALLEST;
    }
    /* Four sizes between a power of two and the next: at most a fifth of a block is unused. */
    size_t step = (size_t)1 << (memrt__floor_log2(size - 1) - 2);
    return (size + step - 1) / step * step;
}

/// Remove a block from the list, and return its address.
static void *remove_block(size_t index)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_LARGE_CACHE);
    MEMRT__ASSERT(index < count);
    void *data = blocks[index].data;
    memrt__store_relaxed(&bytes, bytes - blocks[index].size);
    count--;
    for (size_t i = index; i < count; i++) {
        blocks[i] = blocks[i + 1];
    }
    return data;
}

void *memrt__pinned_cache_take(size_t size)
{
    void *data = NULL;
    if (memrt__pinned_cache_bytes() == 0) {
        return NULL;
    }
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    for (size_t i = count; i > 0 && data == NULL; i--) { /* the last block is in the caches */
        if (blocks[i - 1].size == size) {
            data = remove_block(i - 1);
        }
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return data;
}

/// Remove the block that was freed first. Returns false without a block.
static bool remove_oldest(block_t *out)
{
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    bool found = count != 0;
    if (found) {
        out->size = blocks[0].size;
        out->data = remove_block(0);
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return found;
}

/// Free the oldest block by a call of the driver, without the lock. Returns the freed bytes.
static size_t free_oldest(const memrt__context_t *context, bool *found)
{
    block_t block;
    *found = remove_oldest(&block);
    bool freed = *found && MEMRT__CU(context->driver, mem_free_host, block.data) == MEMRT_OK;
    return freed ? block.size : 0;
}

/// Add a block to the list. Returns false without room.
static bool add_block(void *data, size_t size, size_t most)
{
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    bool fits = count < BLOCKS_MAX && bytes + size <= most;
    if (fits) {
        blocks[count++] = (block_t){data, size};
        memrt__store_relaxed(&bytes, bytes + size);
    }
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return fits;
}

bool memrt__pinned_cache_add(const memrt__context_t *context, void *data, size_t size, size_t most)
{
    MEMRT__ASSERT(data != NULL);
    bool found;
    if (!memrt__options.cache || size > LARGEST || size > most) {
        return false;
    }
    while (!add_block(data, size, most)) {
        (void)free_oldest(context, &found);
    }
    return true;
}

size_t memrt__pinned_cache_bytes(void)
{
    return memrt__load_relaxed(&bytes);
}

size_t memrt__pinned_cache_empty(const memrt__context_t *context)
{
    size_t freed = 0;
    bool found;
    do {
        freed += free_oldest(context, &found);
    } while (found);
    return freed;
}

#if MEMRT_DEBUG

bool memrt__pinned_cache_is_valid(void)
{
    size_t sum = 0;
    memrt__lock(MEMRT__RANK_LARGE_CACHE);
    for (size_t i = 0; i < count; i++) {
        sum += blocks[i].size;
    }
    bool valid = MEMRT__HOLDS(count <= BLOCKS_MAX) && MEMRT__HOLDS(sum == bytes);
    memrt__unlock(MEMRT__RANK_LARGE_CACHE);
    return valid;
}

#endif
