#ifndef MEMRT_SYMBOL_H
#define MEMRT_SYMBOL_H

/// Symbol slots: calls of functions that are not defined yet.
///
/// Functions that call each other and are compiled one by one call through slots. A slot holds the
/// address of the function with a given name. While the name is not defined, the slot holds a stub,
/// which behaves as unresolved_abort and knows the name. Source: Numba's notes on its runtime,
/// "Recursion support".

#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Function of compiled code, with any arguments and any result.
typedef void memrt_function_t(void);

/// Maximum length of a symbol's name in bytes, without the closing zero.
#define MEMRT_SYMBOL_MAX 1023u

/// Maximum number of undefined symbols at the same time whose calls report the symbol's name.
#define MEMRT_SYMBOLS_NAMED 1024u

/// Callback for a call of an undefined symbol. `name` is NULL if the symbol is not known.
///
/// The callback returns non-zero to take the error over, for example as an exception of an
/// interpreter. Then memrt_api_t.symbol_error reports no error.
///
/// Threads: the thread that called the symbol, with no lock of memrt held.
typedef int (*memrt_undefined_symbol_fn)(const char *name);

/// Stand in for a symbol that is not defined; callable as a function of any arguments. The call
/// leaves an error on the calling thread, for symbol_error, and returns -1, the error indicator
/// of compiled code.
typedef intptr_t (*memrt_unresolved_abort_fn)(void);

/// Return the slot of `name`: the same slot for all callers, valid for the rest of the process.
/// Compiled code loads the function's address from the slot at each call, whole and in one
/// access.
///
/// Failure: MEMRT_EINVAL: the name is missing, empty or longer than MEMRT_SYMBOL_MAX bytes;
///          MEMRT_ENOMEM; MEMRT_ELIMIT: a million names have slots.
typedef memrt_status_t (*memrt_symbol_slot_fn)(const char *name, memrt_function_t *const **slot);

/// Define a symbol: from now on, all users of the symbol call `function`. `function` NULL:
/// remove the definition.
///
/// Remove the definition before the code of the function goes away. A thread that is in the
/// function, or about to enter the function, still has to return first.
///
/// Threads: earlier writes are visible to callers of `function`.
/// Failure: as symbol_slot, and MEMRT_EBUSY: the symbol is defined as another function.
typedef memrt_status_t (*memrt_symbol_define_fn)(const char *name, memrt_function_t *function);

/// List the names that have a slot and are not defined: write the first `room` names to
/// `names`, oldest first, valid for the rest of the process. Return the number of all such
/// names.
typedef size_t (*memrt_symbols_unresolved_fn)(const char **names, size_t room);

/// Take the error that a call of an undefined symbol left on the calling thread; of several
/// errors, the first.
///
/// MEMRT_OK: no error. MEMRT_ENOENT: an error, and `*name` (unless `name` is NULL) is the
/// symbol, valid for the rest of the process. `*name` is NULL if the symbol is not known:
/// MEMRT_SYMBOLS_NAMED other symbols were undefined at the time, or the call was a direct call
/// of unresolved_abort.
typedef memrt_status_t (*memrt_symbol_error_fn)(const char **name);

/// Set the function that is notified of calls of undefined symbols, or remove the function with
/// NULL. The function must stay valid for the rest of the process, because a thread may be
/// inside.
typedef void (*memrt_set_symbol_error_fn)(memrt_undefined_symbol_fn tell);

#ifdef __cplusplus
}
#endif

#endif
