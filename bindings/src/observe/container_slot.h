#ifndef MEMRT_BINDINGS_OBSERVE_CONTAINER_SLOT_H
#define MEMRT_BINDINGS_OBSERVE_CONTAINER_SLOT_H

#include "support/binding.h"

/// Find the position of an object in a container, without running the code of any element.
extern PyMethodDef memrt__container_methods[];

#endif
