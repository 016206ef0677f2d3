#include "support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/observe/sites.h"
#include "runtime/observe/tracking.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/thread/thread.h"
#include "runtime/trace/event_trace.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"
#include "support/tape.h"

static void add_event(uint32_t block, uint32_t site)
{
    memrt_trace_event_t event = {.block = block, .type = MEMRT_TRACE_ALLOC, .site = site};
    memrt__trace_add(&event);
}

static memrt_trace_stats_t read_trace_stats(void)
{
    memrt_trace_stats_t out = {.struct_size = sizeof(out)};
    ck_assert_int_eq(api->trace_stats(&out), MEMRT_OK);
    return out;
}

static void start_trace(void)
{
    tape_start((memrt_trace_options_t){0});
}

/// Return the path of the tape with a suffix, in the private folder of the test program.
static const char *tape_path_with(const char *suffix)
{
    static char path[80];
    snprintf(path, sizeof(path), "%s%s", tape_path(), suffix);
    return path;
}

TEST(events_of_a_thread_keep_their_order_and_times)
{
    uint64_t before = memrt__os_now_ns();
    start_trace();
    for (uint32_t i = 0; i < 1501; i++) {
        add_event(i, 0);
    }
    const tape_t *tape = tape_stop();
    uint64_t most = memrt__os_now_ns() - before;
    ck_assert_uint_eq(tape->count, 1501);
    for (uint32_t i = 0; i < 1501; i++) {
        ck_assert_uint_eq(tape->events[i].block, i);
        ck_assert_uint_eq(tape->threads[i], memrt__os_thread_id());
        ck_assert_uint_le(tape->events[i].time, most);
        ck_assert_uint_ge(tape->events[i].time, i == 0 ? 0 : tape->events[i - 1].time);
    }
    ck_assert_uint_eq(tape->end.events, 1501);
    ck_assert_uint_eq(tape->end.lost, 0);
    ck_assert_uint_ge(tape->end.time, tape->events[1500].time);
}

TEST(trace_is_on_between_start_and_stop)
{
    ck_assert(!memrt__trace_is_on());
    ck_assert_int_eq(read_trace_stats().on, 0);
    start_trace();
    ck_assert(memrt__trace_is_on());
    ck_assert_int_eq(read_trace_stats().on, 1);
    memrt_trace_options_t options = {.struct_size = sizeof(options),
                                     .path = tape_path_with(".other")};
    ck_assert_int_eq(api->trace_start(&options, NULL), MEMRT_EBUSY);
    ck_assert_int_ne(access(options.path, F_OK), 0);
    memrt_trace_stats_t out = {.struct_size = sizeof(out)};
    ck_assert_int_eq(api->trace_stop(&out), MEMRT_OK);
    ck_assert_int_eq(out.on, 0);
    ck_assert_uint_eq(out.bytes, tape_read()->bytes);
    ck_assert(!memrt__trace_is_on());
    ck_assert_int_eq(api->trace_stop(&out), MEMRT_ENOENT);
}

TEST(invalid_trace_options_are_refused)
{
    memrt_trace_options_t good = {.struct_size = sizeof(good), .path = tape_path()}, bad = good;
    bad.struct_size--;
    ck_assert_int_eq(api->trace_start(&bad, NULL), MEMRT_EINVAL);
    bad = good;
    bad.path = NULL;
    ck_assert_int_eq(api->trace_start(&bad, NULL), MEMRT_EINVAL);
    bad = good;
    bad.frames = MEMRT_FRAMES_MAX + 1;
    ck_assert_int_eq(api->trace_start(&bad, NULL), MEMRT_EINVAL);
    bad = good;
    bad.native = MEMRT_FRAMES_MAX + 1;
    ck_assert_int_eq(api->trace_start(&bad, NULL), MEMRT_EINVAL);
    bad = good;
    bad.last = MEMRT_TRACE_LAST_MAX + 1;
    ck_assert_int_eq(api->trace_start(&bad, NULL), MEMRT_EINVAL);
    ck_assert_int_ne(access(tape_path(), F_OK), 0);
    good.frames = good.native = MEMRT_FRAMES_MAX;
    good.last = MEMRT_TRACE_LAST_MAX;
    ck_assert_int_eq(api->trace_start(&good, NULL), MEMRT_OK);
    tape_stop();
    memrt_trace_stats_t out = {.struct_size = sizeof(out) - 1};
    ck_assert_int_eq(api->trace_stats(&out), MEMRT_EINVAL);
    ck_assert_int_eq(api->trace_stop(&out), MEMRT_EINVAL);
}

