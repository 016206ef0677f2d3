#ifndef MEMRT_SYMBOLS_SYMBOLS_H
#define MEMRT_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/process/symbol.h>
#include <memrt/status.h>

#include "runtime/base/check.h"

/// Symbol slots: implement the members of memrt_api_t with the same names.

intptr_t memrt__unresolved_abort(void);
memrt_status_t memrt__symbol_slot(const char *name, memrt_function_t *const **slot);
memrt_status_t memrt__symbol_define(const char *name, memrt_function_t *function);
size_t memrt__symbols_unresolved(const char **names, size_t room);
memrt_status_t memrt__symbol_error(const char **name);
void memrt__set_symbol_error(memrt_undefined_symbol_fn tell);

#if MEMRT_DEBUG
/// Return whether the invariants of the names and slots of symbols hold. Takes the locks of ranks
/// SYMBOLS and INTERNED.
bool memrt__symbols_is_valid(void);
#endif

#endif
