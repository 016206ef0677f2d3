#include <memrt/external.h>

#include "replay.h"

/// Replay an event trace through one allocator: malloc, memrt or NumPy. Each worker process of
/// `python -m memrt replay` loads the library and calls one function by ctypes.

/// Policies of memrt, one per alignment, created on first use.
typedef struct policies {
    const memrt_api_t *api;
    memrt_policy_t *by_log2[64];
} policies_t;

/// Return the policy of an alignment. NULL selects the default policy, also where the policy cannot
/// be created.
static memrt_policy_t *policy_for(policies_t *policies, unsigned align_log2)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options),
                                      .alignment = (size_t)1 << align_log2};
    memrt_policy_t **policy = &policies->by_log2[align_log2];
    if (*policy == NULL && options.alignment > MEMRT_ALIGN_MIN &&
        policies->api->policy_new(&options, policy) != MEMRT_OK) {
        *policy = NULL;
    }
    return *policy;
}

static void *memrt_alloc(void *context, size_t size, unsigned align_log2)
{
    policies_t *policies = context;
    return policies->api->block_alloc(policy_for(policies, align_log2), size);
}

static void *memrt_resize(void *context, void *block, size_t used, size_t size, unsigned align_log2)
{
    policies_t *policies = context;
    (void)used;
    return policies->api->block_realloc(policy_for(policies, align_log2), block, size);
}

static void memrt_free(void *context, void *block, size_t size)
{
    policies_t *policies = context;
    policies->api->block_free(NULL, block, size);
}

/// NumPy's PyDataMem_Handler, with the layout of NEP 49.
typedef struct handler {
    char name[127];
    uint8_t version;
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block, size_t size);
} handler_t;

static void *numpy_alloc(void *context, size_t size, unsigned align_log2)
{
    const handler_t *handler = context;
    (void)align_log2; /* NumPy's handler takes no alignment */
    return handler->malloc(handler->context, size);
}

static void *numpy_resize(void *context, void *block, size_t used, size_t size, unsigned align_log2)
{
    const handler_t *handler = context;
    (void)used;
    (void)align_log2;
    return handler->realloc(handler->context, block, size);
}

static void numpy_free(void *context, void *block, size_t size)
{
    const handler_t *handler = context;
    handler->free(handler->context, block, size);
}

MEMRT_EXPORT void memrt_replay_malloc(const replay_event_t *events, size_t count,
                                      replay_block_t *blocks, uint64_t limit,
                                      replay_outcome_t *outcome);
MEMRT_EXPORT void memrt_replay_memrt(const replay_event_t *events, size_t count,
                                     replay_block_t *blocks, uint64_t limit,
                                     replay_outcome_t *outcome, const memrt_api_t *api);
MEMRT_EXPORT void memrt_replay_numpy(const replay_event_t *events, size_t count,
                                     replay_block_t *blocks, uint64_t limit,
                                     replay_outcome_t *outcome, void *handler);

void memrt_replay_malloc(const replay_event_t *events, size_t count, replay_block_t *blocks,
                         uint64_t limit, replay_outcome_t *outcome)
{
    replay_all(events, count, blocks, limit, &replay_libc, outcome);
}

/// Replay events through memrt's policies. The policies are never destroyed, because the process
/// ends with the replay.
void memrt_replay_memrt(const replay_event_t *events, size_t count, replay_block_t *blocks,
                        uint64_t limit, replay_outcome_t *outcome, const memrt_api_t *api)
{
    policies_t policies = {.api = api};
    const replay_table_t table = {&policies, memrt_alloc, memrt_resize, memrt_free};
    replay_all(events, count, blocks, limit, &table, outcome);
}

void memrt_replay_numpy(const replay_event_t *events, size_t count, replay_block_t *blocks,
                        uint64_t limit, replay_outcome_t *outcome, void *handler)
{
    const replay_table_t table = {handler, numpy_alloc, numpy_resize, numpy_free};
    replay_all(events, count, blocks, limit, &table, outcome);
}
