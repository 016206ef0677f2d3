#include "support/suite.h"

#include "runtime/base/atomics.h"
#include "support/crew.h"

#define ROUNDS 20000
#define CREW 4

TEST(load_returns_stored_value)
{
    size_t word = 0;
    memrt__store_relaxed(&word, 5);
    ck_assert_uint_eq(memrt__load_relaxed(&word), 5);
    memrt__store_release(&word, SIZE_MAX);
    ck_assert_uint_eq(memrt__load_acquire(&word), SIZE_MAX);
}

TEST(fetch_operations_return_previous_value)
{
    size_t word = 10;
    ck_assert_uint_eq(memrt__fetch_add_relaxed(&word, 5), 10);
    ck_assert_uint_eq(memrt__fetch_add_release(&word, (size_t)0 - 5), 15);
    ck_assert_uint_eq(memrt__fetch_sub1_release(&word), 10);
    ck_assert_uint_eq(word, 9);
}

TEST(own_words_are_added_to_and_not_taken_below_zero)
{
    size_t word = 0;
    memrt__own_add(&word, 7);
    memrt__own_add_release(&word, SIZE_MAX); /* -1 */
    ck_assert_uint_eq(memrt__own_load(&word), 6);
    ck_assert(!memrt__own_take_release(&word, 7));
    ck_assert_uint_eq(word, 6);
    ck_assert(memrt__own_take_release(&word, 6));
    ck_assert(memrt__own_take_release(&word, 0));
    ck_assert(!memrt__own_take_release(&word, 1));
    ck_assert_uint_eq(word, 0);
}

TEST(compare_and_swap_writes_only_if_value_matches)
{
    size_t word = 1;
    ck_assert(!memrt__cas_acquire(&word, 2, 3));
    ck_assert_uint_eq(word, 1);
    ck_assert(memrt__cas_acquire(&word, 1, 3));
    ck_assert(!memrt__cas_relaxed(&word, 1, 4));
    ck_assert(memrt__cas_relaxed(&word, 3, 4));
    ck_assert_uint_eq(word, 4);
}

TEST(setting_flags_returns_old_flags_and_keeps_other_bits)
{
    unsigned flags = 1;
    ck_assert_uint_eq(memrt__flags_set_relaxed(&flags, 4), 1);
    ck_assert_uint_eq(memrt__flags_set_relaxed(&flags, 4), 5);
    ck_assert_uint_eq(memrt__flags_load_relaxed(&flags), 5);
}

TEST(own_add_works_with_relaxed_and_release_order)
{
    size_t word = 1;
    memrt__own_add(&word, 2);
    memrt__own_add_release(&word, (size_t)0 - 1);
    ck_assert_uint_eq(word, 2);
}

TEST(raise_compares_words_as_signed)
{
    size_t word = (size_t)0 - 100;
    memrt__raise_release(&word, 7);
    ck_assert_uint_eq(word, 7);
    memrt__raise_release(&word, 6);
    memrt__raise_release(&word, (size_t)0 - 1);
    ck_assert_uint_eq(word, 7);
}

typedef struct contested {
    size_t sum, highest;
    unsigned flags;
    size_t firsts; ///< threads that were first to set flag 1
} contested_t;

static void contend_for_words(size_t index, void *context)
{
    contested_t *words = context;
    for (size_t i = 0; i < ROUNDS; i++) {
        memrt__fetch_add_relaxed(&words->sum, 1);
        memrt__raise_release(&words->highest, i * CREW + index);
    }
    unsigned before = memrt__flags_set_relaxed(&words->flags, 1u | (2u << index));
    memrt__fetch_add_relaxed(&words->firsts, (before & 1u) == 0);
}

TEST(concurrent_atomic_updates_are_never_lost)
{
    contested_t words = {0};
    crew_run(CREW, contend_for_words, &words);
    ck_assert_uint_eq(words.sum, (size_t)CREW * ROUNDS);
    ck_assert_uint_eq(words.highest, (size_t)CREW * ROUNDS - 1);
    ck_assert_uint_eq(words.flags, 1u | (2u * ((1u << CREW) - 1)));
    ck_assert_uint_eq(words.firsts, 1);
}

typedef struct message {
    size_t text; ///< plain word, published by the flag
    size_t flag;
} message_t;

static void pass_message(size_t index, void *context)
{
    message_t *message = context;
    if (index == 0) {
        message->text = 42;
        memrt__store_release(&message->flag, 1);
    } else {
        while (memrt__load_acquire(&message->flag) == 0) {
        }
        REQUIRE(message->text == 42);
    }
}

TEST(release_store_publishes_data_to_acquire_load)
{
    for (int round = 0; round < 50; round++) {
        message_t message = {0};
        crew_run(2, pass_message, &message);
    }
}
