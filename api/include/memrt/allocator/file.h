#ifndef MEMRT_FILE_H
#define MEMRT_FILE_H

/// Memory in files, for blocks larger than the memory of the machine.

#include <stddef.h>

#include <memrt/allocator.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Create an allocator whose blocks lie in files without names: the system writes their pages to
/// the file system of `folder` when it needs memory. `folder` NULL: files in memory (memfd), whose
/// pages can move to swap space only.
///
/// Each block has a file of its own, takes whole pages, and costs several system calls; use the
/// allocator for blocks from 1 MiB on. The space of a file is reserved when a block is made: a full
/// file system is a refused request. File systems that copy on write (btrfs) can still run full at
/// a write, which ends in SIGBUS. The memory of `folder` NULL is taken at the first touch.
///
/// Fork: parent and child share the data of inherited blocks; a write of one is seen by the other.
/// Each frees its own copy of the block. The file exists until both did. The header is not shared.
///
/// Ownership: `folder` is copied, as an absolute path. Hand `*out` to policy_new, or call its
///            `destroy`. Adaptors and guards refuse the allocator, and policies over it have no
///            alignment of 16 and no guard under MEMRT_CHECK: these keep counts in blocks, which
///            processes must not share.
/// Failure:   MEMRT_EINVAL where no file can be made in `folder`; MEMRT_ENOMEM.
typedef memrt_status_t (*memrt_allocator_file_fn)(const char *folder, memrt_allocator_t *out);

/// Advise the system that the whole pages inside a range are not needed soon: it takes their memory
/// before other memory, or right now with `pageout`. The contents stay; pages of files go to their
/// files, other pages to swap space. The range may have any memory of this process.
///
/// Threads: other threads may use the memory meanwhile. With `pageout` the call waits for the disk.
/// Failure: MEMRT_EINVAL for a range past the address space; MEMRT_ENOTSUP for locked memory,
///          addresses without memory, and Linux before 5.4. `*bytes` gets the bytes of the pages.
typedef memrt_status_t (*memrt_pages_cold_fn)(const void *address, size_t size, int pageout,
                                              size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
