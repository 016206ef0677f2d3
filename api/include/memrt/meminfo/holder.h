#ifndef MEMRT_HOLDER_H
#define MEMRT_HOLDER_H

/// Named references: references to a MemInfo that were acquired under a name.

#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Purpose of a named reference.
typedef enum memrt_holder_kind {
    MEMRT_HOLDER_REFERENCE = 1, ///< code that uses the MemInfo
    MEMRT_HOLDER_EXPORT = 2,    ///< export to another library, which releases by a call
} memrt_holder_kind_t;

/// Row of memrt_api_t.holders: the references to one MemInfo under one kind and name.
typedef struct memrt_holder {
    size_t count;    ///< number of references
    uint64_t age_ns; ///< nanoseconds since the first reference was acquired
    uint64_t thread; ///< operating system's id of the thread that acquired the first reference
    uint32_t kind;   ///< a memrt_holder_kind_t
    char name[64];   ///< the name
} memrt_holder_t;

/// Acquire one more reference, as `acquire`, under a name that `holders` lists. Release the
/// reference with release_as.
///
/// A release by compiled code, or a release without a name, is not matched with a name: the
/// name stays listed until the MemInfo is freed.
/// Ownership: `name` is copied.
/// Failure:   MEMRT_EINVAL for an unknown kind, and for a name that is empty or longer than
///            MEMRT_NAME_MAX bytes; MEMRT_ENOMEM. On failure no reference is acquired.
typedef memrt_status_t (*memrt_acquire_as_fn)(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                              const char *name);

/// Release a reference that was acquired under the same kind and name, as `release`. If no such
/// reference exists, release_as is a release without a name; checking mode aborts.
typedef void (*memrt_release_as_fn)(memrt_meminfo_t *mi, memrt_holder_kind_t kind,
                                    const char *name);

/// List the named references to `mi`: write the first `room` rows to `rows`, oldest first, and
/// return the number of all rows. Each row has `row_size` bytes (sizeof(memrt_holder_t)).
typedef size_t (*memrt_holders_fn)(const memrt_meminfo_t *mi, memrt_holder_t *rows, size_t row_size,
                                   size_t room);

#ifdef __cplusplus
}
#endif

#endif
