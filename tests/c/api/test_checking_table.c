#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memrt/arrow.h>
#include <memrt/dlpack.h>

#include "api/checking_table.h"
#include "runtime/config/options.h"
#include "runtime/observe/tracking.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/policy.h"
#include "runtime/stats/shard.h"
#include "support/child.h"
#include "support/silent_hook.h"

/* Each misuse happens in a child that turns checking on. The parent's state does not change. */

typedef void (*misuse_fn)(const memrt_api_t *checked);

typedef struct misuse {
    const char *name;
    misuse_fn act;
    const char *message; ///< part of the expected message
} misuse_t;

static const memrt_api_t *turn_checking_on(void)
{
    memrt__options.check = true;
    memrt__tracking_switch(true);
    return &memrt__checking_table;
}

/// Create a policy under checking. Its blocks have redzones.
static memrt_policy_t *create_redzone_policy(const memrt_api_t *checked)
{
    memrt_policy_t *policy;
    REQUIRE(checked->policy_new(NULL, &policy) == MEMRT_OK);
    return policy;
}

static memrt_meminfo_t *create_named_meminfo(const memrt_api_t *checked, size_t size)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .policy = create_redzone_policy(checked), .name = "victim"};
    memrt_meminfo_t *mi;
    REQUIRE(checked->meminfo_new(size, &options, &mi) == MEMRT_OK);
    return mi;
}

static memrt_meminfo_t *create_freed_meminfo(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 10);
    checked->release(mi);
    return mi;
}

/// Return a MemInfo with reference count 0 whose memory is not freed yet, as in its destructor.
static memrt_meminfo_t *create_dying_meminfo(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 10);
    mi->refct = 0;
    return mi;
}

static void release_twice(const memrt_api_t *checked)
{
    checked->release(create_freed_meminfo(checked));
}

static void acquire_freed(const memrt_api_t *checked)
{
    checked->acquire(create_freed_meminfo(checked));
}

static void acquire_dying(const memrt_api_t *checked)
{
    checked->acquire(create_dying_meminfo(checked));
}

static void release_dying(const memrt_api_t *checked)
{
    checked->release(create_dying_meminfo(checked));
}

static void release_info_twice(void *data, size_t size, void *info)
{
    (void)data, (void)size;
    if (info != NULL) {
        memrt__checking_table.release(info);
        memrt__checking_table.release(info);
    }
}

/// Release a MemInfo twice whose destructor is the 33rd, and therefore deferred.
static void release_deferred(const memrt_api_t *checked)
{
    memrt_meminfo_t *chain = NULL;
    for (size_t i = 0; i < 33; i++) {
        memrt_meminfo_t *mi = create_named_meminfo(checked, 10);
        mi->dtor = release_info_twice;
        mi->dtor_info = chain;
        chain = mi;
    }
    checked->release(chain);
}

static void release_foreign_pointer(const memrt_api_t *checked)
{
    static memrt_meminfo_t stranger = {.refct = 1};
    checked->release(&stranger);
}

static void get_data_of_freed(const memrt_api_t *checked)
{
    checked->get_data(create_freed_meminfo(checked));
}

static void get_data_of_foreign_pointer(const memrt_api_t *checked)
{
    static memrt_meminfo_t stranger = {.refct = 1};
    checked->get_data(&stranger);
}

static void try_acquire_freed(const memrt_api_t *checked)
{
    checked->try_acquire(create_freed_meminfo(checked));
}

static void name_freed(const memrt_api_t *checked)
{
    memrt_status_t status = checked->set_name(create_freed_meminfo(checked), "late");
    REQUIRE(status != MEMRT_OK);
}

static void read_freed(const memrt_api_t *checked)
{
    checked->size(create_freed_meminfo(checked));
}

#define ASK_THE_DEAD(slot)                                                                         \
    static void slot##_of_freed(const memrt_api_t *checked)                                        \
    {                                                                                              \
        (void)checked->slot(create_freed_meminfo(checked));                                        \
    }
ASK_THE_DEAD(refcount)
ASK_THE_DEAD(dtor_info)
ASK_THE_DEAD(readonly)
ASK_THE_DEAD(external_allocator)
ASK_THE_DEAD(policy_of)

static void weak_new_of_freed(const memrt_api_t *checked)
{
    memrt_weak_t weak;
    (void)!checked->weak_new(create_freed_meminfo(checked), &weak);
}

static void prove_freed_meminfo_unique(const memrt_api_t *checked)
{
    checked->try_unique(create_freed_meminfo(checked));
}

static void freeze_freed_meminfo(const memrt_api_t *checked)
{
    size_t bytes;
    (void)!checked->freeze(create_freed_meminfo(checked), &bytes);
}

static void thaw_freed_meminfo(const memrt_api_t *checked)
{
    (void)!checked->thaw(create_freed_meminfo(checked));
}

static void expand_freed_block(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(NULL, 100);
    checked->block_free(NULL, data, 100);
    (void)!checked->block_try_expand(data, 101);
}

static void get_usable_size_of_freed_block(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(NULL, 100);
    checked->block_free(NULL, data, 100);
    checked->block_usable_size(data);
}

static void expand_inline_as_resizable(const memrt_api_t *checked)
{
    (void)!checked->resizable_try_expand(create_named_meminfo(checked, 10), 11);
}

static void shrink_inline_as_resizable(const memrt_api_t *checked)
{
    (void)!checked->resizable_try_shrink(create_named_meminfo(checked, 10), 5);
}

static void expand_after_overrun(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(create_redzone_policy(checked), 100);
    data[100] = 1;
    (void)!checked->block_try_expand(data, 101);
}

