/// No library replaces the runner: Check itself keeps no accounts of memrt around a test.

#include "support/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MEMRT_VALGRIND
#include <valgrind/valgrind.h>
#endif

#include "runtime/alloc/heap/purger.h"
#include "runtime/base/atomics.h"
#include "runtime/config/fault_injection.h"
#include "runtime/config/options.h"
#include "runtime/pressure/pressure_thread.h"
#include "runtime/runtime.h"
#include "support/books.h"
#include "support/kernel.h"

/* Refused sizes are tested: like other allocators, a sanitizer's allocator must return NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

typedef struct entry {
    const TTest *test;
    int count;
} entry_t;

const memrt_api_t *api;

static entry_t entries[256];
static size_t entry_count;
static books_t before;
static memrt__options_t options_before;

void suite_add(const TTest *test, int count)
{
    REQUIRE(entry_count < sizeof(entries) / sizeof(entries[0]));
    entries[entry_count++] = (entry_t){test, count};
}

void suite_mark(const char *file, int line)
{
    static size_t marks;
    size_t number = memrt__fetch_add_relaxed(&marks, 1);
    if (number < 1000 || number % 64 == 0) {
        _mark_point(file, line);
    }
}

_Noreturn void suite_fail(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: required: %s\n", file, line, condition);
    abort();
}

bool suite_is_under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL;
}

bool suite_measures_memory(void)
{
    return !suite_is_under_valgrind() && !SUITE_ADDRESS_SANITIZER && !SUITE_THREAD_SANITIZER;
}

unsigned suite_number(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : (unsigned)strtoul(text, NULL, 10);
}

void suite_set_decay(size_t milliseconds)
{
    memrt__purger_stop(); /* the purger reads the option */
    memrt__options.decay = milliseconds;
    memrt__options.cache_limit = SIZE_MAX;
}

void suite_expect_valid(void)
{
#if MEMRT_DEBUG
    if (!memrt__runtime_is_valid()) {
        ck_abort_msg("broken invariant: %s", memrt__invariant_broken());
    }
#endif
}

static void open_books(void)
{
    options_before = memrt__options;
    if (suite_prepare != NULL) {
        suite_prepare();
    }
    before = books_now();
}

static void close_books(void)
{
    kernel_obey();
    memrt__pressure_stop(); /* may start the purger; both threads read the options */
    memrt__purger_stop();
    memrt__options = options_before;
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    suite_expect_valid();
    books_expect_no_leak(&before);
}

/// In a forked child under memcheck: do not search for leaks. A child ends in the middle of a test,
/// and has blocks of threads that it lacks.
static void skip_leak_check(void)
{
#if MEMRT_VALGRIND
    VALGRIND_CLO_CHANGE("--leak-check=no");
#endif
}

static Suite *create_suite(const char *program)
{
    const char *slash = strrchr(program, '/');
    Suite *suite = suite_create(slash == NULL ? program : slash + 1);
    for (size_t i = 0; i < entry_count; i++) {
        TCase *tests = tcase_create(entries[i].test->name);
        tcase_set_timeout(tests, SUITE_TIMEOUT);
        tcase_add_checked_fixture(tests, open_books, close_books);
        tcase_add_loop_test(tests, entries[i].test, 0, entries[i].count);
        suite_add_tcase(suite, tests);
    }
    return suite;
}

int main(int argc, char **argv)
{
    (void)argc;
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    REQUIRE(pthread_atfork(NULL, NULL, skip_leak_check) == 0);
    SRunner *runner = srunner_create(create_suite(argv[0]));
    srunner_run_all(runner, CK_ENV);
    int run = srunner_ntests_run(runner);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (run == 0) {
        fprintf(stderr, "%s: no test ran: CK_RUN_CASE must name a test case\n", argv[0]);
        return EXIT_FAILURE;
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void suite_fail_request(uint64_t nth)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = nth, .this_thread_only = 1};
    memrt__fault_set(nth == 0 ? NULL : &plan);
}

void suite_fail_all_requests(void)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    REQUIRE(api->fail_allocations(&plan) == MEMRT_OK);
}

void suite_allow_requests(void)
{
    REQUIRE(api->fail_allocations(NULL) == MEMRT_OK);
}
