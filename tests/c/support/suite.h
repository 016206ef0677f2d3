#ifndef MEMRT_TESTS_SUPPORT_SUITE_H
#define MEMRT_TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/memrt.h>

/// Runner of every C test. A test file is a list of
///
///     TEST(realloc_failure_keeps_old_block)
///     {
///         ...
///     }
///
/// Tests register themselves; suite.c has main. Around each test, a fixture checks that the test
/// leaves statistics, live set and policies as they were before.

/* Check sends a message through a pipe for each assertion that holds. In loops, the messages take
 * up to a fifth of the time of a test. */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
    ((expr)                                                                                        \
         ? suite_mark(__FILE__, __LINE__)                                                          \
         : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__))

/// Tell Check where an assertion held: for the first thousand of a process, then for one in 64. The
/// report of a crash names the last place, with the words "after this point".
void suite_mark(const char *file, int line);

/// API table; main gets it before the first test.
extern const memrt_api_t *api;

#define TEST(name) TEST_EACH(name, 1)

/// Define a test that runs for each `index` from 0 to count - 1.
#define TEST_EACH(name, count)                                                                     \
    static void name(int index);                                                                   \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        static const TTest test = {#name, name, __FILE__, __LINE__};                               \
        suite_add(&test, (int)(count));                                                            \
    }                                                                                              \
    static void name(__attribute__((unused)) int index)

void suite_add(const TTest *test, int count);

/// Prepare each test of a file, in the process of the test, before the fixture reads the accounts.
/// A test file may define this function or leave it out.
__attribute__((weak)) void suite_prepare(void);

/// Keep unused memory for that time, without a size limit, until the end of the test.
/// MEMRT__DECAY_NEVER keeps memory for ever. Threads: only while no other thread uses memrt.
void suite_set_decay(size_t milliseconds);

/// Fail the test unless the invariants of all structures of memrt hold. The fixture calls the
/// function at the end of each test. Without MEMRT_DEBUG, the function checks nothing.
void suite_expect_valid(void);

/// Return a number from environment variable `name`, or `otherwise`.
unsigned suite_number(const char *name, unsigned otherwise);

/// Seconds that one test may take.
#define SUITE_TIMEOUT 60

/// Whether a sanitizer is built in.
#if defined(__has_feature)
#define SUITE_HAS(sanitizer) __has_feature(sanitizer)
#else
#define SUITE_HAS(sanitizer) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || SUITE_HAS(address_sanitizer)
#define SUITE_ADDRESS_SANITIZER 1
#else
#define SUITE_ADDRESS_SANITIZER 0
#endif
#if defined(__SANITIZE_THREAD__) || SUITE_HAS(thread_sanitizer)
#define SUITE_THREAD_SANITIZER 1
#else
#define SUITE_THREAD_SANITIZER 0
#endif

/// Let the nth request for memory by this thread fail, counted from now; 0: no request.
void suite_fail_request(uint64_t nth);

/// Let every request for memory fail from now on, on all threads.
void suite_fail_all_requests(void);

/// End fault injection: requests for memory succeed again.
void suite_allow_requests(void);

/// Return true when Valgrind runs the program, with a malloc of its own.
bool suite_is_under_valgrind(void);

/// Return true when the resident memory of the process is the program's own. Sanitizers and
/// Valgrind keep data of their own in resident memory, so the result is false under them.
bool suite_measures_memory(void);

/// Abort with a message unless `condition` holds. For threads and children, where Check's own
/// assertions do not work.
#define REQUIRE(condition) ((condition) ? (void)0 : suite_fail(__FILE__, __LINE__, #condition))
_Noreturn void suite_fail(const char *file, int line, const char *condition);

#endif