static void call_dtor_while_held(const memrt_api_t *checked)
{
    checked->call_dtor(create_named_meminfo(checked, 10));
}

static void write_past_the_end(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(create_redzone_policy(checked), 100);
    ((char *)data)[100] = 1;
    checked->block_free(NULL, data, 100);
}

static void write_past_meminfo_end(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 100);
    ((char *)checked->get_data(mi))[103] = 1;
    checked->release(mi);
}

static void write_before_the_data(const memrt_api_t *checked, size_t bytes, int value)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 100);
    memset((char *)checked->get_data(mi) - bytes, value, bytes);
    checked->release(mi);
}

static void write_ones_before_data(const memrt_api_t *checked)
{
    write_before_the_data(checked, 8, 0xFF);
}

static void write_zeros_before_data(const memrt_api_t *checked)
{
    write_before_the_data(checked, 4, 0);
}

static void overwrite_header(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 100);
    memset(&mi->policy, 0xFF, 8);
    checked->release(mi);
}

static void overwrite_unnamed_header(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = checked->allocate(100);
    memset(&mi->policy, 0xFF, 8);
    checked->release(mi);
}

static size_t list_one_frame(memrt_frame_t *frames, size_t max)
{
    frames[0] = api->frame_new("load", "data.py", 3);
    return max == 0 ? 0 : 1;
}

static void overwrite_header_below_frames(const memrt_api_t *checked)
{
    checked->set_frames(list_one_frame);
    overwrite_header(checked);
}

/// Blocks freed before and after lie in the same quarantine. The other policy has an empty
/// quarantine.
static void acquire_last_of_many_freed(const memrt_api_t *checked)
{
    enum { MANY = 100 };
    memrt_meminfo_t *many[MANY];
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .policy = create_redzone_policy(checked), .name = "victim"};
    create_redzone_policy(checked);
    for (size_t i = 0; i < MANY; i++) {
        REQUIRE(checked->meminfo_new(10, &options, &many[i]) == MEMRT_OK);
    }
    for (size_t i = 0; i < MANY; i++) {
        checked->release(many[i]);
    }
    checked->acquire(many[MANY - 1]);
}

/// The overwritten bytes hold the guard's record of the block.
static void write_far_before_freed_block(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(create_redzone_policy(checked), 100);
    checked->block_free(NULL, data, 100);
    memset(data - MEMRT_HEADER_SIZE - 64 - 8, 1, 8);
    checked->release_unused();
}

static void resize_adopted(const memrt_api_t *checked)
{
    static char foreign[8];
    checked->resizable_realloc(checked->manage_memory(foreign, NULL), 20);
}

static void write_after_the_last_release(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 10);
    char *data = checked->get_data(mi);
    checked->release(mi);
    data[3] = 1;
    checked->release_unused();
}

/// Only the check at the end of the process can find this write.
static void write_freed_block_and_exit(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(create_redzone_policy(checked), 100);
    checked->block_free(NULL, data, 100);
    data[0] = 1;
    memrt__policy_verify_dead();
}

static void release_pointer_in_freed_memory(const memrt_api_t *checked)
{
    memrt_meminfo_t **data = checked->block_alloc(create_redzone_policy(checked), sizeof(*data));
    checked->block_free(NULL, data, sizeof(*data));
    checked->release(*data);
}

static void get_data_of_fresh_pointer(const memrt_api_t *checked)
{
    memrt_meminfo_t **data = checked->block_alloc(create_redzone_policy(checked), sizeof(*data));
    checked->get_data(*data);
}

static void release_middle_of_freed_block(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(create_redzone_policy(checked), 1000);
    checked->block_free(NULL, data, 1000);
    checked->release((memrt_meminfo_t *)(data + 512));
}

static void release_a_block(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(create_redzone_policy(checked), 100);
    checked->release((memrt_meminfo_t *)(data - MEMRT_HEADER_SIZE));
}

static void overwrite_data_address(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 100);
    mi->data = (char *)mi->data + 64;
    checked->release(mi);
}

static void overwrite_start_distance(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 100);
    mi->lead *= 2;
    checked->release(mi);
}

static void write_before_the_block(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 100);
    ((char *)mi)[-3] = 1;
    checked->release(mi);
}

static void free_a_block_twice(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(NULL, 100);
    checked->block_free(NULL, data, 100);
    checked->block_free(NULL, data, 100);
}

static void free_foreign_pointer(const memrt_api_t *checked)
{
    void *foreign = malloc(1000);
    checked->block_free(NULL, (char *)foreign + 256, 1000);
    free(foreign);
}

static void free_the_data_of_a_meminfo(const memrt_api_t *checked)
{
    checked->block_free(NULL, checked->get_data(create_named_meminfo(checked, 10)), 10);
}

static void realloc_a_freed_block(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(NULL, 100);
    checked->block_free(NULL, data, 100);
    REQUIRE(checked->block_realloc(NULL, data, 200) == NULL);
}

static void use_pointer_from_before_move(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(NULL, 100);
    REQUIRE(checked->block_realloc(NULL, data, 200) != NULL);
    checked->block_free(NULL, data, 100);
}

static void get_meminfo_of_foreign_pointer(const memrt_api_t *checked)
{
    static _Alignas(64) char foreign[256];
    memrt_meminfo_t *mi;
    memrt_status_t status = checked->block_meminfo(foreign + 128, &mi);
    REQUIRE(status != MEMRT_OK);
}

static void resize_fixed_meminfo(const memrt_api_t *checked)
{
    REQUIRE(checked->resizable_realloc(create_named_meminfo(checked, 10), 20) == NULL);
}

