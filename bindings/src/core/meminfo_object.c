/// MemInfo objects: creation, look-up and lifetime. The cycle collector may see and clear the owner
/// behind a MemInfo only while the object holds the only reference.

#include "core/meminfo_object.h"

#include "core/owner.h"
#include "core/tracemalloc.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "support/free_list.h"
#include "support/ndarray.h"
#include "support/oom_error.h"

static memrt_free_list_t free_list;

memrt_meminfo_t *memrt__meminfo_get(memrt_meminfo_object_t *self)
{
    if (self->mi == NULL) {
        PyErr_SetString(
            PyExc_ReferenceError,
            "the memory was released with a reference cycle that contained the MemInfo");
    }
    return self->mi;
}

static memrt_meminfo_object_t *allocate_object(void)
{
    PyObject *recycled = memrt__free_list_take(&free_list);
    PyTypeObject *type = memrt__binding.meminfo_type;
    return recycled != NULL ? (memrt_meminfo_object_t *)PyObject_Init(recycled, type)
                            : PyObject_GC_New(memrt_meminfo_object_t, type);
}

memrt_meminfo_object_t *memrt__meminfo_shell(void)
{
    memrt_meminfo_object_t *self = allocate_object();
    if (self != NULL) {
        self->mi = NULL;
        self->weakrefs = NULL;
        self->exports = 0;
        self->handed_out = 0;
        self->waits = 0;
    }
    return self;
}

PyObject *memrt__meminfo_fill(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi)
{
    shell->mi = mi;
    if (memrt__owner_of(mi) != NULL) {
        PyObject_GC_Track(shell); /* without an owner it cannot be part of a cycle */
    }
    return (PyObject *)shell;
}

PyObject *memrt__meminfo_fill_waiting(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi)
{
    shell->waits = 1;
    return memrt__meminfo_fill(shell, mi);
}

PyObject *memrt__meminfo_hand_out(memrt_meminfo_object_t *shell, memrt_meminfo_t *mi)
{
    shell->handed_out = 1; /* the C code or object that it came from may know the address */
    shell->waits = (mi->flags & MEMRT_FLAG_DEVICE) != 0;
    return memrt__meminfo_fill(shell, mi);
}

PyObject *memrt__meminfo_allocate(size_t size, memrt_new_options_t *options)
{
    const memrt_api_t *api = memrt__api();
    memrt_meminfo_t *mi;
    memrt__owner_drain();
    if (options->alignment != 0) {
        size_t least = api->policy_alignment(options->policy);
        options->alignment = options->alignment < least ? least : options->alignment;
    }
    memrt_status_t status = api->meminfo_new(size, options, &mi);
    if (status == MEMRT_ENOMEM) {
        return memrt__raise_out_of_memory(options->policy, size, NULL);
    }
    if (status != MEMRT_OK) { /* all other options are valid */
        PyErr_Format(
            PyExc_ValueError,
            "align_offset %zu needs an alignment of at most %zu bytes and a policy without "
            "files",
            options->align_offset, (size_t)MEMRT_ALIGN_OFFSET_MAX);
        return NULL;
    }
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    if (shell == NULL || memrt_tracemalloc_register(api, mi) < 0) {
        Py_XDECREF(shell);
        api->release(mi);
        return NULL;
    }
    return memrt__meminfo_fill(shell, mi);
}

memrt_meminfo_object_t *memrt__meminfo_from(PyObject *object)
{
    memrt_meminfo_t *mi;
    if (memrt__meminfo_check(object)) {
        return (memrt_meminfo_object_t *)Py_NewRef(object);
    }
    int exports =
        PyCapsule_IsValid(object, MEMRT_MEMINFO_CAPSULE) ? 1 : memrt_exporter_check(object);
    if (exports == 0) {
        PyErr_Format(PyExc_TypeError,
                     "expected a memrt.MemInfo, from memrt.alloc(), memrt.wrap() or "
                     "memrt.meminfo(), got %.200s",
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    memrt_meminfo_object_t *shell = exports > 0 ? memrt__meminfo_shell() : NULL;
    if (shell == NULL || memrt_array_meminfo(memrt__api(), object, &mi) < 0) {
        Py_XDECREF(shell);
        return NULL;
    }
    return (memrt_meminfo_object_t *)memrt__meminfo_hand_out(shell, mi);
}

/* --- Lifetime. --- */

/// Return the owner whose references this object alone keeps alive, or NULL. Only such an owner may
/// be visited and cleared by the cycle collector. Once C code knows the MemInfo, the result is
/// always NULL. C code may take a reference at any time, also while the collector runs, so a count
/// of 1 proves nothing.
static memrt_owner_t *get_exclusive_owner(memrt_meminfo_object_t *self)
{
    if (self->mi == NULL || MEMRT_SHARED_READ(self->handed_out) ||
        memrt__api()->refcount(self->mi) != 1) {
        return NULL;
    }
    return memrt__owner_of(self->mi);
}

int memrt__meminfo_traverse(memrt_meminfo_object_t *self, visitproc visit, void *arg)
{
    memrt_owner_t *owner = get_exclusive_owner(self);
    Py_VISIT(Py_TYPE(self));
    return owner != NULL ? memrt__owner_visit(owner, visit, arg) : 0;
}

/// Release the MemInfo if its owner has a destructor. The collector finalizes all objects of a
/// cycle before it clears any of them, so the destructor can still use them. Without a destructor,
/// tp_clear drops the references.
void memrt__meminfo_finalize(memrt_meminfo_object_t *self)
{
    const memrt_owner_t *owner =
        MEMRT_SHARED_READ(self->exports) == 0 ? get_exclusive_owner(self) : NULL;
    if (owner != NULL && owner->dtor != NULL) {
        memrt_meminfo_t *mi = self->mi;
        self->mi = NULL;
        memrt__api()->release(mi);
    }
}

int memrt__meminfo_clear(memrt_meminfo_object_t *self)
{
    if (MEMRT_SHARED_READ(self->exports) == 0 && get_exclusive_owner(self) != NULL) {
        memrt_meminfo_t *mi = self->mi;
        self->mi = NULL;
        memrt__api()->release(mi);
    }
    return 0;
}

/// Release the MemInfo, without the GIL if the release may block on a device.
static void release_meminfo(const memrt_meminfo_object_t *self)
{
    if (!self->waits) {
        memrt__api()->release(self->mi);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    memrt__api()->release(self->mi);
    Py_END_ALLOW_THREADS;
    memrt__owner_drain();
}

void memrt__meminfo_dealloc(memrt_meminfo_object_t *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    if (self->mi != NULL) {
        release_meminfo(self);
    }
    /* The collector finalizes an object only once, and would skip a new object that reuses
       finalized memory. */
    if (PyObject_GC_IsFinalized((PyObject *)self) || !memrt__free_list_put(&free_list, self)) {
        PyObject_GC_Del(self);
    }
    Py_DECREF(type);
}
