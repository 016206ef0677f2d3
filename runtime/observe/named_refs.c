#include "runtime/observe/named_refs.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/thread/thread.h"

#define FIRST_CAPACITY 64u

typedef struct record {
    struct record *next; ///< next record of the bucket; records of one key are in order of age
    uintptr_t key;
    memrt_holder_kind_t kind;
    size_t count;    ///< number of references; never 0
    uint64_t since;  ///< time of the first reference, nanoseconds, memrt__os_tick_ns()
    uint64_t thread; ///< operating system's id of the thread of the first reference
    char name[];
} record_t;

/* All under the lock of rank NAMED_REFS. */
static record_t *first_buckets[FIRST_CAPACITY];
static record_t **buckets = first_buckets;
static size_t capacity = FIRST_CAPACITY; /* a power of two */
static size_t record_count;
static size_t growing; /* relaxed; not 0: records are moving between two tables */

static void lock_records(void)
{
    memrt__lock(MEMRT__RANK_NAMED_REFS);
}

static void unlock_records(void)
{
    memrt__unlock(MEMRT__RANK_NAMED_REFS);
}

static record_t **get_bucket(uintptr_t key)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_NAMED_REFS);
    MEMRT__ASSERT(memrt__is_power_of_two(capacity));
    return &buckets[((uint64_t)key * MEMRT__HASH_FACTOR >> 20) & (capacity - 1)];
}

/// Return the link that points to a record, or the last link of the bucket if no record matches.
static record_t **find_record(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    record_t **link = get_bucket(key);
    while (*link != NULL &&
           ((*link)->key != key || (*link)->kind != kind || strcmp((*link)->name, name) != 0)) {
        link = &(*link)->next;
    }
    return link;
}

static void append_record(record_t *record)
{
    record_t **link = get_bucket(record->key);
    while (*link != NULL) {
        link = &(*link)->next;
    }
    record->next = NULL;
    memrt__store_release((size_t *)link, (size_t)record);
}

/// Double the number of buckets. Without memory the buckets stay, and their chains get longer.
static void grow_buckets(void)
{
    MEMRT__KEEP_ERRNO;
    record_t **old = buckets;
    size_t old_capacity = capacity;
    record_t **larger = memrt__fault_is_due() ? NULL : calloc(old_capacity * 2, sizeof(record_t *));
    if (larger == NULL) {
        return;
    }
    memrt__store_release(&growing, 1);
    buckets = larger;
    capacity = old_capacity * 2;
    for (size_t i = 0; i < old_capacity; i++) {
        for (record_t *record = old[i], *next; record != NULL; record = next) {
            next = record->next;
            append_record(record);
        }
    }
    memrt__store_release(&growing, 0);
    if (old != first_buckets) {
        free(old);
    }
}

static size_t count_records(void)
{
    size_t count = 0;
    for (size_t i = 0; i < capacity; i++) {
        for (const record_t *record = buckets[i]; record != NULL; record = record->next) {
            count++;
        }
    }
    return count;
}

/// A fork during any other step leaves each record either in a chain or outside of all chains. The
/// count of records may then be out of date.
void memrt__named_refs_repair(void)
{
    if (memrt__load_relaxed(&growing) != 0) {
        memset(first_buckets, 0, sizeof(first_buckets));
        buckets = first_buckets;
        capacity = FIRST_CAPACITY;
        record_count = 0;
        memrt__store_relaxed(&growing, 0);
    }
    record_count = count_records();
}

/// Return the operating system's id of the calling thread, from the thread's record if there is a
/// record, because the system call is slow.
static uint64_t get_thread_number(void)
{
    const memrt__thread_t *self = memrt__thread_or_null();
    return self != NULL ? self->number : memrt__os_thread_id();
}

static record_t *create_record(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    MEMRT__KEEP_ERRNO;
    size_t length = strlen(name) + 1;
    record_t *record = memrt__fault_is_due() ? NULL : malloc(sizeof(record_t) + length);
    if (record != NULL) {
        *record = (record_t){.key = key,
                             .kind = kind,
                             .count = 1,
                             .since = memrt__os_tick_ns(),
                             .thread = get_thread_number()};
        memcpy(record->name, name, length);
    }
    return record;
}

static bool add_reference(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    record_t *record = *find_record(key, kind, name);
    if (record != NULL) {
        MEMRT__ASSERT(record->count != 0);
        record->count++;
        return true;
    }
    record = create_record(key, kind, name);
    if (record == NULL) {
        return false;
    }
    if (record_count >= capacity) {
        grow_buckets();
    }
    append_record(record);
    record_count++;
    MEMRT__ASSERT(*find_record(key, kind, name) == record);
    return true;
}

bool memrt__named_refs_add(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    lock_records();
    bool added = add_reference(key, kind, name);
    unlock_records();
    return added;
}

static void remove_record(record_t **link)
{
    MEMRT__KEEP_ERRNO;
    record_t *record = *link;
    MEMRT__ASSERT(record_count != 0);
    *link = record->next;
    record_count--;
    free(record);
}

bool memrt__named_refs_remove(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    lock_records();
    record_t **link = find_record(key, kind, name);
    bool found = *link != NULL;
    if (found && (*link)->count > 1) {
        (*link)->count--;
    } else if (found) {
        remove_record(link); /* a child forked before finds a count of 1, not of 0 */
    }
    unlock_records();
    return found;
}

size_t memrt__named_refs_forget(uintptr_t key)
{
    size_t exports = 0;
    lock_records();
    for (record_t **link = get_bucket(key); *link != NULL;) {
        if ((*link)->key == key) {
            exports += (*link)->kind == MEMRT_HOLDER_EXPORT ? (*link)->count : 0;
            remove_record(link);
        } else {
            link = &(*link)->next;
        }
    }
    unlock_records();
    return exports;
}

static memrt_holder_t make_row(const record_t *record, uint64_t now)
{
    memrt_holder_t row = {.count = record->count,
                          .age_ns = now > record->since ? now - record->since : 0,
                          .thread = record->thread,
                          .kind = (uint32_t)record->kind};
    strcpy(row.name, record->name);
    return row;
}

size_t memrt__named_refs_list(uintptr_t key, memrt_holder_t *rows, size_t row_size, size_t room)
{
    size_t seen = 0;
    uint64_t now = memrt__os_now_ns();
    lock_records();
    for (const record_t *record = *get_bucket(key); record != NULL; record = record->next) {
        if (record->key == key && seen++ < room) {
            memrt_holder_t row = make_row(record, now);
            memcpy((char *)rows + (seen - 1) * row_size, &row,
                   memrt__size_min(row_size, sizeof(row)));
        }
    }
    unlock_records();
    return seen;
}

#if MEMRT_DEBUG

/// Check one record: the search for key, kind and name ends there.
static bool is_record_valid(const record_t *record, size_t bucket)
{
    return MEMRT__HOLDS(record->count != 0) && MEMRT__HOLDS(record->name[0] != '\0') &&
           MEMRT__HOLDS(get_bucket(record->key) == &buckets[bucket]) &&
           MEMRT__HOLDS(*find_record(record->key, record->kind, record->name) == record);
}

bool memrt__named_refs_is_valid(void)
{
    lock_records();
    bool valid = MEMRT__HOLDS(memrt__is_power_of_two(capacity)) && MEMRT__HOLDS(growing == 0) &&
                 MEMRT__HOLDS(count_records() == record_count);
    for (size_t i = 0; i < capacity; i++) {
        for (const record_t *record = buckets[i]; valid && record != NULL; record = record->next) {
            valid = is_record_valid(record, i);
        }
    }
    unlock_records();
    return valid;
}

#endif
