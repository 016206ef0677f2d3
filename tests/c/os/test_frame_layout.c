#include "support/suite.h"

#include <string.h>

#include "runtime/os/frame_layout.h"

/// A hand-made object: two segments, a search table and the entries of two functions.
typedef struct object {
    _Alignas(8) uint8_t table[64]; ///< .eh_frame_hdr
    uint8_t cie[40];               ///< with its length word
    uint8_t fde[40];
    uint8_t code[64]; ///< the function is in the middle
} object_t;

#define CODE 16 /* offset and size of the function */
#define CODE_SIZE 32

static object_t image;
static ElfW(Phdr) segments[2];
static memrt__loaded_object_t object;

static void put(uint8_t *at, uint64_t value, size_t bytes)
{
    memcpy(at, &value, bytes);
}

/// Write the length of an entry, then the words up to the augmentation, then the rest.
static void put_cie(const char *augmentation, const uint8_t *rest, size_t size)
{
    memset(image.cie, 0, sizeof(image.cie));
    put(image.cie, sizeof(image.cie) - 4, 4);
    image.cie[8] = 1; /* version */
    strcpy((char *)image.cie + 9, augmentation);
    uint8_t *at = image.cie + 10 + strlen(augmentation);
    const uint8_t factors[] = {1, 0x78, 16};
    memcpy(at, factors, sizeof(factors));
    memcpy(at + sizeof(factors), rest, size);
}

/// Write the entry of the function, with a program that starts with `bytes`.
static void put_fde(const uint8_t *bytes, size_t size)
{
    memset(image.fde, 0, sizeof(image.fde));
    put(image.fde, sizeof(image.fde) - 4, 4);
    put(image.fde + 4, (uintptr_t)(image.fde + 4) - (uintptr_t)image.cie, 4);
    put(image.fde + 8, (uintptr_t)(image.code + CODE) - (uintptr_t)(image.fde + 8), 4);
    put(image.fde + 12, CODE_SIZE, 4);
    memcpy(image.fde + 17, bytes, size); /* byte 16: no augmentation */
}

static void put_row(size_t index, const uint8_t *code, const uint8_t *entry)
{
    uint8_t *row = image.table + 12 + 8 * index;
    put(row, (uintptr_t)code - (uintptr_t)image.table, 4);
    put(row + 4, (uintptr_t)entry - (uintptr_t)image.table, 4);
}

static const uint8_t usual_cie[] = {1, 0x1b, 0x0c, 7, 8, 0x90, 1};
static const uint8_t usual_fde[] = {0x0e, 32, 0x86, 2};

/// Make the usual object: rsp + 32 is the CFA, and rbp is 2 words below the CFA.
static void make_object(void)
{
    memset(&image, 0, sizeof(image));
    put(image.table, 0x3b031b01, 4);
    put(image.table + 8, 3, 4);
    put_row(0, image.code, image.fde);
    put_row(1, image.code + CODE, image.fde);
    put_row(2, image.code + CODE + CODE_SIZE + 8, image.fde);
    put_cie("zR", usual_cie, sizeof(usual_cie));
    put_fde(usual_fde, sizeof(usual_fde));
    segments[0] = (ElfW(Phdr)){
        .p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = (uintptr_t)&image, .p_memsz = sizeof(image)};
    segments[1] =
        (ElfW(Phdr)){.p_type = PT_GNU_EH_FRAME, .p_vaddr = (uintptr_t)image.table, .p_memsz = 36};
    object = (memrt__loaded_object_t){.dlpi_phdr = segments, .dlpi_phnum = 2};
}

static memrt__frame_layout_t find(void)
{
    return memrt__frame_layout_find(&object, (uintptr_t)(image.code + CODE + 4));
}

static void expect_unknown(void)
{
    ck_assert_int_eq(find().kind, MEMRT__FRAME_UNKNOWN);
}

TEST(layout_of_a_hand_made_object_is_found)
{
    make_object();
    memrt__frame_layout_t layout = find();
    ck_assert_int_eq(layout.kind, MEMRT__FRAME_KNOWN);
    ck_assert(!layout.from_rbp);
    ck_assert_uint_eq(layout.cfa, 4);
    ck_assert_uint_eq(layout.rbp, 2);
}

TEST(address_outside_of_all_functions_has_no_layout)
{
    make_object();
    const size_t outside[] = {0, CODE - 1, CODE + CODE_SIZE, CODE + CODE_SIZE + 8};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        uintptr_t address = (uintptr_t)(image.code + outside[i]);
        ck_assert_int_eq(memrt__frame_layout_find(&object, address).kind, MEMRT__FRAME_UNKNOWN);
    }
    uintptr_t last = (uintptr_t)(image.code + CODE + CODE_SIZE - 1);
    ck_assert_int_eq(memrt__frame_layout_find(&object, last).kind, MEMRT__FRAME_KNOWN);
}

TEST(object_without_a_usable_table_has_no_layout)
{
    make_object();
    object.dlpi_phnum = 1;
    expect_unknown();
    make_object();
    segments[0].p_flags = PF_X; /* cannot be read */
    expect_unknown();
    make_object();
    segments[0].p_memsz = 30; /* the table ends behind the segment */
    expect_unknown();
    make_object();
    image.table[3] = 0x3c; /* another format */
    expect_unknown();
    make_object();
    image.table[8] = 0; /* no rows */
    expect_unknown();
    make_object();
    image.table[8] = 4; /* more rows than the table has */
    expect_unknown();
    make_object();
    segments[1].p_memsz = 10; /* ends in the header */
    expect_unknown();
}

