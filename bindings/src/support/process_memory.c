#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#endif
#include "support/process_memory.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#define MORE_MAPPINGS 64u /* mappings that other threads may make between two calls */
#define MORE_SEGMENTS 64u /* segments that other threads may load between two calls */

/// List memrt's mappings in new memory. `*count` is the number of mappings. NULL with MemoryError.
/// The calls cannot fail, since all arguments are valid.
static memrt_mapping_t *read_mappings(size_t *count)
{
    size_t mappings = 0;
    (void)!memrt__api()->mappings(NULL, &mappings);
    size_t room = mappings + MORE_MAPPINGS;
    memrt_mapping_t *all = PyMem_Calloc(room, sizeof(*all));
    if (all == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < room; i++) {
        all[i].struct_size = sizeof(*all);
    }
    *count = room;
    (void)!memrt__api()->mappings(all, count);
    *count = Py_MIN(*count, room); /* GCOV_EXCL_BR_LINE: fewer mappings appear meanwhile */
    return all;
}

/// Append the numbers of a row to a list, as a tuple. Failure: returns -1 with an exception.
static int append_row(PyObject *list, PyObject *row)
{
    int result = row != NULL ? PyList_Append(list, row) : -1;
    Py_XDECREF(row);
    return result;
}

static PyObject *list_mappings(PyObject *module, PyObject *unused)
{
    size_t count = 0;
    (void)module;
    (void)unused;
    memrt_mapping_t *all = read_mappings(&count);
    PyObject *list = all == NULL ? NULL : PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row =
            Py_BuildValue("(KKK)", (unsigned long long)all[i].address,
                          (unsigned long long)all[i].bytes, (unsigned long long)all[i].use);
        if (append_row(list, row) < 0) {
            Py_CLEAR(list);
        }
    }
    PyMem_Free(all);
    return list;
}

/* The C library's malloc. The functions are looked up, because the package also works with older
   versions of glibc, and with other C libraries. */

/// Result of mallinfo2() in glibc 2.33 and later.
typedef struct malloc_figures {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
} malloc_figures_t;

typedef malloc_figures_t (*mallinfo2_fn)(void);
typedef int (*malloc_trim_fn)(size_t pad);
typedef const char *(*libc_version_fn)(void);

/// Return whether a function is an entry in a program's table of jumps to functions of libraries.
static bool is_jump(const void *function)
{
#ifdef __GLIBC__
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
           symbol->st_shndx == SHN_UNDEF;
#else /* musl has no dladdr1, and no figures of malloc */
    (void)function;
    return false;
#endif
}

/// Return the function of a loaded library, or NULL if another library has the function.
static const void *find_own_function(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    const void *function = handle == NULL ? NULL : dlsym(handle, name);
    Dl_info info;
    bool is_own =
        function != NULL && dladdr(function, &info) != 0 && strcmp(info.dli_fname, library) == 0;
    if (handle != NULL) {
        dlclose(handle);
    }
    return is_own ? function : NULL;
}

/// Return the function of the first library that has one, in the loader's order, or NULL.
static const void *find_in_libraries(const char *name)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    struct link_map *map = NULL;
    (void)dlinfo(program, RTLD_DI_LINKMAP, &map); /* cannot fail: the program is loaded */
    const void *function = NULL;
    for (; map != NULL && function == NULL; map = map->l_next) {
        function = map->l_name[0] == 0 ? NULL : find_own_function(map->l_name, name);
    }
    dlclose(program);
    return function;
}

/// Return the malloc() that is called, or NULL. In a program that has a fixed address and stores
/// the address of malloc(), for example Debian's Python 3.11, dlsym() finds a jump of the program.
static const void *find_malloc(void)
{
    const void *function = dlsym(RTLD_DEFAULT, "malloc");
    return function != NULL && is_jump(function) ? find_in_libraries("malloc") : function;
}

/// Return whether malloc() is a function of glibc. `file` is the file of malloc().
static bool is_malloc_of_glibc(const char **file)
{
    Dl_info used, libc;
    const void *version = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    const void *function = version == NULL ? NULL : find_malloc();
    *file = "an unknown library";
    /* GCOV_EXCL_BR_START: glibc has both symbols */
    if (function == NULL || dladdr(version, &libc) == 0 || dladdr(function, &used) == 0) {
        return false;
    }
    /* GCOV_EXCL_BR_STOP */
    *file = used.dli_fname;
    return used.dli_fbase == libc.dli_fbase;
}

