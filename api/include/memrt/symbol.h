#ifndef MEMRT_SYMBOL_H
#define MEMRT_SYMBOL_H

#ifdef __cplusplus
extern "C" {
#endif

/// A function of compiled code, of whatever arguments and result.
typedef void memrt_function_t(void);

/// Longest name of a symbol in bytes, without the closing zero.
#define MEMRT_SYMBOL_MAX 1023u

/// So many symbols at once that are not defined tell their names when they are called.
#define MEMRT_SYMBOLS_NAMED 1024u

/// Told of a call of a symbol that is not defined, on the thread that made it; `name` is NULL where
/// it cannot be told. Returns non-zero when it takes the error over, as an exception of an
/// interpreter, so that memrt_api_t.symbol_error has none.
///
/// Threads: any, with no lock of memrt held.
typedef int (*memrt_symbol_error_fn)(const char *name);

#ifdef __cplusplus
}
#endif

#endif
