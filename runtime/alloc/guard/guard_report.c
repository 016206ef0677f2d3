#include "runtime/alloc/guard/guard_report.h"

#include <unistd.h>

#include <memrt/allocator.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/observe/sites.h"
#include "runtime/os/crash_text.h"
#include "runtime/os/os.h"
#include "runtime/os/unwind.h"

/// Return the index of the first byte that is not filled, or `length`.
static size_t find_written_byte(const unsigned char *from, size_t length)
{
    size_t i = 0;
    while (i < length && from[i] == MEMRT_POISON_REDZONE) {
        i++;
    }
    return i;
}

void memrt__guard_record_verify(const memrt__guard_record_t *record, size_t page)
{
    const unsigned char *base = (const unsigned char *)(record->mapping + page);
    const unsigned char *end = base + record->mapping_bytes - 2 * page;
    const unsigned char *start = (const unsigned char *)record->start;
    const unsigned char *after = start + record->bytes;
    size_t front = find_written_byte(base, (size_t)(start - base));
    size_t rear = find_written_byte(after, (size_t)(end - after));
    bool before = front != (size_t)(start - base);
    if (!before && rear == (size_t)(end - after)) {
        return;
    }
    char lines[MEMRT__CALL_STACKS_TEXT];
    size_t used = memrt__site_text(record->alloc_site, lines, MEMRT__CALL_STACK_TEXT);
    (void)memrt__call_stack_text(&record->alloc_stack, lines + used, MEMRT__CALL_STACK_TEXT);
    size_t distance = before ? (size_t)(start - base) - front + record->lead : rear + 1;
    memrt__abort("free of guarded array at %#zx of %zu bytes: a write %zu bytes %s was found\n"
                 "  allocated by thread %zu at\n%s",
                 (size_t)record->start + record->lead, record->bytes - record->lead, distance,
                 before ? "before the start" : "past the end", record->allocated_by, lines);
}

/// Write the position of an address relative to the data.
static void write_position(const memrt__guard_record_t *record, uintptr_t address)
{
    uintptr_t data = record->start + record->lead, end = record->start + record->bytes;
    if (address >= end) {
        memrt__crash_number(", ", address - end + 1, " bytes past the end of");
    } else if (address < data) {
        memrt__crash_number(", ", data - address, " bytes before the start of");
    } else {
        memrt__crash_number(", at offset ", address - data, " of");
    }
    memrt__crash_text(record->freed_by == 0 ? " an array" : " a freed array");
    memrt__crash_number(" of ", end - data, " bytes at ");
    memrt__crash_address(data);
}

/// Write the interpreter calls of a site, innermost first.
static void write_site(uint32_t site)
{
    memrt_frame_t frames[2 * MEMRT_FRAMES_MAX];
    size_t count = memrt__site_frames(site, frames, 2 * MEMRT_FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        memrt_frame_text_t text = {.struct_size = sizeof(text)};
        if (!memrt__frame_is_native(frames[i]) && memrt__frame_text(frames[i], &text) == MEMRT_OK) {
            memrt__crash_text("\n    ");
            memrt__crash_text(text.function == NULL ? "?" : text.function);
            memrt__crash_text(" at ");
            memrt__crash_text(text.file == NULL ? "?" : text.file);
            memrt__crash_number(":", (size_t)text.line, "");
        }
    }
}

static void write_stack(const char *what, size_t thread, uint32_t site,
                        const memrt__call_stack_t *stack)
{
    memrt__crash_text("\n  ");
    memrt__crash_text(what);
    memrt__crash_number(" by thread ", thread, " at");
    write_site(site);
    size_t i = memrt__unwind_own(stack->frames, MEMRT__CALL_STACK_DEPTH); /* skip libmemrt */
    for (; i < MEMRT__CALL_STACK_DEPTH && stack->frames[i] != NULL; i++) {
        memrt__crash_text("\n    ");
        memrt__crash_frame((uintptr_t)stack->frames[i]);
    }
}

static void write_access(uintptr_t address, const char *access)
{
    memrt__crash_text("memrt: refused ");
    memrt__crash_text(access);
    memrt__crash_text(" at ");
    memrt__crash_address(address);
    memrt__crash_number(" by thread ", (size_t)memrt__os_thread_id(), "");
}

void memrt__guard_record_report(const memrt__guard_record_t *record, uintptr_t address,
                                const char *access)
{
    write_access(address, access);
    write_position(record, address);
    memrt__write_running_calls("\n  accessed at");
    write_stack("allocated", record->allocated_by, record->alloc_site, &record->alloc_stack);
    if (record->freed_by != 0) {
        write_stack("freed", record->freed_by, record->free_site, &record->free_stack);
    }
    memrt__crash_text("\n");
}

void memrt__frozen_record_report(const memrt__frozen_record_t *record, uintptr_t address,
                                 const char *access)
{
    write_access(address, access);
    memrt__crash_number(", at offset ", address - record->data, "");
    memrt__crash_number(" of a frozen array of ", record->bytes, " bytes at ");
    memrt__crash_address(record->data);
    memrt__write_running_calls("\n  written at");
    write_stack("frozen", record->frozen_by, record->site, &record->stack);
    memrt__crash_text("\n");
}