TEST(trace_file_creation_failure_reports_the_system_error)
{
    int error = 5;
    memrt_trace_options_t options = {.struct_size = sizeof(options),
                                     .path = tape_path_with("/file")};
    ck_assert_int_eq(api->trace_start(&options, &error), MEMRT_EIO);
    ck_assert_int_eq(error, ENOENT);
    ck_assert_int_eq(api->trace_start(&options, NULL), MEMRT_EIO);
    start_trace();
    error = 5;
    ck_assert_int_eq(api->trace_start(&options, &error), MEMRT_EBUSY);
    ck_assert_int_eq(error, 5);
    tape_stop();
    options.path = tape_path();
    start_trace();
    ck_assert_int_eq(api->trace_stop(NULL), MEMRT_OK);
    /* the file exists, and `replace` is 0 */
    ck_assert_int_eq(api->trace_start(&options, &error), MEMRT_EIO);
    ck_assert_int_eq(error, EEXIST);
    ck_assert(tape_read()->whole);
}

TEST(trace_statistics_count_events_and_bytes)
{
    start_trace();
    add_event(1, 0);
    add_event(2, 0);
    ck_assert_uint_eq(read_trace_stats().events, 2);
    uint64_t bytes = read_trace_stats().bytes;
    ck_assert_uint_eq(bytes, 64 + 16 + 2 * 32);
    add_event(3, 0);
    ck_assert_uint_eq(read_trace_stats().events, 3);
    ck_assert_uint_eq(read_trace_stats().bytes, bytes + 16 + 32);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 3);
    ck_assert_uint_eq(read_trace_stats().events, 3); /* of the last trace */
    ck_assert_uint_eq(read_trace_stats().bytes, tape->bytes);
    start_trace();
    ck_assert_uint_eq(read_trace_stats().events, 0);
    tape_stop();
}

static void add_many(size_t index, void *context)
{
    (void)context;
    for (uint32_t i = 0; i < 900; i++) {
        add_event((uint32_t)index * 1000 + i, 0);
    }
}

TEST(trace_has_all_events_of_each_thread_in_order)
{
    start_trace();
    crew_run(4, add_many, NULL);
    const tape_t *tape = tape_stop();
    uint32_t next[4] = {0}, threads[4] = {0};
    ck_assert_uint_eq(tape->count, 4 * 900);
    for (size_t i = 0; i < tape->count; i++) {
        uint32_t who = tape->events[i].block / 1000;
        ck_assert_uint_eq(tape->events[i].block % 1000, next[who]++);
        threads[who] = threads[who] == 0 ? tape->threads[i] : threads[who];
        ck_assert_uint_eq(tape->threads[i], threads[who]);
    }
}

static void add_one(size_t index, void *context)
{
    (void)index;
    (void)context;
    add_event((uint32_t)memrt__os_thread_id(), 0);
}

TEST(events_have_their_thread_id_when_a_record_is_reused)
{
    start_trace();
    for (int i = 0; i < 3; i++) {
        crew_run(1, add_one, NULL);
    }
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(tape->threads[i], tape->events[i].block);
    }
}

static uint32_t create_site(const char *function, const char *file, uint64_t line);

