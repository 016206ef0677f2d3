#ifndef MEMRT_OBSERVE_INTERN_TABLE_H
#define MEMRT_OBSERVE_INTERN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/check.h"

/// Intern tables: sets of byte strings that only grow. Equal strings are stored once, under one
/// number. Any thread may look up without a lock, and a found string never moves.

/// Interned string.
typedef struct memrt__interned {
    uint64_t hash;
    uint32_t number;    ///< from 1 on
    uint32_t length;    ///< bytes
    size_t allocations; ///< relaxed adds; for sites: allocations that had no memory for a counter
                        ///< of their thread
    size_t bytes;       ///< relaxed adds; for sites: bytes of such allocations
    uint64_t words[];   ///< the string, padded to whole words
} memrt__interned_t;

#define MEMRT__INTERNED_CHUNK 1024u
#define MEMRT__INTERNED_MAX (MEMRT__INTERNED_CHUNK * 1024u)

/// Set of strings; all zero is the empty set. A set is never destroyed.
typedef struct memrt__interns {
    size_t table; ///< hash table; release when replaced, acquire in look-ups
    size_t count; ///< release when a string is added, acquire in look-ups
    size_t chunks[MEMRT__INTERNED_MAX / MEMRT__INTERNED_CHUNK]; ///< by number; written before
                                                                ///< `count`
} memrt__interns_t;

/// Return the string that equals `length` bytes, and add the string if necessary. Returns NULL when
/// out of memory, when the set has MEMRT__INTERNED_MAX strings, or when a fork keeps the lock away.
/// Fault injection does not count this request, because every caller goes on without a string.
memrt__interned_t *memrt__intern(memrt__interns_t *set, const void *bytes, size_t length);

/// Return the string that equals `length` bytes, or NULL.
memrt__interned_t *memrt__interned_find(const memrt__interns_t *set, const void *bytes,
                                        size_t length);

/// Return the string with a number, or NULL. Any value of `number` is allowed.
memrt__interned_t *memrt__interned_at(const memrt__interns_t *set, uint64_t number);

#if MEMRT_DEBUG
/// Return whether the invariants of a set hold. Takes the lock of rank INTERNED.
bool memrt__interns_is_valid(const memrt__interns_t *set);
#endif

#endif
