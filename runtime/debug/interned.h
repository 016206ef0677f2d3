#ifndef MEMRT_DEBUG_INTERNED_H
#define MEMRT_DEBUG_INTERNED_H

#include <stddef.h>
#include <stdint.h>

/// Sets of byte strings that only grow: equal ones are kept once, under one number. Any thread may
/// look up without a lock, and what it found stays where it is.

/// One string of a set.
typedef struct memrt__interned {
    uint64_t hash;
    uint32_t number;  ///< from 1 on
    uint32_t length;  ///< bytes
    size_t births;    ///< relaxed adds; for sites, what births.h had no memory to count
    size_t bytes;     ///< likewise
    uint64_t words[]; ///< the string, whole words
} memrt__interned_t;

#define MEMRT__INTERNED_CHUNK 1024u
#define MEMRT__INTERNED_MAX (MEMRT__INTERNED_CHUNK * 1024u)

/// A set; all zero is an empty one. Never destroyed.
typedef struct memrt__interns {
    size_t table; ///< a table; release by who makes it, acquire by who looks
    size_t count; ///< release by who adds, acquire by who reads
    size_t chunks[MEMRT__INTERNED_MAX / MEMRT__INTERNED_CHUNK]; ///< by number; written before
                                                                ///< `count`
} memrt__interns_t;

/// The one that equals `length` bytes, added if there is none. NULL: no memory, or
/// MEMRT__INTERNED_MAX are there. That is no request that a plan of failures counts: whoever
/// interns goes on without.
memrt__interned_t *memrt__intern(memrt__interns_t *set, const void *bytes, size_t length);

/// The one that equals `length` bytes, or NULL.
memrt__interned_t *memrt__interned_find(const memrt__interns_t *set, const void *bytes,
                                        size_t length);

/// The one of that number, which may be any, or NULL.
memrt__interned_t *memrt__interned_at(const memrt__interns_t *set, uint64_t number);

#endif
