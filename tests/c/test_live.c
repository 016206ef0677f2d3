#include "support/suite.h"

#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/debug/live.h"
#include "support/crew.h"

/* Keys that no MemInfo has; the fixture sees those that a test forgets. */
#define KEY(i) ((uintptr_t)0x1000 + (uintptr_t)(i) * 64)
#define MANY 5000

static const memrt__live_trace_t trace = {.data = 0x5000, .size = 77, .policy = "of a trace"};

static void insert_all(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert(memrt__live_insert(KEY(i), 0, 1));
    }
}

static void remove_all(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert(memrt__live_remove(KEY(i), &trace));
    }
}

static void copy_entry(const memrt__live_entry_t *entry, void *context)
{
    *(memrt__live_entry_t *)context = *entry;
}

static memrt__live_entry_t entry_of(uintptr_t key)
{
    memrt__live_entry_t entry;
    ck_assert(memrt__live_visit(key, copy_entry, &entry));
    return entry;
}

TEST(a_key_is_in_the_set_from_insert_to_remove)
{
    ck_assert(!memrt__live_contains(KEY(0)));
    insert_all(1);
    ck_assert(memrt__live_contains(KEY(0)));
    ck_assert(memrt__live_remove(KEY(0), &trace));
    ck_assert(!memrt__live_contains(KEY(0)));
    ck_assert(!memrt__live_remove(KEY(0), &trace));
}

TEST(many_keys_survive_growth_and_removal_in_any_order)
{
    size_t before = memrt__live_count();
    insert_all(MANY);
    ck_assert_uint_eq(memrt__live_count(), before + MANY);
    for (size_t i = 0; i < MANY; i += 3) {
        ck_assert(memrt__live_remove(KEY(i), &trace));
    }
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(memrt__live_contains(KEY(i)), i % 3 != 0);
    }
    for (size_t i = MANY; i-- > 0;) {
        ck_assert_int_eq(memrt__live_remove(KEY(i), &trace), i % 3 != 0);
    }
    ck_assert_uint_eq(memrt__live_count(), before);
}

TEST(births_are_numbered_in_order)
{
    insert_all(100);
    for (size_t i = 1; i < 100; i++) {
        memrt__live_entry_t older = entry_of(KEY(i - 1)), younger = entry_of(KEY(i));
        ck_assert_uint_lt(older.id, younger.id);
        ck_assert(older.birth <= younger.birth);
    }
    remove_all(100);
}

TEST(a_name_can_be_given_changed_and_taken_away)
{
    insert_all(1);
    ck_assert(memrt__live_set_name(KEY(0), "first"));
    ck_assert_str_eq(entry_of(KEY(0)).name, "first");
    ck_assert(memrt__live_set_name(KEY(0), "second"));
    ck_assert_str_eq(entry_of(KEY(0)).name, "second");
    ck_assert(memrt__live_set_name(KEY(0), NULL));
    ck_assert_ptr_null(entry_of(KEY(0)).name);
    remove_all(1);
}

TEST(naming_a_key_that_is_not_in_the_set_adds_it)
{
    ck_assert(memrt__live_set_name(KEY(0), "new"));
    ck_assert_str_eq(entry_of(KEY(0)).name, "new");
    ck_assert(memrt__live_remove(KEY(0), &trace));
    ck_assert(!memrt__live_contains(KEY(0)));
}

/// Let the nth request of this thread fail from now on, or none.
static void fail_at(uint64_t nth)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .this_thread_only = 1};
    memrt__failure_set(nth == 0 ? NULL : &plan);
}

TEST(naming_that_fails_changes_nothing)
{
    insert_all(1);
    ck_assert(memrt__live_set_name(KEY(0), "kept"));
    fail_at(1);
    ck_assert(!memrt__live_set_name(KEY(0), "lost"));
    fail_at(1);
    ck_assert(!memrt__live_set_name(KEY(1), "lost"));
    fail_at(0);
    ck_assert_str_eq(entry_of(KEY(0)).name, "kept");
    ck_assert(!memrt__live_contains(KEY(1)));
    remove_all(1);
}

TEST(an_insert_without_memory_to_grow_changes_nothing)
{
    size_t before = memrt__live_count(), inserted = 0;
    memrt_failure_plan_t plan = {
        .struct_size = sizeof(plan), .nth = 1, .every = 1, .this_thread_only = 1};
    memrt__failure_set(&plan);
    while (memrt__live_insert(KEY(inserted), 0, 1)) {
        inserted++;
    }
    memrt__failure_set(NULL);
    ck_assert(!memrt__live_contains(KEY(inserted)));
    ck_assert_uint_eq(memrt__live_count(), before + inserted);
    ck_assert(memrt__live_insert(KEY(inserted), 0, 1));
    remove_all(inserted + 1);
}

TEST(a_key_that_left_is_remembered_with_its_name_and_what_it_stood_for)
{
    memrt__live_left_t left;
    ck_assert(!memrt__live_left(KEY(0), &left));
    insert_all(2);
    ck_assert(memrt__live_set_name(KEY(0), "gone"));
    remove_all(2);
    ck_assert(memrt__live_left(KEY(0), &left));
    ck_assert_str_eq(left.name, "gone");
    ck_assert_str_eq(left.policy, trace.policy);
    ck_assert_uint_eq(left.data, trace.data);
    ck_assert_uint_eq(left.size, trace.size);
    ck_assert(memrt__live_left(KEY(1), &left));
    ck_assert_str_eq(left.name, "");
}

