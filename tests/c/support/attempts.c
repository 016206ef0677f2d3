#include "support/attempts.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <memrt/arrow.h>
#include <memrt/dlpack.h>

#include "conformance/pattern.h"
#include "support/books.h"
#include "support/child.h"
#include "support/cuda.h"
#include "support/silent_hook.h"
#include "support/tape.h"

static char foreign[64];

static outcome_t convert_pointer(const void *result)
{
    return result == NULL ? REFUSED : MADE;
}

static outcome_t convert_status(memrt_status_t status, bool out_is_untouched)
{
    ck_assert(status == MEMRT_OK || status == MEMRT_ENOMEM);
    ck_assert(status == MEMRT_OK || out_is_untouched);
    return status == MEMRT_OK ? MADE : REFUSED;
}

static void *external_malloc(size_t size, void *opaque)
{
    (void)opaque;
    return malloc(size);
}

static void external_free(void *ptr, void *opaque)
{
    (void)opaque;
    free(ptr);
}

static memrt_external_allocator_t external = {external_malloc, NULL, external_free, NULL};

static outcome_t try_allocate(ground_t *ground)
{
    return convert_pointer(ground->made = api->allocate(100));
}

static outcome_t try_allocate_external(ground_t *ground)
{
    return convert_pointer(ground->made = api->allocate_external(100, &external));
}

static outcome_t try_allocate_from(ground_t *ground)
{
    return convert_pointer(ground->made = api->allocate_from(100, ground->policy));
}

static outcome_t try_manage_memory(ground_t *ground)
{
    return convert_pointer(ground->made = api->manage_memory(foreign, NULL));
}

static memrt_new_options_t build_named_options(const ground_t *ground)
{
    return (memrt_new_options_t){
        .struct_size = sizeof(memrt_new_options_t), .policy = ground->policy, .name = "made"};
}

static outcome_t try_meminfo_new(ground_t *ground)
{
    memrt_new_options_t options = build_named_options(ground);
    return convert_status(api->meminfo_new(3000000, &options, &ground->made), ground->made == NULL);
}

static outcome_t try_meminfo_adopt(ground_t *ground)
{
    memrt_new_options_t options = build_named_options(ground);
    return convert_status(api->meminfo_adopt(foreign, sizeof(foreign), &options, &ground->made),
                          ground->made == NULL);
}

static outcome_t try_set_name(ground_t *ground)
{
    char before[MEMRT_NAME_MAX + 1], after[MEMRT_NAME_MAX + 1];
    api->get_name(ground->mi, before);
    memrt_status_t status = api->set_name(ground->mi, "named");
    api->get_name(ground->mi, after);
    return convert_status(status, strcmp(before, after) == 0);
}

static outcome_t try_resizable_new(ground_t *ground)
{
    memrt_new_options_t options = build_named_options(ground);
    return convert_status(api->resizable_new(100, &options, &ground->made), ground->made == NULL);
}

static outcome_t try_resizable_alloc(ground_t *ground)
{
    void *before = api->get_data(ground->resizable);
    void *data = api->resizable_alloc(ground->resizable, 200);
    if (data == NULL) {
        ck_assert_ptr_eq(api->get_data(ground->resizable), before);
    } else {
        ground->left = before;
    }
    return convert_pointer(data);
}

static outcome_t try_resizable_realloc(ground_t *ground)
{
    void *data = api->resizable_realloc(ground->resizable, 3000000);
    ck_assert(pattern_holds(api->get_data(ground->resizable), 100, 1));
    ck_assert_uint_eq(api->size(ground->resizable), data == NULL ? 100 : 3000000);
    return convert_pointer(data);
}

static outcome_t try_block_alloc(ground_t *ground)
{
    return convert_pointer(ground->made_block = api->block_alloc(ground->policy, 100));
}

static outcome_t try_block_alloc_large(ground_t *ground)
{
    return convert_pointer(ground->made_block = api->block_alloc(ground->policy, 3000000));
}

static outcome_t try_block_calloc(ground_t *ground)
{
    return convert_pointer(ground->made_block = api->block_calloc(ground->policy, 10, 100));
}

/// Resize an unshared block. Its first 100 bytes hold `pattern` before and after.
static outcome_t realloc_unshared_block(ground_t *ground, void **block, size_t size,
                                        unsigned pattern)
{
    void *moved = api->block_realloc(ground->policy, *block, size);
    *block = moved == NULL ? *block : moved;
    ck_assert(pattern_holds(*block, 100, pattern));
    return convert_pointer(moved);
}

static outcome_t try_block_realloc(ground_t *ground)
{
    return realloc_unshared_block(ground, &ground->block, 2000000, 2);
}

static outcome_t try_realloc_of_large(ground_t *ground)
{
    return realloc_unshared_block(ground, &ground->large, 9000000, 4);
}

static outcome_t try_realloc_in_place(ground_t *ground)
{
    return realloc_unshared_block(ground, &ground->block, 101, 2);
}

/// Return whether a block of 100 bytes can grow by a byte. malloc of sanitizers leaves no room.
static bool has_room(const void *data)
{
    return api->block_usable_size(data) >= 101;
}

static outcome_t try_block_try_expand(ground_t *ground)
{
    if (!has_room(ground->block)) {
        return try_realloc_in_place(ground);
    }
    memrt_status_t status = api->block_try_expand(ground->block, 101);
    ck_assert(pattern_holds(ground->block, 100, 2));
    return convert_status(status, has_room(ground->block));
}

static outcome_t try_resizable_try_expand(ground_t *ground)
{
    void *data = api->get_data(ground->resizable);
    if (!has_room(data)) {
        return try_realloc_in_place(ground);
    }
    memrt_status_t status = api->resizable_try_expand(ground->resizable, 101);
    ck_assert_ptr_eq(api->get_data(ground->resizable), data);
    ck_assert_uint_eq(api->size(ground->resizable), status == MEMRT_OK ? 101 : 100);
    return convert_status(status, pattern_holds(data, 100, 1));
}

static outcome_t try_resizable_new_reserved(ground_t *ground)
{
    memrt_new_options_t options = build_named_options(ground);
    memrt_status_t status =
        api->resizable_new_reserved(100, (size_t)1 << 20, &options, &ground->made);
    return convert_status(status, ground->made == NULL);
}

