#include "support/suite.h"

#include <dlfcn.h>
#include <string.h>

#include "runtime/os/loaded_object.h"

typedef struct seen {
    bool is_registered;
    size_t number;
    uintptr_t address;
    size_t visits;
    bool has_table;
} seen_t;

static void look(const memrt__loaded_object_t *object, void *context)
{
    seen_t *seen = context;
    memrt__address_range_t table;
    seen->visits++;
    seen->has_table = memrt__loaded_object_frame_table(object, &table);
    seen->is_registered = memrt__loaded_object_register(object, seen->address, &seen->number);
}

static seen_t visit(uintptr_t address)
{
    seen_t seen = {.address = address};
    memrt__loaded_object_start();
    ck_assert_int_eq(memrt__loaded_object_visit(address, look, &seen), seen.visits != 0);
    return seen;
}

TEST(program_and_c_library_are_permanent)
{
    seen_t seen = visit((uintptr_t)look);
    ck_assert(seen.visits == 1 && seen.is_registered && seen.has_table);
    ck_assert_uint_eq(seen.number, MEMRT__OBJECT_PERMANENT);
    seen = visit((uintptr_t)dlsym(RTLD_DEFAULT, "qsort"));
    ck_assert(seen.visits == 1 && seen.is_registered);
}

TEST(address_outside_of_all_objects_has_no_object)
{
    int local;
    ck_assert_uint_eq(visit((uintptr_t)&local).visits, 0);
}

static uintptr_t load_plugin(const char *path, void **library)
{
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(*library != NULL, "%s", dlerror());
    return (uintptr_t)dlsym(*library, "plugin_call");
}

TEST(library_is_registered_once_and_known_while_loaded)
{
    void *library;
    uintptr_t code = load_plugin(MEMRT_FRAME_PLUGIN, &library);
    seen_t seen = visit(code);
    if (dlsym(RTLD_DEFAULT, "_dl_find_object") == NULL) {
        ck_assert(!seen.is_registered);
        dlclose(library);
        return; /* glibc before 2.35 */
    }
    ck_assert(seen.is_registered);
    ck_assert_uint_ne(seen.number, MEMRT__OBJECT_PERMANENT);
    ck_assert_uint_eq(visit(code).number, seen.number);
    ck_assert(memrt__loaded_object_is_at(seen.number, code));
    ck_assert(!memrt__loaded_object_is_at(seen.number, (uintptr_t)look));
    dlclose(library);
    ck_assert(!memrt__loaded_object_is_at(seen.number, code));
}

/* Copies of the segments of a library, for changes by a test. */
typedef struct copied {
    ElfW(Phdr) segments[16];
    memrt__loaded_object_t object;
} copied_t;

static void copy_object(const memrt__loaded_object_t *object, void *context)
{
    copied_t *copied = context;
    ck_assert_uint_le(object->dlpi_phnum, 16);
    copied->object = *object;
    memcpy(copied->segments, object->dlpi_phdr, object->dlpi_phnum * sizeof(ElfW(Phdr)));
    copied->object.dlpi_phdr = copied->segments;
}

/// Make the library's notes unusable: point each at `bytes`.
static void replace_notes(copied_t *copied, const void *bytes, size_t size)
{
    for (size_t i = 0; i < copied->object.dlpi_phnum; i++) {
        ElfW(Phdr) *segment = &copied->segments[i];
        if (segment->p_type == PT_NOTE) {
            segment->p_vaddr = (uintptr_t)bytes - copied->object.dlpi_addr;
            segment->p_memsz = size;
        }
    }
    copied->segments[copied->object.dlpi_phnum++] =
        (ElfW(Phdr)){.p_type = PT_LOAD,
                     .p_flags = PF_R,
                     .p_vaddr = ((uintptr_t)bytes & ~(uintptr_t)7) - copied->object.dlpi_addr,
                     .p_memsz = 128};
}

typedef struct note {
    ElfW(Nhdr) header;
    char name[4];
    unsigned char id[20];
} note_t;

static const note_t notes[][3] = {
    {{{4, 20, NT_GNU_ABI_TAG}, "GNU", {0}}},
    {{{4, 20, NT_GNU_BUILD_ID}, "XYZ", {0}}},
    {{{4, 12, NT_GNU_BUILD_ID}, "GNU", {0}}},
    {{{8, 16, NT_GNU_BUILD_ID}, "GNU", {0}}},
    {{{UINT32_MAX, 20, NT_GNU_BUILD_ID}, "GNU", {0}}},
    {{{4, UINT32_MAX, NT_GNU_BUILD_ID}, "GNU", {0}}},
};

TEST_EACH(library_without_a_build_id_is_refused, sizeof(notes) / sizeof(notes[0]) + 3)
{
    void *library;
    uintptr_t code = load_plugin(MEMRT_OTHER_FRAME_PLUGIN, &library);
    copied_t copied;
    size_t number;
    ck_assert(memrt__loaded_object_visit(code, copy_object, &copied));
    size_t count = sizeof(notes) / sizeof(notes[0]);
    const note_t *note = notes[(size_t)index < count ? (size_t)index : 0];
    const char *bytes = (const char *)note + ((size_t)index == count ? 2 : 0); /* not aligned */
    replace_notes(&copied, bytes, (size_t)index == count + 2 ? 4096 : sizeof(notes[0]));
    if ((size_t)index == count + 1) {
        copied.object.dlpi_phnum--; /* in no segment */
    }
    memrt__loaded_object_start();
    ck_assert(!memrt__loaded_object_register(&copied.object, code, &number));
    dlclose(library);
}

TEST(register_of_objects_can_be_full)
{
    copied_t copied;
    size_t number, most = 0;
    void *library;
    uintptr_t code = load_plugin(MEMRT_OTHER_FRAME_PLUGIN, &library);
    ck_assert(memrt__loaded_object_visit(code, copy_object, &copied));
    note_t made[1] = {{{4, 20, NT_GNU_BUILD_ID}, "GNU", {0}}};
    replace_notes(&copied, made, sizeof(made));
    memrt__loaded_object_start();
    for (size_t i = 0; i < MEMRT__OBJECTS + 2; i++) {
        memcpy(made[0].id, &i, sizeof(i)); /* another object for the register */
        bool added = memrt__loaded_object_register(&copied.object, code, &number);
        most += added;
    }
    ck_assert_uint_lt(most, MEMRT__OBJECTS);
    if (dlsym(RTLD_DEFAULT, "_dl_find_object") != NULL) {
        ck_assert_uint_ge(most, MEMRT__OBJECTS - 8);
    }
    dlclose(library);
}
