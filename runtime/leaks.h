#ifndef MEMRT_LEAKS_H
#define MEMRT_LEAKS_H

#include <stdint.h>

#include <memrt/status.h>

/// What is still live at the end of the process, and what is known to last until then.

/// See to it that the report which MEMRT_LEAKS asks for is written at the exit of the process.
/// Once.
void memrt__leaks_start(void);

/// The functions of memrt_api_t of the same names.
memrt_status_t memrt__lasting_add(const char *pattern, const char *what) MEMRT_MUST_CHECK;
const char *memrt__lasting_at(uint32_t site);

#endif
