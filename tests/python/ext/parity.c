/* Either of two separately compiled functions that call each other. SELF is the function's name,
 * OTHER the other name, AT_ZERO the result for 0. */

#include <memrt/external.h>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

typedef int parity_fn(int);

static memrt_function_t *const *other;

/* Compiled code in which -1 marks an error. */
MEMRT_EXPORT int SELF(int number)
{
    return number == 0 ? AT_ZERO
                       : ((parity_fn *)__atomic_load_n(other, __ATOMIC_CONSUME))(number - 1);
}

MEMRT_EXPORT int load(const memrt_api_t *api)
{
    return api->symbol_slot(TEXT(OTHER), &other) != MEMRT_OK ||
           api->symbol_define(TEXT(SELF), (memrt_function_t *)SELF) != MEMRT_OK;
}

MEMRT_EXPORT int unload(const memrt_api_t *api)
{
    return api->symbol_define(TEXT(SELF), NULL) != MEMRT_OK;
}
