#include "frames.h"

#include <stdint.h>
#include <stdlib.h>

#include "calls.h"
#include "errors.h"
#include "owner.h"

/// A place in a code object, and its frame. The code is held, so that its address stays its own.
typedef struct known {
    PyCodeObject *code; ///< NULL: the slot is empty
    int instruction;
    memrt_frame_t frame;
} known_t;

#define SLOTS_FIRST 1024u

/// Places met so far, under the GIL: open addressing, at most half of the slots taken.
static struct {
    known_t *slots; ///< `capacity` of them, a power of two, or NULL
    size_t capacity, count;
} cache;

static size_t home(const PyCodeObject *code, int instruction)
{
    uint64_t mixed =
        ((uint64_t)(uintptr_t)code ^ (uint64_t)instruction << 48) * 0x9E3779B97F4A7C15u;
    return (size_t)(mixed >> 20) & (cache.capacity - 1);
}

/// The slot of a place, or the empty one where it would stand.
static known_t *slot_of(const PyCodeObject *code, int instruction)
{
    size_t i = home(code, instruction);
    while (cache.slots[i].code != NULL &&
           (cache.slots[i].code != code || cache.slots[i].instruction != instruction)) {
        i = (i + 1) & (cache.capacity - 1);
    }
    return &cache.slots[i];
}

/// Make room for one more; false: no memory.
static int reserve(void)
{
    if (cache.count < cache.capacity / 2) {
        return 1;
    }
    known_t *old = cache.slots;
    size_t had = cache.capacity, wanted = had == 0 ? SLOTS_FIRST : 2 * had;
    known_t *fresh = calloc(wanted, sizeof(*fresh));
    if (fresh == NULL) {
        return 0;
    }
    cache.slots = fresh;
    cache.capacity = wanted;
    for (size_t i = 0; i < had; i++) {
        if (old[i].code != NULL) {
            *slot_of(old[i].code, old[i].instruction) = old[i];
        }
    }
    free(old);
    return 1;
}

/// The text is borrowed from the object; NULL where it has none that is UTF-8.
static const char *utf8(PyObject *text)
{
    const char *result = PyUnicode_AsUTF8(text);
    if (result == NULL) {
        PyErr_Clear();
    }
    return result;
}

/// What was raised stays raised.
static memrt_frame_t describe(const memrt_call_t *call)
{
    PyCodeObject *code = call->code;
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *name = code->co_qualname;
#else
    PyObject *name = code->co_name;
#endif
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    int line = PyCode_Addr2Line(code, call->instruction);
    memrt_frame_t frame =
        memrt__api()->frame_new(utf8(name), utf8(code->co_filename), line > 0 ? (uint64_t)line : 0);
    memrt__pending_restore(&pending);
    return frame;
}

/// The frame, as memrt knows it; 0: no memory.
static memrt_frame_t look_up(const memrt_call_t *call)
{
    if (!reserve()) {
        return 0;
    }
    known_t *known = slot_of(call->code, call->instruction);
    if (known->code == NULL) {
        memrt_frame_t fresh = describe(call);
        if (fresh == 0) {
            return 0;
        }
        Py_INCREF(call->code);
        *known = (known_t){call->code, call->instruction, fresh};
        cache.count++;
    }
    return known->frame;
}

/// Of the calling thread, if it holds the GIL.
static size_t frames_here(memrt_frame_t *out, size_t max)
{
    memrt_call_t calls[MEMRT_FRAMES_MAX];
    if (!memrt__holds_python()) {
        return 0;
    }
    size_t count = 0, depth = memrt__calls_here(calls, Py_MIN(max, MEMRT_FRAMES_MAX));
    for (size_t i = 0; i < depth; i++) {
        memrt_frame_t known = look_up(&calls[i]);
        if (known != 0) {
            out[count++] = known;
        }
    }
    return count;
}

void memrt__frames_setup(void)
{
    memrt__api()->set_frames(frames_here);
}

/// One frame as Python knows it; NULL with an exception.
static PyObject *frame_tuple(memrt_frame_t frame)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text)};
    memrt_status_t status = memrt__api()->frame_text(frame, &text);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "frame %llu", (unsigned long long)frame);
    }
    return Py_BuildValue("(zzKKO)", text.function, text.file, (unsigned long long)text.line,
                         (unsigned long long)text.offset, text.native ? Py_True : Py_False);
}

/// A number of a site; 0 for one that no site has. -1 with an exception.
static int site_argument(PyObject *object, uint32_t *site)
{
    unsigned long number = PyLong_AsUnsignedLong(object);
    if (number == (unsigned long)-1 && PyErr_Occurred() != NULL) {
        return -1;
    }
    *site = number > UINT32_MAX ? 0 : (uint32_t)number;
    return 0;
}

static PyObject *site_frames(PyObject *module, PyObject *object)
{
    memrt_frame_t frames[2 * MEMRT_FRAMES_MAX];
    uint32_t site;
    (void)module;
    if (site_argument(object, &site) < 0) {
        return NULL;
    }
    size_t count = memrt__api()->site_frames(site, frames, Py_ARRAY_LENGTH(frames));
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *frame = frame_tuple(frames[i]);
        if (frame == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, frame);
        }
    }
    return tuple;
}

static PyObject *site_births(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    memrt_site_t site = {.struct_size = sizeof(site)};
    for (uint32_t i = 1; list != NULL && memrt__api()->site_read(i, &site) == MEMRT_OK; i++) {
        PyObject *row =
            Py_BuildValue("(KK)", (unsigned long long)site.births, (unsigned long long)site.bytes);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *lasting_add(PyObject *module, PyObject *args)
{
    const char *pattern, *what;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss:lasting_add", &pattern, &what)) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->lasting_add(pattern, what);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot expect %.100s to last, as %.100s", pattern, what);
    }
    Py_RETURN_NONE;
}

static PyObject *lasting_at(PyObject *module, PyObject *object)
{
    uint32_t site;
    (void)module;
    if (site_argument(object, &site) < 0) {
        return NULL;
    }
    const char *what = memrt__api()->lasting_at(site);
    return what == NULL ? Py_NewRef(Py_None) : PyUnicode_FromString(what);
}

void memrt__frames_forget(void)
{
    known_t *slots = cache.slots;
    size_t capacity = cache.capacity;
    cache.slots = NULL;
    cache.capacity = cache.count = 0;
    for (size_t i = 0; i < capacity; i++) { /* which may free code objects, and run what follows */
        Py_XDECREF(slots[i].code);
    }
    free(slots);
}

PyMethodDef memrt__frames_methods[] = {
    {"site_frames", site_frames, METH_O,
     "site_frames(site) -> tuple of (function, file, line, offset, native)\n\n"
     "The calls of a site, innermost first, native code before Python; empty for no site."},
    {"site_births", site_births, METH_NOARGS,
     "site_births() -> list of (births, bytes)\n\nOf the sites 1, 2, 3 and so on."},
    {"lasting_add", lasting_add, METH_VARARGS,
     "lasting_add(pattern, what)\n\nAs memrt_api_t.lasting_add."},
    {"lasting_at", lasting_at, METH_O,
     "lasting_at(site) -> str or None\n\nWhat is expected to last that is born at the site."},
    {NULL, NULL, 0, NULL},
};
