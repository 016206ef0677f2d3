#ifndef MEMRT_OS_FRAME_PROGRAM_H
#define MEMRT_OS_FRAME_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/os/frame_reader.h"

/// Interpreter of call frame programs (DWARF 5, section 6.4), for x86-64. For an address in a
/// function, a program computes the rules that lead from the registers there to the registers of
/// the caller.
///
/// Invariant: the interpreter reads only the bytes of the program, and fails on any malformed
/// program. The rules of a failed run must not be used.

/// Register numbers of DWARF. No register: the canonical frame address has no usable rule.
#define MEMRT__FRAME_RBP 6u
#define MEMRT__FRAME_RSP 7u
#define MEMRT__FRAME_RETURN 16u ///< column of the return address
#define MEMRT__FRAME_NO_REGISTER UINT64_MAX

/// How to find the caller's value of a register. CFA: canonical frame address, the caller's stack
/// pointer.
typedef enum memrt__frame_rule_kind {
    MEMRT__FRAME_SAME,      ///< the register still has the caller's value
    MEMRT__FRAME_SAVED,     ///< the value is at CFA + offset
    MEMRT__FRAME_UNDEFINED, ///< the caller's value is lost; for the return address: no caller
    MEMRT__FRAME_OTHER      ///< unsupported: an expression, or another register
} memrt__frame_rule_kind_t;

typedef struct memrt__frame_rule {
    memrt__frame_rule_kind_t kind;
    int64_t offset; ///< bytes from the CFA, for MEMRT__FRAME_SAVED
} memrt__frame_rule_t;

/// Rules at one address. The CFA is the value of `cfa_register` plus `cfa_offset`.
typedef struct memrt__frame_rules {
    uint64_t cfa_register; ///< MEMRT__FRAME_NO_REGISTER: an expression, or not set
    int64_t cfa_offset;    ///< bytes
    memrt__frame_rule_t rbp;
    memrt__frame_rule_t ret; ///< the return address
} memrt__frame_rules_t;

/// Constants of a program, from its common information entry (CIE).
typedef struct memrt__frame_constants {
    uint64_t code_factor; ///< unit of distances between addresses of the code, in bytes
    int64_t data_factor;  ///< unit of offsets on the stack, in bytes
    unsigned encoding;    ///< format of pointers in the program
} memrt__frame_constants_t;

/// Nesting depth of DW_CFA_remember_state that the interpreter supports. Compilers use one level.
#define MEMRT__FRAME_STATES_MAX 4

/// Return the rules before the first instruction: no CFA, and all registers with the caller's
/// value.
memrt__frame_rules_t memrt__frame_rules_start(void);

/// Run a program that begins at address `from` of the code, and stop before the first instruction
/// for an address above `to`. `rules` are the rules before the program, and become the rules at
/// `to`.
///
/// Failure: returns false for an unknown or incomplete instruction, and for more than
/// MEMRT__FRAME_STATES_MAX nested states; `rules` are then undefined.
bool memrt__frame_program_run(memrt__frame_reader_t program,
                              const memrt__frame_constants_t *constants, uintptr_t from,
                              uintptr_t to, memrt__frame_rules_t *rules);

#endif
