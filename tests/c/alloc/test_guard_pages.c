#include "support/suite.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime/alloc/guard/guard_pages.h"
#include "runtime/base/atomics.h"
#include "runtime/os/os.h"
#include "support/child.h"
#include "support/kernel.h"

#define PAGE memrt__os_page_size()

/// Return whether guard pages are on: since the start of the process, or after an earlier test of
/// the same process.
static bool is_started(void)
{
    return memrt__load_relaxed(&memrt__guard_pages_ready) != 0;
}

static char *alloc_block(size_t bytes, size_t lead, size_t align)
{
    REQUIRE(memrt__guard_pages_start());
    char *block = memrt__guard_pages_alloc(bytes, lead, align);
    REQUIRE(block != NULL);
    return block;
}

TEST(refused_records_leave_guard_pages_off)
{
    if (is_started()) {
        return;
    }
    kernel_refuse(KERNEL_MAP, 0, 1);
    ck_assert(!memrt__guard_pages_start());
    kernel_obey();
    ck_assert_ptr_null(memrt__guard_pages_alloc(100, 0, 64));
    ck_assert(memrt__guard_pages_start());
    ck_assert(memrt__guard_pages_start());
}

TEST(block_ends_within_alignment_of_page_end)
{
    static const size_t sizes[] = {1, 64, 100, 4095, 4096, 4097, 1000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *block = alloc_block(sizes[i], 0, 64);
        size_t beyond = -((uintptr_t)block + sizes[i]) & (PAGE - 1);
        ck_assert_uint_eq((uintptr_t)block % 64, 0);
        ck_assert_uint_lt(beyond, 64);
        for (size_t at = 0; at < sizes[i]; at++) {
            REQUIRE(block[at] == 0);
        }
        memset(block, 7, sizes[i]);
        memrt__guard_pages_free(block);
    }
}

TEST(alignment_above_page_size_gets_no_guard_pages)
{
    ck_assert(memrt__guard_pages_start());
    ck_assert_ptr_null(memrt__guard_pages_alloc(100, 0, 2 * PAGE));
    ck_assert_ptr_null(memrt__guard_pages_alloc(SIZE_MAX, 0, 64));
}

TEST(refused_mapping_gives_its_record_back)
{
    ck_assert(memrt__guard_pages_start());
    for (size_t i = 0; i < 2 * MEMRT__GUARD_PAGES_BLOCKS; i++) {
        kernel_refuse(KERNEL_MAP, 0, 1);
        ck_assert_ptr_null(memrt__guard_pages_alloc(100, 0, 64));
    }
    kernel_obey();
    memrt__guard_pages_free(alloc_block(100, 0, 64));
}

TEST(refused_protection_gives_mapping_and_record_back)
{
    ck_assert(memrt__guard_pages_start());
    for (size_t i = 0; i < 2 * MEMRT__GUARD_PAGES_BLOCKS; i++) {
        size_t before = kernel_calls(KERNEL_UNMAP);
        kernel_refuse(KERNEL_PROTECT, i % 2, 1);
        ck_assert_ptr_null(memrt__guard_pages_alloc(100, 0, 64));
        ck_assert_uint_eq(kernel_calls(KERNEL_UNMAP), before + 1);
    }
    kernel_obey();
    memrt__guard_pages_free(alloc_block(100, 0, 64));
}

TEST(refused_protection_of_freed_block_unmaps_the_block)
{
    for (size_t i = 0; i < 2 * MEMRT__GUARD_PAGES_BLOCKS; i++) {
        char *block = alloc_block(100, 0, 64);
        size_t before = kernel_calls(KERNEL_UNMAP);
        kernel_refuse(KERNEL_PROTECT, 0, 1);
        memrt__guard_pages_free(block);
        ck_assert_uint_eq(kernel_calls(KERNEL_UNMAP), before + 1);
    }
    kernel_obey();
}

TEST(refused_discard_and_unmap_of_freed_block_are_survived)
{
    kernel_refuse(KERNEL_DISCARD, 0, SIZE_MAX);
    kernel_refuse(KERNEL_UNMAP, 0, SIZE_MAX);
    for (size_t i = 0; i < 2 * MEMRT__GUARD_PAGES_BLOCKS; i++) {
        memrt__guard_pages_free(alloc_block(100, 0, 64));
    }
    kernel_obey();
    memrt__guard_pages_free(alloc_block(100, 0, 64));
}

