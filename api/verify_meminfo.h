#ifndef MEMRT_API_VERIFY_MEMINFO_H
#define MEMRT_API_VERIFY_MEMINFO_H

#include <memrt/meminfo.h>

/// Verification of MemInfos and blocks from callers. Each function aborts with a message about
/// `call`, the name of the slot, and about the object. In checking mode the live set has all
/// MemInfos and blocks.

/// Abort with `why` and a description of `mi`, whose header must be readable.
_Noreturn void memrt__refuse_meminfo(const char *call, const memrt_meminfo_t *mi, const char *why);

/// Abort unless `mi` was made by memrt and is not freed.
void memrt__verify_meminfo(const char *call, const memrt_meminfo_t *mi);

/// Abort unless `mi` is live with at least one reference.
void memrt__verify_held_meminfo(const char *call, const memrt_meminfo_t *mi);

/// Abort unless `mi` was made by memrt, is not freed, and is resizable.
void memrt__verify_resizable_meminfo(const char *call, const memrt_meminfo_t *mi);

/// Verify the redzones around a block before the call may free the block. Later, only the guard
/// would find the damage, and the guard does not know the block's name.
void memrt__verify_redzones(const char *call, const memrt_meminfo_t *mi);

/// Abort unless a reference to `mi` may be released and the redzones are intact.
void memrt__verify_release(const char *call, const memrt_meminfo_t *mi);

/// Abort unless `data` is the data pointer of a live buffer. Returns the header of the buffer.
const memrt_meminfo_t *memrt__verify_data(const char *call, const void *data);

/// Abort unless `data` is the data pointer of a live block with intact redzones.
void memrt__verify_block(const char *call, const void *data);

#endif
