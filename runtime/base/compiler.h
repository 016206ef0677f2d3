#ifndef MEMRT_BASE_COMPILER_H
#define MEMRT_BASE_COMPILER_H

/// Compiler attributes and builtins that gcc and clang share, under names of memrt.

#define MEMRT__LIKELY(x) __builtin_expect(!!(x), 1)
#define MEMRT__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MEMRT__COLD __attribute__((cold, noinline))
#define MEMRT__APART __attribute__((noinline)) ///< keeps register saves out of its callers
#define MEMRT__INLINE inline __attribute__((always_inline)) ///< fast paths, copied into each caller
#define MEMRT__PRINTF(text, first) __attribute__((format(printf, text, first)))
#define MEMRT__CACHE_LINE 64

/// Mark a char array without a NUL at its end.
#if defined(__has_attribute) && __has_attribute(nonstring)
#define MEMRT__NONSTRING __attribute__((nonstring))
#else
#define MEMRT__NONSTRING
#endif

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

/// Declare a thread-local variable that costs one instruction to reach. The variable takes static
/// thread-local space. A library loaded by dlopen gets little thread-local space: use for pointers
/// only.
#define MEMRT__THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

/// Compiler barrier: no memory access moves across. If another thread forks here, the child sees
/// all stores before the barrier and no store after the barrier.
#define MEMRT__KEEP_ORDER __asm__ volatile("" ::: "memory")

#endif