/// The size changes even if the system takes no pages back.
static outcome_t try_resizable_try_shrink(ground_t *ground)
{
    void *data = api->get_data(ground->growing);
    ck_assert_int_eq(api->resizable_try_shrink(ground->resizable, 10), MEMRT_ENOTSUP);
    ck_assert_int_eq(api->resizable_try_shrink(ground->growing, 100), MEMRT_OK);
    ck_assert_ptr_eq(api->get_data(ground->growing), data);
    ck_assert_uint_eq(api->size(ground->growing), 100);
    return convert_status(MEMRT_OK, pattern_holds(data, 100, 5));
}

/// Check data with reserved addresses after a growth to 300,000 bytes.
static outcome_t check_growth(ground_t *ground, void *data, bool grown)
{
    ck_assert_ptr_eq(api->get_data(ground->growing), data);
    ck_assert_uint_eq(api->size(ground->growing), grown ? 300000 : 20000);
    ck_assert(pattern_holds(data, 100, 5));
    ck_assert(pattern_is_zero((char *)data + 100, api->size(ground->growing) - 100));
    return grown ? MADE : REFUSED;
}

static outcome_t try_expand_of_reserved(ground_t *ground)
{
    void *data = api->get_data(ground->growing);
    memrt_status_t status = api->resizable_try_expand(ground->growing, 300000);
    ck_assert(status == MEMRT_OK || status == MEMRT_ENOMEM);
    return check_growth(ground, data, status == MEMRT_OK);
}

static outcome_t try_realloc_of_reserved(ground_t *ground)
{
    void *data = api->get_data(ground->growing);
    void *grown = api->resizable_realloc(ground->growing, 300000);
    ck_assert(grown == NULL || grown == data);
    return check_growth(ground, data, grown != NULL);
}

static outcome_t try_weak_new(ground_t *ground)
{
    memrt_weak_t weak = {0};
    memrt_status_t status = api->weak_new(ground->mi, &weak);
    return convert_status(status, weak.id == 0);
}

/// The large block stays frozen until its free.
static outcome_t try_freeze(ground_t *ground)
{
    size_t bytes = 0;
    memrt_meminfo_t *mi = (void *)((char *)ground->large - MEMRT_HEADER_SIZE);
    memrt_status_t status = api->freeze(mi, &bytes);
    return convert_status(status, bytes == 0);
}

static outcome_t try_realloc_of_shared(ground_t *ground)
{
    void *copy = api->block_realloc(ground->policy, ground->shared_block, 2000000);
    ck_assert(pattern_holds(api->get_data(ground->sharer), 100, 3));
    ck_assert_uint_eq(api->refcount(ground->sharer), copy == NULL ? 2 : 1);
    ground->shared_block = copy == NULL ? ground->shared_block : copy;
    return convert_pointer(copy);
}

static outcome_t try_block_meminfo(ground_t *ground)
{
    return convert_status(api->block_meminfo(ground->block, &ground->made), ground->made == NULL);
}

static outcome_t try_find(ground_t *ground)
{
    return convert_status(api->find(api->get_data(ground->sharer), &ground->made),
                          ground->made == NULL);
}

static outcome_t try_policy_new(ground_t *ground)
{
    return convert_status(api->policy_new(NULL, &ground->made_policy), ground->made_policy == NULL);
}

static outcome_t try_policy_with_limits(ground_t *ground)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .decay = "0", .hugepages = "off", .guard_sample = "1"};
    return convert_status(api->policy_new(&options, &ground->made_policy),
                          ground->made_policy == NULL);
}

static outcome_t try_policy_at(ground_t *ground)
{
    uint32_t index = api->policy_index(ground->policy);
    return convert_pointer(ground->made_policy = api->policy_at(index));
}

static outcome_t try_allocator_guard(ground_t *ground)
{
    return convert_status(api->allocator_guard(api->allocator_system(), &ground->made_guard),
                          ground->made_guard.alloc == NULL);
}

static outcome_t try_allocator_adaptor(ground_t *ground)
{
    memrt_adaptor_options_t options = {
        .struct_size = sizeof(options), .kind = MEMRT_ADAPTOR_LIMITING, .amount = 1000};
    return convert_status(
        api->allocator_adaptor(api->allocator_system(), &options, &ground->made_guard),
        ground->made_guard.alloc == NULL);
}

static outcome_t try_allocator_placed(ground_t *ground)
{
    memrt_placement_options_t options = {.struct_size = sizeof(options), .pages = "4K"};
    return convert_status(api->allocator_placed(&options, &ground->made_guard, NULL, 0),
                          ground->made_guard.alloc == NULL);
}

static outcome_t try_allocator_file(ground_t *ground)
{
    return convert_status(api->allocator_file("/tmp", &ground->made_guard),
                          ground->made_guard.alloc == NULL);
}

static outcome_t try_pages_cold(ground_t *ground)
{
    size_t bytes;
    REQUIRE(api->pages_cold(ground, sizeof(*ground), 0, &bytes) == MEMRT_OK);
    return MADE;
}

static outcome_t try_placement_read(ground_t *ground)
{
    memrt_placement_t placement = {.struct_size = sizeof(placement)};
    REQUIRE(api->placement_read(ground, sizeof(*ground), &placement) == MEMRT_OK);
    return MADE;
}

static outcome_t try_policy_placement(ground_t *ground)
{
    memrt_placement_asked_t asked = {.struct_size = sizeof(asked)};
    REQUIRE(api->policy_placement(ground->policy, &asked) == MEMRT_ENOENT);
    return MADE;
}

/// The default policy is in use after the request for a block.
static outcome_t try_policy_default_set_allocator(ground_t *ground)
{
    (void)ground;
    void *block = api->block_alloc(NULL, 10);
    if (block != NULL) {
        api->block_free(NULL, block, 10);
    }
    ck_assert_int_eq(api->policy_default_set_allocator(api->allocator_system()), MEMRT_EBUSY);
    return block != NULL ? MADE : REFUSED;
}

static outcome_t try_stats_read(ground_t *ground)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    return convert_status(api->stats_read(ground->policy, &stats), stats.alloc == 0);
}

