#ifndef MEMRT_BINDINGS_TASKS_TASK_ACCOUNT_H
#define MEMRT_BINDINGS_TASKS_TASK_ACCOUNT_H

#include "support/binding.h"

/// Account of tasks, such as the tasks with one prefix: `_memrt.TaskAccount`. An account inside of
/// another account counts a part of the same tasks.
///
/// Thread-safe: a mutex protects the figures.

/// Outcome of a task.
typedef struct memrt_task_outcome {
    memrt_stats_t before, after; ///< account of the scope around the task
    int finished;                ///< whether the task was a success
    uint64_t nbytes;             ///< size of the result
} memrt_task_outcome_t;

/// Return whether an object is an account.
int memrt__is_task_account(PyObject *object);

/// Count a task that runs, in an account and the accounts around.
void memrt__task_account_start(PyObject *account);

/// Add a task that ended to an account and the accounts around.
void memrt__task_account_end(PyObject *account, const memrt_task_outcome_t *outcome);

/// Create the type. Call once, at import. A call after a failure tries again. -1 with an
/// exception.
int memrt__task_account_setup(PyObject *module);

#endif
