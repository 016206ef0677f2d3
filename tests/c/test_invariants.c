/// Seeded bugs: each test damages a structure, and expects false from the function
/// memrt__<structure>_is_valid().

#include "support/suite.h"

#include <string.h>
#include <unistd.h>

#include "runtime/base/check.h"

#if MEMRT_DEBUG

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/alloc/guard/quarantine.h"
#include "runtime/alloc/heap/central/central_list.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/pages/page_counts.h"
#include "runtime/alloc/heap/pages/page_heap.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/thread_cache.h"
#include "runtime/config/options.h"
#include "runtime/observe/intern_table.h"
#include "runtime/observe/live_set.h"
#include "runtime/policy/policy_table.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/pressure/pressure_callbacks.h"
#include "runtime/pressure/pressure_thread.h"
#include "runtime/runtime.h"
#include "runtime/stats/stats.h"
#include "runtime/symbols/symbols.h"
#include "runtime/trace/event_buffer.h"
#include "support/child.h"
#include "support/crew.h"

#define SMALL 1000
#define LARGE ((size_t)4 << 20)

/// Structures to damage.
typedef struct ground {
    memrt_policy_t *policy, *part;
    memrt_scope_t *outer, *inner;
    void *small, *large; ///< blocks of the heap; `large` is freed and cached
    memrt__live_entry_t *entry;
    memrt__interns_t interns;
    memrt__interned_t *string;
    memrt__quarantine_t quarantine;
    memrt__event_buffer_t buffer;
    void *symbol; ///< slot of an undefined symbol
} ground_t;

static ground_t ground;

static void keep_entry(const memrt__live_entry_t *entry, void *context)
{
    *(const memrt__live_entry_t **)context = entry;
}

static void make_policies(void)
{
    ck_assert_int_eq(api->policy_new(NULL, &ground.policy), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(NULL, "outer", &ground.outer), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(ground.outer, "inner", &ground.inner), MEMRT_OK);
    ck_assert_int_eq(api->scope_policy(ground.inner, ground.policy, &ground.part), MEMRT_OK);
}

/// Make two small blocks, and give one back to the thread cache; cache a large block.
static void make_blocks(void)
{
    const memrt_allocator_t *heap = &memrt__heap_allocator;
    suite_set_decay(MEMRT__DECAY_NEVER);
    ground.small = memrt__allocator_alloc(heap, SMALL, 64, false);
    void *second = memrt__allocator_alloc(heap, SMALL, 64, false);
    ground.large = memrt__allocator_alloc(heap, LARGE, 64, false);
    ck_assert(ground.small != NULL && second != NULL && ground.large != NULL);
    memrt__allocator_free(heap, second, SMALL, 64);
    memrt__allocator_free(heap, ground.large, LARGE, 64);
}

static void make_ground(void)
{
    static const char text[] = "string";
    memrt_function_t *const *slot;
    make_policies();
    make_blocks();
    ck_assert(memrt__live_insert(1, 0, 1));
    ck_assert(memrt__live_visit(1, keep_entry, &ground.entry));
    ground.string = memrt__intern(&ground.interns, text, sizeof(text));
    ck_assert_ptr_nonnull(ground.string);
    ck_assert(memrt__quarantine_put(&ground.quarantine, &ground, 100));
    ground.buffer.file = -1;
    ck_assert_int_eq(api->symbol_slot("undefined", &slot), MEMRT_OK);
    memcpy(&ground.symbol, &slot, sizeof(slot));
}

static void clear_ground(void)
{
    memrt__live_remove(1, NULL);
    memrt__allocator_free(&memrt__heap_allocator, ground.small, SMALL, 64);
    api->policy_release(ground.part);
    api->scope_release(ground.inner);
    api->scope_release(ground.outer);
    api->policy_release(ground.policy);
}

static bool are_interns_valid(void)
{
    return memrt__interns_is_valid(&ground.interns);
}

