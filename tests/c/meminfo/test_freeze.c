/// Tests of frozen buffers: refused writes, and memory that is writable again before its reuse.

#include "support/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/alloc/guard/frozen_pages.h"
#include "runtime/config/options.h"
#include "runtime/os/os.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"

#define PAGE memrt__os_page_size()

enum { LARGE = 3000000 };

static memrt_meminfo_t *allocate(size_t size, size_t alignment)
{
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = alignment};
    REQUIRE(api->meminfo_new(size, &options, &mi) == MEMRT_OK);
    return mi;
}

/// Freeze a buffer and return the bytes of its data in protected pages.
static size_t freeze(memrt_meminfo_t *mi)
{
    size_t bytes = 0;
    REQUIRE(api->freeze(mi, &bytes) == MEMRT_OK);
    return bytes;
}

static void fill(const memrt_meminfo_t *mi)
{
    memset(mi->data, 7, mi->size);
}

TEST(pages_without_other_data_are_protected)
{
    static const size_t sizes[] = {3 * 4096, 20000, 100000, 700000, LARGE};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t alignment = 64; alignment <= 2 * PAGE; alignment *= 2) {
            memrt_meminfo_t *mi = allocate(sizes[i], alignment);
            size_t bytes = freeze(mi), header = (0 - (size_t)mi->data) & (PAGE - 1);
            ck_assert_uint_le(bytes, sizes[i] - header);
            ck_assert_uint_gt(bytes, sizes[i] - header - PAGE);
            memset(mi->data, 1, header);
            memset((char *)mi->data + header + bytes, 2, sizes[i] - header - bytes);
            ck_assert_int_eq(api->thaw(mi), MEMRT_OK);
            fill(mi);
            api->release(mi);
        }
    }
}

static void *custom_alloc(void *context, size_t size, size_t align)
{
    void *block;
    (void)context;
    return posix_memalign(&block, align, size) == 0 ? block : NULL;
}

static void custom_free(void *context, void *block, size_t size, size_t align)
{
    (void)context, (void)size, (void)align;
    free(block);
}

/// Allocate from a policy with an allocator. Takes over the allocator.
static memrt_meminfo_t *allocate_with(const memrt_allocator_t *allocator)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = "custom", .allocator = allocator};
    memrt_policy_t *policy;
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    memrt_new_options_t of_policy = {.struct_size = sizeof(of_policy), .policy = policy};
    ck_assert_int_eq(api->meminfo_new(LARGE, &of_policy, &mi), MEMRT_OK);
    api->policy_release(policy);
    return mi;
}

static const memrt_allocator_t custom = {.struct_size = sizeof(custom),
                                         .version = MEMRT_ALLOCATOR_VERSION,
                                         .name = "custom",
                                         .alloc = custom_alloc,
                                         .free = custom_free};

TEST(pages_before_a_redzone_are_protected)
{
    memrt_allocator_t guard;
    ck_assert_int_eq(api->allocator_guard(api->allocator_default(), &guard), MEMRT_OK);
    memrt_meminfo_t *mi = allocate_with(&guard);
    ck_assert_uint_gt(freeze(mi), LARGE - 2 * PAGE);
    api->release(mi);
}

static void *external_malloc(size_t size, void *opaque)
{
    (void)opaque;
    return malloc(size);
}

static void external_free(void *block, void *opaque)
{
    (void)opaque;
    free(block);
}

static void expect_refusal(memrt_meminfo_t *mi, memrt_status_t status)
{
    size_t bytes = 5;
    ck_assert_int_eq(api->freeze(mi, &bytes), status);
    ck_assert_uint_eq(bytes, 5);
    ck_assert_int_eq(api->thaw(mi), MEMRT_ENOENT);
    api->release(mi);
}

