#include "runtime/symbols.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/failure.h"
#include "runtime/base/lock.h"
#include "runtime/debug/interned.h"
#include "runtime/stubs.h"

/// A symbol: what its users call, and what stands for it while nobody has defined it.
typedef struct symbol {
    size_t target; ///< address; release by who sets it, loaded by compiled code; 0: no slot yet
    memrt_function_t *stub; ///< NULL: it is defined
} symbol_t;

/* Slots are as many as names, with the same numbers; chunks under the lock. */
static memrt__interns_t names;
static symbol_t *chunks[MEMRT__INTERNED_MAX / MEMRT__INTERNED_CHUNK];

#define NO_ERROR 0u
#define OF_NO_NAME UINT32_MAX
static MEMRT__THREAD_LOCAL uint32_t error; /* a symbol's number, or one of these */

static size_t teller; /* a memrt_symbol_error_fn, or 0 */

_Static_assert(sizeof(memrt_function_t *) == sizeof(size_t), "a function's address fits a word");

/// The symbol of that number, if it has a slot; under the lock.
static symbol_t *symbol_at(uint32_t number)
{
    symbol_t *chunk = chunks[(number - 1) / MEMRT__INTERNED_CHUNK];
    return chunk == NULL ? NULL : &chunk[(number - 1) % MEMRT__INTERNED_CHUNK];
}

static const char *name_of(uint32_t number)
{
    const memrt__interned_t *name = memrt__interned_at(&names, number);
    return name == NULL ? NULL : (const char *)name->words;
}

static void set_target(symbol_t *symbol, memrt_function_t *function)
{
    memrt__store_release(&symbol->target, (size_t)function);
}

static void leave_undefined(symbol_t *symbol, uint32_t number)
{
    symbol->stub = memrt__stub_take(number);
    set_target(symbol, symbol->stub);
}

/// The symbol of that number, with a slot, under the lock. NULL: no memory.
static symbol_t *make(uint32_t number)
{
    symbol_t **chunk = &chunks[(number - 1) / MEMRT__INTERNED_CHUNK];
    if (*chunk == NULL && !memrt__failure_due()) {
        *chunk = calloc(MEMRT__INTERNED_CHUNK, sizeof(**chunk));
    }
    symbol_t *symbol = symbol_at(number);
    if (symbol != NULL && symbol->target == 0) {
        leave_undefined(symbol, number);
    }
    return symbol;
}

static memrt_status_t check_name(const char *name)
{
    size_t length = name == NULL ? 0 : strnlen(name, MEMRT_SYMBOL_MAX + 1);
    return length == 0 || length > MEMRT_SYMBOL_MAX ? MEMRT_EINVAL : MEMRT_OK;
}

/// Number of a name that may be one. 0: nobody has asked for it.
static uint32_t number_of(const char *name)
{
    const memrt__interned_t *known = memrt__interned_find(&names, name, strlen(name));
    return known == NULL ? 0 : known->number;
}

/// The same, given one if it has none. 0: `*status` says why it cannot have one.
static uint32_t new_number_of(const char *name, memrt_status_t *status)
{
    *status = check_name(name);
    uint32_t number = *status == MEMRT_OK ? number_of(name) : 0;
    if (*status != MEMRT_OK || number != 0) {
        return number;
    }
    const memrt__interned_t *fresh =
        memrt__failure_due() ? NULL : memrt__intern(&names, name, strlen(name));
    bool full = memrt__load_acquire(&names.count) == MEMRT__INTERNED_MAX;
    *status = fresh != NULL ? MEMRT_OK : full ? MEMRT_ELIMIT : MEMRT_ENOMEM;
    return fresh == NULL ? 0 : fresh->number;
}

memrt_status_t memrt__symbol_slot(const char *name, memrt_function_t *const **slot)
{
    memrt_status_t status;
    uint32_t number = new_number_of(name, &status);
    if (number == 0) {
        return status;
    }
    memrt__lock(MEMRT__RANK_SYMBOLS);
    symbol_t *symbol = make(number);
    memrt__unlock(MEMRT__RANK_SYMBOLS);
    if (symbol == NULL) {
        return MEMRT_ENOMEM;
    }
    *slot = (memrt_function_t *const *)&symbol->target;
    return MEMRT_OK;
}

/// Under the lock.
static memrt_status_t define(symbol_t *symbol, memrt_function_t *function)
{
    if (symbol->stub == NULL) {
        return symbol->target == (size_t)function ? MEMRT_OK : MEMRT_EBUSY;
    }
    set_target(symbol, function);
    memrt__stub_give_up(symbol->stub);
    symbol->stub = NULL;
    return MEMRT_OK;
}

static void undefine(uint32_t number)
{
    memrt__lock(MEMRT__RANK_SYMBOLS);
    symbol_t *symbol = symbol_at(number);
    if (symbol != NULL && symbol->target != 0 && symbol->stub == NULL) {
        leave_undefined(symbol, number);
    }
    memrt__unlock(MEMRT__RANK_SYMBOLS);
}

/// What nobody has asked for is not defined either way, so that this needs no memory.
static memrt_status_t take_away(const char *name)
{
    memrt_status_t status = check_name(name);
    uint32_t number = status == MEMRT_OK ? number_of(name) : 0;
    if (number != 0) {
        undefine(number);
    }
    return status;
}

memrt_status_t memrt__symbol_define(const char *name, memrt_function_t *function)
{
    if (function == NULL) {
        return take_away(name);
    }
    memrt_status_t status;
    uint32_t number = new_number_of(name, &status);
    if (number == 0) {
        return status;
    }
    memrt__lock(MEMRT__RANK_SYMBOLS);
    symbol_t *symbol = make(number);
    status = symbol == NULL ? MEMRT_ENOMEM : define(symbol, function);
    memrt__unlock(MEMRT__RANK_SYMBOLS);
    return status;
}

size_t memrt__symbols_unresolved(const char **out, size_t room)
{
    size_t count = 0;
    memrt__lock(MEMRT__RANK_SYMBOLS);
    for (uint32_t number = 1; memrt__interned_at(&names, number) != NULL; number++) {
        const symbol_t *symbol = symbol_at(number);
        if (symbol != NULL && symbol->stub != NULL && count++ < room) {
            out[count - 1] = name_of(number);
        }
    }
    memrt__unlock(MEMRT__RANK_SYMBOLS);
    return count;
}

void memrt__set_symbol_error(memrt_symbol_error_fn tell)
{
    memrt__store_release(&teller, (size_t)tell);
}

intptr_t memrt__stub_called(uint32_t symbol)
{
    memrt_symbol_error_fn tell = (memrt_symbol_error_fn)memrt__load_acquire(&teller);
    if ((tell == NULL || !tell(name_of(symbol))) && error == NO_ERROR) {
        error = symbol == 0 ? OF_NO_NAME : symbol;
    }
    return -1;
}

intptr_t memrt__unresolved_abort(void)
{
    return memrt__stub_called(0);
}

memrt_status_t memrt__symbol_error(const char **name)
{
    uint32_t symbol = error;
    if (symbol == NO_ERROR) {
        return MEMRT_OK;
    }
    error = NO_ERROR;
    if (name != NULL) {
        *name = name_of(symbol);
    }
    return MEMRT_ENOENT;
}
