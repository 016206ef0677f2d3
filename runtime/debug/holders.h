#ifndef MEMRT_DEBUG_HOLDERS_H
#define MEMRT_DEBUG_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/stats.h>

/// Who holds what: for each key a record of every kind and name under which it is held, with how
/// often. It knows keys, not what they stand for.

/// Note one holder more. False: no memory, nothing changed.
bool memrt__holders_add(uintptr_t key, memrt_holder_kind_t kind, const char *name);

/// Note one holder less. False: there is none of that kind and name.
bool memrt__holders_remove(uintptr_t key, memrt_holder_kind_t kind, const char *name);

/// Forget all holders of a key. Returns how many of them were exports.
size_t memrt__holders_forget(uintptr_t key);

/// Write the first `room` records of a key to `rows`, which are `row_size` bytes apart and get no
/// more than that, oldest first. Returns how many records there are.
size_t memrt__holders_list(uintptr_t key, memrt_holder_t *rows, size_t row_size, size_t room);

/// A kind as reports have it.
static inline const char *memrt__holder_kind_text(memrt_holder_kind_t kind)
{
    return kind == MEMRT_HOLDER_EXPORT ? "export" : "reference";
}

#endif
