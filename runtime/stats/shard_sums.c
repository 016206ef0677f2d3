#include "runtime/stats/shard_sums.h"

/// Kinds of blocks with their counters.
static const struct {
    unsigned kind, first, count;
} kinds[] = {
    {MEMRT_KIND_INLINE, MEMRT__COUNTS_INLINE, MEMRT_SIZE_BINS},
    {MEMRT_KIND_BLOCK, MEMRT__COUNTS_BLOCK, MEMRT_SIZE_BINS},
    {MEMRT__KIND_TINY, MEMRT__COUNTS_TINY, MEMRT__TINY_BINS},
    {MEMRT_KIND_ADOPTED, MEMRT__COUNTS_ADOPTED, 1},
    {MEMRT_KIND_RESIZABLE, MEMRT__COUNTS_RESIZABLE, 1},
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))
#define KINDS_WITH_DATA 3

_Static_assert(MEMRT__KINDS == KINDS + 1, "kinds begin with 1");

/// Add the counters of each kind.
static void add_counts(const size_t *counts, size_t *by_kind)
{
    for (size_t i = 0; i < KINDS; i++) {
        size_t sum = 0;
        for (size_t j = 0; j < kinds[i].count; j++) {
            sum += memrt__load_acquire(&counts[kinds[i].first + j]);
        }
        by_kind[kinds[i].kind] += sum;
    }
}

void memrt__shard_sums_add_out(const memrt__shard_t *shard, memrt__sums_t *sum)
{
    add_counts(shard->freed, sum->freed);
    sum->promoted_out += memrt__load_acquire(&shard->promoted_out);
    sum->bytes_out += memrt__shard_bytes_out(shard);
    sum->extra_out += memrt__load_acquire(&shard->extra_out);
    sum->adopted_out += memrt__load_acquire(&shard->adopted_out);
    sum->exported_out += memrt__load_acquire(&shard->exported_out);
}

void memrt__shard_sums_add_in(const memrt__shard_t *shard, memrt__sums_t *sum)
{
    add_counts(shard->made, sum->made);
    sum->promoted_in += memrt__load_relaxed(&shard->promoted_in);
    sum->bytes_in += memrt__shard_bytes_in(shard);
    sum->extra_in += memrt__load_relaxed(&shard->extra_in);
    sum->adopted_in += memrt__load_relaxed(&shard->adopted_in);
    sum->exported_in += memrt__load_relaxed(&shard->exported_in);
    sum->realloc += memrt__load_relaxed(&shard->realloc);
    sum->failed += memrt__load_relaxed(&shard->failed);
}

void memrt__shard_sums_add(const memrt__sums_t *other, memrt__sums_t *sum)
{
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum->made[kind] += other->made[kind];
        sum->freed[kind] += other->freed[kind];
    }
    sum->bytes_in += other->bytes_in;
    sum->bytes_out += other->bytes_out;
    sum->promoted_in += other->promoted_in;
    sum->promoted_out += other->promoted_out;
    sum->extra_in += other->extra_in;
    sum->extra_out += other->extra_out;
    sum->adopted_in += other->adopted_in;
    sum->adopted_out += other->adopted_out;
    sum->exported_in += other->exported_in;
    sum->exported_out += other->exported_out;
    sum->realloc += other->realloc;
    sum->failed += other->failed;
}

static void add_sizes(const size_t *counts, size_t *sizes)
{
    for (size_t i = 0; i < KINDS_WITH_DATA; i++) {
        for (size_t bin = 0; bin < kinds[i].count; bin++) {
            sizes[bin] += memrt__load_acquire(&counts[kinds[i].first + bin]);
        }
    }
}

void memrt__shard_sums_add_freed_sizes(const memrt__shard_t *shard, size_t *sizes)
{
    add_sizes(shard->freed, sizes);
}

void memrt__shard_sums_add_made_sizes(const memrt__shard_t *shard, size_t *sizes)
{
    add_sizes(shard->made, sizes);
}

void memrt__shard_sums_add_account_sizes(const memrt__account_t *account,
                                         memrt__shard_add_sizes_fn add, size_t *sizes)
{
    add(account->shared, sizes);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            add(shard, sizes);
        }
    }
}

void memrt__shard_sums_add_account(const memrt__account_t *account, memrt__shard_add_fn add,
                                   memrt__sums_t *sum)
{
    add(account->shared, sum);
    for (memrt__thread_t *t = memrt__thread_first(); t != NULL; t = t->next) {
        const memrt__shard_t *shard = memrt__thread_shard(t, account->index);
        if (shard != NULL) {
            add(shard, sum);
        }
    }
}

size_t memrt__shard_sums_kinds(const size_t *by_kind)
{
    size_t sum = 0;
    for (size_t kind = 0; kind < MEMRT__KINDS; kind++) {
        sum += by_kind[kind];
    }
    return sum;
}
