/// Model: one thread writes to memory and takes a stub for a symbol, while another thread calls the
/// stub. The report of the symbol sees the written memory.

#include "tests/models/model.h"

#include "runtime/symbols/stubs.c"

static size_t named;

static intptr_t report(uint32_t symbol)
{
    assert(symbol == 0 || named == 1);
    return -1;
}

static void *take_stub(void *context)
{
    named = 1;
    (void)memrt__stub_take(2, report);
    return context;
}

int main(void)
{
    report_call = report;
    pthread_t taker = model_thread(take_stub, NULL);
    assert(stub_0x000() == -1);
    model_join(taker);
    return 0;
}
