#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#include "runtime/stubs.h"
#include "support/child.h"
#include "support/crew.h"

/* Symbols stay for good, so each test has names of its own. */

typedef int number_fn(int);
typedef memrt_function_t *const *users_slot_t;

static users_slot_t slot_of(const char *name)
{
    users_slot_t slot = NULL;
    ck_assert_int_eq(api->symbol_slot(name, &slot), MEMRT_OK);
    ck_assert_ptr_nonnull(slot);
    return slot;
}

/// What compiled code does.
static int call(users_slot_t slot, int argument)
{
    memrt_function_t *function = __atomic_load_n(slot, __ATOMIC_CONSUME);
    return ((number_fn *)function)(argument);
}

static int twice(int number)
{
    return 2 * number;
}

static int thrice(int number)
{
    return 3 * number;
}

static void define(const char *name, number_fn *function)
{
    ck_assert_int_eq(api->symbol_define(name, (memrt_function_t *)function), MEMRT_OK);
}

static void undefine(const char *name)
{
    ck_assert_int_eq(api->symbol_define(name, NULL), MEMRT_OK);
}

static void expect_error(const char *wanted)
{
    const char *name = "none";
    ck_assert_int_eq(api->symbol_error(&name), MEMRT_ENOENT);
    if (wanted == NULL) {
        ck_assert_ptr_null(name);
    } else {
        ck_assert_str_eq(name, wanted);
    }
    ck_assert_int_eq(api->symbol_error(&name), MEMRT_OK);
}

TEST(all_who_ask_for_a_name_get_one_slot)
{
    ck_assert_ptr_eq(slot_of("one slot"), slot_of("one slot"));
    ck_assert_ptr_ne(slot_of("one slot"), slot_of("One slot"));
    define("one slot", twice);
    define("One slot", twice);
    ck_assert_int_eq(call(slot_of("one slot"), 21), 42);
    ck_assert_int_eq(api->symbol_error(NULL), MEMRT_OK);
    undefine("one slot");
    undefine("One slot");
}

TEST(a_symbol_that_nobody_defined_leaves_an_error_with_its_name)
{
    users_slot_t slot = slot_of("never defined");
    ck_assert_int_eq(call(slot, 3), -1);
    expect_error("never defined");
    api->symbol_error(NULL);
}

TEST(it_may_be_called_with_any_arguments)
{
    users_slot_t slot = slot_of("of many arguments");
    typedef int many_fn(double, const char *, int, int, int, int, int, int, int, long double);
    typedef intptr_t none_fn(void);
    int got = ((many_fn *)*slot)(1.5, "text", 1, 2, 3, 4, 5, 6, 7, 2.5L);
    ck_assert_int_eq(got, -1);
    expect_error("of many arguments");
    ck_assert_int_eq(((none_fn *)*slot)(), -1);
    expect_error("of many arguments");
}

TEST(the_first_of_several_errors_is_kept)
{
    call(slot_of("the first"), 0);
    call(slot_of("the second"), 0);
    expect_error("the first");
}

static void call_on_a_thread(size_t index, void *slot)
{
    (void)index;
    REQUIRE(api->symbol_error(NULL) == MEMRT_OK);
    REQUIRE(call(slot, 0) == -1);
    const char *name = NULL;
    REQUIRE(api->symbol_error(&name) == MEMRT_ENOENT);
    REQUIRE(strcmp(name, "of a thread") == 0);
}

TEST(errors_belong_to_the_thread_of_the_call)
{
    users_slot_t slot = slot_of("of a thread");
    call(slot_of("of this thread"), 0);
    crew_run(4, call_on_a_thread, (void *)slot);
    expect_error("of this thread");
}

TEST(the_function_that_stands_for_no_symbol_has_no_name)
{
    ck_assert_int_eq(api->unresolved_abort(), -1);
    expect_error(NULL);
}

TEST(users_before_and_after_the_definition_call_the_function)
{
    users_slot_t before = slot_of("defined later");
    ck_assert_int_eq(call(before, 1), -1);
    expect_error("defined later");
    define("defined later", twice);
    ck_assert_int_eq(call(before, 4), 8);
    ck_assert_int_eq(call(slot_of("defined later"), 5), 10);
    undefine("defined later");
}

TEST(a_symbol_may_be_defined_before_anybody_asks)
{
    define("defined first", thrice);
    ck_assert_int_eq(call(slot_of("defined first"), 2), 6);
    undefine("defined first");
}

