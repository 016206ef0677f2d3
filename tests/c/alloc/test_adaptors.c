/// Test the properties that adaptors add. The conformance kit tests their blocks
/// (test_conformance.c).

#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/alloc/adaptors/adaptor.h"
#include "runtime/alloc/allocator.h"
#include "runtime/base/atomics.h"
#include "runtime/os/os.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

static memrt_allocator_t adaptor;

static void new_over(const memrt_allocator_t *upstream, memrt_adaptor_options_t options)
{
    options.struct_size = sizeof(options);
    ck_assert_int_eq(memrt__adaptor_new(upstream, &options, &adaptor), MEMRT_OK);
}

static void *allocate(size_t size, size_t align)
{
    return adaptor.alloc(adaptor.ctx, size, align);
}

static void release(void *ptr, size_t size, size_t align)
{
    adaptor.free(adaptor.ctx, ptr, size, align);
}

static void *resize(void *ptr, size_t old_size, size_t new_size)
{
    return adaptor.realloc(adaptor.ctx, ptr, old_size, new_size, 16);
}

static void destroy(void)
{
    adaptor.destroy(adaptor.ctx);
}

/// Upstream that honours alignments up to 16, and refuses the next `refusals` requests.
static size_t refusals, largest_align, calls_of_failed;

static void *picky_alloc(void *ctx, size_t size, size_t align)
{
    largest_align = align > largest_align ? align : largest_align;
    if (refusals != 0) {
        refusals--;
        return NULL;
    }
    (void)ctx;
    return memrt__system_allocator.alloc(NULL, size, align);
}

static void picky_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    memrt__system_allocator.free(NULL, ptr, size, align);
}

static const memrt_allocator_t picky = {
    .struct_size = sizeof(picky),
    .version = MEMRT_ALLOCATOR_VERSION,
    .name = "picky",
    .alloc = picky_alloc,
    .free = picky_free,
};

TEST(counting_adaptor_counts_calls_and_bytes)
{
    memrt_adaptor_counts_t counts = {0};
    new_over(&picky, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_COUNTING, .counts = &counts});
    void *a = allocate(100, 16);
    void *b = adaptor.alloc_zeroed(adaptor.ctx, 50, 16);
    a = resize(a, 100, 300);
    a = resize(a, 300, 10);
    refusals = 2;
    ck_assert_ptr_null(allocate(7, 16));
    ck_assert_ptr_null(resize(a, 10, 1000));
    release(b, 50, 16);
    ck_assert_uint_eq(counts.allocations, 2);
    ck_assert_uint_eq(counts.resizes, 2);
    ck_assert_uint_eq(counts.frees, 1);
    ck_assert_uint_eq(counts.refusals, 2);
    ck_assert_uint_eq(counts.in_use, 10);
    ck_assert_uint_eq(counts.peak, 350);
    release(a, 10, 16);
    ck_assert_uint_eq(counts.in_use, 0);
    destroy();
}

TEST(limiting_adaptor_refuses_above_the_limit)
{
    new_over(&picky, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_LIMITING, .amount = 100});
    void *a = allocate(60, 16);
    ck_assert_ptr_null(allocate(41, 16));
    ck_assert_ptr_null(adaptor.alloc_zeroed(adaptor.ctx, SIZE_MAX, 16));
    void *b = adaptor.alloc_zeroed(adaptor.ctx, 40, 16);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_null(resize(a, 60, 61));
    a = resize(a, 60, 20);
    a = resize(a, 20, 60);
    ck_assert_ptr_nonnull(a);
    release(b, 40, 16);
    refusals = 2; /* a refusal of the upstream gives the bytes back */
    ck_assert_ptr_null(allocate(40, 16));
    ck_assert_ptr_null(resize(a, 60, 100));
    a = resize(a, 60, 100);
    ck_assert_ptr_nonnull(a);
    release(a, 100, 16);
    destroy();
}

