#include "runtime/event/trace_observer.h"

#include <string.h>

#include "runtime/policy/scope.h"
#include "runtime/trace/event_trace.h"

/// Copy a name in front of `start`, followed by a slash unless the name is the last. NULL: the name
/// does not fit into `room`.
static char *prepend_name(char *start, const char *room, const char *name, bool is_last)
{
    size_t length = strlen(name), needed = length + !is_last;
    MEMRT__ASSERT(start >= room);
    if ((size_t)(start - room) < needed) {
        return NULL;
    }
    if (!is_last) {
        *--start = '/';
    }
    return memcpy(start - length, name, length);
}

/// Return the path of a scope: the names of all parents, then of the scope; "" for no scope. The
/// outermost names are dropped if the path is too long.
static const char *write_scope_path(const memrt_scope_t *scope, char *room)
{
    char *start = room + MEMRT__TRACE_TEXT_MAX;
    *start = '\0';
    for (const memrt_scope_t *at = scope; at != NULL; at = at->parent) {
        char *longer = prepend_name(start, room, at->name, at == scope);
        if (longer == NULL) {
            break;
        }
        start = longer;
    }
    return start;
}

/// Describe a policy in the event trace and return the number of the description. Two threads may
/// describe a policy at the same time; the policy then has two numbers.
MEMRT__COLD static uint32_t describe_policy(memrt_policy_t *policy)
{
    char room[MEMRT__TRACE_TEXT_MAX + 1];
    size_t number = memrt__trace_policy(policy->name, write_scope_path(policy->scope, room),
                                        policy->base->index, policy->alignment);
    memrt__store_relaxed(&policy->traced, number);
    return (uint32_t)number;
}

static uint32_t get_policy_number(memrt_policy_t *policy)
{
    size_t number = memrt__load_relaxed(&policy->traced);
    return MEMRT__LIKELY(memrt__trace_has_policy(number)) ? (uint32_t)number
                                                          : describe_policy(policy);
}

/// Number a new block, in the word of the header that names the bin of other blocks. False: no
/// number was left, so that no event of the block is recorded.
static bool number_block(memrt_meminfo_t *mi)
{
    MEMRT__ASSERT(memrt__load_relaxed(&mi->refct) == 0); /* not published yet */
    uint32_t number = memrt__trace_new_number();
    if (number != 0) {
        mi->bin = number;
        memrt__flags_set_relaxed(&mi->flags, MEMRT__FLAG_TRACED);
    }
    return number != 0;
}

/// Return whether the current trace has the block of an event, or gets the block now.
static bool is_in_trace(const memrt__block_event_t *event)
{
    return event->type == MEMRT__EVENT_ALLOCATE
               ? number_block(event->mi)
               : memrt__trace_is_on() && memrt__trace_has(event->mi->bin);
}

/// Fill in the facts of a block. A resizable MemInfo is recorded with size 0, because its data
/// block has its own events.
static void describe_block(const memrt_meminfo_t *mi, memrt_trace_event_t *out)
{
    out->block = mi->bin;
    out->kind = mi->kind;
    out->align_log2 = mi->align_log2;
    if (mi->kind == MEMRT_KIND_RESIZABLE) {
        out->size = 0;
    }
    if (mi->kind == MEMRT_KIND_ADOPTED && out->type == MEMRT_TRACE_ALLOC) {
        out->type = MEMRT_TRACE_ADOPTION;
    }
}

void memrt__trace_observe(const memrt__block_event_t *event)
{
    static const uint8_t types[] = {[MEMRT__EVENT_ALLOCATE] = MEMRT_TRACE_ALLOC,
                                    [MEMRT__EVENT_RESIZE] = MEMRT_TRACE_RESIZE,
                                    [MEMRT__EVENT_FREE] = MEMRT_TRACE_FREE,
                                    [MEMRT__EVENT_FAILURE] = MEMRT_TRACE_FAILURE};
    if (event->mi != NULL && !is_in_trace(event)) {
        return;
    }
    memrt_trace_event_t out = {.size = event->size,
                               .site = event->site,
                               .policy = get_policy_number(event->policy),
                               .type = types[event->type]};
    if (event->mi != NULL) {
        describe_block(event->mi, &out);
    }
    memrt__trace_add(&out);
}
