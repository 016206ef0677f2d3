#ifndef MEMRT_BINDINGS_OBSERVE_HOLDERS_H
#define MEMRT_BINDINGS_OBSERVE_HOLDERS_H

#include "support/binding.h"

/// Find the holders of one buffer: the objects that keep the buffer alive, and their referrers.
extern PyMethodDef memrt__holders_methods[];

#endif
