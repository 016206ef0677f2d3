/// Model: a thread frees a block of a hook while the hook is added and removed. No call runs after
/// the removal, and a call sees the context of its hook.

#include "tests/models/observe/hooks.h"

static size_t context; /* 1: valid; 0: the program has freed the context */
static size_t calls;

static void count_call(const memrt_hook_event_t *event, void *of_hook)
{
    (void)event;
    assert(*(size_t *)of_hook == 1);
    calls++;
}

int main(void)
{
    memrt_hook_t hook = {.struct_size = sizeof(hook), .call = count_call, .context = &context};
    uint64_t id;
    pthread_t other = model_thread(free_block, NULL);
    context = 1;
    assert(memrt__hook_add(&hook, &id) == MEMRT_OK);
    assert(memrt__hook_remove(id) == MEMRT_OK);
    size_t called = calls;
    context = 0;
    model_join(other);
    assert(calls == called && called <= 1);
    return 0;
}
