#include "api/reference_table.h"

#include <pthread.h>

#include "api/checking_table.h"
#include "api/plain_table.h"
#include "api/verify_meminfo.h"
#include "runtime/config/options.h"
#include "runtime/event/operation_log.h"
#include "runtime/meminfo/references.h"
#include "runtime/meminfo/tiny.h"
#include "runtime/policy/reference_counts.h"

/// Table of a process with MEMRT_REFERENCES=1 or MEMRT_LOG_OPERATIONS: a copy of the plain or the
/// checking table, with slots that count and log. So the other tables have no instruction for
/// either.

static const memrt_api_t *observed; /* table that does the work; fixed */
static memrt_api_t reference_table; /* fixed after the copy */

static bool is_checking(void)
{
    return (observed->features & MEMRT_FEATURE_CHECKING) != 0;
}

/// Verify a reference before its policy is read, as the checking table does later.
static void verify_reference(const char *call, const memrt_meminfo_t *mi)
{
    if (is_checking()) {
        memrt__verify_release(call, mi);
    }
}

/// Count and log a reference that a call acquired. The caller holds the reference.
static void note_acquired(memrt_meminfo_t *mi, const char *operation, size_t before)
{
    memrt__logged_t logged;
    if (memrt__options.references) {
        memrt__reference_counts_acquired(mi);
    }
    if (memrt__log_take(mi, &logged)) {
        memrt__log_count(&logged, operation, before, before + 1);
    }
}

/// Count and log a reference that a call returned. Other threads may have changed the count since
/// the call.
static void note_returned(memrt_meminfo_t *mi, const char *operation)
{
    note_acquired(mi, operation, memrt__meminfo_refcount(mi) - 1);
}

static void note_released(const memrt_meminfo_t *mi)
{
    if (memrt__options.references) {
        memrt__reference_counts_released(mi);
    }
}

/// The slot also finds the table for callers of memrt_api_of_nrt().
static void *find_data(memrt_meminfo_t *mi)
{
    void *data = observed->get_data(mi);
    return data == (const void *)observed ? &reference_table : data;
}

/// Acquire without a call of the observed table, to get the count from the atomic addition.
static void note_acquire(memrt_meminfo_t *mi)
{
    if (is_checking()) {
        memrt__verify_held_meminfo("acquire", mi);
    }
    MEMRT__ASSERT(memrt__meminfo_refcount(mi) != 0);
    note_acquired(mi, "acquire", memrt__fetch_add_relaxed(&mi->refct, 1));
}

static int note_try_acquire(memrt_meminfo_t *mi)
{
    if (is_checking()) {
        memrt__verify_meminfo("try_acquire", mi);
    }
    size_t before = memrt__meminfo_add_unless_0(mi);
    if (before != 0) {
        note_acquired(mi, "try_acquire", before);
    }
    return before != 0;
}

static memrt_status_t note_status(memrt_status_t status, memrt_meminfo_t *const *out,
                                  const char *operation)
{
    if (status == MEMRT_OK) {
        note_returned(*out, operation);
    }
    return status;
}

static memrt_status_t note_block_meminfo(void *data, memrt_meminfo_t **out)
{
    return note_status(observed->block_meminfo(data, out), out, "block_meminfo");
}

static memrt_status_t note_find(const void *data, memrt_meminfo_t **out)
{
    return note_status(observed->find(data, out), out, "find");
}

static memrt_meminfo_t *note_weak_acquire(const memrt_weak_t *weak)
{
    memrt_meminfo_t *mi = observed->weak_acquire(weak);
    if (mi != NULL) {
        note_returned(mi, "weak_acquire");
    }
    return mi;
}

static memrt_status_t note_acquire_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                      const char *name)
{
    return note_status(observed->acquire_as(mi, kind, name), &mi, "acquire_as");
}

/// Release a reference to a chosen MemInfo, as memrt_meminfo_release() does, to get the count from
/// the atomic subtraction.
static void log_release(memrt_meminfo_t *mi, const memrt__logged_t *logged)
{
    size_t before = memrt__fetch_sub1_release(&mi->refct);
    if (before == 0) {
        memrt__store_relaxed(&mi->refct, 0);
        observed->release(mi); /* aborts with a message */
    }
    memrt__log_count(logged, "release", before, before - 1);
    if (before == 1) {
        (void)memrt__load_acquire(&mi->refct);
        observed->call_dtor(mi);
    }
}

/// Count a release before the call, which may free the MemInfo.
static void note_release(memrt_meminfo_t *mi)
{
    memrt__logged_t logged;
    verify_reference("release", mi);
    note_released(mi);
    if (memrt__log_take(mi, &logged)) {
        log_release(mi, &logged);
    } else {
        observed->release(mi);
    }
}

/// Log a release before the call. Other threads may change the count until the call.
static void log_before(const memrt_meminfo_t *mi, const char *operation)
{
    memrt__logged_t logged;
    size_t before = memrt__meminfo_refcount(mi);
    if (before != 0 && memrt__log_take(mi, &logged)) {
        memrt__log_count(&logged, operation, before, before - 1);
    }
}

static void note_release_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    verify_reference("release_as", mi);
    note_released(mi);
    log_before(mi, "release_as");
    observed->release_as(mi, kind, name);
}

/// Log the free by the holder of the data. The holder's reference counts in no figure. Tiny blocks,
/// which have no MemInfo, do not exist in a process with the log.
static void log_block_free(void *policy, void *data, size_t size)
{
    if (data != NULL && !memrt__is_tiny(data)) {
        if (is_checking()) {
            memrt__verify_block("block_free", data);
        }
        log_before(memrt__block_of(data), "block_free");
    }
    observed->block_free(policy, data, size);
}

static memrt_status_t log_set_name(memrt_meminfo_t *mi, const char *name)
{
    memrt_status_t status = observed->set_name(mi, name);
    if (status == MEMRT_OK) {
        memrt__log_name(mi);
    }
    return status;
}

static void copy_table(void)
{
    observed = memrt__options.check ? &memrt__checking_table : &memrt__plain_table;
    reference_table = *observed;
    reference_table.get_data = find_data;
    reference_table.acquire = note_acquire;
    reference_table.try_acquire = note_try_acquire;
    reference_table.acquire_as = note_acquire_as;
    reference_table.block_meminfo = note_block_meminfo;
    reference_table.find = note_find;
    reference_table.weak_acquire = note_weak_acquire;
    reference_table.release = note_release;
    reference_table.release_as = note_release_as;
    reference_table.set_name = log_set_name;
    reference_table.block_free = log_block_free;
}

const memrt_api_t *memrt__reference_table(void)
{
    static pthread_once_t copied = PTHREAD_ONCE_INIT;
    pthread_once(&copied, copy_table);
    return &reference_table;
}
