#ifndef MEMRT_TESTS_SUPPORT_SUITE_H
#define MEMRT_TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/memrt.h>

/// The runner of every C test. A test file is a list of
///
///     TEST(realloc_failure_keeps_old_block)
///     {
///         ...
///     }
///
/// and nothing else: tests register themselves and main stands here. Around each test a fixture
/// checks that it leaves the account, the live set and the policies as it found them.

/// The function table, which main gets before the first test.
extern const memrt_api_t *api;

#define TEST(name) TEST_EACH(name, 1)

/// A test that runs for each `index` from 0 to count - 1.
#define TEST_EACH(name, count)                                                                     \
    static void name(int index);                                                                   \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        static const TTest test = {#name, name, __FILE__, __LINE__};                               \
        suite_add(&test, (int)(count));                                                            \
    }                                                                                              \
    static void name(__attribute__((unused)) int index)

void suite_add(const TTest *test, int count);

/// What a file of tests does before each test, in its process, and before the books are opened; it
/// may be missing.
__attribute__((weak)) void suite_prepare(void);

/// Keep unused memory for so long, MEMRT__DECAY_NEVER: for ever, and as much as there is, till the
/// end of the test. Only while no other thread uses memrt.
void suite_set_decay(size_t milliseconds);

/// A number that the environment gives a test, or `otherwise`.
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

/// Whether the process's resident memory is the program's own: not under sanitizers and Valgrind,
/// which keep books of theirs in it.
bool suite_measures_memory(void);

/// Abort with a message unless `condition` holds: for threads and children, where Check's own
/// assertions do not work.
#define REQUIRE(condition) ((condition) ? (void)0 : suite_fail(__FILE__, __LINE__, #condition))
_Noreturn void suite_fail(const char *file, int line, const char *condition);

#endif
