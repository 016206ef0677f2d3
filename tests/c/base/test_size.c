#include "support/suite.h"

#include "runtime/base/size.h"

TEST(size_add_and_mul_detect_overflow)
{
    size_t out;
    ck_assert(memrt__size_add(SIZE_MAX - 1, 1, &out));
    ck_assert_uint_eq(out, SIZE_MAX);
    ck_assert(!memrt__size_add(SIZE_MAX, 1, &out));
    ck_assert(memrt__size_mul(SIZE_MAX / 4, 4, &out));
    ck_assert_uint_eq(out, SIZE_MAX - 3);
    ck_assert(!memrt__size_mul(SIZE_MAX / 2, 4, &out));
    ck_assert(memrt__size_mul(0, SIZE_MAX, &out));
    ck_assert_uint_eq(out, 0);
}

TEST(powers_of_two_and_their_log2_are_recognized)
{
    ck_assert(!memrt__is_power_of_two(0));
    ck_assert(!memrt__is_power_of_two(3));
    ck_assert(!memrt__is_power_of_two(SIZE_MAX));
    for (unsigned bit = 0; bit < 64; bit++) {
        ck_assert(memrt__is_power_of_two((size_t)1 << bit));
        ck_assert_uint_eq(memrt__log2((size_t)1 << bit), bit);
    }
}

TEST(round_up_gives_the_smallest_multiple_not_below)
{
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t n = 0; n < 200; n++) {
            size_t out;
            ck_assert(memrt__size_round_up(n, align, &out));
            ck_assert(out >= n && out < n + align && out % align == 0);
        }
    }
}

TEST(round_up_fails_on_overflow)
{
    size_t out;
    ck_assert(!memrt__size_round_up(SIZE_MAX, 2, &out));
    ck_assert(!memrt__size_round_up(SIZE_MAX - 4094, 4096, &out));
    ck_assert(memrt__size_round_up(SIZE_MAX - 4095, 4096, &out));
    ck_assert_uint_eq(out, SIZE_MAX - 4095);
}

TEST(size_min_and_max_pick_the_right_value)
{
    ck_assert_uint_eq(memrt__size_min(3, SIZE_MAX), 3);
    ck_assert_uint_eq(memrt__size_min(SIZE_MAX, 3), 3);
    ck_assert_uint_eq(memrt__size_max(3, SIZE_MAX), SIZE_MAX);
    ck_assert_uint_eq(memrt__size_max(SIZE_MAX, 3), SIZE_MAX);
}
