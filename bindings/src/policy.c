#include "policy.h"

#include "argument.h"
#include "errors.h"
#include "handler.h"

/// Raise what is wrong with a text; NULL: nothing.
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

/// Without a driver such a policy could give no memory, so that it is refused at once.
static int choose_pinned(memrt_policy_options_t *options)
{
    if (memrt__need_cuda() < 0) {
        return -1;
    }
    options->allocator = memrt__api()->allocator_pinned();
    return 0;
}

static PyObject *policy_new(PyObject *module, PyObject *args)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options)};
    memrt_policy_t *policy;
    int pinned;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&zzzp:policy_new", memrt__name_argument, &options.name,
                          memrt__align_argument, &options.alignment, &options.cache_limit,
                          &options.decay, &options.hugepages, &pinned)) {
        return NULL;
    }
    if (pinned && choose_pinned(&options) < 0) {
        return NULL;
    }
    if (verify_option("cache_limit", options.cache_limit) < 0 ||
        verify_option("decay", options.decay) < 0 ||
        verify_option("hugepages", options.hugepages) < 0) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->policy_new(&options, &policy);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot make a policy");
    }
    return memrt__handler_new(policy);
}

static int append_option(PyObject *list, const memrt_option_t *option)
{
    PyObject *pair = Py_BuildValue("(ss)", option->name, option->value);
    int result = pair != NULL ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    return result;
}

/// What a policy sets for itself, as a tuple of pairs. No dict: CPython may crash where it has no
/// memory for the iterator of one.
static PyObject *own_options(const memrt_policy_t *policy)
{
    memrt_option_t option;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && memrt__api()->policy_option(policy, i, &option); i++) {
        if (append_option(list, &option) < 0) {
            Py_CLEAR(list);
        }
    }
    PyObject *own = list != NULL ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return own;
}

static PyObject *policy_info(PyObject *module, PyObject *object)
{
    const memrt_api_t *api = memrt__api();
    (void)module;
    PyObject *handler = memrt__handler_for(object);
    if (handler == NULL) {
        return NULL;
    }
    memrt_policy_t *policy = memrt__handler_policy(handler);
    PyObject *info =
        Py_BuildValue("(snIN)", api->policy_name(policy), (Py_ssize_t)api->policy_alignment(policy),
                      (unsigned)api->policy_index(policy), own_options(policy));
    Py_DECREF(handler);
    return info;
}

static int append_policy(PyObject *list, memrt_policy_t *policy)
{
    unsigned index = memrt__api()->policy_index(policy);
    PyObject *handler = memrt__handler_new(policy);
    PyObject *pair = handler != NULL ? Py_BuildValue("(IN)", index, handler) : NULL;
    int result = pair != NULL ? PyList_Append(list, pair) : -1;
    Py_XDECREF(pair);
    return result;
}

static PyObject *policies(PyObject *module, PyObject *unused)
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

PyMethodDef memrt__policy_methods[] = {
    {"policy_new", policy_new, METH_VARARGS,
     "policy_new(name, alignment, cache_limit, decay, hugepages, pinned) -> handler\n\n"
     "Make a policy; it lives as long as its handler."},
    {"policy_info", policy_info, METH_O,
     "policy_info(handler) -> (name, alignment, index, options)\n\n"
     "What a policy is. Alignment in bytes."},
    {"policies", policies, METH_NOARGS,
     "policies() -> list of (index, handler)\n\nAll live policies, each with a handler."},
    {NULL, NULL, 0, NULL},
};
