#include "runtime/alloc/guard/redzone.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <memrt/allocator.h>

#include "runtime/base/size.h"
#include "runtime/observe/call_stack.h"
#include "runtime/observe/sites.h"
#include "runtime/observe/tracking.h"

#define NEAR 64u
#define REAR 64u
#define FRONT_MAX ((size_t)4096) /* maximum filled bytes in front, for any alignment */

typedef struct record {
    size_t seal; ///< compute_seal() the other fields; shows damage to the record
    size_t size, align;
    size_t unused;                ///< bytes at the start that are padding and not filled
    size_t is_freed;              ///< 1 after the free
    size_t alloc_site, free_site; ///< sites with frames of an interpreter; 0: unknown
    memrt__call_stack_t alloc_stack, free_stack;
} record_t;

/// Return the site of the calling thread if allocations are tracked, else 0. In checking mode all
/// allocations are.
static size_t get_site(void)
{
    return memrt__tracking_is_on() ? memrt__tracking_site() : 0;
}

size_t memrt__redzone_front(size_t align)
{
    MEMRT__ASSERT(memrt__is_power_of_two(align));
    return (sizeof(record_t) + NEAR + align - 1) & ~(align - 1);
}

/// Return the bytes that are filled in front of a block.
static size_t get_filled_front(size_t align)
{
    return memrt__size_min(memrt__redzone_front(align), FRONT_MAX);
}

bool memrt__redzone_outer(size_t size, size_t align, size_t *outer)
{
    return memrt__size_add(size, memrt__redzone_front(align) + REAR, outer);
}

static record_t *get_record(const unsigned char *ptr)
{
    return (record_t *)((uintptr_t)ptr - NEAR - sizeof(record_t));
}

/// Compute FNV-1a over the words of a record. The seed is the address of the record, so that a copy
/// has a wrong seal.
static size_t compute_seal(const record_t *record)
{
    const size_t *words = (const size_t *)record;
    size_t seal = (size_t)record;
    for (size_t i = 1; i < sizeof(*record) / sizeof(*words); i++) {
        seal = (seal ^ words[i]) * 0x100000001B3u;
    }
    return seal;
}

static bool is_sealed(const record_t *record)
{
    return record->seal == compute_seal(record);
}

void memrt__redzone_write(unsigned char *ptr, size_t unused, size_t size, size_t align)
{
    MEMRT__ASSERT(unused <= size && ((size_t)ptr & (align - 1)) == 0);
    size_t front = get_filled_front(align);
    memset(ptr - front, MEMRT_POISON_REDZONE, front);
    memset(ptr + size, MEMRT_POISON_REDZONE, REAR);
    record_t *record = get_record(ptr);
    *record = (record_t){.size = size, .align = align, .unused = unused, .alloc_site = get_site()};
    memrt__call_stack_record(&record->alloc_stack);
    record->seal = compute_seal(record);
}

void memrt__redzone_grow(unsigned char *ptr, size_t size)
{
    record_t *record = get_record(ptr);
    MEMRT__ASSERT(is_sealed(record) && record->is_freed == 0 && record->size < size);
    memset(ptr + size, MEMRT_POISON_REDZONE, REAR);
    record->size = size;
    record->seal = compute_seal(record);
}

void memrt__redzone_write_dead(unsigned char *ptr)
{
    record_t *record = get_record(ptr);
    MEMRT__ASSERT(is_sealed(record) && record->is_freed == 0);
    memset(ptr + record->unused, MEMRT_POISON_FREED, record->size - record->unused);
    record->is_freed = 1;
    record->free_site = get_site();
    memrt__call_stack_record(&record->free_stack);
    record->seal = compute_seal(record);
}

bool memrt__redzone_is_dead(const unsigned char *ptr)
{
    return is_sealed(get_record(ptr)) && get_record(ptr)->is_freed == 1;
}

size_t memrt__redzone_size(const unsigned char *ptr)
{
    return is_sealed(get_record(ptr)) ? get_record(ptr)->size : 0;
}