TEST(events_after_the_trace_end_are_in_no_trace)
{
    uint32_t site = create_site("late", "program.u", 4);
    start_trace();
    add_event(1, 0);
    ck_assert_uint_eq(tape_stop()->count, 1);
    for (uint32_t i = 0; i < 1001; i++) { /* by a thread that saw the end late */
        add_event(2, site);
    }
    start_trace();
    add_event(3, 0);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 1);
    ck_assert_uint_eq(tape->site_count, 0);
    ck_assert_uint_eq(tape->events[0].block, 3);
}

/// Make all thread records useless: mark them as in use, and drop their event buffers.
static void use_up_records(void)
{
    memrt__lock(MEMRT__RANK_THREADS);
    for (memrt__thread_t *thread = memrt__thread_first(); thread != NULL; thread = thread->next) {
        thread->in_use = true;
        thread->trace = NULL;
    }
    memrt__unlock(MEMRT__RANK_THREADS);
}

static void add_without_memory(void *context)
{
    (void)context;
    use_up_records();
    start_trace();
    suite_fail_all_requests();
    add_event(1, 0); /* no record of the thread, or no buffer */
    add_event(2, 0);
    suite_allow_requests();
    REQUIRE(read_trace_stats().lost == 2);
    add_event(3, 0);
    const tape_t *tape = tape_stop();
    REQUIRE(tape->count == 1);
    REQUIRE(tape->end.lost == 2);
    REQUIRE(tape->end.events == 1);
}

static void *add_first_without_memory(void *context)
{
    add_without_memory(context);
    return NULL;
}

static void add_in_a_thread(void *context)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, add_first_without_memory, context) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

TEST(events_without_memory_are_lost_and_counted)
{
    memrt__thread_self(); /* the thread of the test has a record, but no buffer */
    child_expect_success(add_without_memory, NULL);
    child_expect_success(add_in_a_thread, NULL); /* the thread has no record yet */
}

TEST(marks_are_events_with_a_text)
{
    char longest[MEMRT__TRACE_TEXT_MAX + 2] = "";
    memset(longest, 'x', sizeof(longest) - 1);
    ck_assert_int_eq(api->trace_mark("nowhere"), MEMRT_OK);
    start_trace();
    ck_assert_int_eq(api->trace_mark("first"), MEMRT_OK);
    ck_assert_int_eq(api->trace_mark("second"), MEMRT_OK);
    ck_assert_int_eq(api->trace_mark("first"), MEMRT_OK);
    ck_assert_int_eq(api->trace_mark(NULL), MEMRT_EINVAL);
    ck_assert_int_eq(api->trace_mark(""), MEMRT_EINVAL);
    ck_assert_int_eq(api->trace_mark(longest), MEMRT_EINVAL);
    longest[MEMRT__TRACE_TEXT_MAX] = '\0';
    ck_assert_int_eq(api->trace_mark(longest), MEMRT_OK);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_MARK), 4);
    ck_assert_str_eq(tape->texts[tape->events[0].block], "first");
    ck_assert_str_eq(tape->texts[tape->events[1].block], "second");
    ck_assert_uint_eq(tape->events[2].block, tape->events[0].block);
    ck_assert_str_eq(tape->texts[tape->events[3].block], longest);
    start_trace(); /* each trace contains its texts again */
    ck_assert_int_eq(api->trace_mark("first"), MEMRT_OK);
    tape = tape_stop();
    ck_assert_str_eq(tape->texts[tape->events[0].block], "first");
}

TEST(mark_is_lost_when_its_text_cannot_be_written)
{
    start_trace();
    kernel_refuse(KERNEL_WRITE, 0, 1);
    ck_assert_int_eq(api->trace_mark("not on the disk"), MEMRT_OK);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 0);
    ck_assert_uint_eq(tape->end.lost, 1);
}

/// Simulated Python frame of these tests.
static memrt_frame_t running;

