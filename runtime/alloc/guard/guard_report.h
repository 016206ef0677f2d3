#ifndef MEMRT_ALLOC_GUARD_GUARD_REPORT_H
#define MEMRT_ALLOC_GUARD_GUARD_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/observe/site.h>

#include "runtime/observe/call_stack.h"

/// Record of a block between guard pages, and reports about the block.

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

/// See memrt_api_t.set_write_frames.
void memrt__guard_record_set_write_frames(memrt_write_frames_fn write);

#endif
