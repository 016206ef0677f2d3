#include "support/suite.h"

#include <stdio.h>
#include <string.h>

#include "runtime/symbols/stubs.h"
#include "support/child.h"
#include "support/crew.h"

/* Symbols are never removed, so each test has separate names. */

typedef int number_fn(int);
typedef memrt_function_t *const *users_slot_t;

static users_slot_t get_slot(const char *name)
{
    users_slot_t slot = NULL;
    ck_assert_int_eq(api->symbol_slot(name, &slot), MEMRT_OK);
    ck_assert_ptr_nonnull(slot);
    return slot;
}

/// Call a function through a slot, as compiled code does.
static int call_slot(users_slot_t slot, int argument)
{
    memrt_function_t *function = __atomic_load_n(slot, __ATOMIC_CONSUME);
    return ((number_fn *)function)(argument);
}

static int multiply_by_two(int number)
{
    return 2 * number;
}

static int multiply_by_three(int number)
{
    return 3 * number;
}

static void define_symbol(const char *name, number_fn *function)
{
    ck_assert_int_eq(api->symbol_define(name, (memrt_function_t *)function), MEMRT_OK);
}

static void undefine_symbol(const char *name)
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

TEST(each_name_has_single_slot)
{
    ck_assert_ptr_eq(get_slot("one slot"), get_slot("one slot"));
    ck_assert_ptr_ne(get_slot("one slot"), get_slot("One slot"));
    define_symbol("one slot", multiply_by_two);
    define_symbol("One slot", multiply_by_two);
    ck_assert_int_eq(call_slot(get_slot("one slot"), 21), 42);
    ck_assert_int_eq(api->symbol_error(NULL), MEMRT_OK);
    undefine_symbol("one slot");
    undefine_symbol("One slot");
}

TEST(call_of_undefined_symbol_sets_error_with_name)
{
    users_slot_t slot = get_slot("never defined");
    ck_assert_int_eq(call_slot(slot, 3), -1);
    expect_error("never defined");
    api->symbol_error(NULL);
}

TEST(undefined_symbol_accepts_any_arguments)
{
    users_slot_t slot = get_slot("of many arguments");
    typedef int many_fn(double, const char *, int, int, int, int, int, int, int, long double);
    typedef intptr_t none_fn(void);
    int got = ((many_fn *)*slot)(1.5, "text", 1, 2, 3, 4, 5, 6, 7, 2.5L);
    ck_assert_int_eq(got, -1);
    expect_error("of many arguments");
    ck_assert_int_eq(((none_fn *)*slot)(), -1);
    expect_error("of many arguments");
}

TEST(first_of_several_errors_is_kept)
{
    call_slot(get_slot("the first"), 0);
    call_slot(get_slot("the second"), 0);
    expect_error("the first");
}

static void call_on_a_thread(size_t index, void *slot)
{
    (void)index;
    REQUIRE(api->symbol_error(NULL) == MEMRT_OK);
    REQUIRE(call_slot(slot, 0) == -1);
    const char *name = NULL;
    REQUIRE(api->symbol_error(&name) == MEMRT_ENOENT);
    REQUIRE(strcmp(name, "of a thread") == 0);
}

TEST(errors_belong_to_calling_thread)
{
    users_slot_t slot = get_slot("of a thread");
    call_slot(get_slot("of this thread"), 0);
    crew_run(4, call_on_a_thread, (void *)slot);
    expect_error("of this thread");
}

TEST(unresolved_abort_sets_error_without_name)
{
    ck_assert_int_eq(api->unresolved_abort(), -1);
    expect_error(NULL);
}

TEST(definition_applies_to_earlier_and_later_slots)
{
    users_slot_t before = get_slot("defined later");
    ck_assert_int_eq(call_slot(before, 1), -1);
    expect_error("defined later");
    define_symbol("defined later", multiply_by_two);
    ck_assert_int_eq(call_slot(before, 4), 8);
    ck_assert_int_eq(call_slot(get_slot("defined later"), 5), 10);
    undefine_symbol("defined later");
}

TEST(symbol_may_be_defined_before_lookup)
{
    define_symbol("defined first", multiply_by_three);
    ck_assert_int_eq(call_slot(get_slot("defined first"), 2), 6);
    undefine_symbol("defined first");
}

TEST(second_definition_is_refused_unless_identical)
{
    define_symbol("defined twice", multiply_by_two);
    define_symbol("defined twice", multiply_by_two);
    memrt_function_t *other = (memrt_function_t *)multiply_by_three;
    ck_assert_int_eq(api->symbol_define("defined twice", other), MEMRT_EBUSY);
    ck_assert_int_eq(call_slot(get_slot("defined twice"), 2), 4);
    undefine_symbol("defined twice");
}