static size_t write_one_frame(memrt_frame_t *frames, size_t max)
{
    (void)max;
    frames[0] = running;
    return 1;
}

static uint32_t create_site(const char *function, const char *file, uint64_t line)
{
    running = api->frame_new(function, file, line);
    api->set_frames(write_one_frame);
    uint32_t site = memrt__site_here(1, 0);
    api->set_frames(NULL);
    ck_assert_uint_ne(site, 0);
    return site;
}

TEST(site_is_written_once_per_trace)
{
    uint32_t site = create_site("work", "program.x", 12), other = create_site(NULL, NULL, 0);
    start_trace();
    add_event(1, site);
    add_event(2, site);
    add_event(3, other);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->site_count, 2);
    ck_assert_uint_eq(tape->sites[0].number, site);
    ck_assert_uint_eq(tape->sites[0].frames, 1);
    ck_assert_str_eq(tape->texts[tape->first_frames[0].function], "work");
    ck_assert_str_eq(tape->texts[tape->first_frames[0].file], "program.x");
    ck_assert_uint_eq(tape->first_frames[0].at, 12);
    ck_assert_uint_eq(tape->first_frames[0].native, 0);
    ck_assert_uint_eq(tape->first_frames[1].function, 0);
    ck_assert_uint_eq(tape->events[1].site, site);
    start_trace(); /* each trace contains its sites again */
    add_event(1, site);
    ck_assert_uint_eq(tape_stop()->site_count, 1);
}

static bool is_site_before_event(const tape_t *tape, size_t event)
{
    for (size_t i = 0; i < tape->earlier_sites[event]; i++) {
        if (tape->sites[i].number == tape->events[event].site) {
            return true;
        }
    }
    return false;
}

/// New sites begin at many events, because events are written in batches.
TEST(site_is_written_before_its_events)
{
    uint32_t site = 0;
    start_trace();
    for (uint32_t i = 0; i < 1650; i++) {
        if (i % 100 == 0 || i % 100 == 99) {
            site = create_site("step", "program.w", i + 1);
        }
        add_event(i, site);
    }
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 1650);
    ck_assert_uint_eq(tape->site_count, 33);
    ck_assert_uint_lt(tape->earlier_sites[0], 33); /* the first batch precedes some sites */
    for (size_t i = 0; i < tape->count; i++) {
        ck_assert_msg(is_site_before_event(tape, i), "event %zu precedes its site", i);
    }
}

TEST(native_frames_are_written_with_their_object_file)
{
    uint32_t site = memrt__site_here(0, 4);
    start_trace();
    add_event(1, site);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->site_count, 1);
    ck_assert_uint_eq(tape->first_frames[0].native, 1);
    ck_assert_str_ne(tape->texts[tape->first_frames[0].file], "");
    ck_assert_uint_ne(tape->first_frames[0].at, 0);
}

TEST(unwritten_site_is_retried_with_a_later_event)
{
    uint32_t site = create_site("late", "program.y", 1);
    start_trace();
    kernel_refuse(KERNEL_WRITE, 0, 1); /* the function's name */
    add_event(1, site);
    add_event(2, site); /* without a write: the disk is full */
    ck_assert_uint_eq(read_trace_stats().events, 2);
    /* the file's name, after two pieces of the function's name */
    kernel_refuse(KERNEL_WRITE, 3, 1);
    add_event(3, site);
    ck_assert_uint_eq(read_trace_stats().events, 3);
    add_event(4, site);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 4);
    ck_assert_uint_eq(tape->site_count, 1);
    ck_assert_str_eq(tape->texts[tape->first_frames[0].function], "late");
}

static size_t write_two_frames(memrt_frame_t *frames, size_t max)
{
    (void)max;
    frames[0] = running;
    frames[1] = api->frame_new("caller", "program.v", 2);
    return 2;
}

