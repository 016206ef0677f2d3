#include "api/counting_table.h"

#include <pthread.h>

#include "api/checking_table.h"
#include "api/plain_table.h"
#include "api/verify_meminfo.h"
#include "runtime/config/options.h"
#include "runtime/policy/reference_counts.h"

/// Table of a process with MEMRT_REFERENCES=1: a copy of the plain or the checking table, with
/// slots that count. So the other tables have no instruction for counting.

static const memrt_api_t *counted; /* table that does the work; fixed */
static memrt_api_t counting_table; /* fixed after the copy */

/// Verify a reference before its policy is read, as the checking table does later.
static void verify_reference(const char *call, const memrt_meminfo_t *mi)
{
    if ((counted->features & MEMRT_FEATURE_CHECKING) != 0) {
        memrt__verify_release(call, mi);
    }
}

/// The slot also finds the table for callers of memrt_api_of_nrt().
static void *find_data(memrt_meminfo_t *mi)
{
    void *data = counted->get_data(mi);
    return data == (const void *)counted ? &counting_table : data;
}

static void count_acquire(memrt_meminfo_t *mi)
{
    counted->acquire(mi);
    memrt__reference_counts_acquired(mi);
}

static int count_try_acquire(memrt_meminfo_t *mi)
{
    int acquired = counted->try_acquire(mi);
    if (acquired) {
        memrt__reference_counts_acquired(mi);
    }
    return acquired;
}

/// Count a reference that a call returned, and return the status of the call.
static memrt_status_t count_returned(memrt_status_t status, memrt_meminfo_t *const *out)
{
    if (status == MEMRT_OK) {
        memrt__reference_counts_acquired(*out);
    }
    return status;
}

static memrt_status_t count_block_meminfo(void *data, memrt_meminfo_t **out)
{
    return count_returned(counted->block_meminfo(data, out), out);
}

static memrt_status_t count_find(const void *data, memrt_meminfo_t **out)
{
    return count_returned(counted->find(data, out), out);
}

static memrt_meminfo_t *count_weak_acquire(const memrt_weak_t *weak)
{
    memrt_meminfo_t *mi = counted->weak_acquire(weak);
    if (mi != NULL) {
        memrt__reference_counts_acquired(mi);
    }
    return mi;
}

static memrt_status_t count_acquire_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                       const char *name)
{
    return count_returned(counted->acquire_as(mi, kind, name), &mi);
}

/// Count a release before the call, which may free the MemInfo.
static void count_release(memrt_meminfo_t *mi)
{
    verify_reference("release", mi);
    memrt__reference_counts_released(mi);
    counted->release(mi);
}

static void count_release_as(memrt_meminfo_t *mi, memrt_holder_kind_t kind, const char *name)
{
    verify_reference("release_as", mi);
    memrt__reference_counts_released(mi);
    counted->release_as(mi, kind, name);
}

static void copy_table(void)
{
    counted = memrt__options.check ? &memrt__checking_table : &memrt__plain_table;
    counting_table = *counted;
    counting_table.get_data = find_data;
    counting_table.acquire = count_acquire;
    counting_table.try_acquire = count_try_acquire;
    counting_table.acquire_as = count_acquire_as;
    counting_table.block_meminfo = count_block_meminfo;
    counting_table.find = count_find;
    counting_table.weak_acquire = count_weak_acquire;
    counting_table.release = count_release;
    counting_table.release_as = count_release_as;
}

const memrt_api_t *memrt__counting_table(void)
{
    static pthread_once_t copied = PTHREAD_ONCE_INIT;
    pthread_once(&copied, copy_table);
    return &counting_table;
}
