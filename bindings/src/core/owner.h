#ifndef MEMRT_BINDINGS_CORE_OWNER_H
#define MEMRT_BINDINGS_CORE_OWNER_H

#include "support/binding.h"

/// Python side of an adopted MemInfo: the object that keeps the memory alive, and the callback that
/// gives the memory back. The owner is the dtor_info of the MemInfo, with memrt__owner_dtor as
/// dtor.
typedef struct memrt_owner {
    struct memrt_owner *next; ///< next owner in the queue for the GIL
    PyObject *object;         ///< kept alive; may be NULL
    PyObject *dtor;           ///< callable, may be NULL
    PyObject *arguments;      ///< tuple (address, nbytes), the arguments of dtor; NULL without dtor
    void (*give_back)(void *loan); ///< called with `loan` when the owner ends; may be NULL
    void *loan;                    ///< handle of the memory in another library
} memrt_owner_t;

/// Create an owner. Takes new references to `object` and `dtor`, either of which may be NULL.
/// Failure: NULL with an exception.
memrt_owner_t *memrt__owner_new(PyObject *object, PyObject *dtor, uintptr_t data, size_t size);

/// Create an owner for memory of another library. `give_back` returns the memory to the library,
/// and is called with the GIL held. Takes a new reference to `object`, which may be NULL.
/// Failure: NULL with an exception.
memrt_owner_t *memrt__owner_of_loan(void (*give_back)(void *loan), void *loan, PyObject *object);

/// Return the `loan` of a MemInfo whose owner has this `give_back` function, or NULL.
void *memrt__owner_loan(const memrt_meminfo_t *mi, void (*give_back)(void *loan));

/// Destroy a new owner without running dtor or give_back. Needs the GIL.
void memrt__owner_discard(memrt_owner_t *owner);

/// Destroy an owner, as a memrt_dtor_fn: call dtor and give_back, drop the references, free `info`.
///
/// Threads: any, with or without the GIL, also during and after finalization of Python. With the
/// GIL of the main interpreter the owner runs at once: a pending exception is kept, and errors go
/// to sys.unraisablehook. Without the GIL the owner is queued for a thread that holds the GIL.
/// After finalization the references are leaked on purpose.
void memrt__owner_dtor(void *data, size_t size, void *info);

/// Leak an owner on purpose, without a call of Python code, and count the owner as dropped.
///
/// Threads: any, with or without the GIL.
void memrt__owner_drop(memrt_owner_t *owner);

/// Return the options for a MemInfo of `policy` with `owner`. `policy` may be NULL.
static inline memrt_new_options_t memrt__owner_options(memrt_owner_t *owner, memrt_policy_t *policy)
{
    return (memrt_new_options_t){.struct_size = sizeof(memrt_new_options_t),
                                 .policy = policy,
                                 .dtor = memrt__owner_dtor,
                                 .dtor_info = owner};
}

/// Return the owner of a MemInfo, borrowed, or NULL.
memrt_owner_t *memrt__owner_of(const memrt_meminfo_t *mi);

/// Visit the Python objects of an owner, for tp_traverse.
int memrt__owner_visit(memrt_owner_t *owner, visitproc visit, void *arg);

/// Run the work queued for the GIL: owners, and untracks of tracemalloc. Needs the GIL. Cheap when
/// the queues are empty.
void memrt__owner_drain(void);

/// Register for the end of the interpreter. Call once, at import. -1 with an exception.
int memrt__owner_setup(PyObject *module);

extern PyMethodDef memrt__owner_methods[];

#endif