TEST(another_definition_is_refused_and_the_same_is_none)
{
    define("defined twice", twice);
    define("defined twice", twice);
    memrt_function_t *other = (memrt_function_t *)thrice;
    ck_assert_int_eq(api->symbol_define("defined twice", other), MEMRT_EBUSY);
    ck_assert_int_eq(call(slot_of("defined twice"), 2), 4);
    undefine("defined twice");
}

TEST(what_is_not_defined_any_more_is_an_error_until_it_is_again)
{
    users_slot_t slot = slot_of("unloaded");
    define("unloaded", twice);
    undefine("unloaded");
    undefine("unloaded");
    ck_assert_int_eq(call(slot, 2), -1);
    expect_error("unloaded");
    define("unloaded", thrice);
    ck_assert_int_eq(call(slot, 2), 6);
    undefine("unloaded");
}

static bool is_unresolved(const char *name)
{
    static const char *names[10000];
    size_t count = api->symbols_unresolved(names, 10000);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

TEST(what_is_no_name_is_refused)
{
    char longest[MEMRT_SYMBOL_MAX + 2];
    memset(longest, 'x', sizeof(longest));
    longest[MEMRT_SYMBOL_MAX + 1] = '\0';
    users_slot_t slot = NULL;
    const char *wrong[] = {NULL, "", longest};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(api->symbol_slot(wrong[i], &slot), MEMRT_EINVAL);
        ck_assert_int_eq(api->symbol_define(wrong[i], (memrt_function_t *)twice), MEMRT_EINVAL);
    }
    ck_assert_ptr_null(slot);
    ck_assert_int_eq(api->symbol_define("", NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->symbol_define("nobody asked for it", NULL), MEMRT_OK);
    ck_assert(!is_unresolved("nobody asked for it"));
    longest[MEMRT_SYMBOL_MAX] = '\0';
    call(slot_of(longest), 0);
    expect_error(longest);
}

static void fail_at(uint64_t nth)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .every = 1};
    ck_assert_int_eq(api->fail_allocations(nth != 0 ? &plan : NULL), MEMRT_OK);
}

/// Refused at the nth request of memory and from there on; how it ended.
static memrt_status_t define_failing_at(uint64_t nth, const char *name)
{
    fail_at(nth);
    memrt_status_t status = api->symbol_define(name, (memrt_function_t *)twice);
    fail_at(0);
    return status;
}

TEST(without_memory_nothing_is_defined_and_later_it_is)
{
    users_slot_t slot = NULL;
    size_t before = api->symbols_unresolved(NULL, 0);
    for (uint64_t nth = 1; define_failing_at(nth, "starved") == MEMRT_ENOMEM; nth++) {
        ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), before);
        undefine("starved"); /* which it was not */
        fail_at(1);
        ck_assert_int_eq(api->symbol_slot("starved too", &slot), MEMRT_ENOMEM);
        fail_at(0);
    }
    ck_assert_int_eq(call(slot_of("starved"), 21), 42);
    ck_assert_int_eq(call(slot_of("starved too"), 1), -1);
    expect_error("starved too");
}

/// The name is known when the request for the memory of its slot is refused.
TEST(a_name_without_a_slot_is_neither_defined_nor_listed)
{
    char name[20];
    users_slot_t slot;
    size_t before = api->symbols_unresolved(NULL, 0), refused = 0, asked = 5;
    for (uint64_t nth = 1; nth <= asked; nth++) {
        (void)snprintf(name, sizeof(name), "nameless %d", (int)nth);
        fail_at(nth);
        refused += api->symbol_slot(name, &slot) == MEMRT_ENOMEM;
        fail_at(0);
        undefine(name);
    }
    ck_assert_uint_ge(refused, 1);
    ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), before + asked - refused);
    (void)slot_of("with a slot");
    undefine("nameless 1");
    undefine("nameless 2");
    ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), before + asked - refused + 1);
}

TEST(those_that_are_not_defined_are_listed_oldest_first)
{
    ck_assert(!is_unresolved("listed a"));
    slot_of("listed a");
    size_t count = api->symbols_unresolved(NULL, 0);
    define("listed b", twice);
    ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), count);
    ck_assert(is_unresolved("listed a") && !is_unresolved("listed b"));
    define("listed a", twice);
    ck_assert(!is_unresolved("listed a"));
    ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), count - 1);
}

static const char *told_of;
static int takes_over;

static int tell(const char *name)
{
    told_of = name;
    return takes_over;
}

