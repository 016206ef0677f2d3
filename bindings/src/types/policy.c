#include "types/policy.h"

#include "allocators/allocator_capsule.h"
#include "core/current_policy.h"
#include "core/mem_handler.h"
#include "core/owner.h"
#include "support/arguments.h"
#include "support/errors.h"
#include "support/free_threading.h"

/// Check an option value; NULL is valid. -1 with an exception that states the fault.
static int verify_option(const char *name, const char *value)
{
    char why[MEMRT__WHY_MAX];
    memrt_status_t status =
        value == NULL ? MEMRT_OK : memrt__api()->option_check(name, value, why, sizeof(why));
    if (status != MEMRT_OK) {
        memrt__raise_why(status, why);
        return -1;
    }
    return 0;
}

/// Select the pinned memory allocator. Refuses at once without a CUDA driver, since the policy
/// could never allocate. -1 with an exception.
static int select_pinned_allocator(memrt_policy_options_t *options)
{
    if (memrt__need_cuda() < 0) {
        return -1;
    }
    options->allocator = memrt__api()->allocator_pinned();
    return 0;
}

/// Create a policy with an allocator from a capsule, or with Py_None. NULL with an exception; the
/// capsule then has its allocator again.
static memrt_policy_t *create_policy(memrt_policy_options_t *options, PyObject *capsule)
{
    memrt_policy_t *policy = NULL;
    if (capsule != Py_None && memrt__allocator_take(capsule, &options->allocator) < 0) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->policy_new(options, &policy);
    if (status == MEMRT_OK) {
        return policy;
    }
    if (capsule != Py_None) {
        memrt__allocator_untake(capsule);
    }
    memrt__raise(status, "cannot create a policy");
    return NULL;
}

static PyObject *policy_new(PyObject *module, PyObject *args)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options)};
    PyObject *allocator;
    int pinned;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&zzzpO|z:policy_new", memrt__name_argument, &options.name,
                          memrt__align_argument, &options.alignment, &options.cache_limit,
                          &options.decay, &options.hugepages, &pinned, &allocator,
                          &options.guard_sample)) {
        return NULL;
    }
    if (pinned && select_pinned_allocator(&options) < 0) {
        return NULL;
    }
    if (verify_option("cache_limit", options.cache_limit) < 0 ||
        verify_option("decay", options.decay) < 0 ||
        verify_option("hugepages", options.hugepages) < 0 ||
        verify_option("guard_sample", options.guard_sample) < 0) {
        return NULL;
    }
    memrt_policy_t *policy = create_policy(&options, allocator);
    return policy != NULL ? memrt__handler_new(policy) : NULL;
}

static PyObject *default_allocator_set(PyObject *module, PyObject *capsule)
{
    const memrt_allocator_t *allocator;
    (void)module;
    if (memrt__allocator_take(capsule, &allocator) < 0) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->policy_default_set_allocator(allocator);
    if (status == MEMRT_OK) {
        Py_RETURN_NONE;
    }
    memrt__allocator_untake(capsule);
    if (status == MEMRT_EBUSY) {
        PyErr_SetString(PyExc_RuntimeError,
                        "default policy must be unused, got a policy that was used or has an "
                        "allocator of its own: set the allocator once, before the first array");
        return NULL;
    }
    return memrt__raise(status, "cannot set the allocator of the default policy");
}

static PyObject *policy_option_set(PyObject *module, PyObject *args)
{
    PyObject *object;
    const char *name, *value;
    char why[MEMRT__WHY_MAX];
    (void)module;
    if (!PyArg_ParseTuple(args, "Osz:policy_option_set", &object, &name, &value)) {
        return NULL;
    }
    PyObject *handler = memrt__current_handler_for(object);
    if (handler == NULL) {
        return NULL;
    }
    memrt_policy_t *policy = memrt__handler_policy(handler);
    memrt_status_t status;
    /* The purger may have to start or stop, and memory may be given back. */
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->policy_option_set(policy, name, value, why, sizeof(why));
    Py_END_ALLOW_THREADS;
    Py_DECREF(handler);
    if (status != MEMRT_OK) {
        return memrt__raise_why(status, why);
    }
    Py_RETURN_NONE;
}

static PyObject *policy_reset(PyObject *module, PyObject *handler)
{
    char why[2000];
    size_t bytes;
    memrt_status_t status;
    (void)module;
    if (!memrt__handler_is_own(handler)) {
        PyErr_SetString(PyExc_TypeError, "handler must be a handler of memrt");
        return NULL;
    }
    memrt__owner_drain();
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->policy_reset(memrt__handler_policy(handler), &bytes, why, sizeof(why));
    Py_END_ALLOW_THREADS;
    if (status == MEMRT_OK) {
        return PyLong_FromSize_t(bytes);
    }
    PyObject *text = memrt__text(why);
    if (text != NULL) {
        PyErr_SetObject(PyExc_RuntimeError, text);
        Py_DECREF(text);
    }
    return NULL;
}

