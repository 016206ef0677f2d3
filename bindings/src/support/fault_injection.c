#include "support/fault_injection.h"

#include "support/errors.h"

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
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: each plan is valid */
        return memrt__raise(status, "cannot start fault injection");
    }
    Py_RETURN_NONE;
}

static PyObject *stop_failing(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    memrt_status_t status = memrt__api()->fail_allocations(NULL);
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: an end of a plan is valid */
        return memrt__raise(status, "cannot stop fault injection");
    }
    Py_RETURN_NONE;
}

static PyObject *count_failure_points(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(memrt__api()->failure_points());
}

PyMethodDef memrt__failure_methods[] = {
    {"fail_allocations", fail_allocations, METH_VARARGS,
     "fail_allocations(nth, every, this_thread)\n\n"
     "Start fault injection with a plan, as memrt_failure_plan_t."},
    {"stop_failing", stop_failing, METH_NOARGS, "stop_failing()\n\nStop fault injection."},
    {"failure_points", count_failure_points, METH_NOARGS,
     "failure_points() -> int\n\nReturn the number of requests since fault injection started."},
    {NULL, NULL, 0, NULL},
};