static void release_a_policy_too_often(const memrt_api_t *checked)
{
    memrt_policy_t *policy = create_redzone_policy(checked);
    checked->policy_release(policy);
    checked->policy_release(policy);
}

static void acquire_null_policy(const memrt_api_t *checked)
{
    checked->policy_acquire(NULL);
}

static void get_scope_of_freed(const memrt_api_t *checked)
{
    (void)checked->scope_of(create_freed_meminfo(checked));
}

static memrt_scope_t *create_released_scope(const memrt_api_t *checked)
{
    memrt_scope_t *scope, *other;
    REQUIRE(checked->scope_open(NULL, "other", &other) == MEMRT_OK);
    REQUIRE(checked->scope_open(NULL, "given up", &scope) == MEMRT_OK);
    checked->scope_release(scope);
    return scope;
}

static void release_a_scope_too_often(const memrt_api_t *checked)
{
    checked->scope_release(create_released_scope(checked));
}

static void acquire_released_scope(const memrt_api_t *checked)
{
    checked->scope_acquire(create_released_scope(checked));
}

static void enter_foreign_scope(const memrt_api_t *checked)
{
    (void)checked->scope_enter((memrt_scope_t *)(uintptr_t)4096, NULL);
}

static void release_policy_kept_by_blocks(const memrt_api_t *checked)
{
    memrt_policy_t *policy = create_redzone_policy(checked);
    REQUIRE(checked->block_alloc(policy, 10) != NULL);
    checked->policy_release(policy);
    checked->policy_release(policy);
}

static void track_freed(const memrt_api_t *checked)
{
    checked->observe(create_freed_meminfo(checked));
}

static void hold_freed_under_name(const memrt_api_t *checked)
{
    REQUIRE(checked->acquire_as(create_freed_meminfo(checked), MEMRT_HOLDER_REFERENCE, "loader") ==
            MEMRT_OK);
}

static void list_holders_of_freed(const memrt_api_t *checked)
{
    checked->holders(create_freed_meminfo(checked), NULL, 0, 0);
}

static const memrt_dlpack_view_t no_dimensions = {.struct_size = sizeof(no_dimensions),
                                                  .dtype = {kDLInt, 8, 1}};

static void export_freed(const memrt_api_t *checked)
{
    DLManagedTensorVersioned *tensor;
    REQUIRE(checked->dlpack_export(create_freed_meminfo(checked), &no_dimensions, &tensor, NULL) ==
            MEMRT_OK);
}

static void export_freed_unversioned(const memrt_api_t *checked)
{
    DLManagedTensor *tensor;
    REQUIRE(checked->dlpack_export_unversioned(create_freed_meminfo(checked), &no_dimensions,
                                               &tensor, NULL) == MEMRT_OK);
}

static const memrt_arrow_view_t no_elements = {.struct_size = sizeof(no_elements), .format = "g"};

static void export_freed_to_arrow(const memrt_api_t *checked)
{
    struct ArrowArray array;
    REQUIRE(checked->arrow_export(create_freed_meminfo(checked), &no_elements, NULL, &array,
                                  NULL) == MEMRT_OK);
}

static void export_freed_bitmap_to_arrow(const memrt_api_t *checked)
{
    struct ArrowArray array;
    memrt_arrow_view_t view = no_elements;
    view.validity_owner = create_freed_meminfo(checked);
    view.validity = (const uint8_t *)view.validity_owner;
    memrt_meminfo_t *mi = create_named_meminfo(checked, 10);
    REQUIRE(checked->arrow_export(mi, &view, NULL, &array, NULL) == MEMRT_OK);
}

static memrt_meminfo_t *create_held_meminfo(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_named_meminfo(checked, 10);
    REQUIRE(checked->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "loader") == MEMRT_OK);
    return mi;
}

static void release_under_a_name_twice(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = create_held_meminfo(checked);
    checked->release_as(mi, MEMRT_HOLDER_REFERENCE, "loader");
    checked->release_as(mi, MEMRT_HOLDER_REFERENCE, "loader");
}

static void release_under_another_kind(const memrt_api_t *checked)
{
    checked->release_as(create_held_meminfo(checked), MEMRT_HOLDER_EXPORT, "loader");
}

static void release_under_no_name(const memrt_api_t *checked)
{
    checked->release_as(create_held_meminfo(checked), MEMRT_HOLDER_REFERENCE, NULL);
}

static void release_freed_under_name(const memrt_api_t *checked)
{
    checked->release_as(create_freed_meminfo(checked), MEMRT_HOLDER_REFERENCE, "loader");
}

#define DEAD                                                                                       \
    ", policy policy): the buffer must be live, but was freed: released more often than acquired"
#define DYING ", inline, policy policy: the reference count must be at least 1, got 0"
#define STRANGER ": no live buffer of memrt is at the address"

#define MISUSE(act, message) {#act, act, message}

