#include "runtime/os/frame_program.h"

/// Effect of an instruction.
typedef enum effect {
    REFUSE,
    NOTHING,
    MOVE,         /* to an address */
    ADVANCE,      /* by a delta */
    SAVE,         /* register, offset */
    RESTORE,      /* register */
    UNDEFINE,     /* register */
    KEEP,         /* register */
    OTHER,        /* register: the rule is not understood */
    REMEMBER,     /* all rules */
    RECALL,       /* all rules */
    CFA,          /* register, offset */
    CFA_REGISTER, /* register */
    CFA_OFFSET,   /* offset */
    CFA_OTHER     /* the rule is not understood */
} effect_t;

/// Format of an operand.
typedef enum operand {
    NONE,
    BYTES_1,
    BYTES_2,
    BYTES_4,
    UNSIGNED,
    NEGATIVE,        /* unsigned, times minus the data factor */
    FACTORED,        /* unsigned, times the data factor */
    SIGNED_FACTORED, /* signed, times the data factor */
    BLOCK,           /* length and bytes; the value is 0 */
    POINTER
} operand_t;

typedef struct instruction {
    effect_t effect;
    operand_t first, second;
} instruction_t;

/* Instructions whose first byte is the code of the instruction alone. Missing codes are refused. */
static const instruction_t instructions[] = {
    [0x00] = {NOTHING, NONE, NONE},
    [0x01] = {MOVE, POINTER, NONE},
    [0x02] = {ADVANCE, BYTES_1, NONE},
    [0x03] = {ADVANCE, BYTES_2, NONE},
    [0x04] = {ADVANCE, BYTES_4, NONE},
    [0x05] = {SAVE, UNSIGNED, FACTORED},
    [0x06] = {RESTORE, UNSIGNED, NONE},
    [0x07] = {UNDEFINE, UNSIGNED, NONE},
    [0x08] = {KEEP, UNSIGNED, NONE},
    [0x09] = {OTHER, UNSIGNED, UNSIGNED}, /* register */
    [0x0a] = {REMEMBER, NONE, NONE},
    [0x0b] = {RECALL, NONE, NONE},
    [0x0c] = {CFA, UNSIGNED, UNSIGNED},
    [0x0d] = {CFA_REGISTER, UNSIGNED, NONE},
    [0x0e] = {CFA_OFFSET, NONE, UNSIGNED},
    [0x0f] = {CFA_OTHER, BLOCK, NONE},
    [0x10] = {OTHER, UNSIGNED, BLOCK}, /* expression */
    [0x11] = {SAVE, UNSIGNED, SIGNED_FACTORED},
    [0x12] = {CFA, UNSIGNED, SIGNED_FACTORED},
    [0x13] = {CFA_OFFSET, NONE, SIGNED_FACTORED},
    [0x14] = {OTHER, UNSIGNED, UNSIGNED}, /* val_offset */
    [0x15] = {OTHER, UNSIGNED, SIGNED_FACTORED},
    [0x16] = {OTHER, UNSIGNED, BLOCK},   /* val_expression */
    [0x2e] = {NOTHING, UNSIGNED, NONE},  /* GNU_args_size */
    [0x2f] = {SAVE, UNSIGNED, NEGATIVE}, /* GNU_negative_offset_extended */
};

/* Instructions with an operand in the low six bits of the first byte, by the two high bits. */
static const instruction_t short_instructions[] = {
    [1] = {ADVANCE, NONE, NONE},
    [2] = {SAVE, NONE, FACTORED},
    [3] = {RESTORE, NONE, NONE},
};

typedef struct machine {
    memrt__frame_reader_t program;
    const memrt__frame_constants_t *constants;
    uintptr_t at; ///< address of the code
    memrt__frame_rules_t rules, initial;
    memrt__frame_rules_t states[MEMRT__FRAME_STATES_MAX];
    unsigned depth; ///< number of states
} machine_t;

memrt__frame_rules_t memrt__frame_rules_start(void)
{
    return (memrt__frame_rules_t){.cfa_register = MEMRT__FRAME_NO_REGISTER};
}

static uint64_t multiply(uint64_t value, int64_t factor)
{
    return value * (uint64_t)factor; /* wraps */
}

