#ifndef MEMRT_ALLOC_HEAP_SIZE_CLASS_H
#define MEMRT_ALLOC_HEAP_SIZE_CLASS_H

#include <memrt/meminfo.h>

#include "runtime/base/size.h"
#include "runtime/thread/bin_layout.h"

/// Size classes of blocks. The first classes have a header and room for data: each multiple of 64
/// up to 1 KiB, the linear classes, then eight steps per doubling up to MEMRT__CLASS_DATA_MAX. At
/// most an eighth of a block is lost to rounding, and powers of two lose nothing. Further classes
/// are for a header alone and for tiny blocks.
///
/// A block is small up to MEMRT__SMALL_CLASS_MAX bytes, medium up to MEMRT__CLASS_BYTES_MAX bytes,
/// and large above. A large block is a mapping and has no class. Blocks of MEMRT__OWN_SPAN_FROM
/// bytes or more, small or medium, have a span for one block.

/// Largest data of a class, of a linear class, and largest block of a class, in bytes.
#define MEMRT__CLASS_DATA_MAX ((size_t)1 << 20)
#define MEMRT__LINEAR_DATA_MAX ((size_t)1 << 10)
#define MEMRT__CLASS_BYTES_MAX (MEMRT_HEADER_SIZE + MEMRT__CLASS_DATA_MAX)

/// Largest small block, in bytes. A thread cache limits its small and its medium blocks separately.
#define MEMRT__SMALL_CLASS_MAX ((size_t)66 << 10)

/// Return the class of the smallest block with room for `size` bytes of data, 1 to
/// MEMRT__CLASS_DATA_MAX.
static inline unsigned memrt__class_of_data(size_t size)
{
    MEMRT__ASSERT(size - 1 < MEMRT__CLASS_DATA_MAX);
    size_t line = (size - 1) / 64;
    if (line < 16) {
        return (unsigned)line;
    }
    unsigned shift = memrt__floor_log2(line) - 3;
    return (unsigned)(line >> shift) + 8 * shift;
}

/// Class of a header alone.
#define MEMRT__CLASS_HEADER 96u

/// Return the class of a whole block of `bytes`, header included, at most MEMRT__CLASS_BYTES_MAX.
static inline unsigned memrt__class_of_bytes(size_t bytes)
{
    return bytes <= MEMRT_HEADER_SIZE ? MEMRT__CLASS_HEADER
                                      : memrt__class_of_data(bytes - MEMRT_HEADER_SIZE);
}

/// Tiny blocks have their own classes, in steps of 32 bytes, with a smaller header.
#define MEMRT__TINY_HEADER 16u
#define MEMRT__CLASS_TINY (MEMRT__CLASS_HEADER + 1)

/// Return the class of the smallest tiny block with room for `size` bytes of data, 1 to
/// MEMRT_TINY_MAX.
static MEMRT__INLINE size_t memrt__class_of_tiny(size_t size)
{
    MEMRT__ASSERT(size - 1 < MEMRT_TINY_MAX);
    return (32 * MEMRT__CLASS_TINY + size + MEMRT__TINY_HEADER - 1) / 32;
}

/// Return the bytes of a block of the class.
static inline size_t memrt__class_bytes(unsigned class)
{
    extern MEMRT__HIDDEN const uint32_t memrt__bytes_of_classes[MEMRT__CLASSES];
    MEMRT__ASSERT(class < MEMRT__CLASSES);
    return memrt__bytes_of_classes[class];
}

/// Minimum bytes of a block with a span for one block.
#define MEMRT__OWN_SPAN_FROM ((size_t)32 << 10)

/// Return whether each block of the class has a span for itself.
static inline bool memrt__class_has_own_spans(unsigned class)
{
    return memrt__class_bytes(class) >= MEMRT__OWN_SPAN_FROM;
}

/// Return whether the blocks of the class are medium.
static inline bool memrt__class_has_medium_blocks(unsigned class)
{
    return memrt__class_bytes(class) > MEMRT__SMALL_CLASS_MAX;
}

_Static_assert(MEMRT__CLASS_HEADER == 16 + 80, "16 classes in steps of 64, 80 in eighths");
_Static_assert(MEMRT__CLASSES == MEMRT__CLASS_TINY + 3, "three classes of tiny blocks");

#endif