static const misuse_t misuses[] = {
    MISUSE(release_twice, DEAD),
    MISUSE(acquire_freed, DEAD),
    MISUSE(acquire_dying, DYING),
    MISUSE(release_dying, DYING),
    MISUSE(release_deferred, DYING),
    MISUSE(release_foreign_pointer, STRANGER),
    MISUSE(get_data_of_freed, DEAD),
    MISUSE(get_data_of_foreign_pointer, STRANGER),
    MISUSE(try_acquire_freed, DEAD),
    MISUSE(name_freed, DEAD),
    MISUSE(name_freed, "memrt: set_name of 0x"),
    MISUSE(name_freed, " (\"victim\", 10 bytes at 0x"),
    MISUSE(read_freed, "memrt: size of "),
    MISUSE(refcount_of_freed, DEAD),
    MISUSE(dtor_info_of_freed, DEAD),
    MISUSE(readonly_of_freed, DEAD),
    MISUSE(external_allocator_of_freed, DEAD),
    MISUSE(policy_of_of_freed, DEAD),
    MISUSE(call_dtor_while_held,
           "refcount 1, inline, policy policy: the reference count must be 0"),
    MISUSE(write_past_the_end, "a write 1 bytes past the end of the block was found"),
    MISUSE(write_past_meminfo_end, "a write 4 bytes past the end of the block was found"),
    MISUSE(write_ones_before_data, "the header was overwritten"),
    MISUSE(write_zeros_before_data, "the header was overwritten"),
    MISUSE(overwrite_header, " \"victim\": the header was overwritten"),
    MISUSE(overwrite_header_below_frames, "\n  allocated at\n    load at data.py:3\n"),
    MISUSE(overwrite_unnamed_header, ": the header was overwritten"),
    MISUSE(acquire_last_of_many_freed, DEAD),
    MISUSE(write_far_before_freed_block, "a write 65 to "),
    MISUSE(weak_new_of_freed, DEAD),
    MISUSE(prove_freed_meminfo_unique, DEAD),
    MISUSE(freeze_freed_meminfo, DEAD),
    MISUSE(thaw_freed_meminfo, DEAD),
    MISUSE(expand_freed_block, "memrt: block_try_expand of "),
    MISUSE(get_usable_size_of_freed_block, "memrt: block_usable_size of "),
    MISUSE(expand_inline_as_resizable, ": the MemInfo must be resizable"),
    MISUSE(shrink_inline_as_resizable, ": the MemInfo must be resizable"),
    MISUSE(expand_after_overrun, "a write 1 bytes past the end of the block was found"),
    MISUSE(resize_adopted, ": the MemInfo must be resizable"),
    MISUSE(write_after_the_last_release, " (\"victim\", 10 bytes at 0x"),
    MISUSE(write_after_the_last_release, ": a write to byte 67 after the free was found"),
    MISUSE(write_freed_block_and_exit, "a write to byte 64 after the free was found"),
    MISUSE(release_pointer_in_freed_memory, "; the address is 0xDD..: read from a freed block"),
    MISUSE(get_data_of_fresh_pointer, "; the address is 0xCD..: read from uninitialized memory"),
    MISUSE(release_middle_of_freed_block, STRANGER),
    MISUSE(release_a_block,
           "the MemInfo of the block was never requested: free the block by block_free"),
    MISUSE(overwrite_data_address, "the header was overwritten"),
    MISUSE(overwrite_start_distance, "the header was overwritten"),
    MISUSE(write_before_the_block, "a write 3 bytes before the start of the block was found"),
    MISUSE(free_a_block_twice, "memrt: block_free of "),
    MISUSE(free_foreign_pointer, STRANGER),
    MISUSE(free_the_data_of_a_meminfo,
           "the buffer must be a block, but was allocated as a MemInfo: release the MemInfo"),
    MISUSE(realloc_a_freed_block, "memrt: block_realloc of "),
    MISUSE(use_pointer_from_before_move, "the buffer must be live, but was freed"),
    MISUSE(get_meminfo_of_foreign_pointer, STRANGER),
    MISUSE(resize_fixed_meminfo, ": the MemInfo must be resizable"),
    MISUSE(release_a_policy_too_often, "memrt: policy_release of "),
    MISUSE(release_policy_kept_by_blocks, "released more often than acquired"),
    MISUSE(acquire_null_policy, ": the policy must be held, but was released more"),
    MISUSE(track_freed, DEAD),
    MISUSE(get_scope_of_freed, DEAD),
    MISUSE(release_a_scope_too_often, "memrt: scope_release of scope 0x"),
    MISUSE(acquire_released_scope, ": the scope must be held, but was released more"),
    MISUSE(enter_foreign_scope, "memrt: scope_enter of scope 0x1000: the scope must be held"),
    MISUSE(hold_freed_under_name, DEAD),
    MISUSE(list_holders_of_freed, DEAD),
    MISUSE(export_freed, DEAD),
    MISUSE(export_freed_unversioned, DEAD),
    MISUSE(export_freed_to_arrow, DEAD),
    MISUSE(export_freed_bitmap_to_arrow, DEAD),
    MISUSE(release_under_a_name_twice,
           "the MemInfo has no reference of the given kind with the name \"loader\""),
    MISUSE(release_under_another_kind,
           "the MemInfo has no reference of the given kind with the name \"loader\""),
    MISUSE(release_under_no_name,
           "the MemInfo has no reference of the given kind with the name \"\""),
    MISUSE(release_freed_under_name, DEAD),
};

/* Every slot that takes a policy or a scope, with a call of the slot. HELD: the call acquires,
 * releases or allocates, so `owner` must be held. KNOWN: an owner with live blocks suffices, also
 * when no reference is held. tests/checks/tests/test_checking_slots.py compares the names with the
 * header. */

static memrt_meminfo_t *made_mi;
static memrt_policy_t *made_policy;
static memrt_scope_t *made_scope;
static memrt_stats_t made_stats = {.struct_size = sizeof(made_stats)};
static memrt_option_t made_option;
static size_t made_bytes;
static uint64_t made_sizes[MEMRT_SIZE_BINS];
static memrt_limit_t made_limit = {.struct_size = sizeof(made_limit)};
static memrt_reference_counts_t made_references = {.struct_size = sizeof(made_references)};
static memrt_placement_asked_t made_asked = {.struct_size = sizeof(made_asked)};

