#ifndef MEMRT_ARROW_H
#define MEMRT_ARROW_H

/// MemInfos as Arrow arrays and back, for programs without Python too: the slots `arrow_export` and
/// `arrow_adopt` of the table, and what they are told.
///
/// Arrow's own structs stand in memrt/arrow/abi.h. Who fills one in gives it a `release`, who uses
/// it calls that once, when it does not need the memory any more; a struct whose `release` is NULL
/// is released, or was moved elsewhere.

#include <memrt/arrow/abi.h>
#include <memrt/external.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The name under which an array that was exported holds its MemInfo, as MEMRT_HOLDER_EXPORT.
#define MEMRT_ARROW_HOLDER "arrow"

/// In memrt_arrow_view_t.flags: a byte for each truth value, which is Arrow's canonical extension
/// type `arrow.bool8` over the format "c".
#define MEMRT_ARROW_BOOL8 ((uint64_t)1)

/// In memrt_arrow_view_t.flags, of an export: the caller knows where the memory is and puts the
/// array into a struct ArrowDeviceArray that says so. Without it a device's memory is refused.
#define MEMRT_ARROW_DEVICE ((uint64_t)2)

/// How elements lie over the data of a MemInfo. Set `struct_size` to sizeof(memrt_arrow_view_t),
/// also of one that is to be filled in.
///
/// Elements are those of Arrow that have the same whole number of bytes each: integers and floats,
/// decimals, fixed-size binary, dates, times, timestamps, durations and intervals, in the byte
/// order of the machine. They lie without gaps.
typedef struct memrt_arrow_view {
    size_t struct_size;      ///< sizeof(memrt_arrow_view_t)
    const char *format;      ///< of each element, as Arrow writes types: "g" is a double
    const char *name;        ///< of the field; NULL: none
    uint64_t flags;          ///< MEMRT_ARROW_BOOL8 and _DEVICE
    uint64_t offset;         ///< bytes from the first byte of the data to the first element
    int64_t length;          ///< elements, 0 or more
    int64_t null_count;      ///< how many of them are null; -1, of an export: not counted
    const uint8_t *validity; ///< bit i, counted from the lowest one of the first byte on, is 0
                             ///< where element i is null; NULL: none is
    int64_t first_bit;       ///< which bit stands for the first element, 0 to 7; of an export 0
    memrt_meminfo_t *validity_owner; ///< of an export: the MemInfo in whose data the bitmap lies
} memrt_arrow_view_t;

#ifdef __cplusplus
}
#endif

#endif
