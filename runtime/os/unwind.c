#include "runtime/os/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/os/frame_walk.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

#ifdef __GLIBC__
#include <execinfo.h>
#endif

typedef int (*unwind_fn)(void **frames, int max);

/// Number of calls inside the unwinder, for a part of the threads. A forking thread adds CLOSED.
typedef struct gate {
    _Alignas(MEMRT__CACHE_LINE) size_t inside;
} gate_t;
#define CLOSED (SIZE_MAX / 2 + 1)

/* Several gates, so that threads seldom write to the same cache line. */
#define GATE_BITS 4
#define GATES (1 << GATE_BITS)
static gate_t gates[GATES];
static size_t own_inside; /* set at pause: calls of the forking thread inside its gate */

static unwind_fn unwind; /* fixed once `ready` is set, like the variables below */
static bool fast;
static uintptr_t own_start, own_end; /* address range of libmemrt's own code */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t ready; /* release by the thread that ran `once`; cheaper than pthread_once() */

static int find_own_code(struct dl_phdr_info *object, size_t size, void *address)
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

/* Written by this thread only: number of calls of this thread inside the unwinder. The number
   exceeds 1 where a signal handler unwinds, too. */
static MEMRT__THREAD_LOCAL size_t depth;

/// Return the gate of the calling thread. The address of a thread-local variable identifies the
/// thread; Fibonacci hashing spreads the addresses over the gates.
static gate_t *get_own_gate(void)
{
    uint64_t spread = (uint64_t)(uintptr_t)&depth * MEMRT__HASH_FACTOR;
    return &gates[spread >> (64 - GATE_BITS)];
}

/// Enter a gate. A closed gate is visible in the same word, so no thread can enter unnoticed. Only
/// the forking thread may pass a closed gate. Returns false when a fork takes long.
static bool enter_gate(gate_t *gate)
{
    depth++; /* raised before `inside`, and lowered after `inside` in leave_gate() */
    while (MEMRT__UNLIKELY(memrt__fetch_add_relaxed(&gate->inside, 1) >= CLOSED) &&
           !memrt__lock_is_mine()) {
        memrt__fetch_sub1_release(&gate->inside);
        if (!memrt__lock_or_fork(MEMRT__RANK_UNWIND)) { /* a forking thread holds this lock */
            depth--;
            return false;
        }
        memrt__unlock(MEMRT__RANK_UNWIND);
    }
    return true;
}

/// Leave a gate. Release; partner: the acquire load in memrt__unwind_pause().
static void leave_gate(gate_t *gate)
{
    MEMRT__ASSERT(depth != 0 && memrt__load_relaxed(&gate->inside) != 0);
    memrt__fetch_sub1_release(&gate->inside);
    depth--;
}

/* libunwind has a cache for each thread. The destructor of the cache runs in each of glibc's rounds
   of destructors, and takes a lock of libunwind in the last round. A fork must not copy that lock
   while a thread holds the lock. glibc runs the destructors of a round in the order of their keys.
   Therefore the key of libunwind is created between two keys of this file: in each round, the
   destructor of the first key enters the gate, the destructor of the second key leaves the gate. */
static pthread_key_t first_key, cache_key, last_key;
static bool has_keys;

/// Keep the destructor of libunwind from running. The cache of the thread stays allocated.
static void keep_cache(void)
{
    (void)pthread_setspecific(cache_key, NULL);
}

/// Enter the gate, or keep the cache: while a fork takes long, or without memory for the last key.
static void enter_gate_at_thread_end(void *own)
{
    gate_t *gate = own;
    if (!enter_gate(gate)) {
        keep_cache();
    } else if (pthread_setspecific(last_key, gate) != 0) {
        leave_gate(gate);
        keep_cache();
    }
}

static void leave_gate_at_thread_end(void *own)
{
    leave_gate(own);
    if (!MEMRT__THREAD_SANITIZER) { /* ThreadSanitizer leaves the thread in the last round */
        (void)pthread_setspecific(first_key, own); /* for the next round */
    }
}

/// Make the destructors run at the end of this thread.
static void register_thread(gate_t *gate)
{
    if (has_keys && MEMRT__UNLIKELY(pthread_getspecific(first_key) == NULL)) {
        (void)pthread_setspecific(first_key, gate);
    }
}

/// Find the key of libunwind: the key between the others under which this thread has a value.
static bool find_cache_key(void)
{
    for (cache_key = first_key + 1; cache_key < last_key; cache_key++) {
        if (pthread_getspecific(cache_key) != NULL) {
            return true;
        }
    }
    return false;
}