static void add_hook(const memrt_api_t *checked, memrt_policy_t *policy)
{
    memrt_hook_t hook = silent_hook(policy);
    uint64_t id;
    REQUIRE(checked->hook_add(&(memrt_hook_t){.policy = policy}, &id) == MEMRT_EINVAL);
    REQUIRE(checked->hook_add(&hook, &id) == MEMRT_OK);
    REQUIRE(checked->hook_remove(id) == MEMRT_OK);
}

static void fail_allocations(const memrt_api_t *checked, memrt_policy_t *policy,
                             memrt_scope_t *scope)
{
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .policy = policy, .scope = scope};
    REQUIRE(checked->fail_allocations(&plan) == MEMRT_OK);
    plan.struct_size = 0;
    REQUIRE(checked->fail_allocations(&plan) == MEMRT_EINVAL);
    REQUIRE(checked->fail_allocations(NULL) == MEMRT_OK);
}

static memrt_sizes_t made_counts = {.struct_size = sizeof(made_counts)};

#define NEW_OPTIONS                                                                                \
    (&(memrt_new_options_t){.struct_size = sizeof(memrt_new_options_t), .policy = owner})
#define CUDA_OPTIONS                                                                               \
    (&(memrt_cuda_options_t){.struct_size = sizeof(memrt_cuda_options_t), .policy = owner})

#define POLICY_SLOTS(SLOT)                                                                         \
    SLOT(meminfo_new, HELD, (void)!checked->meminfo_new(1, NEW_OPTIONS, &made_mi))                 \
    SLOT(meminfo_adopt, HELD, (void)!checked->meminfo_adopt(NULL, 0, NEW_OPTIONS, &made_mi))       \
    SLOT(allocate_from, HELD, checked->allocate_from(1, owner))                                    \
    SLOT(resizable_new, HELD, (void)!checked->resizable_new(1, NEW_OPTIONS, &made_mi))             \
    SLOT(resizable_new_reserved, HELD,                                                             \
         (void)!checked->resizable_new_reserved(1, 1, NEW_OPTIONS, &made_mi))                      \
    SLOT(block_alloc, HELD, checked->block_alloc(owner, 1))                                        \
    SLOT(block_calloc, HELD, checked->block_calloc(owner, 1, 1))                                   \
    SLOT(block_realloc, HELD, checked->block_realloc(owner, NULL, 1))                              \
    SLOT(block_realloc, KNOWN, checked->block_realloc(owner, checked->block_alloc(NULL, 1), 2))    \
    SLOT(block_free, KNOWN, checked->block_free(owner, checked->block_alloc(NULL, 1), 1))          \
    SLOT(block_good_size, HELD, REQUIRE(checked->block_good_size(owner, 1) != 0))                  \
    SLOT(policy_acquire, HELD, checked->policy_acquire(owner))                                     \
    SLOT(policy_release, HELD, checked->policy_release(owner))                                     \
    SLOT(policy_name, KNOWN, REQUIRE(strcmp(checked->policy_name(owner), "policy") == 0))          \
    SLOT(policy_alignment, KNOWN, REQUIRE(checked->policy_alignment(owner) == 64))                 \
    SLOT(policy_index, KNOWN, REQUIRE(checked->policy_index(owner) != 0))                          \
    SLOT(policy_option, KNOWN, checked->policy_option(owner, 0, &made_option))                     \
    SLOT(policy_option_set, HELD,                                                                  \
         REQUIRE(checked->policy_option_set(owner, "", "", NULL, 0) == MEMRT_EINVAL))              \
    SLOT(policy_placement, KNOWN,                                                                  \
         REQUIRE(checked->policy_placement(owner, &made_asked) == MEMRT_ENOENT))                   \
    SLOT(stats_read, KNOWN, REQUIRE(checked->stats_read(owner, &made_stats) == MEMRT_OK))          \
    SLOT(stats_sizes, KNOWN, REQUIRE(checked->stats_sizes(owner, &made_counts) == MEMRT_OK))       \
    SLOT(stats_reset_peak, KNOWN, checked->stats_reset_peak(owner))                                \
    SLOT(reference_counts, KNOWN,                                                                  \
         REQUIRE(checked->reference_counts(owner, &made_references) == MEMRT_OK))                  \
    SLOT(explain_shortage, KNOWN, REQUIRE(checked->explain_shortage(owner, 1, NULL, 0) != 0))      \
    SLOT(scope_policy, HELD, (void)!checked->scope_policy(made_scope, owner, &made_policy))        \
    SLOT(limit_set, KNOWN, REQUIRE(checked->limit_set(owner, NULL, MEMRT_NO_LIMIT) == MEMRT_OK))   \
    SLOT(limit_read, KNOWN, REQUIRE(checked->limit_read(owner, NULL, &made_limit) == MEMRT_OK))    \
    SLOT(limit_set_soft, KNOWN,                                                                    \
         REQUIRE(checked->limit_set_soft(owner, NULL, MEMRT_NO_LIMIT) == MEMRT_OK))                \
    SLOT(hook_add, HELD, add_hook(checked, owner))                                                 \
    SLOT(fail_allocations, HELD, fail_allocations(checked, owner, NULL))                           \
    SLOT(policy_reset, HELD, (void)!checked->policy_reset(owner, &made_bytes, NULL, 0))            \
    SLOT(cuda_new, HELD, (void)!checked->cuda_new(1, CUDA_OPTIONS, &made_mi))                      \
    SLOT(cuda_adopt, HELD, (void)!checked->cuda_adopt(0, 0, CUDA_OPTIONS, &made_mi))               \
    SLOT(dlpack_adopt, HELD,                                                                       \
         (void)!checked->dlpack_adopt(NULL, NEW_OPTIONS, NULL, &made_mi, NULL))                    \
    SLOT(dlpack_adopt_unversioned, HELD,                                                           \
         (void)!checked->dlpack_adopt_unversioned(NULL, NEW_OPTIONS, NULL, &made_mi, NULL))        \
    SLOT(dlpack_new, HELD, (void)!checked->dlpack_new(&no_dimensions, NEW_OPTIONS, NULL, NULL))    \
    SLOT(arrow_adopt, HELD,                                                                        \
         (void)!checked->arrow_adopt(NULL, NULL, NEW_OPTIONS, NULL, &made_mi, NULL))

