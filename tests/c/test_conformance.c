/// The clauses of the conformance kit for every allocator and wrapper: adding one is adding a line
/// to `subjects`.

#include "support/suite.h"

#include "conformance/clauses.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard.h"
#include "runtime/alloc/pool.h"
#include "support/counting.h"
#include "support/failing.h"
#include "support/gate.h"
#include "support/hoarding.h"
#include "support/moving.h"

typedef memrt_status_t (*wrap_fn)(const memrt_allocator_t *upstream, memrt_allocator_t *out);

#define WRAPS_MAX 3

/* What policies with limits of their own have, with and without a cache; for the whole run. */
static memrt_allocator_t limited_pool, limited_plain;

static void make_limited(memrt_allocator_t *out, bool cache)
{
    memrt__limits_t limits = {MEMRT__HUGE_ADVISE, (size_t)20 << 20, 5};
    memrt__options.cache = cache;
    REQUIRE(memrt__limited_allocator(&limits, out) == MEMRT_OK);
    out->destroy = NULL;
}

__attribute__((constructor)) static void make_all_limited(void)
{
    bool was = memrt__options.cache;
    make_limited(&limited_pool, true);
    make_limited(&limited_plain, false);
    memrt__options.cache = was;
}

/// A bottom and wrappers over it, innermost first.
typedef struct subject {
    const char *name;
    const memrt_allocator_t *bottom;
    wrap_fn wraps[WRAPS_MAX];
} subject_t;

static const subject_t subjects[] = {
    {"system", &memrt__system_allocator, {0}},
    {"mapped", &memrt__mapped_allocator, {0}},
    {"plain", &memrt__plain_allocator, {0}},
    {"pool", &memrt__pool_allocator, {0}},
    {"pool with limits", &limited_pool, {0}},
    {"plain with limits", &limited_plain, {0}},
    {"guard over system", &memrt__system_allocator, {memrt__guard_new}},
    {"guard over mapped", &memrt__mapped_allocator, {memrt__guard_new}},
    {"guard over pool", &memrt__pool_allocator, {memrt__guard_new}},
    {"guard over guard", &memrt__pool_allocator, {memrt__guard_new, memrt__guard_new}},
    {"failing", &memrt__pool_allocator, {failing_new}},
    {"counting", &memrt__pool_allocator, {counting_new}},
    {"moving over system", &memrt__system_allocator, {moving_new}},
    {"moving over mapped", &memrt__mapped_allocator, {moving_new}},
    {"moving over pool", &memrt__pool_allocator, {moving_new}},
    {"hoarding over moving over pool", &memrt__pool_allocator, {moving_new, hoarding_new}},
    {"gate", &memrt__pool_allocator, {gate_new}},
    {"hoarding", &memrt__pool_allocator, {hoarding_new}},
    {"counting over hoarding", &memrt__pool_allocator, {hoarding_new, counting_new}},
    {"guard over hoarding", &memrt__pool_allocator, {hoarding_new, memrt__guard_new}},
    {"guard over moving over gate",
     &memrt__pool_allocator,
     {gate_new, moving_new, memrt__guard_new}},
};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

/// What a subject is over some bottom; its destroy destroys all of it.
static memrt_allocator_t make_over(const memrt_allocator_t *bottom, int index)
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

static memrt_allocator_t make(int index)
{
    return make_over(subjects[index].bottom, index);
}

TEST_EACH(every_subject_meets_every_clause, SUBJECTS *clause_count)
{
    const subject_t *subject = &subjects[(size_t)index / clause_count];
    const clause_t *clause = &clauses[(size_t)index % clause_count];
    memrt_allocator_t allocator = make(index / (int)clause_count);
    trial_t trial;
    trial_start(&trial, &allocator);
    clause->run(&trial);
    ck_assert_msg(trial.verdict != VERDICT_FAIL, "%s: %s: %s", subject->name, clause->name,
                  trial.saw);
    if (clause->run != clause_destroy) {
        memrt__allocator_destroy(&allocator);
    }
}

static void use(const memrt_allocator_t *allocator)
{
    for (size_t size = 1; size <= MEMRT__LARGE; size += size / 3 + 1) {
        void *ptr = memrt__allocator_alloc(allocator, size, 64, size % 2 == 0);
        ck_assert_ptr_nonnull(ptr);
        ptr = memrt__allocator_realloc(allocator, ptr, size, size / 2 + 100, 64);
        ck_assert_ptr_nonnull(ptr);
        memrt__allocator_free(allocator, ptr, size / 2 + 100, 64);
    }
}

TEST_EACH(what_goes_to_the_bottom_comes_back_with_its_size, SUBJECTS)
{
    counts_t counts;
    memrt_allocator_t bottom;
    ck_assert_int_eq(counting_new(subjects[index].bottom, &bottom), MEMRT_OK);
    counting_at_destroy(&bottom, &counts);
    memrt_allocator_t allocator = make_over(&bottom, index);
    use(&allocator);
    memrt__allocator_destroy(&allocator);
    ck_assert_uint_gt(counts.allocs, 0);
    ck_assert_uint_eq(counts.frees, counts.allocs);
    ck_assert_uint_eq(counts.bytes, 0);
    ck_assert_uint_eq(counts.destroys, 1);
}
