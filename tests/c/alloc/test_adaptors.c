/// Test the properties that adaptors add. The conformance kit tests their blocks
/// (test_conformance.c).

#include "support/suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/alloc/adaptors/adaptor.h"
#include "runtime/alloc/allocator.h"

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

TEST(bad_settings_of_adaptors_are_refused)
{
    memrt_adaptor_counts_t counts;
    static const memrt_allocator_t empty = {.struct_size = sizeof(empty)};
    const memrt_adaptor_options_t bad[] = {
        {.kind = 0},
        {.kind = 6},
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
