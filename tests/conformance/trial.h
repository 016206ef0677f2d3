#ifndef MEMRT_CONFORMANCE_TRIAL_H
#define MEMRT_CONFORMANCE_TRIAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <memrt/allocator.h>

/// One allocator before one clause, and what was seen.

typedef enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_NOT_APPLICABLE } verdict_t;

typedef struct trial {
    const memrt_allocator_t *allocator;
    pthread_mutex_t lock;
    verdict_t verdict; ///< under the lock
    char saw[256];     ///< under the lock; why it is no pass
} trial_t;

void trial_start(trial_t *trial, const memrt_allocator_t *allocator);

/// Say what was seen; the first word counts.
void trial_conclude(trial_t *trial, verdict_t verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// Whether nothing was said yet.
bool trial_goes_on(trial_t *trial);

/// Leave the function, which returns void, with a failure unless `condition` holds.
#define EXPECT(trial, condition, ...)                                                              \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            trial_conclude(trial, VERDICT_FAIL, __VA_ARGS__);                                      \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/// Leave the function when the clause says nothing about this allocator.
#define APPLIES(trial, condition, ...)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            trial_conclude(trial, VERDICT_NOT_APPLICABLE, __VA_ARGS__);                            \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/// The allocator's functions that every allocator has.
void *trial_alloc(trial_t *trial, size_t size, size_t align);
void trial_free(trial_t *trial, void *ptr, size_t size, size_t align);

/// Those that it need not have; only where it does.
void *trial_realloc(trial_t *trial, void *ptr, size_t old_size, size_t new_size, size_t align);

bool trial_is_aligned(const void *ptr, size_t align);

#endif
