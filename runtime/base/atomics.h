#ifndef MEMRT_BASE_ATOMICS_H
#define MEMRT_BASE_ATOMICS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/compiler.h"

/// Atomic operations of memrt, each with its memory order in its name.
///
/// The default build uses libatomic_ops. With MEMRT_C11_ATOMICS the operations use <stdatomic.h>,
/// so that a model checker can read the protocols built from them. An atomic word is a plain size_t
/// in both builds, because compiled code counts references in the same words.

#if defined(MEMRT_C11_ATOMICS) && MEMRT_C11_ATOMICS

#include <stdatomic.h>

typedef _Atomic(size_t) memrt__word_t;
_Static_assert(sizeof(memrt__word_t) == sizeof(size_t), "an atomic word is a word");

#define MEMRT__WORD(p) ((memrt__word_t *)(p))

static inline size_t memrt__load_relaxed(const size_t *p)
{
    return atomic_load_explicit((const memrt__word_t *)p, memory_order_relaxed);
}
static inline size_t memrt__load_acquire(const size_t *p)
{
    return atomic_load_explicit((const memrt__word_t *)p, memory_order_acquire);
}
static inline void memrt__store_relaxed(size_t *p, size_t value)
{
    atomic_store_explicit(MEMRT__WORD(p), value, memory_order_relaxed);
}
static inline void memrt__store_release(size_t *p, size_t value)
{
    atomic_store_explicit(MEMRT__WORD(p), value, memory_order_release);
}
static inline size_t memrt__fetch_add_relaxed(size_t *p, size_t value)
{
    return atomic_fetch_add_explicit(MEMRT__WORD(p), value, memory_order_relaxed);
}
static inline size_t memrt__fetch_add_acquire(size_t *p, size_t value)
{
    return atomic_fetch_add_explicit(MEMRT__WORD(p), value, memory_order_acquire);
}
static inline size_t memrt__fetch_add_release(size_t *p, size_t value)
{
    return atomic_fetch_add_explicit(MEMRT__WORD(p), value, memory_order_release);
}
static inline size_t memrt__fetch_sub1_release(size_t *p)
{
    return atomic_fetch_sub_explicit(MEMRT__WORD(p), 1, memory_order_release);
}
static inline bool memrt__cas_acquire(size_t *p, size_t expected, size_t desired)
{
    return atomic_compare_exchange_strong_explicit(MEMRT__WORD(p), &expected, desired,
                                                   memory_order_acquire, memory_order_relaxed);
}
static inline bool memrt__cas_release(size_t *p, size_t expected, size_t desired)
{
    return atomic_compare_exchange_strong_explicit(MEMRT__WORD(p), &expected, desired,
                                                   memory_order_release, memory_order_relaxed);
}
static inline bool memrt__cas_relaxed(size_t *p, size_t expected, size_t desired)
{
    return atomic_compare_exchange_strong_explicit(MEMRT__WORD(p), &expected, desired,
                                                   memory_order_relaxed, memory_order_relaxed);
}
/// Keep later stores behind all earlier stores.
static inline void memrt__fence_write(void)
{
    atomic_thread_fence(memory_order_release);
}
/// Keep later loads and stores behind all earlier loads and stores.
static inline void memrt__fence_full(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}
static inline unsigned memrt__flags_load_relaxed(const unsigned *p)
{
    return atomic_load_explicit((const _Atomic(unsigned) *)p, memory_order_relaxed);
}
/// Set `bits` and return the previous flags.
static inline unsigned memrt__flags_set_relaxed(unsigned *p, unsigned bits)
{
    return atomic_fetch_or_explicit((_Atomic(unsigned) *)p, bits, memory_order_relaxed);
}
static inline void memrt__flags_clear_relaxed(unsigned *p, unsigned bits)
{
    atomic_fetch_and_explicit((_Atomic(unsigned) *)p, ~bits, memory_order_relaxed);
}

#else

#include <atomic_ops.h>

