#include "runtime/observe/live_set.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/thread/thread.h"

#define PARTITIONS_LOG2 5u
#define PARTITIONS (1u << PARTITIONS_LOG2)
#define FIRST_CAPACITY 64u
#define REMOVED_MAX 64u /* removed keys that a partition remembers */

_Static_assert(PARTITIONS == MEMRT__RANK_LIVE_LAST - MEMRT__RANK_LIVE + 1,
               "each partition has a lock");

/// Partition of the live set. live_table.h states the contents of the table after a fork.
/// Exception: a fork inside of memrt__live_move() may lose the entry of `to`, whose block only a
/// thread of the parent knows.
typedef struct partition {
    memrt__live_table_t *table; ///< NULL: no table yet
    size_t count;
    size_t changing;                            ///< not 0: a thread holds the lock
    memrt__live_removed_t removed[REMOVED_MAX]; ///< ring of removed keys
    size_t removals;                            ///< number of keys ever remembered in `removed`
} partition_t;

static partition_t partitions[PARTITIONS]; /* each under the lock of its rank */
static size_t allocation_count;        /* last serial number; relaxed add; publishes nothing else */
static size_t allocations_before_fork; /* `allocation_count` at the fork; written while the process
                                          has one thread */

static size_t get_partition_index(uintptr_t key)
{
    return memrt__live_hash(key) >> (64 - PARTITIONS_LOG2);
}

static partition_t *lock_partition(size_t index)
{
    memrt__lock((memrt__rank_t)(MEMRT__RANK_LIVE + index));
    memrt__store_relaxed(&partitions[index].changing, 1);
    MEMRT__KEEP_ORDER;
    return &partitions[index];
}

static void unlock_partition(size_t index)
{
    memrt__store_release(&partitions[index].changing, 0);
    memrt__unlock((memrt__rank_t)(MEMRT__RANK_LIVE + index));
}

static memrt__live_entry_t *find_entry(const partition_t *partition, uintptr_t key)
{
    return partition->count == 0 ? NULL : memrt__live_table_find(partition->table, key);
}

static bool grow_table(partition_t *partition)
{
    MEMRT__KEEP_ERRNO;
    memrt__live_table_t *old = partition->table;
    if (memrt__fault_is_due()) {
        return false;
    }
    size_t capacity = old == NULL ? FIRST_CAPACITY : old->capacity * 2;
    memrt__live_table_t *table = memrt__live_table_copy(old, capacity, &partition->count);
    if (table == NULL) {
        return false;
    }
    memrt__store_release((size_t *)&partition->table, (size_t)table);
    free(old);
    return true;
}

/// Make room for one more key. Returns false when out of memory.
static bool reserve_slot(partition_t *partition)
{
    const memrt__live_table_t *table = partition->table;
    return (table != NULL && partition->count < table->capacity / 2) || grow_table(partition);
}

static memrt__live_entry_t make_entry(uintptr_t key, uint32_t site, double weight)
{
    const memrt__thread_t *self = memrt__thread_or_null();
    return (memrt__live_entry_t){.key = key,
                                 .id = memrt__fetch_add_relaxed(&allocation_count, 1) + 1,
                                 .allocated = memrt__os_tick_ns(),
                                 .thread =
                                     self == NULL ? (uint32_t)memrt__os_thread_id() : self->number,
                                 .site = site,
                                 .weight = weight};
}

bool memrt__live_insert(uintptr_t key, uint32_t site, double weight)
{
    memrt__live_entry_t entry = make_entry(key, site, weight);
    partition_t *partition = lock_partition(get_partition_index(key));
    bool room = reserve_slot(partition);
    if (room) {
        MEMRT__ASSERT(partition->count < partition->table->capacity / 2);
        memrt__live_table_add(partition->table, &entry);
        partition->count++;
    }
    unlock_partition(get_partition_index(key));
    return room;
}

static void record_removal(partition_t *partition, const memrt__live_entry_t *entry,
                           const memrt__live_details_t *details)
{
    MEMRT__ASSERT(strlen(details->policy) <= MEMRT_NAME_MAX);
    memrt__live_removed_t *removed = &partition->removed[partition->removals++ % REMOVED_MAX];
    removed->key = entry->key;
    removed->data = details->data;
    removed->size = details->size;
    strcpy(removed->name, entry->name == NULL ? "" : entry->name);
    strcpy(removed->policy, details->policy);
}

