#include "allocators/python_allocator.h"

#include <stdint.h>
#include <stdlib.h>

#include "allocators/block_result.h"
#include "core/interpreter.h"
#include "core/owner.h"
#include "support/errors.h"
#include "support/refusal_cause.h"

/// Callables of an allocator. `owner` holds the references, so that destroy() works without the
/// GIL.
typedef struct callables {
    PyObject *allocate;
    PyObject *free; ///< may be NULL
    memrt_owner_t *owner;
} callables_t;

/// Last word of a block: the owner, which calls `free` and releases the buffer. NULL: the block
/// came from the default allocator.
typedef memrt_owner_t *tail_t;

/// Return the number of bytes with room for the tail, or 0 if the sum overflows.
static size_t add_tail(size_t size)
{
    size_t rest = (size_t)PTRDIFF_MAX - 2 * sizeof(tail_t);
    return size > rest
               ? 0
               : (size + sizeof(tail_t) - 1) / sizeof(tail_t) * sizeof(tail_t) + sizeof(tail_t);
}

static tail_t *find_tail(void *ptr, size_t size)
{
    return (tail_t *)(void *)((char *)ptr + add_tail(size)) - 1;
}

/// Allocators whose `allocate` runs on the calling thread, the innermost last. An array and no list
/// through stack frames, because a greenlet switch inside of `allocate` moves stack frames.
#define DEPTH 8
static MEMRT_THREAD_LOCAL const callables_t *running[DEPTH];

static const callables_t **find_running(const callables_t *callables)
{
    for (size_t i = DEPTH; i > 0; i--) {
        if (running[i - 1] == callables) {
            return &running[i - 1];
        }
    }
    return NULL;
}

static int clear_causes(void *unused)
{
    (void)unused;
    if (memrt__holds_python()) { /* before Python 3.12, a subinterpreter may make the call */
        memrt__refusal_cause_clear();
    }
    return 0;
}

/// Keep the pending exception as a cause, and report the exception unless it is a MemoryError.
/// Ctrl-C inside of `allocate` arrives again after the allocation.
static void report_exception(PyObject *allocate)
{
    PyObject *exception = memrt__pending_exception();
    int interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    if (interrupted || PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
    } else {
        PyErr_WriteUnraisable(allocate);
    }
    memrt__refusal_cause_put(exception);
    (void)memrt__interpreter_schedule_call(clear_causes); /* else the next failure clears */
    if (interrupted) {
        PyErr_SetInterrupt();
    }
}

/// Call `free` for a block that has no owner. The pending exception stays.
static void free_at_once(const callables_t *callables, uintptr_t address, size_t nbytes)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    PyObject *result = PyObject_CallFunction(callables->free, "KK", (unsigned long long)address,
                                             (unsigned long long)nbytes);
    if (result == NULL) {
        PyErr_WriteUnraisable(callables->free);
    }
    Py_XDECREF(result);
    memrt__pending_restore(&pending);
}

/// Turn a result of `allocate` into a block. NULL with an exception, and the memory is given back.
static void *own_block(const callables_t *callables, const memrt_block_result_t *block, size_t size,
                       size_t align)
{
    size_t nbytes = add_tail(size);
    memrt_owner_t *owner = memrt__owner_new(block->buffer, callables->free, block->address, nbytes);
    if (owner == NULL) {
        if (callables->free != NULL) {
            free_at_once(callables, block->address, nbytes);
        }
        return NULL;
    }
    if (memrt__block_result_check_alignment(block, align) < 0) {
        memrt__owner_dtor(NULL, 0, owner);
        return NULL;
    }
    void *ptr = (void *)block->address;
    *find_tail(ptr, size) = owner;
    return ptr;
}

/// Call `allocate`. NULL with an exception.
static void *call_allocate(const callables_t *callables, size_t size, size_t align)
{
    size_t nbytes = add_tail(size);
    memrt_block_result_t block;
    PyObject *result =
        PyObject_CallFunction(callables->allocate, "nn", (Py_ssize_t)nbytes, (Py_ssize_t)align);
    void *ptr = NULL;
    if (result != NULL &&
        memrt__block_result_read(result, nbytes, callables->free != NULL, &block) == 0) {
        ptr = own_block(callables, &block, size, align);
        Py_XDECREF(block.buffer);
    }
    Py_XDECREF(result);
    return ptr;
}

/// Allocate from the default allocator, for requests inside of `allocate`.
static void *alloc_default(size_t size, size_t align)
{
    const memrt_allocator_t *table = memrt__api()->allocator_default();
    void *ptr = table->alloc(table->ctx, add_tail(size), align);
    if (ptr != NULL) {
        *find_tail(ptr, size) = NULL;
    }
    return ptr;
}

static void *python_alloc(void *ctx, size_t size, size_t align)
{
    const callables_t *callables = ctx;
    int state;
    if (add_tail(size) == 0) {
        return NULL;
    }
    if (find_running(callables) != NULL) {
        return alloc_default(size, align);
    }
    const callables_t **place = find_running(NULL);
    if (place == NULL || !memrt__interpreter_enter(&state)) {
        return NULL;
    }
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    *place = callables;
    memrt__owner_drain(); /* the queued frees may give `allocate` the room */
    void *ptr = call_allocate(callables, size, align);
    place = find_running(callables);
    *place = NULL;
    if (ptr == NULL) {
        report_exception(callables->allocate);
    }
    memrt__pending_restore(&pending);
    memrt__interpreter_leave(state);
    return ptr;
}

static void python_free(void *ctx, void *ptr, size_t size, size_t align)
{
    memrt_owner_t *owner = *find_tail(ptr, size);
    (void)ctx;
    if (owner == NULL) {
        const memrt_allocator_t *table = memrt__api()->allocator_default();
        table->free(table->ctx, ptr, add_tail(size), align);
    } else if (memrt__interpreter_is_finalizing()) {
        memrt__owner_drop(owner);
    } else {
        memrt__owner_dtor(NULL, 0, owner);
    }
}

static void python_destroy(void *ctx)
{
    callables_t *callables = ctx;
    memrt__owner_dtor(NULL, 0, callables->owner);
    free(callables);
}

int memrt__python_allocator_new(PyObject *allocate, PyObject *free_function, memrt_allocator_t *out)
{
    PyObject *both = PyTuple_Pack(2, allocate, free_function != NULL ? free_function : Py_None);
    memrt_owner_t *owner = both != NULL ? memrt__owner_new(both, NULL, 0, 0) : NULL;
    Py_XDECREF(both);
    callables_t *callables = owner != NULL ? malloc(sizeof(*callables)) : NULL;
    if (callables == NULL && owner != NULL) {
        memrt__owner_discard(owner);
        PyErr_NoMemory();
    }
    if (callables == NULL) {
        return -1;
    }
    *callables = (callables_t){allocate, free_function, owner};
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "python",
        .ctx = callables,
        .alloc = python_alloc,
        .free = python_free,
        .destroy = python_destroy,
    };
    return 0;
}
