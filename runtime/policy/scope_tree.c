#include "runtime/policy/scope_tree.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/check.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/lock.h"
#include "runtime/policy/policy_table.h"

/* Under the lock of rank POLICIES: */
static memrt_scope_t *first_scope, *last_scope;
static uint32_t scope_count, last_id;

static memrt_scope_t *find_scope(const memrt_scope_t *parent, const char *name)
{
    memrt_scope_t *scope = first_scope;
    while (scope != NULL && (scope->parent != parent || strcmp(scope->name, name) != 0)) {
        scope = scope->next;
    }
    return scope;
}

memrt_scope_t *memrt__scope_tree_alloc(memrt_scope_t *parent, const char *name)
{
    memrt_scope_t *scope = memrt__fault_is_due() ? NULL : calloc(1, sizeof(*scope));
    if (scope != NULL) {
        scope->parent = parent;
        scope->level.up = parent == NULL ? NULL : &parent->level;
        MEMRT__ASSERT(name[0] != '\0' && strlen(name) <= MEMRT_NAME_MAX);
        memcpy(scope->name, name, strlen(name) + 1);
    }
    return scope;
}

/// Return true if a scope has no references, also not from child scopes, and no subpolicies. Under
/// the lock of rank POLICIES.
static bool is_unused(const memrt_scope_t *scope)
{
    return !memrt__scope_is_held(scope) && scope->subpolicies == NULL;
}

/// Remove the oldest unused scope from the list. Returns NULL if all are used. Under the lock of
/// rank POLICIES.
static memrt_scope_t *remove_unused_scope(void)
{
    memrt_scope_t *before = NULL, *scope = first_scope;
    while (scope != NULL && !is_unused(scope)) {
        before = scope;
        scope = scope->next;
    }
    if (scope != NULL) {
        *(before == NULL ? &first_scope : &before->next) = scope->next;
        last_scope = last_scope == scope ? before : last_scope;
        MEMRT__ASSERT(scope_count != 0);
        scope_count--;
        if (scope->parent != NULL) {
            scope->parent->inner--;
        }
    }
    return scope;
}

static memrt_scope_t *find_or_add_locked(memrt_scope_t *fresh)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    MEMRT__ASSERT(fresh->id == 0 && fresh->refs == 0);
    memrt_scope_t *scope = find_scope(fresh->parent, fresh->name);
    if (scope == NULL && scope_count < MEMRT_SCOPES_MAX) {
        scope = fresh;
        scope->id = ++last_id;
        *(last_scope == NULL ? &first_scope : &last_scope->next) = scope;
        last_scope = scope;
        scope_count++;
        if (scope->parent != NULL) {
            scope->parent->inner++;
            memrt__scope_acquire(scope->parent);
        }
    }
    if (scope != NULL) {
        memrt__scope_acquire(scope);
    }
    return scope;
}

memrt_scope_t *memrt__scope_tree_find_or_add(memrt_scope_t *fresh)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_scope_t *scope = find_or_add_locked(fresh);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return scope;
}

bool memrt__scope_tree_destroy_unused(void)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    bool has_room = scope_count < MEMRT_SCOPES_MAX;
    memrt_scope_t *scope = has_room ? NULL : remove_unused_scope();
    memrt__unlock(MEMRT__RANK_POLICIES);
    if (scope == NULL) {
        return has_room;
    }
    MEMRT__ASSERT(!memrt__scope_is_held(scope) && scope->subpolicies == NULL);
    if (scope->parent != NULL) {
        memrt__scope_release(scope->parent);
    }
    memrt__level_end_limits(&scope->level);
    free(scope);
    return true;
}

const memrt_scope_t *memrt__scope_tree_first(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    return first_scope;
}

size_t memrt__scope_tree_count(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    return scope_count;
}

void memrt__scope_acquire(memrt_scope_t *scope)
{
    memrt__fetch_add_relaxed(&scope->refs, 1);
}

static bool is_inside(const memrt_scope_t *scope, const memrt_scope_t *outer)
{
    while (scope != NULL && scope != outer) {
        scope = scope->parent;
    }
    return scope != NULL;
}

