#include "runtime/observe/intern_table.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/os/lock.h"

#define FIRST_SLOTS 1024u

static size_t bytes_of_all; /* written under the lock of rank INTERNED; memory of all sets */

/// Allocate zeroed memory for a set. Failure: returns NULL when out of memory.
static void *alloc_zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory != NULL) {
        memrt__own_add(&bytes_of_all, bytes);
    }
    return memory;
}

/// Hash table with open addressing and linear probing. At most half of the slots are taken, and a
/// taken slot stays taken, so each search ends at an empty slot. A full table is replaced by a
/// table of twice the size. Old tables are never freed, because other threads may search them.
typedef struct table {
    struct table *older; ///< previous table; keeps the memory reachable for leak checkers
    size_t mask;         ///< number of slots, a power of two, minus 1
    size_t slots[];      ///< address of a string, or 0; release in insert_string(), acquire in
                         ///< find_string()
} table_t;

/// Return up to 8 bytes as a word, padded with zeros.
static uint64_t read_word(const char *bytes, size_t length)
{
    uint64_t word = 0;
    MEMRT__ASSERT(length <= sizeof(word));
    memcpy(&word, bytes, length);
    return word;
}

static uint64_t mix_hash(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * MEMRT__HASH_FACTOR;
}

/// Hash a string. Even and odd words use two independent chains, so that the processor can overlap
/// the multiplications.
static uint64_t hash_bytes(const void *bytes, size_t length)
{
    const size_t whole = sizeof(uint64_t);
    const char *at = bytes;
    uint64_t even = length, odd = 0;
    for (; length >= 2 * whole; length -= 2 * whole, at += 2 * whole) {
        even = mix_hash(even, read_word(at, whole));
        odd = mix_hash(odd, read_word(at + whole, whole));
    }
    if (length >= whole) {
        even = mix_hash(even, read_word(at, whole));
        length -= whole;
        at += whole;
    }
    even = mix_hash(even, read_word(at, length));
    uint64_t hash = even ^ (odd << 32 | odd >> 32);
    hash = mix_hash(hash, hash >> 32);
    return hash ^ hash >> 29;
}

/// Return the string that equals `length` bytes, or NULL. Takes no lock.
static memrt__interned_t *find_string(const memrt__interns_t *set, uint64_t hash, const void *bytes,
                                      size_t length)
{
    const table_t *table = (const table_t *)memrt__load_acquire(&set->table);
    if (table == NULL) {
        return NULL;
    }
    for (size_t i = hash & table->mask;; i = (i + 1) & table->mask) {
        memrt__interned_t *found = (memrt__interned_t *)memrt__load_acquire(&table->slots[i]);
        if (found == NULL || (found->hash == hash && found->length == length &&
                              memcmp(found->words, bytes, length) == 0)) {
            return found;
        }
    }
}

/// Publish a complete string in an empty slot of a table. Under the lock of rank INTERNED.
static void insert_string(table_t *table, memrt__interned_t *fresh)
{
    MEMRT__ASSERT(memrt__is_power_of_two(table->mask + 1));
    size_t i = fresh->hash & table->mask;
    while (memrt__load_relaxed(&table->slots[i]) != 0) {
        i = (i + 1) & table->mask;
    }
    memrt__store_release(&table->slots[i], (size_t)fresh);
}

/// Ensure that the table has a slot for one more string. Returns false when out of memory.
static bool reserve_slot(memrt__interns_t *set, size_t count)
{
    table_t *old = (table_t *)memrt__load_relaxed(&set->table);
    if (old != NULL && count < old->mask / 2) {
        return true;
    }
    size_t slots = old == NULL ? FIRST_SLOTS : (old->mask + 1) * 2;
    table_t *table = alloc_zeroed(sizeof(*table) + slots * sizeof(table->slots[0]));
    if (table == NULL) {
        return false;
    }
    table->older = old;
    table->mask = slots - 1;
    MEMRT__ASSERT(count < table->mask / 2);
    for (size_t number = 1; number <= count; number++) {
        insert_string(table, memrt__interned_at(set, number));
    }
    memrt__store_release(&set->table, (size_t)table);
    return true;
}

/// Ensure that a chunk has an entry for one more string. Returns false when out of memory or
/// numbers.
static bool reserve_number(memrt__interns_t *set, size_t count)
{
    if (count >= MEMRT__INTERNED_MAX) {
        return false;
    }
    size_t *chunk = &set->chunks[count / MEMRT__INTERNED_CHUNK];
    if (*chunk == 0) {
        *chunk = (size_t)alloc_zeroed(MEMRT__INTERNED_CHUNK * sizeof(memrt__interned_t *));
    }
    return *chunk != 0;
}

