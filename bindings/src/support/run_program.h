#ifndef MEMRT_BINDINGS_SUPPORT_RUN_PROGRAM_H
#define MEMRT_BINDINGS_SUPPORT_RUN_PROGRAM_H

#include "support/binding.h"

/// Run Python code as the interpreter runs a program, for `python -m memrt run`: the module
/// functions run_file(), run_code(), call_outermost() and call_at_exit(). During a call, the Python
/// frames of memrt are unlinked from the thread, so call stacks and tracebacks of the program have
/// no frame of memrt. The frames are linked again after the call, also after an exception.
extern PyMethodDef memrt__program_methods[];

#endif