TEST(removed_symbol_is_error_until_defined_again)
{
    users_slot_t slot = get_slot("unloaded");
    define_symbol("unloaded", multiply_by_two);
    undefine_symbol("unloaded");
    undefine_symbol("unloaded");
    ck_assert_int_eq(call_slot(slot, 2), -1);
    expect_error("unloaded");
    define_symbol("unloaded", multiply_by_three);
    ck_assert_int_eq(call_slot(slot, 2), 6);
    undefine_symbol("unloaded");
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

TEST(invalid_symbol_names_are_refused)
{
    char longest[MEMRT_SYMBOL_MAX + 2];
    memset(longest, 'x', sizeof(longest));
    longest[MEMRT_SYMBOL_MAX + 1] = '\0';
    users_slot_t slot = NULL;
    const char *wrong[] = {NULL, "", longest};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(api->symbol_slot(wrong[i], &slot), MEMRT_EINVAL);
        ck_assert_int_eq(api->symbol_define(wrong[i], (memrt_function_t *)multiply_by_two),
                         MEMRT_EINVAL);
    }
    ck_assert_ptr_null(slot);
    ck_assert_int_eq(api->symbol_define("", NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->symbol_define("never requested", NULL), MEMRT_OK);
    ck_assert(!is_unresolved("never requested"));
    longest[MEMRT_SYMBOL_MAX] = '\0';
    call_slot(get_slot(longest), 0);
    expect_error(longest);
}

static void fail_at(uint64_t nth)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .every = 1};
    ck_assert_int_eq(api->fail_allocations(nth != 0 ? &plan : NULL), MEMRT_OK);
}

/// Define a symbol while the nth memory request and all later requests fail. Returns the status.
static memrt_status_t define_failing_at(uint64_t nth, const char *name)
{
    fail_at(nth);
    memrt_status_t status = api->symbol_define(name, (memrt_function_t *)multiply_by_two);
    fail_at(0);
    return status;
}

TEST(definition_can_be_retried_after_out_of_memory)
{
    users_slot_t slot = NULL;
    size_t before = api->symbols_unresolved(NULL, 0);
    for (uint64_t nth = 1; define_failing_at(nth, "starved") == MEMRT_ENOMEM; nth++) {
        ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), before);
        undefine_symbol("starved"); /* has no effect */
        fail_at(1);
        ck_assert_int_eq(api->symbol_slot("starved too", &slot), MEMRT_ENOMEM);
        fail_at(0);
    }
    ck_assert_int_eq(call_slot(get_slot("starved"), 21), 42);
    ck_assert_int_eq(call_slot(get_slot("starved too"), 1), -1);
    expect_error("starved too");
}

/// The name is already known when the request for the slot's memory fails.
TEST(name_without_slot_is_neither_defined_nor_listed)
{
    char name[20];
    users_slot_t slot;
    size_t before = api->symbols_unresolved(NULL, 0), refused = 0, asked = 5;
    for (uint64_t nth = 1; nth <= asked; nth++) {
        (void)snprintf(name, sizeof(name), "nameless %d", (int)nth);
        fail_at(nth);
        refused += api->symbol_slot(name, &slot) == MEMRT_ENOMEM;
        fail_at(0);
        undefine_symbol(name);
    }
    ck_assert_uint_ge(refused, 1);
    ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), before + asked - refused);
    (void)get_slot("with a slot");
    undefine_symbol("nameless 1");
    undefine_symbol("nameless 2");
    ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), before + asked - refused + 1);
}

TEST(only_undefined_symbols_are_listed)
{
    ck_assert(!is_unresolved("listed a"));
    get_slot("listed a");
    size_t count = api->symbols_unresolved(NULL, 0);
    define_symbol("listed b", multiply_by_two);
    ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), count);
    ck_assert(is_unresolved("listed a") && !is_unresolved("listed b"));
    define_symbol("listed a", multiply_by_two);
    ck_assert(!is_unresolved("listed a"));
    ck_assert_uint_eq(api->symbols_unresolved(NULL, 0), count - 1);
}

TEST(undefined_symbols_are_listed_oldest_first)
{
    static const char *const made[] = {"order m", "order z", "order a", "order q"};
    const char *names[10000];
    size_t before = api->symbols_unresolved(NULL, 0);
    for (size_t i = 0; i < 4; i++) {
        get_slot(made[i]);
    }
    define_symbol("order z", multiply_by_two);
    ck_assert_uint_eq(api->symbols_unresolved(names, 10000), before + 3);
    ck_assert_str_eq(names[before], "order m");
    ck_assert_str_eq(names[before + 1], "order a");
    ck_assert_str_eq(names[before + 2], "order q");
    undefine_symbol("order z"); /* the symbol keeps its place */
    ck_assert_uint_eq(api->symbols_unresolved(names, before + 2), before + 4);
    ck_assert_str_eq(names[before], "order m");
    ck_assert_str_eq(names[before + 1], "order z");
}

