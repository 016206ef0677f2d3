#include "runtime/debug/live.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/failure.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/stats/thread.h"

#define PARTS 32u
#define FIRST_CAPACITY 64u
#define LEFT 64u

_Static_assert(PARTS == MEMRT__RANK_LIVE_LAST - MEMRT__RANK_LIVE + 1, "a lock for each part");

/// Open addressing with linear probing. Invariant: from the home slot of a key to its slot no slot
/// is empty (key 0), and at most half of the slots are taken.
typedef struct part {
    memrt__live_entry_t *slots; ///< `capacity` of them, a power of two, or NULL
    size_t capacity;
    size_t count;
    memrt__live_left_t left[LEFT]; ///< ring of those that left
    size_t leavings;               ///< how many ever left
} part_t;

static part_t parts[PARTS];  /* each under the lock of its rank */
static size_t births;        /* relaxed add; publishes nothing */
static size_t births_before; /* the fork; written by a process of one thread */

static size_t hash(uintptr_t key)
{
    return (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u);
}

static size_t part_index(uintptr_t key)
{
    return hash(key) >> 59;
}

static size_t home(const part_t *part, uintptr_t key)
{
    return (hash(key) >> 16) & (part->capacity - 1);
}

static part_t *lock_part(size_t index)
{
    memrt__lock((memrt__rank_t)(MEMRT__RANK_LIVE + index));
    return &parts[index];
}

static void unlock_part(size_t index)
{
    memrt__unlock((memrt__rank_t)(MEMRT__RANK_LIVE + index));
}

static memrt__live_entry_t *lookup(const part_t *part, uintptr_t key)
{
    if (part->count == 0) {
        return NULL;
    }
    size_t mask = part->capacity - 1;
    for (size_t i = home(part, key); part->slots[i].key != 0; i = (i + 1) & mask) {
        if (part->slots[i].key == key) {
            return &part->slots[i];
        }
    }
    return NULL;
}

static void place(part_t *part, const memrt__live_entry_t *entry)
{
    size_t i = home(part, entry->key);
    while (part->slots[i].key != 0) {
        i = (i + 1) & (part->capacity - 1);
    }
    part->slots[i] = *entry;
    part->count++;
}

/// Make room for one more key.
static bool reserve(part_t *part)
{
    if (part->slots != NULL && part->count < part->capacity / 2) {
        return true;
    }
    if (memrt__failure_due()) {
        return false;
    }
    memrt__live_entry_t *old = part->slots;
    size_t old_capacity = part->capacity;
    size_t capacity = old == NULL ? FIRST_CAPACITY : old_capacity * 2;
    memrt__live_entry_t *slots = calloc(capacity, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    part->slots = slots;
    part->capacity = capacity;
    part->count = 0;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].key != 0) {
            place(part, &old[i]);
        }
    }
    free(old);
    return true;
}

/// Empty a slot and move up the keys behind it that its gap would cut off from their home.
static void vacate(part_t *part, memrt__live_entry_t *slot)
{
    size_t mask = part->capacity - 1;
    size_t gap = (size_t)(slot - part->slots);
    for (size_t i = (gap + 1) & mask; part->slots[i].key != 0; i = (i + 1) & mask) {
        size_t distance = (i - home(part, part->slots[i].key)) & mask;
        if (distance >= ((i - gap) & mask)) {
            part->slots[gap] = part->slots[i];
            gap = i;
        }
    }
    part->slots[gap] = (memrt__live_entry_t){0};
    part->count--;
}

static memrt__live_entry_t born_now(uintptr_t key, uint32_t site, double share)
{
    const memrt__thread_t *self = memrt__self;
    return (memrt__live_entry_t){.key = key,
                                 .id = memrt__fetch_add_relaxed(&births, 1) + 1,
                                 .birth = memrt__os_tick_ns(),
                                 .thread =
                                     self == NULL ? (uint32_t)memrt__os_thread_id() : self->number,
                                 .site = site,
                                 .share = share};
}

bool memrt__live_insert(uintptr_t key, uint32_t site, double share)
{
    memrt__live_entry_t entry = born_now(key, site, share);
    part_t *part = lock_part(part_index(key));
    bool room = reserve(part);
    if (room) {
        place(part, &entry);
    }
    unlock_part(part_index(key));
    return room;
}

static void remember(part_t *part, const memrt__live_entry_t *entry,
                     const memrt__live_trace_t *trace)
{
    memrt__live_left_t *left = &part->left[part->leavings++ % LEFT];
    left->key = entry->key;
    left->data = trace->data;
    left->size = trace->size;
    strcpy(left->name, entry->name == NULL ? "" : entry->name);
    strcpy(left->policy, trace->policy);
}