static outcome_t try_limit_set(ground_t *ground)
{
    memrt_status_t status = api->limit_set(ground->policy, NULL, 1 << 30);
    if (status == MEMRT_OK) {
        ck_assert_int_eq(api->limit_set(ground->policy, NULL, MEMRT_NO_LIMIT), MEMRT_OK);
    }
    return convert_status(status, true);
}

/// Exclude blocks from guard pages: only guard pages themselves would need memory, at the first
/// request of the process.
static outcome_t try_policy_option_set(ground_t *ground)
{
    ck_assert_int_eq(api->policy_option_set(ground->policy, "guard_sample", "0", NULL, 0),
                     MEMRT_OK);
    return convert_status(api->policy_option_set(ground->policy, "guard_sample", NULL, NULL, 0),
                          true);
}

static outcome_t try_limit_set_soft(ground_t *ground)
{
    memrt_status_t status = api->limit_set_soft(ground->policy, NULL, 1 << 30);
    if (status == MEMRT_OK) {
        ck_assert_int_eq(api->limit_set_soft(ground->policy, NULL, MEMRT_NO_LIMIT), MEMRT_OK);
    }
    return convert_status(status, true);
}

static void ignore_pressure(void *context, uint64_t level)
{
    (void)context;
    (void)level;
}

static outcome_t try_pressure_add(ground_t *ground)
{
    uint64_t id = 0;
    (void)ground;
    memrt_status_t status = api->pressure_add(ignore_pressure, NULL, MEMRT_PRESSURE_LOW, &id);
    if (status == MEMRT_OK) {
        ck_assert_int_eq(api->pressure_remove(id), MEMRT_OK);
    }
    return convert_status(status, id == 0);
}

static outcome_t try_limit_read(ground_t *ground)
{
    memrt_limit_t limit = {.struct_size = sizeof(limit)};
    return convert_status(api->limit_read(ground->policy, NULL, &limit), limit.limit == 0);
}

static outcome_t try_hook_add(ground_t *ground)
{
    memrt_hook_t hook = silent_hook(ground->policy);
    uint64_t id = 0;
    memrt_status_t status = api->hook_add(&hook, &id);
    if (status == MEMRT_OK) {
        ck_assert_int_eq(api->hook_remove(id), MEMRT_OK);
    }
    return convert_status(status, id == 0);
}

static outcome_t try_live(ground_t *ground)
{
    size_t count = 12345;
    return convert_status(api->live(&ground->made_list, &count),
                          ground->made_list == NULL && count == 12345);
}

static outcome_t try_scope_open(ground_t *ground)
{
    return convert_status(api->scope_open(ground->scope, "made", &ground->made_scope),
                          ground->made_scope == NULL);
}

static outcome_t try_scope_acquire(ground_t *ground)
{
    api->scope_acquire(ground->made_scope = ground->scope);
    return MADE;
}

static outcome_t try_scope_release(ground_t *ground)
{
    api->scope_release(ground->scope);
    ground->scope = NULL;
    return MADE;
}

static outcome_t try_scope_enter(ground_t *ground)
{
    memrt_scope_t *before = ground->scope;
    memrt_status_t status = api->scope_enter(ground->scope, &before);
    outcome_t outcome = convert_status(status, before == ground->scope);
    if (outcome == MADE) {
        ck_assert_ptr_null(before);
        ck_assert_int_eq(api->scope_enter(NULL, &before), MEMRT_OK);
        ck_assert_ptr_eq(before, ground->scope);
    }
    return outcome;
}

static outcome_t try_scope_policy(ground_t *ground)
{
    return convert_status(api->scope_policy(ground->scope, ground->idle, &ground->made_policy),
                          ground->made_policy == NULL);
}

static outcome_t try_scope_next(ground_t *ground)
{
    return convert_pointer(ground->made_scope = api->scope_next(NULL));
}

static outcome_t try_scope_stats(ground_t *ground)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    return convert_status(api->scope_stats(ground->scope, &stats), stats.alloc == 0);
}

static outcome_t try_scope_sizes(ground_t *ground)
{
    uint64_t counts[MEMRT_SIZE_BINS] = {1};
    api->scope_sizes(ground->scope, counts);
    ck_assert_uint_eq(counts[0], 0);
    return MADE;
}

static outcome_t try_scope_reset_peak(ground_t *ground)
{
    api->scope_reset_peak(ground->scope);
    return MADE;
}

/// Define an attempt for a call that cannot fail; `condition` holds after the call.
#define ALWAYS(slot, condition)                                                                    \
    static outcome_t try_##slot(ground_t *ground)                                                  \
    {                                                                                              \
        (void)ground;                                                                              \
        ck_assert(condition);                                                                      \
        return MADE;                                                                               \
    }

