#include "runtime/meminfo/traced.h"

#include <string.h>

#include "runtime/alloc/scope.h"

/// Put a name, and a slash where more is behind it, before `start`. NULL: it does not fit.
static char *put_before(char *start, const char *room, const char *name, bool is_last)
{
    size_t length = strlen(name), needed = length + !is_last;
    if ((size_t)(start - room) < needed) {
        return NULL;
    }
    if (!is_last) {
        *--start = '/';
    }
    return memcpy(start - length, name, length);
}

/// The names of a scope and of those around it, "" for none; of the outermost as many as fit.
static const char *path_of(const memrt_scope_t *scope, char *room)
{
    char *start = room + MEMRT__TRACE_TEXT_MAX;
    *start = '\0';
    for (const memrt_scope_t *at = scope; at != NULL; at = at->parent) {
        char *longer = put_before(start, room, at->name, at == scope);
        if (longer == NULL) {
            break;
        }
        start = longer;
    }
    return start;
}

/// Two threads may describe a policy at once: then it has two numbers.
MEMRT__COLD static uint32_t describe(memrt_policy_t *policy)
{
    char room[MEMRT__TRACE_TEXT_MAX + 1];
    size_t number = memrt__trace_policy(policy->name, path_of(policy->scope, room),
                                        policy->base->index, policy->alignment);
    memrt__store_relaxed(&policy->traced, number);
    return (uint32_t)number;
}

static uint32_t number_of(memrt_policy_t *policy)
{
    size_t number = memrt__load_relaxed(&policy->traced);
    return MEMRT__LIKELY(memrt__trace_has_policy(number)) ? (uint32_t)number : describe(policy);
}

static memrt_trace_event_t event_of(const memrt_meminfo_t *mi, memrt_trace_event_type_t type)
{
    return (memrt_trace_event_t){.size = mi->size,
                                 .block = mi->trace,
                                 .policy = number_of(memrt__policy_of(mi)),
                                 .type = (uint8_t)type,
                                 .kind = mi->kind,
                                 .align_log2 = mi->align_log2};
}

/// A resizable MemInfo knows how large its data is, which is a block of its own.
static void add(const memrt_meminfo_t *mi, memrt_trace_event_type_t type, uint32_t site)
{
    memrt_trace_event_t event = event_of(mi, type);
    if (mi->kind == MEMRT_KIND_RESIZABLE) {
        event.size = 0;
    }
    event.site = site;
    memrt__trace_add(&event);
}

bool memrt__traced_birth(memrt_meminfo_t *mi, uint32_t site)
{
    mi->trace = memrt__trace_birth();
    if (mi->trace == 0) {
        return false;
    }
    add(mi, mi->kind == MEMRT_KIND_ADOPTED ? MEMRT_TRACE_ADOPTION : MEMRT_TRACE_BIRTH, site);
    return true;
}

void memrt__traced_resize(const memrt_meminfo_t *mi)
{
    if (memrt__trace_has(mi->trace)) {
        add(mi, MEMRT_TRACE_RESIZE, 0);
    }
}

void memrt__traced_death(const memrt_meminfo_t *mi)
{
    if (memrt__trace_has(mi->trace)) {
        add(mi, MEMRT_TRACE_DEATH, 0);
    }
}

void memrt__traced_failure(memrt_policy_t *policy, size_t size)
{
    memrt_trace_event_t event = {
        .size = size, .policy = number_of(policy), .type = MEMRT_TRACE_FAILURE};
    memrt__trace_add(&event);
}
