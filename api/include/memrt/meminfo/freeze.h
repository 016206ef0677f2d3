#ifndef MEMRT_FREEZE_H
#define MEMRT_FREEZE_H

/// Write protection of buffers by the protection of their pages.

#include <stddef.h>

#include <memrt/meminfo.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Protect the whole pages of a buffer's data against writes. The caller holds a reference.
///
/// A write to the pages raises SIGSEGV. memrt's handler reports the write, the buffer, and the
/// place of the freeze, before the previous handler runs. `*bytes` becomes the number of bytes of
/// data in protected pages. Bytes at both ends of the data, in pages with a header or with other
/// data, stay writable. Each further freeze of the buffer counts. A system call that writes to the
/// pages fails with EFAULT. In a forked child, the buffer is frozen too.
///
/// The last release makes the pages writable, whatever the number of freezes. A resize by
/// block_realloc moves the data to a block that is not frozen.
/// Failure: MEMRT_ENOENT: no whole page belongs to the data alone. MEMRT_ENOTSUP: adopted,
///          resizable or device memory, or memory of an allocator other than memrt's own.
///          MEMRT_ELIMIT: 4,096 buffers are frozen. MEMRT_ENOMEM: the system has no memory to
///          protect the pages, as at the limit of mappings. The buffer is as before.
typedef memrt_status_t (*memrt_freeze_fn)(memrt_meminfo_t *mi, size_t *bytes);

/// End one freeze. The pages are writable after as many calls as of `freeze`. The caller holds a
/// reference.
/// Failure: MEMRT_ENOENT: the buffer is not frozen; MEMRT_ENOMEM: the system refuses the change.
typedef memrt_status_t (*memrt_thaw_fn)(memrt_meminfo_t *mi);

#ifdef __cplusplus
}
#endif

#endif