_Static_assert(sizeof(AO_t) == sizeof(size_t), "an atomic word is a word");

#define MEMRT__WORD(p) ((volatile AO_t *)(p))

static inline size_t memrt__load_relaxed(const size_t *p)
{
    return AO_load((const volatile AO_t *)p);
}
static inline size_t memrt__load_acquire(const size_t *p)
{
    return AO_load_acquire((const volatile AO_t *)p);
}
static inline void memrt__store_relaxed(size_t *p, size_t value)
{
    AO_store(MEMRT__WORD(p), value);
}
static inline void memrt__store_release(size_t *p, size_t value)
{
    AO_store_release(MEMRT__WORD(p), value);
}
static inline size_t memrt__fetch_add_relaxed(size_t *p, size_t value)
{
    return AO_fetch_and_add(MEMRT__WORD(p), value);
}
static inline size_t memrt__fetch_add_acquire(size_t *p, size_t value)
{
    return AO_fetch_and_add_acquire(MEMRT__WORD(p), value);
}
static inline size_t memrt__fetch_add_release(size_t *p, size_t value)
{
    return AO_fetch_and_add_release(MEMRT__WORD(p), value);
}
static inline size_t memrt__fetch_sub1_release(size_t *p)
{
    return AO_fetch_and_sub1_release(MEMRT__WORD(p));
}
static inline bool memrt__cas_acquire(size_t *p, size_t expected, size_t desired)
{
    return AO_compare_and_swap_acquire(MEMRT__WORD(p), expected, desired) != 0;
}
static inline bool memrt__cas_release(size_t *p, size_t expected, size_t desired)
{
    return AO_compare_and_swap_release(MEMRT__WORD(p), expected, desired) != 0;
}
static inline bool memrt__cas_relaxed(size_t *p, size_t expected, size_t desired)
{
    return AO_compare_and_swap(MEMRT__WORD(p), expected, desired) != 0;
}
static inline void memrt__fence_write(void)
{
    AO_nop_write();
}
static inline void memrt__fence_full(void)
{
    AO_nop_full();
}
static inline unsigned memrt__flags_load_relaxed(const unsigned *p)
{
    return AO_int_load((const volatile unsigned *)p);
}
/// Set `bits` and return the previous flags.
static inline unsigned memrt__flags_set_relaxed(unsigned *p, unsigned bits)
{
    unsigned before = memrt__flags_load_relaxed(p);
    while ((before & bits) != bits &&
           !AO_int_compare_and_swap((volatile unsigned *)p, before, before | bits)) {
        before = memrt__flags_load_relaxed(p);
    }
    return before;
}
static inline void memrt__flags_clear_relaxed(unsigned *p, unsigned bits)
{
    AO_int_and((volatile unsigned *)p, ~bits);
}

#endif

/// Read a word that only the calling thread writes. A plain load is enough: no other thread can
/// write at the same time, and the compiler may fold the load into the instruction that uses the
/// value.
static inline size_t memrt__own_load(const size_t *p)
{
    return *p;
}

#if defined(__x86_64__) && !defined(MEMRT_C11_ATOMICS) && !MEMRT__THREAD_SANITIZER

/// Return whether a shared word has a value, with relaxed order. One instruction: compilers load a
/// volatile word before the comparison.
static MEMRT__INLINE bool memrt__word_equals(const size_t *p, size_t value)
{
    bool equal;
    __asm__ volatile("cmpq %2, %1" : "=@cce"(equal) : "m"(*p), "er"(value));
    return equal;
}

/// Return whether a word has a value, with acquire. Each load of the processor is an acquire, so
/// that only the compiler must keep the order.
static MEMRT__INLINE bool memrt__word_equals_acquire(const size_t *p, size_t value)
{
    bool equal;
    __asm__ volatile("cmpq %2, %1" : "=@cce"(equal) : "m"(*p), "er"(value) : "memory");
    return equal;
}

