#ifndef MEMRT_BINDINGS_SUPPORT_RUN_PROGRAM_H
#define MEMRT_BINDINGS_SUPPORT_RUN_PROGRAM_H

#include "support/binding.h"

/// Start a program for `python -m memrt run`, without Python frames of memrt below it.
extern PyMethodDef memrt__program_methods[];

#endif
