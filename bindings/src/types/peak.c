#include "types/peak.h"

#include <string.h>

#include <memrt/import.h>

#include "support/errors.h"
#include "support/free_threading.h"

#define NAME "MEMRT_PEAK"

/* The count is state of the process, and is above 0 while any block needs the value "exact". So no
   lock is needed: signal handlers, threads and forked children may open blocks at any time. */
static size_t open_blocks;
static memrt_option_t saved_option; ///< value of the option outside of all blocks

/// Save the value of the option, which exists in every version of the library.
static void save_option(void)
{
    /* GCOV_EXCL_BR_START: every libmemrt has this option */
    for (size_t i = 0;
         memrt__api()->option(i, &saved_option) && strcmp(saved_option.name, NAME) != 0; i++) {
        /* GCOV_EXCL_BR_STOP */
    }
}

/// Open a block. Failure: the reason is in `why`.
static memrt_status_t open_block(char *why)
{
    memrt_status_t status;
    if (open_blocks++ == 0) {
        save_option();
    }
    /* Setting the option waits for threads that are ending, which may need the GIL. The call
       does not block if the value is already set. */
    Py_BEGIN_ALLOW_THREADS;
    status = memrt__api()->option_set(NAME, "exact", why, MEMRT__WHY_MAX);
    Py_END_ALLOW_THREADS;
    open_blocks -= status != MEMRT_OK;
    return status;
}

/// Close a block, if any is open, and store whether a block was open. Failure: the reason is in
/// `why`.
static memrt_status_t close_block(int *was_open, char *why)
{
    memrt_status_t status = MEMRT_OK;
    *was_open = open_blocks != 0;
    if (open_blocks == 1) {
        status = memrt__api()->option_set(NAME, saved_option.value, why, MEMRT__WHY_MAX);
    }
    open_blocks -= *was_open && status == MEMRT_OK; /* GCOV_EXCL_BR_LINE: both values are valid */
    return status;
}

static PyObject *exact_peak_open(PyObject *module, PyObject *unused)
{
    char why[MEMRT__WHY_MAX];
    memrt_status_t status;
    (void)module;
    (void)unused;
    MEMRT_BEGIN_PROCESS_STATE();
    status = open_block(why);
    MEMRT_END_PROCESS_STATE();
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: both values are valid */
        return memrt__raise_why(status, why);
    }
    Py_RETURN_NONE;
}

static PyObject *exact_peak_close(PyObject *module, PyObject *unused)
{
    char why[MEMRT__WHY_MAX];
    memrt_status_t status;
    int was_open;
    (void)module;
    (void)unused;
    MEMRT_BEGIN_PROCESS_STATE();
    status = close_block(&was_open, why);
    MEMRT_END_PROCESS_STATE();
    if (status != MEMRT_OK) { /* GCOV_EXCL_BR_LINE: both values are valid */
        return memrt__raise_why(status, why);
    }
    return PyBool_FromLong(was_open);
}

PyMethodDef memrt__peak_methods[] = {
    {"exact_peak_open", exact_peak_open, METH_NOARGS,
     "exact_peak_open()\n\n"
     "Make peaks exact until the same number of calls of exact_peak_close()."},
    {"exact_peak_close", exact_peak_close, METH_NOARGS,
     "exact_peak_close() -> bool\n\nEnd one block. Return False if no block is open."},
    {NULL, NULL, 0, NULL},
};
