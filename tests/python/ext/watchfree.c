/// To be preloaded: counts how often the C library's free gets one watched pointer.

#include <stdatomic.h>
#include <stddef.h>

extern void __libc_free(void *data);

static void *_Atomic watched;
static atomic_int seen;

void free(void *data)
{
    if (data != NULL && data == atomic_load(&watched)) {
        atomic_fetch_add(&seen, 1);
        atomic_store(&watched, NULL); /* the address may come back for something else */
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
