#include "runtime/stubs.h"

#include "runtime/base/atomics.h"

/* A stub for each number of three hexadecimal digits below 0x400. */
#define STUBS 1024u
_Static_assert(STUBS == MEMRT_SYMBOLS_NAMED, "as the header has it");

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

static size_t symbol_of[STUBS]; /* release by who takes it, acquire by who is called */

/* Numbers of stubs that are free, a ring: `freed` of them were ever put in, `taken` taken out, and
   the first STUBS are those that nobody had yet. Under the lock of symbols. */
static uint16_t ring[STUBS];
static size_t freed, taken;

#define STUB(number)                                                                               \
    static intptr_t stub_##number(void)                                                            \
    {                                                                                              \
        return memrt__stub_called((uint32_t)memrt__load_acquire(&symbol_of[number]));              \
    }
ALL(STUB)

static intptr_t nameless(void)
{
    return memrt__stub_called(0);
}

#define ENTRY(number) stub_##number,
static intptr_t (*const stubs[STUBS])(void) = {ALL(ENTRY)};

/// The number of the stub that is free for longest; STUBS: none is.
static size_t next_free(void)
{
    if (taken < STUBS) {
        return taken++;
    }
    return taken - STUBS == freed ? STUBS : ring[(taken++ - STUBS) % STUBS];
}

memrt_function_t *memrt__stub_take(uint32_t symbol)
{
    size_t number = next_free();
    if (number == STUBS) {
        return (memrt_function_t *)nameless;
    }
    memrt__store_release(&symbol_of[number], symbol);
    return (memrt_function_t *)stubs[number];
}

void memrt__stub_give_up(memrt_function_t *stub)
{
    for (size_t number = 0; number < STUBS; number++) {
        if (stub == (memrt_function_t *)stubs[number]) {
            ring[freed++ % STUBS] = (uint16_t)number;
        }
    }
}