ALWAYS(struct_size, api->struct_size == sizeof(memrt_api_t))
ALWAYS(abi_major, api->abi_major == MEMRT_ABI_MAJOR)
ALWAYS(features, api->features < MEMRT_FEATURE_PROBES << 1)
ALWAYS(version, strcmp(api->version, memrt_version()) == 0)
ALWAYS(get_data, api->get_data(ground->mi) != NULL)
ALWAYS(locate, api->locate(NULL, &(memrt_location_t){0}) == MEMRT_EINVAL)
ALWAYS(failure_read, api->failure_read(&(memrt_failure_t){0}) == MEMRT_EINVAL)
ALWAYS(policy_reset, api->policy_reset(ground->policy, &(size_t){0}, NULL, 0) != MEMRT_OK)
ALWAYS(thaw, api->thaw(ground->mi) == MEMRT_ENOENT)
ALWAYS(try_unique, api->try_unique(ground->sharer) == 0)
ALWAYS(weak_acquire, api->weak_acquire(&(memrt_weak_t){0}) == NULL)
ALWAYS(block_usable_size, api->block_usable_size(ground->block) >= 100)
ALWAYS(block_good_size, api->block_good_size(ground->policy, 100) >= 100)
ALWAYS(refcount, api->refcount(ground->sharer) == 2)
ALWAYS(size, api->size(ground->resizable) == 100)
ALWAYS(dtor_info, api->dtor_info(ground->mi) == NULL)
ALWAYS(readonly, !api->readonly(ground->mi))
ALWAYS(external_allocator, api->external_allocator(ground->mi) == NULL)
ALWAYS(dump, api->dump(ground->sharer, NULL, 0) > 0)
ALWAYS(policy_of, api->policy_of(ground->mi) == ground->policy)
ALWAYS(policy_default, api->policy_default() != NULL)
ALWAYS(policy_name, strcmp(api->policy_name(ground->policy), "policy") == 0)
ALWAYS(policy_alignment, api->policy_alignment(ground->policy) >= 64)
ALWAYS(policy_index, api->policy_index(ground->policy) < api->policy_limit())
ALWAYS(policy_limit, api->policy_limit() > 0)
ALWAYS(allocator_default, api->allocator_default() != NULL)
ALWAYS(allocator_system, api->allocator_system() != NULL)
ALWAYS(allocator_mapped, api->allocator_mapped() != NULL)
ALWAYS(tracking, api->tracking(api->tracking_enabled()) == api->tracking_enabled())
ALWAYS(tracking_enabled, api->tracking_enabled() >= 0)
ALWAYS(release_unused, api->release_unused() < SIZE_MAX)
ALWAYS(failure_points, api->failure_points() == 0)
ALWAYS(option, api->option(0, &(memrt_option_t){0}) != 0)
ALWAYS(option_warning, api->option_warning(SIZE_MAX) == NULL)
ALWAYS(status_text, strlen(api->status_text(MEMRT_ENOMEM)) > 10)
ALWAYS(option_set, api->option_set("MEMRT_DECAY", "never", NULL, 0) == MEMRT_OK)
ALWAYS(option_check, api->option_check("decay", "soon", NULL, 0) == MEMRT_EINVAL)
ALWAYS(policy_option, api->policy_option(ground->policy, 0, &(memrt_option_t){0}) == 0)
ALWAYS(scope_current, api->scope_current() == NULL)
ALWAYS(scope_of, api->scope_of(ground->mi) == NULL)
ALWAYS(scope_parent, api->scope_parent(ground->scope) == NULL)
ALWAYS(scope_name, strcmp(api->scope_name(ground->scope), "ground") == 0)
ALWAYS(scope_id, api->scope_id(ground->scope) != 0)
ALWAYS(tracking_set, api->tracking_set(&(memrt_tracking_t){0}) == MEMRT_EINVAL)
ALWAYS(trace_stop, api->trace_stop(NULL) == MEMRT_ENOENT)
ALWAYS(trace_stats, api->trace_stats(&(memrt_trace_stats_t){0}) == MEMRT_EINVAL)
ALWAYS(trace_mark, api->trace_mark("nowhere") == MEMRT_OK)
ALWAYS(threads, api->threads(NULL, &(size_t){0}) == MEMRT_OK)
ALWAYS(mappings, api->mappings(NULL, &(size_t){0}) == MEMRT_OK)
ALWAYS(hook_remove, api->hook_remove(0) == MEMRT_EINVAL)
ALWAYS(reclaim_add, api->reclaim_add(NULL, NULL, 0) == MEMRT_EINVAL)
ALWAYS(reclaim_remove, api->reclaim_remove(NULL, NULL) == MEMRT_ENOENT)
ALWAYS(pressure_read, api->pressure_read(&(memrt_pressure_t){0}) == MEMRT_EINVAL)
ALWAYS(pressure_remove, api->pressure_remove(UINT64_MAX) == MEMRT_ENOENT)
ALWAYS(snapshot, api->snapshot(&(memrt_snapshot_t){0}) == MEMRT_EINVAL)
ALWAYS(latency, api->latency(MEMRT_LATENCY_MAP, &(memrt_latency_t){0}) == MEMRT_EINVAL)
ALWAYS(reference_counts,
       api->reference_counts(NULL, &(memrt_reference_counts_t){0}) == MEMRT_EINVAL)
ALWAYS(memory_stats, api->memory_stats(&(memrt_memory_stats_t){0}) == MEMRT_EINVAL)
ALWAYS(stats_sizes, api->stats_sizes(NULL, &(memrt_sizes_t){0}) == MEMRT_EINVAL)
ALWAYS(scope_stats_sizes,
       api->scope_stats_sizes(ground->scope, &(memrt_sizes_t){0}) == MEMRT_EINVAL)
ALWAYS(tracking_get, api->tracking_get(&(memrt_tracking_t){0}) == MEMRT_EINVAL)
ALWAYS(frame_text, api->frame_text(1, &(memrt_frame_text_t){0}) == MEMRT_EINVAL)
ALWAYS(site_read, api->site_read(1, &(memrt_site_t){0}) == MEMRT_EINVAL)
ALWAYS(site_frames, api->site_frames(0, NULL, 0) == 0)
ALWAYS(suppression_add, api->suppression_add("", "nothing") == MEMRT_EINVAL)
ALWAYS(explain_shortage, api->explain_shortage(ground->policy, 1, NULL, 0) > 10)
ALWAYS(buffer_read, api->buffer_read(ground->mi, 0, NULL) == MEMRT_EINVAL)
ALWAYS(unresolved_abort, api->unresolved_abort() == -1 && api->symbol_error(NULL) != MEMRT_OK)
ALWAYS(symbols_unresolved, api->symbols_unresolved(NULL, 0) + 1 != 0)
ALWAYS(symbol_error, api->symbol_error(NULL) == MEMRT_OK)
ALWAYS(suppression_at, api->suppression_at(0) == NULL)
ALWAYS(fail_allocations, api->fail_allocations(&(memrt_failure_plan_t){0}) == MEMRT_EINVAL)

static void stub_symbol(void)
{
    /* stands for compiled code */
}

/// Return a new symbol name. A look-up of a known symbol requests no memory.
static const char *create_symbol(void)
{
    static char name[40];
    static int count;
    snprintf(name, sizeof(name), "symbol %d of attempts", count++);
    return name;
}

static outcome_t try_symbol_slot(ground_t *ground)
{
    memrt_function_t *const *slot = NULL;
    (void)ground;
    memrt_status_t status = api->symbol_slot(create_symbol(), &slot);
    return convert_status(status, slot == NULL);
}

static outcome_t try_symbol_define(ground_t *ground)
{
    const char *name = create_symbol();
    (void)ground;
    memrt_status_t status = api->symbol_define(name, stub_symbol);
    ck_assert_int_eq(api->symbol_define(name, NULL), MEMRT_OK);
    return convert_status(status, true);
}

static outcome_t try_set_symbol_error(ground_t *ground)
{
    (void)ground;
    api->set_symbol_error(NULL);
    return MADE;
}

