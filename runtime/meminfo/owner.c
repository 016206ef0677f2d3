#include "runtime/meminfo/owner.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"
#include "runtime/debug/live.h"

typedef struct search {
    const void *data;
    memrt_meminfo_t *found; ///< a reference of the searcher's
} search_t;

/// A MemInfo in the live set is not freed while its part is locked, so it may be read and tried.
static void try_match(const memrt__live_entry_t *entry, void *context)
{
    search_t *search = context;
    memrt_meminfo_t *mi = (memrt_meminfo_t *)entry->key;
    size_t data = memrt__load_relaxed((const size_t *)&mi->data);
    if (search->found == NULL && data == (size_t)search->data && !memrt__block_is_part(mi) &&
        memrt__meminfo_try_acquire(mi)) {
        search->found = mi;
    }
}

memrt_status_t memrt__owner_find(const void *data, memrt_meminfo_t **out)
{
    search_t search = {.data = data};
    if (data != NULL) {
        memrt__live_visit((uintptr_t)memrt__block_of(data), try_match, &search);
    }
    /* What stands in front of foreign data may be a header too, but of something else. */
    if (data != NULL && search.found == NULL) {
        memrt__live_visit_all(try_match, &search);
    }
    if (search.found == NULL) {
        return MEMRT_ENOENT;
    }
    memrt__block_promote(search.found);
    *out = search.found;
    return MEMRT_OK;
}

typedef struct listing {
    memrt_live_t *rows;
    size_t count, capacity;
    size_t seen; ///< also those that no row was left for
    uint64_t now;
} listing_t;

static void add_row(const memrt__live_entry_t *entry, void *context)
{
    listing_t *listing = context;
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    size_t refcount = memrt__meminfo_refcount(mi); /* 0: not born yet, or dying */
    if (refcount == 0 || memrt__block_is_part(mi) || listing->seen++ >= listing->capacity) {
        return;
    }
    memrt_live_t *row = &listing->rows[listing->count++];
    *row = (memrt_live_t){
        .id = entry->id,
        .meminfo = entry->key,
        .data = memrt__load_relaxed((const size_t *)&mi->data),
        .size = memrt__load_relaxed(&mi->size),
        .refcount = refcount,
        .age_ns = listing->now > entry->birth ? listing->now - entry->birth : 0,
        .thread = entry->thread,
        .policy = memrt__policy_of(mi)->base->index,
        .kind = mi->kind,
    };
    if (entry->name != NULL) {
        strcpy(row->name, entry->name);
    }
}

static int by_id(const void *a, const void *b)
{
    uint64_t left = ((const memrt_live_t *)a)->id;
    uint64_t right = ((const memrt_live_t *)b)->id;
    return (left > right) - (left < right);
}

/// One attempt with room for `capacity` rows, and more should births outrun it.
static memrt_status_t list_up_to(size_t capacity, listing_t *listing)
{
    size_t bytes;
    *listing = (listing_t){.capacity = capacity, .now = memrt__os_now_ns()};
    if (!memrt__size_mul(capacity, sizeof(memrt_live_t), &bytes) || memrt__failure_due()) {
        return MEMRT_ENOMEM;
    }
    listing->rows = malloc(bytes);
    if (listing->rows == NULL) {
        return MEMRT_ENOMEM;
    }
    memrt__live_visit_all(add_row, listing);
    return MEMRT_OK;
}

memrt_status_t memrt__owner_live(memrt_live_t **out, size_t *count)
{
    listing_t listing;
    size_t capacity = memrt__live_count();
    do {
        capacity += capacity / 8 + 64;
        memrt_status_t status = list_up_to(capacity, &listing);
        if (status != MEMRT_OK) {
            return status;
        }
        if (listing.seen > listing.capacity) {
            free(listing.rows);
        }
    } while (listing.seen > listing.capacity);
    qsort(listing.rows, listing.count, sizeof(*listing.rows), by_id);
    *out = listing.rows;
    *count = listing.count;
    return MEMRT_OK;
}

void memrt__owner_live_free(memrt_live_t *list)
{
    free(list);
}
