#include "runtime/base/memory_tool.h"

#include "runtime/base/check.h"
#include "runtime/base/compiler.h"

#if MEMRT_VALGRIND
#include <valgrind/memcheck.h>
#endif

/// Functions of a sanitizer's runtime. NULL: the process has no such sanitizer.
#define WEAK __attribute__((weak))
extern WEAK void __asan_poison_memory_region(const volatile void *from, size_t bytes);
extern WEAK void __asan_unpoison_memory_region(const volatile void *from, size_t bytes);
extern WEAK void __lsan_do_leak_check(void);

/// Other tools of Valgrind answer the request as the processor does, with 0.
static bool is_memcheck(void)
{
#if MEMRT_VALGRIND
    char byte = 0, bits = 0;
    return VALGRIND_GET_VBITS(&byte, &bits, 1) == 1;
#else
    return false;
#endif
}

bool memrt__memory_tool_is_present(void)
{
    bool address = __asan_poison_memory_region != NULL;
    bool leak = __lsan_do_leak_check != NULL;
    return address | leak | is_memcheck();
}

void memrt__memory_tool_forbid(const void *from, size_t bytes)
{
    MEMRT__ASSERT((size_t)from % 8 == 0 && bytes % 8 == 0);
    if (!MEMRT__ADDRESS_SANITIZER && __asan_poison_memory_region != NULL) {
        __asan_poison_memory_region(from, bytes);
    }
}

void memrt__memory_tool_permit(const void *from, size_t bytes)
{
    if (!MEMRT__ADDRESS_SANITIZER && __asan_unpoison_memory_region != NULL) {
        __asan_unpoison_memory_region(from, bytes);
    }
}
