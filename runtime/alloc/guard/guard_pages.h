#ifndef MEMRT_ALLOC_GUARD_GUARD_PAGES_H
#define MEMRT_ALLOC_GUARD_GUARD_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#include "runtime/base/compiler.h"

/// Guard pages: blocks in mappings of their own, between two pages without access.
///
///     | no access | filled | block, `bytes` bytes | filled, less than `align` bytes | no access |
///                          ^ aligned
///
/// The system stops an access beyond the filled bytes at once. A free verifies the filled bytes,
/// and aborts with both call stacks on damage. A freed block loses access and its memory, and keeps
/// its addresses until newer blocks need the record. A report names a block by its record, which
/// stays readable.
///
/// Limits: MEMRT__GUARD_PAGES_BLOCKS records for live and freed blocks together, and
/// MEMRT__GUARD_PAGES_FREED bytes of addresses of freed blocks. A block splits the mappings of the
/// process into at most two more parts, so the number of records is far below the system's limit
/// vm.max_map_count (65,530).
///
/// Threads: any; the lock of the quarantines. A forked child has copies of all blocks and records.
#define MEMRT__GUARD_PAGES_BLOCKS 4096u
#define MEMRT__GUARD_PAGES_FREED ((size_t)1 << 30)

/// Mean distance in bytes of guarded blocks below which each allocation takes the slow path.
#define MEMRT__GUARD_PAGES_CLOSE ((size_t)1 << 20)

static inline bool memrt__guard_pages_are_close(size_t mean)
{
    return mean - 1 < MEMRT__GUARD_PAGES_CLOSE - 1;
}

/// Whether guard pages are started. Atomic, release; the value never returns to 0.
extern MEMRT__HIDDEN size_t memrt__guard_pages_ready;

/// Map the records and install the signal handler. Repeated calls have no effect. Failure: returns
/// false when out of memory.
bool memrt__guard_pages_start(void) MEMRT_MUST_CHECK;

/// Allocate a zeroed block. The user's data begins `lead` bytes after the start, for reports.
///
/// Failure: returns NULL before memrt__guard_pages_start(), for an alignment above the page size,
/// without a free record, without memory, or while a fork takes long. The caller then allocates
/// an ordinary block.
void *memrt__guard_pages_alloc(size_t bytes, size_t lead, size_t align);

/// Free a block. Aborts with a message if the bytes around the block were written to.
void memrt__guard_pages_free(void *start);

/// Find the start of the live block that contains `address`. Takes no lock. False: no guarded block
/// contains the address. While other threads allocate and free, the result may be out of date.
bool memrt__guard_pages_search(uintptr_t address, uintptr_t *start);

/// Return the number of blocks that were allocated so far.
size_t memrt__guard_pages_made(void);

/// Write a report about an access to `address` to standard error, if the address belongs to a
/// guarded block, freed blocks included. Returns false for other addresses, and between the guard
/// pages of a live block.
///
/// Threads: for a signal handler: takes no lock and allocates nothing. Concurrent changes of the
/// records may mix the report of two blocks.
bool memrt__guard_pages_report(uintptr_t address, const char *access);

#endif
