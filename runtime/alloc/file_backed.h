#ifndef MEMRT_ALLOC_FILE_BACKED_H
#define MEMRT_ALLOC_FILE_BACKED_H

#include <stdbool.h>

#include <memrt/allocator/file.h>

/// Allocator whose blocks lie in files without names. Each block has a mapping of its own: private
/// memory for its header, then the pages of a file for its data. The system frees a file after the
/// last process has unmapped the block.
///
/// The private memory must contain all that memrt writes into a block, since a forked child shares
/// the file with its parent: a count of references there would be a count of both processes. So a
/// header has to end where the data begins, and the allocator is of no use below an adaptor or a
/// guard, which put bytes of their own into blocks.

/// See memrt_api_t.allocator_file.
memrt_status_t memrt__file_backed_new(const char *folder, memrt_allocator_t *out) MEMRT_MUST_CHECK;

bool memrt__is_file_backed(const memrt_allocator_t *allocator);

/// Copy the table of an upstream as memrt__allocator_copy() does. Also refuses a file-backed one.
memrt_status_t memrt__upstream_copy(const memrt_allocator_t *from,
                                    memrt_allocator_t *to) MEMRT_MUST_CHECK;

#endif
