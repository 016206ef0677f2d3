#include "support/suite.h"

#include "runtime/base/atomics.h"
#include "support/crew.h"

#define ROUNDS 20000
#define CREW 4

TEST(loads_see_what_stores_wrote)
{
    size_t word = 0;
    memrt__store_relaxed(&word, 5);
    ck_assert_uint_eq(memrt__load_relaxed(&word), 5);
    memrt__store_release(&word, SIZE_MAX);
    ck_assert_uint_eq(memrt__load_acquire(&word), SIZE_MAX);
}

TEST(fetching_operations_return_the_value_from_before)
{
    size_t word = 10;
    ck_assert_uint_eq(memrt__fetch_add_relaxed(&word, 5), 10);
    ck_assert_uint_eq(memrt__fetch_add_release(&word, (size_t)0 - 5), 15);
    ck_assert_uint_eq(memrt__fetch_sub1_release(&word), 10);
    ck_assert_uint_eq(word, 9);
}

TEST(compare_and_swap_writes_only_over_what_was_expected)
{
    size_t word = 1;
    ck_assert(!memrt__cas_acquire(&word, 2, 3));
    ck_assert_uint_eq(word, 1);
    ck_assert(memrt__cas_acquire(&word, 1, 3));
    ck_assert(!memrt__cas_relaxed(&word, 1, 4));
    ck_assert(memrt__cas_relaxed(&word, 3, 4));
    ck_assert_uint_eq(word, 4);
}

TEST(setting_flags_returns_those_from_before_and_keeps_the_others)
{
    unsigned flags = 1;
    ck_assert_uint_eq(memrt__flags_set_relaxed(&flags, 4), 1);
    ck_assert_uint_eq(memrt__flags_set_relaxed(&flags, 4), 5);
    ck_assert_uint_eq(memrt__flags_load_relaxed(&flags), 5);
}

TEST(own_words_are_added_to_in_both_orders)
{
    size_t word = 1;
    memrt__own_add(&word, 2);
    memrt__own_add_release(&word, (size_t)0 - 1);
    ck_assert_uint_eq(word, 2);
}

TEST(raising_reads_the_word_as_signed)
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
    size_t firsts; ///< who set flag 1 first
} contested_t;

static void contend(size_t index, void *context)
{
    contested_t *words = context;
    for (size_t i = 0; i < ROUNDS; i++) {
        memrt__fetch_add_relaxed(&words->sum, 1);
        memrt__raise_release(&words->highest, i * CREW + index);
    }
    unsigned before = memrt__flags_set_relaxed(&words->flags, 1u | (2u << index));
    memrt__fetch_add_relaxed(&words->firsts, (before & 1u) == 0);
}

TEST(contended_words_lose_nothing)
{
    contested_t words = {0};
    crew_run(CREW, contend, &words);
    ck_assert_uint_eq(words.sum, (size_t)CREW * ROUNDS);
    ck_assert_uint_eq(words.highest, (size_t)CREW * ROUNDS - 1);
    ck_assert_uint_eq(words.flags, 1u | (2u * ((1u << CREW) - 1)));
    ck_assert_uint_eq(words.firsts, 1);
}

typedef struct message {
    size_t text; ///< plain: the flag publishes it
    size_t flag;
} message_t;

static void pass_on(size_t index, void *context)
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

TEST(a_release_store_publishes_to_an_acquire_load)
{
    for (int round = 0; round < 50; round++) {
        message_t message = {0};
        crew_run(2, pass_on, &message);
    }
}
