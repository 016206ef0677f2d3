#include "support/suite.h"

#include <string.h>
#include <sys/resource.h>

#include "runtime/observe/intern_table.h"
#include "support/child.h"
#include "support/crew.h"

#define MANY 5000
#define THREADS 4

/* Sets are never destroyed, so each test has its own sets. */
static memrt__interns_t few, grown, shared, refused, full;

TEST(equal_strings_share_entry_and_number)
{
    const memrt__interned_t *first = memrt__intern(&few, "a string", 8);
    const memrt__interned_t *other = memrt__intern(&few, "a strinG", 8);
    const memrt__interned_t *start = memrt__intern(&few, "a str", 5);
    ck_assert_ptr_nonnull(first);
    ck_assert_uint_eq(first->number, 1);
    ck_assert_uint_eq(other->number, 2);
    ck_assert_uint_eq(start->number, 3);
    char copy[] = "a string and more";
    ck_assert_ptr_eq(memrt__intern(&few, copy, 8), first);
    ck_assert_uint_eq(first->length, 8);
    ck_assert_int_eq(memcmp(first->words, "a string", 8), 0);
}

TEST(unknown_number_returns_null)
{
    static memrt__interns_t none;
    ck_assert_ptr_null(memrt__interned_at(&none, 1));
    ck_assert_ptr_nonnull(memrt__intern(&none, "x", 1));
    ck_assert_ptr_null(memrt__interned_at(&none, 0));
    ck_assert_ptr_nonnull(memrt__interned_at(&none, 1));
    ck_assert_ptr_null(memrt__interned_at(&none, 2));
    ck_assert_ptr_null(memrt__interned_at(&none, UINT64_MAX));
}

static memrt__interned_t *intern_number(memrt__interns_t *set, uint64_t value)
{
    return memrt__intern(set, &value, sizeof(value));
}

TEST(interned_entries_keep_their_address_while_set_grows)
{
    memrt__interned_t *kept[MANY];
    for (size_t i = 0; i < MANY; i++) {
        kept[i] = intern_number(&grown, i * i);
        ck_assert_uint_eq(kept[i]->number, i + 1);
    }
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_ptr_eq(intern_number(&grown, i * i), kept[i]);
        ck_assert_ptr_eq(memrt__interned_at(&grown, i + 1), kept[i]);
    }
}

static memrt__interned_t *seen[THREADS][MANY];

static void intern_all(size_t seat, void *context)
{
    (void)context;
    for (size_t i = 0; i < MANY; i++) {
        uint64_t value = (i * (seat % 2 == 0 ? 1 : MANY - 1)) % MANY; /* odd seats go backwards */
        memrt__interned_t *found = intern_number(&shared, value);
        REQUIRE(found != NULL && found->words[0] == value);
        REQUIRE(memrt__interned_at(&shared, found->number) == found);
        seen[seat][value] = found;
    }
}

TEST(threads_interning_equal_values_get_same_entry)
{
    crew_run(THREADS, intern_all, NULL);
    ck_assert_uint_eq(shared.count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        for (size_t seat = 1; seat < THREADS; seat++) {
            ck_assert_ptr_eq(seen[seat][i], seen[0][i]);
        }
    }
}

static void intern_until_memory_ends(void *context)
{
    struct rlimit all, little = {(rlim_t)64 << 20, RLIM_INFINITY};
    memrt__interned_t *last = NULL, *found;
    (void)context;
    REQUIRE(getrlimit(RLIMIT_AS, &all) == 0);
    little.rlim_max = all.rlim_max;
    REQUIRE(setrlimit(RLIMIT_AS, &little) == 0);
    uint64_t value = 0;
    while ((found = intern_number(&refused, value)) != NULL) {
        last = found;
        value++;
    }
    REQUIRE(value < MEMRT__INTERNED_MAX && refused.count == value);
    REQUIRE(last == NULL || intern_number(&refused, value - 1) == last);
    REQUIRE(setrlimit(RLIMIT_AS, &all) == 0);
    REQUIRE(intern_number(&refused, value)->number == value + 1);
}

TEST(intern_without_memory_fails_and_later_succeeds)
{
    if (suite_measures_memory()) { /* sanitizers and Valgrind need more memory */
        child_expect_success(intern_until_memory_ends, NULL);
    }
}

TEST(full_set_refuses_new_strings)
{
    full.count = MEMRT__INTERNED_MAX;
    ck_assert_ptr_null(memrt__intern(&full, "more", 4));
}
