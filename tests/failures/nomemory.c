/* Make Python's allocators fail on purpose: a module with run(function, nth, goes_on). Unlike
   _testcapi.set_nomemory, only requests of the calling thread fail, and requests are counted. The
   allocators are restored when the function returns, before any further Python code runs. */

#include <Python.h>

static PyMemAllocatorEx upstream[3]; /* by domain */
static unsigned long thread;
static Py_ssize_t requests, first;
static int all_from_there;

static int is_due(void)
{
    if (PyThread_get_thread_ident() != thread) {
        return 0;
    }
    requests++;
    return requests == first || (all_from_there && requests > first);
}

static void *failing_malloc(void *ctx, size_t size)
{
    PyMemAllocatorEx *real = ctx;
    return is_due() ? NULL : real->malloc(real->ctx, size);
}

static void *failing_calloc(void *ctx, size_t count, size_t size)
{
    PyMemAllocatorEx *real = ctx;
    return is_due() ? NULL : real->calloc(real->ctx, count, size);
}

static void *failing_realloc(void *ctx, void *data, size_t size)
{
    PyMemAllocatorEx *real = ctx;
    return is_due() ? NULL : real->realloc(real->ctx, data, size);
}

static void passing_free(void *ctx, void *data)
{
    PyMemAllocatorEx *real = ctx;
    real->free(real->ctx, data);
}

static void strike(void)
{
    for (int domain = 0; domain < 3; domain++) {
        PyMemAllocatorEx failing = {&upstream[domain], failing_malloc, failing_calloc,
                                    failing_realloc, passing_free};
        PyMem_GetAllocator((PyMemAllocatorDomain)domain, &upstream[domain]);
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &failing);
    }
}

static void relent(void)
{
    for (int domain = 0; domain < 3; domain++) {
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &upstream[domain]);
    }
}

static PyObject *run(PyObject *module, PyObject *args)
{
    PyObject *function;
    (void)module;
    if (!PyArg_ParseTuple(args, "Onp", &function, &first, &all_from_there)) {
        return NULL;
    }
    requests = 0;
    thread = PyThread_get_thread_ident();
    strike();
    PyObject *result = PyObject_CallNoArgs(function);
    relent();
    return result;
}

static PyObject *points(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromSsize_t(requests);
}

static PyObject *get_none(PyObject *object, void *unused)
{
    (void)object;
    (void)unused;
    return Py_NewRef(Py_None);
}

/* More members than the first table of a dictionary has room for. */
#define MEMBER(name) {name, get_none, NULL, NULL, NULL}
static PyGetSetDef members[] = {MEMBER("a"), MEMBER("b"), MEMBER("c"), MEMBER("d"),   MEMBER("e"),
                                MEMBER("f"), MEMBER("g"), MEMBER("h"), MEMBER("i"),   MEMBER("j"),
                                MEMBER("k"), MEMBER("l"), MEMBER("m"), MEMBER("n"),   MEMBER("o"),
                                MEMBER("p"), MEMBER("q"), MEMBER("r"), MEMBER("s"),   MEMBER("t"),
                                MEMBER("u"), MEMBER("v"), MEMBER("w"), {.name = NULL}};

static PyType_Slot slots[] = {{Py_tp_getset, members}, {0, NULL}};
static PyType_Spec spec = {.name = "nomemory.Type",
                           .basicsize = (int)sizeof(PyObject),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = slots};

static PyObject *make_type(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyType_FromSpec(&spec);
}

static PyMethodDef methods[] = {
    {"make_type", make_type, METH_NOARGS, "make_type() -> type\n\nCreate a type in C."},
    {"run", run, METH_VARARGS,
     "run(function, nth, goes_on)\n\n"
     "Call function() while the nth memory request fails, or all requests from the nth on. Return "
     "the result of function()."},
    {"points", points, METH_NOARGS,
     "points() -> int\n\nReturn the number of requests of the last run()."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "nomemory", .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit_nomemory(void)
{
    return PyModule_Create(&definition);
}
