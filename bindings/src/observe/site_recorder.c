/// Cache of frames by code object and instruction, so that a tracked allocation rarely creates a
/// frame. The functions need the GIL. In a free-threaded build, a mutex protects the cache. Code
/// objects are freed, and frames are created, outside of the mutex, because both may run or wait
/// for Python code.

#include "observe/site_recorder.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/interpreter.h"
#include "observe/frames.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "support/free_threading.h"

/// An instruction of a code object, with its frame. The entry holds the code object, so the address
/// of the code stays unique.
typedef struct cache_entry {
    PyCodeObject *code; ///< NULL: the slot is empty
    int instruction;
    bool is_user; ///< outside of the standard library and of installed packages
    memrt_frame_t frame;
} cache_entry_t;

#define SLOTS_FIRST 1024u
/// Maximum number of slots. A program that creates code without end must be able to free the code.
#define SLOTS_MOST 65536u

/// Open addressing, at most half of the slots taken.
typedef struct cache {
    cache_entry_t *slots; ///< `capacity` slots, a power of two, or NULL
    size_t capacity, count;
} cache_t;

static memrt_mutex_t mutex = MEMRT_MUTEX_INIT;
static cache_t cache; ///< mutex

static size_t hash_instruction(const PyCodeObject *code, int instruction)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)code ^ (uint64_t)instruction << 48) * MEMRT_HASH_FACTOR;
    return (size_t)(mixed >> 20) & (cache.capacity - 1);
}

/// Return the slot of an instruction, or the empty slot for it.
static cache_entry_t *find_slot(const PyCodeObject *code, int instruction)
{
    size_t i = hash_instruction(code, instruction);
    while (cache.slots[i].code != NULL &&
           (cache.slots[i].code != code || cache.slots[i].instruction != instruction)) {
        i = (i + 1) & (cache.capacity - 1);
    }
    return &cache.slots[i];
}

/// Empty the cache and return the entries, for free_entries(). The caller holds the mutex.
static cache_t take_entries(void)
{
    cache_t taken = cache;
    cache = (cache_t){0};
    return taken;
}

/// Free entries. Freeing code objects may run Python code, so the caller holds no mutex.
static void free_entries(const cache_t *taken)
{
    for (size_t i = 0; i < taken->capacity; i++) {
        Py_XDECREF(taken->slots[i].code);
    }
    free(taken->slots);
}

/// Make room for one more entry. Returns false without memory. The entries of a cache of maximum
/// size move to `*full`.
static int reserve_slot(cache_t *full)
{
    if (cache.count < cache.capacity / 2) {
        return 1;
    }
    if (cache.capacity == SLOTS_MOST) {
        *full = take_entries();
    }
    cache_entry_t *old = cache.slots;
    size_t old_capacity = cache.capacity,
           new_capacity = old_capacity == 0 ? SLOTS_FIRST : 2 * old_capacity;
    cache_entry_t *fresh = calloc(new_capacity, sizeof(*fresh));
    if (fresh == NULL) {
        return 0;
    }
    cache.slots = fresh;
    cache.capacity = new_capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].code != NULL) {
            *find_slot(old[i].code, old[i].instruction) = old[i];
        }
    }
    free(old);
    return 1;
}

/// Return the text of a str, borrowed; NULL for a str that UTF-8 cannot encode.
static const char *encode_utf8(PyObject *text)
{
    const char *result = PyUnicode_AsUTF8(text);
    if (result == NULL) {
        PyErr_Clear();
    }
    return result;
}

/// Create the frame of a call. A pending exception stays pending. 0: no memory.
static memrt_frame_t create_frame(const memrt_call_t *call)
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
    memrt_frame_t frame = memrt__api()->frame_new(encode_utf8(name), encode_utf8(code->co_filename),
                                                  line > 0 ? (uint64_t)line : 0);
    memrt__pending_restore(&pending);
    return frame;
}

/// Return whether code is neither of the standard library nor of an installed package.
static bool is_user_code(const PyCodeObject *code)
{
    static const char *const inside[] = {"/site-packages/", "/dist-packages/",
                                         "/lib/python3",    "/lib64/python3",
                                         "<frozen ",        "<__array_function__"};
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    const char *file = encode_utf8(code->co_filename);
    memrt__pending_restore(&pending);
    size_t i = 0;
    while (file != NULL && i < Py_ARRAY_LENGTH(inside) && strstr(file, inside[i]) == NULL) {
        i++;
    }
    return file == NULL || i == Py_ARRAY_LENGTH(inside);
}

