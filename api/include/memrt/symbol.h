#ifndef MEMRT_SYMBOL_H
#define MEMRT_SYMBOL_H

#ifdef __cplusplus
extern "C" {
#endif

/// Function of compiled code, with any arguments and any result.
typedef void memrt_function_t(void);

/// Maximum length of a symbol's name in bytes, without the closing zero.
#define MEMRT_SYMBOL_MAX 1023u

/// Maximum number of undefined symbols at the same time whose calls report the symbol's name.
#define MEMRT_SYMBOLS_NAMED 1024u

/// Callback for a call of an undefined symbol. `name` is NULL if the symbol is not known.
///
/// The callback returns non-zero to take the error over, for example as an exception of an
/// interpreter. Then memrt_api_t.symbol_error reports no error.
///
/// Threads: the thread that called the symbol, with no lock of memrt held.
typedef int (*memrt_symbol_error_fn)(const char *name);

#ifdef __cplusplus
}
#endif

#endif