TEST(site_is_written_only_after_all_its_frame_texts)
{
    running = api->frame_new("called", "program.v", 1);
    api->set_frames(write_two_frames);
    uint32_t site = memrt__site_here(2, 0);
    api->set_frames(NULL);
    start_trace();
    kernel_refuse(KERNEL_WRITE, 0, 1);
    add_event(1, site);
    ck_assert_uint_eq(read_trace_stats().bytes, 64 + 16 + 32);
    add_event(2, site);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->site_count, 1);
    ck_assert_uint_eq(tape->sites[0].frames, 2);
    ck_assert_str_eq(tape->texts[tape->first_frames[0].function], "called");
}

static void add_at_a_site(size_t index, void *context)
{
    (void)index;
    add_event(1, *(const uint32_t *)context);
}

TEST(concurrent_events_of_a_site_write_the_site_once)
{
    for (int round = 0; round < 20; round++) {
        uint32_t site = create_site("together", "program.z", 5);
        start_trace();
        crew_run(4, add_at_a_site, &site);
        const tape_t *tape = tape_stop();
        ck_assert_uint_eq(tape->site_count, 1);
        ck_assert_uint_eq(tape->count, 4);
    }
}

TEST(allocation_numbers_continue_across_traces)
{
    start_trace();
    uint32_t first = memrt__trace_new_number();
    ck_assert(memrt__trace_has(first));
    tape_stop();
    start_trace();
    uint32_t next = memrt__trace_new_number();
    ck_assert_uint_eq(next, first + 1);
    ck_assert_uint_eq(memrt__trace_last_number, next);
    ck_assert(memrt__trace_has(next));
    ck_assert(!memrt__trace_has(first)); /* belongs to the previous trace */
    tape_stop();
}

static void use_up_block_numbers(void *context)
{
    (void)context;
    memrt__trace_last_number = UINT32_MAX - 1;
    start_trace();
    REQUIRE(memrt__trace_new_number() == UINT32_MAX);
    REQUIRE(memrt__trace_new_number() == 0);
    REQUIRE(memrt__trace_new_number() == 0);
    REQUIRE(memrt__trace_has(UINT32_MAX));
    REQUIRE(read_trace_stats().lost == 2);
    tape_stop();
    start_trace();
    REQUIRE(!memrt__trace_has(UINT32_MAX));
    tape_stop();
}

TEST(allocations_beyond_uint32_max_are_lost)
{
    child_expect_success(use_up_block_numbers, NULL);
}

TEST(policies_are_written_again_in_each_trace)
{
    ck_assert_uint_eq(memrt__trace_policy("none", "", 1, 64), 0); /* nothing is recorded */
    start_trace();
    size_t number = memrt__trace_policy("mine", "outer/inner", 7, 4096);
    ck_assert(memrt__trace_has_policy(number));
    ck_assert(!memrt__trace_has_policy(0));
    const tape_t *tape = tape_stop();
    const memrt_trace_policy_t *policy = tape_policy(tape, (uint32_t)number);
    ck_assert_ptr_nonnull(policy);
    ck_assert_str_eq(tape->texts[policy->name], "mine");
    ck_assert_str_eq(tape->texts[policy->scope], "outer/inner");
    ck_assert_uint_eq(policy->index, 7);
    ck_assert_uint_eq(policy->alignment, 4096);
    start_trace();
    ck_assert(!memrt__trace_has_policy(number));
    size_t other = memrt__trace_policy("mine", "", 7, 4096);
    ck_assert_uint_gt(other, number);
    tape = tape_stop();
    ck_assert_uint_eq(tape_policy(tape, (uint32_t)other)->scope, 0);
}

TEST(policy_that_cannot_be_written_has_no_number)
{
    start_trace();
    for (size_t pass = 0; pass < 5; pass++) { /* two texts and the policy, in up to three pieces */
        char name[] = "policy 0", scope[] = "scope 0";
        name[7] = scope[6] = (char)('0' + pass);
        kernel_refuse(KERNEL_WRITE, pass, 1);
        ck_assert_uint_eq(memrt__trace_policy(name, scope, 1, 64), 0);
        kernel_obey();
        ck_assert_uint_ne(memrt__trace_policy(name, scope, 1, 64), 0);
    }
    ck_assert_uint_eq(tape_stop()->policy_count, 5);
}

