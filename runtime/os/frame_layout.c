#include "runtime/os/frame_layout.h"

#include <string.h>

#include "runtime/os/frame_program.h"
#include "runtime/os/frame_reader.h"

/* Formats of the search table that linkers write: version 1, pointers of 4 bytes. */
#define TABLE_FORMAT 0x3b031b01u
#define TABLE_HEADER 12u

/// Row of the search table. Numbers are relative to the start of the table's segment.
typedef struct row {
    int32_t code;  ///< first address of a function
    int32_t entry; ///< the function's frame description entry (FDE)
} row_t;

/// A common information entry (CIE) or a frame description entry (FDE).
typedef struct entry {
    memrt__frame_reader_t rest; ///< after the words that are read so far
    uintptr_t cie;              ///< address of the CIE; 0: the entry is a CIE
} entry_t;

typedef struct cie {
    memrt__frame_constants_t constants;
    memrt__frame_rules_t rules; ///< rules at the start of each function
    bool has_length;            ///< FDEs state the length of their augmentation
} cie_t;

static memrt__frame_reader_t make_reader(const memrt__address_range_t *range)
{
    return (memrt__frame_reader_t){(const void *)range->start, (const void *)range->end, false};
}

/// Return the row of the last function that starts at or below an address.
static row_t search_rows(const row_t *rows, size_t count, int64_t address)
{
    size_t low = 0;
    row_t row;
    while (count > 1) {
        size_t half = count / 2;
        memcpy(&row, &rows[low + half], sizeof(row));
        low += row.code <= address ? half : 0;
        count -= half;
    }
    memcpy(&row, &rows[low], sizeof(row));
    return row;
}

/// Find the address of the FDE for an address of the code.
static bool find_fde(const memrt__address_range_t *table, uintptr_t address, uintptr_t *out)
{
    memrt__frame_reader_t reader = make_reader(table);
    uint64_t format = memrt__frame_read(&reader, 4);
    memrt__frame_skip(&reader, 4); /* address of the first entry */
    uint64_t count = memrt__frame_read(&reader, 4);
    if (reader.failed || format != TABLE_FORMAT || count == 0 ||
        count > (size_t)(reader.end - reader.at) / sizeof(row_t)) {
        return false;
    }
    const row_t *rows = (const void *)reader.at;
    row_t row = search_rows(rows, count, (int64_t)(address - table->start));
    *out = table->start + (uintptr_t)(int64_t)row.entry;
    return true;
}

/// Read the start of an entry. Each entry lies in one segment.
static bool open_entry(const memrt__loaded_object_t *object, uintptr_t at, entry_t *out)
{
    memrt__address_range_t segment;
    if (!memrt__loaded_object_segment(object, at, &segment)) {
        return false;
    }
    memrt__frame_reader_t reader = {(const void *)at, (const void *)segment.end, false};
    uint64_t length = memrt__frame_read(&reader, 4);
    if (length > (uint64_t)(reader.end - reader.at)) { /* also entries of 4 GiB, in long format */
        return false;
    }
    reader.end = reader.at + length;
    uintptr_t position = (uintptr_t)reader.at;
    uint64_t offset = memrt__frame_read(&reader, 4);
    *out = (entry_t){reader, offset == 0 ? 0 : position - offset};
    return !reader.failed;
}

/// Read what a letter of the augmentation describes. Returns false for unknown letters, and for the
/// frames of signal handlers (S), whose address is not behind a call.
static bool read_augmentation(memrt__frame_reader_t *reader, char letter, cie_t *out)
{
    switch (letter) {
    case 'z':
        out->has_length = true;
        memrt__frame_read_unsigned(reader);
        return true;
    case 'R':
        out->constants.encoding = (unsigned)memrt__frame_read(reader, 1);
        return true;
    case 'L':
        memrt__frame_skip(reader, 1);
        return true;
    case 'P': {
        unsigned encoding = (unsigned)memrt__frame_read(reader, 1);
        memrt__frame_read_pointer(reader, encoding & MEMRT__FRAME_FORMAT);
        return true;
    }
    default:
        return false;
    }
}

