#ifndef MEMRT_OS_FRAME_PROGRAM_H
#define MEMRT_OS_FRAME_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/os/frame_reader.h"

/// Programs of call frame instructions (DWARF 5, section 6.4), for x86-64. A program computes the
/// rules by which the registers of the caller are found at an address of the code.

#define MEMRT__FRAME_RBP 6u     ///< register numbers of DWARF
#define MEMRT__FRAME_RSP 7u     ///<
#define MEMRT__FRAME_RETURN 16u ///< column of the return address
#define MEMRT__FRAME_NO_REGISTER UINT64_MAX

typedef enum memrt__frame_rule_kind {
    MEMRT__FRAME_SAME,      ///< the register has the caller's value
    MEMRT__FRAME_SAVED,     ///< the value is at CFA + offset
    MEMRT__FRAME_UNDEFINED, ///< the caller's value is lost; for the return address: no caller
    MEMRT__FRAME_OTHER      ///< an expression, or another register
} memrt__frame_rule_kind_t;

typedef struct memrt__frame_rule {
    memrt__frame_rule_kind_t kind;
    int64_t offset;
} memrt__frame_rule_t;

/// Rules at one address. The canonical frame address (CFA) is the caller's stack pointer.
typedef struct memrt__frame_rules {
    uint64_t cfa_register; ///< MEMRT__FRAME_NO_REGISTER: an expression, or none yet
    int64_t cfa_offset;
    memrt__frame_rule_t rbp;
    memrt__frame_rule_t ret; ///< the return address
} memrt__frame_rules_t;

/// Constants of a program, from its common information entry (CIE).
typedef struct memrt__frame_constants {
    uint64_t code_factor;
    int64_t data_factor;
    unsigned encoding; ///< of pointers
} memrt__frame_constants_t;

/// Rules before the first instruction.
memrt__frame_rules_t memrt__frame_rules_start(void);

/// Run instructions that start at address `from` of the code, up to the rules at address `to`.
/// `rules` are the rules before the program, and become the rules at `to`.
///
/// Failure: returns false for an unknown or incomplete instruction, and for more than 4 nested
/// states; `rules` are then undefined.
bool memrt__frame_program_run(memrt__frame_reader_t program,
                              const memrt__frame_constants_t *constants, uintptr_t from,
                              uintptr_t to, memrt__frame_rules_t *rules);

#endif
