#include "runtime/symbols/symbols.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/config/fault_injection.h"
#include "runtime/observe/intern_table.h"
#include "runtime/os/lock.h"
#include "runtime/symbols/stubs.h"

/// A symbol: the address that its users call, and the stub in use while the symbol is undefined.
typedef struct symbol {
    size_t target;          ///< address; store: release; loaded by compiled code; 0: no slot yet
    memrt_function_t *stub; ///< NULL: the symbol is defined
} symbol_t;

/* Symbols have the numbers of their names. Chunks are allocated under the lock of rank SYMBOLS. */
static memrt__interns_t names;
static symbol_t *chunks[MEMRT__INTERNED_MAX / MEMRT__INTERNED_CHUNK];

#define NO_ERROR 0u
#define OF_NO_NAME UINT32_MAX
static MEMRT__THREAD_LOCAL uint32_t error; /* number of a symbol, NO_ERROR or OF_NO_NAME */

static size_t error_callback; /* callback: a memrt_undefined_symbol_fn, or 0 */

_Static_assert(sizeof(memrt_function_t *) == sizeof(size_t), "a function's address fits a word");

/// Return the symbol with the given number if its chunk exists, else NULL. Under the lock.
static symbol_t *get_symbol(uint32_t number)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_SYMBOLS);
    MEMRT__ASSERT(number != 0 && number <= MEMRT__INTERNED_MAX);
    symbol_t *chunk = chunks[(number - 1) / MEMRT__INTERNED_CHUNK];
    return chunk == NULL ? NULL : &chunk[(number - 1) % MEMRT__INTERNED_CHUNK];
}

static const char *get_symbol_name(uint32_t number)
{
    const memrt__interned_t *name = memrt__interned_at(&names, number);
    return name == NULL ? NULL : (const char *)name->words;
}

static void set_target(symbol_t *symbol, memrt_function_t *function)
{
    memrt__store_release(&symbol->target, (size_t)function);
}

/// Record the call of an undefined symbol, unless the callback reports the call.
static intptr_t report_undefined_call(uint32_t symbol)
{
    memrt_undefined_symbol_fn tell =
        (memrt_undefined_symbol_fn)memrt__load_acquire(&error_callback);
    if ((tell == NULL || !tell(get_symbol_name(symbol))) && error == NO_ERROR) {
        error = symbol == 0 ? OF_NO_NAME : symbol;
    }
    return -1;
}

static void attach_stub(symbol_t *symbol, uint32_t number)
{
    MEMRT__ASSERT(symbol->stub == NULL);
    symbol->stub = memrt__stub_take(number, report_undefined_call);
    set_target(symbol, symbol->stub);
}

/// Return the symbol with the given number, with a slot; creates the slot if missing. Returns NULL
/// without memory. Under the lock.
static symbol_t *get_or_create_symbol(uint32_t number)
{
    symbol_t **chunk = &chunks[(number - 1) / MEMRT__INTERNED_CHUNK];
    if (*chunk == NULL && !memrt__fault_is_due()) {
        *chunk = calloc(MEMRT__INTERNED_CHUNK, sizeof(**chunk));
    }
    symbol_t *symbol = get_symbol(number);
    if (symbol != NULL && symbol->target == 0) {
        attach_stub(symbol, number);
    }
    return symbol;
}

static memrt_status_t check_name(const char *name)
{
    size_t length = name == NULL ? 0 : strnlen(name, MEMRT_SYMBOL_MAX + 1);
    return length == 0 || length > MEMRT_SYMBOL_MAX ? MEMRT_EINVAL : MEMRT_OK;
}

/// Return the number of a valid name, or 0 if the name is unknown.
static uint32_t find_number(const char *name)
{
    const memrt__interned_t *known = memrt__interned_find(&names, name, strlen(name));
    return known == NULL ? 0 : known->number;
}

/// Return the number of a name, and assign a number to a new name. Returns 0 on failure, with the
/// reason in `*status`.
static uint32_t find_or_assign_number(const char *name, memrt_status_t *status)
{
    *status = check_name(name);
    uint32_t number = *status == MEMRT_OK ? find_number(name) : 0;
    if (*status != MEMRT_OK || number != 0) {
        return number;
    }
    const memrt__interned_t *fresh =
        memrt__fault_is_due() ? NULL : memrt__intern(&names, name, strlen(name));
    bool full = memrt__load_acquire(&names.count) == MEMRT__INTERNED_MAX;
    *status = fresh != NULL ? MEMRT_OK : full ? MEMRT_ELIMIT : MEMRT_ENOMEM;
    return fresh == NULL ? 0 : fresh->number;
}