static bool is_quarantine_valid(void)
{
    return memrt__quarantine_is_valid(&ground.quarantine);
}

static bool is_event_buffer_valid(void)
{
    return memrt__event_buffer_is_valid(&ground.buffer);
}

static memrt__span_t *get_span(void)
{
    return memrt__page_heap_span_of(ground.small);
}

static memrt__segment_t *get_segment(void)
{
    return memrt__segment_of(ground.small);
}

static uint16_t *get_head(void)
{
    return &get_segment()->head[memrt__unit_of(ground.small)];
}

/// A seeded bug: changed bits of a byte, the function with the broken condition, and a part of the
/// condition.
typedef struct bug {
    void *(*find)(void); ///< address of the byte
    unsigned char bits;
    bool (*is_valid)(void);
    const char *condition;
} bug_t;

/// Define a function that returns the address of byte `index` of an object.
#define BYTE(name, object, index)                                                                  \
    static void *name(void)                                                                        \
    {                                                                                              \
        return (char *)&(object) + (index);                                                        \
    }

BYTE(alignment_option, memrt__options.alignment, 0)
BYTE(huge_pages_option, memrt__options.huge_pages, 1)
BYTE(peak_option, memrt__options.peak_mode, 1)
BYTE(record_use, memrt__self->in_use, 0)
BYTE(record_destructors, memrt__self->dtors.deferred, 0)
BYTE(bin_room, memrt__self->cache.bins.room[memrt__class_of_bytes(SMALL)], 0)
BYTE(bin_head, memrt__self->cache.bins.head[memrt__class_of_bytes(SMALL)], 0)
BYTE(bin_limit, memrt__self->cache.bins.limit[memrt__class_of_bytes(SMALL)], 1)
BYTE(bin_limits, memrt__self->cache.limits[0], 0)
BYTE(span_used, get_span()->used, 0)
BYTE(span_bytes, get_span()->bytes, 0)
BYTE(span_fresh, get_span()->fresh, 0)
BYTE(span_end, get_span()->end, 1)
BYTE(span_class, get_span()->class, 0)
BYTE(span_detoured, get_span()->detoured, 0)
BYTE(span_units, get_span()->units, 0)
BYTE(segment_head, *get_head(), 0)
BYTE(segment_used_units, get_segment()->used_units, 0)
BYTE(segment_used, get_segment()->used.word[MEMRT__SEGMENT_WORDS - 1], 7)
BYTE(segment_idle, get_segment()->idle.word[MEMRT__SEGMENT_WORDS - 1], 7)
BYTE(segment_dirty, get_segment()->dirty.word[MEMRT__SEGMENT_WORDS - 1], 7)
BYTE(segment_longest, get_segment()->longest[MEMRT__RUNS_FREE], 1)
BYTE(segment_bin, get_segment()->longest[MEMRT__RUNS_FREE], 0)
BYTE(segment_whole, get_segment()->whole.word[MEMRT__SEGMENT_WORDS - 1], 7)
BYTE(segment_round, get_segment()->round[MEMRT__ROUND_ADVICE], 6)
BYTE(page_counts_cached, memrt__page_counts.dirty_free, 4)
BYTE(segment_discards, get_segment()->discards, 0)
BYTE(segment_prev, get_segment()->links[memrt__links_of_round(MEMRT__ROUND_ALL)].prev, 0)
BYTE(cached_bytes, memrt__mapping_lists_bytes, 2)
BYTE(cache_requested, memrt__large_cache_shared.requested, 6)
BYTE(cache_queue_bytes, memrt__large_cache_shared.lists.cached.bytes, 2)
BYTE(cache_closed, memrt__large_cache_shared.closed, 0)
BYTE(mapping_bytes, memrt__large_cache_shared.lists.cached.newest->bytes, 1)
BYTE(mapping_stuck, memrt__large_cache_shared.lists.cached.newest->stuck, 0)
BYTE(mapping_older, memrt__large_cache_shared.lists.cached.newest->older, 0)
BYTE(mapping_prev, memrt__large_cache_shared.lists.cached.newest->prev, 0)
BYTE(shortest_decay, memrt__large_cache_shortest, 0)
BYTE(purger_runs, memrt__purger_runs, 0)
BYTE(pressure_runs, memrt__pressure_runs, 0)
BYTE(pressure_callbacks, memrt__pressure_callbacks, 0)
BYTE(shard_high, memrt__self->first.high, 4)
BYTE(shard_low, memrt__self->first.low, 7)
BYTE(shard_out_limit, memrt__self->first.out_limit, 4)
BYTE(process_flushed, memrt__process.flushed, 0)
BYTE(process_gauges, memrt__process.gauges, 0)
BYTE(entry_id, ground.entry->id, 7)
BYTE(entry_weight, ground.entry->weight, 7)
BYTE(entry_key, ground.entry->key, 1)
BYTE(interns_count, ground.interns.count, 0)
BYTE(interned_number, ground.string->number, 0)
BYTE(interned_hash, ground.string->hash, 0)
BYTE(interned_text, ground.string->words, 0)
BYTE(policy_account, ground.policy->account.index, 0)
BYTE(policy_alignment, ground.policy->alignment, 0)
BYTE(policy_subpolicies, ground.policy->subpolicies, 0)
BYTE(policy_base, ground.part->base, 0)
BYTE(policy_scope, ground.part->scope, 0)
BYTE(policy_table_end, memrt__policy_table_end, 1)
BYTE(scope_id, ground.inner->id, 0)
BYTE(scope_subpolicies, ground.inner->subpolicies, 0)
BYTE(scope_references, ground.outer->refs, 0)
BYTE(quarantine_count, ground.quarantine.count, 1)
BYTE(quarantine_bytes, ground.quarantine.bytes, 0)
BYTE(quarantine_first, ground.quarantine.first, 1)
BYTE(ring_capacity, ground.buffer.ring.capacity, 0)
BYTE(ring_total, ground.buffer.ring.total, 0)
BYTE(buffer_file, ground.buffer.file, 3)
BYTE(buffer_end, ground.buffer.end, 0)