TEST(buffers_without_pages_of_their_own_are_refused)
{
    static char foreign[3 * 4096];
    memrt_new_options_t options = {.struct_size = sizeof(options)};
    memrt_meminfo_t *mi, *block;
    api->block_free(NULL, api->block_alloc(NULL, 1000), 0); /* tiny blocks need a thread record */
    void *tiny = api->block_alloc(NULL, 10);
    ck_assert_int_eq(api->block_meminfo(tiny, &mi), MEMRT_OK);
    expect_refusal(mi, MEMRT_ENOENT);
    api->block_free(NULL, tiny, 10);
    expect_refusal(allocate(0, 0), MEMRT_ENOENT);
    expect_refusal(allocate(100, 0), MEMRT_ENOENT);
    expect_refusal(allocate(2000, 0), MEMRT_ENOENT);
    ck_assert_int_eq(api->meminfo_adopt(foreign, sizeof(foreign), &options, &mi), MEMRT_OK);
    expect_refusal(mi, MEMRT_ENOTSUP);
    ck_assert_int_eq(api->resizable_new(LARGE, &options, &mi), MEMRT_OK);
    ck_assert_int_eq(api->block_meminfo(api->get_data(mi), &block), MEMRT_OK);
    expect_refusal(block, MEMRT_ENOTSUP);
    expect_refusal(mi, MEMRT_ENOTSUP);
    ck_assert_int_eq(api->resizable_new_reserved(LARGE, LARGE, &options, &mi), MEMRT_OK);
    ck_assert_int_eq(api->block_meminfo(api->get_data(mi), &block), MEMRT_OK);
    expect_refusal(block, MEMRT_ENOTSUP);
    api->release(mi);
    expect_refusal(allocate_with(&custom), MEMRT_ENOTSUP);
    memrt_external_allocator_t external = {.malloc = external_malloc, .free = external_free};
    expect_refusal(api->allocate_external(LARGE, &external), MEMRT_ENOTSUP);
}

TEST(buffer_is_writable_after_as_many_thaws_as_freezes)
{
    memrt_meminfo_t *mi = allocate(LARGE, 0);
    ck_assert_uint_eq(freeze(mi), freeze(mi));
    ck_assert_int_eq(api->thaw(mi), MEMRT_OK);
    size_t changes = kernel_calls(KERNEL_PROTECT);
    ck_assert_int_eq(api->thaw(mi), MEMRT_OK);
    ck_assert_uint_eq(kernel_calls(KERNEL_PROTECT), changes + 1);
    ck_assert_int_eq(api->thaw(mi), MEMRT_ENOENT);
    fill(mi);
    api->release(mi);
}

static size_t list_one_frame(memrt_frame_t *frames, size_t max)
{
    frames[0] = api->frame_new("load", "data.py", 3);
    return max == 0 ? 0 : 1;
}

static void write_one_frame(int file)
{
    static const char text[] = "\n    fill at model.py:7";
    (void)!write(file, text, sizeof(text) - 1);
}

static void write_to_frozen(void *context)
{
    (void)context;
    api->set_frames(list_one_frame);
    api->set_write_frames(write_one_frame);
    memrt_meminfo_t *mi = allocate(LARGE, PAGE);
    REQUIRE(freeze(mi) > 2 * PAGE);
    ((volatile char *)api->get_data(mi))[5000] = 1;
}

static void exit_of_handler(int number)
{
    (void)number;
    _exit(3);
}

static child_fn crash;

static void crash_under_handler(void *context)
{
    (void)signal(SIGSEGV, exit_of_handler);
    crash(context);
}

/// Expect that a child ends by a report, and then by the handler that was installed before memrt's.
/// After memrt's handler is installed, the default action ends the child.
static void expect_crash(child_fn act, const char *message)
{
    struct sigaction now;
    ck_assert_int_eq(sigaction(SIGSEGV, NULL, &now), 0);
    if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) {
        child_expect_signal(act, NULL, SIGSEGV, message);
        return;
    }
    crash = act;
    child_expect_exit(crash_under_handler, NULL, 3, message);
}

TEST(write_is_reported_with_buffer_and_freeze)
{
    static const char *const texts[] = {
        "memrt: refused write at 0x",
        ", at offset 5000 of a frozen array of 3000000 bytes at 0x",
        "\n  written at\n    fill at model.py:7\n  frozen by thread ",
        " at\n    load at data.py:3\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        expect_crash(write_to_frozen, texts[i]);
    }
}

