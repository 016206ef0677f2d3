#include "runtime/shortage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/alloc/policy.h"
#include "runtime/base/os.h"
#include "runtime/debug/holders.h"
#include "runtime/debug/live.h"
#include "runtime/debug/site.h"
#include "runtime/debug/tracking.h"
#include "runtime/meminfo/block.h"
#include "runtime/stats/stats.h"

/// Places of birth, and buffers with a name, that are told of.
#define SHOWN 3u

/// Places that are added up at once. Of more, all that have a larger part than one in so many are
/// among them (the space-saving algorithm of Metwally, Agrawal and El Abbadi).
#define COUNTED 64u

/// Text that grows at its end, and is cut where there is no room.
typedef struct writing {
    char *text;
    size_t room, length; ///< bytes; the length that all would have
} writing_t;

__attribute__((format(printf, 2, 3))) static void put(writing_t *writing, const char *format, ...)
{
    va_list arguments;
    bool fits = writing->length < writing->room;
    va_start(arguments, format);
    int length = vsnprintf(fits ? writing->text + writing->length : NULL,
                           fits ? writing->room - writing->length : 0, format, arguments);
    va_end(arguments);
    writing->length += length < 0 ? 0 : (size_t)length;
}

/// An amount as people read it.
typedef struct amount {
    double number;
    const char *unit;
} amount_t;

static amount_t amount_of(uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    amount_t amount = {(double)bytes, units[0]};
    for (size_t i = 1; amount.number >= 1024 && i < sizeof(units) / sizeof(units[0]); i++) {
        amount.number /= 1024;
        amount.unit = units[i];
    }
    return amount;
}

static void put_amount(writing_t *writing, const char *before, uint64_t bytes, const char *after)
{
    amount_t amount = amount_of(bytes);
    put(writing, bytes < 1024 ? "%s%.0f %s%s" : "%s%.1f %s%s", before, amount.number, amount.unit,
        after);
}

static void put_account(writing_t *writing, const char *whose, const memrt__level_t *level,
                        size_t cached)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(level, &stats);
    put_amount(writing, "", stats.live, "");
    put(writing, " live %s", whose);
    put_amount(writing, ", peak ", stats.peak, "");
    put_amount(writing, ", kept for reuse ", cached, "\n");
}

static void put_limits(writing_t *writing)
{
    memrt__os_limit_t limits[MEMRT__OS_LIMITS];
    size_t count = memrt__os_limits(limits);
    for (size_t i = 0; i < count; i++) {
        put_amount(writing, i == 0 ? "limits: " : ", ", limits[i].bytes, "");
        put(writing, " %s", limits[i].what);
        if (limits[i].used != 0) {
            put_amount(writing, " of which ", limits[i].used, " are used");
        }
    }
    put(writing, count == 0 ? "no limit is known\n" : "\n");
}

/// What is live that was born at one site; `bytes` may be too many by those of places that gave way
/// to it.
typedef struct part {
    uint32_t site;
    uint64_t bytes;
} part_t;

typedef struct sum {
    part_t parts[COUNTED];
    size_t count;
} sum_t;

static part_t *part_of(sum_t *sum, uint32_t site)
{
    part_t *least = &sum->parts[0];
    for (size_t i = 0; i < sum->count; i++) {
        if (sum->parts[i].site == site) {
            return &sum->parts[i];
        }
        least = sum->parts[i].bytes < least->bytes ? &sum->parts[i] : least;
    }
    part_t *part = sum->count < COUNTED ? &sum->parts[sum->count++] : least;
    part->site = site;
    return part;
}

static uint64_t bytes_of(const memrt__live_entry_t *entry)
{
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    size_t size = memrt__block_is_part(mi) ? 0 : memrt__load_relaxed(&mi->size);
    return (uint64_t)((double)size * entry->share);
}

static void add_up(const memrt__live_entry_t *entry, void *context)
{
    uint64_t bytes = bytes_of(entry);
    if (bytes != 0 && entry->site != 0) {
        part_of(context, entry->site)->bytes += bytes;
    }
}

/// The largest part, which is taken out. Of none: no bytes.
static part_t take_largest(sum_t *sum)
{
    part_t *largest = &sum->parts[0];
    for (size_t i = 1; i < sum->count; i++) {
        largest = sum->parts[i].bytes > largest->bytes ? &sum->parts[i] : largest;
    }
    part_t taken = *largest;
    largest->bytes = 0;
    return taken;
}

