#include "runtime/stats/thread_stats.h"

#include "runtime/os/lock.h"
#include "runtime/stats/shard_sums.h"

static void add_shard(const memrt__shard_t *shard, memrt__usage_t *sum)
{
    memrt__sums_t counts = {0};
    memrt__shard_sums_add_out(shard, &counts);
    memrt__shard_sums_add_in(shard, &counts);
    sum->bytes_out += counts.bytes_out;
    sum->freed += memrt__shard_sums_kinds(counts.freed);
    sum->bytes_in += counts.bytes_in;
    sum->made += memrt__shard_sums_kinds(counts.made);
}

/// Return the counts of a record since its creation.
static memrt__usage_t read_record(const memrt__thread_t *thread)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    memrt__usage_t sum = thread->usage.retired;
    for (const memrt__account_t *a = memrt__account_first(); a != NULL; a = a->next) {
        const memrt__shard_t *shard = memrt__thread_shard(thread, a->index);
        if (shard != NULL) {
            add_shard(shard, &sum);
        }
    }
    return sum;
}

/// Prepare a record for its next owner.
static void begin_anew(memrt__thread_t *thread)
{
    thread->usage.before = read_record(thread);
    memrt__store_relaxed(&thread->usage.started, 0);
}

void memrt__thread_stats_start(void)
{
    static const memrt__thread_module_t module = {{[MEMRT__THREAD_RESET] = begin_anew}};
    memrt__thread_add_module(&module);
}

void memrt__thread_stats_retire(memrt__thread_t *thread, const memrt__shard_t *shard)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_THREADS);
    add_shard(shard, &thread->usage.retired);
}

static void write_stats(const memrt__thread_t *thread, size_t started, memrt_thread_stats_t *out)
{
    memrt__usage_t now = read_record(thread), before = thread->usage.before;
    out->id = thread->number;
    out->started = started;
    out->alloc = now.made - before.made;
    out->free = now.freed - before.freed;
    out->allocated = now.bytes_in - before.bytes_in;
    out->freed = now.bytes_out - before.bytes_out;
}

bool memrt__thread_stats_have_sizes(const memrt_thread_stats_t *out, size_t count)
{
    size_t i = 0;
    if (out == NULL) {
        return count == 0;
    }
    while (i < count && out[i].struct_size == sizeof(*out)) {
        i++;
    }
    return i == count;
}

size_t memrt__thread_stats_read_locked(memrt_thread_stats_t *out, size_t room)
{
    size_t threads = 0;
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        size_t started = t->in_use ? memrt__load_acquire(&t->usage.started) : 0;
        if (started != 0) {
            if (threads < room) {
                write_stats(t, started, &out[threads]);
            }
            threads++;
        }
    }
    return threads;
}

memrt_status_t memrt__thread_stats_read(memrt_thread_stats_t *out, size_t *count)
{
    if (count == NULL || !memrt__thread_stats_have_sizes(out, *count)) {
        return MEMRT_EINVAL;
    }
    memrt__lock(MEMRT__RANK_THREADS);
    *count = memrt__thread_stats_read_locked(out, *count);
    memrt__unlock(MEMRT__RANK_THREADS);
    return MEMRT_OK;
}
