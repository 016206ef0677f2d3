#include "runtime/os/loaded_object.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"

/* Part of a build id's note that is compared: header, name "GNU" and the first half of the id. */
#define NOTE_HEADER (sizeof(ElfW(Nhdr)) + sizeof(ELF_NOTE_GNU))
#define ID_BYTES 16u
#define NOTE (NOTE_HEADER + ID_BYTES)

/// A registered object.
typedef struct record {
    memrt__address_range_t range; ///< from the first to the last segment
    const void *frame_table;      ///< .eh_frame_hdr
    ElfW(Ehdr) header;            ///< contents of the object's start
    uintptr_t note;               ///< address of the build id's note
    unsigned char id[NOTE];       ///< contents of the note
    size_t is_ready;              ///< release by the writer of the record
} record_t;

/// The struct dl_find_object of glibc 2.35, which older headers lack.
typedef struct found {
    unsigned long long flags;
    void *start, *end;
    struct link_map *link_map;
    void *frame_table;
    unsigned long long reserved[7];
} found_t;

static record_t records[MEMRT__OBJECTS];
static size_t taken = MEMRT__OBJECT_PERMANENT + 1; /* records in use, ready or not */
static int (*find_object)(void *address, found_t *out);

void memrt__loaded_object_start(void)
{
    *(void **)&find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
}

static memrt__address_range_t get_range(const memrt__loaded_object_t *object,
                                        const ElfW(Phdr) * segment)
{
    uintptr_t start = object->dlpi_addr + segment->p_vaddr;
    return (memrt__address_range_t){start, start + segment->p_memsz};
}

bool memrt__loaded_object_segment(const memrt__loaded_object_t *object, uintptr_t address,
                                  memrt__address_range_t *out)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        *out = get_range(object, segment);
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) != 0 &&
            memrt__address_range_has(out, address)) {
            return true;
        }
    }
    return false;
}

/// Find a segment of a type, from segment `*i` on. `*i` becomes the number of the next segment.
static bool find_segment(const memrt__loaded_object_t *object, unsigned type, size_t *i,
                         memrt__address_range_t *out)
{
    while (*i < object->dlpi_phnum) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[(*i)++];
        if (segment->p_type == type) {
            *out = get_range(object, segment);
            return true;
        }
    }
    return false;
}

bool memrt__loaded_object_frame_table(const memrt__loaded_object_t *object,
                                      memrt__address_range_t *out)
{
    size_t i = 0;
    memrt__address_range_t load;
    return find_segment(object, PT_GNU_EH_FRAME, &i, out) &&
           memrt__loaded_object_segment(object, out->start, &load) && out->end <= load.end;
}

typedef struct search {
    uintptr_t address;
    void (*visit)(const memrt__loaded_object_t *object, void *context);
    void *context;
} search_t;

static int visit_object(struct dl_phdr_info *object, size_t size, void *argument)
{
    const search_t *search = argument;
    memrt__address_range_t range;
    (void)size;
    if (!memrt__loaded_object_segment(object, search->address, &range)) {
        return 0;
    }
    search->visit(object, search->context);
    return 1;
}

bool memrt__loaded_object_visit(uintptr_t address,
                                void (*visit)(const memrt__loaded_object_t *object, void *context),
                                void *context)
{
    search_t search = {address, visit, context};
    return dl_iterate_phdr(visit_object, &search) != 0;
}

static bool has_code_at(const memrt__loaded_object_t *object, uintptr_t address)
{
    memrt__address_range_t range;
    return memrt__loaded_object_segment(object, address, &range);
}

static bool is_permanent(const memrt__loaded_object_t *object)
{
    return (uintptr_t)object->dlpi_phdr == getauxval(AT_PHDR) ||
           has_code_at(object, (uintptr_t)memrt__loaded_object_start) ||
           has_code_at(object, (uintptr_t)dl_iterate_phdr);
}

/// Return the size of a note's field with its padding, or `most + 1` for larger fields.
static size_t get_padded(size_t size, size_t most)
{
    return size > most ? most + 1 : (size + 3) / 4 * 4;
}