static memrt_meminfo_t *allocate_guarded(size_t size)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = "guarded", .guard_sample = "1"};
    memrt_policy_t *policy;
    memrt_meminfo_t *mi;
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    memrt_new_options_t of_policy = {.struct_size = sizeof(of_policy), .policy = policy};
    REQUIRE(api->meminfo_new(size, &of_policy, &mi) == MEMRT_OK);
    api->policy_release(policy);
    return mi;
}

/// Freeze a guarded buffer, and write to its last byte.
static void write_to_end_of_guarded(void *context)
{
    (void)context;
    memrt_meminfo_t *mi = allocate_guarded(20000);
    freeze(mi);
    ((volatile char *)api->get_data(mi))[19999] = 1;
}

/// Freeze a buffer, and then write past the end of a guarded buffer.
static void write_past_end_of_guarded(void *context)
{
    (void)context;
    freeze(allocate(LARGE, 0));
    ((volatile char *)api->get_data(allocate_guarded(64)))[64] = 1;
}

TEST(guarded_buffer_is_frozen_to_its_end)
{
    if (memrt__options.check) {
        return; /* checking mode has no guard pages */
    }
    expect_crash(write_to_end_of_guarded, "at offset 19999 of a frozen array of 20000 bytes");
    expect_crash(write_past_end_of_guarded, "1 bytes past the end of an array");
    memrt_meminfo_t *mi = allocate_guarded(20000);
    freeze(mi);
    api->release(mi);
}

static void end_data(void *data, size_t size, void *info)
{
    memset(data, 9, size);
    *(size_t *)info += 1;
}

/// Allocate, freeze and free a buffer in each way, and write to memory that may be the same.
TEST_EACH(freed_memory_is_writable, 2)
{
    static const size_t sizes[] = {3 * 4096, 20000, 100000, 700000, LARGE};
    int was = api->tracking(index);
    size_t ends = 0, rounds = 0;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = end_data, .dtor_info = &ends};
    books_t before = books_now();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t round = 0; round < 20; round++) {
            memrt_meminfo_t *mi = allocate(sizes[i], 0), *with_dtor, *block_mi;
            void *block = api->block_alloc(NULL, sizes[i]);
            ck_assert_int_eq(api->meminfo_new(sizes[i], &options, &with_dtor), MEMRT_OK);
            ck_assert_int_eq(api->block_meminfo(block, &block_mi), MEMRT_OK);
            fill(mi);
            fill(with_dtor);
            fill(block_mi);
            freeze(mi);
            freeze(with_dtor);
            freeze(with_dtor);
            freeze(block_mi);
            api->release(block_mi);
            api->block_free(NULL, block, 0);
            api->release(mi);
            api->release(with_dtor);
            rounds++;
        }
        (void)api->release_unused();
    }
    ck_assert_uint_eq(ends, rounds);
    books_expect_no_leak(&before);
    api->tracking(was);
}

TEST_EACH(resized_block_is_writable_and_frozen_block_does_not_grow, 2)
{
    books_t before = books_now();
    for (size_t round = 0; round < 5; round++) {
        memrt_meminfo_t *mi;
        unsigned char *block = api->block_alloc(NULL, index == 0 ? 20000 : LARGE);
        memset(block, 3, 20000);
        ck_assert_int_eq(api->block_meminfo(block, &mi), MEMRT_OK);
        freeze(mi);
        api->release(mi);
        ck_assert_int_eq(api->block_try_expand(block, LARGE + 1), MEMRT_ENOMEM);
        unsigned char *moved = api->block_realloc(NULL, block, 2 * LARGE);
        ck_assert(moved != NULL && moved != block && moved[19999] == 3);
        memset(moved, 4, 2 * LARGE);
        api->block_free(NULL, moved, 0);
    }
    books_expect_no_leak(&before);
}

