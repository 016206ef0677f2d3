#include "numba/scratch.h"

#include <assert.h>

#include "core/mem_handler.h"
#include "core/policy_record.h"
#include "numba/callers.h"

_Static_assert(sizeof(memrt_nrt_scratch_block_t) <= 8 * sizeof(uint64_t),
               "compiled code has 8 words for a block");

#define ONE_ENTRY ((UINT64_C(1) << 32) + 1)
#define OPEN_BLOCKS UINT64_C(0xffffffff)

/// Return a new reference to the policy of the arena in a scope.
static memrt_policy_t *acquire_policy(memrt_policy_t *policy, memrt_scope_t *scope)
{
    memrt_policy_t *subpolicy;
    if (scope != NULL && memrt__api()->scope_policy(scope, policy, &subpolicy) == MEMRT_OK) {
        return subpolicy;
    }
    memrt__api()->policy_acquire(policy);
    return policy;
}

static memrt_stats_t read_stats(const memrt_nrt_scratch_t *scratch)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt_status_t status = memrt__api()->stats_read(scratch->policy, &stats);
    assert(status == MEMRT_OK);
    (void)status;
    return stats;
}

/// Limit the number of known arrays to the live arrays.
static void update_known(memrt_nrt_scratch_t *scratch)
{
    uint64_t known = atomic_load(&scratch->known);
    if (known == 0) {
        return;
    }
    memrt_stats_t stats = read_stats(scratch);
    if (stats.alloc - stats.free < known) {
        atomic_store(&scratch->known, stats.alloc - stats.free);
    }
}

void memrt__nrt_scratch_enter(memrt_nrt_scratch_block_t *block, memrt_nrt_scratch_t *scratch)
{
    memrt_scope_t *scope = memrt__nrt_scope();
    block->caller = (memrt_caller_t){
        .policy = acquire_policy(scratch->policy, scope), .scope = scope, .is_fixed = 1};
    block->scratch = scratch;
    update_known(scratch);
    atomic_fetch_add(&scratch->state, ONE_ENTRY);
    memrt__policy_record_forget();
    memrt__caller_enter(&block->caller);
}

/// Return whether no block of Python is in the arena. Reads the size of the set without the GIL, so
/// a block of Python that begins or ends at the same moment may count.
static int has_no_python_block(const memrt_nrt_scratch_t *scratch)
{
    const PySetObject *blocks = (const PySetObject *)scratch->python_blocks;
    return __atomic_load_n(&blocks->used, __ATOMIC_RELAXED) == 0;
}

/// Judge the arrays after the end of the last block; `state` is the state at the end. Another state
/// after the figures means that a further block was entered: its end judges.
static int judge(memrt_nrt_scratch_t *scratch, uint64_t state)
{
    memrt_stats_t stats = read_stats(scratch);
    if (atomic_load(&scratch->state) != state) {
        return 0;
    }
    uint64_t live = stats.alloc - stats.free;
    atomic_store(&scratch->outlived, live);
    atomic_store(&scratch->outlived_bytes, stats.live);
    return live > atomic_exchange(&scratch->known, live);
}

int memrt__nrt_scratch_leave(memrt_nrt_scratch_block_t *block)
{
    memrt_nrt_scratch_t *scratch = block->scratch;
    memrt__caller_leave(&block->caller);
    memrt__api()->policy_release(block->caller.policy);
    uint64_t state = atomic_fetch_sub(&scratch->state, 1) - 1;
    return (state & OPEN_BLOCKS) == 0 && has_no_python_block(scratch) && judge(scratch, state);
}

PyObject *memrt__nrt_scratch_policy(PyObject *module, PyObject *handler)
{
    (void)module;
    if (!memrt__handler_is_own(handler)) {
        return PyErr_Format(PyExc_TypeError, "handler must be a handler of memrt, got %.200s",
                            Py_TYPE(handler)->tp_name);
    }
    memrt__policy_record_note_choice();
    return PyLong_FromVoidPtr(memrt__handler_policy(handler));
}
