#include "runtime/os/frame_reader.h"

#include <string.h>

#define RELATIVE 0x70u /* bits of the encoding: the address that the number is relative to */
#define TO_POSITION 0x10u
#define INDIRECT 0x80u
#define SIGNED 0x08u

static uint64_t fail(memrt__frame_reader_t *reader)
{
    reader->failed = true;
    reader->at = reader->end;
    return 0;
}

uint64_t memrt__frame_read(memrt__frame_reader_t *reader, size_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(reader->end - reader->at) < bytes) {
        return fail(reader);
    }
    memcpy(&value, reader->at, bytes);
    reader->at += bytes;
    return value;
}

/// Read the groups of 7 bits of a number. `*bits` becomes the number of bits read.
static uint64_t read_groups(memrt__frame_reader_t *reader, unsigned *bits)
{
    uint64_t value = 0;
    uint8_t byte;
    *bits = 0;
    do {
        byte = (uint8_t)memrt__frame_read(reader, 1);
        value |= (uint64_t)(byte & 0x7fu) << *bits;
        *bits += 7;
    } while ((byte & 0x80u) != 0 && *bits < 63);
    return (byte & 0x80u) != 0 || reader->failed ? fail(reader) : value;
}

uint64_t memrt__frame_read_unsigned(memrt__frame_reader_t *reader)
{
    unsigned bits;
    return read_groups(reader, &bits);
}

int64_t memrt__frame_read_signed(memrt__frame_reader_t *reader)
{
    unsigned bits;
    uint64_t value = read_groups(reader, &bits);
    if ((value >> (bits - 1) & 1) != 0) {
        value |= UINT64_MAX << bits;
    }
    return (int64_t)value;
}

void memrt__frame_skip(memrt__frame_reader_t *reader, uint64_t bytes)
{
    if ((uint64_t)(reader->end - reader->at) < bytes) {
        fail(reader);
    } else {
        reader->at += bytes;
    }
}

/// Return the size of a number in an encoding, or 0 for formats without a fixed size.
static size_t get_size(unsigned encoding)
{
    static const uint8_t sizes[] = {8, 0, 2, 4, 8, 0, 0, 0};
    return sizes[encoding & MEMRT__FRAME_FORMAT & ~SIGNED];
}

uintptr_t memrt__frame_read_pointer(memrt__frame_reader_t *reader, unsigned encoding)
{
    uintptr_t position = (uintptr_t)reader->at;
    size_t size = get_size(encoding);
    unsigned relative = encoding & RELATIVE;
    if (size == 0 || (encoding & INDIRECT) != 0 || (relative != 0 && relative != TO_POSITION)) {
        return (uintptr_t)fail(reader);
    }
    uint64_t value = memrt__frame_read(reader, size);
    if ((encoding & SIGNED) != 0) {
        unsigned unused = (unsigned)(64 - 8 * size);
        value = (uint64_t)((int64_t)(value << unused) >> unused);
    }
    return (uintptr_t)value + (relative == TO_POSITION && !reader->failed ? position : 0);
}
