#include "runtime/meminfo/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/guard/guard_pages.h"
#include "runtime/alloc/heap/block_search.h"
#include "runtime/alloc/reserved.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/meminfo/tiny.h"
#include "runtime/observe/live_set.h"
#include "runtime/os/os.h"
#include "runtime/policy/policy_table.h"

typedef struct search {
    const void *data;
    memrt_meminfo_t *found; ///< owned reference, or NULL
} search_t;

/// Acquire the MemInfo of an entry if its data starts at the address searched for. The partition of
/// the live set is locked, so the MemInfo cannot be freed during the call.
static void acquire_if_match(const memrt__live_entry_t *entry, void *context)
{
    search_t *search = context;
    memrt_meminfo_t *mi = (memrt_meminfo_t *)entry->key;
    size_t data = memrt__load_relaxed((const size_t *)&mi->data);
    if (search->found == NULL && data == (size_t)search->data && !memrt__block_is_part(mi) &&
        memrt__meminfo_try_acquire(mi)) {
        search->found = mi;
    }
}

memrt_status_t memrt__lookup_find(const void *data, memrt_meminfo_t **out)
{
    search_t search = {.data = data};
    if (data != NULL) {
        memrt__live_visit((uintptr_t)memrt__block_of(data), acquire_if_match, &search);
    }
    /* Before adopted data there may be the header of another block, so search all entries. */
    if (data != NULL && search.found == NULL) {
        memrt__live_visit_all(acquire_if_match, &search);
    }
    if (search.found == NULL) {
        return MEMRT_ENOENT;
    }
    memrt__block_promote(search.found);
    *out = search.found;
    return MEMRT_OK;
}

typedef struct listing {
    char *rows;
    size_t row_size; ///< bytes of one row; may be less or more than sizeof(memrt_buffer_t)
    size_t count, capacity;
    size_t seen; ///< matching entries, including entries beyond the capacity
    uint64_t now;
} listing_t;

/// Fill a row from an entry of the live set. False: the entry is not a buffer to list. Its block is
/// the data of a resizable MemInfo, or its count is 0: not yet published, being resized, or being
/// freed.
static bool fill_row(const memrt__live_entry_t *entry, uint64_t now, memrt_buffer_t *out)
{
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    const memrt_policy_t *policy = memrt__policy_of(mi);
    *out = (memrt_buffer_t){
        .scope = policy->scope == NULL ? 0 : policy->scope->id,
        .site = entry->site,
        .weight = entry->weight,
        .inherited = memrt__is_fork_account(policy) || entry->id <= memrt__live_allocs_before(),
    };
    out->live = (memrt_live_t){
        .id = entry->id,
        .meminfo = entry->key,
        .data = memrt__load_relaxed((const size_t *)&mi->data),
        .size = memrt__load_relaxed(&mi->size),
        .refcount = memrt__meminfo_refcount(mi),
        .age_ns = now > entry->allocated ? now - entry->allocated : 0,
        .thread = entry->thread,
        .policy = policy->base->index,
        .kind = mi->kind,
    };
    if (entry->name != NULL) {
        strcpy(out->live.name, entry->name);
    }
    return out->live.refcount != 0 && !memrt__block_is_part(mi);
}

static void add_row(const memrt__live_entry_t *entry, void *context)
{
    listing_t *listing = context;
    memrt_buffer_t row;
    if (fill_row(entry, listing->now, &row) && listing->seen++ < listing->capacity) {
        char *place = listing->rows + listing->count++ * listing->row_size;
        memcpy(place, &row, memrt__size_min(listing->row_size, sizeof(row)));
    }
}

/// Compare two rows, each starting with a memrt_live_t, by serial number.
static int compare_by_id(const void *a, const void *b)
{
    uint64_t left = ((const memrt_live_t *)a)->id;
    uint64_t right = ((const memrt_live_t *)b)->id;
    return (left > right) - (left < right);
}

/// List up to `capacity` rows. `listing->seen` exceeds the capacity if other threads allocated more
/// buffers in between; the caller then retries with more room.
static memrt_status_t list_rows(size_t capacity, size_t row_size, listing_t *listing)
{
    size_t bytes;
    *listing = (listing_t){.row_size = row_size, .capacity = capacity, .now = memrt__os_now_ns()};
    if (!memrt__size_mul(capacity, row_size, &bytes) || memrt__fault_is_due()) {
        return MEMRT_ENOMEM;
    }
    listing->rows = calloc(1, bytes);
    if (listing->rows == NULL) {
        return MEMRT_ENOMEM;
    }
    memrt__live_visit_all(add_row, listing);
    return MEMRT_OK;
}

