#include "runtime/report/oom_report.h"

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/slow_path.h"
#include "runtime/os/os.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/scope.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/report/oom_sites.h"
#include "runtime/stats/stats.h"

static void append_account(memrt__writing_t *writing, const char *whose,
                           const memrt__level_t *level, size_t cached)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(level, &stats);
    memrt__writing_append_bytes(writing, "", stats.live, "");
    memrt__writing_append(writing, " live %s", whose);
    memrt__writing_append_bytes(writing, ", peak ", stats.peak, "");
    memrt__writing_append_bytes(writing, ", kept for reuse ", cached, "\n");
}

static void append_use_of_limit(memrt__writing_t *writing, const memrt__level_t *level)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(level, &stats);
    memrt__writing_append_bytes(writing, "", memrt__level_limit(level), "");
    memrt__writing_append_bytes(writing, ", ", stats.live, " live\n");
}

static bool has_limit(const memrt__level_t *level)
{
    return memrt__level_limit(level) != SIZE_MAX;
}

/// Write the names of a scope and of all outer scopes, the outermost first, with '/' in between.
static void append_scope_path(memrt__writing_t *writing, const memrt_scope_t *scope)
{
    if (scope->parent != NULL) {
        append_scope_path(writing, scope->parent);
        memrt__writing_append(writing, "/");
    }
    memrt__writing_append(writing, "%s", scope->name);
}

/// Write the limits of memrt that apply to an allocation from `policy` on the calling thread.
static void append_own_limits(memrt__writing_t *writing, const memrt_policy_t *policy)
{
    const memrt_scope_t *scope = policy->scope == NULL ? memrt__scope_current() : policy->scope;
    if (has_limit(&memrt__process)) {
        memrt__writing_append(writing, "limit of the process: ");
        append_use_of_limit(writing, &memrt__process);
    }
    if (has_limit(&policy->base->level)) {
        memrt__writing_append(writing, "limit of policy '%s': ", policy->name);
        append_use_of_limit(writing, &policy->base->level);
    }
    for (; scope != NULL; scope = scope->parent) {
        if (has_limit(&scope->level)) {
            memrt__writing_append(writing, "limit of scope '");
            append_scope_path(writing, scope);
            memrt__writing_append(writing, "': ");
            append_use_of_limit(writing, &scope->level);
        }
    }
}

static void append_limits(memrt__writing_t *writing)
{
    memrt__os_limit_t limits[MEMRT__OS_LIMITS];
    size_t count = memrt__os_limits(limits);
    for (size_t i = 0; i < count; i++) {
        memrt__writing_append_bytes(writing, i == 0 ? "limits: " : "; ", limits[i].bytes, "");
        memrt__writing_append(writing, " %s", limits[i].what);
        if (limits[i].used != 0) {
            memrt__writing_append_bytes(writing, ", ", limits[i].used, " used");
        }
    }
    memrt__writing_append(writing, count == 0 ? "no limit is known\n" : "\n");
}

/// A scope with its live bytes. The row holds a reference to the scope.
typedef struct scope_row {
    memrt_scope_t *scope; ///< NULL: none
    uint64_t bytes;       ///< with the bytes of inner scopes
} scope_row_t;

/// Insert a scope into the rows of the largest scopes, largest first.
static void insert_if_large(scope_row_t *rows, memrt_scope_t *scope)
{
    scope_row_t *last = rows + MEMRT__OOM_SHOWN - 1, *at = last;
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt__stats_read(&scope->level, &stats);
    if (stats.live <= last->bytes) {
        return;
    }
    if (last->scope != NULL) {
        memrt__scope_release(last->scope);
    }
    for (; at > rows && at[-1].bytes < stats.live; at--) {
        *at = at[-1];
    }
    memrt__scope_acquire(scope);
    *at = (scope_row_t){scope, stats.live};
}

/// Find the scopes with most live bytes.
static void find_largest_scopes(scope_row_t *rows)
{
    memrt_scope_t *scope = memrt__scope_next(NULL);
    while (scope != NULL) {
        insert_if_large(rows, scope);
        memrt_scope_t *next = memrt__scope_next(scope);
        memrt__scope_release(scope);
        scope = next;
    }
}

static void append_scopes(memrt__writing_t *writing)
{
    scope_row_t rows[MEMRT__OOM_SHOWN] = {{NULL, 0}};
    find_largest_scopes(rows);
    if (rows[0].scope != NULL) {
        memrt__writing_append(writing, "scopes with the most live bytes, with inner scopes:\n");
    }
    for (size_t i = 0; i < MEMRT__OOM_SHOWN && rows[i].scope != NULL; i++) {
        memrt__writing_append_bytes(writing, "  ", rows[i].bytes, " in scope '");
        append_scope_path(writing, rows[i].scope);
        memrt__writing_append(writing, "'\n");
        memrt__scope_release(rows[i].scope);
    }
}

static void append_request(memrt__writing_t *writing, const memrt_policy_t *policy, size_t size)
{
    memrt__writing_append_bytes(writing, "no memory for ", size, "");
    if (size >= 1024) {
        memrt__writing_append(writing, " (%zu bytes)", size);
    }
    memrt__writing_append(writing, " of policy '%s'\n", policy->name);
}

size_t memrt__oom_report_write(const memrt_policy_t *policy, size_t size, char *text, size_t length)
{
    memrt__writing_t writing = {.text = text, .room = length};
    const memrt_policy_t *asked = policy == NULL ? memrt__policy_default() : policy;
    policy = asked->base;
    if (size != 0) {
        append_request(&writing, policy, size);
    }
    if (memrt__is_slow(MEMRT__SLOW_FAILURE)) {
        memrt__writing_append(&writing, "fault injection is on and refuses requests on purpose\n");
    }
    append_account(&writing, "in the policy", &policy->level, memrt__policy_cached(policy));
    append_account(&writing, "in the process", &memrt__process, memrt__policy_cached(NULL));
    append_own_limits(&writing, asked);
    append_limits(&writing);
    append_scopes(&writing);
    memrt__oom_append_sites(&writing);
    memrt__oom_append_named_buffers(&writing);
    return writing.length;
}