/// Add a string, in this order: room in chunk and table, the complete string, its number, its slot.
/// A failure therefore leaves the set unchanged. Returns NULL when out of memory or numbers.
static memrt__interned_t *add_string(memrt__interns_t *set, uint64_t hash, const void *bytes,
                                     size_t length)
{
    MEMRT__KEEP_ERRNO;
    MEMRT__ASSERT_HELD(MEMRT__RANK_INTERNED);
    size_t count = memrt__load_relaxed(&set->count);
    if (!reserve_number(set, count) || !reserve_slot(set, count)) {
        return NULL;
    }
    memrt__interned_t *fresh = alloc_zeroed(sizeof(*fresh) + length + sizeof(uint64_t));
    if (fresh == NULL) {
        return NULL;
    }
    MEMRT__ASSERT(count < MEMRT__INTERNED_MAX && length <= UINT32_MAX);
    fresh->hash = hash;
    fresh->number = (uint32_t)count + 1;
    fresh->length = (uint32_t)length;
    memcpy(fresh->words, bytes, length);
    memrt__interned_t **chunk = (memrt__interned_t **)set->chunks[count / MEMRT__INTERNED_CHUNK];
    chunk[count % MEMRT__INTERNED_CHUNK] = fresh;
    memrt__store_release(&set->count, count + 1);
    insert_string((table_t *)memrt__load_relaxed(&set->table), fresh);
    return fresh;
}

memrt__interned_t *memrt__intern(memrt__interns_t *set, const void *bytes, size_t length)
{
    uint64_t hash = hash_bytes(bytes, length);
    memrt__interned_t *found = find_string(set, hash, bytes, length);
    if (found == NULL && memrt__lock_or_fork(MEMRT__RANK_INTERNED)) {
        found = find_string(set, hash, bytes, length);
        found = found == NULL ? add_string(set, hash, bytes, length) : found;
        memrt__unlock(MEMRT__RANK_INTERNED);
    }
    return found;
}

memrt__interned_t *memrt__interned_find(const memrt__interns_t *set, const void *bytes,
                                        size_t length)
{
    return find_string(set, hash_bytes(bytes, length), bytes, length);
}

memrt__interned_t *memrt__interned_at(const memrt__interns_t *set, uint64_t number)
{
    if (number - 1 >= memrt__load_acquire(&set->count)) {
        return NULL;
    }
    size_t index = (size_t)number - 1;
    memrt__interned_t *const *chunk =
        (memrt__interned_t *const *)set->chunks[index / MEMRT__INTERNED_CHUNK];
    return chunk[index % MEMRT__INTERNED_CHUNK];
}

size_t memrt__interned_bytes(void)
{
    return memrt__load_relaxed(&bytes_of_all);
}

#if MEMRT_DEBUG

/// Check one string: number, hash and length lead back to the string.
static bool is_string_valid(const memrt__interns_t *set, size_t number)
{
    const memrt__interned_t *at = memrt__interned_at(set, number);
    return MEMRT__HOLDS(at != NULL) && MEMRT__HOLDS(at->number == number) &&
           MEMRT__HOLDS(at->hash == hash_bytes(at->words, at->length)) &&
           MEMRT__HOLDS(find_string(set, at->hash, at->words, at->length) == at);
}

/// Return the number of slots with a string.
static size_t count_taken_slots(const table_t *table)
{
    size_t taken = 0;
    for (size_t i = 0; i <= table->mask; i++) {
        taken += table->slots[i] != 0;
    }
    return taken;
}

bool memrt__interns_is_valid(const memrt__interns_t *set)
{
    memrt__lock(MEMRT__RANK_INTERNED);
    const table_t *table = (const table_t *)memrt__load_relaxed(&set->table);
    size_t count = set->count;
    bool valid = MEMRT__HOLDS(count <= MEMRT__INTERNED_MAX) &&
                 MEMRT__HOLDS(table != NULL || count == 0) &&
                 (table == NULL || (MEMRT__HOLDS(memrt__is_power_of_two(table->mask + 1)) &&
                                    MEMRT__HOLDS(count <= table->mask / 2) &&
                                    MEMRT__HOLDS(count_taken_slots(table) == count)));
    for (size_t number = 1; valid && number <= count; number++) {
        valid = is_string_valid(set, number);
    }
    memrt__unlock(MEMRT__RANK_INTERNED);
    return valid;
}

#endif