bool memrt__live_remove(uintptr_t key, const memrt__live_trace_t *trace)
{
    part_t *part = lock_part(part_index(key));
    memrt__live_entry_t *entry = lookup(part, key);
    char *name = NULL;
    if (entry != NULL) {
        if (trace != NULL) {
            remember(part, entry, trace);
        }
        name = entry->name;
        vacate(part, entry);
    }
    unlock_part(part_index(key));
    free(name);
    return entry != NULL;
}

/// The last that left a part with a key in a range.
static bool find_left(size_t index, uintptr_t start, size_t size, memrt__live_left_t *out)
{
    bool found = false;
    part_t *part = lock_part(index);
    for (size_t i = 1; i <= LEFT && i <= part->leavings && !found; i++) {
        const memrt__live_left_t *left = &part->left[(part->leavings - i) % LEFT];
        found = left->key - start < size;
        if (found) {
            *out = *left;
        }
    }
    unlock_part(index);
    return found;
}

bool memrt__live_left(uintptr_t key, memrt__live_left_t *out)
{
    return find_left(part_index(key), key, 1, out);
}

bool memrt__live_left_within(uintptr_t start, size_t size, memrt__live_left_t *out)
{
    bool found = false;
    for (size_t index = 0; index < PARTS && !found; index++) {
        found = find_left(index, start, size, out);
    }
    return found;
}

bool memrt__live_contains(uintptr_t key)
{
    part_t *part = lock_part(part_index(key));
    bool found = lookup(part, key) != NULL;
    unlock_part(part_index(key));
    return found;
}

static memrt__live_entry_t take_identity(uintptr_t key)
{
    part_t *part = lock_part(part_index(key));
    memrt__live_entry_t *entry = lookup(part, key);
    memrt__live_entry_t identity = *entry;
    entry->name = NULL;
    unlock_part(part_index(key));
    return identity;
}

void memrt__live_inherit(uintptr_t from, uintptr_t to)
{
    memrt__live_entry_t identity = take_identity(from);
    identity.key = to;
    part_t *part = lock_part(part_index(to));
    memrt__live_entry_t *entry = lookup(part, to);
    char *old_name = entry->name;
    *entry = identity;
    unlock_part(part_index(to));
    free(old_name);
}

/// The entry of a key, which is added if it is not there. NULL: no memory.
static memrt__live_entry_t *lookup_or_add(part_t *part, uintptr_t key)
{
    memrt__live_entry_t *entry = lookup(part, key);
    if (entry == NULL && reserve(part)) {
        memrt__live_entry_t fresh = born_now(key, 0, 0);
        place(part, &fresh);
        entry = lookup(part, key);
    }
    return entry;
}

bool memrt__live_set_name(uintptr_t key, const char *name)
{
    char *copy = NULL;
    if (name != NULL) {
        copy = memrt__failure_due() ? NULL : strdup(name);
        if (copy == NULL) {
            return false;
        }
    }
    part_t *part = lock_part(part_index(key));
    memrt__live_entry_t *entry = lookup_or_add(part, key);
    if (entry != NULL) {
        char *old = entry->name;
        entry->name = copy;
        copy = old;
    }
    unlock_part(part_index(key));
    free(copy);
    return entry != NULL;
}

bool memrt__live_visit(uintptr_t key, memrt__live_visit_fn visit, void *context)
{
    part_t *part = lock_part(part_index(key));
    memrt__live_entry_t *entry = lookup(part, key);
    if (entry != NULL) {
        visit(entry, context);
    }
    unlock_part(part_index(key));
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

void memrt__live_visit_all(memrt__live_visit_fn visit, void *context)
{
    for (size_t index = 0; index < PARTS; index++) {
        part_t *part = lock_part(index);
        for (size_t i = 0; i < part->capacity; i++) {
            if (part->slots[i].key != 0) {
                visit(&part->slots[i], context);
            }
        }
        unlock_part(index);
    }
}

size_t memrt__live_count(void)
{
    size_t count = 0;
    for (size_t index = 0; index < PARTS; index++) {
        count += lock_part(index)->count;
        unlock_part(index);
    }
    return count;
}

uint64_t memrt__live_births(void)
{
    return memrt__load_relaxed(&births);
}

uint64_t memrt__live_births_before(void)
{
    return births_before;
}

void memrt__live_forked(void)
{
    births_before = memrt__live_births();
}
