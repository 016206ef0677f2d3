#ifndef MEMRT_PROCESS_FUNCTIONS_H
#define MEMRT_PROCESS_FUNCTIONS_H

/// Types of all functions of the process in the function table.

#include <memrt/process/fault_injection.h>
#include <memrt/process/limit.h>
#include <memrt/process/option.h>
#include <memrt/process/pressure.h>
#include <memrt/process/process.h>
#include <memrt/process/reclaim.h>
#include <memrt/process/symbol.h>

#endif