TEST(of_keys_that_left_one_is_found_by_the_range_it_stood_in)
{
    memrt__live_left_t left;
    uintptr_t key = KEY(2 * MANY); /* which no other test has */
    ck_assert(!memrt__live_left_within(key, 1, &left));
    ck_assert(memrt__live_insert(key, 0, 1));
    ck_assert(memrt__live_remove(key, &trace));
    ck_assert(memrt__live_left_within(key - 10, 11, &left));
    ck_assert_uint_eq(left.key, key);
    ck_assert(!memrt__live_left_within(key - 10, 10, &left));
    ck_assert(!memrt__live_left_within(key + 1, 10, &left));
}

TEST(each_of_many_keys_that_left_is_found_right_after)
{
    memrt__live_left_t left;
    for (size_t i = 0; i < 1000; i++) { /* of which each part of the set has some */
        uintptr_t key = KEY(3 * MANY + i);
        ck_assert(memrt__live_insert(key, 0, 1));
        ck_assert(memrt__live_remove(key, &trace));
        ck_assert(memrt__live_left_within(key, 1, &left));
        ck_assert_uint_eq(left.key, key);
    }
}

TEST(of_a_key_that_left_often_the_last_time_is_told)
{
    memrt__live_left_t left;
    uintptr_t key = KEY(2 * MANY + 1);
    for (size_t i = 1; i <= 300; i++) {
        memrt__live_trace_t last = {.data = 0x5000, .size = i, .policy = "p"};
        ck_assert(memrt__live_insert(key, 0, 1));
        ck_assert(memrt__live_remove(key, &last));
        ck_assert(memrt__live_left_within(key, 1, &left));
        ck_assert_uint_eq(left.size, i);
    }
}

TEST(a_key_that_left_is_forgotten_after_many_others_left)
{
    memrt__live_left_t left;
    ck_assert(memrt__live_set_name(KEY(0), "gone"));
    ck_assert(memrt__live_remove(KEY(0), &trace));
    for (size_t i = 1; i < MANY; i++) {
        ck_assert(memrt__live_insert(KEY(i), 0, 1));
        ck_assert(memrt__live_remove(KEY(i), &trace));
    }
    ck_assert(!memrt__live_left(KEY(0), &left));
}

TEST(an_heir_has_the_identity_of_the_key_it_follows)
{
    ck_assert(memrt__live_set_name(KEY(0), "heirloom"));
    memrt__live_entry_t old = entry_of(KEY(0));
    ck_assert(memrt__live_insert(KEY(1), 0, 1));
    memrt__live_inherit(KEY(0), KEY(1));
    ck_assert(memrt__live_remove(KEY(0), &trace));
    memrt__live_entry_t heir = entry_of(KEY(1));
    ck_assert_uint_eq(heir.id, old.id);
    ck_assert_uint_eq(heir.birth, old.birth);
    ck_assert_uint_eq(heir.thread, old.thread);
    ck_assert_str_eq(heir.name, "heirloom");
    ck_assert(memrt__live_remove(KEY(1), &trace));
}

static void count_ours(const memrt__live_entry_t *entry, void *context)
{
    size_t *seen = context;
    if (entry->key >= KEY(0) && entry->key < KEY(MANY)) {
        seen[(entry->key - KEY(0)) / 64]++;
    }
}

TEST(visiting_all_sees_each_key_once)
{
    static size_t seen[MANY];
    memset(seen, 0, sizeof(seen));
    insert_all(MANY);
    memrt__live_visit_all(count_ours, seen);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(seen[i], 1);
    }
    remove_all(MANY);
    ck_assert(!memrt__live_visit(KEY(0), copy_entry, NULL));
}

/// Each thread has keys of its own and all of them look at everything.
static void come_and_go(size_t index, void *context)
{
    (void)context;
    for (size_t round = 0; round < 30; round++) {
        for (size_t i = 0; i < 100; i++) {
            REQUIRE(memrt__live_insert(KEY(index * 100 + i), 0, 1));
        }
        REQUIRE(memrt__live_set_name(KEY(index * 100), "mine"));
        REQUIRE(memrt__live_count() >= 100);
        for (size_t i = 0; i < 100; i++) {
            REQUIRE(memrt__live_remove(KEY(index * 100 + i), &trace));
        }
    }
}

TEST(threads_keep_their_keys_while_others_come_and_go)
{
    crew_run(4, come_and_go, NULL);
}

static void name_the_same(size_t index, void *context)
{
    (void)context;
    REQUIRE(memrt__live_set_name(KEY(0), index == 0 ? "zero" : "other"));
}

TEST(threads_that_name_one_key_add_it_once)
{
    for (int round = 0; round < 300; round++) {
        size_t before = memrt__live_count();
        crew_run(3, name_the_same, NULL);
        ck_assert_uint_eq(memrt__live_count(), before + 1);
        ck_assert(memrt__live_remove(KEY(0), &trace));
        ck_assert(!memrt__live_contains(KEY(0)));
    }
}
