#ifndef MEMRT_OBSERVE_INTERN_TABLE_H
#define MEMRT_OBSERVE_INTERN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/check.h"

/// Intern table: a set of byte strings that only grows. Equal strings are stored once, under one
/// number, from 1 on without gaps. The lock of rank INTERNED guards additions; look-ups take no
/// lock.
///
/// Invariant: a string that a look-up returns is complete, and never moves, changes or ends.

/// Interned string. Counts and bytes are for the user of the table.
typedef struct memrt__interned {
    uint64_t hash;
    uint32_t number;    ///< from 1 on
    uint32_t length;    ///< bytes
    size_t allocations; ///< relaxed adds; of a site: allocations that are in no counter of a
                        ///< thread, because there was no memory for the counter
    size_t bytes;       ///< relaxed adds; of a site: bytes of these allocations
    uint64_t words[];   ///< the string, padded to whole words
} memrt__interned_t;

/// Strings in a chunk, and maximum number of strings in a set.
#define MEMRT__INTERNED_CHUNK 1024u
#define MEMRT__INTERNED_MAX (MEMRT__INTERNED_CHUNK * 1024u)

/// Set of strings; all zero is the empty set. A set is never destroyed.
typedef struct memrt__interns {
    size_t table; ///< address of the hash table; release when replaced, acquire in look-ups
    size_t count; ///< number of strings; release when a string is added, acquire in look-ups
    size_t chunks[MEMRT__INTERNED_MAX / MEMRT__INTERNED_CHUNK]; ///< addresses of arrays of strings
                                                                ///< by number; written before
                                                                ///< `count`
} memrt__interns_t;

/// Return the string that equals `length` bytes, and add the string if necessary. Fault injection
/// does not count the memory requests, because every caller continues without a string.
///
/// Failure: returns NULL when out of memory, when the set has MEMRT__INTERNED_MAX strings, and
/// while a fork takes long.
memrt__interned_t *memrt__intern(memrt__interns_t *set, const void *bytes, size_t length);

/// Return the string that equals `length` bytes, or NULL.
memrt__interned_t *memrt__interned_find(const memrt__interns_t *set, const void *bytes,
                                        size_t length);

/// Return the string with a number, or NULL. Any value of `number` is allowed.
memrt__interned_t *memrt__interned_at(const memrt__interns_t *set, uint64_t number);

/// Return the memory of all sets in bytes.
size_t memrt__interned_bytes(void);

#if MEMRT_DEBUG
/// Return whether the invariants of a set hold. Takes the lock of rank INTERNED.
bool memrt__interns_is_valid(const memrt__interns_t *set);
#endif

#endif
