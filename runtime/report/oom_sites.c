#include "runtime/report/oom_sites.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/meminfo/block.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/named_refs.h"
#include "runtime/observe/sites.h"
#include "runtime/observe/tracking.h"

/// Number of sites added up at once. With more sites, each site with more than 1/COUNTED of all
/// bytes is among the counted sites (space-saving algorithm of Metwally, Agrawal and El Abbadi).
#define COUNTED 64u

/// Live bytes of one allocation site. `bytes` may be too high by the bytes of replaced sites.
typedef struct counter {
    uint32_t site;
    uint64_t bytes;
} counter_t;

typedef struct sum {
    counter_t counters[COUNTED];
    size_t count;
} sum_t;

static counter_t *find_or_add_counter(sum_t *sum, uint32_t site)
{
    MEMRT__ASSERT(sum->count <= COUNTED && site != 0);
    counter_t *least = &sum->counters[0];
    for (size_t i = 0; i < sum->count; i++) {
        if (sum->counters[i].site == site) {
            return &sum->counters[i];
        }
        least = sum->counters[i].bytes < least->bytes ? &sum->counters[i] : least;
    }
    counter_t *counter = sum->count < COUNTED ? &sum->counters[sum->count++] : least;
    counter->site = site;
    return counter;
}

static uint64_t get_weighted_bytes(const memrt__live_entry_t *entry)
{
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    size_t size = memrt__block_is_part(mi) ? 0 : memrt__load_relaxed(&mi->size);
    return (uint64_t)((double)size * entry->weight);
}

static void add_site_bytes(const memrt__live_entry_t *entry, void *context)
{
    uint64_t bytes = get_weighted_bytes(entry);
    if (bytes != 0 && entry->site != 0) {
        find_or_add_counter(context, entry->site)->bytes += bytes;
    }
}

/// Return the largest counter, and reset the counter to 0 bytes. Without counters, returns 0 bytes.
static counter_t take_largest_counter(sum_t *sum)
{
    counter_t *largest = &sum->counters[0];
    for (size_t i = 1; i < sum->count; i++) {
        largest = sum->counters[i].bytes > largest->bytes ? &sum->counters[i] : largest;
    }
    counter_t taken = *largest;
    largest->bytes = 0;
    return taken;
}

/// Exact live bytes of one site.
typedef struct recount {
    uint32_t site;
    uint64_t bytes;
} recount_t;

static void add_if_same_site(const memrt__live_entry_t *entry, void *context)
{
    recount_t *recount = context;
    recount->bytes += entry->site == recount->site ? get_weighted_bytes(entry) : 0;
}

static void append_site(memrt__writing_t *writing, uint32_t site)
{
    memrt_frame_t innermost;
    char line[MEMRT__FRAME_LINE];
    recount_t recount = {.site = site};
    memrt__live_visit_all(add_if_same_site, &recount);
    memrt__writing_append_bytes(writing, "  ", recount.bytes, "");
    size_t count = memrt__site_frames(site, &innermost, 1);
    memrt__frame_line(count == 0 ? 0 : innermost, line, sizeof(line));
    memrt__writing_append(writing, " allocated in %s\n", line);
}

void memrt__oom_append_sites(memrt__writing_t *writing)
{
    sum_t sum = {.count = 0};
    memrt__live_visit_all(add_site_bytes, &sum);
    counter_t counter = take_largest_counter(&sum);
    if (counter.bytes == 0) {
        memrt__writing_append(writing, memrt__tracking_is_on()
                                           ? "no allocation site of live buffers is recorded\n"
                                           : "set MEMRT_TRACK=1 to list allocation sites of live "
                                             "buffers\n");
        return;
    }
    memrt__writing_append(writing, "allocation sites with the most tracked live bytes:\n");
    for (size_t i = 0; i < MEMRT__OOM_SHOWN && counter.bytes != 0; i++) {
        append_site(writing, counter.site);
        counter = take_largest_counter(&sum);
    }
}

/// A live buffer with a name, or with a named reference.
typedef struct named_buffer {
    uint64_t bytes;                ///< 0: none
    char name[MEMRT_NAME_MAX + 1]; ///< "": no name
    memrt_holder_t holder;         ///< one of the named references; count 0: none
} named_buffer_t;

static bool read_named_buffer(const memrt__live_entry_t *entry, named_buffer_t *out)
{
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    bool was_held = (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_HELD) != 0;
    if (entry->name == NULL && !was_held) {
        return false;
    }
    *out = (named_buffer_t){.bytes = memrt__load_relaxed(&mi->size)};
    strcpy(out->name, entry->name == NULL ? "" : entry->name);
    (void)memrt__named_refs_list(entry->key, &out->holder, sizeof(out->holder), 1);
    return out->name[0] != '\0' || out->holder.count != 0;
}

/// Insert a buffer into `context`, an array of the MEMRT__OOM_SHOWN largest buffers, largest first.
static void insert_if_largest(const memrt__live_entry_t *entry, void *context)
{
    named_buffer_t buffer, *first = context, *place = first + MEMRT__OOM_SHOWN - 1;
    if (!read_named_buffer(entry, &buffer) || buffer.bytes <= place->bytes) {
        return;
    }
    for (; place > first && place[-1].bytes < buffer.bytes; place--) {
        *place = place[-1];
    }
    MEMRT__ASSERT(place == first || place[-1].bytes >= buffer.bytes);
    *place = buffer;
}

static void append_named_buffer(memrt__writing_t *writing, const named_buffer_t *buffer)
{
    memrt__writing_append_bytes(writing, "  ", buffer->bytes, "");
    if (buffer->name[0] != '\0') {
        memrt__writing_append(writing, " '%s'", buffer->name);
    }
    if (buffer->holder.count != 0) {
        memrt__writing_append(writing, ", held by C %s '%s'",
                              memrt__holder_kind_text(buffer->holder.kind), buffer->holder.name);
    }
    memrt__writing_append(writing, "\n");
}

void memrt__oom_append_named_buffers(memrt__writing_t *writing)
{
    named_buffer_t largest[MEMRT__OOM_SHOWN] = {{.bytes = 0}};
    memrt__live_visit_all(insert_if_largest, largest);
    if (largest[0].bytes != 0) {
        memrt__writing_append(writing, "largest live buffers with a name or a named reference:\n");
    }
    for (size_t i = 0; i < MEMRT__OOM_SHOWN && largest[i].bytes != 0; i++) {
        append_named_buffer(writing, &largest[i]);
    }
}
