#include "runtime/observe/live_table.h"

#include <stdlib.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"

static size_t get_home_slot(const memrt__live_table_t *table, uintptr_t key)
{
    return (memrt__live_hash(key) >> 16) & (table->capacity - 1);
}

memrt__live_entry_t *memrt__live_table_find(memrt__live_table_t *table, uintptr_t key)
{
    MEMRT__ASSERT(key != 0 && memrt__is_power_of_two(table->capacity));
    size_t mask = table->capacity - 1;
    for (size_t i = get_home_slot(table, key); table->slots[i].key != 0; i = (i + 1) & mask) {
        if (table->slots[i].key == key) {
            return &table->slots[i];
        }
    }
    return NULL;
}

static void clear_slot(memrt__live_entry_t *slot)
{
    memrt__store_relaxed(&slot->key, 0);
    MEMRT__KEEP_ORDER;
}

void memrt__live_table_fill(memrt__live_entry_t *slot, const memrt__live_entry_t *entry)
{
    clear_slot(slot);
    memrt__live_entry_t keyless = *entry;
    keyless.key = 0;
    *slot = keyless;
    memrt__store_release(&slot->key, entry->key);
}

void memrt__live_table_add(memrt__live_table_t *table, const memrt__live_entry_t *entry)
{
    MEMRT__ASSERT(entry->key != 0 && memrt__live_table_find(table, entry->key) == NULL);
    size_t i = get_home_slot(table, entry->key);
    while (table->slots[i].key != 0) {
        i = (i + 1) & (table->capacity - 1);
    }
    memrt__live_table_fill(&table->slots[i], entry);
}

/// Place all entries of `from` that `to` does not have yet. Returns the number of placed entries.
static size_t place_missing_entries(memrt__live_table_t *to, const memrt__live_table_t *from)
{
    size_t count = 0;
    for (size_t i = 0; i < from->capacity; i++) {
        if (from->slots[i].key != 0 && memrt__live_table_find(to, from->slots[i].key) == NULL) {
            memrt__live_table_add(to, &from->slots[i]);
            count++;
        }
    }
    return count;
}

memrt__live_table_t *memrt__live_table_copy(const memrt__live_table_t *old, size_t capacity,
                                            size_t *count)
{
    MEMRT__KEEP_ERRNO;
    size_t bytes = sizeof(memrt__live_table_t) + capacity * sizeof(memrt__live_entry_t);
    memrt__live_table_t *table = calloc(1, bytes);
    if (table != NULL) {
        table->capacity = capacity;
        *count = old == NULL ? 0 : place_missing_entries(table, old);
    }
    return table;
}

void memrt__live_table_remove(memrt__live_table_t *table, memrt__live_entry_t *slot)
{
    size_t mask = table->capacity - 1;
    size_t gap = (size_t)(slot - table->slots);
    for (size_t i = (gap + 1) & mask; table->slots[i].key != 0; i = (i + 1) & mask) {
        size_t distance = (i - get_home_slot(table, table->slots[i].key)) & mask;
        if (distance >= ((i - gap) & mask)) {
            memrt__live_table_fill(&table->slots[gap], &table->slots[i]);
            gap = i;
        }
    }
    clear_slot(&table->slots[gap]);
}
