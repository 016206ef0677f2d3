#include "support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/os.h"
#include "runtime/debug/site.h"
#include "runtime/debug/trace.h"
#include "runtime/debug/tracking.h"
#include "runtime/stats/thread.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"
#include "support/tape.h"

static void add(uint32_t block, uint32_t site)
{
    memrt_trace_event_t event = {.block = block, .type = MEMRT_TRACE_BIRTH, .site = site};
    memrt__trace_add(&event);
}

static memrt_trace_stats_t stats(void)
{
    memrt_trace_stats_t out = {.struct_size = sizeof(out)};
    ck_assert_int_eq(api->trace_stats(&out), MEMRT_OK);
    return out;
}

static void start(void)
{
    tape_start((memrt_trace_options_t){0});
}

TEST(events_of_a_thread_come_back_in_order_and_with_their_times)
{
    uint64_t before = memrt__os_now_ns();
    start();
    for (uint32_t i = 0; i < 1501; i++) {
        add(i, 0);
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

TEST(a_trace_is_on_between_its_start_and_its_end)
{
    ck_assert(!memrt__trace_is_on());
    ck_assert_int_eq(stats().on, 0);
    start();
    ck_assert(memrt__trace_is_on());
    ck_assert_int_eq(stats().on, 1);
    memrt_trace_options_t options = {.struct_size = sizeof(options), .path = "/tmp/another"};
    ck_assert_int_eq(api->trace_start(&options, NULL), MEMRT_EBUSY);
    ck_assert_int_ne(access("/tmp/another", F_OK), 0);
    memrt_trace_stats_t out = {.struct_size = sizeof(out)};
    ck_assert_int_eq(api->trace_stop(&out), MEMRT_OK);
    ck_assert_int_eq(out.on, 0);
    ck_assert_uint_eq(out.bytes, tape_read()->bytes);
    ck_assert(!memrt__trace_is_on());
    ck_assert_int_eq(api->trace_stop(&out), MEMRT_ENOENT);
}

TEST(options_that_cannot_be_are_refused)
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

TEST(a_file_that_cannot_be_made_is_refused_with_the_systems_reason)
{
    int error = 5;
    memrt_trace_options_t options = {.struct_size = sizeof(options), .path = "/tmp/no/folder"};
    ck_assert_int_eq(api->trace_start(&options, &error), MEMRT_EIO);
    ck_assert_int_eq(error, ENOENT);
    ck_assert_int_eq(api->trace_start(&options, NULL), MEMRT_EIO);
    start();
    error = 5;
    ck_assert_int_eq(api->trace_start(&options, &error), MEMRT_EBUSY);
    ck_assert_int_eq(error, 5);
    tape_stop();
    options.path = tape_path();
    start();
    ck_assert_int_eq(api->trace_stop(NULL), MEMRT_OK);
    ck_assert_int_eq(api->trace_start(&options, &error), MEMRT_EIO); /* not to be replaced */
    ck_assert_int_eq(error, EEXIST);
    ck_assert(tape_read()->whole);
}

TEST(statistics_say_how_far_the_trace_is)
{
    start();
    add(1, 0);
    add(2, 0);
    ck_assert_uint_eq(stats().events, 2);
    uint64_t bytes = stats().bytes;
    ck_assert_uint_eq(bytes, 64 + 16 + 2 * 32);
    add(3, 0);
    ck_assert_uint_eq(stats().events, 3);
    ck_assert_uint_eq(stats().bytes, bytes + 16 + 32);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 3);
    ck_assert_uint_eq(stats().events, 3); /* of the last one */
    ck_assert_uint_eq(stats().bytes, tape->bytes);
    start();
    ck_assert_uint_eq(stats().events, 0);
    tape_stop();
}

static void add_many(size_t index, void *context)
{
    (void)context;
    for (uint32_t i = 0; i < 900; i++) {
        add((uint32_t)index * 1000 + i, 0);
    }
}

TEST(threads_lose_nothing_and_keep_their_order)
{
    start();
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
    add((uint32_t)memrt__os_thread_id(), 0);
}

TEST(a_record_that_goes_to_another_thread_tells_them_apart)
{
    start();
    for (int i = 0; i < 3; i++) {
        crew_run(1, add_one, NULL);
    }
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(tape->threads[i], tape->events[i].block);
    }
}

static uint32_t site_at(const char *function, const char *file, uint64_t line);

TEST(what_came_after_the_end_is_in_no_trace)
{
    uint32_t site = site_at("late", "program.u", 4);
    start();
    add(1, 0);
    ck_assert_uint_eq(tape_stop()->count, 1);
    for (uint32_t i = 0; i < 1001; i++) { /* by a thread that saw the end late */
        add(2, site);
    }
    start();
    add(3, 0);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 1);
    ck_assert_uint_eq(tape->site_count, 0);
    ck_assert_uint_eq(tape->events[0].block, 3);
}

