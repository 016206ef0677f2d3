#ifndef MEMRT_TESTS_MODELS_HOOKS_H
#define MEMRT_TESTS_MODELS_HOOKS_H

/// Run the runtime's hooks with one slot: a thread frees a block of the hook.

#include "tests/models/model.h"

#include "runtime/event/block_event.h"
#undef MEMRT__FLAG_HOOKS
#define MEMRT__FLAG_HOOKS MEMRT__FLAG_FIRST_HOOK

#include <memrt/observe/hook.h>
#undef MEMRT_HOOKS_MAX
#define MEMRT_HOOKS_MAX 1u

#include "runtime/event/hooks.c"

unsigned memrt__slow_path;
memrt__options_t memrt__options;

void memrt__lock(memrt__rank_t rank)
{
    (void)rank;
}

void memrt__unlock(memrt__rank_t rank)
{
    (void)rank;
}

static void *free_block(void *context)
{
    memrt_policy_t policy = {.base = &policy};
    memrt_meminfo_t mi = {.kind = MEMRT_KIND_BLOCK};
    memrt__block_event_t event = {.type = MEMRT__EVENT_FREE, .mi = &mi, .policy = &policy};
    memrt__hooks_notify(&event, MEMRT__FLAG_HOOKS);
    return context;
}

#endif
