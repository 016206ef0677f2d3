#ifndef MEMRT_MEMRT_H
#define MEMRT_MEMRT_H

/// Everything that a C program without Python needs: `memrt_get_api(MEMRT_ABI_MAJOR, &why)`.

#include <memrt/external.h>

#endif
