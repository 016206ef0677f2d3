#include "runtime/alloc/exported.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/config/option_types.h"

#define DEFAULT_SYMBOL "memrt_allocator"

const memrt_allocator_t *memrt__exported_allocator(const char *source, char *why, size_t length)
{
    MEMRT__SHIELD;
    char path[MEMRT__TEXT_MAX];
    size_t path_length = memrt__size_min(strcspn(source, ":"), sizeof(path) - 1);
    const char *symbol = source[path_length] == ':' ? source + path_length + 1 : "";
    memcpy(path, source, path_length);
    path[path_length] = '\0';
    symbol = symbol[0] == '\0' ? DEFAULT_SYMBOL : symbol;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(why, length, "%s", dlerror());
        return NULL;
    }
    const memrt_allocator_t *table = dlsym(library, symbol);
    if (table == NULL) {
        snprintf(why, length, "the library exports no symbol '%.40s'", symbol);
    }
    return table;
}
