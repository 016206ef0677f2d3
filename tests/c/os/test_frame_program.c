#include "support/suite.h"

#include "runtime/os/frame_program.h"

#define START 1000u /* address of the first instruction of the function */

static const memrt__frame_constants_t constants = {
    .code_factor = 2, .data_factor = -8, .encoding = MEMRT__FRAME_ABSOLUTE};

/// Rules after DW_CFA_def_cfa rsp 8; DW_CFA_offset return -8, as in the CIE of compilers.
static memrt__frame_rules_t usual(void)
{
    memrt__frame_rules_t rules = memrt__frame_rules_start();
    rules.cfa_register = MEMRT__FRAME_RSP;
    rules.cfa_offset = 8;
    rules.ret = (memrt__frame_rule_t){MEMRT__FRAME_SAVED, -8};
    return rules;
}

/// A program from the usual rules, and the rules at address START + 10.
typedef struct program_case {
    const char *name;
    size_t size;
    uint8_t bytes[24];
    bool runs;
    uint64_t cfa_register;
    int64_t cfa_offset;
    memrt__frame_rule_t rbp, ret;
} program_case_t;

#define BYTES(...)                                                                                 \
    sizeof((uint8_t[]){__VA_ARGS__}),                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define RSP MEMRT__FRAME_RSP
#define RBP MEMRT__FRAME_RBP
#define SAME {MEMRT__FRAME_SAME, 0}
#define AT(offset) {MEMRT__FRAME_SAVED, offset}
#define OTHER {MEMRT__FRAME_OTHER, 0}
#define LOST {MEMRT__FRAME_UNDEFINED, 0}
#define KEPT RSP, 8, SAME, AT(-8) /* rules without a change */
#define REFUSED false, 0, 0, SAME, SAME

