#include "runtime/report/oom_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/meminfo/block.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/named_refs.h"
#include "runtime/observe/sites.h"
#include "runtime/observe/tracking.h"
#include "runtime/os/os.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/scope.h"
#include "runtime/stats/stats.h"

/// Number of allocation sites, and of named buffers, in a report.
#define SHOWN 3u

/// Number of sites added up at once. With more sites, each site with more than 1/COUNTED of all
/// bytes is among the counted sites (space-saving algorithm of Metwally, Agrawal and El Abbadi).
#define COUNTED 64u

/// Text that grows at its end, cut to the given room.
typedef struct writing {
    char *text;
    size_t room, length; ///< bytes; `length` counts the uncut text
} writing_t;

__attribute__((format(printf, 2, 3))) static void append_text(writing_t *writing,
                                                              const char *format, ...)
{
    va_list arguments;
    bool fits = writing->length < writing->room;
    va_start(arguments, format);
    int length = vsnprintf(fits ? writing->text + writing->length : NULL,
                           fits ? writing->room - writing->length : 0, format, arguments);
    va_end(arguments);
    writing->length += length < 0 ? 0 : (size_t)length;
}

/// An amount of memory for display.
typedef struct amount {
    double number;
    const char *unit;
} amount_t;

static amount_t make_amount(uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    amount_t amount = {(double)bytes, units[0]};
    for (size_t i = 1; amount.number >= 1024 && i < sizeof(units) / sizeof(units[0]); i++) {
        amount.number /= 1024;
        amount.unit = units[i];
    }
    return amount;
}

static void append_amount(writing_t *writing, const char *before, uint64_t bytes, const char *after)
{
    amount_t amount = make_amount(bytes);
    append_text(writing, bytes < 1024 ? "%s%.0f %s%s" : "%s%.1f %s%s", before, amount.number,
                amount.unit, after);
}

static void append_account(writing_t *writing, const char *whose, const memrt__level_t *level,
                           size_t cached)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(level, &stats);
    append_amount(writing, "", stats.live, "");
    append_text(writing, " live %s", whose);
    append_amount(writing, ", peak ", stats.peak, "");
    append_amount(writing, ", kept for reuse ", cached, "\n");
}

static void append_use_of_limit(writing_t *writing, const memrt__level_t *level)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(level, &stats);
    append_amount(writing, "", memrt__level_limit(level), "");
    append_amount(writing, ", ", stats.live, " live\n");
}

static bool has_limit(const memrt__level_t *level)
{
    return memrt__level_limit(level) != SIZE_MAX;
}

/// Write the names of a scope and of all outer scopes, the outermost first, with '/' in between.
static void append_scope_path(writing_t *writing, const memrt_scope_t *scope)
{
    if (scope->parent != NULL) {
        append_scope_path(writing, scope->parent);
        append_text(writing, "/");
    }
    append_text(writing, "%s", scope->name);
}

/// Write the limits of memrt that apply to an allocation from `policy` on the calling thread.
static void append_own_limits(writing_t *writing, const memrt_policy_t *policy)
{
    const memrt_scope_t *scope = policy->scope == NULL ? memrt__scope_current() : policy->scope;
    if (has_limit(&memrt__process)) {
        append_text(writing, "limit of the process: ");
        append_use_of_limit(writing, &memrt__process);
    }
    if (has_limit(&policy->base->level)) {
        append_text(writing, "limit of policy '%s': ", policy->name);
        append_use_of_limit(writing, &policy->base->level);
    }
    for (; scope != NULL; scope = scope->parent) {
        if (has_limit(&scope->level)) {
            append_text(writing, "limit of scope '");
            append_scope_path(writing, scope);
            append_text(writing, "': ");
            append_use_of_limit(writing, &scope->level);
        }
    }
}

static void append_limits(writing_t *writing)
{
    memrt__os_limit_t limits[MEMRT__OS_LIMITS];
    size_t count = memrt__os_limits(limits);
    for (size_t i = 0; i < count; i++) {
        append_amount(writing, i == 0 ? "limits: " : "; ", limits[i].bytes, "");
        append_text(writing, " %s", limits[i].what);
        if (limits[i].used != 0) {
            append_amount(writing, ", ", limits[i].used, " used");
        }
    }
    append_text(writing, count == 0 ? "no limit is known\n" : "\n");
}

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

