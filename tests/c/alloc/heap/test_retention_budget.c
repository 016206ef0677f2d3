/// Tests of the retention budget.

#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/os/os.h"

#define LARGE ((size_t)256 << 20)
#define MUCH ((size_t)200 << 20)

TEST(resident_memory_grows_with_touched_pages)
{
    size_t before = memrt__os_resident();
    ck_assert_uint_ne(before, 0);
    char *block = memrt__os_map(LARGE, 0, 1);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_lt(memrt__os_resident(), before + MUCH);
    memset(block, 1, LARGE);
    ck_assert_uint_ge(memrt__os_resident(), before + MUCH);
    memrt__os_unmap(block, LARGE);
}

/// Return a time later than every update of the budget by the runtime so far.
static uint64_t advance_time(void)
{
    static uint64_t now;
    now = (now == 0 ? memrt__os_now_ns() : now) + 1000 * MEMRT__RETENTION_NS;
    return now;
}

TEST(retention_budget_is_a_share_of_resident_memory)
{
    memrt__retention_budget_update(advance_time());
    size_t little = memrt__retention_budget();
    ck_assert_uint_ge(little, MEMRT__RETENTION_MIN);
    char *block = memrt__os_map(LARGE, 0, 1);
    ck_assert_ptr_nonnull(block);
    memset(block, 1, LARGE);
    memrt__retention_budget_update(advance_time());
    ck_assert_uint_ge(memrt__retention_budget(), MUCH / MEMRT__RETENTION_SHARE);
    memrt__os_unmap(block, LARGE);
    memrt__retention_budget_update(advance_time());
    ck_assert_uint_lt(memrt__retention_budget(), MUCH / MEMRT__RETENTION_SHARE);
}

TEST(retention_budget_is_updated_once_per_interval)
{
    uint64_t now = advance_time();
    memrt__retention_budget_update(now);
    size_t before = memrt__retention_budget();
    char *block = memrt__os_map(LARGE, 0, 1);
    ck_assert_ptr_nonnull(block);
    memset(block, 1, LARGE);
    memrt__retention_budget_update(now + MEMRT__RETENTION_NS - 1);
    ck_assert_uint_eq(memrt__retention_budget(), before);
    memrt__retention_budget_update(now + MEMRT__RETENTION_NS);
    ck_assert_uint_gt(memrt__retention_budget(), before);
    memrt__os_unmap(block, LARGE);
}
