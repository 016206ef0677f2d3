#include "support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/guard/quarantine.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/observe/call_stack.h"
#include "support/child.h"
#include "support/allocators/counting.h"
#include "support/kernel.h"

static memrt_allocator_t create_guard(void)
{
    memrt_allocator_t guard;
    ck_assert_int_eq(memrt__guard_new(memrt__default_allocator(), &guard), MEMRT_OK);
    return guard;
}

typedef struct damage {
    ptrdiff_t offset; ///< from the start of a block of 100 bytes
    size_t align;
    bool by_realloc;
} damage_t;

/// Create a guard and a block of 100 bytes, in a child process.
static unsigned char *create_guarded_block(memrt_allocator_t *guard, size_t align)
{
    REQUIRE(memrt__guard_new(memrt__default_allocator(), guard) == MEMRT_OK);
    unsigned char *ptr = memrt__allocator_alloc(guard, 100, align, false);
    REQUIRE(ptr != NULL);
    return ptr;
}

static void write_outside(void *context)
{
    const damage_t *damage = context;
    memrt_allocator_t guard;
    unsigned char *ptr = create_guarded_block(&guard, damage->align);
    ptr[damage->offset] ^= 1;
    if (damage->by_realloc) {
        ptr = memrt__allocator_realloc(&guard, ptr, 100, 50, damage->align);
    } else {
        memrt__allocator_free(&guard, ptr, 100, damage->align);
    }
}

TEST(write_past_end_is_reported_at_free_with_distance)
{
    child_expect_abort(write_outside, &(damage_t){100, 64, false},
                       "of 100 bytes: a write 1 bytes past the end of the block was found");
    child_expect_abort(write_outside, &(damage_t){163, 8, false},
                       "a write 64 bytes past the end of the block was found");
}

TEST(write_before_start_is_reported_at_free_with_distance)
{
    child_expect_abort(write_outside, &(damage_t){-1, 64, false},
                       "of 100 bytes: a write 1 bytes before the start of the block was found");
    child_expect_abort(write_outside, &(damage_t){-4096, 4096, false},
                       "a write 4096 bytes before the start of the block was found");
}

TEST(write_outside_block_is_reported_at_realloc)
{
    child_expect_abort(write_outside, &(damage_t){100, 64, true},
                       "1 bytes past the end of the block");
    child_expect_abort(write_outside, &(damage_t){-64, 16, true},
                       "64 bytes before the start of the block");
}

TEST(fresh_bytes_are_poisoned)
{
    memrt_allocator_t guard = create_guard();
    unsigned char *ptr = memrt__allocator_alloc(&guard, 10, 8, false);
    ck_assert_uint_eq(ptr[0], MEMRT_POISON_FRESH);
    ck_assert_uint_eq(ptr[9], MEMRT_POISON_FRESH);
    memrt__allocator_free(&guard, ptr, 10, 8);
    memrt__allocator_destroy(&guard);
}

TEST_EACH(zeroed_block_is_zero_in_every_byte, 4)
{
    static const size_t sizes[] = {1, 10, 4096, 100000};
    size_t size = sizes[index];
    memrt_allocator_t guard = create_guard();
    unsigned char *ptr = memrt__allocator_alloc(&guard, size, 64, true);
    ck_assert_ptr_nonnull(ptr);
    for (size_t i = 0; i < size; i++) {
        ck_assert_uint_eq(ptr[i], 0);
    }
    memrt__allocator_free(&guard, ptr, size, 64);
    memrt__allocator_destroy(&guard);
}

static void *return_context(void *ctx, size_t size, size_t align)
{
    (void)align;
    REQUIRE(size <= 1024);
    return ctx;
}

static void ignore_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)ptr, (void)size, (void)align;
}

