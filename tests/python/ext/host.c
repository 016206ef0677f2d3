/// A C program that embeds Python. Each argument after the first runs in a new interpreter, which
/// ends after the code. C code keeps MemInfos across the end of the interpreter. After each step
/// the program prints memrt's account as a line of JSON.
///
///     host PYTHON CODE...
///
/// No library replaces the program: pytest cannot end and restart the interpreter in one process.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memrt/memrt.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define KEPT_MAX 100000

/// Number of calls of meet() while Python ends. The last share of kept MemInfos waits for Python's
/// end.
#define MEETINGS 3

static const memrt_api_t *api;

static memrt_meminfo_t *kept[KEPT_MAX];
static size_t kept_count;
static atomic_size_t released; ///< number of released entries of `kept`, from the start
static atomic_size_t limit;    ///< maximum of `released`
static atomic_size_t ran;      ///< calls of dtor()
static pthread_t releaser;
static int releasing; ///< the releaser thread runs
static PyCFunction remembered;

/* --- The module "host", for the code of the arguments. --- */

/// keep(address): keep the reference that probe.hold() took to a MemInfo
static PyObject *keep(PyObject *module, PyObject *address)
{
    (void)module;
    if (kept_count == KEPT_MAX) {
        PyErr_SetString(PyExc_IndexError, "keep() has no room for another reference");
        return NULL;
    }
    kept[kept_count++] = PyLong_AsVoidPtr(address);
    Py_RETURN_NONE;
}

/// dtor(address, nbytes): count calls
static PyObject *dtor(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    atomic_fetch_add(&ran, 1);
    Py_RETURN_NONE;
}

static void release_next(void)
{
    size_t next = atomic_load(&released);
    api->release(kept[next]);
    atomic_store(&released, next + 1);
}

static void *release_body(void *unused)
{
    (void)unused;
    while (atomic_load(&released) < kept_count) {
        memrt_meminfo_t *mine = api->allocate(1000);
        if (mine != NULL) {
            api->release(mine);
        }
        if (atomic_load(&released) < atomic_load(&limit)) {
            release_next();
        }
    }
    return NULL;
}

static int start_releaser(void)
{
    releasing = pthread_create(&releaser, NULL, release_body, NULL) == 0;
    return releasing;
}

/// begin(): start a thread, unknown to Python, that creates and releases its own MemInfos until all
/// kept MemInfos are released. Each call of meet() allows the release of one more share.
static PyObject *begin(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return start_releaser() ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

/// meet(): allow one more share and wait, with the GIL, until half of the share is released
static PyObject *meet(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    size_t share = kept_count / (MEETINGS + 1);
    size_t enough = atomic_fetch_add(&limit, share) + share / 2;
    while (atomic_load(&released) < enough) {
        sched_yield();
    }
    Py_RETURN_NONE;
}

/// remember(function): keep the C function behind a function without arguments
static PyObject *remember(PyObject *module, PyObject *function)
{
    (void)module;
    remembered = PyCFunction_GetFunction(function);
    return remembered != NULL ? Py_NewRef(Py_None) : NULL;
}

/// recall() -> result of a new call of the remembered C function
static PyObject *recall(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return remembered(NULL, NULL);
}

static PyMethodDef methods[] = {
    {"keep", keep, METH_O, NULL},
    {"dtor", dtor, METH_VARARGS, NULL},
    {"begin", begin, METH_NOARGS, NULL},
    {"meet", meet, METH_NOARGS, NULL},
    {"remember", remember, METH_O, NULL},
    {"recall", recall, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "host", .m_size = -1,
                                 .m_methods = methods};

static PyObject *init_host(void)
{
    return PyModule_Create(&definition);
}

/* --- The program. ---  */

static void show(const char *when)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    if (api->stats_read(NULL, &stats) != MEMRT_OK) {
        abort();
    }
    printf("{\"when\": \"%s\", \"blocks\": %lld, \"meminfos\": %lld, \"live\": %llu, "
           "\"adopted\": %llu, \"kept\": %zu, \"ran\": %zu}\n",
           when, (long long)(stats.alloc - stats.free), (long long)(stats.mi_alloc - stats.mi_free),
           (unsigned long long)stats.live, (unsigned long long)stats.adopted,
           kept_count - atomic_load(&released), atomic_load(&ran));
    fflush(stdout);
}

static void stop(PyStatus status)
{
    if (PyStatus_Exception(status)) {
        Py_ExitStatusException(status);
    }
}

/// Start Python with the program name `executable`, so that Python finds the same packages.
static void begin_python(const char *executable)
{
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    stop(PyConfig_SetBytesString(&config, &config.program_name, executable));
    stop(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
}

/// Release all kept MemInfos: on the running releaser thread, or else half here and half on a new
/// thread.
static void release_kept(void)
{
    while (!releasing && 2 * atomic_load(&released) < kept_count) {
        release_next();
    }
    atomic_store(&limit, kept_count);
    if (!releasing && !start_releaser()) {
        abort();
    }
    pthread_join(releaser, NULL);
    releasing = 0;
    kept_count = 0;
    atomic_store(&released, 0);
    atomic_store(&limit, 0);
}

static int run(const char *executable, const char *code)
{
    begin_python(executable);
    int status = PyRun_SimpleString(code);
    status |= Py_FinalizeEx();
    show("ended");
    release_kept();
    show("released");
    return status;
}

int main(int count, char **arguments)
{
    int status = 0;
    const char *why = "?";
    api = memrt_get_api(MEMRT_ABI_MAJOR, &why);
    if (api == NULL || PyImport_AppendInittab("host", init_host) < 0) {
        fprintf(stderr, "host cannot begin: %s\n", why);
        return 2;
    }
    for (int i = 2; i < count && status == 0; i++) {
        status = run(arguments[1], arguments[i]);
    }
    return status != 0;
}
