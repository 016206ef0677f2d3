#ifndef MEMRT_BASE_COMPILER_H
#define MEMRT_BASE_COMPILER_H

#include <features.h> /* __GLIBC__ */

/// Names for compiler attributes and builtins. Each macro compiles with gcc and with clang.

#define MEMRT__LIKELY(x) __builtin_expect(!!(x), 1)
#define MEMRT__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MEMRT__COLD __attribute__((cold, noinline))

/// Keep a slow path out of its caller, so that the caller's fast path saves no registers for the
/// slow path.
#define MEMRT__APART __attribute__((noinline))

/// Declare a variable that no other library sees, so that one instruction reads the variable.
#define MEMRT__HIDDEN __attribute__((visibility("hidden")))

/// Copy a fast path into each caller.
#define MEMRT__INLINE inline __attribute__((always_inline))

/// Copy a fast path into each caller in optimized builds. In other builds, every copy would enlarge
/// the frame of its caller.
#ifdef __OPTIMIZE__
#define MEMRT__INLINE_OPTIMIZED MEMRT__INLINE
#else
#define MEMRT__INLINE_OPTIMIZED inline
#endif

/// Check printf formats. `text` is the position of the format parameter, `first` of the first value
/// to print; both count from 1.
#define MEMRT__PRINTF(text, first) __attribute__((format(printf, text, first)))

/// Keep the work with a value behind this place. The compiler would otherwise move the work before
/// a branch, for both branches, or compute an address once for several uses. Each use then
/// addresses the word in one instruction.
#define MEMRT__KEEP_IN_BRANCH(value) __asm__("" : "+r"(value))

/// Fetch the cache line of an address that the calling thread is about to write.
#define MEMRT__PREFETCH(address) __builtin_prefetch(address, 1)

#define MEMRT__CACHE_LINE 64 ///< bytes

/// Mark a char array without a NUL at its end, so that the compiler does not warn.
#if defined(__has_attribute) && __has_attribute(nonstring)
#define MEMRT__NONSTRING __attribute__((nonstring))
#else
#define MEMRT__NONSTRING
#endif

/// 1 in a build with the sanitizer, else 0.
#if defined(__has_feature)
#define MEMRT__THREAD_SANITIZER __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define MEMRT__THREAD_SANITIZER 1
#else
#define MEMRT__THREAD_SANITIZER 0
#endif

#if defined(__has_feature)
#define MEMRT__ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define MEMRT__ADDRESS_SANITIZER 1
#else
#define MEMRT__ADDRESS_SANITIZER 0
#endif

/// Declare a thread-local variable that one instruction reaches, without a function call. The
/// variable takes static thread-local space, and a library loaded by dlopen gets little such space,
/// with musl none. Use for single words only: pointers, integers, flags.
#ifdef __GLIBC__
#define MEMRT__THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define MEMRT__THREAD_LOCAL __thread
#endif

/// Compiler barrier: the compiler moves no memory access across. If another thread forks while the
/// calling thread is at the barrier, the child sees all stores of the calling thread before the
/// barrier, and no store after the barrier.
#define MEMRT__KEEP_ORDER __asm__ volatile("" ::: "memory")

#endif
