#ifndef MEMRT_ARROW_H
#define MEMRT_ARROW_H

/// Exchange of MemInfos as Arrow arrays, with or without Python: types for the slots `arrow_export`
/// and `arrow_adopt`.
///
/// Arrow's own structs are declared in memrt/arrow/abi.h.
/// Ownership: the producer of a struct sets `release`. The consumer calls `release` once, when the
///            memory is not needed any more. If `release` is NULL, the struct was released, or
///            moved elsewhere.

#include <memrt/arrow/abi.h>
#include <memrt/external.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Name of the reference by which an exported array holds its MemInfo, of kind MEMRT_HOLDER_EXPORT.
#define MEMRT_ARROW_HOLDER "arrow"

/// Bit in memrt_arrow_view_t.flags: elements are truth values of one byte each, Arrow's canonical
/// extension type `arrow.bool8` over the format "c".
#define MEMRT_ARROW_BOOL8 ((uint64_t)1)

/// Bit in memrt_arrow_view_t.flags for an export: the caller puts the array into a struct
/// ArrowDeviceArray, which names the device of the memory. Without the bit, device memory is
/// refused.
#define MEMRT_ARROW_DEVICE ((uint64_t)2)

/// Layout of elements in the data of a MemInfo. Set `struct_size` to sizeof(memrt_arrow_view_t),
/// also in a view that memrt fills in.
///
/// Elements are of the Arrow types with a fixed, whole number of bytes: integers and floats,
/// decimals, fixed-size binary, dates, times, timestamps, durations and intervals. Elements have
/// the byte order of the machine and lie without gaps.
typedef struct memrt_arrow_view {
    size_t struct_size;      ///< sizeof(memrt_arrow_view_t)
    const char *format;      ///< type of each element in Arrow's notation: "g" is a double
    const char *name;        ///< name of the field; NULL: none
    uint64_t flags;          ///< MEMRT_ARROW_BOOL8 and MEMRT_ARROW_DEVICE
    uint64_t offset;         ///< bytes from the first byte of the data to the first element
    int64_t length;          ///< number of elements, 0 or more
    int64_t null_count;      ///< number of null elements; -1 in an export: not counted
    const uint8_t *validity; ///< validity bitmap: bits count from the lowest bit of the first byte
                             ///< on, and 0 means that the element is null; NULL: no nulls
    int64_t first_bit;       ///< index of the bit for the first element, 0 to 7; 0 in an export
    memrt_meminfo_t *validity_owner; ///< in an export: the MemInfo whose data has the bitmap
} memrt_arrow_view_t;

#ifdef __cplusplus
}
#endif

#endif