TEST(aligning_adaptor_serves_alignments_that_the_upstream_lacks)
{
    largest_align = 0;
    new_over(&picky, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_ALIGNING, .amount = 16});
    for (size_t align = 1; align <= 1 << 20; align *= 2) {
        char *ptr = allocate(100, align);
        ck_assert_ptr_nonnull(ptr);
        ck_assert_uint_eq((uintptr_t)ptr % align, 0);
        memset(ptr, 7, 100);
        ptr = adaptor.realloc(adaptor.ctx, ptr, 100, 5000, align);
        ck_assert_uint_eq((uintptr_t)ptr % align, 0);
        ck_assert_int_eq(ptr[99], 7);
        release(ptr, 5000, align);
    }
    char *zeros = adaptor.alloc_zeroed(adaptor.ctx, 100, 4096);
    for (size_t i = 0; i < 100; i++) {
        ck_assert_int_eq(zeros[i], 0);
    }
    refusals = 1;
    ck_assert_ptr_null(adaptor.realloc(adaptor.ctx, zeros, 100, 200, 4096));
    release(zeros, 100, 4096);
    refusals = 1;
    ck_assert_ptr_null(allocate(100, 4096));
    ck_assert_ptr_null(allocate(SIZE_MAX - 64, 4096));
    ck_assert_uint_eq(largest_align, 16);
    destroy();
}

/* The upstream has room for 1000 bytes after each start. */

static int expand_to_1000(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx, (void)ptr, (void)align;
    ck_assert_uint_gt(new_size, old_size);
    return new_size <= 1000;
}

static size_t use_1000(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)ptr, (void)align;
    ck_assert_uint_le(size, 1000);
    return 1000;
}

static size_t prefer_1000(void *ctx, size_t size, size_t align)
{
    return use_1000(ctx, NULL, size, align);
}

static void *alloc_1000(void *ctx, size_t size, size_t align)
{
    ck_assert_uint_le(size, 1000);
    return picky_alloc(ctx, 1000, align);
}

static bool grow(void *ptr, size_t from, size_t to, size_t align)
{
    return memrt__allocator_try_expand(&adaptor, ptr, from, to, align);
}

static memrt_allocator_t create_roomy_upstream(void)
{
    memrt_allocator_t roomy = picky;
    roomy.alloc = alloc_1000;
    roomy.try_expand = expand_to_1000;
    roomy.usable_size = use_1000;
    roomy.good_size = prefer_1000;
    return roomy;
}

TEST(aligning_adaptor_grows_in_place_and_adds_its_bytes)
{
    memrt_allocator_t roomy = create_roomy_upstream();
    new_over(&roomy, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_ALIGNING, .amount = 16});
    char *near = allocate(100, 16), *far = allocate(100, 64);
    size_t room = 1000 - 64 - sizeof(void *);
    ck_assert(grow(near, 100, 1000, 16));
    ck_assert(!grow(near, 1000, 1001, 16));
    ck_assert(!grow(far, 100, room + 1, 64));
    ck_assert(!grow(far, 100, SIZE_MAX, 64));
    ck_assert_ptr_eq(adaptor.realloc(adaptor.ctx, far, 100, room, 64), far);
    ck_assert_uint_eq(memrt__allocator_usable_size(&adaptor, near, 1000, 16), 1000);
    ck_assert_uint_eq(memrt__allocator_usable_size(&adaptor, far, room, 64), room);
    ck_assert_uint_eq(memrt__allocator_good_size(&adaptor, 100, 64), room);
    ck_assert_uint_eq(memrt__allocator_good_size(&adaptor, SIZE_MAX, 64), SIZE_MAX);
    release(near, 1000, 16);
    release(far, room, 64);
    destroy();
}

TEST(counting_adaptor_counts_growth_in_place_as_a_resize)
{
    memrt_adaptor_counts_t counts = {0};
    memrt_allocator_t roomy = create_roomy_upstream();
    new_over(&roomy, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_COUNTING, .counts = &counts});
    void *ptr = allocate(100, 16);
    ck_assert(grow(ptr, 100, 900, 16));
    ck_assert(!grow(ptr, 900, 1001, 16));
    ck_assert_uint_eq(counts.resizes, 1);
    ck_assert_uint_eq(counts.refusals, 0);
    ck_assert_uint_eq(counts.in_use, 900);
    ck_assert_uint_eq(counts.peak, 900);
    ck_assert_uint_eq(memrt__allocator_usable_size(&adaptor, ptr, 900, 16), 1000);
    ck_assert_uint_eq(memrt__allocator_good_size(&adaptor, 100, 16), 1000);
    release(ptr, 900, 16);
    destroy();
}

