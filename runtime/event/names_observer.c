#include "runtime/event/names_observer.h"

#include "runtime/base/check.h"
#include "runtime/observe/named_refs.h"

void memrt__block_drop_names(const memrt_meminfo_t *mi)
{
    size_t exports = memrt__named_refs_forget((uintptr_t)mi);
    if (exports != 0) {
        memrt__tally_t tally = memrt__tally(&memrt__policy_of(mi)->account);
        memrt__tally_out(&tally, &tally.shard->exported_out, exports);
    }
}

/// A realloc drops the names when the block is claimed, because also a failed realloc has claimed
/// the block. A block that grows by try_expand keeps its references and their names.
void memrt__names_observe(const memrt__block_event_t *event)
{
    if (event->type == MEMRT__EVENT_FREE) {
        memrt__block_drop_names(event->mi);
    }
}