TEST(guard_reports_call_stacks_of_allocation_and_free)
{
    char text[MEMRT__CALL_STACKS_TEXT] = "";
    memrt_allocator_t guard = create_guard();
    void *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    memrt__guard_explain(ptr, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "allocated at\n"));
    ck_assert_ptr_null(strstr(text, "freed at"));
    ck_assert_int_ne(text[strlen(text) - 1], '\n');
    memrt__allocator_free(&guard, ptr, 100, 64);
    ck_assert(memrt__guard_explain_dead(&guard, (uintptr_t)ptr + 50, text, sizeof(text)));
    ck_assert_ptr_nonnull(strstr(text, "allocated at\n"));
    ck_assert_ptr_nonnull(strstr(text, "freed at\n"));
    memrt__allocator_destroy(&guard);
}

static const char *running; /* function of the interpreter that runs */

/// List two calls of an interpreter. The second call has no room in a report.
static size_t list_two_frames(memrt_frame_t *frames, size_t max)
{
    char file[1000];
    memset(file, 'x', sizeof(file) - 1);
    file[sizeof(file) - 1] = '\0';
    REQUIRE(max >= 2);
    frames[0] = api->frame_new(running, "data.py", 3);
    frames[1] = api->frame_new("main", file, 9);
    return 2;
}

TEST(guard_reports_interpreter_calls_of_allocation_and_free)
{
    char text[MEMRT__CALL_STACKS_TEXT] = "";
    memrt_allocator_t guard = create_guard();
    memrt_tracking_t before = {.struct_size = sizeof(before)};
    memrt_tracking_t tracking = {
        .struct_size = sizeof(tracking), .on = 1, .frames = 2, .native = 1};
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    api->set_frames(list_two_frames);
    ck_assert_int_eq(api->tracking_set(&tracking), MEMRT_OK);
    running = "load";
    void *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    running = "drop";
    memrt__allocator_free(&guard, ptr, 100, 64);
    ck_assert(memrt__guard_explain_dead(&guard, (uintptr_t)ptr, text, sizeof(text)));
    ck_assert_ptr_nonnull(strstr(text, "\n  allocated at\n    load at data.py:3\n    "));
    ck_assert_ptr_nonnull(strstr(text, "\n  freed at\n    drop at data.py:3\n    "));
    ck_assert_ptr_null(strstr(text, "main at"));
    api->set_frames(NULL);
    ck_assert_int_eq(api->tracking_set(&before), MEMRT_OK);
    memrt__allocator_destroy(&guard);
}

TEST(freed_bytes_are_poisoned)
{
    _Alignas(64) static unsigned char memory[1024];
    memrt_allocator_t guard, upstream = {.struct_size = sizeof(upstream),
                                         .version = MEMRT_ALLOCATOR_VERSION,
                                         .ctx = memory,
                                         .alloc = return_context,
                                         .free = ignore_free};
    ck_assert_int_eq(memrt__guard_new(&upstream, &guard), MEMRT_OK);
    unsigned char *ptr = memrt__allocator_alloc(&guard, 10, 64, false);
    memset(ptr, 0, 10);
    memrt__allocator_free(&guard, ptr, 10, 64);
    ck_assert_uint_eq(ptr[0], MEMRT_POISON_FREED);
    ck_assert_uint_eq(ptr[9], MEMRT_POISON_FREED);
    memrt__allocator_destroy(&guard);
}

typedef struct misuse {
    void (*act)(memrt_allocator_t *guard, unsigned char *ptr); ///< 100 bytes, aligned to 64
    const char *message;
} misuse_t;

static void free_twice(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    memrt__allocator_free(guard, ptr, 100, 64);
}

static void realloc_freed(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    REQUIRE(memrt__allocator_realloc(guard, ptr, 100, 50, 64) == NULL);
}

static void free_with_another_size(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 99, 64);
}

static void free_with_another_alignment(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 32);
}

static void write_freed_and_release_unused(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    ptr[7] = 0x05;
    memrt__allocator_release_unused(guard);
}