static outcome_t try_acquire(ground_t *ground)
{
    api->acquire(ground->mi);
    ck_assert_uint_eq(api->refcount(ground->mi), 2);
    api->release(ground->mi);
    return MADE;
}

static outcome_t try_inline_count(ground_t *ground)
{
    memrt_meminfo_acquire(ground->mi);
    memrt_meminfo_release(api, ground->mi);
    memrt_meminfo_release(api, ground->mi);
    ground->mi = NULL;
    return MADE;
}

static outcome_t try_exports(ground_t *ground)
{
    (void)ground;
    ck_assert(memrt_get_api(MEMRT_ABI_MAJOR, NULL) == api && memrt_version() != NULL);
    ck_assert_ptr_null(memrt_get_api(MEMRT_ABI_MAJOR + 1, NULL));
    ck_assert_ptr_nonnull(memrt_api_of_nrt(api));
    return MADE;
}

static outcome_t try_release(ground_t *ground)
{
    api->release(ground->mi);
    ground->mi = NULL;
    return MADE;
}

static outcome_t try_try_acquire(ground_t *ground)
{
    ck_assert(api->try_acquire(ground->mi));
    api->release(ground->mi);
    return MADE;
}

static outcome_t try_call_dtor(ground_t *ground)
{
    ck_assert_uint_eq(__atomic_sub_fetch(&ground->mi->refct, 1, __ATOMIC_ACQ_REL), 0);
    api->call_dtor(ground->mi);
    ground->mi = NULL;
    return MADE;
}

static outcome_t try_get_name(ground_t *ground)
{
    char name[MEMRT_NAME_MAX + 1];
    api->get_name(ground->sharer, name);
    ck_assert_str_eq(name, "shared");
    return MADE;
}

static outcome_t try_resizable_free(ground_t *ground)
{
    api->resizable_free(ground->resizable, api->get_data(ground->resizable));
    ck_assert_ptr_null(api->get_data(ground->resizable));
    return MADE;
}

static outcome_t try_block_free(ground_t *ground)
{
    api->block_free(NULL, ground->block, 0);
    ground->block = NULL;
    return MADE;
}

static outcome_t try_block_free_large(ground_t *ground)
{
    api->block_free(NULL, ground->large, 0);
    ground->large = NULL;
    return MADE;
}

static void free_many_blocks(ground_t *ground)
{
    for (size_t i = 0; i < GROUND_MANY; i++) {
        api->block_free(NULL, ground->many[i], 0);
        ground->many[i] = NULL;
    }
}

static outcome_t try_release_unused_kept(ground_t *ground)
{
    free_many_blocks(ground);
    api->release_unused();
    return MADE;
}

static outcome_t try_policy_acquire(ground_t *ground)
{
    api->policy_acquire(ground->idle);
    api->policy_release(ground->idle);
    return MADE;
}

static outcome_t try_policy_release(ground_t *ground)
{
    api->policy_release(ground->idle);
    ground->idle = NULL;
    return MADE;
}

static outcome_t try_live_free(ground_t *ground)
{
    api->live_free(ground->list);
    ground->list = NULL;
    return MADE;
}

static outcome_t try_stats_reset_peak(ground_t *ground)
{
    api->stats_reset_peak(ground->policy);
    ck_assert_uint_eq(stats_of(ground->policy).peak, stats_of(ground->policy).live);
    return MADE;
}

static outcome_t try_buffers(ground_t *ground)
{
    void *rows = NULL;
    size_t count;
    (void)ground;
    memrt_status_t status = api->buffers(sizeof(memrt_buffer_t), &rows, &count);
    outcome_t outcome = convert_status(status, rows == NULL);
    api->live_free(rows);
    return outcome;
}

static size_t write_no_frames(memrt_frame_t *frames, size_t max)
{
    (void)frames;
    return 0 * max;
}

static void write_no_calls(int file)
{
    (void)file;
}

static outcome_t try_set_write_frames(ground_t *ground)
{
    (void)ground;
    api->set_write_frames(write_no_calls);
    api->set_write_frames(NULL);
    return MADE;
}

static outcome_t try_set_frames(ground_t *ground)
{
    (void)ground;
    api->set_frames(write_no_frames);
    api->set_frames(NULL);
    return MADE;
}

/// Fault injection does not count the memory of a frame: see interned.h.
static outcome_t try_frame_new(ground_t *ground)
{
    static uint64_t line;
    (void)ground;
    ck_assert_uint_ne(api->frame_new("attempt", "attempts.c", ++line), 0);
    return MADE;
}

static unsigned observed_frees;

static void ignore_free(void *data)
{
    (void)data;
    observed_frees++;
}

static void ignore_resize(void *old_data, void *new_data, size_t new_size)
{
    (void)old_data;
    (void)new_data;
    (void)new_size;
}

static outcome_t try_observe(ground_t *ground)
{
    static const memrt_observer_t observer = {sizeof(observer), ignore_resize, ignore_free, NULL};
    observed_frees = 0;
    api->set_observer(&observer);
    api->observe(ground->mi);
    try_release(ground);
    api->set_observer(NULL);
    ck_assert_uint_eq(observed_frees, 1);
    return MADE;
}

static void shut_down_runtime(void *context)
{
    ground_t *ground = context;
    api->shutdown();
    api->release(ground->mi);
}

static outcome_t try_shutdown(ground_t *ground)
{
    child_expect_success(shut_down_runtime, ground);
    return MADE;
}

static outcome_t try_acquire_as(ground_t *ground)
{
    memrt_status_t status = api->acquire_as(ground->mi, MEMRT_HOLDER_REFERENCE, "attempt");
    if (status == MEMRT_OK) {
        ground->made = ground->mi;
    }
    memrt_holder_t row;
    size_t held = api->holders(ground->mi, &row, sizeof(row), 1);
    return convert_status(status, held == 0);
}

static outcome_t try_release_as(ground_t *ground)
{
    if ((api->features & MEMRT_FEATURE_CHECKING) != 0) {
        api->release(ground->mi); /* checked release_as aborts on an unknown name */
    } else {
        api->release_as(ground->mi, MEMRT_HOLDER_REFERENCE, "nobody");
    }
    ground->mi = NULL;
    return MADE;
}

