#ifndef MEMRT_BINDINGS_OBSERVE_LEAK_SURVEY_H
#define MEMRT_BINDINGS_OBSERVE_LEAK_SURVEY_H

#include "support/binding.h"

/// Find the holders of many buffers in one walk over the object graph.

extern PyMethodDef memrt__survey_methods[];

#endif
