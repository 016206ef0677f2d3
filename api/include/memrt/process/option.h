#ifndef MEMRT_OPTION_H
#define MEMRT_OPTION_H

/// Options of the process and of policies, MEMRT_* in the environment.

#include <stddef.h>

#include <memrt/policy.h>
#include <memrt/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Row of the table of MEMRT_* options.
typedef struct memrt_option {
    const char *name; ///< "MEMRT_CHECK"
    char value[32];   ///< value in force, as text
    const char *help; ///< one sentence, with unit and default
} memrt_option_t;

/// Read row `index` of the options in force; return 0 past the last row.
typedef int (*memrt_option_fn)(size_t index, memrt_option_t *out);

/// Return sentence `index` of the warnings about wrong MEMRT_* variables; NULL past the last.
typedef const char *(*memrt_option_warning_fn)(size_t index);

/// Set an option of the process from now on. `name` is the name of the environment variable, or
/// that name without prefix in small letters. `value` has the form of the environment.
///
/// For MEMRT_CACHE_LIMIT, MEMRT_DECAY and MEMRT_HUGEPAGES, cached memory follows at once. For
/// MEMRT_PEAK, each peak follows from its next restart on, within the bound of its
/// `peak_error`. MEMRT_LOG_OPERATIONS can be set in a process that started with a value of the
/// option, and chooses the MemInfos whose further operations are logged.
/// Failure: MEMRT_EINVAL for an unknown name, a bad value, or an option that is fixed at the
///          start. Then `why` receives the reason in one sentence of at most `length` bytes (0:
///          no sentence).
typedef memrt_status_t (*memrt_option_set_fn)(const char *name, const char *value, char *why,
                                              size_t length);

/// Check whether a text is a value of an option, also of an option that is fixed by now. The
/// arguments and results are those of option_set, but nothing changes.
typedef memrt_status_t (*memrt_option_check_fn)(const char *name, const char *value, char *why,
                                                size_t length);

/// Read row `index` of the options that the policy sets for itself; return 0 past the last row.
/// While another thread changes options of the policy, the index of a row may change.
typedef int (*memrt_policy_option_fn)(const memrt_policy_t *policy, size_t index,
                                      memrt_option_t *out);

/// Set an option that a live policy sets for itself, from now on. `name`, `value` and `why` are
/// those of option_set. `value` NULL: follow the option of the process. All other settings of a
/// policy are fixed, because its blocks depend on the settings.
///
/// MEMRT_CACHE_LIMIT, MEMRT_DECAY, MEMRT_HUGEPAGES: cached memory follows at once, and huge pages
/// are for later blocks. The policy must have been created with at least one of the three. Other
/// policies share the cache of the process, or have an allocator of their own.
///
/// MEMRT_GUARD_SAMPLE: for later blocks of a policy with memrt's allocator. From then on, the
/// allocator of the default policy is final. While the mean is below 1 MiB for a policy that was
/// created with a larger mean or with none, all allocations of the process take the slow path.
///
/// Threads: any; other threads may allocate and free meanwhile.
/// Failure: MEMRT_EINVAL for another name or a bad value; MEMRT_ENOTSUP for a policy without the
///          cache or allocator that the option needs, and for MEMRT_HUGEPAGES in a process without
///          caches; MEMRT_ENOMEM for guard pages. Nothing changes.
typedef memrt_status_t (*memrt_policy_option_set_fn)(memrt_policy_t *policy, const char *name,
                                                     const char *value, char *why, size_t length);

#ifdef __cplusplus
}
#endif

#endif