static void clear_freed_and_destroy(memrt_allocator_t *guard, unsigned char *ptr, ptrdiff_t byte)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    ptr[byte] = 0;
    memrt__allocator_destroy(guard);
}

static void write_freed_and_destroy(memrt_allocator_t *guard, unsigned char *ptr)
{
    clear_freed_and_destroy(guard, ptr, 99);
}

static void write_before_freed_and_destroy(memrt_allocator_t *guard, unsigned char *ptr)
{
    clear_freed_and_destroy(guard, ptr, -1);
}

static void write_past_freed_and_destroy(memrt_allocator_t *guard, unsigned char *ptr)
{
    clear_freed_and_destroy(guard, ptr, 100);
}

static void write_freed_and_free_many(memrt_allocator_t *guard, unsigned char *ptr)
{
    memrt__allocator_free(guard, ptr, 100, 64);
    ptr[0] = 0;
    for (unsigned i = 0; i < MEMRT__QUARANTINE_BLOCKS; i++) {
        void *other = memrt__allocator_alloc(guard, 100, 64, false);
        memrt__allocator_free(guard, other, 100, 64);
    }
}

static void write_far_before(memrt_allocator_t *guard, unsigned char *ptr)
{
    ptr[-100] ^= 1;
    memrt__allocator_free(guard, ptr, 100, 64);
}

static const misuse_t misuses[] = {
    {free_twice, "memrt: free of block at "},
    {free_twice, " of 100 bytes: the block was freed before"},
    {free_twice, "  freed at\n"},
    {realloc_freed, "memrt: realloc of block at "},
    {free_with_another_size, ": size and alignment must be 100 and 64, got 99 and 64"},
    {free_with_another_alignment, ": size and alignment must be 100 and 64, got 100 and 32"},
    {write_freed_and_release_unused,
     " of 100 bytes: a write to byte 7 after the free was found, 0x5 in place of 0xdd"},
    {write_freed_and_destroy, "a write to byte 99 after the free was found"},
    {write_freed_and_destroy, "  freed at\n"},
    {write_before_freed_and_destroy, "a write 1 bytes before the start of the block was found"},
    {write_past_freed_and_destroy, "a write 1 bytes past the end of the block was found"},
    {write_freed_and_free_many, "a write to byte 0 after the free was found"},
    {write_far_before, "bytes before the start of the block was found"},
};

static void commit_misuse(void *context)
{
    const misuse_t *misuse = context;
    memrt_allocator_t guard;
    REQUIRE(memrt__guard_new(memrt__default_allocator(), &guard) == MEMRT_OK);
    unsigned char *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    REQUIRE(ptr != NULL);
    misuse->act(&guard, ptr);
}

TEST_EACH(misuse_of_guarded_block_aborts_with_message, sizeof(misuses) / sizeof(misuses[0]))
{
    misuse_t misuse = misuses[index];
    child_expect_abort(commit_misuse, &misuse, misuse.message);
}

TEST(block_in_quarantine_is_not_reused)
{
    memrt_allocator_t guard = create_guard();
    void *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    uintptr_t stood = (uintptr_t)ptr;
    memrt__allocator_free(&guard, ptr, 100, 64);
    for (unsigned i = 1; i < MEMRT__QUARANTINE_BLOCKS; i++) {
        ptr = memrt__allocator_alloc(&guard, 100, 64, false);
        ck_assert_uint_ne((uintptr_t)ptr, stood);
        memrt__allocator_free(&guard, ptr, 100, 64);
    }
    memrt__allocator_destroy(&guard);
}

