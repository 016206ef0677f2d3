#include "conformance/trial.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

void trial_start(trial_t *trial, const memrt_allocator_t *allocator)
{
    *trial = (trial_t){.allocator = allocator, .lock = PTHREAD_MUTEX_INITIALIZER};
}

void trial_conclude(trial_t *trial, verdict_t verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&trial->lock);
    if (trial->verdict == VERDICT_PASS) {
        trial->verdict = verdict;
        vsnprintf(trial->saw, sizeof(trial->saw), format, arguments);
    }
    pthread_mutex_unlock(&trial->lock);
    va_end(arguments);
}

bool trial_goes_on(trial_t *trial)
{
    pthread_mutex_lock(&trial->lock);
    bool goes_on = trial->verdict == VERDICT_PASS;
    pthread_mutex_unlock(&trial->lock);
    return goes_on;
}

void *trial_alloc(trial_t *trial, size_t size, size_t align)
{
    return trial->allocator->alloc(trial->allocator->ctx, size, align);
}

void trial_free(trial_t *trial, void *ptr, size_t size, size_t align)
{
    trial->allocator->free(trial->allocator->ctx, ptr, size, align);
}

void *trial_realloc(trial_t *trial, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    return trial->allocator->realloc(trial->allocator->ctx, ptr, old_size, new_size, align);
}

bool trial_is_aligned(const void *ptr, size_t align)
{
    return ((uintptr_t)ptr & (align - 1)) == 0;
}
