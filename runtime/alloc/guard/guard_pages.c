#include "runtime/alloc/guard/guard_pages.h"

#include <string.h>

#include <memrt/allocator.h>

#include "runtime/alloc/guard/guard_report.h"
#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/observe/tracking.h"
#include "runtime/os/fault_signal.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

#define NONE UINT32_MAX

size_t memrt__guard_pages_ready;

/// List of records by index: first in, first out.
typedef struct record_list {
    uint32_t first, last;
} record_list_t;

static memrt__guard_record_t *records;                   /* fixed while ready */
static uint32_t next_records[MEMRT__GUARD_PAGES_BLOCKS]; /* under the lock: next in the list */
static record_list_t unused = {NONE, NONE}, freed = {NONE, NONE}; /* under the lock */
static size_t freed_bytes;                                        /* under the lock */
static size_t made;                                               /* any thread, relaxed add */

static void push_record(record_list_t *list, uint32_t index)
{
    next_records[index] = NONE;
    if (list->first == NONE) {
        list->first = index;
    } else {
        next_records[list->last] = index;
    }
    list->last = index;
}

static uint32_t pop_record(record_list_t *list)
{
    uint32_t index = list->first;
    if (index != NONE) {
        list->first = next_records[index];
    }
    return index;
}

static bool is_ready(void)
{
    return memrt__load_acquire(&memrt__guard_pages_ready) != 0;
}

/// Start guard pages, under the lock.
static bool start_pages(void)
{
    size_t page = memrt__os_page_size();
    size_t bytes = (MEMRT__GUARD_PAGES_BLOCKS * sizeof(*records) + page - 1) & ~(page - 1);
    records = memrt__fault_is_due() ? NULL : memrt__os_map(bytes, 0, page);
    if (records == NULL) {
        return false;
    }
    if (!memrt__fault_signal_install(memrt__guard_pages_report)) {
        (void)memrt__os_unmap(records, bytes);
        return false;
    }
    for (uint32_t i = 0; i < MEMRT__GUARD_PAGES_BLOCKS; i++) {
        push_record(&unused, i);
    }
    memrt__store_release(&memrt__guard_pages_ready, 1);
    return true;
}

bool memrt__guard_pages_start(void)
{
    memrt__lock(MEMRT__RANK_QUARANTINE);
    bool started = is_ready() || start_pages();
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return started;
}

/// Give the addresses of a freed block back to the system. If refused, the addresses are lost.
static void unmap_block(memrt__guard_record_t *record)
{
    uintptr_t mapping = record->mapping;
    size_t bytes = record->mapping_bytes;
    memrt__store_relaxed(&record->mapping_bytes, 0); /* reports know the block no more */
    (void)memrt__os_unmap((void *)mapping, bytes);
}

