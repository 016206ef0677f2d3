#ifndef MEMRT_CONFIG_POLICY_OPTIONS_H
#define MEMRT_CONFIG_POLICY_OPTIONS_H

#include "runtime/config/options.h"

/// Options of policies: reading of texts, rows for callers, and changes of live policies.

/// Fill in row `index` of the options that `limits` sets. Returns false past the last row.
bool memrt__limits_row(const memrt__limits_t *limits, size_t index, memrt_option_t *out);

/// Read each text that is not NULL as a value of the option. Returns false if a text is not a valid
/// value.
bool memrt__limits_read(const char *huge_pages, const char *cache_limit, const char *decay,
                        const char *guard_sample, memrt__limits_t *out) MEMRT_MUST_CHECK;

/// Return whether `name`, any text, denotes the option for guard pages; all other limits are of the
/// cache.
bool memrt__limits_is_guard(const char *name);

/// Change one limit of `limits` as memrt_api_t.policy_option_set does for a policy.
memrt_status_t memrt__limits_change(memrt__limits_t *limits, const char *name, const char *value,
                                    char *why, size_t length) MEMRT_MUST_CHECK;

#endif