TEST(limiting_adaptor_refuses_growth_in_place_above_the_limit)
{
    memrt_allocator_t roomy = create_roomy_upstream();
    new_over(&roomy, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_LIMITING, .amount = 1200});
    void *ptr = allocate(100, 16);
    ck_assert(!grow(ptr, 100, 1201, 16));
    ck_assert(!grow(ptr, 100, 1100, 16)); /* the upstream refuses, and the bytes are given back */
    ck_assert(grow(ptr, 100, 1000, 16));
    ck_assert_ptr_null(allocate(201, 16));
    release(ptr, 1000, 16);
    destroy();
}

static int refuse_repeats(size_t size, size_t align, void *context)
{
    (void)size, (void)align, (void)context;
    return ++calls_of_failed < 2;
}

TEST(retrying_adaptor_does_not_repeat_growth_in_place)
{
    memrt_allocator_t roomy = create_roomy_upstream();
    new_over(&roomy,
             (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_RETRYING, .failed = refuse_repeats});
    void *ptr = allocate(100, 16);
    ck_assert(!grow(ptr, 100, 1001, 16));
    ck_assert(grow(ptr, 100, 1000, 16));
    ck_assert_uint_eq(calls_of_failed, 0);
    release(ptr, 1000, 16);
    destroy();
}

static int repeat_twice(size_t size, size_t align, void *context)
{
    ck_assert_ptr_eq(context, &refusals);
    ck_assert_uint_eq(size, 100);
    ck_assert_uint_eq(align, 16);
    return ++calls_of_failed <= 2;
}

TEST(retrying_adaptor_repeats_while_the_function_says_so)
{
    new_over(&picky, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_RETRYING,
                                               .failed = repeat_twice,
                                               .context = &refusals});
    refusals = 2;
    void *ptr = allocate(100, 16);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_uint_eq(calls_of_failed, 2);
    release(ptr, 100, 16);
    calls_of_failed = 0;
    refusals = 3;
    ck_assert_ptr_null(adaptor.alloc_zeroed(adaptor.ctx, 100, 16));
    ck_assert_uint_eq(calls_of_failed, 3);
    calls_of_failed = 0;
    ptr = allocate(50, 16);
    refusals = 1;
    ptr = resize(ptr, 50, 100);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_uint_eq(calls_of_failed, 1);
    calls_of_failed = 2;
    refusals = 1;
    ck_assert_ptr_null(resize(ptr, 100, 100));
    release(ptr, 100, 16);
    destroy();
}

/// Compare the next line of a log, from its fourth field on.
static void check_line(FILE *log, const char *call, const void *ptr, const char *rest)
{
    char line[200], start[40];
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), log));
    ck_assert_int_eq(strncmp(line, call, strlen(call)), 0);
    snprintf(start, sizeof(start), ptr == NULL ? ",0," : ",%p,", ptr);
    const char *found = strstr(line, start);
    ck_assert_msg(found != NULL && strcmp(found + strlen(start), rest) == 0, "%s", line);
}

TEST(logging_adaptor_writes_a_line_for_each_call)
{
    int ends[2];
    char rest[60];
    ck_assert_int_eq(pipe(ends), 0);
    new_over(&picky, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_LOGGING, .file = ends[1]});
    void *a = allocate(100, 16);
    void *zeros = adaptor.alloc_zeroed(adaptor.ctx, 50, 8);
    void *moved = resize(a, 100, 5000);
    refusals = 1;
    ck_assert_ptr_null(allocate(7, 16));
    release(zeros, 50, 8);
    release(moved, 5000, 16);
    destroy();
    close(ends[1]);
    FILE *log = fdopen(ends[0], "r");
    check_line(log, "alloc,", a, "100,16,0\n");
    check_line(log, "alloc,", zeros, "50,8,0\n");
    snprintf(rest, sizeof(rest), "5000,16,%p\n", a);
    check_line(log, "realloc,", moved, rest);
    check_line(log, "alloc,", NULL, "7,16,0\n");
    check_line(log, "free,", zeros, "50,8,0\n");
    check_line(log, "free,", moved, "5000,16,0\n");
    ck_assert_int_eq(fgetc(log), EOF);
    fclose(log);
}

