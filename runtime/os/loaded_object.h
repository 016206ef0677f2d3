#ifndef MEMRT_OS_LOADED_OBJECT_H
#define MEMRT_OS_LOADED_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Programs and libraries that the dynamic loader has loaded.
typedef struct dl_phdr_info memrt__loaded_object_t;

/// Addresses from `start` up to, but not including, `end`.
typedef struct memrt__address_range {
    uintptr_t start, end;
} memrt__address_range_t;

static inline bool memrt__address_range_has(const memrt__address_range_t *range, uintptr_t address)
{
    return address - range->start < range->end - range->start;
}

/// Call `visit` with the object that has a segment at an address. Returns false without an object.
/// The object cannot be unloaded during the call. Takes a lock of the loader.
bool memrt__loaded_object_visit(uintptr_t address,
                                void (*visit)(const memrt__loaded_object_t *object, void *context),
                                void *context);

/// Find the readable segment of an object at an address.
bool memrt__loaded_object_segment(const memrt__loaded_object_t *object, uintptr_t address,
                                  memrt__address_range_t *out);

/// Find the table of unwind information (.eh_frame_hdr).
bool memrt__loaded_object_frame_table(const memrt__loaded_object_t *object,
                                      memrt__address_range_t *out);

/// Number of an object in a register of objects, for memrt__loaded_object_is_at().
///
/// Objects that are never unloaded have the number MEMRT__OBJECT_PERMANENT: the program, the C
/// library, and the object that contains memrt. The loader may load another object at the address
/// of an unloaded object. The build id of an object in the register therefore identifies its
/// contents.
#define MEMRT__OBJECT_PERMANENT 0u
#define MEMRT__OBJECTS 512u

/// Register an object that has code at the address. Returns false for an object without a build id,
/// without _dl_find_object() (glibc 2.35), or with a full register. Entries are never removed.
bool memrt__loaded_object_register(const memrt__loaded_object_t *object, uintptr_t address,
                                   size_t *number);

/// Return whether the registered object is loaded now, and has code at the address. Takes no lock,
/// also usable in a signal handler. `address` must be in an object that stays loaded during the
/// call, if in any object.
bool memrt__loaded_object_is_at(size_t number, uintptr_t address);

/// Resolve the functions of the loader. Must come before all other functions.
void memrt__loaded_object_start(void);

#endif
