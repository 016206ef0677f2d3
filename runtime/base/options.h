#ifndef MEMRT_BASE_OPTIONS_H
#define MEMRT_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/stats.h>
#include <memrt/status.h>

#define MEMRT__DECAY_NEVER SIZE_MAX

/// Which mappings the system is advised to use huge pages for.
typedef enum memrt__huge {
    MEMRT__HUGE_OFF,
    MEMRT__HUGE_ADVISE, ///< all that a huge page fits into
    MEMRT__HUGE_LARGE,  ///< large blocks of two huge pages and more
} memrt__huge_t;

/// What is done about memory that is still live at the end of the process.
typedef enum memrt__leaks {
    MEMRT__LEAKS_OFF,
    MEMRT__LEAKS_REPORT, ///< it is listed on stderr
    MEMRT__LEAKS_FAIL,   ///< and the process fails
} memrt__leaks_t;

/// Longest text that is an option's value, with the closing zero.
#define MEMRT__TEXT_MAX 512

/// The MEMRT_* options: read from the environment once, by memrt__options_read(). Those that are
/// atomic, relaxed, can be set later; the others are fixed.
typedef struct memrt__options {
    bool check;          ///< verify every reference and fence every block
    bool track;          ///< tracking is on from the start
    bool cache;          ///< keep freed memory for reuse
    size_t leaks;        ///< a memrt__leaks_t; but for off, tracking is on from the start
    size_t track_frames; ///< calls of an interpreter that tracking records of each birth
    size_t track_native; ///< calls of native code likewise
    size_t track_sample; ///< bytes; mean distance of the births that it lists, 0: all
    size_t alignment;    ///< bytes; of policies that name none
    size_t huge_pages;   ///< atomic; a memrt__huge_t
    size_t cache_limit;  ///< atomic; bytes of large blocks to keep at most
    size_t decay;        ///< atomic; milliseconds that memory is kept unused, or MEMRT__DECAY_NEVER
    size_t exact_peak;   ///< atomic; not 0: peaks hear of every change, from when it is set
    size_t share;        ///< atomic; not 0: the statistics are in a page that others read
    size_t cuda_sync;    ///< atomic; 0: streams of other libraries' arrays are passed over
    char cuda_driver[MEMRT__TEXT_MAX]; ///< file of the driver; read by memrt__options_text()
} memrt__options_t;

/// What a policy sets for itself, each as in memrt__options_t or MEMRT__INHERIT.
typedef struct memrt__limits {
    size_t huge_pages, cache_limit, decay;
} memrt__limits_t;

#define MEMRT__INHERIT (SIZE_MAX - 1) ///< as the process has it at that time
#define MEMRT__INHERIT_ALL {MEMRT__INHERIT, MEMRT__INHERIT, MEMRT__INHERIT}

/// Values in force; the defaults before memrt__options_read().
extern memrt__options_t memrt__options;

/// Read the environment. A bad value leaves the default, an unknown name is passed over; each is
/// noted as a warning. Not to be called while other threads use memrt.
void memrt__options_read(void);

/// Copy an option that is a text of MEMRT__TEXT_MAX bytes, which may be set meanwhile.
void memrt__options_text(const char (*option)[MEMRT__TEXT_MAX], char *out);

/// Row `index` of the options with help and value in force, or false past the last.
bool memrt__options_row(size_t index, memrt_option_t *out);

/// Row `index` of those that `limits` sets, or false past the last.
bool memrt__limits_row(const memrt__limits_t *limits, size_t index, memrt_option_t *out);

/// Read each text that is not NULL as the option's value. False: one is none.
bool memrt__limits_read(const char *huge_pages, const char *cache_limit, const char *decay,
                        memrt__limits_t *out) MEMRT_MUST_CHECK;

/// See memrt_api_t.option_check and, less what follows from it, memrt_api_t.option_set.
memrt_status_t memrt__options_check(const char *name, const char *value, char *why,
                                    size_t length) MEMRT_MUST_CHECK;
memrt_status_t memrt__options_set(const char *name, const char *value, char *why,
                                  size_t length) MEMRT_MUST_CHECK;

/// Note that an option that was read cannot be had.
void memrt__options_warn(const char *why);

/// Sentence `index` of what was wrong, or NULL.
const char *memrt__options_warning(size_t index);

#endif