TEST(who_asked_to_be_told_may_take_the_error_over)
{
    users_slot_t slot = slot_of("told");
    api->set_symbol_error(tell);
    takes_over = 1;
    ck_assert_int_eq(call(slot, 0), -1);
    ck_assert_str_eq(told_of, "told");
    ck_assert_int_eq(api->symbol_error(NULL), MEMRT_OK);
    takes_over = 0;
    told_of = NULL;
    call(slot, 0);
    ck_assert_str_eq(told_of, "told");
    api->set_symbol_error(NULL);
    expect_error("told");
}

static const char *numbered(const char *what, size_t number)
{
    static _Thread_local char name[40];
    snprintf(name, sizeof(name), "%s %zu", what, number);
    return name;
}

/// In a child, since what nobody defines takes a stub for good.
static void take_all_stubs(void *unused)
{
    (void)unused;
    static users_slot_t slots[3 * MEMRT_SYMBOLS_NAMED];
    size_t named = 0;
    for (size_t i = 0; i < 3 * MEMRT_SYMBOLS_NAMED; i++) {
        slots[i] = slot_of(numbered("one of many", i));
    }
    for (size_t i = 0; i < 3 * MEMRT_SYMBOLS_NAMED; i++) {
        const char *name = NULL;
        ck_assert_int_eq(call(slots[i], 0), -1);
        ck_assert_int_eq(api->symbol_error(&name), MEMRT_ENOENT);
        ck_assert(name == NULL || strcmp(name, numbered("one of many", i)) == 0);
        named += name != NULL;
    }
    ck_assert_uint_gt(named, MEMRT_SYMBOLS_NAMED / 2);
    for (size_t i = 0; i < 3 * MEMRT_SYMBOLS_NAMED; i++) {
        define(numbered("one of many", i), twice);
        ck_assert_int_eq(call(slots[i], 1), 2);
    }
    for (size_t i = 0; i < MEMRT_SYMBOLS_NAMED; i++) {
        call(slot_of(numbered("one more", i)), 0);
        api->symbol_error(NULL);
    }
    call(slot_of("after all"), 0);
    expect_error(NULL);
}

TEST(beyond_a_thousand_that_are_not_defined_they_have_no_names_and_work)
{
    child_expect_success(take_all_stubs, NULL);
}

TEST(a_stub_goes_to_another_symbol_after_all_others_did)
{
    const char *name = "given up";
    users_slot_t slot = slot_of(name);
    memrt_function_t *stub = *slot;
    define(name, twice);
    for (size_t i = 0; i < 100; i++) {
        const char *other = numbered("passing", i);
        ck_assert(*slot_of(other) != stub);
        define(other, twice);
    }
    ((number_fn *)stub)(0); /* as who had read the slot before it was defined */
    expect_error(name);
    undefine(name);
}

#define ROUNDS 2000

/// The first thread defines and takes away, the others ask for the slot and call.
static void define_and_call(size_t index, void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        if (index == 0) {
            memrt_function_t *now = round % 2 == 0 ? (memrt_function_t *)twice : NULL;
            REQUIRE(api->symbol_define("raced for", now) == MEMRT_OK);
            continue;
        }
        users_slot_t slot;
        REQUIRE(api->symbol_slot("raced for", &slot) == MEMRT_OK);
        int got = call(slot, round + 1);
        const char *name = NULL;
        memrt_status_t status = api->symbol_error(&name);
        REQUIRE(got == -1 ? status == MEMRT_ENOENT && strcmp(name, "raced for") == 0
                          : got == 2 * (round + 1) && status == MEMRT_OK);
    }
}

TEST(calls_meet_the_function_or_the_error_while_it_is_defined)
{
    crew_run(4, define_and_call, NULL);
    undefine("raced for");
}

static void slot_for_each(size_t index, void *unused)
{
    (void)unused;
    for (size_t i = 0; i < 200; i++) {
        users_slot_t slot;
        REQUIRE(api->symbol_slot(numbered("of all", i), &slot) == MEMRT_OK);
        REQUIRE(call(slot, 0) == -1);
        const char *name = NULL;
        REQUIRE(api->symbol_error(&name) == MEMRT_ENOENT);
        REQUIRE(strcmp(name, numbered("of all", i)) == 0);
        (void)index;
    }
}

TEST(threads_that_ask_for_the_same_names_at_once_get_the_same_slots)
{
    crew_run(4, slot_for_each, NULL);
}
