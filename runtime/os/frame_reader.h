#ifndef MEMRT_OS_FRAME_READER_H
#define MEMRT_OS_FRAME_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Reader of unwind information (.eh_frame) that never reads outside of its range.
///
/// A read past the end returns 0 and sets `failed`. All later reads return 0, too.
typedef struct memrt__frame_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
} memrt__frame_reader_t;

/// Read an unsigned number of 1 to 8 bytes, in the byte order of x86-64.
uint64_t memrt__frame_read(memrt__frame_reader_t *reader, size_t bytes);

/// Read a number in LEB128 format. A number of more than 63 bits fails.
uint64_t memrt__frame_read_unsigned(memrt__frame_reader_t *reader);
int64_t memrt__frame_read_signed(memrt__frame_reader_t *reader);

void memrt__frame_skip(memrt__frame_reader_t *reader, uint64_t bytes);

#define MEMRT__FRAME_ABSOLUTE 0x00u ///< pointer encoding: 8 bytes, relative to 0
#define MEMRT__FRAME_FORMAT 0x0fu   ///< bits of the number's format
#define MEMRT__FRAME_OMITTED 0xffu  ///< pointer encoding: no pointer

/// Read a pointer with an encoding of DWARF. Understands numbers of 2, 4 and 8 bytes, relative to 0
/// or to the position of the pointer. Other encodings fail.
uintptr_t memrt__frame_read_pointer(memrt__frame_reader_t *reader, unsigned encoding);

#endif
