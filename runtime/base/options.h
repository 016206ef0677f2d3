#ifndef MEMRT_BASE_OPTIONS_H
#define MEMRT_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/stats.h>

#define MEMRT__DECAY_NEVER SIZE_MAX

/// The MEMRT_* environment variables: read once, by memrt__options_read().
typedef struct memrt__options {
    bool check;         ///< verify every reference and fence every block
    bool track;         ///< tracking is on from the start
    bool huge_pages;    ///< advise huge pages on large blocks
    bool cache;         ///< keep freed memory for reuse
    size_t alignment;   ///< bytes; of policies that name none
    size_t cache_limit; ///< bytes of large blocks to keep at most
    size_t decay;       ///< milliseconds that memory is kept unused; MEMRT__DECAY_NEVER: for ever
} memrt__options_t;

/// Values in force; the defaults before memrt__options_read().
extern memrt__options_t memrt__options;

/// Read the environment. A bad value leaves the default, an unknown name is passed over; each is
/// noted as a warning. Not to be called while other threads use memrt.
void memrt__options_read(void);

/// Row `index` of the options with help and value in force, or false past the last.
bool memrt__options_row(size_t index, memrt_option_t *out);

/// Sentence `index` of what was wrong, or NULL.
const char *memrt__options_warning(size_t index);

#endif