TEST(search_finds_live_blocks_by_any_address)
{
    uintptr_t start;
    char *block = alloc_block(100, 0, 64);
    ck_assert(memrt__guard_pages_search((uintptr_t)block + 99, &start));
    ck_assert_uint_eq(start, (uintptr_t)block);
    memrt__guard_pages_free(block);
    ck_assert(!memrt__guard_pages_search((uintptr_t)block, &start));
    ck_assert(!memrt__guard_pages_search((uintptr_t)&start, &start));
}

TEST(freed_records_serve_new_blocks)
{
    for (size_t i = 0; i < 2 * MEMRT__GUARD_PAGES_BLOCKS; i++) {
        memrt__guard_pages_free(alloc_block(100, 0, 64));
    }
    ck_assert_uint_ge(memrt__guard_pages_made(), 2 * MEMRT__GUARD_PAGES_BLOCKS);
}

TEST(number_of_live_blocks_is_bounded)
{
    static char *blocks[MEMRT__GUARD_PAGES_BLOCKS];
    size_t count = 0;
    ck_assert(memrt__guard_pages_start());
    while (count < MEMRT__GUARD_PAGES_BLOCKS &&
           (blocks[count] = memrt__guard_pages_alloc(100, 0, 64)) != NULL) {
        count++;
    }
    ck_assert_ptr_null(memrt__guard_pages_alloc(100, 0, 64));
    ck_assert_uint_eq(count, MEMRT__GUARD_PAGES_BLOCKS);
    while (count != 0) {
        memrt__guard_pages_free(blocks[--count]);
    }
}

TEST(addresses_of_freed_blocks_are_bounded)
{
    size_t large = MEMRT__GUARD_PAGES_FREED / 4;
    size_t before = kernel_calls(KERNEL_UNMAP);
    for (int i = 0; i < 6; i++) {
        memrt__guard_pages_free(alloc_block(large, 0, 64));
    }
    ck_assert_uint_ge(kernel_calls(KERNEL_UNMAP) - before, 3);
}

typedef struct access {
    ptrdiff_t offset; ///< from the data of an array of 100 bytes
    bool freed;
} access_t;

/// Exit with status 3 from the handler that was installed before the handler of guard pages.
static void handle_before(int number)
{
    (void)number;
    _exit(3);
}

/// Install the handler that guard pages call next. False: guard pages have a handler already.
static bool install_handler_before(void)
{
    return !is_started() && signal(SIGSEGV, handle_before) != SIG_ERR;
}

static void write_at(void *context)
{
    const access_t *access = context;
    (void)install_handler_before();
    char *block = alloc_block(164, 64, 64);
    if (access->freed) {
        memrt__guard_pages_free(block);
    }
    ((volatile char *)block)[64 + access->offset] = 1;
    if (!access->freed) {
        memrt__guard_pages_free(block);
    }
}

/// Expect that a write ends by a report, and by the handler before if one can be installed.
static void expect_report(access_t access, const char *message)
{
    if (!is_started()) {
        child_expect_exit(write_at, &access, 3, message);
    } else {
        child_expect_signal(write_at, &access, SIGSEGV, message);
    }
}

TEST(write_past_page_end_is_reported_before_previous_handler)
{
    expect_report((access_t){128, false}, "29 bytes past the end of an array of 100 bytes at 0x");
    expect_report((access_t){128, false}, "\n  allocated by thread ");
}