/// Find the note of a build id in a range of notes. Returns 0 without such a note.
static uintptr_t find_note(const memrt__address_range_t *notes)
{
    uintptr_t at = notes->start;
    while (notes->end - at >= NOTE) {
        const ElfW(Nhdr) *note = (const void *)at;
        size_t most = notes->end - at;
        size_t size =
            sizeof(*note) + get_padded(note->n_namesz, most) + get_padded(note->n_descsz, most);
        if (size > most) {
            return 0;
        }
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof(ELF_NOTE_GNU) &&
            note->n_descsz >= ID_BYTES &&
            memcmp((const void *)(at + sizeof(*note)), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
            return at;
        }
        at += size;
    }
    return 0;
}

/// Find the note of an object's build id.
static bool find_build_id(const memrt__loaded_object_t *object, uintptr_t *out)
{
    memrt__address_range_t notes, load;
    *out = 0;
    for (size_t i = 0; *out == 0 && find_segment(object, PT_NOTE, &i, &notes);) {
        if (notes.start % 4 == 0 && memrt__loaded_object_segment(object, notes.start, &load) &&
            notes.end <= load.end) {
            *out = find_note(&notes);
        }
    }
    return *out != 0;
}

/// Compare memory by words. Faster than a call of memcmp() for few bytes.
static bool is_equal(const void *a, const void *b, size_t size)
{
    uint64_t differences = 0, left, right;
    MEMRT__ASSERT(size % sizeof(left) == 0);
    for (size_t i = 0; i < size; i += sizeof(left)) {
        memcpy(&left, (const char *)a + i, sizeof(left));
        memcpy(&right, (const char *)b + i, sizeof(right));
        differences |= left ^ right;
    }
    return differences == 0;
}

/// Return whether an object that the loader found is the object of a record.
///
/// The start of each object can be read. Objects with the same range, the same frame table and the
/// same ELF header, which has the size of the file, have the same segments: the note can be read.
static bool is_same(const record_t *record, const found_t *found)
{
    return (uintptr_t)found->start == record->range.start &&
           (uintptr_t)found->end == record->range.end &&
           found->frame_table == record->frame_table &&
           is_equal(found->start, &record->header, sizeof(record->header)) &&
           is_equal((const void *)record->note, record->id, NOTE);
}

/// Find the record of a loaded object. Returns 0 without a record.
static size_t find_record(const found_t *found)
{
    size_t count = memrt__load_relaxed(&taken);
    for (size_t i = MEMRT__OBJECT_PERMANENT + 1; i < count; i++) {
        if (memrt__load_acquire(&records[i].is_ready) != 0 && is_same(&records[i], found)) {
            return i;
        }
    }
    return 0;
}

/// Add the record of a loaded object. Returns 0 without room. Threads may add equal records at the
/// same time.
static size_t add_record(const found_t *found, uintptr_t note)
{
    size_t number;
    do {
        number = memrt__load_relaxed(&taken);
        if (number == MEMRT__OBJECTS) {
            return 0;
        }
    } while (!memrt__cas_relaxed(&taken, number, number + 1));
    record_t *record = &records[number];
    record->range = (memrt__address_range_t){(uintptr_t)found->start, (uintptr_t)found->end};
    record->frame_table = found->frame_table;
    record->note = note;
    memcpy(&record->header, found->start, sizeof(record->header));
    memcpy(record->id, (const void *)note, NOTE);
    memrt__store_release(&record->is_ready, 1);
    return number;
}

bool memrt__loaded_object_register(const memrt__loaded_object_t *object, uintptr_t address,
                                   size_t *number)
{
    found_t found;
    uintptr_t note;
    *number = MEMRT__OBJECT_PERMANENT;
    if (is_permanent(object)) {
        return true;
    }
    if (find_object == NULL || find_object((void *)address, &found) != 0) {
        return false;
    }
    *number = find_record(&found);
    if (*number == 0 && find_build_id(object, &note)) {
        *number = add_record(&found, note);
    }
    return *number != 0;
}

bool memrt__loaded_object_is_at(size_t number, uintptr_t address)
{
    const record_t *record = &records[number];
    found_t found;
    MEMRT__ASSERT(number != MEMRT__OBJECT_PERMANENT && memrt__load_relaxed(&record->is_ready) != 0);
    return find_object((void *)address, &found) == 0 && is_same(record, &found);
}
