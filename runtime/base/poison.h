#ifndef MEMRT_BASE_POISON_H
#define MEMRT_BASE_POISON_H

#include <stdint.h>

/// What an address that came in says of itself when it was read where MEMRT_POISON_... stands: a
/// clause for the report. NULL: it is none of them.
const char *memrt__poison_text(uintptr_t address);

#endif
