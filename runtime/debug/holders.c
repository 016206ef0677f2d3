#include "runtime/debug/holders.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"
#include "runtime/stats/thread.h"

#define FIRST_CAPACITY 64u

typedef struct record {
    struct record *next; ///< of the same bucket, younger ones behind older ones of the same key
    uintptr_t key;
    memrt_holder_kind_t kind;
    size_t count;    ///< how often it is held so; never 0
    uint64_t since;  ///< nanoseconds, memrt__os_tick_ns()
    uint64_t thread; ///< operating system's id
    char name[];
} record_t;

/* All under the lock of their rank. */
static record_t *first_buckets[FIRST_CAPACITY];
static record_t **buckets = first_buckets;
static size_t capacity = FIRST_CAPACITY; /* a power of two */
static size_t record_count;

static void lock(void)
{
    memrt__lock(MEMRT__RANK_HOLDERS);
}

static void unlock(void)
{
    memrt__unlock(MEMRT__RANK_HOLDERS);
}

static record_t **bucket_of(uintptr_t key)
{
    return &buckets[((uint64_t)key * 0x9E3779B97F4A7C15u >> 20) & (capacity - 1)];
}

/// Where the link to a record is, or that to the end where it would be.
static record_t **find(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    record_t **link = bucket_of(key);
    while (*link != NULL &&
           ((*link)->key != key || (*link)->kind != kind || strcmp((*link)->name, name) != 0)) {
        link = &(*link)->next;
    }
    return link;
}

static void append(record_t *record)
{
    record_t **link = bucket_of(record->key);
    while (*link != NULL) {
        link = &(*link)->next;
    }
    record->next = NULL;
    *link = record;
}

/// Without memory for more buckets, chains get longer.
static void grow(void)
{
    record_t **old = buckets;
    size_t old_capacity = capacity;
    record_t **larger = memrt__failure_due() ? NULL : calloc(old_capacity * 2, sizeof(record_t *));
    if (larger == NULL) {
        return;
    }
    buckets = larger;
    capacity = old_capacity * 2;
    for (size_t i = 0; i < old_capacity; i++) {
        for (record_t *record = old[i], *next; record != NULL; record = next) {
            next = record->next;
            append(record);
        }
    }
    if (old != first_buckets) {
        free(old);
    }
}

/// Kept in its record, where it has one: the system is slow to tell.
static uint64_t thread_number(void)
{
    return memrt__self != NULL ? memrt__self->number : memrt__os_thread_id();
}

static record_t *new_record(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    size_t length = strlen(name) + 1;
    record_t *record = memrt__failure_due() ? NULL : malloc(sizeof(record_t) + length);
    if (record != NULL) {
        *record = (record_t){.key = key,
                             .kind = kind,
                             .count = 1,
                             .since = memrt__os_tick_ns(),
                             .thread = thread_number()};
        memcpy(record->name, name, length);
    }
    return record;
}

static bool add(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    record_t *record = *find(key, kind, name);
    if (record != NULL) {
        record->count++;
        return true;
    }
    record = new_record(key, kind, name);
    if (record == NULL) {
        return false;
    }
    if (record_count >= capacity) {
        grow();
    }
    append(record);
    record_count++;
    return true;
}

bool memrt__holders_add(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    lock();
    bool added = add(key, kind, name);
    unlock();
    return added;
}

static void take_out(record_t **link)
{
    record_t *record = *link;
    *link = record->next;
    record_count--;
    free(record);
}

bool memrt__holders_remove(uintptr_t key, memrt_holder_kind_t kind, const char *name)
{
    lock();
    record_t **link = find(key, kind, name);
    bool found = *link != NULL;
    if (found && --(*link)->count == 0) {
        take_out(link);
    }
    unlock();
    return found;
}

size_t memrt__holders_forget(uintptr_t key)
{
    size_t exports = 0;
    lock();
    for (record_t **link = bucket_of(key); *link != NULL;) {
        if ((*link)->key == key) {
            exports += (*link)->kind == MEMRT_HOLDER_EXPORT ? (*link)->count : 0;
            take_out(link);
        } else {
            link = &(*link)->next;
        }
    }
    unlock();
    return exports;
}

static memrt_holder_t row_of(const record_t *record, uint64_t now)
{
    memrt_holder_t row = {.count = record->count,
                          .age_ns = now > record->since ? now - record->since : 0,
                          .thread = record->thread,
                          .kind = (uint32_t)record->kind};
    strcpy(row.name, record->name);
    return row;
}

size_t memrt__holders_list(uintptr_t key, memrt_holder_t *rows, size_t row_size, size_t room)
{
    size_t seen = 0;
    uint64_t now = memrt__os_now_ns();
    lock();
    for (const record_t *record = *bucket_of(key); record != NULL; record = record->next) {
        if (record->key == key && seen++ < room) {
            memrt_holder_t row = row_of(record, now);
            memcpy((char *)rows + (seen - 1) * row_size, &row,
                   memrt__size_min(row_size, sizeof(row)));
        }
    }
    unlock();
    return seen;
}
