#ifndef MEMRT_BINDINGS_NUMBA_SCRATCH_H
#define MEMRT_BINDINGS_NUMBA_SCRATCH_H

#include <stdatomic.h>

#include "core/caller_policy.h"
#include "support/binding.h"

/// Blocks of compiled code whose arrays come from an arena: `with memrt.numba.scratch():` in a
/// jitted function. Compiled code calls memrt__nrt_scratch_enter() before the block, and
/// memrt__nrt_scratch_leave() after the block, also after an exception.
///
/// Threads: any thread, with or without the GIL, also in chunks of parallel loops.

/// Arena of compiled blocks. memrt/numba/_blocks.py creates the record with the same layout. Record
/// and arena live as long as the process, because compiled code has the address of the record.
typedef struct memrt_nrt_scratch {
    memrt_policy_t *policy;
    PyObject *python_blocks;    ///< set with an item for each block of Python in the arena
    _Atomic(uint64_t) state;    ///< number of blocks ever entered << 32 | open blocks
    _Atomic(uint64_t) outlived; ///< live arrays at the end of the last block
    _Atomic(uint64_t) outlived_bytes;
    _Atomic(uint64_t) known; ///< part of the live arrays that an earlier block has left
} memrt_nrt_scratch_t;

/// Open block, in 8 words on the stack of compiled code.
typedef struct memrt_nrt_scratch_block {
    memrt_caller_t caller;
    memrt_nrt_scratch_t *scratch;
} memrt_nrt_scratch_block_t;

/// Enter a block: the calling thread allocates from the arena, in the scope of the caller. Without
/// memory for the account of the scope, the arrays do not count in the scope.
void memrt__nrt_scratch_enter(memrt_nrt_scratch_block_t *block, memrt_nrt_scratch_t *scratch);

/// Leave the innermost block of the calling thread. If no other block of the arena is open, judge
/// the arrays: set the figures of the arena, and return whether more arrays are live than earlier
/// blocks have left. Otherwise return 0.
int memrt__nrt_scratch_leave(memrt_nrt_scratch_block_t *block);

/// Return the address of the policy of a memrt handler, for the record of an arena. Needs the GIL.
/// NULL with TypeError for another object.
PyObject *memrt__nrt_scratch_policy(PyObject *module, PyObject *handler);

#endif