/// Take a record without a block, or the record of the block that was freed first. NULL: none.
static memrt__guard_record_t *take_record(void)
{
    if (!memrt__lock_or_fork(MEMRT__RANK_QUARANTINE)) {
        return NULL;
    }
    uint32_t index = pop_record(&unused);
    if (index == NONE) {
        index = pop_record(&freed);
        freed_bytes -= index == NONE ? 0 : records[index].mapping_bytes;
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    if (index == NONE) {
        return NULL;
    }
    if (records[index].mapping_bytes != 0) {
        unmap_block(&records[index]);
    }
    return &records[index];
}

/// Return a record without a block. While a fork takes long, the record is lost.
static void give_record(const memrt__guard_record_t *record)
{
    if (memrt__lock_or_fork(MEMRT__RANK_QUARANTINE)) {
        push_record(&unused, (uint32_t)(record - records));
        memrt__unlock(MEMRT__RANK_QUARANTINE);
    }
}

/// Map pages for `inner` bytes between two pages without access. NULL: the system refuses.
static char *map_block(size_t inner)
{
    size_t page = memrt__os_page_size();
    char *mapping = memrt__os_map(inner + 2 * page, 0, page);
    if (mapping != NULL && (!memrt__os_forbid_access(mapping, page) ||
                            !memrt__os_forbid_access(mapping + page + inner, page))) {
        (void)memrt__os_unmap(mapping, inner + 2 * page);
        return NULL;
    }
    return mapping;
}

/// Return the site of the calling thread if allocations are tracked; else 0, to save the time.
static uint32_t get_site(void)
{
    return memrt__tracking_is_on() ? memrt__tracking_site() : 0;
}

/// Number of the record of the last block whose address has the position of the entry; relaxed. A
/// search by address alone would read all records at each free.
static size_t hints[MEMRT__GUARD_PAGES_BLOCKS];

static size_t *get_hint(uintptr_t start)
{
    uint64_t hash = (uint64_t)start / MEMRT_HEADER_SIZE * MEMRT__HASH_FACTOR;
    return &hints[hash >> 32 & (MEMRT__GUARD_PAGES_BLOCKS - 1)];
}

/// Fill in the record of a new block at the end of `inner` bytes of a mapping.
static char *place_block(memrt__guard_record_t *record, char *mapping, size_t inner, size_t bytes,
                         size_t lead, size_t align)
{
    size_t page = memrt__os_page_size();
    char *base = mapping + page;
    size_t before = (inner - bytes) & ~(align - 1);
    memrt__store_relaxed(&record->start, (uintptr_t)base + before);
    record->bytes = bytes;
    record->lead = lead;
    memrt__store_relaxed(&record->mapping, (uintptr_t)mapping);
    memrt__store_relaxed(&record->freed_by, 0);
    record->alloc_site = get_site();
    record->allocated_by = memrt__os_thread_id();
    memrt__call_stack_record(&record->alloc_stack);
    memset(base, MEMRT_POISON_REDZONE, before);
    memset(base + before + bytes, MEMRT_POISON_REDZONE, inner - before - bytes);
    memrt__store_relaxed(get_hint(record->start), (size_t)(record - records));
    memrt__store_release(&record->mapping_bytes, inner + 2 * page);
    return base + before;
}

void *memrt__guard_pages_alloc(size_t bytes, size_t lead, size_t align)
{
    size_t page = memrt__os_page_size(), inner;
    if (!is_ready() || align > page || !memrt__size_add(bytes, 3 * page - 1, &inner)) {
        return NULL;
    }
    inner = (inner & ~(page - 1)) - 2 * page;
    memrt__guard_record_t *record = take_record();
    if (record == NULL) {
        return NULL;
    }
    char *mapping = map_block(inner);
    if (mapping == NULL) {
        give_record(record);
        return NULL;
    }
    memrt__fetch_add_relaxed(&made, 1);
    return place_block(record, mapping, inner, bytes, lead, align);
}

/// Find the record of an address in a mapping, or NULL. Takes no lock.
static memrt__guard_record_t *find_record(uintptr_t address)
{
    for (uint32_t i = 0; is_ready() && i < MEMRT__GUARD_PAGES_BLOCKS; i++) {
        size_t bytes = memrt__load_acquire(&records[i].mapping_bytes);
        if (address - memrt__load_relaxed(&records[i].mapping) < bytes) {
            return &records[i];
        }
    }
    return NULL;
}

/// Find the record of a block by its address. The bytes of a record are read before its start, so
/// that a record which another thread fills in has the new start.
static memrt__guard_record_t *find_block(uintptr_t start)
{
    memrt__guard_record_t *record = &records[memrt__load_relaxed(get_hint(start))];
    bool found = memrt__load_acquire(&record->mapping_bytes) != 0 &&
                 memrt__load_relaxed(&record->start) == start;
    return found ? record : find_record(start);
}

/// Add a block without access to the freed blocks, and unmap the oldest if there are too many.
static void keep_freed_block(memrt__guard_record_t *record)
{
    uint32_t evicted = NONE;
    size_t bytes = record->mapping_bytes;
    if (!memrt__lock_or_fork(MEMRT__RANK_QUARANTINE)) {
        return; /* the block stays without access for the rest of the process */
    }
    push_record(&freed, (uint32_t)(record - records));
    freed_bytes += bytes;
    if (freed_bytes > MEMRT__GUARD_PAGES_FREED) {
        evicted = pop_record(&freed);
        freed_bytes -= records[evicted].mapping_bytes;
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    if (evicted != NONE) {
        unmap_block(&records[evicted]);
        give_record(&records[evicted]);
    }
}

void memrt__guard_pages_free(void *start)
{
    memrt__guard_record_t *record = find_block((uintptr_t)start);
    size_t page = memrt__os_page_size();
    MEMRT__ASSERT(record != NULL && record->start == (uintptr_t)start && record->freed_by == 0);
    memrt__guard_record_verify(record, page);
    memrt__call_stack_record(&record->free_stack);
    record->free_site = get_site();
    memrt__store_relaxed(&record->freed_by, memrt__os_thread_id());
    void *inner = (void *)(record->mapping + page);
    size_t bytes = record->mapping_bytes - 2 * page;
    (void)memrt__os_discard(inner, bytes); /* if refused, the memory stays until the unmap */
    if (memrt__os_forbid_access(inner, bytes)) {
        keep_freed_block(record);
    } else {
        unmap_block(record);
        give_record(record);
    }
}

bool memrt__guard_pages_search(uintptr_t address, uintptr_t *start)
{
    const memrt__guard_record_t *record = find_record(address);
    if (record == NULL || memrt__load_relaxed(&record->freed_by) != 0) {
        return false;
    }
    *start = memrt__load_relaxed(&record->start);
    return true;
}

size_t memrt__guard_pages_made(void)
{
    return memrt__load_relaxed(&made);
}

/// Return whether an address is between the guard pages of a live block, where only frozen pages
/// refuse an access.
static bool is_accessible(const memrt__guard_record_t *record, uintptr_t address)
{
    size_t page = memrt__os_page_size();
    return memrt__load_relaxed(&record->freed_by) == 0 &&
           address - memrt__load_relaxed(&record->mapping) - page <
               memrt__load_relaxed(&record->mapping_bytes) - 2 * page;
}

bool memrt__guard_pages_report(uintptr_t address, const char *access)
{
    const memrt__guard_record_t *record = find_record(address);
    if (record == NULL || is_accessible(record, address)) {
        return false;
    }
    memrt__guard_record_report(record, address, access);
    return true;
}