static PyObject *make_reason(const char *file)
{
    libc_version_fn version;
    *(void **)&version = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    if (version == NULL) { /* GCOV_EXCL_BR_LINE: only musl has no version */
        return PyUnicode_FromString("the C library is not glibc, and reports no figures");
    }
    if (file != NULL) {
        return PyUnicode_FromFormat("malloc is replaced by %s", file);
    }
    return PyUnicode_FromFormat("glibc %s reports no figures of malloc: use glibc 2.33 or later",
                                version());
}

static PyObject *read_malloc_figures(PyObject *module, PyObject *unused)
{
    const char *file;
    mallinfo2_fn mallinfo2_found;
    (void)module;
    (void)unused;
    *(void **)&mallinfo2_found = dlsym(RTLD_DEFAULT, "mallinfo2");
    if (!is_malloc_of_glibc(&file)) {
        return make_reason(file);
    }
    if (mallinfo2_found == NULL) { /* GCOV_EXCL_BR_LINE: only before glibc 2.33 */
        return make_reason(NULL);
    }
    malloc_figures_t figures;
    Py_BEGIN_ALLOW_THREADS;
    figures = mallinfo2_found();
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("(nnnnn)", (Py_ssize_t)figures.arena, (Py_ssize_t)figures.uordblks,
                         (Py_ssize_t)figures.fordblks, (Py_ssize_t)figures.hblks,
                         (Py_ssize_t)figures.hblkhd);
}

void memrt__trim_malloc(void)
{
    const char *file;
    malloc_trim_fn trim;
    *(void **)&trim = dlsym(RTLD_DEFAULT, "malloc_trim");
    if (trim != NULL && is_malloc_of_glibc(&file)) { /* GCOV_EXCL_BR_LINE: glibc has the symbol */
        (void)trim(0);
    }
}

/// Segments of programs and libraries. `count` may exceed `room`.
typedef struct segments {
    unsigned long long (*bounds)[2]; ///< start and end
    size_t room, count;
} segments_t;

/// Add the segments of a program or library. Called by the loader, which holds a lock.
static int add_segments(struct dl_phdr_info *object, size_t bytes, void *context)
{
    segments_t *segments = context;
    (void)bytes;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD) {
            continue;
        }
        if (segments->count < segments->room) {
            unsigned long long *bounds = segments->bounds[segments->count];
            bounds[0] = object->dlpi_addr + segment->p_vaddr;
            bounds[1] = bounds[0] + segment->p_memsz;
        }
        segments->count++;
    }
    return 0;
}

/// Visit all objects, without the GIL: a thread that loads a library may wait for the GIL.
static void visit_objects(segments_t *segments)
{
    segments->count = 0;
    Py_BEGIN_ALLOW_THREADS;
    dl_iterate_phdr(add_segments, segments);
    Py_END_ALLOW_THREADS;
}

static PyObject *list_segments(PyObject *module, PyObject *unused)
{
    segments_t segments = {0};
    (void)module;
    (void)unused;
    visit_objects(&segments);
    segments.room = segments.count + MORE_SEGMENTS;
    segments.bounds = PyMem_Calloc(segments.room, sizeof(*segments.bounds));
    if (segments.bounds == NULL) {
        return PyErr_NoMemory();
    }
    visit_objects(&segments);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < Py_MIN(segments.count, segments.room); i++) {
        PyObject *row = Py_BuildValue("(KK)", segments.bounds[i][0], segments.bounds[i][1]);
        if (append_row(list, row) < 0) {
            Py_CLEAR(list);
        }
    }
    PyMem_Free(segments.bounds);
    return list;
}

PyMethodDef memrt__process_memory_methods[] = {
    {"mappings", list_mappings, METH_NOARGS,
     "mappings() -> list of tuple of int\n\n"
     "Return address, bytes and use of each range of memory that memrt has mapped."},
    {"malloc_figures", read_malloc_figures, METH_NOARGS,
     "malloc_figures() -> tuple of int, or str\n\n"
     "Return bytes of arenas, bytes in use and free there, number and bytes of mapped blocks. A\n"
     "str is the reason for having no figures."},
    {"segments", list_segments, METH_NOARGS,
     "segments() -> list of tuple of int\n\n"
     "Return start and end of each segment of programs and libraries in memory."},
    {NULL, NULL, 0, NULL},
};