bool memrt__live_remove(uintptr_t key, const memrt__live_details_t *details)
{
    partition_t *partition = lock_partition(get_partition_index(key));
    memrt__live_entry_t *entry = find_entry(partition, key);
    char *name = NULL;
    if (entry != NULL) {
        if (details != NULL) {
            record_removal(partition, entry, details);
        }
        name = entry->name;
        memrt__live_table_remove(partition->table, entry);
        partition->count--;
    }
    unlock_partition(get_partition_index(key));
    free(name);
    return entry != NULL;
}

/// Find the most recently removed key of a partition within a range.
static bool find_removed_in(size_t index, uintptr_t start, size_t size, memrt__live_removed_t *out)
{
    bool found = false;
    partition_t *partition = lock_partition(index);
    for (size_t i = 1; i <= REMOVED_MAX && i <= partition->removals && !found; i++) {
        const memrt__live_removed_t *removed =
            &partition->removed[(partition->removals - i) % REMOVED_MAX];
        found = removed->key - start < size;
        if (found) {
            *out = *removed;
        }
    }
    unlock_partition(index);
    return found;
}

bool memrt__live_find_removed(uintptr_t key, memrt__live_removed_t *out)
{
    return find_removed_in(get_partition_index(key), key, 1, out);
}

bool memrt__live_find_removed_within(uintptr_t start, size_t size, memrt__live_removed_t *out)
{
    bool found = false;
    for (size_t index = 0; index < PARTITIONS && !found; index++) {
        found = find_removed_in(index, start, size, out);
    }
    return found;
}

bool memrt__live_contains(uintptr_t key)
{
    partition_t *partition = lock_partition(get_partition_index(key));
    bool found = find_entry(partition, key) != NULL;
    unlock_partition(get_partition_index(key));
    return found;
}

static memrt__live_entry_t take_identity(uintptr_t key)
{
    partition_t *partition = lock_partition(get_partition_index(key));
    memrt__live_entry_t *entry = find_entry(partition, key);
    MEMRT__ASSERT(entry != NULL);
    memrt__live_entry_t identity = *entry;
    entry->name = NULL;
    unlock_partition(get_partition_index(key));
    return identity;
}

void memrt__live_move(uintptr_t from, uintptr_t to)
{
    memrt__live_entry_t identity = take_identity(from);
    identity.key = to;
    partition_t *partition = lock_partition(get_partition_index(to));
    memrt__live_entry_t *entry = find_entry(partition, to);
    MEMRT__ASSERT(entry != NULL);
    char *old_name = entry->name;
    memrt__live_table_fill(entry, &identity);
    unlock_partition(get_partition_index(to));
    free(old_name);
}

/// Return the entry of a key, and add the entry if necessary. NULL: out of memory.
static memrt__live_entry_t *find_or_add_entry(partition_t *partition, uintptr_t key)
{
    memrt__live_entry_t *entry = find_entry(partition, key);
    if (entry == NULL && reserve_slot(partition)) {
        memrt__live_entry_t fresh = make_entry(key, 0, 0);
        memrt__live_table_add(partition->table, &fresh);
        partition->count++;
        entry = find_entry(partition, key);
    }
    return entry;
}

uint64_t memrt__live_ensure(uintptr_t key)
{
    partition_t *partition = lock_partition(get_partition_index(key));
    const memrt__live_entry_t *entry =
        memrt__fault_is_due() ? NULL : find_or_add_entry(partition, key);
    uint64_t id = entry == NULL ? 0 : entry->id;
    unlock_partition(get_partition_index(key));
    return id;
}

bool memrt__live_set_name(uintptr_t key, const char *name)
{
    MEMRT__KEEP_ERRNO;
    char *copy = NULL;
    if (name != NULL) {
        copy = memrt__fault_is_due() ? NULL : strdup(name);
        if (copy == NULL) {
            return false;
        }
    }
    partition_t *partition = lock_partition(get_partition_index(key));
    memrt__live_entry_t *entry = find_or_add_entry(partition, key);
    if (entry != NULL) {
        char *old = entry->name;
        entry->name = copy;
        copy = old;
    }
    unlock_partition(get_partition_index(key));
    free(copy);
    return entry != NULL;
}

