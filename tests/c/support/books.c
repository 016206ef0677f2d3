#include "support/books.h"

#include "runtime/observe/live_set.h"
#include "runtime/os/lock.h"
#include "runtime/thread/thread.h"

memrt_stats_t stats_of(const memrt_policy_t *policy)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(policy, &stats), MEMRT_OK);
    return stats;
}

static size_t count_policies(void)
{
    size_t count = 0;
    for (uint32_t index = 0; index < api->policy_limit(); index++) {
        memrt_policy_t *policy = api->policy_at(index);
        if (policy != NULL) {
            count++;
            api->policy_release(policy);
        }
    }
    return count;
}

books_t books_now(void)
{
    api->release_unused(); /* destroys policies without users */
    return (books_t){.stats = stats_of(NULL),
                     .listed = memrt__live_count(),
                     .policies = count_policies(),
                     .tracking = api->tracking_enabled()};
}

void books_expect_no_leak(const books_t *before)
{
    books_t now = books_now();
    ck_assert_uint_eq(now.stats.alloc - now.stats.free, before->stats.alloc - before->stats.free);
    ck_assert_uint_eq(now.stats.mi_alloc - now.stats.mi_free,
                      before->stats.mi_alloc - before->stats.mi_free);
    ck_assert_uint_eq(now.stats.live, before->stats.live);
    ck_assert_uint_eq(now.stats.adopted, before->stats.adopted);
    ck_assert_uint_eq(now.stats.exported, before->stats.exported);
    ck_assert_uint_eq(now.stats.reserved - now.stats.cached,
                      before->stats.reserved - before->stats.cached);
    ck_assert_uint_eq(now.listed, before->listed);
    ck_assert_uint_eq(now.policies, before->policies);
    ck_assert_int_eq(now.tracking, before->tracking);
}

void books_expect_unchanged(const books_t *before)
{
    books_t now = books_now();
    ck_assert_uint_eq(now.stats.alloc, before->stats.alloc);
    ck_assert_uint_eq(now.stats.free, before->stats.free);
    ck_assert_uint_eq(now.stats.mi_alloc, before->stats.mi_alloc);
    ck_assert_uint_eq(now.stats.mi_free, before->stats.mi_free);
    ck_assert_uint_eq(now.stats.realloc, before->stats.realloc);
    ck_assert_uint_eq(now.stats.peak, before->stats.peak);
    ck_assert_uint_eq(now.stats.total, before->stats.total);
    books_expect_no_leak(before);
}

size_t count_thread_records(bool in_use_only)
{
    size_t count = 0;
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        count += !in_use_only || t->in_use;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
    return count;
}
