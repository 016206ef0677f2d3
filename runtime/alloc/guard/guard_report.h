#ifndef MEMRT_ALLOC_GUARD_GUARD_REPORT_H
#define MEMRT_ALLOC_GUARD_GUARD_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/observe/site.h>

#include "runtime/observe/call_stack.h"

/// Records of blocks between guard pages and of frozen buffers, and reports about them.

/// Threads search the records of each other, so the words that a search reads are atomic.
typedef struct memrt__guard_record {
    size_t mapping;                 ///< atomic; address of the first page without access
    size_t mapping_bytes;           ///< atomic, release; 0: the record has no block
    size_t start;                   ///< atomic; address of the block
    size_t bytes;                   ///< bytes of the block
    size_t lead;                    ///< bytes from the start to the data of the user
    size_t allocated_by;            ///< id of a thread
    size_t freed_by;                ///< atomic; id of a thread; 0: the block is live
    uint32_t alloc_site, free_site; ///< sites with frames of an interpreter; 0: unknown
    memrt__call_stack_t alloc_stack, free_stack;
} memrt__guard_record_t;

/// Record of the protected pages of a buffer. Other threads and a signal handler search the
/// records, so the words that a search reads are atomic.
typedef struct memrt__frozen_record {
    size_t pages;      ///< atomic; address of the first protected page
    size_t page_bytes; ///< atomic, release; bytes of the protected pages; 0: no buffer
    size_t data;       ///< atomic; address of the data
    size_t bytes;      ///< bytes of data
    size_t freezes;    ///< under the lock of the table: freezes without a thaw
    size_t frozen_by;  ///< id of a thread
    uint32_t site;     ///< site of the first freeze, with frames of an interpreter; 0: unknown
    memrt__call_stack_t stack;
} memrt__frozen_record_t;

/// Abort with a message if a filled byte around a live block was written to.
void memrt__guard_record_verify(const memrt__guard_record_t *record, size_t page);

/// Write a report about an access to `address` to standard error: address and direction of the
/// access, offset, size and address of the data, threads and call stacks, of an interpreter where
/// known. Native frames are addresses with the file that the system maps there, because the symbol
/// tables of the loader need a lock.
///
/// Threads: for a signal handler.
void memrt__guard_record_report(const memrt__guard_record_t *record, uintptr_t address,
                                const char *access);

/// Write a report about a write to protected pages, as memrt__guard_record_report().
void memrt__frozen_record_report(const memrt__frozen_record_t *record, uintptr_t address,
                                 const char *access);

#endif