bool memrt__live_visit(uintptr_t key, memrt__live_visit_fn visit, void *context)
{
    partition_t *partition = lock_partition(get_partition_index(key));
    memrt__live_entry_t *entry = find_entry(partition, key);
    if (entry != NULL) {
        visit(entry, context);
    }
    unlock_partition(get_partition_index(key));
    return entry != NULL;
}

static void copy_name(const memrt__live_entry_t *entry, void *name)
{
    strcpy(name, entry->name == NULL ? "" : entry->name);
}

void memrt__live_name(uintptr_t key, char *name)
{
    name[0] = '\0';
    memrt__live_visit(key, copy_name, name);
}

static void visit_partition(const partition_t *partition, memrt__live_visit_fn visit, void *context)
{
    size_t capacity = partition->table == NULL ? 0 : partition->table->capacity;
    for (size_t i = 0; i < capacity; i++) {
        if (partition->table->slots[i].key != 0) {
            visit(&partition->table->slots[i], context);
        }
    }
}

void memrt__live_visit_all(memrt__live_visit_fn visit, void *context)
{
    for (size_t index = 0; index < PARTITIONS; index++) {
        partition_t *partition = lock_partition(index);
        visit_partition(partition, visit, context);
        unlock_partition(index);
    }
}

size_t memrt__live_count(void)
{
    size_t count = 0;
    for (size_t index = 0; index < PARTITIONS; index++) {
        count += lock_partition(index)->count;
        unlock_partition(index);
    }
    return count;
}

size_t memrt__live_bytes(void)
{
    size_t bytes = 0;
    for (size_t index = 0; index < PARTITIONS; index++) {
        const memrt__live_table_t *table = lock_partition(index)->table;
        bytes += table == NULL ? 0 : sizeof(*table) + table->capacity * sizeof(table->slots[0]);
        unlock_partition(index);
    }
    return bytes;
}

uint64_t memrt__live_allocs(void)
{
    return memrt__load_relaxed(&allocation_count);
}

uint64_t memrt__live_allocs_before(void)
{
    return allocations_before_fork;
}

void memrt__live_forked(void)
{
    allocations_before_fork = memrt__live_allocs();
}

/// Copy the table of a partition. Without memory, the old table is leaked and the partition is
/// empty.
static void repair_partition(partition_t *partition)
{
    memrt__live_table_t *old = partition->table;
    partition->count = 0;
    partition->table =
        old == NULL ? NULL : memrt__live_table_copy(old, old->capacity, &partition->count);
    if (partition->table != NULL) {
        free(old);
    }
}

void memrt__live_repair(void)
{
    for (size_t index = 0; index < PARTITIONS; index++) {
        if (memrt__load_relaxed(&partitions[index].changing) != 0) {
            repair_partition(&partitions[index]);
            memrt__store_relaxed(&partitions[index].changing, 0);
        }
    }
}

#if MEMRT_DEBUG

/// Check one taken slot: the search for the key ends there.
static bool is_slot_valid(size_t index, memrt__live_table_t *table, const memrt__live_entry_t *slot)
{
    return MEMRT__HOLDS(get_partition_index(slot->key) == index) &&
           MEMRT__HOLDS(memrt__live_table_find(table, slot->key) == slot) &&
           MEMRT__HOLDS(slot->id != 0 && slot->id <= memrt__live_allocs()) &&
           MEMRT__HOLDS(slot->weight >= 0) &&
           MEMRT__HOLDS(slot->name == NULL || strlen(slot->name) <= MEMRT_NAME_MAX);
}

static bool is_table_valid(size_t index, memrt__live_table_t *table, size_t count)
{
    size_t seen = 0;
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].key != 0) {
            if (!is_slot_valid(index, table, &table->slots[i])) {
                return false;
            }
            seen++;
        }
    }
    return MEMRT__HOLDS(seen == count);
}

bool memrt__live_is_valid(void)
{
    bool valid = true;
    for (size_t index = 0; index < PARTITIONS && valid; index++) {
        const partition_t *partition = lock_partition(index);
        memrt__live_table_t *table = partition->table;
        valid = table == NULL ? MEMRT__HOLDS(partition->count == 0)
                              : MEMRT__HOLDS(memrt__is_power_of_two(table->capacity)) &&
                                    MEMRT__HOLDS(partition->count <= table->capacity / 2) &&
                                    is_table_valid(index, table, partition->count);
        unlock_partition(index);
    }
    return valid;
}

#endif