static const program_case_t cases[] = {
    {"nop", BYTES(0, 0), true, KEPT},
    {"set_loc below", BYTES(0x01, 0xf2, 3, 0, 0, 0, 0, 0, 0, 0x0e, 16), true, RSP, 16, SAME,
     AT(-8)},
    {"set_loc above", BYTES(0x01, 0xf3, 3, 0, 0, 0, 0, 0, 0, 0x0e, 16), true, KEPT},
    {"advance_loc to the address", BYTES(0x45, 0x0e, 16), true, RSP, 16, SAME, AT(-8)},
    {"advance_loc past the address", BYTES(0x46, 0x0e, 16), true, KEPT},
    {"advance_loc1", BYTES(0x02, 5, 0x0e, 16, 0x02, 1, 0x0e, 24), true, RSP, 16, SAME, AT(-8)},
    {"advance_loc2", BYTES(0x03, 0, 1, 0x0e, 16), true, KEPT},
    {"advance_loc4", BYTES(0x04, 0, 0, 1, 0, 0x0e, 16), true, KEPT},
    {"offset", BYTES(0x80 | RBP, 2), true, RSP, 8, AT(-16), AT(-8)},
    {"offset of another register", BYTES(0x80 | 3, 2), true, KEPT},
    {"offset_extended", BYTES(0x05, RBP, 3), true, RSP, 8, AT(-24), AT(-8)},
    {"offset_extended_sf", BYTES(0x11, RBP, 0x7f), true, RSP, 8, AT(8), AT(-8)},
    {"GNU_negative_offset_extended", BYTES(0x2f, RBP, 2), true, RSP, 8, AT(16), AT(-8)},
    {"restore", BYTES(0x80 | RBP, 2, 0xc0 | RBP), true, KEPT},
    {"restore of the return address", BYTES(0x80 | 16, 2, 0xc0 | 16), true, KEPT},
    {"restore of another register", BYTES(0x80 | RBP, 2, 0xc0 | 3), true, RSP, 8, AT(-16), AT(-8)},
    {"restore_extended", BYTES(0x80 | RBP, 2, 0x06, RBP), true, KEPT},
    {"undefined", BYTES(0x07, 16), true, RSP, 8, SAME, LOST},
    {"same_value", BYTES(0x80 | RBP, 2, 0x08, RBP), true, KEPT},
    {"register", BYTES(0x09, RBP, 3), true, RSP, 8, OTHER, AT(-8)},
    {"expression", BYTES(0x10, RBP, 2, 0x77, 8), true, RSP, 8, OTHER, AT(-8)},
    {"val_offset", BYTES(0x14, RBP, 2), true, RSP, 8, OTHER, AT(-8)},
    {"val_offset_sf", BYTES(0x15, RBP, 2), true, RSP, 8, OTHER, AT(-8)},
    {"val_expression", BYTES(0x16, RBP, 1, 0x77), true, RSP, 8, OTHER, AT(-8)},
    {"remember_state", BYTES(0x0a, 0x0e, 16, 0x80 | RBP, 2, 0x0b), true, KEPT},
    {"four states", BYTES(0x0a, 0x0a, 0x0a, 0x0a, 0x0b, 0x0b, 0x0b, 0x0b), true, KEPT},
    {"five states", BYTES(0x0a, 0x0a, 0x0a, 0x0a, 0x0a), REFUSED},
    {"restore_state without a state", BYTES(0x0b), REFUSED},
    {"def_cfa", BYTES(0x0c, RBP, 16), true, RBP, 16, SAME, AT(-8)},
    {"def_cfa_sf", BYTES(0x12, RBP, 0x7e), true, RBP, 16, SAME, AT(-8)},
    {"def_cfa_register", BYTES(0x0d, RBP), true, RBP, 8, SAME, AT(-8)},
    {"def_cfa_offset_sf", BYTES(0x13, 0x7d), true, RSP, 24, SAME, AT(-8)},
    {"def_cfa_expression", BYTES(0x0f, 3, 0x77, 8, 6), true, MEMRT__FRAME_NO_REGISTER, 8, SAME,
     AT(-8)},
    {"def_cfa after an expression", BYTES(0x0f, 1, 6, 0x0c, RSP, 16), true, RSP, 16, SAME, AT(-8)},
    {"GNU_args_size", BYTES(0x2e, 32), true, KEPT},
    {"unknown code", BYTES(0x17), REFUSED},
    {"unknown code above all codes", BYTES(0x3f), REFUSED},
    {"MIPS_advance_loc8", BYTES(0x1d, 0, 0, 0, 0, 0, 0, 0, 0), REFUSED},
    {"operand past the end", BYTES(0x0e), REFUSED},
    {"block past the end", BYTES(0x0f, 9, 0x77), REFUSED},
    {"pointer past the end", BYTES(0x01, 0), REFUSED},
};

static void expect_rule(memrt__frame_rule_t rule, memrt__frame_rule_t expected, const char *name)
{
    ck_assert_msg(rule.kind == expected.kind, "%s: kind %d", name, (int)rule.kind);
    ck_assert_msg(rule.offset == expected.offset, "%s: offset %ld", name, (long)rule.offset);
}

TEST_EACH(instructions_change_rules_or_are_refused, sizeof(cases) / sizeof(cases[0]))
{
    const program_case_t *one = &cases[index];
    memrt__frame_rules_t rules = usual();
    memrt__frame_reader_t program = {one->bytes, one->bytes + one->size, false};
    bool runs = memrt__frame_program_run(program, &constants, START, START + 10, &rules);
    ck_assert_msg(runs == one->runs, "%s: %d", one->name, runs);
    if (one->runs) {
        ck_assert_msg(
            rules.cfa_register == one->cfa_register && rules.cfa_offset == one->cfa_offset,
            "%s: CFA %ld + %ld", one->name, (long)rules.cfa_register, (long)rules.cfa_offset);
        expect_rule(rules.rbp, one->rbp, one->name);
        expect_rule(rules.ret, one->ret, one->name);
    }
}

TEST(rules_start_without_a_cfa)
{
    memrt__frame_rules_t rules = memrt__frame_rules_start();
    ck_assert_uint_eq(rules.cfa_register, MEMRT__FRAME_NO_REGISTER);
    expect_rule(rules.rbp, (memrt__frame_rule_t)SAME, "rbp");
    expect_rule(rules.ret, (memrt__frame_rule_t)SAME, "return address");
}