/// Load the unwinder. The library is never closed, because threads may be inside at any time.
/// RTLD_LOCAL keeps libunwind's `_Unwind_*` symbols from replacing those of the compiler's runtime.
static void load_unwinder(void)
{
    bool first = pthread_key_create(&first_key, enter_gate_at_thread_end) == 0;
    void *library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
    void *symbol = library == NULL ? NULL : dlsym(library, "unw_backtrace");
    if (symbol != NULL) {
        *(void **)&unwind = symbol;
        fast = true;
        void *frame;
        (void)unwind(&frame, 1); /* the first call creates the key of libunwind */
    }
#ifdef __GLIBC__
    else {
        unwind = backtrace;
    }
#endif
    has_keys =
        first && pthread_key_create(&last_key, leave_gate_at_thread_end) == 0 && find_cache_key();
    register_thread(get_own_gate());
    dl_iterate_phdr(find_own_code, (void *)(uintptr_t)load_unwinder);
#if MEMRT__FRAME_WALK
    memrt__frame_walk_start();
#endif
    memrt__store_release(&ready, 1);
}

static inline void ensure_unwinder(void)
{
    if (MEMRT__UNLIKELY(memrt__load_acquire(&ready) == 0)) {
        pthread_once(&once, load_unwinder);
    }
}

/// Enter the gate of the calling thread, with an unwinder loaded. Returns NULL while a fork takes
/// long.
static gate_t *enter_unwinder(void)
{
    gate_t *gate = get_own_gate();
    if (!enter_gate(gate)) {
        return NULL;
    }
    ensure_unwinder();
    MEMRT__ASSERT(depth != 0 && own_start <= own_end);
    return gate;
}

/// Inlined, so that the first frame is in the function that the caller of memrt called.
static MEMRT__INLINE int call_unwinder(gate_t *gate, void **frames, int max)
{
    register_thread(gate);
    return unwind == NULL || max <= 0 ? 0 : unwind(frames, max);
}

/// Shielded: an unwinder may load libraries, and may write to a pipe to probe addresses.
int memrt__unwind_by_library(void **frames, int max)
{
    MEMRT__SHIELD;
    gate_t *gate = enter_unwinder();
    if (gate == NULL) {
        return 0;
    }
    int count = call_unwinder(gate, frames, max);
    leave_gate(gate);
    return count;
}

#if MEMRT__FRAME_WALK

/// Walk with new layouts, or call the unwinder where the walk fails. The gate keeps a fork from
/// copying the loader's lock while a thread holds the lock. Inlined, like call_unwinder().
static MEMRT__INLINE int unwind_slow(const memrt__frame_registers_t *from, void **frames, int max)
{
    MEMRT__SHIELD;
    gate_t *gate = enter_unwinder();
    if (gate == NULL) {
        return 0;
    }
    int count = memrt__frame_walk(from, frames, max, true);
    if (count < 0) {
        count = call_unwinder(gate, frames, max);
    }
    leave_gate(gate);
    return count;
}

int memrt__unwind(void **frames, int max)
{
    memrt__frame_registers_t here;
    MEMRT__FRAME_CAPTURE(here);
    if (MEMRT__LIKELY(memrt__load_acquire(&ready) != 0)) {
        int count = memrt__frame_walk(&here, frames, max, false);
        if (MEMRT__LIKELY(count >= 0)) {
            return count;
        }
    }
    return unwind_slow(&here, frames, max);
}

#else

int memrt__unwind(void **frames, int max)
{
    return memrt__unwind_by_library(frames, max);
}

#endif

/* Limit of the wait in memrt__unwind_pause(): a call that a signal handler left by longjmp never
   leaves its gate. */
#define PATIENCE MEMRT__SECOND

/// Wait until no other thread is inside the gate. This thread may be inside, where a signal handler
/// forks.
static void wait_for_gate(const gate_t *gate, uint64_t until)
{
    size_t own = gate == get_own_gate() ? depth : 0;
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
        wait_for_gate(&gates[i], until);
    }
    own_inside = memrt__size_min(memrt__load_acquire(&get_own_gate()->inside) - CLOSED, depth);
}

void memrt__unwind_resume(void)
{
    for (int i = 0; i < GATES; i++) {
        MEMRT__ASSERT(memrt__load_relaxed(&gates[i].inside) >= CLOSED);
        memrt__fetch_add_relaxed(&gates[i].inside, CLOSED); /* wraps: subtracts CLOSED */
    }
}

/// Reset the counts in the child: threads that had just counted themselves at a closed gate are
/// gone.
void memrt__unwind_forked(void)
{
    for (int i = 0; i < GATES; i++) {
        memrt__store_relaxed(&gates[i].inside, &gates[i] == get_own_gate() ? own_inside : 0);
    }
}

bool memrt__unwind_is_fast(void)
{
    ensure_unwinder();
    return fast;
}

size_t memrt__unwind_own(void *const *frames, size_t count)
{
    size_t own = 0;
    ensure_unwinder();
    while (own < count && (uintptr_t)frames[own] - own_start < own_end - own_start) {
        own++;
    }
    return own;
}
