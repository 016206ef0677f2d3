#ifndef MEMRT_OBSERVE_NAMED_REFS_H
#define MEMRT_OBSERVE_NAMED_REFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo/holder.h>

#include "runtime/base/check.h"

/// Named references: for each key, one record per kind and name, with a count. A key is an integer
/// that only the caller interprets.

/// Add one reference with a kind and name. Failure: returns false when out of memory; nothing has
/// changed.
bool memrt__named_refs_add(uintptr_t key, memrt_holder_kind_t kind, const char *name);

/// Remove one reference. Returns false if the key has no reference of that kind and name.
bool memrt__named_refs_remove(uintptr_t key, memrt_holder_kind_t kind, const char *name);

/// Remove all references of a key. Returns how many of them were exports.
size_t memrt__named_refs_forget(uintptr_t key);

/// Write the first `room` records of a key to `rows`, oldest first. Rows are `row_size` bytes
/// apart, and at most `row_size` bytes of each row are written. Returns the number of records.
size_t memrt__named_refs_list(uintptr_t key, memrt_holder_t *rows, size_t row_size, size_t room);

/// Return the word for a kind in reports.
static inline const char *memrt__holder_kind_text(memrt_holder_kind_t kind)
{
    return kind == MEMRT_HOLDER_EXPORT ? "export" : "reference";
}

/// In a forked child, where another thread of the parent may have been changing the records: keep
/// the records. Records that were moving to a larger table at the fork are lost.
void memrt__named_refs_repair(void);

#if MEMRT_DEBUG
/// Return whether the invariants of the records hold. Takes the lock of rank NAMED_REFS.
bool memrt__named_refs_is_valid(void);
#endif

#endif
