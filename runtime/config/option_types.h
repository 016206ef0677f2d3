#ifndef MEMRT_CONFIG_OPTION_TYPES_H
#define MEMRT_CONFIG_OPTION_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Types of option values: the values, and how to read and show a value.

#define MEMRT__DECAY_NEVER SIZE_MAX
#define MEMRT__INHERIT (SIZE_MAX - 1) ///< the process's value at the time of use

/// Mappings for which the system is advised to use huge pages.
typedef enum memrt__huge {
    MEMRT__HUGE_OFF,
    MEMRT__HUGE_ADVISE, ///< each mapping that a huge page fits into
    MEMRT__HUGE_LARGE,  ///< large blocks of at least two huge pages
} memrt__huge_t;

/// Action for memory that is still live at the end of the process.
typedef enum memrt__leaks {
    MEMRT__LEAKS_OFF,
    MEMRT__LEAKS_REPORT, ///< list the memory on stderr
    MEMRT__LEAKS_FAIL,   ///< list the memory, and let the process fail
} memrt__leaks_t;

/// Precision of peaks.
typedef enum memrt__peak_mode {
    MEMRT__PEAK_BOUNDED, ///< off by at most `peak_error`
    MEMRT__PEAK_EXACT,   ///< peaks see every change, from the time of setting
    MEMRT__PEAK_CLOSE,   ///< off by at most 2 % of the peak, from the next start of the peak
} memrt__peak_mode_t;

/// Values of the option for the limit of the process: a number of bytes, or one of these. Both are
/// resolved when the limit is set.
#define MEMRT__LIMIT_AUTO (SIZE_MAX - 2)
#define MEMRT__LIMIT_PERCENT (SIZE_MAX - 200) ///< plus 1 to 100

/// Size of the longest text value of an option, with the terminating NUL.
#define MEMRT__TEXT_MAX 512

/// Type of an option value, with its parser and its formatter. `read` returns false for a bad
/// value.
typedef struct memrt__option_type {
    bool (*read)(const char *text, size_t *value);
    void (*show)(size_t value, char *text, size_t length);
    const char *expects;
} memrt__option_type_t;

extern const memrt__option_type_t memrt__option_flag, memrt__option_alignment, memrt__option_huge,
    memrt__option_leaks, memrt__option_bytes, memrt__option_frames, memrt__option_sample,
    memrt__option_decay, memrt__option_peak, memrt__option_file, memrt__option_folder,
    memrt__option_library, memrt__option_limit, memrt__option_log;

#endif
