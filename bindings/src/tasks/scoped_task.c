#include "tasks/scoped_task.h"

#include "core/current_policy.h"
#include "core/owner.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "support/ndarray.h"
#include "tasks/task_account.h"

static PyObject *op_key, *nbytes_key; ///< interned keys of the message of a task

// --- The variables of a context. ---

enum { ENTRIES, STACK, HANDLER, VARIABLES };

/// Members of a slot, a list. At any time one thread at most uses a slot. SLOT_SCOPE is a capsule,
/// or None for tasks outside of scopes. SLOT_ENTER is called with the policy, and enters the scope
/// and the policy. The result False means the policy alone: the next task calls again. SLOT_BEFORE
/// and SLOT_AFTER are tuples of VARIABLES values around the last call of SLOT_ENTER, with the
/// policy SLOT_POLICY.
enum { SLOT_SCOPE, SLOT_ENTER, SLOT_POLICY, SLOT_BEFORE, SLOT_AFTER, SLOT_SIZE };

/// Return the values of the variables as a new tuple, or NULL with an exception.
static PyObject *pack_variables(PyObject *const *values)
{
    return PyTuple_Pack(VARIABLES, values[ENTRIES], values[STACK], values[HANDLER]);
}

static void clear_variables(PyObject **values)
{
    for (int i = 0; i < VARIABLES; i++) {
        Py_CLEAR(values[i]);
    }
}

/// Read the variables of this context into `values`, as new references. -1 with an exception; the
/// caller clears the values in both cases.
static int read_variables(PyObject **values)
{
    /* GCOV_EXCL_BR_START: the variables have defaults */
    if (PyContextVar_Get(memrt__current_scope_variable, NULL, &values[ENTRIES]) < 0 ||
        PyContextVar_Get(memrt__handler_stack_variable, NULL, &values[STACK]) < 0) {
        return -1;
    }
    /* GCOV_EXCL_BR_STOP */
    values[HANDLER] = PyDataMem_GetHandler();
    return values[HANDLER] != NULL ? 0 : -1; /* GCOV_EXCL_BR_LINE: has a default, too */
}

static int set_variable(PyObject *variable, PyObject *value)
{
    PyObject *token = PyContextVar_Set(variable, value);
    Py_XDECREF(token);
    return token != NULL ? 0 : -1;
}

/// Set the variables of this context to the values after SLOT_ENTER. -1 with an exception, and some
/// variables may have changed: the caller drops the context.
static int set_variables(PyObject *values)
{
    if (set_variable(memrt__current_scope_variable, PyTuple_GET_ITEM(values, ENTRIES)) < 0 ||
        set_variable(memrt__handler_stack_variable, PyTuple_GET_ITEM(values, STACK)) < 0) {
        return -1;
    }
    PyObject *replaced = PyDataMem_SetHandler(PyTuple_GET_ITEM(values, HANDLER));
    Py_XDECREF(replaced);
    return replaced != NULL ? 0 : -1;
}

/// Return whether the last call of SLOT_ENTER began with the same policy and values.
static int is_repetition(PyObject *slot, PyObject *policy, PyObject *const *values)
{
    PyObject *before = PyList_GET_ITEM(slot, SLOT_BEFORE);
    return before != Py_None && PyList_GET_ITEM(slot, SLOT_POLICY) == policy &&
           PyTuple_GET_ITEM(before, ENTRIES) == values[ENTRIES] &&
           PyTuple_GET_ITEM(before, STACK) == values[STACK] &&
           PyTuple_GET_ITEM(before, HANDLER) == values[HANDLER];
}

/// Steals the reference to `value`, which may be NULL. -1 with an exception.
static int set_member(PyObject *slot, Py_ssize_t index, PyObject *value)
{
    return value != NULL ? PyList_SetItem(slot, index, value) : -1;
}

/// Call SLOT_ENTER, and keep the values for repetitions, unless the result is False. -1 with an
/// exception.
static int enter_anew(PyObject *slot, PyObject *policy, PyObject *const *before)
{
    PyObject *after[VARIABLES] = {NULL};
    PyObject *done = PyObject_CallOneArg(PyList_GET_ITEM(slot, SLOT_ENTER), policy);
    int result = done != NULL ? read_variables(after) : -1;
    if (result == 0) {
        result = set_member(slot, SLOT_BEFORE, Py_NewRef(Py_None));
    }
    if (result == 0) {
        result = set_member(slot, SLOT_POLICY, Py_NewRef(policy));
    }
    if (result == 0) {
        result = set_member(slot, SLOT_AFTER, pack_variables(after));
    }
    if (result == 0 && done != Py_False) {
        result = set_member(slot, SLOT_BEFORE, pack_variables(before));
    }
    clear_variables(after);
    Py_XDECREF(done);
    return result;
}

/// Enter the scope of a slot and the policy in this context. -1 with an exception.
static int enter_slot(PyObject *slot, PyObject *policy)
{
    PyObject *now[VARIABLES] = {NULL};
    int result = read_variables(now);
    if (result == 0) { /* GCOV_EXCL_BR_LINE: the variables have defaults */
        result = is_repetition(slot, policy, now) ? set_variables(PyList_GET_ITEM(slot, SLOT_AFTER))
                                                  : enter_anew(slot, policy, now);
    }
    clear_variables(now);
    return result;
}