static void append_site(writing_t *writing, uint32_t site)
{
    memrt_frame_t innermost;
    char line[MEMRT__FRAME_LINE];
    recount_t recount = {.site = site};
    memrt__live_visit_all(add_if_same_site, &recount);
    append_amount(writing, "  ", recount.bytes, "");
    size_t count = memrt__site_frames(site, &innermost, 1);
    memrt__frame_line(count == 0 ? 0 : innermost, line, sizeof(line));
    append_text(writing, " allocated in %s\n", line);
}

static void append_sites(writing_t *writing)
{
    sum_t sum = {.count = 0};
    memrt__live_visit_all(add_site_bytes, &sum);
    counter_t counter = take_largest_counter(&sum);
    if (counter.bytes == 0) {
        append_text(writing, memrt__tracking_is_on()
                                 ? "no allocation site of live buffers is recorded\n"
                                 : "set MEMRT_TRACK=1 to list allocation sites of live "
                                   "buffers\n");
        return;
    }
    append_text(writing, "allocation sites with the most tracked live bytes:\n");
    for (size_t i = 0; i < SHOWN && counter.bytes != 0; i++) {
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

/// Insert a buffer into `context`, an array of the SHOWN largest buffers, largest first.
static void insert_if_largest(const memrt__live_entry_t *entry, void *context)
{
    named_buffer_t buffer, *first = context, *place = first + SHOWN - 1;
    if (!read_named_buffer(entry, &buffer) || buffer.bytes <= place->bytes) {
        return;
    }
    for (; place > first && place[-1].bytes < buffer.bytes; place--) {
        *place = place[-1];
    }
    MEMRT__ASSERT(place == first || place[-1].bytes >= buffer.bytes);
    *place = buffer;
}

static void append_named_buffer(writing_t *writing, const named_buffer_t *buffer)
{
    append_amount(writing, "  ", buffer->bytes, "");
    if (buffer->name[0] != '\0') {
        append_text(writing, " '%s'", buffer->name);
    }
    if (buffer->holder.count != 0) {
        append_text(writing, ", held by C %s '%s'", memrt__holder_kind_text(buffer->holder.kind),
                    buffer->holder.name);
    }
    append_text(writing, "\n");
}

static void append_named_buffers(writing_t *writing)
{
    named_buffer_t largest[SHOWN] = {{.bytes = 0}};
    memrt__live_visit_all(insert_if_largest, largest);
    if (largest[0].bytes != 0) {
        append_text(writing, "largest live buffers with a name or a named reference:\n");
    }
    for (size_t i = 0; i < SHOWN && largest[i].bytes != 0; i++) {
        append_named_buffer(writing, &largest[i]);
    }
}

static void append_request(writing_t *writing, const memrt_policy_t *policy, size_t size)
{
    append_amount(writing, "no memory for ", size, "");
    if (size >= 1024) {
        append_text(writing, " (%zu bytes)", size);
    }
    append_text(writing, " of policy '%s'\n", policy->name);
}

size_t memrt__oom_report_write(const memrt_policy_t *policy, size_t size, char *text, size_t length)
{
    writing_t writing = {.text = text, .room = length};
    const memrt_policy_t *asked = policy == NULL ? memrt__policy_default() : policy;
    policy = asked->base;
    if (size != 0) {
        append_request(&writing, policy, size);
    }
    if (memrt__is_slow(MEMRT__SLOW_FAILURE)) {
        append_text(&writing, "fault injection is on and refuses requests on purpose\n");
    }
    append_account(&writing, "in the policy", &policy->level, memrt__policy_cached(policy));
    append_account(&writing, "in the process", &memrt__process, memrt__policy_cached(NULL));
    append_own_limits(&writing, asked);
    append_limits(&writing);
    append_sites(&writing);
    append_named_buffers(&writing);
    return writing.length;
}