/// Upstream for one thread at a time, without atomic words. `deeper` runs inside of a call.
static size_t calls_inside, calls_done;
static void (*deeper)(void);

static void begin_fragile_call(size_t depth)
{
    REQUIRE(calls_inside == depth);
    calls_inside++;
    sched_yield();
}

static void end_fragile_call(void)
{
    calls_inside--;
    calls_done++;
}

static void *fragile_alloc(void *ctx, size_t size, size_t align)
{
    void (*inner)(void) = deeper;
    begin_fragile_call(ctx != NULL ? 0 : calls_inside);
    deeper = NULL;
    if (inner != NULL) {
        inner();
    }
    void *ptr = memrt__system_allocator.alloc(NULL, size, align);
    end_fragile_call();
    return ptr;
}

static void fragile_free(void *ctx, void *ptr, size_t size, size_t align)
{
    begin_fragile_call(ctx != NULL ? 0 : calls_inside);
    memrt__system_allocator.free(NULL, ptr, size, align);
    end_fragile_call();
}

static size_t fragile_release_unused(void *ctx)
{
    (void)ctx;
    begin_fragile_call(0);
    end_fragile_call();
    return 0;
}

static void fragile_usage(void *ctx, memrt_allocator_usage_t *out)
{
    out->cached = fragile_release_unused(ctx) + 33;
}

static char is_strict; /* context of an upstream that refuses calls inside of calls */

static memrt_allocator_t create_fragile(bool strict)
{
    calls_inside = calls_done = 0;
    return (memrt_allocator_t){
        .struct_size = sizeof(memrt_allocator_t),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "fragile",
        .ctx = strict ? &is_strict : NULL,
        .alloc = fragile_alloc,
        .free = fragile_free,
        .release_unused = fragile_release_unused,
        .usage = fragile_usage,
    };
}

static void new_thread_safe(bool strict)
{
    memrt_allocator_t fragile = create_fragile(strict);
    new_over(&fragile, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_THREAD_SAFE});
}

#define USES 200u

static void use_adaptor(size_t index, void *context)
{
    const memrt_allocator_t *used = context;
    memrt_allocator_usage_t usage;
    for (size_t i = 0; i < USES; i++) {
        char *ptr = memrt__allocator_alloc(used, 100, 16, index % 2 == 0);
        ptr = memrt__allocator_realloc(used, ptr, 100, 200, 16); /* alloc and free */
        REQUIRE(ptr != NULL);
        memrt__allocator_free(used, ptr, 200, 16);
    }
    used->usage(used->ctx, &usage);
    REQUIRE(usage.cached == 33);
    REQUIRE(memrt__allocator_release_unused(used) == 0);
}

TEST(thread_safe_adaptor_serializes_calls_of_threads)
{
    new_thread_safe(true);
    crew_run(4, use_adaptor, &adaptor);
    ck_assert_uint_eq(calls_done, 4 * (4 * USES + 2));
    destroy();
}

static void use_one_of_two(size_t index, void *context)
{
    use_adaptor(index, (memrt_allocator_t *)context + index % 2);
}

TEST(thread_safe_adaptors_over_the_same_functions_share_a_lock)
{
    memrt_allocator_t both[2];
    new_thread_safe(true);
    both[0] = adaptor;
    new_thread_safe(true);
    both[1] = adaptor;
    crew_run(4, use_one_of_two, both);
    destroy();
    both[0].destroy(both[0].ctx);
}

static void allocate_inside(void)
{
    release(allocate(50, 16), 50, 16);
}

TEST(upstream_may_call_its_thread_safe_adaptor)
{
    new_thread_safe(false);
    deeper = allocate_inside;
    void *ptr = allocate(100, 16);
    ck_assert_uint_eq(calls_done, 3);
    release(ptr, 100, 16);
    crew_run(2, use_adaptor, &adaptor); /* the lock is free again */
    destroy();
}

static size_t stopped; /* relaxed */

static void *use_until_stopped(void *context)
{
    while (!memrt__load_relaxed(&stopped)) {
        release(allocate(100, 16), 100, 16);
        sched_yield(); /* mutexes are not fair: let the fork have the lock */
    }
    return context;
}

