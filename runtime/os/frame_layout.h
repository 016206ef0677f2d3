#ifndef MEMRT_OS_FRAME_LAYOUT_H
#define MEMRT_OS_FRAME_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/os/loaded_object.h"

/// Layout of a function's stack frame at one address of its code, for x86-64. The return address is
/// the word below the canonical frame address (CFA).
typedef enum memrt__frame_kind {
    MEMRT__FRAME_UNKNOWN, ///< no unwind information, or rules that a layout cannot express
    MEMRT__FRAME_KNOWN,
    MEMRT__FRAME_OUTERMOST ///< the function has no caller
} memrt__frame_kind_t;

typedef struct memrt__frame_layout {
    memrt__frame_kind_t kind;
    bool from_rbp; ///< the CFA is relative to rbp, not to rsp
    unsigned cfa;  ///< words from the register to the CFA
    unsigned rbp;  ///< words from the CFA down to the caller's rbp; 0: rbp is unchanged
} memrt__frame_layout_t;

#define MEMRT__FRAME_CFA_MAX 4095u
#define MEMRT__FRAME_RBP_MAX 63u

/// Find the layout at an address of an object's code, in the object's unwind information. For the
/// frame of a call, `address` is in the call instruction, below the return address.
memrt__frame_layout_t memrt__frame_layout_find(const memrt__loaded_object_t *object,
                                               uintptr_t address);

#endif