TEST(quarantine_stays_within_byte_limit)
{
    memrt_allocator_t counting, guard;
    ck_assert_int_eq(counting_new(&memrt__system_allocator, &counting), MEMRT_OK);
    ck_assert_int_eq(memrt__guard_new(&counting, &guard), MEMRT_OK);
    static const size_t sizes[] = {100, MEMRT__QUARANTINE_BYTES / 3, MEMRT__QUARANTINE_BYTES + 1};
    for (size_t i = 0; i < 3 * 300; i++) {
        size_t size = sizes[i / 300];
        void *ptr = memrt__allocator_alloc(&guard, size, 64, true);
        ck_assert_ptr_nonnull(ptr);
        memrt__allocator_free(&guard, ptr, size, 64);
        ck_assert_uint_le(counting_read(&counting).bytes, MEMRT__QUARANTINE_BYTES + (1u << 20));
    }
    /* the last blocks were larger than the quarantine */
    ck_assert_uint_eq(counting_read(&counting).bytes, 0);
    memrt__allocator_destroy(&guard);
}

TEST(guard_realloc_always_moves_block)
{
    memrt_allocator_t guard = create_guard();
    void *ptr = memrt__allocator_alloc(&guard, 100, 64, false);
    uintptr_t stood = (uintptr_t)ptr;
    ptr = memrt__allocator_realloc(&guard, ptr, 100, 99, 64);
    ck_assert_uint_ne((uintptr_t)ptr, stood);
    memrt__allocator_free(&guard, ptr, 99, 64);
    memrt__allocator_destroy(&guard);
}

/// Create a guard and a block of 100 bytes, with room for more up to the end of a page.
static unsigned char *create_roomy_block(memrt_allocator_t *guard)
{
    REQUIRE(memrt__guard_new(&memrt__mapped_allocator, guard) == MEMRT_OK);
    unsigned char *ptr = memrt__allocator_alloc(guard, 100, 64, false);
    REQUIRE(ptr != NULL);
    return ptr;
}

/// Grow a block of 100 bytes to 110 bytes, in a child process, and write at `context`, an offset.
static void write_beside_grown_block(void *context)
{
    const ptrdiff_t *offset = context;
    memrt_allocator_t guard;
    unsigned char *ptr = create_roomy_block(&guard);
    REQUIRE(memrt__allocator_try_expand(&guard, ptr, 100, 110, 64));
    ptr[*offset] ^= 1;
    memrt__allocator_free(&guard, ptr, 110, 64);
}

TEST(growth_in_place_moves_the_redzone_to_the_new_end)
{
    ptrdiff_t inside = 109, outside = 110, before = -1;
    child_expect_success(write_beside_grown_block, &inside);
    child_expect_abort(write_beside_grown_block, &outside,
                       "of 110 bytes: a write 1 bytes past the end of the block was found");
    child_expect_abort(write_beside_grown_block, &before,
                       "of 110 bytes: a write 1 bytes before the start of the block was found");
}

static void grow_damaged_block(void *context)
{
    memrt_allocator_t guard;
    unsigned char *ptr = create_roomy_block(&guard);
    (void)context;
    ptr[100] ^= 1;
    (void)!memrt__allocator_try_expand(&guard, ptr, 100, 110, 64);
}

TEST(growth_in_place_fills_new_bytes_and_reports_old_damage)
{
    memrt_allocator_t guard;
    unsigned char *ptr = create_roomy_block(&guard);
    memset(ptr, 1, 100);
    ck_assert(memrt__allocator_try_expand(&guard, ptr, 100, 110, 64));
    ck_assert_uint_eq(ptr[99], 1);
    ck_assert_uint_eq(ptr[100], MEMRT_POISON_FRESH);
    ck_assert_uint_eq(ptr[109], MEMRT_POISON_FRESH);
    ck_assert(!memrt__allocator_try_expand(&guard, ptr, 110, SIZE_MAX, 64));
    ck_assert(!memrt__allocator_try_expand(&guard, ptr, 110, (size_t)1 << 40, 64));
    ck_assert_uint_eq(memrt__allocator_good_size(&guard, SIZE_MAX, 64), SIZE_MAX);
    memrt__allocator_free(&guard, ptr, 110, 64);
    memrt__allocator_destroy(&guard);
    child_expect_abort(grow_damaged_block, NULL, "try_expand of block at");
}

