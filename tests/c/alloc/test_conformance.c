/// Run the clauses of the conformance kit for every allocator and wrapper. To add an allocator, add
/// a line to `subjects`.

#include "support/suite.h"

#include <fcntl.h>

#include "conformance/clauses.h"
#include "runtime/alloc/adaptors/adaptor.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/file_backed.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/heap/heap.h"
#include "runtime/alloc/placed/placed.h"
#include "runtime/alloc/reserved.h"
#include "support/allocators/counting.h"
#include "support/allocators/failing.h"
#include "support/allocators/gate.h"
#include "support/allocators/hoarding.h"
#include "support/allocators/moving.h"

typedef memrt_status_t (*wrap_fn)(const memrt_allocator_t *upstream, memrt_allocator_t *out);

#define WRAPS_MAX 3

/* Allocators of policies with limits of their own, with and without a thread cache. Live for the
 * whole run. */
static memrt_allocator_t limited_pool, limited_plain, reserved, reserved_little, placed, in_file,
    memory_file;

static void create_limited(memrt_allocator_t *out, bool cache)
{
    memrt__limits_t limits = {MEMRT__HUGE_ADVISE, (size_t)20 << 20, 5, MEMRT__INHERIT};
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
    reserved = memrt__reserved_allocator((size_t)1 << 30);
    reserved_little = memrt__reserved_allocator(0);
    memrt_placement_options_t placement = {
        .struct_size = sizeof(placement), .lock = MEMRT_LOCK_TRY, .prefault = 1};
    REQUIRE(memrt__placed_new(&placement, &placed, NULL, 0) == MEMRT_OK);
    placed.destroy = NULL;
    REQUIRE(memrt__file_backed_new("/tmp", &in_file) == MEMRT_OK);
    REQUIRE(memrt__file_backed_new(NULL, &memory_file) == MEMRT_OK);
    in_file.destroy = memory_file.destroy = NULL;
}

static int refuse_again(size_t size, size_t align, void *context)
{
    (void)size;
    (void)align;
    (void)context;
    return 0;
}

static memrt_status_t new_adaptor(const memrt_allocator_t *upstream, uint32_t kind, size_t amount,
                                  memrt_allocator_t *out)
{
    static memrt_adaptor_counts_t counts;
    static int file = -1;
    file = file < 0 ? open("/dev/null", O_WRONLY | O_CLOEXEC) : file;
    memrt_adaptor_options_t options = {
        .struct_size = sizeof(options),
        .kind = kind,
        .file = file,
        .amount = amount,
        .counts = &counts,
        .failed = refuse_again,
    };
    return memrt__adaptor_new(upstream, &options, out);
}

static memrt_status_t counting_adaptor_new(const memrt_allocator_t *upstream,
                                           memrt_allocator_t *out)
{
    return new_adaptor(upstream, MEMRT_ADAPTOR_COUNTING, 0, out);
}

static memrt_status_t limiting_adaptor_new(const memrt_allocator_t *upstream,
                                           memrt_allocator_t *out)
{
    return new_adaptor(upstream, MEMRT_ADAPTOR_LIMITING, (size_t)1 << 30, out);
}

static memrt_status_t aligning_adaptor_new(const memrt_allocator_t *upstream,
                                           memrt_allocator_t *out)
{
    return new_adaptor(upstream, MEMRT_ADAPTOR_ALIGNING, 16, out);
}

static memrt_status_t retrying_adaptor_new(const memrt_allocator_t *upstream,
                                           memrt_allocator_t *out)
{
    return new_adaptor(upstream, MEMRT_ADAPTOR_RETRYING, 0, out);
}

static memrt_status_t logging_adaptor_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    return new_adaptor(upstream, MEMRT_ADAPTOR_LOGGING, 0, out);
}

static memrt_status_t thread_safe_adaptor_new(const memrt_allocator_t *upstream,
                                              memrt_allocator_t *out)
{
    return new_adaptor(upstream, MEMRT_ADAPTOR_THREAD_SAFE, 0, out);
}

static memrt_status_t prefetching_adaptor_new(const memrt_allocator_t *upstream,
                                              memrt_allocator_t *out)
{
    return new_adaptor(upstream, MEMRT_ADAPTOR_PREFETCHING, 1000, out);
}

static memrt_status_t arena_adaptor_new(const memrt_allocator_t *upstream, memrt_allocator_t *out)
{
    return new_adaptor(upstream, MEMRT_ADAPTOR_ARENA, (size_t)1 << 16, out);
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
    {"reserved", &reserved, {0}},
    {"reserved without room", &reserved_little, {0}},
    {"placed", &placed, {0}},
    {"file", &in_file, {0}},
    {"memory file", &memory_file, {0}},
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
    {"counting adaptor", &memrt__heap_allocator, {counting_adaptor_new}},
    {"counting adaptor over system", &memrt__system_allocator, {counting_adaptor_new}},
    {"limiting adaptor", &memrt__system_allocator, {limiting_adaptor_new}},
    {"aligning adaptor", &memrt__system_allocator, {aligning_adaptor_new}},
    {"aligning adaptor over moving", &memrt__heap_allocator, {moving_new, aligning_adaptor_new}},
    {"retrying adaptor", &memrt__heap_allocator, {retrying_adaptor_new}},
    {"logging adaptor", &memrt__heap_allocator, {logging_adaptor_new}},
    {"thread-safe adaptor", &memrt__system_allocator, {thread_safe_adaptor_new}},
    {"thread-safe over thread-safe over moving",
     &memrt__heap_allocator,
     {moving_new, thread_safe_adaptor_new, thread_safe_adaptor_new}},
    {"prefetching adaptor", &memrt__heap_allocator, {prefetching_adaptor_new}},
    {"prefetching over moving over mapped",
     &memrt__mapped_allocator,
     {moving_new, prefetching_adaptor_new}},
    {"arena", &memrt__heap_allocator, {arena_adaptor_new}},
    {"arena over system", &memrt__system_allocator, {arena_adaptor_new}},
    {"arena over guard", &memrt__heap_allocator, {memrt__guard_new, arena_adaptor_new}},
    {"guard over arena over moving",
     &memrt__heap_allocator,
     {moving_new, arena_adaptor_new, memrt__guard_new}},
    {"logging over limiting over guard",
     &memrt__system_allocator,
     {memrt__guard_new, limiting_adaptor_new, logging_adaptor_new}},
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