memrt_status_t memrt__lookup_buffers(size_t row_size, void **out, size_t *count)
{
    listing_t listing;
    if (row_size < sizeof(memrt_live_t)) {
        return MEMRT_EINVAL;
    }
    size_t capacity = memrt__live_count();
    do {
        capacity += capacity / 8 + 64;
        memrt_status_t status = list_rows(capacity, row_size, &listing);
        if (status != MEMRT_OK) {
            return status;
        }
        if (listing.seen > listing.capacity) {
            free(listing.rows);
        }
    } while (listing.seen > listing.capacity);
    MEMRT__ASSERT(listing.count == listing.seen && listing.count <= listing.capacity);
    qsort(listing.rows, listing.count, row_size, compare_by_id);
    *out = listing.rows;
    *count = listing.count;
    return MEMRT_OK;
}

/// One row; `known` tells whether the row was filled.
typedef struct reading {
    memrt_buffer_t row;
    bool known;
} reading_t;

static void read_row(const memrt__live_entry_t *entry, void *context)
{
    reading_t *reading = context;
    reading->known = fill_row(entry, memrt__os_now_ns(), &reading->row);
}

memrt_status_t memrt__lookup_buffer_read(const memrt_meminfo_t *mi, size_t row_size, void *out)
{
    reading_t reading = {.known = false};
    if (row_size < sizeof(memrt_live_t)) {
        return MEMRT_EINVAL;
    }
    if (!memrt__live_visit((uintptr_t)mi, read_row, &reading) || !reading.known) {
        return MEMRT_ENOENT;
    }
    memset(out, 0, row_size);
    memcpy(out, &reading.row, memrt__size_min(row_size, sizeof(reading.row)));
    return MEMRT_OK;
}

memrt_status_t memrt__lookup_live(memrt_live_t **out, size_t *count)
{
    void *rows;
    memrt_status_t status = memrt__lookup_buffers(sizeof(**out), &rows, count);
    if (status == MEMRT_OK) {
        *out = rows;
    }
    return status;
}

void memrt__lookup_live_free(memrt_live_t *list)
{
    free(list);
}

/// Search for the buffer around an address.
typedef struct location_search {
    uintptr_t address;
    memrt_location_t found; ///< `size` and `data` of 0: not found
    bool done;
} location_search_t;

/// Fill in policy and scope from the index of an account. The buffer may be freed meanwhile, and
/// the policy with it: no field is read as the memory of a live policy.
static void fill_account(uint32_t index, memrt_location_t *found)
{
    memrt_policy_t *base = NULL;
    memrt_scope_t *scope = NULL;
    const memrt_policy_t *policy = index < MEMRT__ACCOUNTS ? memrt__policies[index] : NULL;
    if (policy != NULL && memrt__os_read(&policy->base, &base, sizeof(base)) &&
        memrt__os_read(&policy->scope, &scope, sizeof(scope))) {
        (void)memrt__os_read(&base->index, &found->policy, sizeof(found->policy));
        if (scope != NULL) {
            (void)memrt__os_read(&scope->id, &found->scope, sizeof(found->scope));
        }
    }
}

/// Return whether `size` bytes from `data` on contain the address. A buffer of 0 bytes contains its
/// first byte.
static bool contains(uintptr_t data, size_t size, uintptr_t address)
{
    return data != 0 && address - data < memrt__size_max(size, 1);
}

/// Fill in a location if a live block has the start, the alignment and `lead` bytes before its
/// data, and the data contains the address. In a header, data address and lead show the place of
/// the block.
static bool locate_data(uintptr_t start, size_t alignment, size_t lead, location_search_t *search)
{
    memrt_meminfo_t mi;
    uintptr_t data = start + lead;
    const void *header = (const void *)(data - MEMRT_HEADER_SIZE);
    if (search->address < data || !memrt__os_read(header, &mi, sizeof(mi)) ||
        (uintptr_t)mi.data != data || mi.lead != lead || mi.refct == 0 ||
        !memrt__has_data((memrt_kind_t)mi.kind) || (size_t)1 << mi.align_log2 != alignment ||
        !contains(data, mi.size, search->address)) {
        return false;
    }
    search->found =
        (memrt_location_t){.data = data, .size = mi.size, .meminfo = data - MEMRT_HEADER_SIZE};
    fill_account(mi.policy, &search->found);
    return true;
}