/// Read the CIE at an address, and run its program.
static bool read_cie(const memrt__loaded_object_t *object, uintptr_t at, cie_t *out)
{
    entry_t entry;
    if (!open_entry(object, at, &entry) || entry.cie != 0) {
        return false;
    }
    memrt__frame_reader_t *reader = &entry.rest;
    *out = (cie_t){.constants = {.encoding = MEMRT__FRAME_ABSOLUTE}};
    uint64_t version = memrt__frame_read(reader, 1);
    const char *letters = (const char *)reader->at;
    size_t count = strnlen(letters, (size_t)(reader->end - reader->at));
    memrt__frame_skip(reader, count + 1);
    out->constants.code_factor = memrt__frame_read_unsigned(reader);
    out->constants.data_factor = memrt__frame_read_signed(reader);
    uint64_t column = memrt__frame_read_unsigned(reader); /* one byte in version 1, up to 127 */
    if (reader->failed || (version != 1 && version != 3) || column != MEMRT__FRAME_RETURN) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_augmentation(reader, letters[i], out)) {
            return false;
        }
    }
    out->rules = memrt__frame_rules_start();
    return !reader->failed &&
           memrt__frame_program_run(*reader, &out->constants, 0, UINTPTR_MAX, &out->rules);
}

/// Find the rules at an address of the code.
static bool find_rules(const memrt__loaded_object_t *object, uintptr_t address,
                       memrt__frame_rules_t *out)
{
    memrt__address_range_t table;
    uintptr_t fde;
    entry_t entry;
    cie_t cie;
    if (!memrt__loaded_object_frame_table(object, &table) || !find_fde(&table, address, &fde) ||
        !open_entry(object, fde, &entry) || !read_cie(object, entry.cie, &cie)) {
        return false;
    }
    memrt__frame_reader_t *reader = &entry.rest;
    memrt__address_range_t code;
    code.start = memrt__frame_read_pointer(reader, cie.constants.encoding);
    code.end = code.start +
               memrt__frame_read_pointer(reader, cie.constants.encoding & MEMRT__FRAME_FORMAT);
    if (cie.has_length) {
        memrt__frame_skip(reader, memrt__frame_read_unsigned(reader));
    }
    *out = cie.rules;
    return !reader->failed && memrt__address_range_has(&code, address) &&
           memrt__frame_program_run(*reader, &cie.constants, code.start, address, out);
}

/// Convert an offset to words, up to `most`. Returns false for other offsets.
static bool get_words(int64_t offset, unsigned least, unsigned most, unsigned *out)
{
    if (offset % 8 != 0 || offset / 8 < (int64_t)least || offset / 8 > (int64_t)most) {
        return false;
    }
    *out = (unsigned)(offset / 8);
    return true;
}

/// Express rules as a layout. Returns false where a layout cannot express the rules.
static bool express(const memrt__frame_rules_t *rules, memrt__frame_layout_t *out)
{
    if (rules->ret.kind != MEMRT__FRAME_SAVED || rules->ret.offset != -8 ||
        !get_words(rules->cfa_offset, 1, MEMRT__FRAME_CFA_MAX, &out->cfa)) {
        return false;
    }
    out->from_rbp = rules->cfa_register == MEMRT__FRAME_RBP;
    if (!out->from_rbp && rules->cfa_register != MEMRT__FRAME_RSP) {
        return false;
    }
    out->rbp = 0;
    return rules->rbp.kind == MEMRT__FRAME_SAME ||
           (rules->rbp.kind == MEMRT__FRAME_SAVED &&
            get_words(-rules->rbp.offset, 2, MEMRT__FRAME_RBP_MAX, &out->rbp));
}

memrt__frame_layout_t memrt__frame_layout_find(const memrt__loaded_object_t *object,
                                               uintptr_t address)
{
    memrt__frame_layout_t layout = {.kind = MEMRT__FRAME_UNKNOWN};
    memrt__frame_rules_t rules;
    if (find_rules(object, address, &rules)) {
        if (rules.ret.kind == MEMRT__FRAME_UNDEFINED) {
            layout.kind = MEMRT__FRAME_OUTERMOST;
        } else if (express(&rules, &layout)) {
            layout.kind = MEMRT__FRAME_KNOWN;
        }
    }
    return layout;
}
