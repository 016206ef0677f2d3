#ifndef MEMRT_MEMINFO_BLOCK_CHECK_H
#define MEMRT_MEMINFO_BLOCK_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include <memrt/meminfo.h>

/// Checks of blocks for checking mode: values in the header, and redzones around the block.

/// Return whether the header of a listed block has only valid values. A write before the start of
/// the data overwrites the last words of the header first. The data pointer of a block without
/// references is not checked: in a MemInfo with a deferred destructor, the word is a link.
bool memrt__block_is_sound(const memrt_meminfo_t *mi);

/// Return whether a write outside of a guarded block, or a size other than in its header, is found.
/// The header must be sound. `text` gets one sentence that describes the fault. False also for a
/// block without redzones.
bool memrt__block_fault(const memrt_meminfo_t *mi, char *text, size_t length);

/// Write the call stack that allocated a guarded block with a sound header to `text`. Each line
/// starts with a newline. Writes "" when the call stack is not known.
void memrt__block_explain(const memrt_meminfo_t *mi, char *text, size_t length);

#endif
