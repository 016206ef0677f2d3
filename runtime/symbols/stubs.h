#ifndef MEMRT_SYMBOLS_STUBS_H
#define MEMRT_SYMBOLS_STUBS_H

#include <stddef.h>
#include <stdint.h>

#include <memrt/process/symbol.h>

/// Stubs: functions to call in place of undefined symbols. Each stub knows its symbol and can
/// report the symbol's name, although the call passes no argument.

/// Report a call of an undefined symbol; runs on the calling thread. `symbol` is the number of the
/// symbol, 0 if not known. The stub returns the result.
typedef intptr_t (*memrt__stub_report_fn)(uint32_t symbol);

/// Return a stub for the symbol with number `symbol`. When all stubs are in use, returns a nameless
/// stub that knows no symbol. Every caller must pass the same `report`.
///
/// Reuses the stub that was given up first. A thread that is about to call a recently given up stub
/// still finds the right symbol there. Threads: the caller holds the lock of rank SYMBOLS.
memrt_function_t *memrt__stub_take(uint32_t symbol, memrt__stub_report_fn report);

/// Give up a stub; the nameless stub stays in use. The stub continues to work until reused.
/// Threads: the caller holds the lock of rank SYMBOLS.
void memrt__stub_give_up(memrt_function_t *stub);

#endif
