#include "runtime/alloc/fence.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <memrt/allocator.h>

#include "runtime/base/place.h"
#include "runtime/base/size.h"

#define NEAR 64u
#define REAR 64u

typedef struct record {
    size_t seal; ///< seal_of() the rest: what was written over shows
    size_t size, align;
    size_t buried; ///< 1 from free on
    memrt__place_t made, freed;
} record_t;

size_t memrt__fence_front(size_t align)
{
    return (sizeof(record_t) + NEAR + align - 1) & ~(align - 1);
}

bool memrt__fence_outer(size_t size, size_t align, size_t *outer)
{
    return memrt__size_add(size, memrt__fence_front(align) + REAR, outer);
}

static record_t *record_of(const unsigned char *ptr)
{
    return (record_t *)((uintptr_t)ptr - NEAR - sizeof(record_t));
}

/// FNV-1a over words. The address is in it, so that a copy is no record.
static size_t seal_of(const record_t *record)
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
    return record->seal == seal_of(record);
}

void memrt__fence_put_up(unsigned char *ptr, size_t size, size_t align)
{
    size_t front = memrt__fence_front(align);
    memset(ptr - front, MEMRT_POISON_FENCE, front);
    memset(ptr + size, MEMRT_POISON_FENCE, REAR);
    record_t *record = record_of(ptr);
    *record = (record_t){.size = size, .align = align};
    memrt__place_take(&record->made);
    record->seal = seal_of(record);
}

void memrt__fence_bury(unsigned char *ptr)
{
    record_t *record = record_of(ptr);
    memset(ptr, MEMRT_POISON_FREED, record->size);
    record->buried = 1;
    memrt__place_take(&record->freed);
    record->seal = seal_of(record);
}

bool memrt__fence_is_buried(const unsigned char *ptr)
{
    return is_sealed(record_of(ptr)) && record_of(ptr)->buried == 1;
}

size_t memrt__fence_size(const unsigned char *ptr)
{
    return is_sealed(record_of(ptr)) ? record_of(ptr)->size : 0;
}

size_t memrt__fence_align(const unsigned char *ptr)
{
    return is_sealed(record_of(ptr)) ? record_of(ptr)->align : 0;
}

/// Index of the first byte that is another; `length`: none is.
static size_t first_other(const unsigned char *from, size_t length, unsigned char byte)
{
    size_t i = 0;
    if (length != 0 && from[0] == byte && memcmp(from, from + 1, length - 1) == 0) {
        return length; /* all are like the first: quick, and the usual case */
    }
    while (i < length && from[i] == byte) {
        i++;
    }
    return i;
}

static bool underrun(const unsigned char *ptr, size_t align, char *text, size_t length)
{
    size_t front = memrt__fence_front(align);
    size_t far = front - NEAR - sizeof(record_t);
    size_t intact = first_other(ptr - front, far, MEMRT_POISON_FENCE);
    if (intact == far && !is_sealed(record_of(ptr))) {
        snprintf(text, length, "a write %u to %zu bytes before the start of its block was found",
                 NEAR + 1, NEAR + sizeof(record_t));
        return true;
    }
    size_t before =
        intact < far ? front - intact : NEAR - first_other(ptr - NEAR, NEAR, MEMRT_POISON_FENCE);
    snprintf(text, length, "a write %zu bytes before the start of its block was found", before);
    return before != 0;
}

static bool overrun(const unsigned char *ptr, size_t size, char *text, size_t length)
{
    size_t intact = first_other(ptr + size, REAR, MEMRT_POISON_FENCE);
    snprintf(text, length, "a write %zu bytes past its end was found", intact + 1);
    return intact != REAR;
}

bool memrt__fence_fault(const unsigned char *ptr, size_t size, size_t align, char *text,
                        size_t length)
{
    const record_t *record = record_of(ptr);
    if (is_sealed(record) && (record->size != size || record->align != align)) {
        snprintf(text, length,
                 "it was said to have %zu bytes aligned to %zu and has %zu aligned to %zu", size,
                 align, record->size, record->align);
        return true;
    }
    return underrun(ptr, align, text, length) || overrun(ptr, size, text, length);
}

bool memrt__fence_dead_fault(const unsigned char *ptr, char *text, size_t length)
{
    const record_t *record = record_of(ptr);
    if (underrun(ptr, 1, text, length)) {
        return true;
    }
    size_t intact = first_other(ptr, record->size, MEMRT_POISON_FREED);
    if (intact == record->size) {
        return overrun(ptr, record->size, text, length);
    }
    snprintf(text, length, "a write to byte %zu after it was freed was found, %#x in place of %#x",
             intact, ptr[intact], MEMRT_POISON_FREED);
    return true;
}

static void tell_place(const char *what, const memrt__place_t *place, char *text, size_t length)
{
    char lines[700];
    size_t used = memrt__place_text(place, lines, sizeof(lines));
    if (used != 0) {
        snprintf(text, length, "\n  %s at\n%.*s", what, (int)used - 1, lines);
    }
}

void memrt__fence_tell(const unsigned char *ptr, char *text, size_t length)
{
    const record_t *record = record_of(ptr);
    text[0] = '\0';
    if (is_sealed(record)) {
        tell_place("made", &record->made, text, length);
        size_t used = strlen(text);
        tell_place("freed", &record->freed, text + used, length - used);
    }
}