ALWAYS(holders, api->holders(ground->mi, NULL, 0, 0) == 0)

/* --- CUDA, with the fake driver. --- */

static outcome_t try_cuda_new(ground_t *ground)
{
    return convert_status(api->cuda_new(100, NULL, &ground->made), ground->made == NULL);
}

static outcome_t try_cuda_adopt(ground_t *ground)
{
    uintptr_t address = (uintptr_t)api->get_data(ground->device);
    return convert_status(api->cuda_adopt(address, 100, NULL, &ground->made), ground->made == NULL);
}

static outcome_t try_cuda_info(ground_t *ground)
{
    memrt_cuda_info_t info = {.struct_size = sizeof(info)};
    return convert_status(api->cuda_info(ground->device, &info), true);
}

static outcome_t try_cuda_used(ground_t *ground)
{
    return convert_status(api->cuda_used(ground->device, MEMRT_CUDA_STREAM_PER_THREAD), true);
}

static outcome_t try_cuda_wait(ground_t *ground)
{
    return convert_status(api->cuda_wait(ground->device, MEMRT_CUDA_STREAM_PER_THREAD), true);
}

static outcome_t try_cuda_read(ground_t *ground)
{
    char out[100];
    return convert_status(api->cuda_read(ground->device, 0, out, sizeof(out), 0), true);
}

static outcome_t try_cuda_write(ground_t *ground)
{
    return convert_status(api->cuda_write(ground->device, 0, foreign, sizeof(foreign), 0), true);
}

static outcome_t try_cuda_stream_new(ground_t *ground)
{
    uintptr_t stream = 0;
    (void)ground;
    ck_assert_int_eq(api->cuda_stream_new(0, &stream), MEMRT_OK);
    return convert_status(api->cuda_stream_free(0, stream), true);
}

static outcome_t try_cuda_stream_synchronize(ground_t *ground)
{
    (void)ground;
    return convert_status(api->cuda_stream_synchronize(0, MEMRT_CUDA_STREAM_LEGACY), true);
}

static outcome_t try_cuda_stats(ground_t *ground)
{
    memrt_cuda_stats_t stats = {.struct_size = sizeof(stats)};
    (void)ground;
    return convert_status(api->cuda_stats(MEMRT_MEMORY_DEVICE, &stats), true);
}

static outcome_t try_cuda_set_limit(ground_t *ground)
{
    (void)ground;
    return convert_status(api->cuda_set_limit(MEMRT_MEMORY_DEVICE, UINT64_MAX), true);
}

static outcome_t try_allocator_pinned(ground_t *ground)
{
    const memrt_allocator_t *pinned = api->allocator_pinned();
    void *block = pinned->alloc(pinned->ctx, 100, 64);
    (void)ground;
    if (block != NULL) {
        pinned->free(pinned->ctx, block, 100, 64);
    }
    return convert_pointer(block);
}

ALWAYS(cuda_why_not, api->cuda_why_not(NULL, 0) == 0)
ALWAYS(cuda_policy, api->cuda_policy(MEMRT_MEMORY_DEVICE) != NULL)
ALWAYS(cuda_error, api->cuda_error(NULL, 0) > 0)
#define try_cuda_stream_free try_cuda_stream_new

/* --- DLPack. --- */

static const int64_t extent = sizeof(foreign);

static const memrt_dlpack_view_t bytes = {
    .struct_size = sizeof(bytes), .dtype = {kDLUInt, 8, 1}, .ndim = 1, .shape = &extent};

static outcome_t try_dlpack_export(ground_t *ground)
{
    DLManagedTensorVersioned *tensor = NULL;
    memrt_status_t status = api->dlpack_export(ground->mi, &bytes, &tensor, NULL);
    if (status == MEMRT_OK) {
        tensor->deleter(tensor);
        return MADE;
    }
    return convert_status(status, tensor == NULL);
}

static outcome_t try_dlpack_export_unversioned(ground_t *ground)
{
    DLManagedTensor *tensor = NULL;
    memrt_status_t status = api->dlpack_export_unversioned(ground->mi, &bytes, &tensor, NULL);
    if (status == MEMRT_OK) {
        tensor->deleter(tensor);
        return MADE;
    }
    return convert_status(status, tensor == NULL);
}

static outcome_t try_dlpack_new(ground_t *ground)
{
    DLManagedTensorVersioned *tensor = NULL;
    memrt_new_options_t options = build_named_options(ground);
    memrt_status_t status = api->dlpack_new(&bytes, &options, &tensor, NULL);
    if (status == MEMRT_OK) {
        tensor->deleter(tensor);
        return MADE;
    }
    return convert_status(status, tensor == NULL);
}

static DLTensor create_foreign_tensor(void)
{
    static int64_t shape = sizeof(foreign), stride = 1;
    return (DLTensor){foreign, {kDLCPU, 0}, 1, {kDLUInt, 8, 1}, &shape, &stride, 0};
}

static outcome_t try_dlpack_adopt(ground_t *ground)
{
    static DLManagedTensorVersioned tensor;
    tensor = (DLManagedTensorVersioned){.version = {1, 3}, .dl_tensor = create_foreign_tensor()};
    memrt_new_options_t options = build_named_options(ground);
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_status_t status = api->dlpack_adopt(&tensor, &options, &view, &ground->made, NULL);
    return convert_status(status, ground->made == NULL && view.shape == NULL);
}

static outcome_t try_dlpack_adopt_unversioned(ground_t *ground)
{
    static DLManagedTensor tensor;
    tensor = (DLManagedTensor){.dl_tensor = create_foreign_tensor()};
    memrt_new_options_t options = build_named_options(ground);
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_status_t status =
        api->dlpack_adopt_unversioned(&tensor, &options, &view, &ground->made, NULL);
    return convert_status(status, ground->made == NULL && view.shape == NULL);
}

/* --- Arrow. --- */

/// Return a view of bytes; the validity bitmap lies in MemInfo `bitmap`.
static memrt_arrow_view_t describe_column(memrt_meminfo_t *bitmap)
{
    return (memrt_arrow_view_t){.struct_size = sizeof(memrt_arrow_view_t),
                                .format = "C",
                                .name = "column",
                                .length = sizeof(foreign),
                                .validity = api->get_data(bitmap),
                                .validity_owner = bitmap};
}

