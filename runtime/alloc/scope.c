#include "runtime/alloc/scope.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/failure.h"
#include "runtime/base/lock.h"

/* Under the lock of rank POLICIES: */
static memrt_scope_t *first, *last;
static uint32_t scopes, last_id;

static memrt_scope_t *find(const memrt_scope_t *parent, const char *name)
{
    memrt_scope_t *scope = first;
    while (scope != NULL && (scope->parent != parent || strcmp(scope->name, name) != 0)) {
        scope = scope->next;
    }
    return scope;
}

static memrt_scope_t *new_scope(memrt_scope_t *parent, const char *name)
{
    memrt_scope_t *scope = memrt__failure_due() ? NULL : calloc(1, sizeof(*scope));
    if (scope != NULL) {
        scope->parent = parent;
        scope->level.up = parent == NULL ? NULL : &parent->level;
        memcpy(scope->name, name, strlen(name) + 1);
    }
    return scope;
}

/// Nobody holds it, as a parent or else, and no block of it lives.
static bool is_unused(const memrt_scope_t *scope)
{
    return !memrt__scope_is_held(scope) && scope->parts == NULL;
}

/// Under the lock: take the oldest that nobody uses out of the list.
static memrt_scope_t *take_unused(void)
{
    memrt_scope_t *before = NULL, *scope = first;
    while (scope != NULL && !is_unused(scope)) {
        before = scope;
        scope = scope->next;
    }
    if (scope != NULL) {
        *(before == NULL ? &first : &before->next) = scope->next;
        last = last == scope ? before : last;
        scopes--;
    }
    return scope;
}

/// Under the lock: the scope of that name, held once more; `fresh`, unless it is there already.
/// NULL: there are too many.
static memrt_scope_t *place(memrt_scope_t *fresh)
{
    memrt_scope_t *scope = find(fresh->parent, fresh->name);
    if (scope == NULL && scopes < MEMRT_SCOPES_MAX) {
        scope = fresh;
        scope->id = ++last_id;
        *(last == NULL ? &first : &last->next) = scope;
        last = scope;
        scopes++;
        if (scope->parent != NULL) {
            memrt__scope_acquire(scope->parent);
        }
    }
    if (scope != NULL) {
        memrt__scope_acquire(scope);
    }
    return scope;
}

/// Destroy the oldest that nobody uses, unless another thread has made room meanwhile. Whether
/// there was room then: others may have taken it since.
static bool make_room(void)
{
    memrt__policy_sweep();
    memrt__lock(MEMRT__RANK_POLICIES);
    bool has_room = scopes < MEMRT_SCOPES_MAX;
    memrt_scope_t *scope = has_room ? NULL : take_unused();
    memrt__unlock(MEMRT__RANK_POLICIES);
    if (scope == NULL) {
        return has_room;
    }
    if (scope->parent != NULL) {
        memrt__scope_release(scope->parent);
    }
    free(scope);
    return true;
}

static memrt_scope_t *find_or_place(memrt_scope_t *fresh)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_scope_t *scope = place(fresh);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return scope;
}

memrt_status_t memrt__scope_open(memrt_scope_t *parent, const char *name, memrt_scope_t **out)
{
    if (name == NULL || name[0] == '\0' || !memrt__is_name(name)) {
        return MEMRT_EINVAL;
    }
    memrt_scope_t *fresh = new_scope(parent, name);
    if (fresh == NULL) {
        return MEMRT_ENOMEM;
    }
    memrt_scope_t *scope = find_or_place(fresh);
    while (scope == NULL && make_room()) {
        scope = find_or_place(fresh);
    }
    if (scope != fresh) {
        free(fresh);
    }
    if (scope == NULL) {
        return MEMRT_ELIMIT;
    }
    *out = scope;
    return MEMRT_OK;
}

void memrt__scope_acquire(memrt_scope_t *scope)
{
    memrt__fetch_add_relaxed(&scope->refs, 1);
}

/// Release, partner: the acquire load of memrt__scope_is_held().
void memrt__scope_release(memrt_scope_t *scope)
{
    memrt__fetch_sub1_release(&scope->refs);
}

memrt_status_t memrt__scope_enter(memrt_scope_t *scope, memrt_scope_t **before)
{
    memrt__thread_t *self = memrt__thread_self();
    if (self == NULL) {
        return MEMRT_ENOMEM;
    }
    if (before != NULL) {
        *before = self->scope;
    }
    if (scope != NULL) {
        memrt__watch_set(MEMRT__WATCH_SCOPES, true); /* from now on for good */
    }
    self->scope = scope;
    self->part_of = NULL;
    return MEMRT_OK;
}

memrt_scope_t *memrt__scope_current(void)
{
    return memrt__self == NULL ? NULL : memrt__self->scope;
}

/// The first reference to a part is one to its base and its scope.
memrt_status_t memrt__scope_policy(memrt_scope_t *scope, memrt_policy_t *policy,
                                   memrt_policy_t **out)
{
    memrt_policy_t *base = memrt__policy_or_default(policy)->base;
    memrt_policy_t *part = memrt__policy_part(base, scope);
    if (part == NULL) {
        return MEMRT_ENOMEM;
    }
    if (memrt__fetch_add_relaxed(&part->refs, 1) == 0) {
        memrt__policy_acquire(base);
        memrt__scope_acquire(scope);
    }
    *out = part;
    return MEMRT_OK;
}

/// Outside of scopes, and for a part of whatever kind, the policy stands for itself.
memrt_policy_t *memrt__scope_look(memrt_policy_t *policy)
{
    memrt__thread_t *self = memrt__self;
    self->parts_gone = memrt__load_relaxed(&memrt__parts_gone);
    bool inside = self->scope != NULL && !memrt__policy_is_part(policy);
    memrt_policy_t *part = inside ? memrt__policy_part(policy, self->scope) : policy;
    self->part = part == NULL ? policy : part;
    self->part_of = part == NULL ? NULL : policy;
    self->part_shard = self->part->quick ? memrt__shard_make(self, &self->part->account) : NULL;
    return self->part;
}

/// The list only loses what nobody holds, so the next of one that is held can be told.
memrt_scope_t *memrt__scope_next(memrt_scope_t *scope)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt_scope_t *next = scope == NULL ? first : scope->next;
    if (next != NULL) {
        memrt__scope_acquire(next);
    }
    memrt__unlock(MEMRT__RANK_POLICIES);
    return next;
}

bool memrt__scope_is_live(const memrt_scope_t *scope)
{
    memrt__lock(MEMRT__RANK_POLICIES);
    const memrt_scope_t *at = first;
    while (at != NULL && at != scope) {
        at = at->next;
    }
    bool live = at != NULL && memrt__scope_is_held(at);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return live;
}
