#include "core/scoped_task.h"

#include "core/current_policy.h"
#include "core/owner.h"
#include "support/errors.h"
#include "support/free_threading.h"
#include "support/ndarray.h"

// --- The account of the tasks with one prefix. ---

/// Figures of an account, in the order of the tuple of read(). Sizes are in bytes.
typedef struct figures {
    uint64_t tasks;      ///< tasks that ended
    uint64_t errors;     ///< tasks that ended without the message of a success
    uint64_t failed;     ///< refused requests for memory
    uint64_t peak;       ///< highest bytes in use by one task
    uint64_t peak_error; ///< error bound of `peak`
    uint64_t result;     ///< size of the result of the task with the highest peak
    uint64_t kept;       ///< bytes in use at the ends of tasks
    uint64_t temporary;  ///< bytes freed before the end of the allocating task
    uint64_t running;    ///< tasks that run now
} figures_t;

typedef struct account {
    PyObject_HEAD figures_t figures;
    struct account *around; ///< fixed; owned; account that counts the same tasks, or NULL
    memrt_mutex_t mutex;    ///< protects the figures
} account_t;

static PyTypeObject *account_type;
static PyObject *op_key, *nbytes_key; ///< interned keys of the message of a task

static PyObject *account_read(PyObject *self, PyObject *unused)
{
    account_t *account = (account_t *)self;
    (void)unused;
    MEMRT_MUTEX_LOCK(&account->mutex);
    figures_t now = account->figures;
    MEMRT_MUTEX_UNLOCK(&account->mutex);
    return Py_BuildValue("(KKKKKKKKK)", now.tasks, now.errors, now.failed, now.peak, now.peak_error,
                         now.result, now.kept, now.temporary, now.running);
}

static void note_start(account_t *account)
{
    for (; account != NULL; account = account->around) {
        MEMRT_MUTEX_LOCK(&account->mutex);
        account->figures.running++;
        MEMRT_MUTEX_UNLOCK(&account->mutex);
    }
}

/// Outcome of a task.
typedef struct outcome {
    memrt_stats_t before, after; ///< account of the scope around the task
    int finished;                ///< whether the task was a success
    uint64_t nbytes;             ///< size of the result
} outcome_t;

/// Add a task to the figures. Frees of other threads may make live bytes fall below their value at
/// the start.
static void add_task(figures_t *figures, const outcome_t *out)
{
    uint64_t total = out->after.total - out->before.total;
    int64_t kept = Py_MAX((int64_t)(out->after.live - out->before.live), 0);
    int64_t rise = (int64_t)(out->after.peak - out->before.live);
    int64_t peak = Py_MIN(rise, (int64_t)total);
    figures->running--;
    figures->tasks++;
    figures->errors += !out->finished;
    figures->failed += out->after.failed - out->before.failed;
    figures->kept += (uint64_t)kept;
    figures->temporary += (uint64_t)Py_MAX((int64_t)total - kept, 0);
    if (peak > (int64_t)figures->peak) {
        figures->peak = (uint64_t)peak;
        figures->peak_error = out->after.peak_error;
        figures->result = out->nbytes;
    }
}

/// Add a task to an account and the accounts around.
static void note_end(account_t *account, const outcome_t *out)
{
    for (; account != NULL; account = account->around) {
        MEMRT_MUTEX_LOCK(&account->mutex);
        add_task(&account->figures, out);
        MEMRT_MUTEX_UNLOCK(&account->mutex);
    }
}

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
static void count_task(account_t *account, const memrt_scope_t *scope, outcome_t *out)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    memrt__owner_drain();
    memrt__pending_restore(&pending);
    out->after = read_scope(scope);
    note_end(account, out);
}

enum { ACCOUNT, SLOT, POLICY, END, CALL };

static PyObject *run_task(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count <= CALL || Py_TYPE(args[ACCOUNT]) != account_type || !PyList_CheckExact(args[SLOT]) ||
        PyList_GET_SIZE(args[SLOT]) != SLOT_SIZE) {
        PyErr_SetString(PyExc_TypeError, "run_task needs an account, a slot, a policy, a function "
                                         "for failed tasks, and a function to call");
        return NULL;
    }
    account_t *account = (account_t *)args[ACCOUNT];
    PyObject *slot = args[SLOT];
    memrt_scope_t *scope;
    if (read_slot_scope(slot, &scope) < 0) {
        return NULL;
    }
    memrt__owner_drain();
    if (scope != NULL) {
        memrt__api()->scope_reset_peak(scope);
    }
    outcome_t out = {.before = read_scope(scope)};
    note_start(account);
    PyObject *message = call_in_slot(slot, args[POLICY], args + CALL, (size_t)(count - CALL));
    out.finished = is_finished(message);
    if (out.finished) {
        out.nbytes = read_nbytes(message);
    } else if (message != NULL) {
        message = end_failed_task(args[END], message);
    }
    count_task(account, scope, &out);
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

// --- The type. ---

static PyObject *account_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *around = NULL;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "|O!:TaskAccount", account_type, &around)) {
        return NULL;
    }
    account_t *account = (account_t *)type->tp_alloc(type, 0);
    if (account != NULL) {
        Py_XINCREF(around);
        account->around = (account_t *)around;
    }
    return (PyObject *)account;
}

static void account_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)((account_t *)self)->around);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"read", account_read, METH_NOARGS,
     "read() -> (tasks, errors, failed, peak, peak_error, result, kept, temporary, running)\n\n"
     "Return the figures at one moment."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)"TaskAccount([around])\n--\n\n"
                        "Hold the figures of tasks. The account `around` counts the same tasks."},
    {Py_tp_new, account_new},
    {Py_tp_dealloc, account_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "memrt._memrt.TaskAccount",
    .basicsize = sizeof(account_t),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

/// Create a type or text at the first load, or at the next one if memory was refused. -1 with an
/// exception.
static int create_objects(void)
{
    if (op_key == NULL && (op_key = PyUnicode_InternFromString("op")) == NULL) {
        return -1;
    }
    if (nbytes_key == NULL && (nbytes_key = PyUnicode_InternFromString("nbytes")) == NULL) {
        return -1;
    }
    if (account_type == NULL) {
        account_type = (PyTypeObject *)PyType_FromSpec(&spec);
    }
    return account_type != NULL ? 0 : -1;
}

int memrt__scoped_task_setup(PyObject *module)
{
    return create_objects() == 0
               ? PyModule_AddObjectRef(module, "TaskAccount", (PyObject *)account_type)
               : -1;
}