#define SCOPE_SLOTS(SLOT)                                                                          \
    SLOT(scope_open, HELD, (void)!checked->scope_open(owner, "inner", &made_scope))                \
    SLOT(scope_acquire, HELD, checked->scope_acquire(owner))                                       \
    SLOT(scope_release, HELD, checked->scope_release(owner))                                       \
    SLOT(scope_enter, HELD, (void)!checked->scope_enter(owner, NULL))                              \
    SLOT(scope_policy, HELD, (void)!checked->scope_policy(owner, NULL, &made_policy))              \
    SLOT(scope_next, HELD, checked->scope_next(owner))                                             \
    SLOT(scope_parent, KNOWN, REQUIRE(checked->scope_parent(owner) == NULL))                       \
    SLOT(scope_name, KNOWN, REQUIRE(strcmp(checked->scope_name(owner), "outer") == 0))             \
    SLOT(scope_id, KNOWN, REQUIRE(checked->scope_id(owner) != 0))                                  \
    SLOT(scope_stats, KNOWN, REQUIRE(checked->scope_stats(owner, &made_stats) == MEMRT_OK))        \
    SLOT(scope_sizes, KNOWN, checked->scope_sizes(owner, made_sizes))                              \
    SLOT(scope_stats_sizes, KNOWN,                                                                 \
         REQUIRE(checked->scope_stats_sizes(owner, &made_counts) == MEMRT_OK))                     \
    SLOT(scope_reset_peak, KNOWN, checked->scope_reset_peak(owner))                                \
    SLOT(fail_allocations, HELD, fail_allocations(checked, NULL, owner))                           \
    SLOT(limit_set, HELD, REQUIRE(checked->limit_set(NULL, owner, MEMRT_NO_LIMIT) == MEMRT_OK))    \
    SLOT(limit_read, HELD, REQUIRE(checked->limit_read(NULL, owner, &made_limit) == MEMRT_OK))     \
    SLOT(limit_set_soft, HELD,                                                                     \
         REQUIRE(checked->limit_set_soft(NULL, owner, MEMRT_NO_LIMIT) == MEMRT_OK))

typedef enum rule {
    HELD,
    KNOWN,
} rule_t;

typedef void (*use_fn)(const memrt_api_t *checked, void *owner);

#define POLICY_USE(slot, rule, call)                                                               \
    static void slot##_of_policy_##rule(const memrt_api_t *checked, void *owner)                   \
    {                                                                                              \
        call;                                                                                      \
    }
#define SCOPE_USE(slot, rule, call)                                                                \
    static void slot##_of_scope_##rule(const memrt_api_t *checked, void *owner)                    \
    {                                                                                              \
        call;                                                                                      \
    }
POLICY_SLOTS(POLICY_USE)
SCOPE_SLOTS(SCOPE_USE)

typedef struct use {
    const char *slot, *kind;
    rule_t rule;
    use_fn act;
} use_t;

#define POLICY_ROW(slot, rule, call) {#slot, "policy", rule, slot##_of_policy_##rule},
#define SCOPE_ROW(slot, rule, call) {#slot, "scope", rule, slot##_of_scope_##rule},

static const use_t uses[] = {POLICY_SLOTS(POLICY_ROW) SCOPE_SLOTS(SCOPE_ROW)};
enum { USES = sizeof(uses) / sizeof(uses[0]) };

typedef enum blocks {
    NONE,
    FREED,    ///< after the release
    LIVE,     ///< live block of a policy, outside of scopes
    IN_SCOPE, ///< live block, allocated in a scope
} blocks_t;

/// Return a released policy or scope, with a block or without.
static void *create_released_object(const memrt_api_t *checked, const char *kind, blocks_t blocks)
{
    bool is_policy = strcmp(kind, "policy") == 0;
    bool enters = !is_policy || blocks == IN_SCOPE;
    memrt_policy_t *policy = is_policy ? create_redzone_policy(checked) : NULL;
    memrt_scope_t *scope = NULL;
    void *data = NULL;
    REQUIRE(!enters || checked->scope_open(NULL, "outer", &scope) == MEMRT_OK);
    REQUIRE(checked->scope_enter(scope, NULL) == MEMRT_OK);
    REQUIRE(blocks == NONE || (data = checked->block_alloc(policy, 100)) != NULL);
    REQUIRE(checked->scope_enter(NULL, NULL) == MEMRT_OK);
    if (is_policy) {
        checked->policy_release(policy);
    } else {
        checked->scope_release(scope);
    }
    if (blocks == FREED) {
        checked->block_free(NULL, data, 100);
    }
    return is_policy ? (void *)policy : (void *)scope;
}