memrt_status_t memrt__symbol_slot(const char *name, memrt_function_t *const **slot)
{
    memrt_status_t status;
    uint32_t number = find_or_assign_number(name, &status);
    if (number == 0) {
        return status;
    }
    memrt__lock(MEMRT__RANK_SYMBOLS);
    symbol_t *symbol = get_or_create_symbol(number);
    memrt__unlock(MEMRT__RANK_SYMBOLS);
    if (symbol == NULL) {
        return MEMRT_ENOMEM;
    }
    *slot = (memrt_function_t *const *)&symbol->target;
    return MEMRT_OK;
}

/// Define a symbol, under the lock. Returns MEMRT_EBUSY if the symbol has another function.
static memrt_status_t define_symbol(symbol_t *symbol, memrt_function_t *function)
{
    if (symbol->stub == NULL) {
        return symbol->target == (size_t)function ? MEMRT_OK : MEMRT_EBUSY;
    }
    MEMRT__ASSERT(symbol->target == (size_t)symbol->stub);
    set_target(symbol, function);
    memrt__stub_give_up(symbol->stub);
    symbol->stub = NULL;
    return MEMRT_OK;
}

static void undefine_symbol(uint32_t number)
{
    memrt__lock(MEMRT__RANK_SYMBOLS);
    symbol_t *symbol = get_symbol(number);
    if (symbol != NULL && symbol->target != 0 && symbol->stub == NULL) {
        attach_stub(symbol, number);
    }
    memrt__unlock(MEMRT__RANK_SYMBOLS);
}

/// Undefine a symbol. An unknown name has no slot and is undefined already, so no memory is needed.
static memrt_status_t undefine_name(const char *name)
{
    memrt_status_t status = check_name(name);
    uint32_t number = status == MEMRT_OK ? find_number(name) : 0;
    if (number != 0) {
        undefine_symbol(number);
    }
    return status;
}

memrt_status_t memrt__symbol_define(const char *name, memrt_function_t *function)
{
    if (function == NULL) {
        return undefine_name(name);
    }
    memrt_status_t status;
    uint32_t number = find_or_assign_number(name, &status);
    if (number == 0) {
        return status;
    }
    memrt__lock(MEMRT__RANK_SYMBOLS);
    symbol_t *symbol = get_or_create_symbol(number);
    status = symbol == NULL ? MEMRT_ENOMEM : define_symbol(symbol, function);
    memrt__unlock(MEMRT__RANK_SYMBOLS);
    return status;
}

size_t memrt__symbols_unresolved(const char **out, size_t room)
{
    size_t count = 0;
    memrt__lock(MEMRT__RANK_SYMBOLS);
    for (uint32_t number = 1; memrt__interned_at(&names, number) != NULL; number++) {
        const symbol_t *symbol = get_symbol(number);
        if (symbol != NULL && symbol->stub != NULL && count++ < room) {
            out[count - 1] = get_symbol_name(number);
        }
    }
    memrt__unlock(MEMRT__RANK_SYMBOLS);
    return count;
}

void memrt__set_symbol_error(memrt_undefined_symbol_fn tell)
{
    memrt__store_release(&error_callback, (size_t)tell);
}

intptr_t memrt__unresolved_abort(void)
{
    return report_undefined_call(0);
}

memrt_status_t memrt__symbol_error(const char **name)
{
    uint32_t symbol = error;
    if (symbol == NO_ERROR) {
        return MEMRT_OK;
    }
    error = NO_ERROR;
    if (name != NULL) {
        *name = get_symbol_name(symbol);
    }
    return MEMRT_ENOENT;
}

#if MEMRT_DEBUG

/// Check the slot of a symbol: an undefined symbol leads to its stub.
static bool is_symbol_valid(const symbol_t *symbol)
{
    return MEMRT__HOLDS(symbol->stub == NULL || symbol->target == (size_t)symbol->stub);
}

bool memrt__symbols_is_valid(void)
{
    bool valid = memrt__interns_is_valid(&names);
    memrt__lock(MEMRT__RANK_SYMBOLS);
    for (uint32_t number = 1; valid && memrt__interned_at(&names, number) != NULL; number++) {
        const symbol_t *symbol = get_symbol(number);
        valid = symbol == NULL || is_symbol_valid(symbol);
    }
    memrt__unlock(MEMRT__RANK_SYMBOLS);
    return valid;
}

#endif
