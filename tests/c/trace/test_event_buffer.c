#include "support/suite.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/trace/event_buffer.h"
#include "support/kernel.h"
#include "support/tape.h"

static memrt__event_buffer_t recording;

static memrt_trace_options_t build_options(uint64_t last)
{
    return (memrt_trace_options_t){
        .struct_size = sizeof(memrt_trace_options_t), .path = tape_path(), .last = last};
}

static void open_recording(uint64_t last)
{
    memrt_trace_options_t options = build_options(last);
    int error = 0;
    ck_assert_int_eq(memrt__event_buffer_open(&recording, &options, &error), MEMRT_OK);
}

static const tape_t *close_recording(void)
{
    memrt__event_buffer_close(&recording);
    ck_assert_int_eq(recording.file, -1);
    return tape_read();
}

static void write_events(uint32_t thread, uint32_t first, uint32_t count)
{
    memrt_trace_event_t events[100] = {0};
    for (uint32_t i = 0; i < count; i++) {
        events[i].block = first + i;
    }
    memrt__event_buffer_events(&recording, thread, events, count);
}

static memrt_trace_stats_t read_stats(void)
{
    memrt_trace_stats_t out = {.struct_size = sizeof(out)};
    memrt__event_buffer_stats(&recording, &out);
    return out;
}

TEST(empty_trace_file_has_a_header_and_an_end)
{
    open_recording(0);
    const tape_t *tape = close_recording();
    ck_assert_mem_eq(tape->header.magic, MEMRT_TRACE_MAGIC, 8);
    ck_assert_uint_eq(tape->header.order, 0x01020304);
    ck_assert_uint_eq(tape->header.version, 1);
    ck_assert_uint_eq(tape->header.header_size, 64);
    ck_assert_uint_eq(tape->header.event_size, 32);
    ck_assert_uint_eq(tape->header.process, (uint64_t)getpid());
    ck_assert_uint_gt(tape->header.began, 1600000000000000000);
    ck_assert_str_eq(tape->header.library, MEMRT_VERSION);
    ck_assert_uint_eq(tape->records, 1);
    ck_assert_uint_eq(tape->end.events, 0);
    ck_assert_uint_lt(tape->end.time, 100000000000);
    ck_assert(tape->whole);
    ck_assert_uint_eq(read_stats().bytes, tape->bytes);
}

TEST(trace_file_has_texts_sites_policies_and_events)
{
    memrt_trace_frame_t frames[2] = {{.function = 1, .file = 2, .at = 7}, {.native = 1}};
    memrt_trace_policy_t policy = {.number = 3, .name = 1, .scope = 2, .index = 4, .alignment = 64};
    open_recording(0);
    ck_assert(memrt__event_buffer_text(&recording, 1, "name", 4));
    ck_assert(memrt__event_buffer_text(&recording, 2, "12345678", 8));
    ck_assert(memrt__event_buffer_text(&recording, 1, "name", 4)); /* already recorded */
    ck_assert(memrt__event_buffer_text(&recording, 0, "", 0));     /* the empty text */
    ck_assert(!memrt__event_buffer_has_site(&recording, 64));
    memrt__event_buffer_site(&recording, 64, frames, 2);
    ck_assert(memrt__event_buffer_has_site(&recording, 64));
    ck_assert(!memrt__event_buffer_has_site(&recording, 63) &&
              !memrt__event_buffer_has_site(&recording, 65));
    ck_assert(memrt__event_buffer_policy(&recording, &policy));
    write_events(17, 1, 2);
    const tape_t *tape = close_recording();
    ck_assert_str_eq(tape->texts[1], "name");
    ck_assert_str_eq(tape->texts[2], "12345678");
    ck_assert_uint_eq(tape->site_count, 1);
    ck_assert_uint_eq(tape->sites[0].number, 64);
    ck_assert_uint_eq(tape->first_frames[0].at, 7);
    ck_assert_uint_eq(tape_policy(tape, 3)->alignment, 64);
    ck_assert_uint_eq(tape->count, 2);
    ck_assert_uint_eq(tape->events[1].block, 2);
    ck_assert_uint_eq(tape->threads[1], 17);
    ck_assert_uint_eq(tape->records, 6);
    ck_assert_uint_eq(tape->end.events, 2);
}

TEST(highest_site_number_is_recorded_for_its_trace_only)
{
    open_recording(0);
    memrt__event_buffer_site(&recording, MEMRT__INTERNED_MAX, NULL, 0);
    ck_assert(memrt__event_buffer_has_site(&recording, MEMRT__INTERNED_MAX));
    ck_assert(!memrt__event_buffer_has_site(&recording, 1));
    memrt__event_buffer_site(&recording, 1, NULL, 0);
    ck_assert(memrt__event_buffer_has_site(&recording, 1));
    close_recording();
    open_recording(0); /* of another trace */
    ck_assert(!memrt__event_buffer_has_site(&recording, MEMRT__INTERNED_MAX));
    ck_assert(!memrt__event_buffer_has_site(&recording, 1));
    close_recording();
}