static const memrt_api_t *prepare_use(void)
{
    const memrt_api_t *checked = turn_checking_on();
    REQUIRE(checked->scope_open(NULL, "held", &made_scope) == MEMRT_OK);
    return checked;
}

typedef struct use_case {
    use_t use;
    blocks_t blocks;
} use_case_t;

static void use_released(void *context)
{
    const use_case_t *it = context;
    const memrt_api_t *checked = prepare_use();
    it->use.act(checked, create_released_object(checked, it->use.kind, it->blocks));
}

static void use_stranger(void *context)
{
    const use_t *use = context;
    use->act(prepare_use(), (void *)0x1000);
}

TEST_EACH(slots_abort_for_released_or_invalid_policy_or_scope, USES)
{
    use_t use = uses[index];
    char message[120];
    snprintf(message, sizeof(message), "memrt: %s of %s 0x", use.slot, use.kind);
    child_expect_abort(use_released, &(use_case_t){use, NONE}, message);
    child_expect_abort(use_released, &(use_case_t){use, FREED}, message);
    child_expect_abort(use_stranger, &use, message);
    snprintf(message, sizeof(message), "the %s must be held%s, but was released", use.kind,
             use.rule == HELD ? "" : " or have live blocks");
    child_expect_abort(use_stranger, &use, message);
}

TEST_EACH(released_policy_or_scope_with_live_blocks_is_readable, USES)
{
    for (blocks_t blocks = LIVE; blocks <= IN_SCOPE; blocks++) {
        use_case_t it = {uses[index], blocks};
        if (it.use.rule == KNOWN) {
            child_expect_success(use_released, &it);
        } else {
            child_expect_abort(use_released, &it, " must be held, but was released");
        }
    }
}

static void use_held(void *context)
{
    const use_t *use = context;
    const memrt_api_t *checked = prepare_use();
    memrt_scope_t *scope;
    REQUIRE(checked->scope_open(NULL, "outer", &scope) == MEMRT_OK);
    bool policy = strcmp(use->kind, "policy") == 0;
    use->act(checked, policy ? (void *)create_redzone_policy(checked) : (void *)scope);
}

static bool is_read_only_use(const use_t *use)
{
    return strstr(use->slot, "dlpack") == NULL && strstr(use->slot, "arrow") == NULL;
}

TEST_EACH(held_policy_or_scope_passes_all_but_exchange_slots, USES)
{
    use_t use = uses[index];
    if (is_read_only_use(&use)) {
        child_expect_success(use_held, &use);
    }
}

static void pass_no_owner(void *context)
{
    (void)context;
    const memrt_api_t *checked = prepare_use();
    size_t too_small = offsetof(memrt_new_options_t, policy);
    memrt_new_options_t options = {.struct_size = too_small, .policy = (memrt_policy_t *)0x1000};
    REQUIRE(checked->meminfo_new(1, NULL, &made_mi) == MEMRT_OK);
    REQUIRE(checked->meminfo_new(1, &options, &made_mi) == MEMRT_OK);
    memrt_cuda_options_t cuda = {.struct_size = offsetof(memrt_cuda_options_t, policy),
                                 .policy = (memrt_policy_t *)0x1000};
    (void)!checked->cuda_new(1, &cuda, &made_mi);
    REQUIRE(checked->block_realloc(NULL, checked->block_alloc(NULL, 1), 1) != NULL);
    REQUIRE(checked->stats_read(NULL, &made_stats) == MEMRT_OK);
    REQUIRE(checked->scope_next(NULL) != NULL);
    checked->stats_reset_peak(NULL);
    checked->block_free(NULL, NULL, 0);
}

TEST(null_policies_scopes_and_options_pass_checks)
{
    child_expect_success(pass_no_owner, NULL);
}

static void commit_misuse(void *context)
{
    const misuse_t *misuse = context;
    misuse->act(turn_checking_on());
}

TEST_EACH(api_misuse_aborts_with_specific_message, sizeof(misuses) / sizeof(misuses[0]))
{
    misuse_t misuse = misuses[index];
    child_expect_abort(commit_misuse, &misuse, misuse.message);
}

/// A header word, the value that overwrites the word, and the expected message.
typedef struct damage {
    const char *name;
    size_t offset, size;
    uint64_t value; ///< as many bytes as the word has
    const char *message;
} damage_t;

#define DAMAGE(word, value, message)                                                               \
    {#word, offsetof(memrt_meminfo_t, word), sizeof(((memrt_meminfo_t *)NULL)->word), value,       \
     message}
#define OVERWRITTEN "the header was overwritten"

static const damage_t damages[] = {
    DAMAGE(refct, 0, "the reference count must be at least 1, got 0"),
    DAMAGE(data, 0, OVERWRITTEN),
    DAMAGE(data, UINT64_MAX, OVERWRITTEN),
    DAMAGE(size, UINT64_MAX, OVERWRITTEN),
    DAMAGE(policy, UINT64_MAX, OVERWRITTEN),
    DAMAGE(policy, MEMRT__ACCOUNTS, OVERWRITTEN),
    DAMAGE(policy, MEMRT__ACCOUNTS - 1, OVERWRITTEN),
    DAMAGE(kind, 0, OVERWRITTEN),
    DAMAGE(kind, UINT64_MAX, OVERWRITTEN),
    DAMAGE(kind, MEMRT_KIND_BLOCK + 1, OVERWRITTEN),
    DAMAGE(align_log2, UINT64_MAX, OVERWRITTEN),
    DAMAGE(align_log2, 31, OVERWRITTEN),
    DAMAGE(lead, 0, OVERWRITTEN),
    DAMAGE(lead, UINT64_MAX, OVERWRITTEN),
    DAMAGE(bin, 0, OVERWRITTEN),
    DAMAGE(bin, UINT64_MAX, OVERWRITTEN),
    DAMAGE(flags, 0, OVERWRITTEN),
    DAMAGE(flags, UINT64_MAX, OVERWRITTEN),
};

