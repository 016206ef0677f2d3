/// Run the clauses of the conformance kit for every allocator and wrapper. To add an allocator, add
/// a line to `subjects`.

#include "support/suite.h"

#include "conformance/clauses.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/heap/heap.h"
#include "support/allocators/counting.h"
#include "support/allocators/failing.h"
#include "support/allocators/gate.h"
#include "support/allocators/hoarding.h"
#include "support/allocators/moving.h"

typedef memrt_status_t (*wrap_fn)(const memrt_allocator_t *upstream, memrt_allocator_t *out);

#define WRAPS_MAX 3

/* Allocators of policies with limits of their own, with and without a thread cache. Live for the
 * whole run. */
static memrt_allocator_t limited_pool, limited_plain;

static void create_limited(memrt_allocator_t *out, bool cache)
{
    memrt__limits_t limits = {MEMRT__HUGE_ADVISE, (size_t)20 << 20, 5};
    memrt__options.cache = cache;
    REQUIRE(memrt__limited_allocator(&limits, out) == MEMRT_OK);
    out->destroy = NULL;
}

__attribute__((constructor)) static void make_all_limited(void)
{
    bool was = memrt__options.cache;
    create_limited(&limited_pool, true);
    create_limited(&limited_plain, false);
    memrt__options.cache = was;
}

/// Base allocator and wrappers over it, innermost first.
typedef struct subject {
    const char *name;
    const memrt_allocator_t *bottom;
    wrap_fn wraps[WRAPS_MAX];
} subject_t;

static const subject_t subjects[] = {
    {"system", &memrt__system_allocator, {0}},
    {"mapped", &memrt__mapped_allocator, {0}},
    {"uncached", &memrt__uncached_allocator, {0}},
    {"heap", &memrt__heap_allocator, {0}},
    {"pool with limits", &limited_pool, {0}},
    {"plain with limits", &limited_plain, {0}},
    {"guard over system", &memrt__system_allocator, {memrt__guard_new}},
    {"guard over mapped", &memrt__mapped_allocator, {memrt__guard_new}},
    {"guard over pool", &memrt__heap_allocator, {memrt__guard_new}},
    {"guard over guard", &memrt__heap_allocator, {memrt__guard_new, memrt__guard_new}},
    {"failing", &memrt__heap_allocator, {failing_new}},
    {"counting", &memrt__heap_allocator, {counting_new}},
    {"moving over system", &memrt__system_allocator, {moving_new}},
    {"moving over mapped", &memrt__mapped_allocator, {moving_new}},
    {"moving over pool", &memrt__heap_allocator, {moving_new}},
    {"hoarding over moving over pool", &memrt__heap_allocator, {moving_new, hoarding_new}},
    {"gate", &memrt__heap_allocator, {gate_new}},
    {"hoarding", &memrt__heap_allocator, {hoarding_new}},
    {"counting over hoarding", &memrt__heap_allocator, {hoarding_new, counting_new}},
    {"guard over hoarding", &memrt__heap_allocator, {hoarding_new, memrt__guard_new}},
    {"guard over moving over gate",
     &memrt__heap_allocator,
     {gate_new, moving_new, memrt__guard_new}},
};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

/// Build a subject over a base allocator. The result's destroy destroys all wrappers.
static memrt_allocator_t create_subject_over(const memrt_allocator_t *bottom, int index)
{
    const subject_t *subject = &subjects[index];
    memrt_allocator_t made = *bottom;
    for (size_t i = 0; i < WRAPS_MAX && subject->wraps[i] != NULL; i++) {
        memrt_allocator_t outer;
        ck_assert_msg(subject->wraps[i](&made, &outer) == MEMRT_OK, "%s", subject->name);
        made = outer;
    }
    return made;
}

static memrt_allocator_t create_subject(int index)
{
    return create_subject_over(subjects[index].bottom, index);
}

TEST_EACH(every_allocator_passes_every_conformance_clause, SUBJECTS *clause_count)
{
    const subject_t *subject = &subjects[(size_t)index / clause_count];
    const clause_t *clause = &clauses[(size_t)index % clause_count];
    memrt_allocator_t allocator = create_subject(index / (int)clause_count);
    trial_t trial;
    trial_start(&trial, &allocator);
    clause->run(&trial);
    ck_assert_msg(trial.verdict != VERDICT_FAIL, "%s: %s: %s", subject->name, clause->name,
                  trial.saw);
    if (clause->run != clause_destroy) {
        memrt__allocator_destroy(&allocator);
    }
}

static void use_allocator(const memrt_allocator_t *allocator)
{
    for (size_t size = 1; size <= MEMRT__LARGE; size += size / 3 + 1) {
        void *ptr = memrt__allocator_alloc(allocator, size, 64, size % 2 == 0);
        ck_assert_ptr_nonnull(ptr);
        ptr = memrt__allocator_realloc(allocator, ptr, size, size / 2 + 100, 64);
        ck_assert_ptr_nonnull(ptr);
        memrt__allocator_free(allocator, ptr, size / 2 + 100, 64);
    }
}

TEST_EACH(allocators_return_all_bytes_to_their_base_allocator, SUBJECTS)
{
    counts_t counts;
    memrt_allocator_t bottom;
    ck_assert_int_eq(counting_new(subjects[index].bottom, &bottom), MEMRT_OK);
    counting_at_destroy(&bottom, &counts);
    memrt_allocator_t allocator = create_subject_over(&bottom, index);
    use_allocator(&allocator);
    memrt__allocator_destroy(&allocator);
    ck_assert_uint_gt(counts.allocs, 0);
    ck_assert_uint_eq(counts.frees, counts.allocs);
    ck_assert_uint_eq(counts.bytes, 0);
    ck_assert_uint_eq(counts.destroys, 1);
}