static uint64_t read_operand(machine_t *machine, operand_t operand)
{
    memrt__frame_reader_t *program = &machine->program;
    int64_t factor = machine->constants->data_factor;
    switch (operand) {
    case BYTES_1:
        return memrt__frame_read(program, 1);
    case BYTES_2:
        return memrt__frame_read(program, 2);
    case BYTES_4:
        return memrt__frame_read(program, 4);
    case UNSIGNED:
        return memrt__frame_read_unsigned(program);
    case NEGATIVE:
        return 0 - multiply(memrt__frame_read_unsigned(program), factor);
    case FACTORED:
        return multiply(memrt__frame_read_unsigned(program), factor);
    case SIGNED_FACTORED:
        return multiply((uint64_t)memrt__frame_read_signed(program), factor);
    case BLOCK:
        memrt__frame_skip(program, memrt__frame_read_unsigned(program));
        return 0;
    case POINTER:
        return memrt__frame_read_pointer(program, machine->constants->encoding);
    case NONE:
        break;
    }
    return 0;
}

static void set_rule(memrt__frame_rules_t *rules, uint64_t number, memrt__frame_rule_t rule)
{
    if (number == MEMRT__FRAME_RBP) {
        rules->rbp = rule;
    } else if (number == MEMRT__FRAME_RETURN) {
        rules->ret = rule;
    }
}

static void restore_rule(machine_t *machine, uint64_t number)
{
    set_rule(&machine->rules, number,
             number == MEMRT__FRAME_RBP ? machine->initial.rbp : machine->initial.ret);
}

static bool remember_rules(machine_t *machine)
{
    if (machine->depth == MEMRT__FRAME_STATES_MAX) {
        return false;
    }
    machine->states[machine->depth++] = machine->rules;
    return true;
}

static bool recall_rules(machine_t *machine)
{
    if (machine->depth == 0) {
        return false;
    }
    machine->rules = machine->states[--machine->depth];
    return true;
}

static void set_cfa(memrt__frame_rules_t *rules, uint64_t number, uint64_t offset)
{
    rules->cfa_register = number;
    rules->cfa_offset = (int64_t)offset;
}

/// Apply an instruction with its operands. Returns false for a refused instruction.
static bool apply(machine_t *machine, effect_t effect, uint64_t first, uint64_t second)
{
    memrt__frame_rules_t *rules = &machine->rules;
    switch (effect) {
    case NOTHING:
        return true;
    case MOVE:
        machine->at = (uintptr_t)first;
        return true;
    case ADVANCE:
        machine->at += (uintptr_t)(first * machine->constants->code_factor);
        return true;
    case SAVE:
        set_rule(rules, first, (memrt__frame_rule_t){MEMRT__FRAME_SAVED, (int64_t)second});
        return true;
    case RESTORE:
        restore_rule(machine, first);
        return true;
    case UNDEFINE:
        set_rule(rules, first, (memrt__frame_rule_t){MEMRT__FRAME_UNDEFINED, 0});
        return true;
    case KEEP:
        set_rule(rules, first, (memrt__frame_rule_t){MEMRT__FRAME_SAME, 0});
        return true;
    case OTHER:
        set_rule(rules, first, (memrt__frame_rule_t){MEMRT__FRAME_OTHER, 0});
        return true;
    case REMEMBER:
        return remember_rules(machine);
    case RECALL:
        return recall_rules(machine);
    case CFA:
        set_cfa(rules, first, second);
        return true;
    case CFA_REGISTER:
        rules->cfa_register = first;
        return true;
    case CFA_OFFSET:
        rules->cfa_offset = (int64_t)second;
        return true;
    case CFA_OTHER:
        rules->cfa_register = MEMRT__FRAME_NO_REGISTER;
        return true;
    case REFUSE:
        break;
    }
    return false;
}

/// Return the instruction of a first byte.
static instruction_t find_instruction(unsigned byte)
{
    static const instruction_t refused = {REFUSE, NONE, NONE};
    if (byte >> 6 != 0) {
        return short_instructions[byte >> 6];
    }
    return byte < sizeof(instructions) / sizeof(instructions[0]) ? instructions[byte] : refused;
}

static bool run_instruction(machine_t *machine)
{
    unsigned byte = (unsigned)memrt__frame_read(&machine->program, 1);
    instruction_t instruction = find_instruction(byte);
    uint64_t first = byte >> 6 != 0 ? byte & 0x3fu : read_operand(machine, instruction.first);
    uint64_t second = read_operand(machine, instruction.second);
    return !machine->program.failed && apply(machine, instruction.effect, first, second);
}

bool memrt__frame_program_run(memrt__frame_reader_t program,
                              const memrt__frame_constants_t *constants, uintptr_t from,
                              uintptr_t to, memrt__frame_rules_t *rules)
{
    machine_t machine = {
        .program = program, .constants = constants, .at = from, .rules = *rules, .initial = *rules};
    while (machine.program.at < machine.program.end) {
        if (!run_instruction(&machine)) {
            return false;
        }
        if (machine.at > to) { /* the next rules are for later addresses */
            break;
        }
    }
    *rules = machine.rules;
    return true;
}
