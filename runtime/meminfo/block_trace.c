#include "runtime/meminfo/block_trace.h"

#include <string.h>

#include "runtime/policy/scope.h"

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

static memrt_trace_event_t make_event(const memrt_meminfo_t *mi, memrt_trace_event_type_t type)
{
    return (memrt_trace_event_t){.size = mi->size,
                                 .block = mi->trace,
                                 .policy = get_policy_number(memrt__policy_of(mi)),
                                 .type = (uint8_t)type,
                                 .kind = mi->kind,
                                 .align_log2 = mi->align_log2};
}

/// Write an event of a block. A resizable MemInfo is recorded with size 0, because its data block
/// has its own events.
static void add_event(const memrt_meminfo_t *mi, memrt_trace_event_type_t type, uint32_t site)
{
    memrt_trace_event_t event = make_event(mi, type);
    if (mi->kind == MEMRT_KIND_RESIZABLE) {
        event.size = 0;
    }
    event.site = site;
    memrt__trace_add(&event);
}

bool memrt__block_trace_alloc(memrt_meminfo_t *mi, uint32_t site)
{
    MEMRT__ASSERT(memrt__load_relaxed(&mi->refct) == 0); /* not published yet */
    mi->trace = memrt__trace_alloc();
    if (mi->trace == 0) {
        return false;
    }
    add_event(mi, mi->kind == MEMRT_KIND_ADOPTED ? MEMRT_TRACE_ADOPTION : MEMRT_TRACE_BIRTH, site);
    return true;
}

void memrt__block_trace_resize(const memrt_meminfo_t *mi)
{
    if (memrt__trace_has(mi->trace)) {
        add_event(mi, MEMRT_TRACE_RESIZE, 0);
    }
}

void memrt__block_trace_free(const memrt_meminfo_t *mi)
{
    if (memrt__trace_has(mi->trace)) {
        add_event(mi, MEMRT_TRACE_DEATH, 0);
    }
}

void memrt__block_trace_failure(memrt_policy_t *policy, size_t size)
{
    memrt_trace_event_t event = {
        .size = size, .policy = get_policy_number(policy), .type = MEMRT_TRACE_FAILURE};
    memrt__trace_add(&event);
}