TEST(copy_of_shared_frozen_block_is_writable)
{
    memrt_meminfo_t *mi;
    unsigned char *block = api->block_alloc(NULL, LARGE);
    memset(block, 3, LARGE);
    ck_assert_int_eq(api->block_meminfo(block, &mi), MEMRT_OK);
    freeze(mi);
    unsigned char *copy = api->block_realloc(NULL, block, LARGE);
    ck_assert(copy != NULL && copy != block && copy[LARGE - 1] == 3);
    memset(copy, 4, LARGE);
    api->block_free(NULL, copy, 0);
    ck_assert_int_eq(api->thaw(mi), MEMRT_OK);
    api->release(mi);
}

TEST(blocks_of_a_page_have_pages_of_their_own_or_none)
{
    memrt_meminfo_t *blocks[64];
    for (size_t i = 0; i < 64; i++) { /* some have parts of two pages, and no whole page */
        size_t bytes;
        blocks[i] = allocate(PAGE + 100, 0);
        memrt_status_t status = api->freeze(blocks[i], &bytes);
        ck_assert(status == MEMRT_OK || status == MEMRT_ENOENT);
        ck_assert_int_eq(api->thaw(blocks[i]), status);
        fill(blocks[i]);
    }
    for (size_t i = 0; i < 64; i++) {
        api->release(blocks[i]);
    }
}

/// Refuse a freeze, and in the second round also the change back.
TEST_EACH(refused_protection_leaves_buffer_writable, 2)
{
    memrt_meminfo_t *mi = allocate(LARGE, 0);
    size_t bytes = 5;
    freeze(mi);
    ck_assert_int_eq(api->thaw(mi), MEMRT_OK);
    kernel_refuse(KERNEL_PROTECT, 0, 1 + (size_t)index);
    ck_assert_int_eq(api->freeze(mi, &bytes), MEMRT_ENOMEM);
    ck_assert_uint_eq(bytes, 5);
    kernel_obey();
    fill(mi);
    ck_assert_int_eq(api->thaw(mi), MEMRT_ENOENT);
    freeze(mi);
    ck_assert_int_eq(api->thaw(mi), MEMRT_OK);
    fill(mi);
    api->release(mi);
}

TEST(refused_thaw_leaves_buffer_frozen)
{
    memrt_meminfo_t *mi = allocate(LARGE, 0);
    freeze(mi);
    kernel_refuse(KERNEL_PROTECT, 0, 1);
    ck_assert_int_eq(api->thaw(mi), MEMRT_ENOMEM);
    kernel_obey();
    ck_assert_int_eq(api->thaw(mi), MEMRT_OK);
    fill(mi);
    api->release(mi);
}

/// Free frozen buffers while the system refuses to make the pages writable. The memory stays
/// allocated, and no later allocation gets protected pages.
static void free_with_refusal(void *context)
{
    static const size_t sizes[] = {20000, LARGE};
    size_t ends = 0;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = end_data, .dtor_info = &ends};
    (void)context;
    for (size_t i = 0; i < 2; i++) {
        size_t live = stats_of(NULL).live;
        memrt_meminfo_t *mi = allocate(sizes[i], 0), *with_dtor;
        void *block = api->block_alloc(NULL, sizes[i]);
        REQUIRE(api->meminfo_new(sizes[i], &options, &with_dtor) == MEMRT_OK);
        freeze(mi);
        freeze(with_dtor);
        freeze((memrt_meminfo_t *)block - 1);
        kernel_refuse(KERNEL_PROTECT, 0, SIZE_MAX);
        api->release(mi);
        api->release(with_dtor);
        block = api->block_realloc(NULL, block, 2 * LARGE);
        kernel_obey();
        memset(block, 1, 2 * LARGE);
        api->block_free(NULL, block, 0);
        REQUIRE(ends == 0 && stats_of(NULL).live - live == 2 * sizes[i]);
        for (size_t round = 0; round < 50; round++) {
            block = api->block_alloc(NULL, sizes[i]);
            memset(block, 1, sizes[i]);
            api->block_free(NULL, block, 0);
        }
    }
}