static const char *told_of;
static int takes_over;

static int record_symbol_error(const char *name)
{
    told_of = name;
    return takes_over;
}

TEST(error_callback_may_take_over_error)
{
    users_slot_t slot = get_slot("told");
    api->set_symbol_error(record_symbol_error);
    takes_over = 1;
    ck_assert_int_eq(call_slot(slot, 0), -1);
    ck_assert_str_eq(told_of, "told");
    ck_assert_int_eq(api->symbol_error(NULL), MEMRT_OK);
    takes_over = 0;
    told_of = NULL;
    call_slot(slot, 0);
    ck_assert_str_eq(told_of, "told");
    api->set_symbol_error(NULL);
    expect_error("told");
}

static const char *build_numbered_name(const char *what, size_t number)
{
    static _Thread_local char name[40];
    snprintf(name, sizeof(name), "%s %zu", what, number);
    return name;
}

/// Run in a child, because an undefined symbol keeps its stub for ever.
static void use_all_stubs(void *unused)
{
    (void)unused;
    static users_slot_t slots[3 * MEMRT_SYMBOLS_NAMED];
    size_t named = 0;
    for (size_t i = 0; i < 3 * MEMRT_SYMBOLS_NAMED; i++) {
        slots[i] = get_slot(build_numbered_name("one of many", i));
    }
    for (size_t i = 0; i < 3 * MEMRT_SYMBOLS_NAMED; i++) {
        const char *name = NULL;
        ck_assert_int_eq(call_slot(slots[i], 0), -1);
        ck_assert_int_eq(api->symbol_error(&name), MEMRT_ENOENT);
        ck_assert(name == NULL || strcmp(name, build_numbered_name("one of many", i)) == 0);
        named += name != NULL;
    }
    ck_assert_uint_gt(named, MEMRT_SYMBOLS_NAMED / 2);
    for (size_t i = 0; i < 3 * MEMRT_SYMBOLS_NAMED; i++) {
        define_symbol(build_numbered_name("one of many", i), multiply_by_two);
        ck_assert_int_eq(call_slot(slots[i], 1), 2);
    }
    for (size_t i = 0; i < MEMRT_SYMBOLS_NAMED; i++) {
        call_slot(get_slot(build_numbered_name("one more", i)), 0);
        api->symbol_error(NULL);
    }
    call_slot(get_slot("after all"), 0);
    expect_error(NULL);
}

TEST(symbols_beyond_stub_limit_work_without_error_names)
{
    child_expect_success(use_all_stubs, NULL);
}

TEST(freed_stub_is_not_reused_by_next_100_symbols)
{
    const char *name = "given up";
    users_slot_t slot = get_slot(name);
    memrt_function_t *stub = *slot;
    define_symbol(name, multiply_by_two);
    for (size_t i = 0; i < 100; i++) {
        const char *other = build_numbered_name("passing", i);
        ck_assert(*get_slot(other) != stub);
        define_symbol(other, multiply_by_two);
    }
    ((number_fn *)stub)(0); /* as a caller that had read the slot before the definition */
    expect_error(name);
    undefine_symbol(name);
}

#define ROUNDS 2000

/// Thread 0 defines and undefines the symbol. All other threads look up the slot and call the
/// function.
static void define_and_call(size_t index, void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        if (index == 0) {
            memrt_function_t *now = round % 2 == 0 ? (memrt_function_t *)multiply_by_two : NULL;
            REQUIRE(api->symbol_define("raced for", now) == MEMRT_OK);
            continue;
        }
        users_slot_t slot;
        REQUIRE(api->symbol_slot("raced for", &slot) == MEMRT_OK);
        int got = call_slot(slot, round + 1);
        const char *name = NULL;
        memrt_status_t status = api->symbol_error(&name);
        REQUIRE(got == -1 ? status == MEMRT_ENOENT && strcmp(name, "raced for") == 0
                          : got == 2 * (round + 1) && status == MEMRT_OK);
    }
}

TEST(calls_during_definition_get_function_or_error)
{
    crew_run(4, define_and_call, NULL);
    undefine_symbol("raced for");
}

static void get_slot_for_each(size_t index, void *unused)
{
    (void)unused;
    for (size_t i = 0; i < 200; i++) {
        users_slot_t slot;
        REQUIRE(api->symbol_slot(build_numbered_name("of all", i), &slot) == MEMRT_OK);
        REQUIRE(call_slot(slot, 0) == -1);
        const char *name = NULL;
        REQUIRE(api->symbol_error(&name) == MEMRT_ENOENT);
        REQUIRE(strcmp(name, build_numbered_name("of all", i)) == 0);
        (void)index;
    }
}

TEST(concurrent_lookups_of_same_names_give_working_slots)
{
    crew_run(4, get_slot_for_each, NULL);
}