static void expect_no_trace(void *context)
{
    (void)context;
    REQUIRE(!memrt__trace_is_on());
    REQUIRE(api->trace_mark("the child's") == MEMRT_OK);
    REQUIRE(read_trace_stats().on == 0 && read_trace_stats().events == 0 &&
            read_trace_stats().bytes == 0);
    REQUIRE(api->trace_stop(NULL) == MEMRT_ENOENT);
    memrt_trace_options_t options = {
        .struct_size = sizeof(options), .path = tape_path(), .replace = 1};
    REQUIRE(api->trace_start(&options, NULL) == MEMRT_OK); /* the child's own trace */
    add_event(7, 0);
    const tape_t *tape = tape_stop();
    REQUIRE(tape->count == 1);
    REQUIRE(tape->events[0].block == 7);
}

TEST(forked_child_leaves_trace_file_of_parent_intact)
{
    for (uint64_t last = 0; last <= 100; last += 100) {
        tape_start((memrt_trace_options_t){.last = last});
        add_event(1, 0);
        child_expect_success(expect_no_trace, NULL);
        add_event(2, 0);
        const tape_t *tape = tape_stop();
        ck_assert(tape->whole);
        ck_assert_uint_eq(tape->count, 2);
        ck_assert_uint_eq(tape->end.events, 2);
    }
}

/// Fork a process that records `count` events into the file and ends by `act`.
static const tape_t *record_in_a_child(uint32_t count, void (*act)(void))
{
    const char *path = tape_path();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        memrt_trace_options_t options = {.struct_size = sizeof(options), .path = path};
        REQUIRE(api->trace_start(&options, NULL) == MEMRT_OK);
        for (uint32_t i = 0; i < count; i++) {
            add_event(i, 0);
        }
        act();
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return tape_read();
}

static void exit_normally(void)
{
    exit(0);
}

static void kill_self(void)
{
    kill(getpid(), SIGKILL);
}

TEST(process_exit_completes_the_trace)
{
    const tape_t *tape = record_in_a_child(700, exit_normally);
    ck_assert_uint_eq(tape->count, 700);
    ck_assert_uint_eq(tape->end.events, 700);
    ck_assert(tape->whole);
}

TEST(killed_process_leaves_complete_trace_records)
{
    const tape_t *tape = record_in_a_child(1700, kill_self);
    ck_assert_uint_gt(tape->count, 1000);
    ck_assert(tape->whole);
    ck_assert_uint_eq(tape->end.time, 0);
}

TEST(trace_captures_sites_when_tracking_is_off)
{
    int was = api->tracking(0);
    running = api->frame_new("asked", "program.w", 3);
    api->set_frames(write_one_frame);
    ck_assert(memrt__is_slow(MEMRT__SLOW_TRACKING) || memrt__tracking_alloc(1).site == 0);
    ck_assert_uint_eq(memrt__tracking_traced_site(), 0);
    tape_start((memrt_trace_options_t){.frames = 1});
    memrt__alloc_event_t event = memrt__tracking_alloc(1);
    ck_assert_uint_ne(event.site, 0);
    ck_assert(memrt__is_slow(MEMRT__SLOW_TRACKING) || event.weight == 0);
    ck_assert_uint_eq(memrt__tracking_traced_site(), event.site);
    tape_stop();
    start_trace(); /* a trace without frames */
    ck_assert(memrt__is_slow(MEMRT__SLOW_TRACKING) || memrt__tracking_alloc(1).site == 0);
    tape_stop();
    api->set_frames(NULL);
    api->tracking(was);
}