static void use_in_child(void)
{
    child_start_watchdog();
    if (calls_inside != 0) {
        _exit(1);
    }
    if (SUITE_THREAD_SANITIZER) { /* allows no threads in a child of a process with threads */
        use_adaptor(0, &adaptor);
    } else {
        crew_run(2, use_adaptor, &adaptor);
    }
    _exit(0);
}

TEST(fork_waits_for_calls_of_a_thread_safe_adaptor)
{
    pthread_t thread;
    new_thread_safe(true);
    memrt__store_relaxed(&stopped, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, use_until_stopped, NULL), 0);
    for (int round = 0; round < 10; round++) {
        pid_t child = fork();
        if (child == 0) {
            use_in_child();
        }
        ck_assert_int_eq(child_wait(child), 0);
    }
    memrt__store_relaxed(&stopped, 1);
    pthread_join(thread, NULL);
    destroy();
}

static pid_t child_inside;

static void fork_inside(void)
{
    child_inside = fork();
}

TEST(upstream_of_a_thread_safe_adaptor_may_fork)
{
    new_thread_safe(true);
    deeper = fork_inside;
    void *ptr = allocate(100, 16);
    release(ptr, 100, 16);
    if (child_inside == 0) {
        use_in_child();
    }
    ck_assert_int_eq(child_wait(child_inside), 0);
    crew_run(2, use_adaptor, &adaptor);
    destroy();
}

#define BIG ((size_t)2 << 20)

/// Return the bytes in memory of the whole pages that hold bytes `from` to `to` of a block.
static size_t get_resident(const char *ptr, size_t from, size_t to)
{
    size_t page = memrt__os_page_size();
    uintptr_t start = (uintptr_t)(ptr + from) & ~(page - 1);
    uintptr_t end = ((uintptr_t)(ptr + to) + page - 1) & ~(page - 1);
    return memrt__os_resident_part(start, end - start);
}

/// Kernels: 0 has MADV_POPULATE_WRITE, 1 lacks the call.
TEST_EACH(prefetching_adaptor_maps_pages_of_new_blocks, 2)
{
    const memrt_allocator_t *mapped = &memrt__mapped_allocator;
    new_over(mapped, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_PREFETCHING, .amount = BIG});
    if (index == 1) {
        kernel_refuse(KERNEL_POPULATE, 0, SIZE_MAX);
    }
    size_t calls = kernel_calls(KERNEL_POPULATE);
    char *ptr = allocate(BIG + 1, 16);
    ck_assert_uint_ge(get_resident(ptr, 0, BIG + 1), BIG);
    char *zeros = adaptor.alloc_zeroed(adaptor.ctx, BIG, 16);
    ck_assert_uint_ge(get_resident(zeros, 0, BIG), BIG);
    ck_assert_uint_eq(kernel_calls(KERNEL_POPULATE), calls + 2);
    ck_assert_int_eq(zeros[BIG - 1], 0);
    memset(zeros, 7, BIG);
    zeros = resize(zeros, BIG, 2 * BIG);
    ck_assert_uint_ge(get_resident(zeros, BIG, 2 * BIG), BIG);
    ck_assert_int_eq(zeros[0], 7);
    ck_assert_int_eq(zeros[BIG - 1], 7);
    ck_assert_uint_eq(kernel_calls(KERNEL_POPULATE), calls + 3);
    zeros = resize(zeros, 2 * BIG, BIG); /* smaller: nothing new */
    release(zeros, BIG, 16);
    release(ptr, BIG + 1, 16);
    ptr = allocate(BIG - 1, 16); /* below the threshold */
    ck_assert_uint_eq(kernel_calls(KERNEL_POPULATE), calls + 3);
    release(ptr, BIG - 1, 16);
    destroy();
}

TEST(prefetching_adaptor_keeps_bytes_around_the_block)
{
    static char line[300];
    memset(line, 7, sizeof(line));
    new_over(&picky, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_PREFETCHING});
    kernel_refuse(KERNEL_POPULATE, 0, SIZE_MAX);
    char *small = allocate(100, 16);
    memset(small, 7, 100);
    small = resize(small, 100, 300);
    ck_assert_int_eq(memcmp(small, line, 100), 0);
    refusals = 2;
    ck_assert_ptr_null(allocate(100, 16));
    ck_assert_ptr_null(resize(small, 300, 500));
    release(small, 300, 16);
    destroy();
}

