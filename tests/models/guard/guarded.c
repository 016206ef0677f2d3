/// Model: guard pages start, and two threads allocate, search and free blocks. Each thread finds
/// its own block, also where an older block with the same address was in the record of the other
/// thread. A search for a block of the other thread finds a complete record or none.

#include "tests/models/guard/guard.h"

#include "runtime/alloc/guard/guard_pages.h"

#undef MEMRT__GUARD_PAGES_BLOCKS
#define MEMRT__GUARD_PAGES_BLOCKS 2u
#undef MEMRT__GUARD_PAGES_FREED
#define MEMRT__GUARD_PAGES_FREED 0u /* a freed block is unmapped at once */

#undef MEMRT__HASH_FACTOR
#define MEMRT__HASH_FACTOR 0                        /* all addresses have the same hint */
#define memset(where, value, bytes) ((void)(where)) /* no model reads the fill around a block */

#include "runtime/alloc/guard/guard_pages.c"

enum { BLOCK = 64 };

static memrt__guard_record_t all[MEMRT__GUARD_PAGES_BLOCKS];
static _Thread_local uintptr_t own_address = 16 * PAGE; /* of each block of the thread */

bool memrt__lock_or_fork(memrt__rank_t rank)
{
    memrt__lock(rank);
    return true;
}

/// Map the records, in plain stores, or an address for a block.
void *memrt__os_map(size_t size, size_t lead, size_t align)
{
    (void)lead, (void)align;
    if (size == 3 * PAGE) {
        return (void *)own_address;
    }
    for (size_t i = 0; i < MEMRT__GUARD_PAGES_BLOCKS; i++) {
        all[i].mapping_bytes = 0;
    }
    return all;
}

bool memrt__os_unmap(void *address, size_t size)
{
    (void)address, (void)size;
    return true;
}

bool memrt__os_forbid_access(void *address, size_t size)
{
    (void)address, (void)size;
    return true;
}

bool memrt__os_discard(void *address, size_t size)
{
    (void)address, (void)size;
    return true;
}

void memrt__guard_record_verify(const memrt__guard_record_t *record, size_t page)
{
    assert(page == PAGE && record->bytes == BLOCK && record->lead == 16);
}

void memrt__guard_record_report(const memrt__guard_record_t *record, uintptr_t address,
                                const char *access)
{
    (void)address, (void)access;
    assert(record->bytes == BLOCK && record->lead == 16);
}

static void use_block(void)
{
    void *block = memrt__guard_pages_alloc(BLOCK, 16, 16);
    if (block != NULL) {
        memrt__guard_pages_free(block);
    }
}

static void *search_and_use_block(void *context)
{
    own_address = 32 * PAGE;
    (void)memrt__guard_pages_report(16 * PAGE, "read");
    use_block();
    return context;
}

int main(void)
{
    pthread_t other = model_thread(search_and_use_block, NULL);
    assert(memrt__guard_pages_start());
    use_block();
    use_block();
    model_join(other);
    return 0;
}