static void *symbol_target(void)
{
    return ground.symbol;
}

static void *policy_null(void)
{
    return (char *)&memrt__policies[MEMRT__ACCOUNTS - 1];
}

static void *scope_name(void)
{
    return ground.outer->name; /* both scopes lose the first letter */
}

static const bug_t bugs[] = {
    {alignment_option, 3, memrt__options_is_valid, "power_of_two(now->alignment)"},
    {huge_pages_option, 1, memrt__options_is_valid, "MEMRT__HUGE_LARGE"},
    {peak_option, 1, memrt__options_is_valid, "peak_mode"},
    {record_use, 1, memrt__thread_is_valid, "in_use"},
    {record_destructors, 64, memrt__thread_is_valid, "dtors.depth != 0"},
    {bin_room, 1, memrt__thread_cache_is_valid, ""},
    {bin_head, 64, memrt__thread_cache_is_valid, "is_block_of_class"},
    {bin_limit, 1, memrt__thread_cache_is_valid, "left == 0"},
    {bin_limits, 1, memrt__thread_cache_is_valid, "limits[0] == sums[0]"},
    {span_used, 1, memrt__central_list_is_valid, ""},
    {span_bytes, 64, memrt__central_list_is_valid, "span->bytes =="},
    {span_fresh, 8, memrt__central_list_is_valid, "span->fresh"},
    {span_end, 1, memrt__central_list_is_valid, "span->end =="},
    {span_class, 1, memrt__central_list_is_valid, "span->bytes =="},
    {span_detoured, 1, memrt__central_list_is_valid, "detoured"},
    {span_units, 1, memrt__page_heap_is_valid, ""},
    {segment_head, 1, memrt__page_heap_is_valid, ""},
    {segment_used_units, 1, memrt__page_heap_is_valid, "used_units"},
    {segment_used, 128, memrt__page_heap_is_valid, "used_units"},
    {segment_idle, 128, memrt__page_heap_is_valid, "idle"},
    {segment_dirty, 128, memrt__page_heap_is_valid, "longest"},
    {segment_longest, 4, memrt__page_heap_is_valid, "longest"},
    {segment_bin, 1, memrt__page_heap_is_valid, "segments"},
    {segment_whole, 128, memrt__page_heap_is_valid, "whole"},
    {segment_round, 1, memrt__page_heap_is_valid, "round"},
    {page_counts_cached, 1, memrt__page_heap_is_valid, "dirty_free"},
    {segment_discards, 128, memrt__page_heap_is_valid, "discards"},
    {segment_prev, 64, memrt__page_heap_is_valid, "prev"},
    {cached_bytes, 1, memrt__large_cache_is_valid, "memrt__mapping_lists_bytes"},
    {cache_requested, 64, memrt__large_cache_is_valid, "cache->requested"},
    {cache_queue_bytes, 1, memrt__large_cache_is_valid, "queue->bytes"},
    {cache_closed, 1, memrt__large_cache_is_valid, "cache->closed"},
    {mapping_bytes, 16, memrt__large_cache_is_valid, "queue->bytes"},
    {mapping_stuck, 1, memrt__large_cache_is_valid, "stuck"},
    {mapping_older, 64, memrt__large_cache_is_valid, "older"},
    {mapping_prev, 64, memrt__large_cache_is_valid, "prev"},
    {shortest_decay, 1, memrt__large_cache_is_valid, "shortest"},
    {purger_runs, 2, memrt__purger_is_valid, "memrt__purger_runs"},
    {pressure_runs, 2, memrt__pressure_is_valid, "memrt__pressure_runs"},
    {pressure_callbacks, 1, memrt__pressure_is_valid, "memrt__pressure_callbacks"},
    {shard_high, 1, memrt__stats_is_valid, ""},
    {shard_low, 64, memrt__stats_is_valid, "net >="},
    {shard_out_limit, 1, memrt__stats_is_valid, "net >="},
    {process_flushed, 1, memrt__stats_is_valid, "memrt__process.flushed"},
    {process_gauges, 2, memrt__stats_is_valid, "memrt__process.gauges"},
    {entry_id, 128, memrt__live_is_valid, "slot->id"},
    {entry_weight, 128, memrt__live_is_valid, "weight"},
    {entry_key, 1, memrt__live_is_valid, ""},
    {interns_count, 2, are_interns_valid, "count"},
    {interned_number, 1, are_interns_valid, "number"},
    {interned_hash, 1, are_interns_valid, "hash"},
    {interned_text, 1, are_interns_valid, "hash_bytes"},
    {policy_account, 1, memrt__policy_table_is_valid, "account.index == index"},
    {policy_alignment, 1, memrt__policy_table_is_valid, "alignment"},
    {policy_subpolicies, 1, memrt__policy_table_is_valid, "subpolicies"},
    {policy_base, 64, memrt__policy_table_is_valid, ""},
    {policy_null, 1, memrt__policy_table_is_valid, ""},
    {policy_table_end, 128, memrt__policy_table_is_valid, "memrt__policy_table_end"},
    {policy_scope, 64, memrt__scope_tree_is_valid, "subpolicy->scope == scope"},
    {scope_id, 128, memrt__scope_tree_is_valid, ""},
    {scope_subpolicies, 64, memrt__scope_tree_is_valid, "is_in_table"},
    {scope_references, 2, memrt__scope_tree_is_valid, "memrt__scope_is_held(parent)"},
    {scope_name, 'o', memrt__scope_tree_is_valid, "name"},
    {quarantine_count, 4, is_quarantine_valid, "count"},
    {quarantine_bytes, 1, is_quarantine_valid, "bytes"},
    {quarantine_first, 1, is_quarantine_valid, "first"},
    {ring_capacity, 1, is_event_buffer_valid, "ring->bytes"},
    {ring_total, 1, is_event_buffer_valid, "ring->total"},
    {buffer_file, 128, is_event_buffer_valid, "sizeof(memrt_trace_header_t)"},
    {buffer_end, 1, is_event_buffer_valid, "end % 8"},
    {symbol_target, 1, memrt__symbols_is_valid, "symbol->target"},
};

