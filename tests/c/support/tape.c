#include "support/tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/memrt-tape-XXXXXX";
static pid_t maker; /* process that made the folder */

static void remove_folder(void)
{
    if (maker == getpid()) { /* forked children use the folder of their parent */
        rmdir(folder);
    }
}

/// Make the folder before any test forks, since a child that ends by _exit removes nothing.
__attribute__((constructor)) static void make_folder(void)
{
    maker = getpid();
    REQUIRE(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
}

const char *tape_path(void)
{
    static char path[64];
    snprintf(path, sizeof(path), "%s/%ld", folder, (long)getpid());
    return path;
}

void tape_start(memrt_trace_options_t options)
{
    options.struct_size = sizeof(options);
    options.path = tape_path();
    options.replace = 1;
    ck_assert_int_eq(api->trace_start(&options, NULL), MEMRT_OK);
}

/// Read the whole file and delete it. Ownership: the caller frees the result.
static char *read_trace_file(size_t *size)
{
    FILE *file = fopen(tape_path(), "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 8);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    unlink(tape_path());
    return bytes;
}

static void read_events(tape_t *tape, const char *record)
{
    const memrt_trace_events_t *head = (const void *)record;
    ck_assert_uint_eq(head->record.size + 8, sizeof(*head) + head->count * 32u);
    const memrt_trace_event_t *events = (const void *)(head + 1);
    for (size_t i = 0; i < head->count && tape->count < TAPE_EVENTS; i++) {
        tape->threads[tape->count] = head->thread;
        tape->earlier_sites[tape->count] = tape->site_count;
        tape->events[tape->count++] = events[i];
    }
}

static void read_text(tape_t *tape, const char *record)
{
    const memrt_trace_text_t *head = (const void *)record;
    ck_assert_uint_lt(head->number, TAPE_TEXTS);
    ck_assert_uint_lt(head->length, sizeof(tape->texts[0]));
    ck_assert_str_eq(tape->texts[head->number], ""); /* each number occurs once */
    memcpy(tape->texts[head->number], head + 1, head->length);
}

static void read_site(tape_t *tape, const char *record)
{
    const memrt_trace_site_t *head = (const void *)record;
    ck_assert_uint_lt(tape->site_count, TAPE_TEXTS);
    ck_assert_uint_eq(head->record.size + 8, sizeof(*head) + head->frames * 24u);
    if (head->frames != 0) {
        memcpy(&tape->first_frames[tape->site_count], head + 1, sizeof(memrt_trace_frame_t));
    }
    tape->sites[tape->site_count++] = *head;
}

static void read_record(tape_t *tape, const char *record)
{
    const memrt_trace_record_t *head = (const void *)record;
    switch (head->type) {
    case MEMRT_TRACE_TEXT:
        read_text(tape, record);
        break;
    case MEMRT_TRACE_SITE:
        read_site(tape, record);
        break;
    case MEMRT_TRACE_POLICY:
        ck_assert_uint_lt(tape->policy_count, TAPE_TEXTS);
        memcpy(&tape->policies[tape->policy_count++], record, sizeof(memrt_trace_policy_t));
        break;
    case MEMRT_TRACE_EVENTS:
        read_events(tape, record);
        break;
    case MEMRT_TRACE_END:
        memcpy(&tape->end, record, sizeof(tape->end));
        break;
    default:
        ck_abort_msg("a record of type %u", head->type);
    }
    tape->records++;
}

const tape_t *tape_read(void)
{
    static tape_t tape;
    char *bytes = read_trace_file(&tape.bytes);
    size_t size = tape.bytes, at = sizeof(tape.header);
    memset(&tape, 0, sizeof(tape));
    tape.bytes = size;
    ck_assert_uint_ge(size, at);
    memcpy(&tape.header, bytes, at);
    memrt_trace_record_t head;
    while (at + sizeof(head) <= size) {
        memcpy(&head, bytes + at, sizeof(head));
        ck_assert_uint_eq(head.size % 8, 0);
        if (at + sizeof(head) + head.size > size) {
            break;
        }
        read_record(&tape, bytes + at);
        at += sizeof(head) + head.size;
    }
    tape.whole = at == size;
    free(bytes);
    return &tape;
}

const tape_t *tape_stop(void)
{
    ck_assert_int_eq(api->trace_stop(NULL), MEMRT_OK);
    return tape_read();
}

size_t tape_count(const tape_t *tape, memrt_trace_event_type_t type)
{
    size_t count = 0;
    for (size_t i = 0; i < tape->count; i++) {
        count += tape->events[i].type == type;
    }
    return count;
}

const memrt_trace_event_t *tape_last(const tape_t *tape, memrt_trace_event_type_t type)
{
    const memrt_trace_event_t *last = NULL;
    for (size_t i = 0; i < tape->count; i++) {
        last = tape->events[i].type == type ? &tape->events[i] : last;
    }
    ck_assert_ptr_nonnull(last);
    return last;
}

const memrt_trace_policy_t *tape_policy(const tape_t *tape, uint32_t number)
{
    for (size_t i = 0; i < tape->policy_count; i++) {
        if (tape->policies[i].number == number) {
            return &tape->policies[i];
        }
    }
    return NULL;
}