/// Let no record of a thread be of use: neither its buffer nor, to another thread, itself.
static void use_up_records(void)
{
    for (memrt__thread_t *thread = memrt__thread_first(); thread != NULL; thread = thread->next) {
        thread->in_use = true;
        thread->trace = NULL;
    }
}

static void add_without_memory(void *context)
{
    (void)context;
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    use_up_records();
    start();
    REQUIRE(api->fail_allocations(&plan) == MEMRT_OK);
    add(1, 0); /* no record of the thread, or no buffer */
    add(2, 0);
    REQUIRE(api->fail_allocations(NULL) == MEMRT_OK);
    REQUIRE(stats().lost == 2);
    add(3, 0);
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
    memrt__thread_self(); /* the thread of the test has one, and no buffer */
    child_expect_success(add_without_memory, NULL);
    if (!SUITE_THREAD_SANITIZER) { /* takes locks of before the fork for held by a new thread */
        child_expect_success(add_in_a_thread, NULL); /* which has no record yet */
    }
}

TEST(marks_are_events_with_a_text)
{
    char longest[MEMRT__TRACE_TEXT_MAX + 2] = "";
    memset(longest, 'x', sizeof(longest) - 1);
    ck_assert_int_eq(api->trace_mark("nowhere"), MEMRT_OK);
    start();
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
    start(); /* texts are in each trace anew */
    ck_assert_int_eq(api->trace_mark("first"), MEMRT_OK);
    tape = tape_stop();
    ck_assert_str_eq(tape->texts[tape->events[0].block], "first");
}

TEST(a_mark_whose_text_has_no_room_is_lost)
{
    start();
    kernel_refuse(KERNEL_WRITE, 0, 1);
    ck_assert_int_eq(api->trace_mark("not on the disk"), MEMRT_OK);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 0);
    ck_assert_uint_eq(tape->end.lost, 1);
}

/// What the interpreter of these tests runs now.
static memrt_frame_t running;

static size_t one_frame(memrt_frame_t *frames, size_t max)
{
    (void)max;
    frames[0] = running;
    return 1;
}

static uint32_t site_at(const char *function, const char *file, uint64_t line)
{
    running = api->frame_new(function, file, line);
    api->set_frames(one_frame);
    uint32_t site = memrt__site_here(1, 0);
    api->set_frames(NULL);
    ck_assert_uint_ne(site, 0);
    return site;
}

TEST(a_site_is_told_once_before_the_event_that_names_it)
{
    uint32_t site = site_at("work", "program.x", 12), other = site_at(NULL, NULL, 0);
    start();
    add(1, site);
    add(2, site);
    add(3, other);
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
    start(); /* in each trace anew */
    add(1, site);
    ck_assert_uint_eq(tape_stop()->site_count, 1);
}

TEST(calls_of_native_code_are_told_by_their_object)
{
    uint32_t site = memrt__site_here(0, 4);
    start();
    add(1, site);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->site_count, 1);
    ck_assert_uint_eq(tape->first_frames[0].native, 1);
    ck_assert_str_ne(tape->texts[tape->first_frames[0].file], "");
    ck_assert_uint_ne(tape->first_frames[0].at, 0);
}

TEST(a_site_that_had_no_room_is_told_with_a_later_event)
{
    uint32_t site = site_at("late", "program.y", 1);
    start();
    kernel_refuse(KERNEL_WRITE, 0, 1); /* the function's name */
    add(1, site);
    add(2, site); /* not even tried: the disk is full */
    ck_assert_uint_eq(stats().events, 2);
    kernel_refuse(KERNEL_WRITE, 3, 1); /* the file's name, after two pieces of the function's */
    add(3, site);
    ck_assert_uint_eq(stats().events, 3);
    add(4, site);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 4);
    ck_assert_uint_eq(tape->site_count, 1);
    ck_assert_str_eq(tape->texts[tape->first_frames[0].function], "late");
}

static size_t two_frames(memrt_frame_t *frames, size_t max)
{
    (void)max;
    frames[0] = running;
    frames[1] = api->frame_new("caller", "program.v", 2);
    return 2;
}

TEST(a_site_without_the_text_of_its_first_call_is_not_told_by_its_second)
{
    running = api->frame_new("called", "program.v", 1);
    api->set_frames(two_frames);
    uint32_t site = memrt__site_here(2, 0);
    api->set_frames(NULL);
    start();
    kernel_refuse(KERNEL_WRITE, 0, 1);
    add(1, site);
    ck_assert_uint_eq(stats().bytes, 64 + 16 + 32);
    add(2, site);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->site_count, 1);
    ck_assert_uint_eq(tape->sites[0].frames, 2);
    ck_assert_str_eq(tape->texts[tape->first_frames[0].function], "called");
}

static void add_at_a_site(size_t index, void *context)
{
    (void)index;
    add(1, *(const uint32_t *)context);
}

