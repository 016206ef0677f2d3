#include "support/suite.h"

#include "runtime/alloc/guard/quarantine.h"

#define BLOCKS MEMRT__QUARANTINE_BLOCKS

static char blocks[BLOCKS + 1];

TEST(quarantine_is_first_in_first_out)
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

TEST(quarantine_refuses_blocks_beyond_its_block_limit)
{
    memrt__quarantine_t quarantine = {0};
    for (size_t i = 0; i < BLOCKS; i++) {
        ck_assert(memrt__quarantine_put(&quarantine, &blocks[i], 1));
    }
    ck_assert(!memrt__quarantine_put(&quarantine, &blocks[BLOCKS], 1));
    ck_assert_ptr_eq(memrt__quarantine_take(&quarantine), &blocks[0]);
    ck_assert(memrt__quarantine_put(&quarantine, &blocks[BLOCKS], 1));
}

TEST(quarantine_refuses_blocks_beyond_its_byte_limit)
{
    memrt__quarantine_t quarantine = {0};
    ck_assert(!memrt__quarantine_put(&quarantine, &blocks[0], MEMRT__QUARANTINE_BYTES + 1));
    ck_assert(memrt__quarantine_put(&quarantine, &blocks[0], MEMRT__QUARANTINE_BYTES - 1));
    ck_assert(!memrt__quarantine_put(&quarantine, &blocks[1], 2));
    ck_assert(memrt__quarantine_put(&quarantine, &blocks[1], 1));
    ck_assert_ptr_eq(memrt__quarantine_take(&quarantine), &blocks[0]);
    ck_assert(memrt__quarantine_put(&quarantine, &blocks[2], 2));
}

static bool is_second_block(void *ptr, void *seen)
{
    ++*(size_t *)seen;
    return ptr == &blocks[1];
}

TEST(quarantine_visit_starts_at_oldest_and_ends_on_request)
{
    memrt__quarantine_t quarantine = {0};
    size_t seen = 0;
    ck_assert(!memrt__quarantine_visit(&quarantine, is_second_block, &seen));
    for (size_t i = 0; i < 3; i++) {
        ck_assert(memrt__quarantine_put(&quarantine, &blocks[i], 1));
    }
    ck_assert(memrt__quarantine_visit(&quarantine, is_second_block, &seen));
    ck_assert_uint_eq(seen, 2);
}
