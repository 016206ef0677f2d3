#include "core/policy_record.h"

#include <stdbool.h>

/// Number of records. Each context with other variables needs a record, such as each task with its
/// own policy.
#define RECORDS 16

static PyObject *const no_variables = Py_None;
static const char no_thread; /* an address that no thread state has */

static memrt_policy_record_t records[RECORDS] = {[0 ... RECORDS - 1] = {&no_variables, NULL, NULL}};
static unsigned next_record;

#define NO_LAST_POLICY {(const PyThreadState *)(const void *)&no_thread, 0, &records[0]}

MEMRT_THREAD_LOCAL memrt_last_policy_t memrt__last_policy = NO_LAST_POLICY;

atomic_bool memrt__policy_was_chosen;

void memrt__policy_record_note_choice(void)
{
    atomic_store_explicit(&memrt__policy_was_chosen, true, memory_order_relaxed);
}

static PyObject *get_variables(const PyThreadState *thread)
{
    return ((const memrt_context_t *)thread->context)->variables;
}

/// Give a thread without a context a context. Without memory nothing changes.
static void make_context(void)
{
    Py_XDECREF(PyContext_CopyCurrent());
    PyErr_Clear();
}

PyObject *memrt__policy_record_variables(void)
{
    PyThreadState *thread = memrt__context_is_known ? memrt__attached_thread_state() : NULL;
    if (thread != NULL && thread->context == NULL) {
        make_context();
    }
    return thread != NULL && thread->context != NULL ? Py_NewRef(get_variables(thread)) : NULL;
}

static void set_last(const memrt_policy_record_t *record)
{
    const PyThreadState *thread = memrt__attached_thread_state();
    memrt__last_policy = (memrt_last_policy_t){thread, thread->thread_id, record};
}

int memrt__policy_record_find(PyObject *variables, memrt_policy_t **policy)
{
    for (unsigned i = 0; variables != NULL && i < RECORDS; i++) {
        if (*records[i].variables == variables) {
            set_last(&records[i]);
            *policy = records[i].policy;
            return 1;
        }
    }
    return 0;
}

/// Put a record into the next place, and return the weak reference of the old record.
static PyObject *replace_record(PyObject *reference, memrt_policy_t *policy)
{
    memrt_policy_record_t *record = &records[next_record++ % RECORDS];
    PyObject *before = record->reference;
    record->variables = &((PyWeakReference *)reference)->wr_object;
    record->reference = reference;
    record->policy = policy;
    set_last(record);
    return before;
}

void memrt__policy_record_write(PyObject *variables, memrt_policy_t *policy)
{
    PyObject *reference = variables != NULL ? PyWeakref_NewRef(variables, NULL) : NULL;
    PyObject *now = memrt__policy_record_variables();
    if (reference != NULL && now == variables) {
        reference = replace_record(reference, policy);
    }
    Py_XDECREF(now);
    Py_XDECREF(reference); /* has no callback, so no Python code runs */
    PyErr_Clear();
}

void memrt__policy_record_forget(void)
{
    memrt__last_policy = (memrt_last_policy_t)NO_LAST_POLICY;
}

void memrt__policy_record_drop(void)
{
    for (unsigned i = 0; memrt__context_is_known && i < RECORDS; i++) {
        records[i].variables = &no_variables;
    }
}
