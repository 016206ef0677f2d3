#include "policy.h"

#include "argument.h"
#include "errors.h"
#include "handler.h"

static PyObject *policy_new(PyObject *module, PyObject *args)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options)};
    memrt_policy_t *policy;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&:policy_new", memrt__name_argument, &options.name,
                          memrt__align_argument, &options.alignment)) {
        return NULL;
    }
    memrt_status_t status = memrt__api()->policy_new(&options, &policy);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot make a policy");
    }
    return memrt__handler_new(policy);
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
        Py_BuildValue("(snI)", api->policy_name(policy), (Py_ssize_t)api->policy_alignment(policy),
                      (unsigned)api->policy_index(policy));
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
     "policy_new(name, alignment) -> handler\n\nMake a policy; it lives as long as its handler."},
    {"policy_info", policy_info, METH_O,
     "policy_info(handler) -> (name, alignment, index)\n\nWhat a policy is. Alignment in bytes."},
    {"policies", policies, METH_NOARGS,
     "policies() -> list of (index, handler)\n\nAll live policies, each with a handler."},
    {NULL, NULL, 0, NULL},
};
