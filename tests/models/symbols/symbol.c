/// Model: one thread writes to memory, defines a symbol, and sets the callback for undefined
/// symbols. Other threads call the symbol and the callback, and see the written memory.

#include "tests/models/model.h"

#include "runtime/symbols/symbols.c"

unsigned memrt__slow_path;

memrt__interned_t *memrt__interned_at(const memrt__interns_t *set, uint64_t number)
{
    (void)set, (void)number;
    return NULL; /* no symbol has a name */
}

static symbol_t symbol;
static size_t ready;

static intptr_t defined_function(void)
{
    return ready == 1;
}

static int report(const char *name)
{
    return name == NULL && ready == 1;
}

static void *define_both(void *context)
{
    ready = 1;
    set_target(&symbol, (memrt_function_t *)defined_function);
    memrt__set_symbol_error(report);
    return context;
}

/// Call the symbol like compiled code, if there is a target.
static void call_symbol(void)
{
    intptr_t (*target)(void) = (intptr_t (*)(void))memrt__load_acquire(&symbol.target);
    assert(target == NULL || target() == 1);
}

static void *call_defined(void *context)
{
    call_symbol();
    return context;
}

int main(void)
{
    pthread_t definer = model_thread(define_both, NULL);
    pthread_t caller = model_thread(call_defined, NULL);
    assert(report_undefined_call(0) == -1);
    model_join(definer);
    model_join(caller);
    return 0;
}