TEST_EACH(damaged_structure_is_not_valid, sizeof(bugs) / sizeof(bugs[0]))
{
    const bug_t *bug = &bugs[index];
    make_ground();
    ck_assert_msg(bug->is_valid(), "broken invariant: %s", memrt__invariant_broken());
    unsigned char *byte = bug->find();
    *byte ^= bug->bits;
    bool valid = bug->is_valid();
    *byte ^= bug->bits;
    ck_assert(!valid);
    ck_assert_msg(strstr(memrt__invariant_broken(), bug->condition) != NULL, "no \"%s\" in: %s",
                  bug->condition, memrt__invariant_broken());
    clear_ground();
}

#define THREADS 4
#define ROUNDS 300
#define FORKS 20

/// Use most structures: blocks of all kinds, names, scopes and purges.
static void use_structures(size_t round)
{
    memrt_scope_t *scope;
    memrt_new_options_t options = {.struct_size = sizeof(options), .name = "buffer"};
    memrt_meminfo_t *mi;
    REQUIRE(api->scope_open(NULL, "work", &scope) == MEMRT_OK);
    REQUIRE(api->scope_enter(scope, NULL) == MEMRT_OK);
    REQUIRE(api->meminfo_new(round * 7919 % 3000000, &options, &mi) == MEMRT_OK);
    REQUIRE(api->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "loader") == MEMRT_OK);
    void *tiny = api->block_alloc(NULL, 8), *block = api->block_alloc(NULL, round * 31 % 70000);
    REQUIRE(tiny != NULL && block != NULL);
    api->block_free(NULL, tiny, 8);
    api->release_as(mi, MEMRT_HOLDER_REFERENCE, "loader");
    api->release(mi);
    api->block_free(NULL, block, 0);
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
    api->scope_release(scope);
    if (round % 50 == 0) {
        api->release_unused();
    }
}

