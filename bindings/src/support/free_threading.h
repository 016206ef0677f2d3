#ifndef MEMRT_BINDINGS_SUPPORT_FREE_THREADING_H
#define MEMRT_BINDINGS_SUPPORT_FREE_THREADING_H

#include "support/binding.h"

/// Protection of shared state in a free-threaded build of CPython, where the GIL may be off. In all
/// other builds the GIL protects the state, and the macros compile to plain accesses.
///
/// Two kinds of protection exist:
/// - A *critical section* protects like the GIL: one thread is inside at a time, except while a
///   thread inside waits or releases its thread state. So code inside may run any Python code.
/// - A *mutex* has one holder at all times. Code between lock and unlock runs no Python code,
///   because the Python code could lock the mutex again. A thread that waits for the mutex releases
///   its thread state, so the collector can stop the thread.
///
/// Order: critical sections first, then a mutex, then the mutex of observe/site_recorder.c, because
/// an allocation under a mutex may be tracked. Callbacks that libmemrt calls under its locks use
/// neither kind.

#ifdef Py_GIL_DISABLED

/// Begin and end a critical section of an object, in one block of C.
#define MEMRT_BEGIN_CRITICAL_SECTION(object) Py_BEGIN_CRITICAL_SECTION(object)
#define MEMRT_END_CRITICAL_SECTION() Py_END_CRITICAL_SECTION()

/// Mutex in static memory, unlocked by MEMRT_MUTEX_INIT.
typedef PyMutex memrt_mutex_t;
#define MEMRT_MUTEX_INIT {0}
#define MEMRT_MUTEX_LOCK(mutex) PyMutex_Lock(mutex)
#define MEMRT_MUTEX_UNLOCK(mutex) PyMutex_Unlock(mutex)

/// Read, write or add to a number or pointer that other threads access at the same time.
#define MEMRT_SHARED_READ(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define MEMRT_SHARED_WRITE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#define MEMRT_SHARED_ADD(place, amount)                                                            \
    ((void)__atomic_fetch_add(&(place), (amount), __ATOMIC_RELAXED))

#else

#define MEMRT_BEGIN_CRITICAL_SECTION(object) {
#define MEMRT_END_CRITICAL_SECTION() }

typedef char memrt_mutex_t;
#define MEMRT_MUTEX_INIT 0
#define MEMRT_MUTEX_LOCK(mutex) ((void)(mutex))
#define MEMRT_MUTEX_UNLOCK(mutex) ((void)(mutex))

#define MEMRT_SHARED_READ(place) (place)
#define MEMRT_SHARED_WRITE(place, value) ((void)((place) = (value)))
#define MEMRT_SHARED_ADD(place, amount) ((void)((place) += (amount)))

#endif

/// Begin and end the critical section of state of the process that belongs to no object.
#define MEMRT_BEGIN_PROCESS_STATE() MEMRT_BEGIN_CRITICAL_SECTION(memrt__binding.meminfo_type)
#define MEMRT_END_PROCESS_STATE() MEMRT_END_CRITICAL_SECTION()

/// Return the value of a dict as a new reference, or NULL. An exception is set only if an error
/// occurred.
static inline PyObject *memrt__dict_get(PyObject *dict, PyObject *key)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *value;
    (void)PyDict_GetItemRef(dict, key, &value); /* NULL on failure */
    return value;
#else
    return Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
}

/// Check that the GIL is on, for work that reads objects of other threads: 0, or -1 with
/// RuntimeError. Always 0 in builds with a GIL.
int memrt__need_gil(void);

#endif