TEST(trace_with_last_writes_only_the_last_events)
{
    open_recording(10);
    write_events(1, 0, 8);
    write_events(2, 8, 5);
    ck_assert_uint_eq(read_stats().events, 13);
    ck_assert_uint_eq(read_stats().overwritten, 3);
    ck_assert_uint_eq(read_stats().bytes, 64);
    const tape_t *tape = close_recording();
    ck_assert_uint_eq(tape->header.last, 10);
    ck_assert_uint_eq(tape->count, 10);
    for (size_t i = 0; i < 10; i++) {
        ck_assert_uint_eq(tape->events[i].block, i + 3);
        ck_assert_uint_eq(tape->threads[i], i + 3 < 8 ? 1 : 2);
    }
    ck_assert_uint_eq(tape->end.events, 13);
    ck_assert_uint_eq(tape->end.overwritten, 3);
    ck_assert_uint_eq(read_stats().overwritten, 3);
}

TEST(events_refused_by_a_full_disk_are_counted_as_lost)
{
    open_recording(0);
    write_events(1, 0, 10);
    kernel_refuse(KERNEL_WRITE, 0, 1);
    write_events(1, 10, 10);
    ck_assert(memrt__event_buffer_is_failing(&recording));
    ck_assert_uint_eq(read_stats().lost, 10);
    ck_assert_int_eq(read_stats().error, ENOSPC);
    kernel_refuse(KERNEL_WRITE, 1, 1); /* writes the head of the record, but not its events */
    write_events(1, 20, 10);
    write_events(1, 30, 5);
    ck_assert(!memrt__event_buffer_is_failing(&recording));
    const tape_t *tape = close_recording();
    ck_assert(tape->whole);
    ck_assert_uint_eq(tape->count, 15);
    ck_assert_uint_eq(tape->events[10].block, 30);
    ck_assert_uint_eq(tape->end.events, 15);
    ck_assert_uint_eq(tape->end.lost, 20);
}

TEST(partial_record_that_cannot_be_truncated_is_not_read)
{
    open_recording(0);
    write_events(1, 0, 10);
    kernel_refuse(KERNEL_WRITE, 1, SIZE_MAX);
    kernel_refuse(KERNEL_TRUNCATE, 0, SIZE_MAX);
    write_events(1, 10, 10);
    const tape_t *tape = close_recording(); /* not even the end record can be written */
    ck_assert(!tape->whole);
    ck_assert_uint_eq(tape->count, 10);
    ck_assert_uint_eq(tape->end.time, 0);
}

TEST(failed_texts_policies_and_sites_are_written_on_retry)
{
    memrt_trace_policy_t policy = {.number = 1};
    open_recording(0);
    kernel_refuse(KERNEL_WRITE, 0, 3);
    ck_assert(!memrt__event_buffer_text(&recording, 1, "text", 4));
    ck_assert(!memrt__event_buffer_policy(&recording, &policy));
    memrt__event_buffer_site(&recording, 1, NULL, 0);
    ck_assert(!memrt__event_buffer_has_site(&recording, 1));
    ck_assert(memrt__event_buffer_text(&recording, 1, "text", 4));
    ck_assert(memrt__event_buffer_policy(&recording, &policy));
    memrt__event_buffer_site(&recording, 1, NULL, 0);
    ck_assert(memrt__event_buffer_has_site(&recording, 1));
    const tape_t *tape = close_recording();
    ck_assert_uint_eq(tape->records, 4);
    ck_assert_str_eq(tape->texts[1], "text");
}

TEST(ring_events_refused_by_a_full_disk_are_counted_as_lost)
{
    open_recording(10);
    write_events(1, 0, 3);
    write_events(2, 3, 3);
    kernel_refuse(KERNEL_WRITE, 0, 1);
    const tape_t *tape = close_recording();
    ck_assert_uint_eq(tape->count, 3);
    ck_assert_uint_eq(tape->end.events, 3);
    ck_assert_uint_eq(tape->end.lost, 3);
}

TEST(failed_trace_start_leaves_no_file)
{
    memrt_trace_options_t options = build_options(0);
    int error = 0;
    recording.events = 5;
    kernel_refuse(KERNEL_WRITE, 0, 1);
    ck_assert_int_eq(memrt__event_buffer_open(&recording, &options, &error), MEMRT_EIO);
    ck_assert_int_eq(error, ENOSPC);
    ck_assert_int_ne(access(tape_path(), F_OK), 0);
    options = build_options(10);
    kernel_refuse(KERNEL_MAP, 0, 1);
    ck_assert_int_eq(memrt__event_buffer_open(&recording, &options, &error), MEMRT_ENOMEM);
    ck_assert_int_ne(access(tape_path(), F_OK), 0);
    options.path = "/tmp/no/such/folder/file";
    size_t unmapped = kernel_calls(KERNEL_UNMAP);
    ck_assert_int_eq(memrt__event_buffer_open(&recording, &options, &error), MEMRT_EIO);
    ck_assert_int_eq(error, ENOENT);
    ck_assert_uint_eq(kernel_calls(KERNEL_UNMAP), unmapped + 1);
    ck_assert_uint_eq(recording.events, 5); /* nothing has changed */
}

TEST(abandoned_trace_file_keeps_its_records)
{
    open_recording(0);
    write_events(1, 0, 3);
    memrt__event_buffer_abandon(&recording);
    memrt__event_buffer_forget(&recording);
    ck_assert_uint_eq(read_stats().events + read_stats().bytes, 0);
    const tape_t *tape = tape_read();
    ck_assert(tape->whole);
    ck_assert_uint_eq(tape->count, 3);
    ck_assert_uint_eq(tape->end.time, 0);
}
