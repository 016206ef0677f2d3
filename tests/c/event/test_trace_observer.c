/// Tests of the trace events of blocks.

#include "support/suite.h"

#include <string.h>

#include "runtime/config/options.h"
#include "runtime/meminfo/block.h"
#include "runtime/trace/event_trace.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/allocators/failing.h"
#include "support/tape.h"

static void start_trace(void)
{
    tape_start((memrt_trace_options_t){0});
}

/// Return the only event of a type.
static const memrt_trace_event_t *get_only_event(const tape_t *tape, memrt_trace_event_type_t type)
{
    ck_assert_uint_eq(tape_count(tape, type), 1);
    return tape_last(tape, type);
}

TEST(meminfo_has_allocation_and_free_events)
{
    start_trace();
    memrt_meminfo_t *mi = api->allocate(1000);
    ck_assert_uint_ne(mi->flags & MEMRT__FLAG_TRACED, 0);
    uint32_t number = mi->bin;
    ck_assert_uint_ne(number, 0);
    api->release(mi);
    const tape_t *tape = tape_stop();
    const memrt_trace_event_t *alloc_event = get_only_event(tape, MEMRT_TRACE_ALLOC);
    const memrt_trace_event_t *free_event = get_only_event(tape, MEMRT_TRACE_FREE);
    ck_assert_uint_eq(alloc_event->size, 1000);
    ck_assert_uint_eq(alloc_event->block, number);
    ck_assert_uint_eq(alloc_event->kind, MEMRT_KIND_INLINE);
    ck_assert_uint_eq(alloc_event->align_log2, 6);
    ck_assert_uint_eq(free_event->size, 1000);
    ck_assert_uint_eq(free_event->block, number);
    ck_assert_uint_ge(free_event->time, alloc_event->time);
    ck_assert_uint_eq(tape->count, 2);
    const memrt_trace_policy_t *policy = tape_policy(tape, alloc_event->policy);
    ck_assert_str_eq(tape->texts[policy->name], api->policy_name(api->policy_default()));
    ck_assert_uint_eq(policy->index, 0);
    ck_assert_uint_eq(policy->scope, 0);
    ck_assert_uint_eq(tape->policy_count, 1);
}

TEST(blocks_of_all_sizes_have_allocate_resize_and_free_events)
{
    static const size_t sizes[] = {0, 1, 64, 65, 3000, 100000, 3000000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        start_trace();
        void *data = api->block_alloc(NULL, sizes[i]);
        data = api->block_realloc(NULL, data, sizes[i] + 40000);
        api->block_free(NULL, data, 0);
        const tape_t *tape = tape_stop();
        ck_assert_uint_eq(get_only_event(tape, MEMRT_TRACE_ALLOC)->size, sizes[i]);
        ck_assert_uint_eq(get_only_event(tape, MEMRT_TRACE_ALLOC)->kind, MEMRT_KIND_BLOCK);
        ck_assert_uint_eq(get_only_event(tape, MEMRT_TRACE_RESIZE)->size, sizes[i] + 40000);
        ck_assert_uint_eq(get_only_event(tape, MEMRT_TRACE_FREE)->size, sizes[i] + 40000);
        ck_assert_uint_eq(tape->events[1].block, tape->events[0].block);
        ck_assert_uint_eq(tape->events[2].block, tape->events[0].block);
    }
}

TEST(zeroed_blocks_are_traced)
{
    start_trace();
    api->block_free(NULL, api->block_calloc(NULL, 10, 10), 0);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(get_only_event(tape, MEMRT_TRACE_ALLOC)->size, 100);
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_FREE), 1);
}

TEST(adopted_memory_has_adoption_and_free_events)
{
    static char theirs[500];
    memrt_meminfo_t *mi;
    start_trace();
    ck_assert_int_eq(api->meminfo_adopt(theirs, sizeof(theirs), NULL, &mi), MEMRT_OK);
    api->release(mi);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(get_only_event(tape, MEMRT_TRACE_ADOPTION)->size, 500);
    ck_assert_uint_eq(get_only_event(tape, MEMRT_TRACE_FREE)->size, 500);
    ck_assert_uint_eq(get_only_event(tape, MEMRT_TRACE_FREE)->kind, MEMRT_KIND_ADOPTED);
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_ALLOC), 0);
}

