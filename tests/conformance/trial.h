#ifndef MEMRT_CONFORMANCE_TRIAL_H
#define MEMRT_CONFORMANCE_TRIAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <memrt/allocator.h>

/// State of one clause run on one allocator: the verdict and its reason.

typedef enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_NOT_APPLICABLE } verdict_t;

typedef struct trial {
    const memrt_allocator_t *allocator;
    pthread_mutex_t lock;
    verdict_t verdict; ///< under the lock
    char saw[256];     ///< reason of a verdict other than pass, under the lock
} trial_t;

void trial_start(trial_t *trial, const memrt_allocator_t *allocator);

/// Set the verdict and its reason, unless an earlier call has set a verdict.
///
/// Threads: any thread. The function takes the trial's lock.
void trial_conclude(trial_t *trial, verdict_t verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// Return true until a verdict other than pass is set.
bool trial_goes_on(trial_t *trial);

/// Set the verdict to fail and return from the function, unless `condition` holds. The function
/// must return void.
#define EXPECT(trial, condition, ...)                                                              \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            trial_conclude(trial, VERDICT_FAIL, __VA_ARGS__);                                      \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/// Set the verdict to "not applicable" and return from the function, unless `condition` holds. The
/// function must return void.
#define APPLIES(trial, condition, ...)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            trial_conclude(trial, VERDICT_NOT_APPLICABLE, __VA_ARGS__);                            \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/// Call the required functions of the allocator.
void *trial_alloc(trial_t *trial, size_t size, size_t align);
void trial_free(trial_t *trial, void *ptr, size_t size, size_t align);

/// Call the optional `realloc` of the allocator, which must not be NULL.
void *trial_realloc(trial_t *trial, void *ptr, size_t old_size, size_t new_size, size_t align);

bool trial_is_aligned(const void *ptr, size_t align);

#endif
