#include "tasks/task_account.h"

#include "support/free_threading.h"

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

void memrt__task_account_start(PyObject *self)
{
    for (account_t *account = (account_t *)self; account != NULL; account = account->around) {
        MEMRT_MUTEX_LOCK(&account->mutex);
        account->figures.running++;
        MEMRT_MUTEX_UNLOCK(&account->mutex);
    }
}

/// Add a task to the figures. Frees of other threads may make live bytes fall below their value at
/// the start.
static void add_task(figures_t *figures, const memrt_task_outcome_t *out)
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

void memrt__task_account_end(PyObject *self, const memrt_task_outcome_t *out)
{
    for (account_t *account = (account_t *)self; account != NULL; account = account->around) {
        MEMRT_MUTEX_LOCK(&account->mutex);
        add_task(&account->figures, out);
        MEMRT_MUTEX_UNLOCK(&account->mutex);
    }
}

int memrt__is_task_account(PyObject *object)
{
    return Py_TYPE(object) == account_type;
}

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

int memrt__task_account_setup(PyObject *module)
{
    if (account_type == NULL) {
        account_type = (PyTypeObject *)PyType_FromSpec(&spec);
    }
    return account_type != NULL
               ? PyModule_AddObjectRef(module, "TaskAccount", (PyObject *)account_type)
               : -1;
}