/// Write the cached frames of calls to `out`; 0: not in the cache. Returns the position of the
/// first cached frame of user code, or `count`.
static size_t find_cached_frames(const memrt_call_t *calls, size_t count, memrt_frame_t *out)
{
    size_t user = count;
    MEMRT_MUTEX_LOCK(&mutex);
    for (size_t i = 0; i < count; i++) {
        const cache_entry_t *entry =
            cache.capacity == 0 ? NULL : find_slot(calls[i].code, calls[i].instruction);
        out[i] = entry == NULL ? 0 : entry->frame;
        user = user == count && entry != NULL && entry->is_user ? i : user;
    }
    MEMRT_MUTEX_UNLOCK(&mutex);
    return user;
}

/// Put a frame into the cache, unless memory ran out or the frame is cached already.
static void cache_frame(const memrt_call_t *call, bool is_user, memrt_frame_t frame)
{
    cache_t full = {0};
    MEMRT_MUTEX_LOCK(&mutex);
    cache_entry_t *entry = reserve_slot(&full) ? find_slot(call->code, call->instruction) : NULL;
    if (entry != NULL && entry->code == NULL) { /* GCOV_EXCL_BR_LINE: only after a collection */
        Py_INCREF(call->code);
        *entry = (cache_entry_t){call->code, call->instruction, is_user, frame};
        cache.count++;
    }
    MEMRT_MUTEX_UNLOCK(&mutex);
    free_entries(&full);
}

/// Create and cache the frame of a call; 0: no memory. create_frame() may run the collector, which
/// may reenter this function or run memrt__site_recorder_forget(). So no slot pointer is kept
/// across that call.
static memrt_frame_t add_frame(const memrt_call_t *call, bool is_user)
{
    memrt_frame_t frame = create_frame(call);
    if (frame != 0) {
        cache_frame(call, is_user, frame);
    }
    return frame;
}

/// Create the frames of calls that have no cached frame. Returns the position of the first call of
/// user code, or `count`.
static size_t complete_frames(const memrt_call_t *calls, size_t count, memrt_frame_t *frames)
{
    size_t user = find_cached_frames(calls, count, frames);
    for (size_t i = 0; i < count; i++) {
        if (frames[i] == 0) {
            bool is_user = is_user_code(calls[i].code);
            frames[i] = add_frame(&calls[i], is_user);
            user = i < user && is_user ? i : user;
        }
    }
    return user;
}

/// Replace the last two of `count` > 2 frames, all of libraries, by the innermost call of user code
/// and the call of a library there, if such a call exists.
static void end_at_user_call(PyThreadState *thread, memrt_frame_t *out, size_t count)
{
    memrt_call_t calls[MEMRT_FRAMES_MAX];
    memrt_frame_t frames[MEMRT_FRAMES_MAX];
    size_t depth = memrt__frames_of(thread, calls, MEMRT_FRAMES_MAX);
    size_t user = complete_frames(calls, depth, frames);
    if (user < depth && user > 0 && frames[user] != 0 && frames[user - 1] != 0) {
        out[count - 2] = frames[user - 1];
        out[count - 1] = frames[user];
    }
}

/// Write the Python frames of the calling thread, if it holds the GIL. Returns their number.
static size_t write_python_frames(memrt_frame_t *out, size_t max)
{
    memrt_call_t calls[MEMRT_FRAMES_MAX];
    if (!memrt__holds_python()) {
        return 0;
    }
    PyThreadState *thread = PyThreadState_Get();
    size_t count = 0, limit = Py_MIN(max, MEMRT_FRAMES_MAX);
    size_t depth = memrt__frames_of(thread, calls, limit);
    size_t user = complete_frames(calls, depth, out);
    for (size_t i = 0; i < depth; i++) {
        out[count] = out[i];
        count += out[i] != 0;
    }
    if (user == depth && count == limit && limit > 2) {
        end_at_user_call(thread, out, count);
    }
    return count;
}

void memrt__site_recorder_setup(void)
{
    memrt__api()->set_frames(write_python_frames);
}

/// Return one frame as a tuple; NULL with an exception.
static PyObject *build_frame_tuple(memrt_frame_t frame)
{
    memrt_frame_text_t text = {.struct_size = sizeof(text)};
    memrt_status_t status = memrt__api()->frame_text(frame, &text);
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: libmemrt made the frame */
        return memrt__raise(status, "cannot read frame %llu", (unsigned long long)frame);
    }
    return Py_BuildValue("(NNKKO)", memrt__text(text.function), memrt__text(text.file),
                         (unsigned long long)text.line, (unsigned long long)text.offset,
                         text.native ? Py_True : Py_False);
}

