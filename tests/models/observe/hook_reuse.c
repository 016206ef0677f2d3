/// Model: a thread frees a block of a hook while the hook is removed inside of a call, and another
/// hook gets the slot. A call sees its function together with its context.

#include "tests/models/observe/hooks.h"

static size_t contexts[2];

static void call_first(const memrt_hook_event_t *event, void *context)
{
    (void)event;
    assert(context == &contexts[0]);
}

static void call_second(const memrt_hook_event_t *event, void *context)
{
    (void)event;
    assert(context == &contexts[1]);
}

int main(void)
{
    memrt_hook_t hook = {.struct_size = sizeof(hook), .call = call_first, .context = &contexts[0]};
    uint64_t id;
    assert(memrt__hook_add(&hook, &id) == MEMRT_OK);
    pthread_t other = model_thread(free_block, NULL);
    current = &slots[0]; /* as inside of a call: the removal does not wait */
    assert(memrt__hook_remove(id) == MEMRT_OK);
    current = NULL;
    hook.call = call_second;
    hook.context = &contexts[1];
    memrt_status_t status = memrt__hook_add(&hook, &id);
    model_join(other);
    assert(status == MEMRT_OK || status == MEMRT_ELIMIT);
    return 0;
}
