#include "types/volatile.h"

#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/meminfo_object.h"
#include "core/volatile_content.h"
#include "support/arguments.h"
#include "support/errors.h"

#define CAPSULE "memrt.volatile"

/// Destructor of a pin.
static void end_pin(void *data, size_t size, void *info)
{
    (void)data;
    (void)size;
    memrt__content_end(info, true);
}

static memrt_content_t *get_content(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, CAPSULE);
}

static void destroy_capsule(PyObject *capsule)
{
    memrt__content_end(get_content(capsule), false);
}

static PyObject *volatile_new(PyObject *module, PyObject *nbytes)
{
    size_t size;
    (void)module;
    if (!memrt__size_argument(nbytes, &size) || memrt__content_set_up() < 0) {
        return NULL;
    }
    memrt_content_t *content = memrt__content_new(size);
    if (content == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(content, CAPSULE, destroy_capsule);
    if (capsule == NULL) {
        memrt__content_end(content, false);
    }
    return capsule;
}

/// Allocate a block of whole pages. Returns a new reference, or NULL with an exception.
static memrt_meminfo_t *allocate_block(const memrt_content_t *content)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = content->page_size};
    PyObject *handler = memrt__current_handler_for(Py_None);
    if (handler == NULL) {
        return NULL;
    }
    options.policy = memrt__handler_policy(handler);
    PyObject *object = memrt__meminfo_allocate(content->pages * content->page_size, &options);
    Py_DECREF(handler);
    memrt_meminfo_t *mi = NULL;
    if (object != NULL) {
        mi = memrt__meminfo_get((memrt_meminfo_object_t *)object);
        memrt__api()->acquire(mi);
        Py_DECREF(object);
    }
    return mi;
}

/// Pin a content, with a new block if there is none. -1 with an exception.
static int pin_content(memrt_content_t *content, bool *made)
{
    memrt_meminfo_t *fresh = NULL;
    if (memrt__content_pin(content, &fresh, made)) {
        return 0;
    }
    fresh = allocate_block(content);
    if (fresh == NULL) {
        return -1;
    }
    (void)memrt__content_pin(content, &fresh, made);
    if (fresh != NULL) { /* another thread allocated a block meanwhile */
        memrt__api()->release(fresh);
    }
    return 0;
}

/// Make a pin, as a MemInfo over the data. Its end ends the reference of the pin.
static PyObject *create_pin(memrt_content_t *content, memrt_meminfo_object_t *shell)
{
    memrt_meminfo_t *mi;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = end_pin, .dtor_info = content};
    memrt_status_t status =
        memrt__api()->meminfo_adopt(content->mi->data, content->size, &options, &mi);
    if (status != MEMRT_OK) {
        memrt__content_end(content, true);
        return memrt__raise(status, "cannot pin a volatile array of %zu bytes", content->size);
    }
    return memrt__meminfo_fill(shell, mi);
}

static PyObject *volatile_pin(PyObject *module, PyObject *capsule)
{
    bool made;
    (void)module;
    memrt_content_t *content = get_content(capsule);
    memrt_meminfo_object_t *shell = content == NULL ? NULL : memrt__meminfo_shell();
    if (shell == NULL) {
        return NULL;
    }
    PyObject *pin = pin_content(content, &made) < 0 ? NULL : create_pin(content, shell);
    if (pin == NULL) {
        Py_DECREF(shell);
        return NULL;
    }
    return Py_BuildValue("(NO)", pin, made ? Py_True : Py_False);
}

static PyObject *volatile_made(PyObject *module, PyObject *capsule)
{
    (void)module;
    memrt_content_t *content = get_content(capsule);
    if (content == NULL) {
        return NULL;
    }
    memrt__content_set_made(content);
    Py_RETURN_NONE;
}

static PyObject *volatile_drop(PyObject *module, PyObject *capsule)
{
    (void)module;
    memrt_content_t *content = get_content(capsule);
    if (content == NULL) {
        return NULL;
    }
    return PyBool_FromLong(memrt__content_drop(content));
}

static PyObject *volatile_read(PyObject *module, PyObject *capsule)
{
    (void)module;
    memrt_content_t *content = get_content(capsule);
    if (content == NULL) {
        return NULL;
    }
    memrt_content_state_t state = memrt__content_read(content);
    return Py_BuildValue("(KKK)", (unsigned long long)state.address,
                         (unsigned long long)state.bytes, (unsigned long long)state.pins);
}

PyMethodDef memrt__volatile_methods[] = {
    {"volatile_new", volatile_new, METH_O,
     "volatile_new(nbytes) -> content\n\n"
     "Return a capsule for a content of `nbytes`, without memory."},
    {"volatile_pin", volatile_pin, METH_O,
     "volatile_pin(content) -> (MemInfo, made)\n\n"
     "Pin a content. The pin lasts as long as the MemInfo. `made` is False for a content that "
     "must\n"
     "be made, because it is new or was dropped."},
    {"volatile_made", volatile_made, METH_O,
     "volatile_made(content)\n\nMark a pinned content as made."},
    {"volatile_drop", volatile_drop, METH_O,
     "volatile_drop(content) -> bool\n\nFree the memory of a content that is not pinned."},
    {"volatile_read", volatile_read, METH_O,
     "volatile_read(content) -> (address, nbytes, pins)\n\n"
     "Return address and bytes of the memory, 0 without memory, and the number of pins."},
    {NULL, NULL, 0, NULL},
};
