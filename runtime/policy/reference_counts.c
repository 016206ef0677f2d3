#include "runtime/policy/reference_counts.h"

#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/policy/policy_table.h"

static memrt__reference_words_t of_process;

void memrt__reference_counts_acquired(const memrt_meminfo_t *mi)
{
    memrt__fetch_add_relaxed(&of_process.acquired, 1);
    memrt__fetch_add_relaxed(&memrt__policy_of(mi)->base->references.acquired, 1);
}

void memrt__reference_counts_released(const memrt_meminfo_t *mi)
{
    memrt_policy_t *policy = mi->policy < MEMRT__ACCOUNTS ? memrt__policy_of(mi) : NULL;
    memrt__fetch_add_relaxed(&of_process.released, 1);
    if (policy != NULL) {
        memrt__fetch_add_relaxed(&policy->base->references.released, 1);
    }
}

memrt_status_t memrt__reference_counts_read(const memrt_policy_t *policy,
                                            memrt_reference_counts_t *out)
{
    if (out->struct_size < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    const memrt__reference_words_t *words =
        policy == NULL ? &of_process : &policy->base->references;
    memrt_reference_counts_t counts = {.struct_size = out->struct_size,
                                       .counting = memrt__options.references,
                                       .acquired = memrt__load_relaxed(&words->acquired),
                                       .released = memrt__load_relaxed(&words->released)};
    memcpy(out, &counts, memrt__size_min(out->struct_size, sizeof(counts)));
    return MEMRT_OK;
}
