#include "support/suite.h"

#include "runtime/alloc/quarantine.h"

#define BLOCKS MEMRT__QUARANTINE_BLOCKS

static char blocks[BLOCKS + 1];

TEST(what_was_put_in_first_comes_out_first)
{
    memrt__quarantine_t quarantine = {0};
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 100; i++) {
            ck_assert(memrt__quarantine_put(&quarantine, &blocks[i], 10));
        }
        for (size_t i = 0; i < 100; i++) {
            ck_assert_ptr_eq(memrt__quarantine_take(&quarantine), &blocks[i]);
        }
        ck_assert_ptr_null(memrt__quarantine_take(&quarantine));
    }
}

TEST(there_is_room_for_so_many_blocks)
{
    memrt__quarantine_t quarantine = {0};
    for (size_t i = 0; i < BLOCKS; i++) {
        ck_assert(memrt__quarantine_put(&quarantine, &blocks[i], 1));
    }
    ck_assert(!memrt__quarantine_put(&quarantine, &blocks[BLOCKS], 1));
    ck_assert_ptr_eq(memrt__quarantine_take(&quarantine), &blocks[0]);
    ck_assert(memrt__quarantine_put(&quarantine, &blocks[BLOCKS], 1));
}

TEST(there_is_room_for_so_many_bytes)
{
    memrt__quarantine_t quarantine = {0};
    ck_assert(!memrt__quarantine_put(&quarantine, &blocks[0], MEMRT__QUARANTINE_BYTES + 1));
    ck_assert(memrt__quarantine_put(&quarantine, &blocks[0], MEMRT__QUARANTINE_BYTES - 1));
    ck_assert(!memrt__quarantine_put(&quarantine, &blocks[1], 2));
    ck_assert(memrt__quarantine_put(&quarantine, &blocks[1], 1));
    ck_assert_ptr_eq(memrt__quarantine_take(&quarantine), &blocks[0]);
    ck_assert(memrt__quarantine_put(&quarantine, &blocks[2], 2));
}

static bool is_second(void *ptr, void *seen)
{
    ++*(size_t *)seen;
    return ptr == &blocks[1];
}

TEST(a_visit_goes_from_the_oldest_on_until_it_is_ended)
{
    memrt__quarantine_t quarantine = {0};
    size_t seen = 0;
    ck_assert(!memrt__quarantine_visit(&quarantine, is_second, &seen));
    for (size_t i = 0; i < 3; i++) {
        ck_assert(memrt__quarantine_put(&quarantine, &blocks[i], 1));
    }
    ck_assert(memrt__quarantine_visit(&quarantine, is_second, &seen));
    ck_assert_uint_eq(seen, 2);
}
