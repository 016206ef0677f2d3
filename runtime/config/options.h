#ifndef MEMRT_CONFIG_OPTIONS_H
#define MEMRT_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/process/option.h>
#include <memrt/status.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/config/option_types.h"

/// Values of the MEMRT_* options. memrt__options_read() reads the environment once. Members marked
/// atomic (relaxed) can be set later; all other members are fixed.
typedef struct memrt__options {
    bool check;          ///< verify every reference and put redzones around every block
    bool track;          ///< track from the start of the process
    bool references;     ///< count reference operations through the table
    bool log;            ///< operations can be logged: the log had a value at the start
    bool cache;          ///< keep freed memory for reuse
    bool tools;          ///< allocate each block by malloc, for a tool of memory_tool.h
    size_t leaks;        ///< a memrt__leaks_t; any value but off tracks from the start
    size_t track_frames; ///< interpreter frames recorded for each tracked allocation
    size_t track_native; ///< native frames recorded for each tracked allocation
    size_t track_sample; ///< mean distance in bytes of sampled allocations; 0: track all
    size_t guard_sample; ///< mean distance in bytes of blocks with guard pages; 0: none
    size_t alignment;    ///< alignment in bytes for policies that name none
    size_t huge_pages;   ///< atomic; a memrt__huge_t
    size_t cache_limit;  ///< atomic; most bytes of freed large blocks to keep
    size_t limit;        ///< atomic; maximum of live bytes in the process, see MEMRT__LIMIT_AUTO
    size_t soft_limit;   ///< atomic; soft limit of live bytes in the process, as `limit`
    size_t decay;        ///< atomic; milliseconds that memory is kept unused, or MEMRT__DECAY_NEVER
    size_t peak_mode;    ///< atomic; a memrt__peak_mode_t
    size_t share;        ///< atomic; not 0: other processes may read the statistics page
    size_t cuda_sync;    ///< atomic; 0: ignore the streams of other libraries' arrays
    char cuda_driver[MEMRT__TEXT_MAX]; ///< file name of the driver; read with memrt__options_text()
    char dump_folder[MEMRT__TEXT_MAX]; ///< "none", or where Python code writes dumps; fixed
    char allocator[MEMRT__TEXT_MAX];   ///< "none", or LIBRARY[:SYMBOL] of the default policy's
                                       ///< allocator; read with memrt__options_text()
    char log_operations[MEMRT__TEXT_MAX]; ///< "none", "later", or the MemInfos of the log; read
                                          ///< with memrt__options_text()
} memrt__options_t;

/// Options that a policy sets for itself, each as in memrt__options_t or MEMRT__INHERIT.
typedef struct memrt__limits {
    /* Relaxed, because another thread may change a live policy: */
    size_t huge_pages, cache_limit, decay; ///< of the cache of large blocks
    size_t guard_sample;
} memrt__limits_t;

#define MEMRT__INHERIT_ALL {MEMRT__INHERIT, MEMRT__INHERIT, MEMRT__INHERIT, MEMRT__INHERIT}

static inline void memrt__limits_store(memrt__limits_t *to, const memrt__limits_t *from)
{
    memrt__store_relaxed(&to->huge_pages, from->huge_pages);
    memrt__store_relaxed(&to->cache_limit, from->cache_limit);
    memrt__store_relaxed(&to->decay, from->decay);
    memrt__store_relaxed(&to->guard_sample, from->guard_sample);
}

/// Option values in force. Holds the defaults before memrt__options_read().
extern memrt__options_t memrt__options;

/// Read the options from the environment. A bad value leaves the default; an unknown name is
/// ignored. Both leave a warning. Threads: no other thread may use memrt during the call.
void memrt__options_read(void);

/// Copy a text option of MEMRT__TEXT_MAX bytes to `out`. Another thread may set the option at the
/// same time.
void memrt__options_text(const char (*option)[MEMRT__TEXT_MAX], char *out);

/// Fill in row `index` of the options, with help text and value in force. Returns false past the
/// last.
bool memrt__options_row(size_t index, memrt_option_t *out);

/// See memrt_api_t.option_check and memrt_api_t.option_set. memrt__options_set() stores the value,
/// and leaves out all further effects of memrt_api_t.option_set.
memrt_status_t memrt__options_check(const char *name, const char *value, char *why,
                                    size_t length) MEMRT_MUST_CHECK;
memrt_status_t memrt__options_set(const char *name, const char *value, char *why,
                                  size_t length) MEMRT_MUST_CHECK;

/// Return whether `name`, any text, denotes the option with the value at `value`, a member of
/// memrt__options.
bool memrt__options_is_named(const char *name, const size_t *value);

/// Set the option for the default policy's allocator back to "none".
void memrt__options_drop_allocator(void);

/// Record a warning that an option value from the environment cannot take effect.
void memrt__options_warn(const char *why);

/// Return warning `index`, a sentence, or NULL past the last.
const char *memrt__options_warning(size_t index);

#if MEMRT_DEBUG
/// Return whether each option has one of its values, and whether the options fit each other. Takes
/// the lock of rank OPTIONS.
bool memrt__options_is_valid(void);
#endif

#endif
