#include "runtime/alloc/guard/frozen_pages.h"

#include <errno.h>

#include "runtime/alloc/guard/guard_report.h"
#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/config/fault_injection.h"
#include "runtime/observe/sites.h"
#include "runtime/os/fault_signal.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

/// Number of interpreter frames of the freeze in a report.
#define FRAMES 8

static size_t table; /* address of the records; atomic, release; 0: no buffer was frozen yet */

static memrt__frozen_record_t *get_records(void)
{
    return (memrt__frozen_record_t *)memrt__load_acquire(&table);
}

/// Map the records and add the report to the signal handler, under the lock. Repeated calls have no
/// effect. False: out of memory.
static bool start_table(void)
{
    if (get_records() != NULL) {
        return true;
    }
    size_t page = memrt__os_page_size();
    size_t bytes =
        (MEMRT__FROZEN_BUFFERS * sizeof(memrt__frozen_record_t) + page - 1) & ~(page - 1);
    void *records = memrt__fault_is_due() ? NULL : memrt__os_map(bytes, 0, page);
    if (records == NULL) {
        return false;
    }
    memrt__store_release(&table, (size_t)records);
    if (!memrt__fault_signal_install(memrt__frozen_pages_report)) {
        memrt__store_relaxed(&table, 0);
        (void)memrt__os_unmap(records, bytes);
        return false;
    }
    return true;
}

/// Find the record of a buffer, or NULL. Takes no lock: no other thread changes the record of a
/// buffer that the caller ends, and the records of other buffers have other addresses.
static memrt__frozen_record_t *find_record(uintptr_t data)
{
    memrt__frozen_record_t *records = get_records();
    for (size_t i = 0; records != NULL && i < MEMRT__FROZEN_BUFFERS; i++) {
        if (memrt__load_acquire(&records[i].page_bytes) != 0 &&
            memrt__load_relaxed(&records[i].data) == data) {
            return &records[i];
        }
    }
    return NULL;
}

/// Find a record without a buffer, under the lock. NULL: none.
static memrt__frozen_record_t *find_unused_record(void)
{
    memrt__frozen_record_t *records = get_records();
    for (size_t i = 0; i < MEMRT__FROZEN_BUFFERS; i++) {
        if (memrt__load_acquire(&records[i].page_bytes) == 0) {
            return &records[i];
        }
    }
    return NULL;
}

static void *get_pages(const memrt__frozen_record_t *record)
{
    return (void *)memrt__load_relaxed(&record->pages);
}

/// Make the pages of a record writable, and give up the record. False: refused, nothing changed.
static bool end_record(memrt__frozen_record_t *record)
{
    if (memrt__os_allow_writes(get_pages(record), memrt__load_relaxed(&record->page_bytes)) != 0) {
        return false;
    }
    memrt__store_release(&record->page_bytes, 0);
    return true;
}

/// Protect the pages of a record without a freeze. A refusal may leave a part of the pages
/// protected. The record then stays if the system also refuses to make the pages writable.
static memrt_status_t protect_pages(memrt__frozen_record_t *record)
{
    size_t bytes = memrt__load_relaxed(&record->page_bytes);
    int error = memrt__os_forbid_writes(get_pages(record), bytes);
    if (error == 0) {
        record->freezes = 1;
        return MEMRT_OK;
    }
    /* Writable pages need no further split of a mapping, so this call has the memory that it needs.
     */
    (void)end_record(record);
    return error == ENOMEM ? MEMRT_ENOMEM : MEMRT_ENOTSUP;
}

/// Freeze a buffer without a record, under the lock.
static memrt_status_t add_record(const memrt__frozen_range_t *range, uint32_t site,
                                 const memrt__call_stack_t *stack)
{
    memrt__frozen_record_t *record = find_unused_record();
    if (record == NULL) {
        return MEMRT_ELIMIT;
    }
    if (memrt__fault_is_due()) {
        return MEMRT_ENOMEM;
    }
    memrt__store_relaxed(&record->pages, range->pages);
    memrt__store_relaxed(&record->data, range->data);
    record->bytes = range->bytes;
    record->freezes = 0;
    record->frozen_by = memrt__os_thread_id();
    record->site = site;
    record->stack = *stack;
    memrt__store_release(&record->page_bytes, range->page_bytes);
    return protect_pages(record);
}

/// Count a further freeze of a buffer, under the lock.
static memrt_status_t count_freeze(memrt__frozen_record_t *record)
{
    if (record->freezes == 0) { /* left by a refused freeze */
        return protect_pages(record);
    }
    record->freezes++;
    return MEMRT_OK;
}

memrt_status_t memrt__frozen_pages_add(const memrt__frozen_range_t *range)
{
    memrt__call_stack_t stack;
    memrt__call_stack_record(&stack);
    uint32_t site = memrt__site_here(FRAMES, 0);
    memrt_status_t status = MEMRT_ENOMEM;
    MEMRT__ASSERT(range->page_bytes != 0);
    memrt__lock(MEMRT__RANK_QUARANTINE);
    if (start_table()) {
        memrt__frozen_record_t *record = find_record(range->data);
        status = record == NULL ? add_record(range, site, &stack) : count_freeze(record);
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return status;
}

memrt_status_t memrt__frozen_pages_drop(uintptr_t data)
{
    memrt_status_t status = MEMRT_OK;
    memrt__lock(MEMRT__RANK_QUARANTINE);
    memrt__frozen_record_t *record = find_record(data);
    if (record == NULL || record->freezes == 0) {
        status = MEMRT_ENOENT;
    } else if (record->freezes > 1) {
        record->freezes--;
    } else if (!end_record(record)) {
        status = MEMRT_ENOMEM;
    }
    memrt__unlock(MEMRT__RANK_QUARANTINE);
    return status;
}

bool memrt__frozen_pages_end(uintptr_t data)
{
    memrt__frozen_record_t *record = find_record(data);
    return record == NULL || end_record(record);
}

bool memrt__frozen_pages_report(uintptr_t address, const char *access)
{
    const memrt__frozen_record_t *records = get_records();
    for (size_t i = 0; i < MEMRT__FROZEN_BUFFERS; i++) { /* the table exists before the handler */
        size_t bytes = memrt__load_acquire(&records[i].page_bytes);
        if (address - memrt__load_relaxed(&records[i].pages) < bytes) {
            memrt__frozen_record_report(&records[i], address, access);
            return true;
        }
    }
    return false;
}