TEST(guard_over_invalid_table_is_refused_and_out_unchanged)
{
    memrt_allocator_t bad = memrt__system_allocator, out = {.name = "untouched"};
    bad.free = NULL;
    ck_assert_int_eq(api->allocator_guard(&bad, &out), MEMRT_EINVAL);
    ck_assert_str_eq(out.name, "untouched");
}

TEST(destroying_guard_destroys_upstream)
{
    counts_t counts;
    memrt_allocator_t counting, guard;
    ck_assert_int_eq(counting_new(&memrt__system_allocator, &counting), MEMRT_OK);
    counting_at_destroy(&counting, &counts);
    ck_assert_int_eq(memrt__guard_new(&counting, &guard), MEMRT_OK);
    memrt__allocator_destroy(&guard);
    ck_assert_uint_eq(counts.destroys, 1);
}

static void *shifted_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    char *ptr = aligned_alloc(64, (size + align + 63) / 64 * 64);
    return ptr == NULL ? NULL : ptr + align; /* aligned to `align` and no more */
}

static void shifted_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)size;
    free((char *)ptr - align);
}

TEST(guard_aligns_blocks_over_minimally_aligned_upstream)
{
    memrt_allocator_t guard, upstream = {.struct_size = sizeof(upstream),
                                         .version = MEMRT_ALLOCATOR_VERSION,
                                         .alloc = shifted_alloc,
                                         .free = shifted_free};
    ck_assert_int_eq(memrt__guard_new(&upstream, &guard), MEMRT_OK);
    for (size_t align = 1; align <= 64; align *= 2) {
        unsigned char *ptr = memrt__allocator_alloc(&guard, 10, align, false);
        ck_assert_ptr_nonnull(ptr);
        ck_assert_uint_eq((uintptr_t)ptr % memrt__size_max(align, sizeof(size_t)), 0);
        memrt__allocator_free(&guard, ptr, 10, align);
    }
    memrt__allocator_destroy(&guard);
}

#define MIB ((size_t)1 << 20)

/// Return the peak of resident memory, in bytes.
static size_t read_peak_rss(void)
{
    struct rusage usage;
    REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
    return (size_t)usage.ru_maxrss << 10;
}

typedef void (*act_fn)(void);

static void expect_small_peak(void *context)
{
    size_t before = read_peak_rss();
    ((const act_fn *)context)[0]();
    REQUIRE(!suite_measures_memory() || read_peak_rss() - before < 64 * MIB);
}

/// Use blocks of a few bytes at the largest alignment; `checked` adds redzones.
static void use_large_alignment(bool checked)
{
    memrt__options.check = checked;
    memrt_policy_options_t options = {.struct_size = sizeof(options), .alignment = MEMRT_ALIGN_MAX};
    static char foreign[8];
    memrt_policy_t *policy;
    memrt_meminfo_t *mi;
    void *blocks[3];
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    for (size_t i = 0; i < 3; i++) {
        REQUIRE((blocks[i] = api->block_alloc(policy, 100)) != NULL);
        memset(blocks[i], 7, 100);
    }
    for (size_t i = 0; i < 3; i++) {
        REQUIRE((blocks[i] = api->block_realloc(policy, blocks[i], 3 * MIB)) != NULL);
        REQUIRE((uintptr_t)blocks[i] % MEMRT_ALIGN_MAX == 0 && ((char *)blocks[i])[99] == 7);
        REQUIRE((blocks[i] = api->block_realloc(policy, blocks[i], 100)) != NULL);
        api->block_free(policy, blocks[i], 100);
    }
    memrt_new_options_t new_options = {.struct_size = sizeof(new_options), .policy = policy};
    REQUIRE(api->meminfo_adopt(foreign, 8, &new_options, &mi) == MEMRT_OK);
    api->release(mi);
}