TEST(damaged_entries_have_no_layout)
{
    make_object();
    put_row(1, image.code + CODE, (uint8_t *)(&image + 1)); /* outside of the segment */
    expect_unknown();
    make_object();
    put(image.fde, UINT32_MAX, 4); /* long format */
    expect_unknown();
    make_object();
    put(image.fde, 2, 4); /* too short for the offset of the CIE */
    expect_unknown();
    make_object();
    put(image.fde + 4, 0, 4); /* a CIE in place of an FDE */
    expect_unknown();
    make_object();
    put(image.fde + 4, sizeof(image) * 2, 4); /* a CIE outside of the segment */
    expect_unknown();
    make_object();
    put(image.cie + 4, 1, 4); /* an FDE in place of a CIE */
    expect_unknown();
    make_object();
    put(image.fde, 6, 4); /* ends in the addresses */
    expect_unknown();
    make_object();
    image.fde[16] = 100; /* augmentation longer than the entry */
    expect_unknown();
}

TEST(common_entries_are_read_or_refused)
{
    make_object();
    image.cie[8] = 3; /* version 3 */
    ck_assert_int_eq(find().kind, MEMRT__FRAME_KNOWN);
    image.cie[8] = 4;
    expect_unknown();
    make_object();
    image.cie[14] = 17; /* another return address */
    expect_unknown();
    make_object();
    put(image.cie, 8, 4); /* ends in the factors */
    expect_unknown();
    make_object();
    put_cie("zR", (const uint8_t[]){1, 0x1b, 0x17}, 3); /* unknown instruction */
    expect_unknown();
    make_object();
    put(image.cie, 11, 4); /* ends in the augmentation */
    expect_unknown();
}

TEST(augmentations_are_read_or_refused)
{
    make_object();
    const uint8_t with_handler[] = {7, 0x9b, 0, 0, 0, 0, 0x1b, 0x1b, 0x0c, 7, 8, 0x90, 1};
    put_cie("zPLR", with_handler, sizeof(with_handler));
    ck_assert_int_eq(find().kind, MEMRT__FRAME_KNOWN);
    put_cie("zRS", usual_cie, sizeof(usual_cie)); /* a signal frame */
    expect_unknown();

    put_cie("", usual_cie + 2, sizeof(usual_cie) - 2); /* absolute pointers of 8 bytes */
    put(image.fde + 8, (uintptr_t)(image.code + CODE), 8);
    put(image.fde + 16, CODE_SIZE, 8);
    memcpy(image.fde + 24, usual_fde, sizeof(usual_fde));
    ck_assert_int_eq(find().kind, MEMRT__FRAME_KNOWN);
}

typedef struct rules_case {
    uint8_t bytes[8];
    memrt__frame_kind_t kind;
} rules_case_t;

static const rules_case_t rules[] = {
    {{0x0c, 6, 16, 0x86, 2}, MEMRT__FRAME_KNOWN},  /* CFA from rbp */
    {{0x0c, 3, 16}, MEMRT__FRAME_UNKNOWN},         /* CFA from rbx */
    {{0x0f, 1, 0x77}, MEMRT__FRAME_UNKNOWN},       /* CFA from an expression */
    {{0x0e, 12}, MEMRT__FRAME_UNKNOWN},            /* no whole words */
    {{0x0e, 0}, MEMRT__FRAME_UNKNOWN},             /* no room for the return address */
    {{0x0e, 0xf8, 0xff, 1}, MEMRT__FRAME_KNOWN},   /* 4,095 words */
    {{0x0e, 0x80, 0x80, 2}, MEMRT__FRAME_UNKNOWN}, /* 4,096 words */
    {{0x07, 16}, MEMRT__FRAME_OUTERMOST},          /* no return address */
    {{0x90, 2}, MEMRT__FRAME_UNKNOWN},             /* return address elsewhere */
    {{0x09, 16, 3}, MEMRT__FRAME_UNKNOWN},         /* return address in a register */
    {{0x86, 63}, MEMRT__FRAME_KNOWN},              /* rbp 63 words below the CFA */
    {{0x86, 64}, MEMRT__FRAME_UNKNOWN},            /* rbp 64 words below the CFA */
    {{0x86, 1}, MEMRT__FRAME_UNKNOWN},             /* rbp in place of the return address */
    {{0x07, 6}, MEMRT__FRAME_UNKNOWN},             /* rbp is lost */
    {{0x10, 6, 1, 0x77}, MEMRT__FRAME_UNKNOWN},    /* rbp from an expression */
    {{0x17}, MEMRT__FRAME_UNKNOWN},                /* unknown instruction */
};

TEST_EACH(rules_become_a_layout_or_are_refused, sizeof(rules) / sizeof(rules[0]))
{
    make_object();
    put_fde(rules[index].bytes, sizeof(rules[index].bytes));
    ck_assert_int_eq(find().kind, rules[index].kind);
    ck_assert(index != 0 || find().from_rbp);
}