TEST(access_to_freed_block_is_reported_with_both_threads)
{
    expect_report((access_t){7, true}, ", at offset 7 of a freed array of 100 bytes at 0x");
    expect_report((access_t){7, true}, "\n  freed by thread ");
    expect_report((access_t){-5000, true}, "bytes before the start of a freed");
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

static void write_with_frames(void *context)
{
    (void)context;
    (void)install_handler_before();
    api->set_frames(list_one_frame);
    api->set_write_frames(write_one_frame);
    REQUIRE(api->tracking_set(&(memrt_tracking_t){
                .struct_size = sizeof(memrt_tracking_t), .on = 1, .frames = 1}) == MEMRT_OK);
    write_at(&(access_t){7, true});
}

TEST(report_shows_interpreter_calls_of_access_allocation_and_free)
{
    static const char *const texts[] = {
        "\n  accessed at\n    fill at model.py:7\n  allocated by thread ",
        " at\n    load at data.py:3\n"};
    for (size_t i = 0; i < 2; i++) {
        if (!is_started()) {
            child_expect_exit(write_with_frames, NULL, 3, texts[i]);
        } else {
            child_expect_signal(write_with_frames, NULL, SIGSEGV, texts[i]);
        }
    }
}

TEST(write_into_filled_bytes_is_found_at_free)
{
    child_expect_abort(write_at, &(access_t){102, false}, "a write 3 bytes past the end was found");
    child_expect_abort(write_at, &(access_t){-70, false},
                       "a write 70 bytes before the start was found");
}

/* Signals that are no access to a guarded block. */

static void exit_with_info(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    _exit(info->si_code > 0 ? 4 : 5);
}

static void fault_elsewhere(void *context)
{
    const bool *raised = context; /* raise the signal, or read a page without access */
    struct sigaction action = {.sa_sigaction = exit_with_info, .sa_flags = SA_SIGINFO};
    REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0);
    REQUIRE(memrt__guard_pages_start());
    if (*raised) {
        (void)raise(SIGSEGV);
        return;
    }
    volatile char *page = memrt__os_map(PAGE, 0, PAGE);
    REQUIRE(page != NULL && memrt__os_forbid_access((char *)page, PAGE));
    (void)*page;
}

TEST(signal_without_guarded_block_reaches_previous_handler)
{
    if (is_started()) {
        return; /* guard pages have their handler already */
    }
    child_expect_exit(fault_elsewhere, &(bool){false}, 4, NULL);
    child_expect_exit(fault_elsewhere, &(bool){true}, 5, NULL);
}

typedef struct ending_case {
    void (*before)(int); ///< action before guard pages start
    bool raised;         ///< raise the signal; otherwise write past a block
} ending_case_t;

static void fault_after(void *context)
{
    const ending_case_t *ending = context;
    REQUIRE(signal(SIGSEGV, ending->before) != SIG_ERR);
    char *block = alloc_block(128, 64, 64);
    if (ending->raised) {
        (void)raise(SIGSEGV);
    } else {
        ((volatile char *)block)[128] = 1;
    }
}

TEST(default_action_follows_ignored_and_raised_signals)
{
    if (is_started()) {
        return; /* guard pages have their handler already */
    }
    child_expect_signal(fault_after, &(ending_case_t){SIG_DFL, false}, SIGSEGV, "refused write");
    child_expect_signal(fault_after, &(ending_case_t){SIG_IGN, false}, SIGSEGV, "refused write");
    child_expect_signal(fault_after, &(ending_case_t){SIG_DFL, true}, SIGSEGV, "");
}

static void read_past_end(void *context)
{
    (void)context;
    char *block = alloc_block(128, 64, 64);
    (void)((volatile char *)block)[128];
}

TEST(read_is_told_from_write)
{
    child_expect_signal(read_past_end, NULL, SIGSEGV, "memrt: refused read at 0x");
}

/// Pass the signal on, as faulthandler does: restore the handler before, and raise.
static struct sigaction replaced;

static void pass_on(int number)
{
    REQUIRE(sigaction(number, &replaced, NULL) == 0);
    (void)raise(number);
}

static void write_under_later_handler(void *context)
{
    (void)context;
    (void)install_handler_before();
    char *block = alloc_block(128, 64, 64);
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_NODEFER};
    REQUIRE(sigaction(SIGSEGV, &action, &replaced) == 0);
    ((volatile char *)block)[128] = 1;
}

TEST(signal_raised_by_later_handler_is_reported)
{
    if (!is_started()) {
        child_expect_exit(write_under_later_handler, NULL, 3,
                          "1 bytes past the end of an array of 64 bytes");
    }
}
