#include "runtime/base/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"

#ifdef __GLIBC__
#include <execinfo.h>
#endif

typedef int (*unwind_fn)(void **frames, int max);

static unwind_fn unwind; /* fixed, like what follows, once `ready` is set */
static bool fast;
static uintptr_t own_start, own_end; /* the code of the object that this file is in */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t ready; /* release by who ran `once`; a look at it costs less than pthread_once() */

static int has_code_at(struct dl_phdr_info *object, size_t size, void *address)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (uintptr_t)address - start < segment->p_memsz) {
            own_start = start;
            own_end = start + segment->p_memsz;
            return 1;
        }
    }
    return 0;
}

/// Never closed: threads may be inside of it at any time. Its `_Unwind_*` stay its own affair.
static void find_unwinder(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
    void *symbol = library == NULL ? NULL : dlsym(library, "unw_backtrace");
    if (symbol != NULL) {
        *(void **)&unwind = symbol;
        fast = true;
    }
#ifdef __GLIBC__
    else {
        unwind = backtrace;
    }
#endif
    dl_iterate_phdr(has_code_at, (void *)(uintptr_t)find_unwinder);
    memrt__store_release(&ready, 1);
}

static inline void get_ready(void)
{
    if (MEMRT__UNLIKELY(memrt__load_acquire(&ready) == 0)) {
        pthread_once(&once, find_unwinder);
    }
}

int memrt__unwind(void **frames, int max)
{
    get_ready();
    return unwind == NULL || max <= 0 ? 0 : unwind(frames, max);
}

bool memrt__unwind_is_fast(void)
{
    get_ready();
    return fast;
}

size_t memrt__unwind_own(void *const *frames, size_t count)
{
    size_t own = 0;
    get_ready();
    while (own < count && (uintptr_t)frames[own] - own_start < own_end - own_start) {
        own++;
    }
    return own;
}