/// Return whether shared flags have a value, with relaxed order.
static MEMRT__INLINE bool memrt__flags_equal(const unsigned *p, unsigned value)
{
    bool equal;
    __asm__ volatile("cmpl %2, %1" : "=@cce"(equal) : "m"(*p), "ir"(value));
    return equal;
}

/// Add to a word that only the calling thread writes. Other threads may read the word at any time.
/// One instruction: compilers make three of a volatile load, addition and store.
static inline void memrt__own_add(size_t *p, size_t value)
{
    __asm__ volatile("addq %1, %0" : "+m"(*p) : "er"(value) : "cc");
}

/// Add to a word that only the calling thread writes, with release. A thread that reads the new
/// value with acquire sees all earlier stores of the caller. Each store of the processor is a
/// release, so that only the compiler must keep the order.
static inline void memrt__own_add_release(size_t *p, size_t value)
{
    __asm__ volatile("addq %1, %0" : "+m"(*p) : "er"(value) : "cc", "memory");
}

/// Store to a word that only the calling thread writes, with release. Compilers compute the address
/// of a volatile word before the store.
static MEMRT__INLINE void memrt__own_store_release(size_t *p, size_t value)
{
    __asm__ volatile("movq %1, %0" : "=m"(*p) : "er"(value) : "memory");
}

/// Subtract from a word that only the calling thread writes. Returns whether the result is negative
/// as a signed number.
static MEMRT__INLINE bool memrt__own_sub_below_0(size_t *p, size_t value)
{
    bool negative;
    __asm__ volatile("subq %2, %0" : "+m"(*p), "=@ccs"(negative) : "er"(value));
    return negative;
}

/// Subtract from a word that only the calling thread writes, with release. False: the result would
/// be negative as a signed number, and the word is unchanged. In that case, another thread may see
/// the negative number for a moment.
static MEMRT__INLINE bool memrt__own_take_release(size_t *p, size_t value)
{
    MEMRT__KEEP_ORDER;
    bool negative = memrt__own_sub_below_0(p, value);
    if (MEMRT__UNLIKELY(negative)) {
        memrt__own_add(p, value);
    }
    return !negative;
}

#else

/* The same functions for other processors, for model checkers and for the thread sanitizer. */

static inline bool memrt__word_equals(const size_t *p, size_t value)
{
    return memrt__load_relaxed(p) == value;
}

static inline bool memrt__word_equals_acquire(const size_t *p, size_t value)
{
    return memrt__load_acquire(p) == value;
}

static inline bool memrt__flags_equal(const unsigned *p, unsigned value)
{
    return memrt__flags_load_relaxed(p) == value;
}

static inline void memrt__own_add(size_t *p, size_t value)
{
    memrt__store_relaxed(p, memrt__load_relaxed(p) + value);
}

static inline void memrt__own_add_release(size_t *p, size_t value)
{
    memrt__store_release(p, memrt__load_relaxed(p) + value);
}

static inline void memrt__own_store_release(size_t *p, size_t value)
{
    memrt__store_release(p, value);
}

static inline bool memrt__own_sub_below_0(size_t *p, size_t value)
{
    size_t left = memrt__load_relaxed(p) - value;
    memrt__store_relaxed(p, left);
    return (ptrdiff_t)left < 0;
}

static inline bool memrt__own_take_release(size_t *p, size_t value)
{
    size_t left = memrt__load_relaxed(p) - value;
    if ((ptrdiff_t)left >= 0) {
        memrt__store_release(p, left);
    }
    return (ptrdiff_t)left >= 0;
}

#endif

/// Raise a word, read as signed, to `value` if the word is lower. A successful raise is a release.
static inline void memrt__raise_release(size_t *p, size_t value)
{
    size_t seen = memrt__load_relaxed(p);
    while ((ptrdiff_t)seen < (ptrdiff_t)value && !memrt__cas_release(p, seen, value)) {
        seen = memrt__load_relaxed(p);
    }
}

#endif
