#ifndef MEMRT_BINDINGS_TASKS_SCOPED_TASK_H
#define MEMRT_BINDINGS_TASKS_SCOPED_TASK_H

#include "support/binding.h"

/// Call of a task of a scheduler, on a policy and in a scope, with an account of the task.
///
/// Each call has a copy of the context, in which three variables change: the scope entries, the
/// stack of handlers, and NumPy's handler. A slot keeps the values of these variables before and
/// after the last change, so that the next call with the same values sets the variables again
/// without Python code.

/// Run tasks.
extern PyMethodDef memrt__scoped_task_methods[];

/// Create texts. Call once, at import. A call after a failure tries again. -1 with an exception.
int memrt__scoped_task_setup(void);

#endif