static int append_option(PyObject *list, const memrt_option_t *option)
{
    PyObject *pair = Py_BuildValue("(sN)", option->name, memrt__text(option->value));
    int result = pair != NULL ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    return result;
}

/// Return the options that a policy sets itself, as a tuple of pairs. Not a dict: CPython may crash
/// without memory for the dict's iterator.
static PyObject *list_own_options(const memrt_policy_t *policy)
{
    memrt_option_t option;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && memrt__api()->policy_option(policy, i, &option); i++) {
        if (append_option(list, &option) < 0) {
            Py_CLEAR(list);
        }
    }
    PyObject *tuple = list != NULL ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

static PyObject *get_policy_info(PyObject *module, PyObject *object)
{
    const memrt_api_t *api = memrt__api();
    (void)module;
    PyObject *handler = memrt__current_handler_for(object);
    if (handler == NULL) {
        return NULL;
    }
    memrt_policy_t *policy = memrt__handler_policy(handler);
    PyObject *info = Py_BuildValue("(NnIN)", memrt__text(api->policy_name(policy)),
                                   (Py_ssize_t)api->policy_alignment(policy),
                                   (unsigned)api->policy_index(policy), list_own_options(policy));
    Py_DECREF(handler);
    return info;
}

/// Steals the reference to the policy. -1 with an exception.
static int append_policy(PyObject *list, memrt_policy_t *policy)
{
    unsigned index = memrt__api()->policy_index(policy);
    PyObject *handler = memrt__handler_new(policy);
    PyObject *pair = handler != NULL ? Py_BuildValue("(IN)", index, handler) : NULL;
    int result = pair != NULL ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    return result;
}

static PyObject *list_policies(PyObject *module, PyObject *unused)
{
    const memrt_api_t *api = memrt__api();
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (uint32_t index = 0; list != NULL && index < api->policy_limit(); index++) {
        memrt_policy_t *policy = api->policy_at(index);
        if (policy != NULL && append_policy(list, policy) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/// Return a new reference to the live object of `known` for `key`, or NULL. An exception is set
/// only if an error occurred.
static PyObject *find_live_object(PyObject *known, PyObject *key)
{
    PyObject *ref = memrt__dict_get(known, key);
    PyObject *object = ref != NULL ? PyObject_CallNoArgs(ref) : NULL;
    Py_XDECREF(ref);
    if (object == Py_None) {
        Py_CLEAR(object);
    }
    return object;
}

/// Return the one live object for a key. No Python code can run between lookup and insertion, so
/// threads, signal handlers and finalizers get the same object.
static PyObject *get_or_add_object(PyObject *module, PyObject *args)
{
    static memrt_mutex_t mutex = MEMRT_MUTEX_INIT;
    PyObject *known, *key, *candidate;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OO:one_object", &PyDict_Type, &known, &key, &candidate)) {
        return NULL;
    }
    PyObject *ref = PyWeakref_NewRef(candidate, NULL);
    MEMRT_MUTEX_LOCK(&mutex);
    PyObject *object = ref != NULL ? find_live_object(known, key) : NULL;
    if (object == NULL && !PyErr_Occurred() && PyDict_SetItem(known, key, ref) == 0) {
        object = Py_NewRef(candidate);
    }
    MEMRT_MUTEX_UNLOCK(&mutex);
    Py_XDECREF(ref);
    return object;
}

PyMethodDef memrt__policy_methods[] = {
    {"policy_new", policy_new, METH_VARARGS,
     "policy_new(name, alignment, cache_limit, decay, hugepages, pinned, allocator, guard=None)\n"
     "-> handler\n\n"
     "Create a policy, which lives as long as the handler. `allocator` is a capsule or None."},
    {"default_allocator_set", default_allocator_set, METH_O,
     "default_allocator_set(capsule, /)\n\n"
     "Set the allocator of the default policy, once and before its first use."},
    {"policy_option_set", policy_option_set, METH_VARARGS,
     "policy_option_set(handler, name, value)\n\n"
     "Set an option of a live policy. A value of None follows the option of the process."},
    {"policy_reset", policy_reset, METH_O,
     "policy_reset(handler, /) -> bytes\n\n"
     "Give all memory of a policy back. RuntimeError if a block is live."},
    {"policy_info", get_policy_info, METH_O,
     "policy_info(handler) -> (name, alignment, index, options)\n\n"
     "Return the properties of a policy. Alignment in bytes."},
    {"one_object", get_or_add_object, METH_VARARGS,
     "one_object(known, key, candidate) -> object\n\n"
     "Return the live object of `known`, a dict of weak references, for `key`. Without a live\n"
     "object, store and return `candidate`. Atomic for threads."},
    {"policies", list_policies, METH_NOARGS,
     "policies() -> list of (index, handler)\n\nReturn all live policies, each with a handler."},
    {NULL, NULL, 0, NULL},
};
