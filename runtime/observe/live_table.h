#ifndef MEMRT_OBSERVE_LIVE_TABLE_H
#define MEMRT_OBSERVE_LIVE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/size.h"

/// Hash table of a partition of the live set, with open addressing and linear probing. The caller
/// holds the lock of the partition.
///
/// Invariants: no slot between the home slot of a key and the slot of the key is empty (key 0). At
/// most half of the slots are taken. At each step of a change, each entry is complete in a slot: a
/// filled slot gets its key last, an emptied or overwritten slot loses its key first, and an entry
/// that moves is in its new slot before it leaves the old slot. A forked child, where a change of
/// another thread stops at any step, therefore finds each entry complete, and some entries twice.

/// Entry: a tracked or named buffer.
typedef struct memrt__live_entry {
    uintptr_t key;      ///< address that identifies the buffer; 0: the slot is empty
    uint64_t id;        ///< serial number of the allocation
    uint64_t allocated; ///< time of the allocation, nanoseconds, memrt__os_tick_ns()
    char *name;         ///< owned; NULL for none
    uint32_t thread;    ///< operating system's id of the allocating thread
    uint32_t site;      ///< number of the allocation site; 0: unknown
    double weight;      ///< sampling weight; 0: the key is listed only because of a name or a
                        ///< weak handle
} memrt__live_entry_t;

typedef struct memrt__live_table {
    size_t capacity; ///< fixed; a power of two
    memrt__live_entry_t slots[];
} memrt__live_table_t;

/// Return the hash of a key, with the entropy in the high bits.
static inline size_t memrt__live_hash(uintptr_t key)
{
    return (size_t)((uint64_t)key * MEMRT__HASH_FACTOR);
}

/// Create a table with all entries of `old`, each entry once. `old` may be NULL. Sets `*count` to
/// the number of entries. Failure: returns NULL when out of memory.
memrt__live_table_t *memrt__live_table_copy(const memrt__live_table_t *old, size_t capacity,
                                            size_t *count);

/// Return the entry of a key, or NULL.
memrt__live_entry_t *memrt__live_table_find(memrt__live_table_t *table, uintptr_t key);

/// Add an entry, whose key is not in the table.
void memrt__live_table_add(memrt__live_table_t *table, const memrt__live_entry_t *entry);

/// Overwrite a slot with an entry.
void memrt__live_table_fill(memrt__live_entry_t *slot, const memrt__live_entry_t *entry);

/// Empty a slot. Entries behind the slot move up if the gap would cut them off from their home.
void memrt__live_table_remove(memrt__live_table_t *table, memrt__live_entry_t *slot);

#endif
