#include <memrt/external.h>

#include <pthread.h>
#include <stdio.h>

#include "api/checking_table.h"
#include "api/plain_table.h"
#include "api/reference_table.h"
#include "runtime/config/options.h"
#include "runtime/runtime.h"

/// memrt_get_api(), which starts the runtime and chooses a table. The assertions pin the offsets of
/// slots, because the order of the slots is a binary contract.

#define SLOT_AT(slot, word)                                                                        \
    _Static_assert(offsetof(memrt_api_t, slot) == (word) * 8, #slot " moved")
SLOT_AT(allocate, 0);
SLOT_AT(allocate_external, 1);
SLOT_AT(manage_memory, 2);
SLOT_AT(acquire, 3);
SLOT_AT(release, 4);
SLOT_AT(get_data, 5);
SLOT_AT(struct_size, 6);
SLOT_AT(abi_major, 7);
SLOT_AT(features, 8);
SLOT_AT(version, 9);
SLOT_AT(meminfo_new, 10);
SLOT_AT(status_text, 60);
SLOT_AT(policy_option, 63);
SLOT_AT(scope_reset_peak, 77);
SLOT_AT(holders, 80);
SLOT_AT(buffer_read, 92);
SLOT_AT(set_symbol_error, 98);
SLOT_AT(allocator_pinned, 114);
SLOT_AT(dlpack_new, 119);
SLOT_AT(arrow_adopt, 121);
SLOT_AT(scope_stats_sizes, 128);
SLOT_AT(allocate_from, 129);
SLOT_AT(limit_read, 131);
SLOT_AT(mappings, 132);
SLOT_AT(hook_remove, 134);
SLOT_AT(reclaim_remove, 136);
SLOT_AT(pressure_remove, 139);
SLOT_AT(memory_stats, 140);
SLOT_AT(reference_counts, 141);
SLOT_AT(latency, 142);
SLOT_AT(limit_set_soft, 143);
SLOT_AT(snapshot, 144);
SLOT_AT(policy_default_set_allocator, 146);
SLOT_AT(resizable_try_expand, 150);
SLOT_AT(weak_acquire, 152);
SLOT_AT(locate, 153);
SLOT_AT(resizable_try_shrink, 155);
SLOT_AT(set_write_frames, 156);
SLOT_AT(policy_option_set, 157);
SLOT_AT(policy_placement, 160);
SLOT_AT(try_unique, 161);
SLOT_AT(thaw, 163);
SLOT_AT(pages_cold, 165);
SLOT_AT(failure_read, 166);
SLOT_AT(policy_reset, 167);
_Static_assert(sizeof(memrt_api_t) == 168 * 8, "slots are only ever appended");

static char refusal_text[160];

static void write_refusal_text(void)
{
    snprintf(refusal_text, sizeof(refusal_text),
             "memrt %s has ABI %u, but the caller requires another: rebuild the caller against the "
             "installed headers, or install a memrt with the caller's ABI",
             MEMRT_VERSION, MEMRT_ABI_MAJOR);
}

const memrt_api_t *memrt_get_api(uint32_t abi_major, const char **why)
{
    static pthread_once_t written = PTHREAD_ONCE_INIT;
    if (abi_major != MEMRT_ABI_MAJOR) {
        pthread_once(&written, write_refusal_text);
        if (why != NULL) {
            *why = refusal_text;
        }
        return NULL;
    }
    memrt__runtime_start();
    if (memrt__options.references || memrt__options.log) {
        return memrt__reference_table();
    }
    return memrt__options.check ? &memrt__checking_table : &memrt__plain_table;
}

const char *memrt_version(void)
{
    return MEMRT_VERSION;
}
