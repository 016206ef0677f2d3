#ifndef MEMRT_POLICY_H
#define MEMRT_POLICY_H

#include "binding.h"

/// Policies seen from Python: each is known by its handler, which holds one reference.
extern PyMethodDef memrt__policy_methods[];

#endif
