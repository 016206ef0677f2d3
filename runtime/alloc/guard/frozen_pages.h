#ifndef MEMRT_ALLOC_GUARD_FROZEN_PAGES_H
#define MEMRT_ALLOC_GUARD_FROZEN_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

/// Frozen pages: pages of live buffers that the system protects against writes, with records that
/// name the buffer, and the place of the freeze, after a refused write.
///
/// Invariant: pages of a buffer are writable again before its memory is freed, so memory in caches
/// is always writable.
///
/// Threads: any; the lock of the quarantines. A forked child has the same protected pages and
/// copies of the records.
#define MEMRT__FROZEN_BUFFERS 4096u

/// Range of whole pages of a buffer.
typedef struct memrt__frozen_range {
    uintptr_t data;    ///< address of the data, which identifies the buffer
    size_t bytes;      ///< bytes of data
    uintptr_t pages;   ///< address of the first page
    size_t page_bytes; ///< bytes of all pages; not 0
} memrt__frozen_range_t;

/// Protect a range, or count a further freeze of the buffer. The pages of a further freeze are the
/// pages of the first.
///
/// Failure: MEMRT_ENOMEM: the system has no memory for the change; MEMRT_ENOTSUP: the system
/// refuses the change of these pages; MEMRT_ELIMIT: all records are in use. The pages are writable.
memrt_status_t memrt__frozen_pages_add(const memrt__frozen_range_t *range) MEMRT_MUST_CHECK;

/// End one freeze. The last thaw makes the pages writable.
///
/// Failure: MEMRT_ENOENT: the buffer is not frozen; MEMRT_ENOMEM: the system refuses the change,
/// and the buffer stays frozen.
memrt_status_t memrt__frozen_pages_drop(uintptr_t data) MEMRT_MUST_CHECK;

/// Make the pages of a buffer without holders writable, whatever the number of freezes. Takes no
/// lock. Returns false if the system refuses the change: the memory must never be used again.
bool memrt__frozen_pages_end(uintptr_t data) MEMRT_MUST_CHECK;

/// Write a report about a write to `address` to standard error, if the address is in protected
/// pages. Returns false for other addresses.
///
/// Threads: for a signal handler: takes no lock and allocates nothing.
bool memrt__frozen_pages_report(uintptr_t address, const char *access);

#endif
