#ifndef MEMRT_MEMINFO_FUNCTIONS_H
#define MEMRT_MEMINFO_FUNCTIONS_H

/// Types of all functions of MemInfos in the function table.

#include <memrt/meminfo/block.h>
#include <memrt/meminfo/create.h>
#include <memrt/meminfo/exchange.h>
#include <memrt/meminfo/freeze.h>
#include <memrt/meminfo/holder.h>
#include <memrt/meminfo/locate.h>
#include <memrt/meminfo/resizable.h>
#include <memrt/meminfo/weak.h>

#endif
