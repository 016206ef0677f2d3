#include "allocators/fault_injection.h"

#include "core/current_scope.h"
#include "core/mem_handler.h"
#include "support/errors.h"

/// Set the policy and the scope of a plan, each from an object or None. -1 with an exception.
static int select_objects(memrt_failure_plan_t *plan, PyObject *handler, PyObject *scope)
{
    if (handler != Py_None && !memrt__handler_is_own(handler)) {
        PyErr_SetString(PyExc_TypeError, "handler must be a handler of memrt or None");
        return -1;
    }
    plan->policy = handler == Py_None ? NULL : memrt__handler_policy(handler);
    plan->scope = scope == Py_None ? NULL : PyCapsule_GetPointer(scope, MEMRT_SCOPE_CAPSULE);
    return scope != Py_None && plan->scope == NULL ? -1 : 0;
}

static PyObject *fail_allocations(PyObject *module, PyObject *args)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan)};
    unsigned long long nth, every, min_size, max_size;
    PyObject *handler, *scope;
    (void)module;
    if (!PyArg_ParseTuple(args, "KKpIKKOO:fail_allocations", &nth, &every, &plan.this_thread_only,
                          &plan.kinds, &min_size, &max_size, &handler, &scope) ||
        select_objects(&plan, handler, scope) < 0) {
        return NULL;
    }
    plan.nth = nth;
    plan.every = every;
    plan.min_size = min_size;
    plan.max_size = max_size;
    memrt_status_t status = memrt__api()->fail_allocations(&plan);
    if (status != MEMRT_OK) {
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

static PyObject *failure_read(PyObject *module, PyObject *unused)
{
    memrt_failure_t failures = {.struct_size = sizeof(failures)};
    (void)module;
    (void)unused;
    memrt_status_t status = memrt__api()->failure_read(&failures);
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: struct_size is valid */
        return memrt__raise(status, "cannot read the failures");
    }
    return Py_BuildValue("(KKKI)", (unsigned long long)failures.points,
                         (unsigned long long)failures.failed, (unsigned long long)failures.size,
                         (unsigned)failures.kind);
}

PyMethodDef memrt__failure_methods[] = {
    {"fail_allocations", fail_allocations, METH_VARARGS,
     "fail_allocations(nth, every, this_thread, kinds, min_size, max_size, handler, scope)\n\n"
     "Start fault injection with a plan, as memrt_failure_plan_t. The caller keeps the handler of\n"
     "a policy and the capsule of a scope, or None, until the plan ends."},
    {"stop_failing", stop_failing, METH_NOARGS, "stop_failing()\n\nStop fault injection."},
    {"failure_read", failure_read, METH_NOARGS,
     "failure_read() -> (points, failed, size, kind)\n\n"
     "Return the requests since fault injection started, the failures, and the size and kind of\n"
     "the first failure."},
    {NULL, NULL, 0, NULL},
};
