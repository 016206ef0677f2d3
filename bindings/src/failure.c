#include "failure.h"

#include "errors.h"

static PyObject *fail_allocations(PyObject *module, PyObject *args)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan)};
    unsigned long long nth, every;
    (void)module;
    if (!PyArg_ParseTuple(args, "KKp:fail_allocations", &nth, &every, &plan.this_thread_only)) {
        return NULL;
    }
    plan.nth = nth;
    plan.every = every;
    memrt_status_t status = memrt__api()->fail_allocations(&plan);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot set a failure plan");
    }
    Py_RETURN_NONE;
}

static PyObject *stop_failing(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    memrt_status_t status = memrt__api()->fail_allocations(NULL);
    if (status != MEMRT_OK) {
        return memrt__raise(status, "cannot take the failure plan away");
    }
    Py_RETURN_NONE;
}

static PyObject *failure_points(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(memrt__api()->failure_points());
}

PyMethodDef memrt__failure_methods[] = {
    {"fail_allocations", fail_allocations, METH_VARARGS,
     "fail_allocations(nth, every, this_thread)\n\nSet the plan by which requests fail."},
    {"stop_failing", stop_failing, METH_NOARGS, "stop_failing()\n\nTake the plan away."},
    {"failure_points", failure_points, METH_NOARGS,
     "failure_points() -> int\n\nRequests counted since the plan was set."},
    {NULL, NULL, 0, NULL},
};
