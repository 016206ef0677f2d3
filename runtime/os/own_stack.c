#include "runtime/os/own_stack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "runtime/base/compiler.h"
#include "runtime/os/os.h"

/* Linux maps nothing into the last 128 MiB below the start of the main thread's stack, so that the
   stack can grow. The stack is one mapping from the lowest used address on. */
#define MAIN_STACK ((uintptr_t)128 << 20)

static uintptr_t main_end; /* fixed by memrt__own_stack_start(); 0: not known */

/* Bounds of the thread's stack. Both are 0 for a thread without bounds. */
static MEMRT__THREAD_LOCAL uintptr_t low, high;

void memrt__own_stack_start(void)
{
    void **end = dlsym(RTLD_DEFAULT, "__libc_stack_end");
    main_end = end == NULL ? 0 : (uintptr_t)*end & ~(uintptr_t)7;
}

/// Return whether the thread is the first of the process, whose bounds the C library reads from a
/// file.
static bool is_main_thread(void)
{
    return memrt__os_thread_id() == memrt__os_process_id();
}

static void find_bounds(void)
{
    pthread_attr_t attributes;
    void *address = NULL;
    size_t size = 0;
    if (is_main_thread() || pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return;
    }
    (void)pthread_attr_getstack(&attributes, &address, &size);
    (void)pthread_attr_destroy(&attributes);
    high = ((uintptr_t)address + size) & ~(uintptr_t)7;
    low = (uintptr_t)address;
}

uintptr_t memrt__own_stack_end(uintptr_t address, bool may_find)
{
    if (main_end - address - 1 < MAIN_STACK) {
        return main_end;
    }
    if (MEMRT__UNLIKELY(high == 0) && may_find) {
        find_bounds();
    }
    return address - low < high - low ? high : 0;
}
