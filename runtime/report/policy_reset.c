#include "runtime/report/policy_reset.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/meminfo/block_layout.h"
#include "runtime/observe/live_set.h"
#include "runtime/observe/named_refs.h"
#include "runtime/observe/sites.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/report/oom_text.h"
#include "runtime/stats/stats.h"

enum { SHOWN = 5 };

/// A tracked live block of the policy.
typedef struct referrer {
    bool exists;
    uint64_t bytes;
    size_t references;
    uint32_t site;                 ///< 0: unknown
    char name[MEMRT_NAME_MAX + 1]; ///< "": no name
    memrt_holder_t holder;         ///< one of the named references; count 0: none
} referrer_t;

typedef struct search {
    const memrt_policy_t *policy;
    size_t found;
    referrer_t largest[SHOWN]; ///< largest first
} search_t;

static referrer_t read_referrer(const memrt__live_entry_t *entry)
{
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    referrer_t referrer = {.exists = true,
                           .bytes = memrt__load_relaxed(&mi->size),
                           .references = memrt__load_relaxed(&mi->refct),
                           .site = entry->site};
    strcpy(referrer.name, entry->name == NULL ? "" : entry->name);
    if ((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_HELD) != 0) {
        (void)memrt__named_refs_list(entry->key, &referrer.holder, sizeof(referrer.holder), 1);
    }
    return referrer;
}

/// Insert a block of the policy into the rows of the largest blocks.
static void insert_if_large(const memrt__live_entry_t *entry, void *context)
{
    search_t *search = context;
    const memrt_meminfo_t *mi = (const memrt_meminfo_t *)entry->key;
    if (memrt__policy_of(mi)->base != search->policy || memrt__block_is_part(mi)) {
        return;
    }
    referrer_t referrer = read_referrer(entry), *at = &search->largest[SHOWN - 1];
    search->found++;
    if (at->exists && at->bytes >= referrer.bytes) {
        return;
    }
    for (; at > search->largest && (!at[-1].exists || at[-1].bytes < referrer.bytes); at--) {
        *at = at[-1];
    }
    *at = referrer;
}

static void append_referrer(memrt__writing_t *writing, const referrer_t *referrer)
{
    memrt__writing_append_bytes(writing, "\n  ", referrer->bytes, "");
    if (referrer->name[0] != '\0') {
        memrt__writing_append(writing, " '%s'", referrer->name);
    }
    memrt__writing_append(writing, ", %zu reference%s", referrer->references,
                          referrer->references == 1 ? "" : "s");
    if (referrer->holder.count != 0) {
        memrt__writing_append(writing, ", held by C %s '%s'",
                              memrt__holder_kind_text(referrer->holder.kind),
                              referrer->holder.name);
    }
    memrt_frame_t innermost;
    if (memrt__site_frames(referrer->site, &innermost, 1) != 0) {
        char line[MEMRT__FRAME_LINE];
        memrt__frame_line(innermost, line, sizeof(line));
        memrt__writing_append(writing, ", allocated in %s", line);
    }
}

/// Name the blocks that are listed, the largest first.
static void append_referrers(memrt__writing_t *writing, const memrt_policy_t *policy)
{
    search_t search = {.policy = policy};
    memrt__live_visit_all(insert_if_large, &search);
    for (size_t i = 0; i < SHOWN && search.largest[i].exists; i++) {
        append_referrer(writing, &search.largest[i]);
    }
    if (search.found > SHOWN) {
        memrt__writing_append(writing, "\n  and %zu more", search.found - SHOWN);
    } else if (search.found == 0) {
        memrt__writing_append(writing, "\nset MEMRT_TRACK=1 to list the blocks");
    }
}

static void append_refusal(memrt__writing_t *writing, const memrt_policy_t *policy)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(&policy->level, &stats);
    memrt__writing_append(writing, "policy '%s' must have no live block, got %llu", policy->name,
                          (unsigned long long)(stats.alloc - stats.free));
    memrt__writing_append_bytes(writing, " of ", stats.live, "");
    if (stats.adopted != 0) {
        memrt__writing_append_bytes(writing, " and adopted memory of ", stats.adopted, "");
    }
    memrt__writing_append(writing, " (MemInfos: %llu): free the arrays and release the MemInfos",
                          (unsigned long long)(stats.mi_alloc - stats.mi_free));
}

memrt_status_t memrt__policy_reset(memrt_policy_t *policy, size_t *bytes, char *why, size_t length)
{
    memrt__writing_t writing = {.text = why, .room = length};
    policy = memrt__policy_or_default(policy)->base;
    *bytes = 0;
    memrt__writing_append(&writing, "%s", "");
    if (!MEMRT_COUNTERS) {
        memrt__writing_append(&writing, "this build of memrt has no counters of live blocks");
        return MEMRT_ENOTSUP;
    }
    if (!memrt__policy_is_empty(policy)) {
        append_refusal(&writing, policy);
        append_referrers(&writing, policy);
        return MEMRT_EBUSY;
    }
    *bytes = memrt__policy_release_own(policy);
    return MEMRT_OK;
}
