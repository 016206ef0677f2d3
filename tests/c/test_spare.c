#include "support/suite.h"

#include <string.h>

#include "runtime/alloc/spare.h"
#include "runtime/base/os.h"

#define LARGE ((size_t)256 << 20)
#define MUCH ((size_t)200 << 20)

TEST(what_the_process_has_in_memory_grows_with_what_it_touches)
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

/// Times of its own clock, later than any look of the runtime's own by then.
static uint64_t later(void)
{
    static uint64_t now;
    now = (now == 0 ? memrt__os_now_ns() : now) + 1000 * MEMRT__SPARE_NS;
    return now;
}

TEST(what_may_be_spare_is_a_share_of_what_the_process_has_in_memory)
{
    memrt__spare_look(later());
    size_t little = memrt__spare();
    ck_assert_uint_ge(little, MEMRT__SPARE_MIN);
    char *block = memrt__os_map(LARGE, 0, 1);
    ck_assert_ptr_nonnull(block);
    memset(block, 1, LARGE);
    memrt__spare_look(later());
    ck_assert_uint_ge(memrt__spare(), MUCH / MEMRT__SPARE_SHARE);
    memrt__os_unmap(block, LARGE);
    memrt__spare_look(later());
    ck_assert_uint_lt(memrt__spare(), MUCH / MEMRT__SPARE_SHARE);
}

TEST(a_look_counts_for_a_while)
{
    uint64_t now = later();
    memrt__spare_look(now);
    size_t before = memrt__spare();
    char *block = memrt__os_map(LARGE, 0, 1);
    ck_assert_ptr_nonnull(block);
    memset(block, 1, LARGE);
    memrt__spare_look(now + MEMRT__SPARE_NS - 1);
    ck_assert_uint_eq(memrt__spare(), before);
    memrt__spare_look(now + MEMRT__SPARE_NS);
    ck_assert_uint_gt(memrt__spare(), before);
    memrt__os_unmap(block, LARGE);
}
