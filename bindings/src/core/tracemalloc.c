#include "core/tracemalloc.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/interpreter.h"

/// An address to untrack, recorded by a thread without the GIL.
///
/// PyTraceMalloc_Untrack takes the GIL in 3.12.9, in 3.13.2 and in later patch releases. A direct
/// call could deadlock: the thread that holds the GIL may wait for the same release.
typedef struct untrack {
    struct untrack *next;
    uintptr_t address;
} untrack_t;

/// Stack of recorded addresses. Pushed with release order, and taken all at once with acquire
/// order, so no node returns to the head (ABA).
///
/// A record is pushed before its memory is freed, so the record is in the list before the address
/// can be tracked again. Tracking the address removes the record. An address therefore has either a
/// live trace or a relevant record, never both, and the order of records is irrelevant.
static _Atomic(untrack_t *) recorded_addresses;

/// Record an address. Without memory for the record, the trace stays until the address is tracked
/// again.
static void record_address(uintptr_t address)
{
    untrack_t *record = malloc(sizeof(*record));
    if (record == NULL) {
        return;
    }
    untrack_t *head = atomic_load_explicit(&recorded_addresses, memory_order_relaxed);
    record->address = address;
    do {
        record->next = head;
        /* GCOV_EXCL_BR_START: fails only if two threads push at the same step */
    } while (!atomic_compare_exchange_weak_explicit(&recorded_addresses, &head, record,
                                                    memory_order_release, memory_order_relaxed));
    /* GCOV_EXCL_BR_STOP */
    if (head == NULL) {
        memrt__interpreter_schedule(); /* one pending call serves all records */
    }
}

static void untrack_address(uintptr_t address)
{
    (void)PyTraceMalloc_Untrack(MEMRT_TRACEMALLOC_DOMAIN, address);
}

/// Untrack all recorded addresses except `tracked`, whose trace is new. Runs no Python code, so no
/// other thread can track a listed address in between. While the GIL is off, another thread can,
/// and the new trace is then lost.
static void untrack_recorded_addresses(uintptr_t tracked)
{
    untrack_t *record = atomic_exchange_explicit(&recorded_addresses, NULL, memory_order_acquire);
    while (record != NULL) {
        untrack_t *next = record->next;
        if (record->address != tracked) {
            untrack_address(record->address);
        }
        free(record);
        record = next;
    }
}

void memrt__tracemalloc_drain(void)
{
    if (atomic_load_explicit(&recorded_addresses, memory_order_relaxed) != NULL &&
        memrt__holds_python()) {
        untrack_recorded_addresses(0);
    }
}

/// Untrack a freed block, or record its address without the GIL.
static void handle_free(void *data)
{
    if (memrt__holds_python()) {
        untrack_address((uintptr_t)data);
    } else if (!memrt__interpreter_has_ended()) {
        record_address((uintptr_t)data);
    }
}

/// Track a resized block again at the line of the resize. Without the GIL the block is only
/// untracked.
static void handle_resize(void *old_data, void *new_data, size_t new_size)
{
    handle_free(old_data);
    memrt__tracemalloc_drain();
    if (memrt__holds_python()) { /* without memory the block is no longer tracked */
        (void)PyTraceMalloc_Track(MEMRT_TRACEMALLOC_DOMAIN, (uintptr_t)new_data, new_size);
    }
}

/// Remove old records after memrt_tracemalloc_register() tracked `data`. The GIL has been held
/// since PyTraceMalloc_Track.
static void handle_track(void *data)
{
    if (atomic_load_explicit(&recorded_addresses, memory_order_relaxed) != NULL) {
        untrack_recorded_addresses((uintptr_t)data);
    }
}

void memrt__tracemalloc_setup(void)
{
    static const memrt_observer_t observer = {sizeof(observer), handle_resize, handle_free,
                                              handle_track};
    memrt__api()->set_observer(&observer);
}

int memrt__tracemalloc_track_compiled(memrt_meminfo_t *mi)
{
    if (!memrt__holds_python()) {
        return 1;
    }
    /* GCOV_EXCL_BR_START: tracemalloc takes its memory from malloc() itself */
    if (memrt_tracemalloc_register(memrt__api(), mi) < 0) {
        /* GCOV_EXCL_BR_STOP */
        PyErr_Clear();
        return 0;
    }
    return 1;
}

void memrt__tracemalloc_track_adopted(memrt_meminfo_t *mi)
{
    /* GCOV_EXCL_BR_START: tracemalloc takes its memory from malloc() itself */
    if (memrt_tracemalloc_register(memrt__api(), mi) < 0) {
        /* GCOV_EXCL_BR_STOP */
        PyErr_Clear();
    }
}