/// Return the bytes that are live at the end, according to the events.
static uint64_t compute_live_bytes(const tape_t *tape)
{
    uint64_t sizes[64] = {0}, sum = 0;
    uint32_t first = tape->events[0].block;
    for (size_t i = 0; i < tape->count; i++) {
        const memrt_trace_event_t *event = &tape->events[i];
        ck_assert_uint_lt(event->block - first, 64);
        sizes[event->block - first] = event->type == MEMRT_TRACE_FREE ? 0 : event->size;
    }
    for (size_t i = 0; i < 64; i++) {
        sum += sizes[i];
    }
    return sum;
}

TEST(resizable_meminfo_is_traced_as_header_and_block)
{
    memrt_meminfo_t *mi;
    start_trace();
    ck_assert_int_eq(api->resizable_new(100, NULL, &mi), MEMRT_OK);
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 5000));
    void *old = api->get_data(mi);
    ck_assert_ptr_nonnull(api->resizable_alloc(mi, 300));
    api->resizable_free(mi, old);
    api->release(mi);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_ALLOC), 3);
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_RESIZE), 1);
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_FREE), 3);
    ck_assert_uint_eq(compute_live_bytes(tape), 0);
    for (size_t i = 0; i < tape->count; i++) {
        ck_assert(tape->events[i].kind != MEMRT_KIND_RESIZABLE || tape->events[i].size == 0);
    }
}

TEST(blocks_from_before_the_trace_have_no_events)
{
    memrt_meminfo_t *before = api->allocate(100);
    void *tiny = api->block_alloc(NULL, 10), *block = api->block_alloc(NULL, 1000);
    start_trace();
    block = api->block_realloc(NULL, block, 2000);
    api->block_free(NULL, block, 0);
    api->block_free(NULL, tiny, 0);
    api->release(before);
    ck_assert_uint_eq(tape_stop()->count, 0);
}

TEST(blocks_of_an_ended_trace_have_no_events)
{
    start_trace();
    memrt_meminfo_t *first = api->allocate(100), *second = api->allocate(200);
    void *block = api->block_alloc(NULL, 1000), *other = api->block_alloc(NULL, 1000);
    ck_assert_uint_eq(tape_stop()->count, 4);
    api->release(first);
    block = api->block_realloc(NULL, block, 2000);
    start_trace();
    api->release(second);
    other = api->block_realloc(NULL, other, 3000);
    api->block_free(NULL, block, 0);
    api->block_free(NULL, other, 0);
    ck_assert_uint_eq(tape_stop()->count, 0);
}

TEST(reused_block_gets_a_new_allocation_number)
{
    start_trace();
    uint32_t numbers[3];
    for (int i = 0; i < 3; i++) {
        memrt_meminfo_t *mi = api->allocate(100);
        numbers[i] = mi->bin;
        api->release(mi);
    }
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 6);
    ck_assert(numbers[0] < numbers[1] && numbers[1] < numbers[2]);
    memrt_meminfo_t *after = api->allocate(100);
    ck_assert_uint_eq(after->flags & MEMRT__FLAG_TRACED, 0);
    api->release(after);
}

TEST(resize_of_a_shared_block_is_traced_as_two_blocks)
{
    memrt_meminfo_t *mi;
    start_trace();
    void *data = api->block_alloc(NULL, 100);
    ck_assert_int_eq(api->block_meminfo(data, &mi), MEMRT_OK);
    void *own = api->block_realloc(NULL, data, 200);
    api->release(mi);
    api->block_free(NULL, own, 0);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_ALLOC), 2);
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_FREE), 2);
    ck_assert_uint_eq(compute_live_bytes(tape), 0);
}

TEST(refused_requests_are_traced_with_the_requested_size)
{
    memrt_allocator_t failing;
    ck_assert_int_eq(failing_new(api->allocator_system(), &failing), MEMRT_OK);
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = "failing", .allocator = &failing};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    start_trace();
    void *data = api->block_alloc(policy, 100);
    failing_at(&failing, 1);
    ck_assert_ptr_null(api->block_alloc(policy, 7777));
    failing_at(&failing, 1);
    ck_assert_ptr_null(api->block_realloc(policy, data, 9999999));
    ck_assert_ptr_null(api->block_calloc(policy, SIZE_MAX, 2));
    api->block_free(policy, data, 0);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape_count(tape, MEMRT_TRACE_FAILURE), 3);
    ck_assert_uint_eq(tape->events[1].size, 7777);
    ck_assert_uint_eq(tape->events[2].size, 9999999);
    ck_assert_uint_eq(tape->events[3].size, SIZE_MAX);
    const memrt_trace_policy_t *told = tape_policy(tape, tape->events[1].policy);
    ck_assert_str_eq(tape->texts[told->name], "failing");
    api->policy_release(policy);
}

