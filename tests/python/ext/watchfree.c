/// A library to preload. Counts calls of the C library's free with a watched pointer. The memory is
/// never freed, so malloc cannot reuse the address, and each further free counts.

#include <stdatomic.h>
#include <stddef.h>

extern void __libc_free(void *data);

static void *_Atomic watched;
static atomic_int seen;

void free(void *data)
{
    if (data != NULL && data == atomic_load(&watched)) {
        atomic_fetch_add(&seen, 1);
        return;
    }
    __libc_free(data);
}

void watch(void *data)
{
    atomic_store(&seen, 0);
    atomic_store(&watched, data);
}

int count(void)
{
    return atomic_load(&seen);
}