/// Return whether a scope, or a scope inside of the scope, has references besides those of its
/// inner scopes.
static bool is_in_use(const memrt_scope_t *outer)
{
    const memrt_scope_t *scope = first_scope;
    while (scope != NULL &&
           !(memrt__load_relaxed(&scope->refs) > scope->inner && is_inside(scope, outer))) {
        scope = scope->next;
    }
    return scope != NULL;
}

/// Remove the limits of a scope and of outer scopes that are not in use. Another thread may have
/// destroyed the scope.
static void end_limits(memrt_scope_t *scope)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_scope_t *at = memrt__scope_tree_has(scope) ? scope : NULL;
    for (; at != NULL; at = at->parent) {
        if (memrt__level_has_limits(&at->level) && !is_in_use(at)) {
            memrt__level_end_limits(&at->level);
        }
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
}

/// Release a reference. Release order, partner: the acquire load of memrt__scope_is_held(). Another
/// thread may destroy the scope right after the decrement.
void memrt__scope_release(memrt_scope_t *scope)
{
    if (memrt__fetch_sub1_release(&scope->refs) == 0) {
        memrt__abort("scope_release of %p: the count of references must be at least 1, got 0: the "
                     "scope was released more often than acquired" MEMRT__CHECK_HINT,
                     (void *)scope);
    }
    if (memrt__load_relaxed(&memrt__limited_levels) != 0) {
        end_limits(scope);
    }
}

/// Return a new reference to the next scope. Only scopes without references leave the list, so a
/// referenced scope is in the list and its `next` is valid.
memrt_scope_t *memrt__scope_next(memrt_scope_t *scope)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_scope_t *next = scope == NULL ? first_scope : scope->next;
    if (next != NULL) {
        memrt__scope_acquire(next);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return next;
}

bool memrt__scope_tree_has(const memrt_scope_t *scope)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_POLICIES);
    const memrt_scope_t *at = first_scope;
    while (at != NULL && at != scope) {
        at = at->next;
    }
    return at != NULL;
}

#if MEMRT_DEBUG

/// Return whether a policy is in the table.
static bool is_in_table(const memrt_policy_t *policy)
{
    return memrt__policy_find(policy) != NULL;
}

static bool are_subpolicies_valid(const memrt_scope_t *scope)
{
    bool valid = true;
    for (const memrt_policy_t *subpolicy = scope->subpolicies; valid && subpolicy != NULL;
         subpolicy = subpolicy->next_in_scope) {
        valid = MEMRT__HOLDS(is_in_table(subpolicy)) && MEMRT__HOLDS(subpolicy->scope == scope) &&
                MEMRT__HOLDS(subpolicy->account.scope == &scope->level);
    }
    return valid;
}

/// Check one scope. A scope holds a reference to its parent, which was made earlier.
static bool is_scope_valid(const memrt_scope_t *scope)
{
    const memrt_scope_t *parent = scope->parent;
    return MEMRT__HOLDS(scope->name[0] != '\0' && memrt__is_name(scope->name)) &&
           MEMRT__HOLDS(scope->level.up == (parent == NULL ? NULL : &parent->level)) &&
           MEMRT__HOLDS(parent == NULL || memrt__scope_tree_has(parent)) &&
           MEMRT__HOLDS(parent == NULL || memrt__scope_is_held(parent)) &&
           MEMRT__HOLDS(parent == NULL || parent->id < scope->id) &&
           /* no two scopes have the same parent and name */
           MEMRT__HOLDS(find_scope(parent, scope->name) == scope) && are_subpolicies_valid(scope);
}

bool memrt__scope_tree_is_valid(void)
{
    uint32_t count = 0, id = 0;
    const memrt_scope_t *last = NULL;
    bool valid = true;
    memrt__lock(MEMRT__RANK_POLICIES);
    for (const memrt_scope_t *scope = first_scope; valid && scope != NULL; scope = scope->next) {
        valid = MEMRT__HOLDS(scope->id > id) && MEMRT__HOLDS(count < scope_count) &&
                is_scope_valid(scope);
        id = scope->id;
        last = scope;
        count++;
    }
    valid = valid && MEMRT__HOLDS(count == scope_count) && MEMRT__HOLDS(last == last_scope) &&
            MEMRT__HOLDS(count <= MEMRT_SCOPES_MAX) && MEMRT__HOLDS(id <= last_id);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return valid;
}

#endif