/// Locate a block of an alignment in memory that begins at `start`. Shifted data has its lead at
/// the start of the block.
static bool locate_aligned(uintptr_t start, size_t alignment, location_search_t *search)
{
    size_t align = memrt__size_max(alignment, MEMRT_ALIGN_MIN), lead = 0;
    start = (start + align - 1) & ~(uintptr_t)(align - 1);
    size_t least = memrt__size_max(align, MEMRT__OFFSET_LEAD);
    if (alignment == align && locate_data(start, alignment, align, search)) {
        return true;
    }
    return alignment <= MEMRT_ALIGN_OFFSET_MAX &&
           memrt__os_read((const void *)start, &lead, sizeof(lead)) && lead > least &&
           lead < least + align && locate_data(start, alignment, lead, search);
}

static bool locate_tiny(const memrt__heap_room_t *room, location_search_t *search)
{
    memrt__tiny_t tiny;
    uintptr_t data = room->start + sizeof(tiny);
    if (!memrt__os_read((const void *)room->start, &tiny, sizeof(tiny)) ||
        !memrt__tiny_is_live(&tiny) || search->address < data ||
        !contains(data, memrt__tiny_size(&tiny), search->address)) {
        return false;
    }
    search->found =
        (memrt_location_t){.data = data, .size = memrt__tiny_size(&tiny), .meminfo = tiny.meminfo};
    fill_account(memrt__tiny_account(&tiny), &search->found);
    return true;
}

/// Locate a block with a header, of any alignment, that starts at `start`.
static bool locate_block(uintptr_t start, location_search_t *search)
{
    bool found = locate_aligned(start, MEMRT_ALIGN_MIN, search) ||
                 locate_aligned(start, MEMRT__ALIGN_OFFSET, search);
    for (size_t align = 2 * MEMRT_ALIGN_MIN; !found && align <= MEMRT_ALIGN_MAX; align *= 2) {
        found = locate_aligned(start, align, search);
    }
    return found;
}

static bool locate_in_heap(location_search_t *search)
{
    memrt__heap_room_t room;
    if (!memrt__heap_search(search->address, &room) || room.class == MEMRT__CLASS_HEADER) {
        return false;
    }
    if (room.class == MEMRT__CLASSES) { /* only mappings of the heap have an offset */
        size_t offset = memrt__start_offset((const void *)room.start);
        return locate_block(room.start + offset, search) || locate_block(room.start, search) ||
               locate_block(room.start + MEMRT__RESERVED_RECORD, search);
    }
    return room.class >= MEMRT__CLASS_TINY ? locate_tiny(&room, search)
                                           : locate_block(room.start, search);
}

static bool locate_guarded(location_search_t *search)
{
    uintptr_t start;
    return memrt__guard_pages_search(search->address, &start) && locate_block(start, search);
}

static void locate_entry(const memrt__live_entry_t *entry, void *context)
{
    location_search_t *search = context;
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    uintptr_t data = memrt__load_relaxed((const size_t *)&mi->data);
    size_t size = memrt__load_relaxed(&mi->size);
    if (memrt__meminfo_refcount(mi) != 0 && !memrt__block_is_part(mi) &&
        contains(data, size, search->address)) {
        search->found =
            (memrt_location_t){.data = data, .size = size, .meminfo = entry->key, .id = entry->id};
        fill_account(mi->policy, &search->found);
        search->done = true;
    }
}

static void read_id(const memrt__live_entry_t *entry, void *id)
{
    *(uint64_t *)id = entry->id;
}

memrt_status_t memrt__lookup_locate(const void *address, memrt_location_t *out)
{
    location_search_t search = {.address = (uintptr_t)address};
    if (out->struct_size < offsetof(memrt_location_t, scope)) {
        return MEMRT_EINVAL;
    }
    if (locate_in_heap(&search) || locate_guarded(&search)) {
        if (search.found.meminfo != 0) {
            memrt__live_visit(search.found.meminfo, read_id, &search.found.id);
        }
        search.done = true;
    } else {
        memrt__live_visit_all(locate_entry, &search);
    }
    if (!search.done) {
        return MEMRT_ENOENT;
    }
    search.found.struct_size = out->struct_size;
    memcpy(out, &search.found, memrt__size_min(out->struct_size, sizeof(search.found)));
    return MEMRT_OK;
}