/// Exactly what is live of one site.
typedef struct recount {
    uint32_t site;
    uint64_t bytes;
} recount_t;

static void add_if_there(const memrt__live_entry_t *entry, void *context)
{
    recount_t *recount = context;
    recount->bytes += entry->site == recount->site ? bytes_of(entry) : 0;
}

static void put_place(writing_t *writing, uint32_t site)
{
    memrt_frame_t innermost;
    char line[MEMRT__FRAME_LINE];
    recount_t recount = {.site = site};
    memrt__live_visit_all(add_if_there, &recount);
    put_amount(writing, "  ", recount.bytes, "");
    size_t count = memrt__site_frames(site, &innermost, 1);
    memrt__frame_line(count == 0 ? 0 : innermost, line, sizeof(line));
    put(writing, " born in %s\n", line);
}

static void put_places(writing_t *writing)
{
    sum_t sum = {.count = 0};
    memrt__live_visit_all(add_up, &sum);
    part_t part = take_largest(&sum);
    if (part.bytes == 0) {
        put(writing, memrt__tracking_is_on() ? "no place of birth is recorded of what is live\n"
                                             : "track births to learn where what is live comes "
                                               "from: MEMRT_TRACK=1\n");
        return;
    }
    put(writing, "most of what is live and tracked:\n");
    for (size_t i = 0; i < SHOWN && part.bytes != 0; i++) {
        put_place(writing, part.site);
        part = take_largest(&sum);
    }
}

/// A buffer that has a name, or that C code holds under one.
typedef struct known {
    uint64_t bytes;                ///< 0: none
    char name[MEMRT_NAME_MAX + 1]; ///< "": it has none
    memrt_holder_t holder;         ///< one of them; its count is 0 where there is none
} known_t;

static bool know(const memrt__live_entry_t *entry, known_t *out)
{
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    bool was_held = (memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_HELD) != 0;
    if (entry->name == NULL && !was_held) {
        return false;
    }
    *out = (known_t){.bytes = memrt__load_relaxed(&mi->size)};
    strcpy(out->name, entry->name == NULL ? "" : entry->name);
    (void)memrt__holders_list(entry->key, &out->holder, sizeof(out->holder), 1);
    return out->name[0] != '\0' || out->holder.count != 0;
}

/// Keep the largest in `context`, which has SHOWN, the largest first.
static void keep_largest(const memrt__live_entry_t *entry, void *context)
{
    known_t known, *first = context, *place = first + SHOWN - 1;
    if (!know(entry, &known) || known.bytes <= place->bytes) {
        return;
    }
    for (; place > first && place[-1].bytes < known.bytes; place--) {
        *place = place[-1];
    }
    *place = known;
}

static void put_known(writing_t *writing, const known_t *known)
{
    put_amount(writing, "  ", known->bytes, "");
    if (known->name[0] != '\0') {
        put(writing, " '%s'", known->name);
    }
    if (known->holder.count != 0) {
        put(writing, ", held by C %s '%s'", memrt__holder_kind_text(known->holder.kind),
            known->holder.name);
    }
    put(writing, "\n");
}

static void put_named(writing_t *writing)
{
    known_t largest[SHOWN] = {{.bytes = 0}};
    memrt__live_visit_all(keep_largest, largest);
    if (largest[0].bytes != 0) {
        put(writing, "the largest with a name:\n");
    }
    for (size_t i = 0; i < SHOWN && largest[i].bytes != 0; i++) {
        put_known(writing, &largest[i]);
    }
}

static void put_request(writing_t *writing, const memrt_policy_t *policy, size_t size)
{
    put_amount(writing, "no memory for ", size, "");
    if (size >= 1024) {
        put(writing, " (%zu bytes)", size);
    }
    put(writing, " of policy '%s'\n", policy->name);
}

size_t memrt__shortage_explain(const memrt_policy_t *policy, size_t size, char *text, size_t length)
{
    writing_t writing = {.text = text, .room = length};
    policy = policy == NULL ? memrt__policy_default() : policy->base;
    if (size != 0) {
        put_request(&writing, policy, size);
    }
    if (memrt__is_watched(MEMRT__WATCH_FAILURE)) {
        put(&writing, "a plan of failures is set, which refuses requests on purpose\n");
    }
    put_account(&writing, "in the policy", &policy->level, memrt__policy_cached(policy));
    put_account(&writing, "in the process", &memrt__process, memrt__policy_cached(NULL));
    put_limits(&writing);
    put_places(&writing);
    put_named(&writing);
    return writing.length;
}