// --- The call. ---

/// Call call[0] with the other `count - 1` arguments, in a copy of the context with the scope and
/// the policy. NULL with an exception.
static PyObject *call_in_slot(PyObject *slot, PyObject *policy, PyObject *const *call, size_t count)
{
    PyObject *result = NULL, *context = PyContext_CopyCurrent();
    if (context == NULL || PyContext_Enter(context) < 0) {
        Py_XDECREF(context);
        return NULL;
    }
    if (enter_slot(slot, policy) == 0) {
        result = PyObject_Vectorcall(call[0], call + 1, count - 1, NULL);
    }
    if (PyContext_Exit(context) < 0) {
        Py_CLEAR(result);
    }
    Py_DECREF(context);
    return result;
}

/// Return whether the message of a task has the text "task-finished" at "op". No exception.
static int is_finished(PyObject *message)
{
    PyObject *op =
        message != NULL && PyDict_Check(message) ? memrt__dict_get(message, op_key) : NULL;
    int finished = op != NULL && PyUnicode_Check(op) &&
                   PyUnicode_CompareWithASCIIString(op, "task-finished") == 0;
    Py_XDECREF(op);
    return finished;
}

/// Return the number at "nbytes" of the message of a success; 0 for another value. No exception.
static uint64_t read_nbytes(PyObject *message)
{
    PyObject *nbytes = memrt__dict_get(message, nbytes_key);
    PyObject *number = nbytes != NULL ? PyNumber_Long(nbytes) : NULL;
    unsigned long long size = number != NULL ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    Py_XDECREF(nbytes);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        size = 0;
    }
    return size;
}

/// Read the scope of a slot into `out`, NULL for None. -1 with an exception.
static int read_slot_scope(PyObject *slot, memrt_scope_t **out)
{
    PyObject *capsule = PyList_GET_ITEM(slot, SLOT_SCOPE);
    *out = capsule == Py_None ? NULL : PyCapsule_GetPointer(capsule, MEMRT_SCOPE_CAPSULE);
    return *out != NULL || capsule == Py_None ? 0 : -1;
}

/// Read the account of a scope, zeros for NULL. Valid arguments cannot fail.
static memrt_stats_t read_scope(const memrt_scope_t *scope)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    if (scope != NULL) {
        (void)!memrt__api()->scope_stats(scope, &stats);
    }
    return stats;
}

/// Call `end` with the message of a task that failed. Steals and returns the message; NULL with an
/// exception of `end`.
static PyObject *end_failed_task(PyObject *end, PyObject *message)
{
    PyObject *done = PyObject_CallOneArg(end, message);
    if (done == NULL) {
        Py_CLEAR(message);
    }
    Py_XDECREF(done);
    return message;
}

/// Read the account of the scope after the task, and keep a pending exception.
static void count_task(PyObject *account, const memrt_scope_t *scope, memrt_task_outcome_t *out)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    memrt__owner_drain();
    memrt__pending_restore(&pending);
    out->after = read_scope(scope);
    memrt__task_account_end(account, out);
}

enum { ACCOUNT, SLOT, POLICY, END, CALL };

static PyObject *run_task(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count <= CALL || !memrt__is_task_account(args[ACCOUNT]) || !PyList_CheckExact(args[SLOT]) ||
        PyList_GET_SIZE(args[SLOT]) != SLOT_SIZE) {
        PyErr_SetString(PyExc_TypeError, "run_task needs an account, a slot, a policy, a function "
                                         "for failed tasks, and a function to call");
        return NULL;
    }
    PyObject *slot = args[SLOT];
    memrt_scope_t *scope;
    if (read_slot_scope(slot, &scope) < 0) {
        return NULL;
    }
    memrt__owner_drain();
    if (scope != NULL) {
        memrt__api()->scope_reset_peak(scope);
    }
    memrt_task_outcome_t out = {.before = read_scope(scope)};
    memrt__task_account_start(args[ACCOUNT]);
    PyObject *message = call_in_slot(slot, args[POLICY], args + CALL, (size_t)(count - CALL));
    out.finished = is_finished(message);
    if (out.finished) {
        out.nbytes = read_nbytes(message);
    } else if (message != NULL) {
        message = end_failed_task(args[END], message);
    }
    count_task(args[ACCOUNT], scope, &out);
    return message;
}

PyMethodDef memrt__scoped_task_methods[] = {
    {"run_task", (PyCFunction)(void (*)(void))run_task, METH_FASTCALL,
     "run_task(account, slot, policy, end, function, *arguments) -> message\n\n"
     "Call `function` on the policy, in the scope of the slot, and count the task in the\n"
     "account. A message without the text \"task-finished\" at \"op\" goes to `end`. A slot is a\n"
     "list of a scope capsule or None, a function that enters scope and policy, and three times\n"
     "None. The function returns False if the policy alone was entered."},
    {NULL, NULL, 0, NULL},
};

/// Create a text at the first load, or at the next one if memory was refused. -1 with an exception.
static int create_key(PyObject **key, const char *text)
{
    if (*key == NULL) {
        *key = PyUnicode_InternFromString(text);
    }
    return *key != NULL ? 0 : -1;
}

int memrt__scoped_task_setup(void)
{
    return create_key(&op_key, "op") == 0 ? create_key(&nbytes_key, "nbytes") : -1;
}