TEST(events_of_a_block_have_its_scope_path)
{
    memrt_scope_t *outer, *inner, *before;
    ck_assert_int_eq(api->scope_open(NULL, "outer", &outer), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(outer, "inner", &inner), MEMRT_OK);
    start_trace();
    ck_assert_int_eq(api->scope_enter(inner, &before), MEMRT_OK);
    memrt_meminfo_t *mi = api->allocate(100);
    ck_assert_int_eq(api->scope_enter(before, NULL), MEMRT_OK);
    api->release(mi);
    const tape_t *tape = tape_stop();
    const memrt_trace_policy_t *policy = tape_policy(tape, tape->events[0].policy);
    ck_assert_str_eq(tape->texts[policy->scope], "outer/inner");
    ck_assert_uint_eq(tape->events[1].policy, tape->events[0].policy);
    api->scope_release(inner);
    api->scope_release(outer);
}

TEST(scope_path_in_trace_is_cut_to_whole_names)
{
    char name[MEMRT_NAME_MAX + 1] = "";
    memset(name, 'n', MEMRT_NAME_MAX);
    memrt_scope_t *scopes[17] = {NULL}, *before;
    for (size_t i = 0; i < 17; i++) {
        ck_assert_int_eq(api->scope_open(i == 0 ? NULL : scopes[i - 1], name, &scopes[i]),
                         MEMRT_OK);
    }
    start_trace();
    ck_assert_int_eq(api->scope_enter(scopes[15], &before), MEMRT_OK);
    memrt_meminfo_t *fits = api->allocate(100); /* 16 names and 15 slashes: the maximum length */
    ck_assert_int_eq(api->scope_enter(scopes[16], NULL), MEMRT_OK);
    memrt_meminfo_t *mi = api->allocate(100);
    ck_assert_int_eq(api->scope_enter(before, NULL), MEMRT_OK);
    api->release(fits);
    api->release(mi);
    const tape_t *tape = tape_stop();
    for (size_t i = 0; i < 2; i++) {
        const char *path = tape->texts[tape_policy(tape, tape->events[i].policy)->scope];
        ck_assert_uint_eq(strlen(path), MEMRT__TRACE_TEXT_MAX);
        ck_assert_mem_eq(path, name, MEMRT_NAME_MAX);
        ck_assert_int_eq(path[MEMRT_NAME_MAX], '/');
    }
    for (size_t i = 17; i-- > 0;) {
        api->scope_release(scopes[i]);
    }
}

TEST(policies_with_a_reused_index_are_separate_in_the_trace)
{
    start_trace();
    for (int i = 0; i < 3; i++) {
        memrt_policy_t *policy;
        memrt_policy_options_t options = {
            .struct_size = sizeof(options), .name = i == 1 ? "odd" : "even", .alignment = 4096};
        ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
        api->block_free(policy, api->block_alloc(policy, 5000), 0);
        api->policy_release(policy);
        api->release_unused();
    }
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 6);
    ck_assert_uint_eq(tape->policy_count, 3);
    for (size_t i = 0; i < 6; i++) {
        const memrt_trace_policy_t *policy = tape_policy(tape, tape->events[i].policy);
        ck_assert_str_eq(tape->texts[policy->name], i / 2 == 1 ? "odd" : "even");
        ck_assert_uint_eq(policy->alignment, 4096);
    }
    ck_assert_uint_eq(tape->events[0].align_log2, 12);
}

static size_t write_one_frame(memrt_frame_t *frames, size_t max)
{
    (void)max;
    frames[0] = api->frame_new("bear", "allocations.x", 9);
    return 1;
}

