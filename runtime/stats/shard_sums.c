#include "runtime/stats/shard_sums.h"

void memrt__shard_sums_add_out(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum->freed[kind] += memrt__load_acquire(&shard->freed[kind]);
    }
    sum->promoted_out += memrt__load_acquire(&shard->promoted_out);
    sum->bytes_out += memrt__load_acquire(&shard->bytes_out);
    sum->extra_out += memrt__load_acquire(&shard->extra_out);
    sum->adopted_out += memrt__load_acquire(&shard->adopted_out);
    sum->exported_out += memrt__load_acquire(&shard->exported_out);
}

void memrt__shard_sums_add_in(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum->made[kind] += memrt__load_relaxed(&shard->made[kind]);
    }
    sum->promoted_in += memrt__load_relaxed(&shard->promoted_in);
    sum->bytes_in += memrt__load_relaxed(&shard->bytes_in);
    sum->extra_in += memrt__load_relaxed(&shard->extra_in);
    sum->adopted_in += memrt__load_relaxed(&shard->adopted_in);
    sum->exported_in += memrt__load_relaxed(&shard->exported_in);
    sum->realloc += memrt__load_relaxed(&shard->realloc);
    sum->failed += memrt__load_relaxed(&shard->failed);
}

void memrt__shard_sums_add_sizes(const memrt__shard_t *shard, memrt__shard_t *sum)
{
    for (size_t bin = 0; shard->sizes != NULL && bin < MEMRT_SIZE_BINS; bin++) {
        sum->sizes[bin] += memrt__load_relaxed(&shard->sizes[bin]);
    }
}

static void add_thread_shards(const memrt__account_t *account, memrt__shard_add_fn add,
                              memrt__shard_t *sum)
{
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            add(shard, sum);
        }
    }
}

void memrt__shard_sums_add_account(const memrt__account_t *account, memrt__shard_add_fn add,
                                   memrt__shard_t *sum)
{
    add(account->shared, sum);
    add_thread_shards(account, add, sum);
}

size_t memrt__shard_sums_kinds(const size_t *by_kind)
{
    size_t sum = 0;
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum += by_kind[kind];
    }
    return sum;
}