size_t memrt__redzone_align(const unsigned char *ptr)
{
    return is_sealed(get_record(ptr)) ? get_record(ptr)->align : 0;
}

size_t memrt__redzone_unused(const unsigned char *ptr)
{
    return get_record(ptr)->unused;
}

/// Return the index of the first byte that differs from `byte`, or `length` if all bytes are equal.
static size_t find_other_byte(const unsigned char *from, size_t length, unsigned char byte)
{
    size_t i = 0;
    if (length != 0 && from[0] == byte && memcmp(from, from + 1, length - 1) == 0) {
        return length; /* all bytes are equal: fast, and the usual case */
    }
    while (i < length && from[i] == byte) {
        i++;
    }
    return i;
}

static bool find_underrun(const unsigned char *ptr, size_t align, char *text, size_t length)
{
    size_t front = get_filled_front(align);
    size_t far = front - NEAR - sizeof(record_t);
    size_t intact = find_other_byte(ptr - front, far, MEMRT_POISON_REDZONE);
    if (intact == far && !is_sealed(get_record(ptr))) {
        snprintf(text, length, "a write %u to %zu bytes before the start of the block was found",
                 NEAR + 1, NEAR + sizeof(record_t));
        return true;
    }
    size_t before = intact < far ? front - intact
                                 : NEAR - find_other_byte(ptr - NEAR, NEAR, MEMRT_POISON_REDZONE);
    snprintf(text, length, "a write %zu bytes before the start of the block was found", before);
    return before != 0;
}

static bool find_overrun(const unsigned char *ptr, size_t size, char *text, size_t length)
{
    size_t intact = find_other_byte(ptr + size, REAR, MEMRT_POISON_REDZONE);
    snprintf(text, length, "a write %zu bytes past the end of the block was found", intact + 1);
    return intact != REAR;
}

bool memrt__redzone_fault(const unsigned char *ptr, size_t size, size_t align, char *text,
                          size_t length)
{
    const record_t *record = get_record(ptr);
    if (is_sealed(record) && (record->size != size || record->align != align)) {
        snprintf(text, length, "size and alignment must be %zu and %zu, got %zu and %zu",
                 record->size, record->align, size, align);
        return true;
    }
    return find_underrun(ptr, align, text, length) || find_overrun(ptr, size, text, length);
}

bool memrt__redzone_dead_fault(const unsigned char *ptr, char *text, size_t length)
{
    const record_t *record = get_record(ptr);
    /* With a damaged record the alignment is unknown, and the record itself is the fault. */
    size_t align = is_sealed(record) ? record->align : 1;
    if (find_underrun(ptr, align, text, length)) {
        return true;
    }
    size_t unused = record->unused;
    size_t intact =
        unused + find_other_byte(ptr + unused, record->size - unused, MEMRT_POISON_FREED);
    if (intact == record->size) {
        return find_overrun(ptr, record->size, text, length);
    }
    snprintf(text, length, "a write to byte %zu after the free was found, %#x in place of %#x",
             intact, ptr[intact], MEMRT_POISON_FREED);
    return true;
}

/// Write the call stack of an event: the calls of an interpreter, then the native calls.
static void write_call_stack(const char *what, size_t site, const memrt__call_stack_t *stack,
                             char *text, size_t length)
{
    char lines[2 * MEMRT__CALL_STACK_TEXT];
    size_t used = memrt__site_text((uint32_t)site, lines, MEMRT__CALL_STACK_TEXT);
    used += memrt__call_stack_text(stack, lines + used, MEMRT__CALL_STACK_TEXT);
    if (used != 0) {
        snprintf(text, length, "\n  %s at\n%.*s", what, (int)used - 1, lines);
    }
}

void memrt__redzone_explain(const unsigned char *ptr, char *text, size_t length)
{
    const record_t *record = get_record(ptr);
    text[0] = '\0';
    if (is_sealed(record)) {
        write_call_stack("allocated", record->alloc_site, &record->alloc_stack, text, length);
        size_t used = strlen(text);
        write_call_stack("freed", record->free_site, &record->free_stack, text + used,
                         length - used);
    }
}
