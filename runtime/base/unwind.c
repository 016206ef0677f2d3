#include "runtime/base/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/lock.h"
#include "runtime/base/os.h"
#include "runtime/base/size.h"

#ifdef __GLIBC__
#include <execinfo.h>
#endif

typedef int (*unwind_fn)(void **frames, int max);

/// Threads that are inside of the unwinder, a part of them; CLOSED more while a thread forks.
typedef struct gate {
    _Alignas(MEMRT__CACHE_LINE) size_t inside;
} gate_t;
#define CLOSED (SIZE_MAX / 2 + 1)

/* Several, so that threads seldom write to the same line. */
#define GATE_BITS 4
#define GATES (1 << GATE_BITS)
static gate_t gates[GATES];
static size_t stays; /* calls of the thread that forks that are inside; its own from pause on */

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

/* Own; calls of this thread that are inside: more where a signal's handler unwinds, too. */
static MEMRT__THREAD_LOCAL size_t depth;

/// Where a thread's own variables are tells threads apart; Fibonacci hashing spreads them.
static gate_t *own_gate(void)
{
    uint64_t spread = (uint64_t)(uintptr_t)&depth * UINT64_C(0x9e3779b97f4a7c15);
    return &gates[spread >> (64 - GATE_BITS)];
}

/// A gate that is closed shows it in the same word, so no thread can slip in unseen.
static void enter(gate_t *gate)
{
    depth++; /* first here and last in leave(): in between, `inside` has it, too */
    while (MEMRT__UNLIKELY(memrt__fetch_add_relaxed(&gate->inside, 1) >= CLOSED)) {
        memrt__fetch_sub1_release(&gate->inside);
        memrt__lock(MEMRT__RANK_UNWIND); /* who forks has it */
        memrt__unlock(MEMRT__RANK_UNWIND);
    }
}

/// Release, partner: the acquire load of memrt__unwind_pause().
static void leave(gate_t *gate)
{
    memrt__fetch_sub1_release(&gate->inside);
    depth--;
}

int memrt__unwind(void **frames, int max)
{
    gate_t *gate = own_gate();
    enter(gate);
    get_ready();
    int count = unwind == NULL || max <= 0 ? 0 : unwind(frames, max);
    leave(gate);
    return count;
}

/* A call that a signal's handler jumped out of never leaves. */
#define PATIENCE ((uint64_t)1000000000) /* nanoseconds */

/// Until nobody is inside but this thread, as where a signal's handler forks.
static void wait_for_others(const gate_t *gate, uint64_t until)
{
    size_t own = gate == own_gate() ? depth : 0;
    while (memrt__load_acquire(&gate->inside) > CLOSED + own && memrt__os_now_ns() < until) {
        sched_yield();
    }
}

void memrt__unwind_pause(void)
{
    for (int i = 0; i < GATES; i++) {
        memrt__fetch_add_relaxed(&gates[i].inside, CLOSED);
    }
    uint64_t until = memrt__os_now_ns() + PATIENCE;
    for (int i = 0; i < GATES; i++) {
        wait_for_others(&gates[i], until);
    }
    stays = memrt__size_min(memrt__load_acquire(&own_gate()->inside) - CLOSED, depth);
}

void memrt__unwind_resume(void)
{
    for (int i = 0; i < GATES; i++) {
        memrt__fetch_add_relaxed(&gates[i].inside, CLOSED); /* which is how to subtract it */
    }
}

/// Threads that had just come upon a closed gate are gone.
void memrt__unwind_forked(void)
{
    for (int i = 0; i < GATES; i++) {
        memrt__store_relaxed(&gates[i].inside, &gates[i] == own_gate() ? stays : 0);
    }
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
