#include "allocators/allocator_capsule.h"

#include <stddef.h>
#include <stdlib.h>

#include <memrt/capsule.h>

#include "allocators/held_allocator.h"
#include "allocators/python_allocator.h"
#include "support/arguments.h"

static const char used_name[] = MEMRT_ALLOCATOR_CAPSULE ".used";

/// Destroy a capsule of this module, and the allocator unless a policy took the allocator.
static void destroy_capsule(PyObject *capsule)
{
    memrt_allocator_t *table = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    if (PyCapsule_GetName(capsule) != used_name) {
        table->destroy(table->ctx);
    }
    free(table);
}

static int is_own(PyObject *capsule)
{
    return PyCapsule_CheckExact(capsule) && PyCapsule_GetDestructor(capsule) == destroy_capsule;
}

PyObject *memrt__allocator_as_capsule(const memrt_allocator_t *allocator, int runs_python)
{
    static char mark; /* the context of a capsule of an allocator that runs Python code */
    memrt_allocator_t *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        allocator->destroy(allocator->ctx);
        return PyErr_NoMemory();
    }
    *copy = *allocator;
    PyObject *capsule = PyCapsule_New(copy, MEMRT_ALLOCATOR_CAPSULE, destroy_capsule);
    if (capsule == NULL) {
        allocator->destroy(allocator->ctx);
        free(copy);
    } else if (runs_python) {
        (void)PyCapsule_SetContext(capsule, &mark); /* cannot fail on a capsule */
    }
    return capsule;
}

int memrt__allocator_runs_python(PyObject *capsule)
{
    return PyCapsule_GetContext(capsule) != NULL;
}

int memrt__allocator_take(PyObject *capsule, const memrt_allocator_t **out)
{
    if (!is_own(capsule)) {
        PyErr_SetString(PyExc_TypeError, "allocator must be a capsule of allocator_capsule()");
        return -1;
    }
    *out = PyCapsule_GetPointer(capsule, MEMRT_ALLOCATOR_CAPSULE);
    if (*out == NULL) {
        PyErr_SetString(PyExc_ValueError, "allocator must be new, got the allocator of a policy: "
                                          "create an allocator for each policy");
        return -1;
    }
    return PyCapsule_SetName(capsule, used_name);
}

const memrt_allocator_t *memrt__allocator_of_policy(PyObject *capsule)
{
    if (!is_own(capsule)) {
        PyErr_SetString(PyExc_TypeError, "allocator must be a capsule of allocator_capsule()");
        return NULL;
    }
    return PyCapsule_GetPointer(capsule, used_name);
}

void memrt__allocator_untake(PyObject *capsule)
{
    (void)PyCapsule_SetName(capsule, MEMRT_ALLOCATOR_CAPSULE); /* cannot fail on a capsule */
}

/// Copy a table of C code, reading at most `struct_size` bytes. -1 with ValueError.
static int copy_table(const memrt_allocator_t *from, memrt_allocator_t *to)
{
    *to = (memrt_allocator_t){0};
    if (from->struct_size < offsetof(memrt_allocator_t, alloc)) {
        PyErr_Format(PyExc_ValueError,
                     "struct_size of the allocator must be at least %zu bytes, got %zu",
                     offsetof(memrt_allocator_t, alloc), from->struct_size);
        return -1;
    }
    if (from->version != MEMRT_ALLOCATOR_VERSION) {
        PyErr_Format(PyExc_ValueError, "version of the allocator must be %u, got %u",
                     MEMRT_ALLOCATOR_VERSION, from->version);
        return -1;
    }
    memcpy(to, from, Py_MIN(from->struct_size, sizeof(*to)));
    if (to->alloc == NULL || to->free == NULL) {
        PyErr_Format(PyExc_ValueError, "%s of the allocator must be a function, got NULL",
                     to->alloc == NULL ? "alloc" : "free");
        return -1;
    }
    return 0;
}

/// Return a capsule for a table of C code that `keeper` keeps alive, or NULL with an exception.
static PyObject *hold_table(const memrt_allocator_t *from, PyObject *keeper)
{
    memrt_allocator_t table, held;
    if (copy_table(from, &table) < 0 || memrt__held_allocator_new(&table, keeper, &held) < 0) {
        return NULL;
    }
    return memrt__allocator_as_capsule(&held, 0);
}

static PyObject *allocator_of_callables(PyObject *module, PyObject *args)
{
    PyObject *allocate, *free_function;
    memrt_allocator_t allocator;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:allocator_of_callables", &allocate, &free_function)) {
        return NULL;
    }
    free_function = free_function == Py_None ? NULL : free_function;
    return memrt__python_allocator_new(allocate, free_function, &allocator) < 0
               ? NULL
               : memrt__allocator_as_capsule(&allocator, 1);
}

static PyObject *allocator_of_table(PyObject *module, PyObject *args)
{
    uintptr_t address;
    PyObject *keeper;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O:allocator_of_table", memrt__address_argument, &address,
                          &keeper)) {
        return NULL;
    }
    if (address == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "allocator must be the address of a memrt_allocator_t, got NULL");
        return NULL;
    }
    return hold_table((const memrt_allocator_t *)address, keeper);
}

static PyObject *allocator_of_functions(PyObject *module, PyObject *args)
{
    memrt_allocator_t table = {
        .struct_size = sizeof(table), .version = MEMRT_ALLOCATOR_VERSION, .name = "functions"};
    uintptr_t alloc, free_address;
    PyObject *keeper;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&O:allocator_of_functions", memrt__address_argument, &alloc,
                          memrt__address_argument, &free_address, &keeper)) {
        return NULL;
    }
    table.alloc = (void *(*)(void *, size_t, size_t))alloc;
    table.free = (void (*)(void *, void *, size_t, size_t))free_address;
    return hold_table(&table, keeper);
}

static PyObject *allocator_of_capsule(PyObject *module, PyObject *capsule)
{
    (void)module;
    if (is_own(capsule)) {
        return Py_NewRef(capsule);
    }
    const char *name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
    const memrt_allocator_t *table = PyCapsule_IsValid(capsule, MEMRT_ALLOCATOR_CAPSULE)
                                         ? PyCapsule_GetPointer(capsule, MEMRT_ALLOCATOR_CAPSULE)
                                         : NULL;
    if (table == NULL) {
        PyErr_Format(PyExc_ValueError, "name of an allocator's capsule must be '%s', got '%s'",
                     MEMRT_ALLOCATOR_CAPSULE, name != NULL ? name : "NULL");
        return NULL;
    }
    return hold_table(table, capsule);
}

PyMethodDef memrt__allocator_methods[] = {
    {"allocator_of_callables", allocator_of_callables, METH_VARARGS,
     "allocator_of_callables(allocate, free, /) -> capsule\n\n"
     "Create an allocator of Python callables. `free` may be None."},
    {"allocator_of_table", allocator_of_table, METH_VARARGS,
     "allocator_of_table(address, keeper, /) -> capsule\n\n"
     "Create an allocator over the memrt_allocator_t at an address, which `keeper` keeps alive."},
    {"allocator_of_functions", allocator_of_functions, METH_VARARGS,
     "allocator_of_functions(alloc, free, keeper, /) -> capsule\n\n"
     "Create an allocator over the C functions at two addresses, which `keeper` keeps alive. "
     "Their\n"
     "context is NULL."},
    {"allocator_of_capsule", allocator_of_capsule, METH_O,
     "allocator_of_capsule(capsule, /) -> capsule\n\n"
     "Create an allocator over the table of a capsule \"memrt.allocator\"."},
    {NULL, NULL, 0, NULL},
};
