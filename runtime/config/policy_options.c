#include "runtime/config/policy_options.h"

#include <stddef.h>
#include <stdio.h>

#include "runtime/config/option_types.h"

/// Option of policies: the value for the process, and the offset in memrt__limits_t.
typedef struct limit {
    const memrt__option_type_t *type;
    const size_t *of_process;
    size_t offset;
} limit_t;

static const limit_t limits_known[] = {
    {&memrt__option_bytes, &memrt__options.cache_limit, offsetof(memrt__limits_t, cache_limit)},
    {&memrt__option_decay, &memrt__options.decay, offsetof(memrt__limits_t, decay)},
    {&memrt__option_huge, &memrt__options.huge_pages, offsetof(memrt__limits_t, huge_pages)},
    {&memrt__option_sample, &memrt__options.guard_sample, offsetof(memrt__limits_t, guard_sample)},
};
#define LIMITS (sizeof(limits_known) / sizeof(limits_known[0]))

static size_t *get_value(const memrt__limits_t *limits, const limit_t *limit)
{
    return (size_t *)((uintptr_t)limits + limit->offset);
}

/// Fill in name, help and value in a policy of an option.
static void fill_row(const limit_t *limit, size_t value, memrt_option_t *out)
{
    size_t index = 0;
    do {
        bool known = memrt__options_row(index++, out);
        MEMRT__ASSERT(known);
        (void)known;
    } while (!memrt__options_is_named(out->name, limit->of_process));
    limit->type->show(value, out->value, sizeof(out->value));
}

bool memrt__limits_row(const memrt__limits_t *limits, size_t index, memrt_option_t *out)
{
    for (size_t i = 0; i < LIMITS; i++) {
        size_t value = memrt__load_relaxed(get_value(limits, &limits_known[i]));
        if (value != MEMRT__INHERIT && index-- == 0) {
            fill_row(&limits_known[i], value, out);
            return true;
        }
    }
    return false;
}

/// Read a limit of a policy. NULL stands for the value of the process.
static bool read_limit(const memrt__option_type_t *type, const char *text, size_t *value)
{
    *value = MEMRT__INHERIT;
    return text == NULL || type->read(text, value);
}

bool memrt__limits_read(const char *huge_pages, const char *cache_limit, const char *decay,
                        const char *guard_sample, memrt__limits_t *out)
{
    return read_limit(&memrt__option_huge, huge_pages, &out->huge_pages) &&
           read_limit(&memrt__option_bytes, cache_limit, &out->cache_limit) &&
           read_limit(&memrt__option_decay, decay, &out->decay) &&
           read_limit(&memrt__option_sample, guard_sample, &out->guard_sample);
}

static const limit_t *find_limit(const char *name)
{
    for (size_t i = 0; i < LIMITS; i++) {
        if (memrt__options_is_named(name, limits_known[i].of_process)) {
            return &limits_known[i];
        }
    }
    return NULL;
}

bool memrt__limits_is_guard(const char *name)
{
    return memrt__options_is_named(name, &memrt__options.guard_sample);
}

memrt_status_t memrt__limits_change(memrt__limits_t *limits, const char *name, const char *value,
                                    char *why, size_t length)
{
    const limit_t *limit = find_limit(name);
    size_t number;
    if (limit == NULL) {
        snprintf(why, length,
                 "option of a live policy must be MEMRT_CACHE_LIMIT, MEMRT_DECAY, "
                 "MEMRT_HUGEPAGES or MEMRT_GUARD_SAMPLE, got '%.60s': create another policy with "
                 "the new setting",
                 name);
        return MEMRT_EINVAL;
    }
    if (!read_limit(limit->type, value, &number)) {
        return memrt__options_check(name, value, why, length);
    }
    memrt__store_relaxed(get_value(limits, limit), number);
    return MEMRT_OK;
}