static outcome_t try_arrow_export(ground_t *ground)
{
    struct ArrowSchema schema = {.release = NULL};
    struct ArrowArray array = {.release = NULL};
    memrt_arrow_view_t view = describe_column(ground->sharer);
    memrt_status_t status = api->arrow_export(ground->mi, &view, &schema, &array, NULL);
    if (status == MEMRT_OK) {
        schema.release(&schema);
        array.release(&array);
        return MADE;
    }
    return convert_status(status, schema.release == NULL && array.release == NULL);
}

static outcome_t try_arrow_export_schema(ground_t *ground)
{
    struct ArrowSchema schema = {.release = NULL};
    memrt_arrow_view_t view = describe_column(ground->sharer);
    memrt_status_t status = api->arrow_export(ground->mi, &view, &schema, NULL, NULL);
    if (status == MEMRT_OK) {
        schema.release(&schema);
        return MADE;
    }
    return convert_status(status, schema.release == NULL);
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

static outcome_t try_arrow_adopt(ground_t *ground)
{
    const void *buffers[] = {NULL, foreign};
    struct ArrowSchema schema = {.format = "C", .release = release_schema};
    struct ArrowArray array = {
        .length = sizeof(foreign), .n_buffers = 2, .buffers = buffers, .release = release_array};
    memrt_new_options_t options = build_named_options(ground);
    memrt_arrow_view_t view = {.struct_size = sizeof(view)};
    memrt_status_t status = api->arrow_adopt(&schema, &array, &options, &view, &ground->made, NULL);
    return convert_status(status, ground->made == NULL && array.release == release_array);
}

/// Check here that a refused trace_start leaves no file. The caller checks that all else is
/// unchanged.
static outcome_t try_trace_start(ground_t *ground)
{
    (void)ground;
    memrt_trace_options_t options = {
        .struct_size = sizeof(options), .path = tape_path(), .last = 1000};
    memrt_status_t status = api->trace_start(&options, NULL);
    if (status == MEMRT_OK) {
        ck_assert_int_eq(api->trace_stop(NULL), MEMRT_OK);
        ck_assert_int_eq(unlink(tape_path()), 0);
    }
    return convert_status(status, access(tape_path(), F_OK) != 0);
}

#define PLAIN(slot) {#slot, offsetof(memrt_api_t, slot), NOTHING, try_##slot}
#define MODEST(slot) {#slot, offsetof(memrt_api_t, slot), NO_MEMORY, try_##slot}
#define CREATOR(slot) {#slot, offsetof(memrt_api_t, slot), MEMORY, try_##slot}
#define ANOTHER(name, need, attempt) {name, SIZE_MAX, need, attempt}

/* clang-format off */
const slot_t slots[] = {
    CREATOR(allocate), CREATOR(allocate_external), CREATOR(manage_memory), PLAIN(acquire),
    PLAIN(release), PLAIN(get_data), PLAIN(struct_size), PLAIN(abi_major), PLAIN(features),
    PLAIN(version), CREATOR(meminfo_new), CREATOR(meminfo_adopt), PLAIN(try_acquire),
    PLAIN(call_dtor), PLAIN(refcount), PLAIN(size), PLAIN(dtor_info), PLAIN(readonly),
    PLAIN(external_allocator), CREATOR(set_name), PLAIN(get_name), PLAIN(dump), PLAIN(policy_of),
    CREATOR(resizable_new), CREATOR(resizable_alloc), CREATOR(resizable_realloc),
    PLAIN(resizable_free), CREATOR(block_alloc), CREATOR(block_calloc), CREATOR(block_realloc),
    PLAIN(block_free), MODEST(block_meminfo), MODEST(find), CREATOR(policy_new),
    PLAIN(policy_acquire), PLAIN(policy_release), PLAIN(policy_default), PLAIN(policy_name),
    PLAIN(policy_alignment), PLAIN(policy_index), MODEST(policy_at), PLAIN(policy_limit),
    PLAIN(allocator_default), PLAIN(allocator_system), PLAIN(allocator_mapped),
    CREATOR(allocator_guard), MODEST(stats_read), PLAIN(stats_reset_peak), PLAIN(tracking),
    PLAIN(tracking_enabled), CREATOR(live), PLAIN(live_free),
    {"set_observer", offsetof(memrt_api_t, set_observer), NOTHING, try_observe}, PLAIN(observe),
    PLAIN(release_unused), PLAIN(fail_allocations), PLAIN(failure_points), PLAIN(option),
    PLAIN(option_warning), PLAIN(shutdown), PLAIN(status_text), PLAIN(option_set),
    PLAIN(option_check), PLAIN(policy_option), CREATOR(scope_open), PLAIN(scope_acquire),
    PLAIN(scope_release), MODEST(scope_enter), PLAIN(scope_current), CREATOR(scope_policy),
    PLAIN(scope_of), MODEST(scope_next), PLAIN(scope_parent), PLAIN(scope_name), PLAIN(scope_id),
    MODEST(scope_stats), PLAIN(scope_sizes), PLAIN(scope_reset_peak),
    CREATOR(acquire_as), PLAIN(release_as), PLAIN(holders),
    PLAIN(tracking_set),
    PLAIN(tracking_get), CREATOR(buffers), PLAIN(set_frames), PLAIN(frame_new),
    PLAIN(frame_text), PLAIN(site_read), PLAIN(site_frames), PLAIN(suppression_add), PLAIN(suppression_at),
    PLAIN(explain_shortage), PLAIN(buffer_read), PLAIN(unresolved_abort), CREATOR(symbol_slot),
    CREATOR(symbol_define), PLAIN(symbols_unresolved), PLAIN(symbol_error),
    PLAIN(set_symbol_error),
    PLAIN(cuda_why_not), PLAIN(cuda_error), CREATOR(cuda_new), CREATOR(cuda_adopt),
    MODEST(cuda_info), MODEST(cuda_used), MODEST(cuda_wait), MODEST(cuda_read), MODEST(cuda_write),
    MODEST(cuda_stream_new), MODEST(cuda_stream_free), MODEST(cuda_stream_synchronize),
    MODEST(cuda_stats), MODEST(cuda_set_limit), PLAIN(cuda_policy), CREATOR(allocator_pinned),
    CREATOR(dlpack_export), CREATOR(dlpack_export_unversioned), CREATOR(dlpack_adopt),
    CREATOR(dlpack_adopt_unversioned), CREATOR(dlpack_new),
    CREATOR(arrow_export), CREATOR(arrow_adopt),
    CREATOR(trace_start), PLAIN(trace_stop), PLAIN(trace_stats), PLAIN(trace_mark),
    PLAIN(threads), PLAIN(stats_sizes), PLAIN(scope_stats_sizes), CREATOR(allocate_from),
    MODEST(limit_set), MODEST(limit_set_soft), MODEST(limit_read), PLAIN(mappings),
    MODEST(hook_add), PLAIN(hook_remove),
    PLAIN(reclaim_add), PLAIN(reclaim_remove),
    PLAIN(pressure_read), MODEST(pressure_add), PLAIN(pressure_remove),
    PLAIN(memory_stats), PLAIN(reference_counts), PLAIN(latency), PLAIN(snapshot),
    CREATOR(allocator_adaptor), CREATOR(policy_default_set_allocator),
    CREATOR(block_try_expand), PLAIN(block_usable_size), PLAIN(block_good_size),
    CREATOR(resizable_try_expand), CREATOR(weak_new), PLAIN(weak_acquire), PLAIN(try_unique), CREATOR(freeze), PLAIN(thaw), PLAIN(failure_read), PLAIN(policy_reset), PLAIN(locate),
    CREATOR(resizable_new_reserved), MODEST(resizable_try_shrink),
    PLAIN(set_write_frames), MODEST(policy_option_set),
    CREATOR(allocator_placed), CREATOR(allocator_file),
    PLAIN(pages_cold), PLAIN(placement_read), MODEST(policy_placement),
    ANOTHER("memrt_get_api", NOTHING, try_exports),
    ANOTHER("memrt_version", NOTHING, try_exports),
    ANOTHER("memrt_api_of_nrt", NOTHING, try_exports),
    ANOTHER("memrt_meminfo_acquire", NOTHING, try_inline_count),
    ANOTHER("memrt_meminfo_release", NOTHING, try_inline_count),
    ANOTHER("arrow_export of a schema", MEMORY, try_arrow_export_schema),
    ANOTHER("block_realloc of a shared block", MEMORY, try_realloc_of_shared),
    ANOTHER("resizable_try_expand with a reserve", MEMORY, try_expand_of_reserved),
    ANOTHER("resizable_realloc with a reserve", MEMORY, try_realloc_of_reserved),
    ANOTHER("block_realloc by a byte", MEMORY, try_realloc_in_place),
    ANOTHER("block_alloc, large", MEMORY, try_block_alloc_large),
    ANOTHER("policy_new with limits", MEMORY, try_policy_with_limits),
    ANOTHER("block_realloc of a large block", MEMORY, try_realloc_of_large),
    ANOTHER("block_free of a large block", NOTHING, try_block_free_large),
    ANOTHER("release_unused of freed blocks", NOTHING, try_release_unused_kept),
};
/* clang-format on */
_Static_assert(sizeof(slots) / sizeof(slots[0]) == SLOTS, "SLOTS is the number of slots");

static void *allocate_patterned_block(memrt_policy_t *policy, size_t size, unsigned seed)
{
    void *data = api->block_alloc(policy, size);
    ck_assert_ptr_nonnull(data);
    pattern_write(data, 100, seed);
    return data;
}

ground_t ground_new(void)
{
    ground_t ground = {0};
    size_t count;
    ck_assert_int_eq(api->policy_new(NULL, &ground.policy), MEMRT_OK);
    ck_assert_int_eq(api->policy_new(NULL, &ground.idle), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(NULL, "ground", &ground.scope), MEMRT_OK);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = ground.policy};
    ck_assert_int_eq(api->resizable_new(100, &options, &ground.resizable), MEMRT_OK);
    pattern_write(api->get_data(ground.resizable), 100, 1);
    ck_assert_int_eq(api->resizable_new_reserved(20000, (size_t)1 << 20, &options, &ground.growing),
                     MEMRT_OK);
    pattern_write(api->get_data(ground.growing), 100, 5);
    ck_assert_int_eq(api->meminfo_new(100, &options, &ground.mi), MEMRT_OK);
    ground.block = allocate_patterned_block(ground.policy, 100, 2);
    ground.shared_block = allocate_patterned_block(ground.policy, 100, 3);
    ck_assert_int_eq(api->block_meminfo(ground.shared_block, &ground.sharer), MEMRT_OK);
    /* so that find can find the block */
    ck_assert_int_eq(api->set_name(ground.sharer, "shared"), MEMRT_OK);
    ground.large = allocate_patterned_block(ground.policy, 3000000, 4);
    for (size_t i = 0; i < GROUND_MANY; i++) {
        ground.many[i] = allocate_patterned_block(ground.policy, 32768, 5);
    }
    ck_assert_int_eq(api->live(&ground.list, &count), MEMRT_OK);
    ground.device = cuda_buffer(MEMRT_MEMORY_DEVICE, 100, 0);
    return ground;
}