/// Convert a site number; 0, which no site has, for a number out of range. -1 with an exception.
static int read_site_argument(PyObject *object, uint32_t *site)
{
    unsigned long number = PyLong_AsUnsignedLong(object);
    if (number == (unsigned long)-1 && PyErr_Occurred() != NULL) {
        return -1;
    }
    *site = number > UINT32_MAX ? 0 : (uint32_t)number;
    return 0;
}

static PyObject *list_site_frames(PyObject *module, PyObject *object)
{
    memrt_frame_t frames[2 * MEMRT_FRAMES_MAX];
    uint32_t site;
    (void)module;
    if (read_site_argument(object, &site) < 0) {
        return NULL;
    }
    size_t count = memrt__api()->site_frames(site, frames, Py_ARRAY_LENGTH(frames));
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *frame = build_frame_tuple(frames[i]);
        if (frame == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, frame);
        }
    }
    return tuple;
}

static PyObject *list_site_allocations(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    memrt_site_t site = {.struct_size = sizeof(site)};
    for (uint32_t i = 1; list != NULL && memrt__api()->site_read(i, &site) == MEMRT_OK; i++) {
        PyObject *row = Py_BuildValue("(KK)", (unsigned long long)site.allocations,
                                      (unsigned long long)site.bytes);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

/// Return a new list of file and line of the calls of a thread. NULL with an exception.
static PyObject *build_calls_of(PyThreadState *thread)
{
    memrt_call_t calls[MEMRT_FRAMES_MAX];
    size_t count = memrt__frames_of(thread, calls, MEMRT_FRAMES_MAX);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        int line = PyCode_Addr2Line(calls[i].code, calls[i].instruction);
        PyObject *row = Py_BuildValue("(Oi)", calls[i].code->co_filename, line);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

static PyObject *list_running_calls(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (memrt__need_gil() < 0) {
        return NULL;
    }
    int collector_was_on = PyGC_Disable(); /* a collection may run code, and end calls */
    PyObject *list = PyList_New(0);
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    for (; list != NULL && thread != NULL; thread = PyThreadState_Next(thread)) {
        PyObject *calls = build_calls_of(thread);
        if (calls == NULL || PyList_Append(list, calls) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(calls);
    }
    if (collector_was_on) {
        PyGC_Enable();
    }
    return list;
}

static PyObject *add_suppression(PyObject *module, PyObject *args)
{
    const char *pattern, *description;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss:suppression_add", &pattern, &description)) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->suppression_add(pattern, description);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot add suppression '%.100s' with description '%.100s'",
                            pattern, description);
    }
    Py_RETURN_NONE;
}

static PyObject *find_suppression(PyObject *module, PyObject *object)
{
    uint32_t site;
    (void)module;
    if (read_site_argument(object, &site) < 0) {
        return NULL;
    }
    const char *description = memrt__api()->suppression_at(site);
    return description == NULL ? Py_NewRef(Py_None) : memrt__text(description);
}

void memrt__site_recorder_forget(void)
{
    MEMRT_MUTEX_LOCK(&mutex);
    cache_t taken = take_entries();
    MEMRT_MUTEX_UNLOCK(&mutex);
    free_entries(&taken);
}

PyMethodDef memrt__frames_methods[] = {
    {"site_frames", list_site_frames, METH_O,
     "site_frames(site) -> tuple of (function, file, line, offset, native)\n\n"
     "Return the calls of a site, innermost first, native code before Python.\n"
     "Return an empty tuple for an unknown site."},
    {"site_allocations", list_site_allocations, METH_NOARGS,
     "site_allocations() -> list of (allocations, bytes)\n\n"
     "Return the allocations of the sites 1, 2, 3 and so on."},
    {"running_calls", list_running_calls, METH_NOARGS,
     "running_calls() -> list of lists of (file, line)\n\n"
     "Return the Python calls of each thread, innermost first, at most 128 of a thread."},
    {"suppression_add", add_suppression, METH_VARARGS,
     "suppression_add(pattern, description)\n\nAdd a suppression, as memrt_api_t.suppression_add."},
    {"suppression_at", find_suppression, METH_O,
     "suppression_at(site) -> str or None\n\n"
     "Return the text of the suppression that matches the site."},
    {NULL, NULL, 0, NULL},
};