TEST(threads_that_come_by_a_site_at_once_tell_it_once)
{
    for (int round = 0; round < 20; round++) {
        uint32_t site = site_at("together", "program.z", 5);
        start();
        crew_run(4, add_at_a_site, &site);
        const tape_t *tape = tape_stop();
        ck_assert_uint_eq(tape->site_count, 1);
        ck_assert_uint_eq(tape->count, 4);
    }
}

TEST(births_are_numbered_through_all_traces)
{
    start();
    uint32_t first = memrt__trace_birth();
    ck_assert(memrt__trace_has(first));
    tape_stop();
    start();
    uint32_t next = memrt__trace_birth();
    ck_assert_uint_eq(next, first + 1);
    ck_assert_uint_eq(memrt__trace_births, next);
    ck_assert(memrt__trace_has(next));
    ck_assert(!memrt__trace_has(first)); /* it was in the one before */
    tape_stop();
}

static void use_up_the_numbers(void *context)
{
    (void)context;
    memrt__trace_births = UINT32_MAX - 1;
    start();
    REQUIRE(memrt__trace_birth() == UINT32_MAX);
    REQUIRE(memrt__trace_birth() == 0);
    REQUIRE(memrt__trace_birth() == 0);
    REQUIRE(memrt__trace_has(UINT32_MAX));
    REQUIRE(stats().lost == 2);
    tape_stop();
    start();
    REQUIRE(!memrt__trace_has(UINT32_MAX));
    tape_stop();
}

TEST(births_beyond_four_billion_are_lost)
{
    child_expect_success(use_up_the_numbers, NULL);
}

TEST(policies_are_told_in_each_trace_anew)
{
    ck_assert_uint_eq(memrt__trace_policy("none", "", 1, 64), 0); /* nothing is recorded */
    start();
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
    start();
    ck_assert(!memrt__trace_has_policy(number));
    size_t other = memrt__trace_policy("mine", "", 7, 4096);
    ck_assert_uint_gt(other, number);
    tape = tape_stop();
    ck_assert_uint_eq(tape_policy(tape, (uint32_t)other)->scope, 0);
}

TEST(a_policy_that_had_no_room_has_no_number)
{
    start();
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

static void expect_to_be_in_no_trace(void *context)
{
    (void)context;
    REQUIRE(!memrt__trace_is_on());
    REQUIRE(api->trace_mark("the child's") == MEMRT_OK);
    REQUIRE(stats().on == 0 && stats().events == 0 && stats().bytes == 0);
    REQUIRE(api->trace_stop(NULL) == MEMRT_ENOENT);
    memrt_trace_options_t options = {
        .struct_size = sizeof(options), .path = tape_path(), .replace = 1};
    REQUIRE(api->trace_start(&options, NULL) == MEMRT_OK); /* one of its own */
    add(7, 0);
    const tape_t *tape = tape_stop();
    REQUIRE(tape->count == 1);
    REQUIRE(tape->events[0].block == 7);
}

TEST(a_forked_child_leaves_its_parents_file_alone)
{
    for (uint64_t last = 0; last <= 100; last += 100) {
        tape_start((memrt_trace_options_t){.last = last});
        add(1, 0);
        child_expect_success(expect_to_be_in_no_trace, NULL);
        add(2, 0);
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
            add(i, 0);
        }
        act();
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return tape_read();
}

static void leave_normally(void)
{
    exit(0);
}

static void be_killed(void)
{
    kill(getpid(), SIGKILL);
}

TEST(a_process_that_exits_ends_its_trace)
{
    const tape_t *tape = record_in_a_child(700, leave_normally);
    ck_assert_uint_eq(tape->count, 700);
    ck_assert_uint_eq(tape->end.events, 700);
    ck_assert(tape->whole);
}

TEST(a_process_that_is_killed_leaves_whole_records)
{
    const tape_t *tape = record_in_a_child(1700, be_killed);
    ck_assert_uint_gt(tape->count, 1000);
    ck_assert(tape->whole);
    ck_assert_uint_eq(tape->end.time, 0);
}

TEST(a_trace_asks_for_calls_of_births_where_tracking_does_not)
{
    int was = api->tracking(0);
    running = api->frame_new("asked", "program.w", 3);
    api->set_frames(one_frame);
    ck_assert(memrt__is_watched(MEMRT__WATCH_TRACKING) || memrt__tracking_birth(1).site == 0);
    ck_assert_uint_eq(memrt__tracking_traced_site(), 0);
    tape_start((memrt_trace_options_t){.frames = 1});
    memrt__birth_t birth = memrt__tracking_birth(1);
    ck_assert_uint_ne(birth.site, 0);
    ck_assert(memrt__is_watched(MEMRT__WATCH_TRACKING) || birth.share == 0);
    ck_assert_uint_eq(memrt__tracking_traced_site(), birth.site);
    tape_stop();
    start(); /* which wants none */
    ck_assert(memrt__is_watched(MEMRT__WATCH_TRACKING) || memrt__tracking_birth(1).site == 0);
    tape_stop();
    api->set_frames(NULL);
    api->tracking(was);
}