TEST(memory_with_protected_pages_is_never_reused)
{
    child_expect_success(free_with_refusal, NULL);
}

static void freeze_without_table(void *context)
{
    memrt_meminfo_t *mi = allocate(20000, 0);
    size_t bytes;
    (void)context;
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    memrt_status_t status = api->freeze(mi, &bytes);
    kernel_obey();
    REQUIRE(status == MEMRT_ENOMEM || status == MEMRT_OK); /* an earlier test made the table */
    fill(status == MEMRT_OK ? allocate(20000, 0) : mi);
}

/// Refuse the first requests of memory of a freeze, one at a time.
static void freeze_without_memory(void *context)
{
    memrt_meminfo_t *mi = allocate(20000, 0);
    size_t bytes = 0, nth = 1;
    (void)context;
    for (; bytes == 0; nth++) {
        memrt_failure_plan_t plan = {
            .struct_size = sizeof(plan), .nth = nth, .this_thread_only = 1};
        REQUIRE(api->fail_allocations(&plan) == MEMRT_OK);
        memrt_status_t status = api->freeze(mi, &bytes);
        REQUIRE(api->fail_allocations(NULL) == MEMRT_OK);
        REQUIRE(status == (bytes == 0 ? MEMRT_ENOMEM : MEMRT_OK));
    }
    REQUIRE(nth > 2);
}

TEST(freeze_without_memory_for_records_is_refused)
{
    child_expect_success(freeze_without_table, NULL);
    child_expect_success(freeze_without_memory, NULL);
}

TEST(number_of_frozen_buffers_is_bounded)
{
    static memrt_meminfo_t *buffers[MEMRT__FROZEN_BUFFERS + 1];
    size_t count = 0, bytes;
    memrt_status_t status = MEMRT_OK;
    while (status == MEMRT_OK) {
        buffers[count] = allocate(3 * PAGE, 0);
        status = api->freeze(buffers[count], &bytes);
        count++;
    }
    ck_assert_int_eq(status, MEMRT_ELIMIT);
    ck_assert_uint_eq(count, MEMRT__FROZEN_BUFFERS + 1);
    while (count != 0) {
        api->release(buffers[--count]);
    }
    memrt_meminfo_t *mi = allocate(3 * PAGE, 0);
    freeze(mi);
    api->release(mi);
}

static memrt_meminfo_t *inherited;

static void write_to_inherited(void *context)
{
    (void)context;
    ((volatile char *)api->get_data(inherited))[2 * PAGE] = 1;
}

static void thaw_inherited(void *context)
{
    (void)context;
    REQUIRE(api->thaw(inherited) == MEMRT_OK);
    fill(inherited);
    freeze(inherited);
    api->release(inherited);
    fill(allocate(LARGE, 0));
}

TEST(forked_child_has_frozen_buffers_of_its_own)
{
    inherited = allocate(LARGE, 0);
    freeze(inherited);
    child_expect_signal(write_to_inherited, NULL, SIGSEGV, "at offset 8192 of a frozen array");
    child_expect_success(thaw_inherited, NULL);
    child_expect_signal(write_to_inherited, NULL, SIGSEGV, "at offset 8192 of a frozen array");
    api->release(inherited);
}

/// Freeze and thaw a shared buffer, and free buffers of the thread in between.
static void freeze_beside_others(size_t index, void *context)
{
    memrt_meminfo_t *shared = context;
    for (size_t round = 0; round < 50; round++) {
        memrt_meminfo_t *own = allocate(index == 0 ? LARGE : 20000, 0);
        freeze(shared);
        fill(own);
        freeze(own);
        REQUIRE(api->thaw(shared) == MEMRT_OK);
        api->release(own);
    }
}

TEST(threads_freeze_and_free_at_the_same_time)
{
    books_t before = books_now();
    memrt_meminfo_t *mi = allocate(LARGE, 0);
    crew_run(3, freeze_beside_others, mi);
    ck_assert_int_eq(api->thaw(mi), MEMRT_ENOENT);
    fill(mi);
    api->release(mi);
    books_expect_no_leak(&before);
}
