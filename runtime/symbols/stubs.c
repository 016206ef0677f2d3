#include "runtime/symbols/stubs.h"

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"

/* Stubs are numbered with three hexadecimal digits, from 0 to 0x3ff. */
#define STUBS 1024u
_Static_assert(STUBS == MEMRT_SYMBOLS_NAMED, "the header has the same number");

/* clang-format off */
#define TIMES_16(each, digits) \
    each(digits##0) each(digits##1) each(digits##2) each(digits##3) \
    each(digits##4) each(digits##5) each(digits##6) each(digits##7) \
    each(digits##8) each(digits##9) each(digits##a) each(digits##b) \
    each(digits##c) each(digits##d) each(digits##e) each(digits##f)
#define TIMES_256(each, digits) \
    TIMES_16(each, digits##0) TIMES_16(each, digits##1) TIMES_16(each, digits##2) \
    TIMES_16(each, digits##3) TIMES_16(each, digits##4) TIMES_16(each, digits##5) \
    TIMES_16(each, digits##6) TIMES_16(each, digits##7) TIMES_16(each, digits##8) \
    TIMES_16(each, digits##9) TIMES_16(each, digits##a) TIMES_16(each, digits##b) \
    TIMES_16(each, digits##c) TIMES_16(each, digits##d) TIMES_16(each, digits##e) \
    TIMES_16(each, digits##f)
#define ALL(each) \
    TIMES_256(each, 0x0) TIMES_256(each, 0x1) TIMES_256(each, 0x2) TIMES_256(each, 0x3)
/* clang-format on */

static memrt__stub_report_fn report_call; /* written before any stub is given out, then fixed */
static size_t symbol_of[STUBS]; /* store: release in memrt__stub_take(); load: acquire in a stub */

/* Ring of free stub numbers, under the lock of rank SYMBOLS. `freed` counts numbers put in,
   `taken` counts numbers taken. The first STUBS numbers taken come in order and were never in
   the ring. */
static uint16_t ring[STUBS];
static size_t freed, taken;

#define STUB(number)                                                                               \
    static intptr_t stub_##number(void)                                                            \
    {                                                                                              \
        return report_call((uint32_t)memrt__load_acquire(&symbol_of[number]));                     \
    }
ALL(STUB)

static intptr_t call_nameless_stub(void)
{
    return report_call(0);
}

#define ENTRY(number) stub_##number,
static intptr_t (*const stubs[STUBS])(void) = {ALL(ENTRY)};

/// Take the number of the stub that has been free longest. Returns STUBS if none is free.
static size_t take_free_number(void)
{
    if (taken < STUBS) {
        return taken++;
    }
    MEMRT__ASSERT(taken - STUBS <= freed);
    return taken - STUBS == freed ? STUBS : ring[(taken++ - STUBS) % STUBS];
}

memrt_function_t *memrt__stub_take(uint32_t symbol, memrt__stub_report_fn report)
{
    if (report_call == NULL) {
        report_call = report;
    }
    size_t number = take_free_number();
    if (number == STUBS) {
        return (memrt_function_t *)call_nameless_stub;
    }
    memrt__store_release(&symbol_of[number], symbol);
    return (memrt_function_t *)stubs[number];
}

void memrt__stub_give_up(memrt_function_t *stub)
{
    for (size_t number = 0; number < STUBS; number++) {
        if (stub == (memrt_function_t *)stubs[number]) {
            ring[freed++ % STUBS] = (uint16_t)number;
            MEMRT__ASSERT(freed <= taken && taken - freed <= STUBS);
        }
    }
}