static void use_or_check(size_t index, void *context)
{
    (void)context;
    for (size_t round = 1; round <= ROUNDS; round++) {
        if (index != 0) {
            use_structures(round);
        } else if (!memrt__runtime_is_valid()) {
            suite_fail(__FILE__, __LINE__, memrt__invariant_broken());
        }
    }
}

TEST(structures_are_valid_while_threads_use_them)
{
    int tracking = api->tracking(1);
    crew_run(THREADS, use_or_check, NULL);
    api->tracking(tracking);
}

static void use_or_fork(size_t index, void *context)
{
    (void)context;
    for (size_t round = 1; index != 0 && round <= ROUNDS; round++) {
        use_structures(round);
    }
    for (size_t i = 0; index == 0 && i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            child_start_watchdog();
            if (!memrt__runtime_is_valid()) {
                suite_fail(__FILE__, __LINE__, memrt__invariant_broken());
            }
            use_structures(1);
            _exit(memrt__runtime_is_valid() ? 0 : 1);
        }
        REQUIRE(child_wait(child) == 0);
    }
}

TEST(structures_are_valid_in_a_forked_child)
{
    int tracking = api->tracking(1);
    crew_run(THREADS, use_or_fork, NULL);
    api->tracking(tracking);
}

#endif

TEST(structures_are_valid_at_the_start)
{
    suite_expect_valid();
}