TEST(prefetching_adaptor_succeeds_without_memory_for_pages)
{
    const memrt_allocator_t *mapped = &memrt__mapped_allocator;
    new_over(mapped, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_PREFETCHING});
    kernel_refuse(KERNEL_ADVISE, 0, SIZE_MAX);
    char *ptr = allocate(BIG, 16);
    ck_assert_uint_eq(get_resident(ptr, 0, BIG), 0);
    release(ptr, BIG, 16);
    destroy();
}

TEST(logging_adaptor_writes_growth_in_place_as_a_resize)
{
    int ends[2];
    char rest[60];
    ck_assert_int_eq(pipe(ends), 0);
    memrt_allocator_t roomy = create_roomy_upstream();
    new_over(&roomy, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_LOGGING, .file = ends[1]});
    void *ptr = allocate(100, 16);
    ck_assert(!grow(ptr, 100, 1001, 16));
    ck_assert(grow(ptr, 100, 200, 16));
    release(ptr, 200, 16);
    destroy();
    close(ends[1]);
    FILE *log = fdopen(ends[0], "r");
    check_line(log, "alloc,", ptr, "100,16,0\n");
    snprintf(rest, sizeof(rest), "200,16,%p\n", ptr);
    check_line(log, "realloc,", ptr, rest);
    check_line(log, "free,", ptr, "200,16,0\n");
    ck_assert_int_eq(fgetc(log), EOF);
    fclose(log);
}

TEST(bad_settings_of_adaptors_are_refused)
{
    memrt_adaptor_counts_t counts;
    static const memrt_allocator_t empty = {.struct_size = sizeof(empty)};
    const memrt_adaptor_options_t bad[] = {
        {.kind = 0},
        {.kind = 9},
        {.kind = MEMRT_ADAPTOR_ARENA, .amount = 1 << 15},
        {.kind = MEMRT_ADAPTOR_ARENA, .amount = 100000},
        {.kind = MEMRT_ADAPTOR_ARENA, .amount = (size_t)1 << 31},
        {.kind = MEMRT_ADAPTOR_COUNTING},
        {.kind = MEMRT_ADAPTOR_ALIGNING, .amount = 4},
        {.kind = MEMRT_ADAPTOR_ALIGNING, .amount = 24},
        {.kind = MEMRT_ADAPTOR_ALIGNING, .amount = MEMRT_ALIGN_MAX * 2},
        {.kind = MEMRT_ADAPTOR_RETRYING},
        {.kind = MEMRT_ADAPTOR_LOGGING, .file = -1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memrt_adaptor_options_t options = bad[i];
        options.struct_size = sizeof(options);
        ck_assert_int_eq(memrt__adaptor_new(&picky, &options, &adaptor), MEMRT_EINVAL);
    }
    memrt_adaptor_options_t good = {
        .struct_size = 8, .kind = MEMRT_ADAPTOR_COUNTING, .counts = &counts};
    ck_assert_int_eq(memrt__adaptor_new(&picky, &good, &adaptor), MEMRT_EINVAL);
    good.struct_size = sizeof(good);
    ck_assert_int_eq(memrt__adaptor_new(&empty, &good, &adaptor), MEMRT_EINVAL);
}

static size_t destroyed;

static size_t release_some(void *ctx)
{
    (void)ctx;
    return 77;
}

static void use_some(void *ctx, memrt_allocator_usage_t *out)
{
    (void)ctx;
    out->cached = 55;
}

static void count_destroy(void *ctx)
{
    (void)ctx;
    destroyed++;
}

TEST(adaptors_pass_other_calls_to_the_upstream)
{
    memrt_allocator_t upstream = picky;
    upstream.release_unused = release_some;
    upstream.usage = use_some;
    upstream.destroy = count_destroy;
    new_over(&upstream, (memrt_adaptor_options_t){.kind = MEMRT_ADAPTOR_LIMITING});
    memrt_allocator_usage_t usage;
    adaptor.usage(adaptor.ctx, &usage);
    ck_assert_uint_eq(usage.cached, 55);
    ck_assert_uint_eq(adaptor.release_unused(adaptor.ctx), 77);
    destroy();
    ck_assert_uint_eq(destroyed, 1);
}