static void use_large_alignment_fenced(void)
{
    use_large_alignment(true);
}

static void use_large_alignment_plainly(void)
{
    kernel_refuse(KERNEL_REMAP, 0, SIZE_MAX); /* no block grows in place */
    use_large_alignment(false);
}

TEST(redzone_memory_does_not_grow_with_alignment)
{
    child_expect_success(expect_small_peak, (act_fn[]){use_large_alignment_fenced});
}

TEST(realloc_does_not_copy_alignment_padding)
{
    if (!suite_is_under_valgrind()) { /* its malloc refuses alignments of 1 GiB by an abort */
        child_expect_success(expect_small_peak, (act_fn[]){use_large_alignment_plainly});
    }
}

TEST(guard_ignores_unused_bytes_of_block)
{
    memrt_allocator_t guard = create_guard();
    unsigned char *ptr = memrt__guard_alloc(&guard, 64, 100, 64, true);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_mem_eq(ptr + 64, ((unsigned char[36]){0}), 36);
    memset(ptr, 1, 100);
    ptr = memrt__allocator_realloc(&guard, ptr, 100, 200, 64);
    if (!suite_is_under_valgrind()) { /* memcheck reports reads of unused bytes */
        ck_assert_uint_ne(ptr[0], 1);
    }
    ck_assert_uint_eq(ptr[64], 1);
    ck_assert_uint_eq(ptr[100], MEMRT_POISON_FRESH);
    ptr = memrt__allocator_realloc(&guard, ptr, 200, 10, 64);
    memrt__allocator_free(&guard, ptr, 10, 64);
    ptr[0] = 1;
    memrt__allocator_destroy(&guard); /* verifies the freed bytes */
}

static void write_behind_unused(void *context)
{
    memrt_allocator_t guard;
    (void)context;
    REQUIRE(memrt__guard_new(memrt__default_allocator(), &guard) == MEMRT_OK);
    unsigned char *ptr = memrt__guard_alloc(&guard, 64, 100, 64, false);
    REQUIRE(ptr != NULL && ptr[64] == MEMRT_POISON_FRESH);
    memrt__allocator_free(&guard, ptr, 100, 64);
    ptr[70] = 1;
    memrt__allocator_destroy(&guard);
}

TEST(write_after_unused_bytes_of_freed_block_is_reported)
{
    child_expect_abort(write_behind_unused, NULL, "a write to byte 70 after the free");
}

TEST(write_just_before_block_is_reported_at_any_alignment)
{
    for (size_t align = 8; align <= MEMRT_ALIGN_MAX; align *= 8) {
        child_expect_abort(write_outside, &(damage_t){-1, align, false},
                           "a write 1 bytes before the start of the block was found");
    }
    child_expect_abort(write_outside, &(damage_t){-4096, (size_t)1 << 20, false},
                       "a write 4096 bytes before the start of the block was found");
}

/// Write `offset` bytes from the start of a freed block of 100 bytes, then verify the block.
static void write_after_free(void *context)
{
    const damage_t *damage = context;
    memrt_allocator_t guard;
    unsigned char *ptr = create_guarded_block(&guard, damage->align);
    memrt__allocator_free(&guard, ptr, 100, damage->align);
    ptr[damage->offset] ^= 1;
    memrt__guard_verify_dead(&guard);
}

TEST(write_before_freed_block_is_found_within_4_KiB)
{
    static const size_t aligns[] = {4096, (size_t)1 << 20};
    for (size_t i = 0; i < 2; i++) {
        child_expect_abort(write_after_free, &(damage_t){-1, aligns[i], false},
                           "a write 1 bytes before the start of the block was found");
        child_expect_abort(write_after_free, &(damage_t){-4096, aligns[i], false},
                           "a write 4096 bytes before the start of the block was found");
    }
}