static void release_damaged(void *context)
{
    const damage_t *damage = context;
    const memrt_api_t *checked = turn_checking_on();
    memrt_meminfo_t *mi = create_named_meminfo(checked, 100);
    memcpy((char *)mi + damage->offset, &damage->value, damage->size); /* the low bytes first */
    checked->release(mi);
}

TEST_EACH(overwritten_header_word_is_reported_at_release, sizeof(damages) / sizeof(damages[0]))
{
    damage_t damage = damages[index];
    child_expect_abort(release_damaged, &damage, damage.message);
}

static void use_correctly(void *context)
{
    (void)context;
    const memrt_api_t *checked = turn_checking_on();
    memrt_policy_t *policy = create_redzone_policy(checked);
    memrt_meminfo_t *mi, *resizable, *found, *adopted;
    static char foreign[8];
    char name[MEMRT_NAME_MAX + 1];
    checked->policy_acquire(policy);
    checked->policy_release(policy);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    REQUIRE(checked->meminfo_new(100, &options, &mi) == MEMRT_OK);
    REQUIRE(checked->resizable_new(100, &options, &resizable) == MEMRT_OK);
    REQUIRE(checked->meminfo_adopt(foreign, 8, &options, &adopted) == MEMRT_OK);
    memrt_weak_t weak;
    REQUIRE(checked->try_unique(mi) && checked->try_unique(resizable));
    REQUIRE(checked->weak_new(mi, &weak) == MEMRT_OK && checked->weak_acquire(&weak) == mi);
    REQUIRE(checked->try_acquire(mi) && checked->refcount(mi) == 3 && checked->size(mi) == 100);
    REQUIRE(checked->find(checked->get_data(mi), &found) == MEMRT_OK && found == mi);
    REQUIRE(checked->set_name(mi, "right") == MEMRT_OK);
    checked->get_name(mi, name);
    REQUIRE(strcmp(name, "right") == 0 && checked->policy_of(mi) == policy);
    REQUIRE(checked->dtor_info(mi) == NULL && checked->external_allocator(mi) == NULL);
    REQUIRE(!checked->readonly(mi) && checked->dump(mi, NULL, 0) > 0);
    for (int i = 0; i < 3; i++) {
        checked->release(mi);
    }
    mi->refct = 0; /* as compiled code releases the last reference */
    checked->call_dtor(mi);
    DLManagedTensorVersioned *tensor;
    DLManagedTensor *unversioned;
    REQUIRE(checked->dlpack_export(adopted, &no_dimensions, &tensor, NULL) == MEMRT_OK);
    REQUIRE(checked->dlpack_export_unversioned(adopted, &no_dimensions, &unversioned, NULL) ==
            MEMRT_OK);
    tensor->deleter(tensor);
    unversioned->deleter(unversioned);
    REQUIRE(checked->acquire_as(resizable, MEMRT_HOLDER_EXPORT, "loader") == MEMRT_OK);
    REQUIRE(checked->holders(resizable, NULL, 0, 0) == 1);
    checked->release_as(resizable, MEMRT_HOLDER_EXPORT, "loader");
    void *old = checked->get_data(resizable);
    REQUIRE(checked->resizable_alloc(resizable, 50) != NULL);
    checked->resizable_free(resizable, old);
    REQUIRE(checked->resizable_realloc(resizable, 3000000) != NULL);
    size_t usable = checked->block_usable_size(checked->get_data(resizable));
    REQUIRE(checked->resizable_try_expand(resizable, usable) == MEMRT_OK);
    REQUIRE(checked->block_try_expand(checked->get_data(resizable), usable) == MEMRT_OK);
    checked->observe(resizable);
    memrt_meminfo_t *reserved;
    REQUIRE(checked->resizable_new_reserved(100, 1000000, NULL, &reserved) == MEMRT_OK);
    REQUIRE(checked->resizable_try_expand(reserved, 500000) == MEMRT_OK);
    REQUIRE(checked->block_usable_size(checked->get_data(reserved)) >= 500000);
    REQUIRE(checked->resizable_try_shrink(reserved, 100) == MEMRT_OK);
    checked->resizable_free(reserved, checked->get_data(reserved));
    checked->release(reserved);
    struct ArrowArray array;
    REQUIRE(checked->arrow_export(adopted, &no_elements, NULL, &array, NULL) == MEMRT_OK);
    array.release(&array);
    checked->release(resizable);
    checked->release(adopted);
    void *data = checked->block_realloc(policy, checked->block_calloc(policy, 3, 7), 5000);
    REQUIRE(checked->block_meminfo(data, &found) == MEMRT_OK);
    data = checked->block_realloc(policy, data, 10);
    checked->release(found);
    checked->block_free(policy, data, 0);
    checked->block_free(policy, NULL, 0);
    checked->policy_release(policy);
}

TEST(correct_use_of_policies_and_buffers_passes_checks)
{
    child_expect_success(use_correctly, NULL);
}

static void turn_tracking_off(void *context)
{
    (void)context;
    const memrt_api_t *checked = turn_checking_on();
    checked->tracking(0);
    REQUIRE(checked->tracking_enabled() == 1);
    checked->release(checked->allocate(10));
}

TEST(tracking_stays_on_under_checking)
{
    child_expect_success(turn_tracking_off, NULL);
}