void ground_clear(ground_t *ground)
{
    memrt_meminfo_t *references[] = {ground->mi, ground->sharer, ground->made, ground->device};
    for (size_t i = 0; i < 4; i++) {
        if (references[i] != NULL) {
            api->release(references[i]);
        }
    }
    api->resizable_free(ground->resizable, ground->left);
    api->release(ground->resizable);
    api->release(ground->growing);
    api->block_free(NULL, ground->block, 0);
    api->block_free(NULL, ground->shared_block, 0);
    api->block_free(NULL, ground->made_block, 0);
    api->block_free(NULL, ground->large, 0);
    free_many_blocks(ground);
    api->live_free(ground->list);
    api->live_free(ground->made_list);
    if (ground->made_guard.destroy != NULL) {
        ground->made_guard.destroy(ground->made_guard.ctx);
    }
    memrt_policy_t *policies[] = {ground->idle, ground->made_policy, ground->policy};
    for (size_t i = 0; i < 3; i++) {
        if (policies[i] != NULL) {
            api->policy_release(policies[i]);
        }
    }
    memrt_scope_t *scopes[] = {ground->made_scope, ground->scope};
    for (size_t i = 0; i < 2; i++) {
        if (scopes[i] != NULL) {
            api->scope_release(scopes[i]);
        }
    }
}
