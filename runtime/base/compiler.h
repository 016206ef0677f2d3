#ifndef MEMRT_BASE_COMPILER_H
#define MEMRT_BASE_COMPILER_H

/// What gcc and clang call the same thing.

#define MEMRT__LIKELY(x) __builtin_expect(!!(x), 1)
#define MEMRT__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MEMRT__COLD __attribute__((cold, noinline))
#define MEMRT__APART __attribute__((noinline)) ///< its registers are not saved by who seldom calls
#define MEMRT__INLINE inline __attribute__((always_inline)) ///< of the short ways, in each caller
#define MEMRT__PRINTF(text, first) __attribute__((format(printf, text, first)))
#define MEMRT__CACHE_LINE 64

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

/// A thread-local variable that costs one instruction to reach. It takes static thread-local space,
/// of which a library that is loaded by dlopen gets little: pointers only.
#define MEMRT__THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

#endif
