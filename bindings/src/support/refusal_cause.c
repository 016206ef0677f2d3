#include "support/refusal_cause.h"

#include "support/free_threading.h"

/// Exception of a thread. NULL: the entry is free.
typedef struct cause {
    unsigned long thread;
    PyObject *exception;
} cause_t;

static cause_t causes[MEMRT_REFUSAL_CAUSES];
static memrt_mutex_t mutex = MEMRT_MUTEX_INIT;

/// Return the entry of a thread, otherwise a free entry, or NULL. Under the mutex.
static cause_t *find_entry(unsigned long thread)
{
    cause_t *found = NULL;
    for (size_t i = 0; i < MEMRT_REFUSAL_CAUSES; i++) {
        if (causes[i].exception == NULL) {
            found = &causes[i];
        } else if (causes[i].thread == thread) {
            return &causes[i];
        }
    }
    return found;
}

void memrt__refusal_cause_put(PyObject *exception)
{
    unsigned long thread = PyThread_get_thread_ident();
    MEMRT_MUTEX_LOCK(&mutex);
    cause_t *entry = find_entry(thread);
    PyObject *before = exception;
    if (entry != NULL) {
        before = entry->exception;
        *entry = (cause_t){thread, exception};
    }
    MEMRT_MUTEX_UNLOCK(&mutex);
    Py_XDECREF(before); /* may run code, so after the mutex */
}

PyObject *memrt__refusal_cause_take(void)
{
    unsigned long thread = PyThread_get_thread_ident();
    PyObject *exception = NULL;
    MEMRT_MUTEX_LOCK(&mutex);
    cause_t *entry = find_entry(thread);
    if (entry != NULL && entry->exception != NULL) {
        exception = entry->exception;
        entry->exception = NULL;
    }
    MEMRT_MUTEX_UNLOCK(&mutex);
    return exception;
}

void memrt__refusal_cause_clear(void)
{
#ifdef Py_GIL_DISABLED
    Py_XDECREF(memrt__refusal_cause_take());
#else
    for (size_t i = 0; i < MEMRT_REFUSAL_CAUSES; i++) {
        Py_CLEAR(causes[i].exception);
    }
#endif
}
