#ifndef MEMRT_ADOPTION_H
#define MEMRT_ADOPTION_H

#include "binding.h"

/// Taking over the memory of arrays that own it, whoever made it, without moving it.
extern PyMethodDef memrt__adoption_methods[];

#endif