TEST(all_allocation_kinds_are_traced_with_their_site)
{
    memrt_meminfo_t *resizable, *adopted;
    api->set_frames(write_one_frame);
    tape_start((memrt_trace_options_t){.frames = 4});
    memrt_meminfo_t *mi = api->allocate(100);
    void *block = api->block_alloc(NULL, 100), *cleared = api->block_calloc(NULL, 1, 100);
    ck_assert_int_eq(api->resizable_new(100, NULL, &resizable), MEMRT_OK);
    void *old = api->get_data(resizable);
    ck_assert_ptr_nonnull(api->resizable_alloc(resizable, 50));
    ck_assert_int_eq(api->meminfo_adopt(old, 100, NULL, &adopted), MEMRT_OK);
    api->set_frames(NULL);
    const tape_t *tape = tape_stop();
    ck_assert_uint_eq(tape->count, 7);
    ck_assert_uint_eq(tape->site_count, 1);
    for (size_t i = 0; i < 7; i++) {
        ck_assert_uint_eq(tape->events[i].site, tape->sites[0].number);
    }
    ck_assert_str_eq(tape->texts[tape->first_frames[0].function], "bear");
    api->release(adopted);
    api->resizable_free(resizable, old);
    api->release(resizable);
    api->block_free(NULL, cleared, 0);
    api->block_free(NULL, block, 0);
    api->release(mi);
}

static void make_and_drop(size_t index, void *context)
{
    (void)context;
    for (size_t i = 0; i < 300; i++) {
        void *block = api->block_alloc(NULL, index * 1000 + i);
        block = api->block_realloc(NULL, block, i + 1);
        api->block_free(NULL, block, 0);
    }
}

TEST(free_events_of_threads_have_the_last_size)
{
    uint64_t sizes[TAPE_EVENTS] = {0};
    start_trace();
    crew_run(4, make_and_drop, NULL);
    const tape_t *tape = tape_stop();
    uint32_t first = UINT32_MAX;
    ck_assert_uint_eq(tape->count, 4 * 3 * 300);
    for (size_t i = 0; i < tape->count; i++) {
        first = tape->events[i].block < first ? tape->events[i].block : first;
    }
    for (size_t i = 0; i < tape->count; i++) {
        const memrt_trace_event_t *event = &tape->events[i];
        uint64_t *size = &sizes[event->block - first];
        ck_assert(event->type != MEMRT_TRACE_FREE || *size == event->size);
        *size = event->size;
    }
}

static void use_up_block_numbers(void *context)
{
    (void)context;
    memrt__trace_last_number = UINT32_MAX;
    start_trace();
    memrt_meminfo_t *mi = api->allocate(100);
    REQUIRE((mi->flags & MEMRT__FLAG_TRACED) == 0);
    api->release(mi);
    const tape_t *tape = tape_stop();
    REQUIRE(tape->count == 0);
    REQUIRE(tape->end.lost == 1);
}

TEST(allocation_without_a_number_has_no_event)
{
    child_expect_success(use_up_block_numbers, NULL);
}

/// Thread 0 starts and stops event traces and reads their statistics, while all other threads
/// allocate and free.
static void trace_while_others_work(size_t index, void *context)
{
    if (index != 0) {
        for (int round = 0; round < 20; round++) {
            make_and_drop(index, context);
        }
        return;
    }
    memrt_trace_options_t options = {
        .struct_size = sizeof(options), .path = context, .replace = 1, .last = 0};
    for (int round = 0; round < 40; round++) {
        memrt_trace_stats_t stats = {.struct_size = sizeof(stats)};
        options.last = (uint64_t)(round % 2) * 100;
        REQUIRE(api->trace_start(&options, NULL) == MEMRT_OK);
        REQUIRE(api->trace_mark("round") == MEMRT_OK);
        REQUIRE(api->trace_stats(&stats) == MEMRT_OK);
        REQUIRE(stats.on && stats.lost == 0);
        REQUIRE(api->trace_stop(&stats) == MEMRT_OK);
        REQUIRE(!stats.on && stats.events >= 1);
    }
}

TEST(traces_start_and_stop_while_threads_allocate)
{
    crew_run(4, trace_while_others_work, (void *)(uintptr_t)tape_path());
    const tape_t *tape = tape_read();
    ck_assert(tape->whole);
    ck_assert_uint_ge(tape->count, 1);
    ck_assert_uint_le(tape->count, 100);
}
