#include "support/silent_hook.h"

static void ignore_event(const memrt_hook_event_t *event, void *context)
{
    (void)event;
    (void)context;
}

memrt_hook_t silent_hook(memrt_policy_t *policy)
{
    return (memrt_hook_t){
        .struct_size = sizeof(memrt_hook_t), .call = ignore_event, .policy = policy};
}
