#ifndef MEMRT_OWNER_H
#define MEMRT_OWNER_H

#include "binding.h"

/// The Python side of an adopted MemInfo: what keeps its memory alive and what gives it back. It is
/// the dtor_info of the MemInfo, together with memrt__owner_dtor.
typedef struct memrt_owner {
    struct memrt_owner *next;      ///< in the queue of those that wait for the GIL
    PyObject *object;              ///< kept alive; may be NULL
    PyObject *dtor;                ///< callable, may be NULL
    PyObject *arguments;           ///< tuple (address, nbytes) that dtor gets; NULL without dtor
    void (*give_back)(void *loan); ///< called with `loan` at the end; may be NULL
    void *loan;                    ///< of another library, by which it knows the memory
} memrt_owner_t;

/// New owner; takes references of its own to `object` and `dtor`, either of which may be NULL.
/// Failure: NULL with an exception.
memrt_owner_t *memrt__owner_new(PyObject *object, PyObject *dtor, uintptr_t data, size_t size);

/// New owner for memory that goes back to another library by a C function, where the GIL is held.
/// Failure: NULL with an exception.
memrt_owner_t *memrt__owner_of_loan(void (*give_back)(void *loan), void *loan);

/// What was lent for a MemInfo to be given back by that function, or NULL.
void *memrt__owner_loan(const memrt_meminfo_t *mi, void (*give_back)(void *loan));

/// Undo either without running dtor or give_back. Needs the GIL.
void memrt__owner_discard(memrt_owner_t *owner);

/// A memrt_dtor_fn: call dtor, give up the references, free `info`.
///
/// Threads: any, with or without the GIL, also while and after Python is finalized. With the GIL of
/// the main interpreter it happens at once, with a pending exception kept and errors sent to
/// sys.unraisablehook; else the owner waits in a queue for a thread that has it; after
/// finalization its references are dropped on the floor.
void memrt__owner_dtor(void *data, size_t size, void *info);

/// Options for a MemInfo of `policy`, which may be NULL, that has `owner`.
static inline memrt_new_options_t memrt__owner_options(memrt_owner_t *owner, memrt_policy_t *policy)
{
    return (memrt_new_options_t){.struct_size = sizeof(memrt_new_options_t),
                                 .policy = policy,
                                 .dtor = memrt__owner_dtor,
                                 .dtor_info = owner};
}

/// The owner of a MemInfo, or NULL when it has none. Borrowed.
memrt_owner_t *memrt__owner_of(const memrt_meminfo_t *mi);

int memrt__owner_visit(memrt_owner_t *owner, visitproc visit, void *arg);

/// Run the owners that wait. Needs the GIL; cheap when none waits.
void memrt__owner_drain(void);

/// Whether this thread may run Python code of the main interpreter right now. During finalization
/// that is still true for the finalizing thread, which is the one that destroys module globals.
int memrt__holds_python(void);

/// Whether the Python that imported the module was finalized: no owner can be run from then on.
int memrt__owner_has_ended(void);

/// Be told about the end of the interpreter; once, at import. -1 with an exception.
int memrt__owner_setup(PyObject *module);

extern PyMethodDef memrt__owner_methods[];

#endif
