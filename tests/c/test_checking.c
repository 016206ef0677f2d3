#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include <memrt/arrow.h>
#include <memrt/dlpack.h>

#include "api/table.h"
#include "runtime/alloc/policy.h"
#include "runtime/base/options.h"
#include "runtime/debug/tracking.h"
#include "runtime/stats/shard.h"
#include "support/child.h"

/* Each misuse happens in a child that turns checking on for itself; what the parent has stays. */

typedef void (*misuse_fn)(const memrt_api_t *checked);

typedef struct misuse {
    const char *name;
    misuse_fn act;
    const char *message; ///< part of what is said
} misuse_t;

static const memrt_api_t *turn_checking_on(void)
{
    memrt__options.check = true;
    memrt__tracking_switch(true);
    return memrt__checking_table();
}

/// A policy made under checking, which fences its blocks.
static memrt_policy_t *fenced(const memrt_api_t *checked)
{
    memrt_policy_t *policy;
    REQUIRE(checked->policy_new(NULL, &policy) == MEMRT_OK);
    return policy;
}

static memrt_meminfo_t *named(const memrt_api_t *checked, size_t size)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .policy = fenced(checked), .name = "victim"};
    memrt_meminfo_t *mi;
    REQUIRE(checked->meminfo_new(size, &options, &mi) == MEMRT_OK);
    return mi;
}

static memrt_meminfo_t *dead(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 10);
    checked->release(mi);
    return mi;
}

/// Nobody holds it any more, but it is not freed yet: as in its destructor.
static memrt_meminfo_t *dying(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 10);
    mi->refct = 0;
    return mi;
}

static void release_twice(const memrt_api_t *checked)
{
    checked->release(dead(checked));
}

static void acquire_the_dead(const memrt_api_t *checked)
{
    checked->acquire(dead(checked));
}

static void acquire_the_dying(const memrt_api_t *checked)
{
    checked->acquire(dying(checked));
}

static void release_the_dying(const memrt_api_t *checked)
{
    checked->release(dying(checked));
}

static void release_a_stranger(const memrt_api_t *checked)
{
    static memrt_meminfo_t stranger = {.refct = 1};
    checked->release(&stranger);
}

static void get_data_of_the_dead(const memrt_api_t *checked)
{
    checked->get_data(dead(checked));
}

static void try_acquire_the_dead(const memrt_api_t *checked)
{
    checked->try_acquire(dead(checked));
}

static void name_the_dead(const memrt_api_t *checked)
{
    memrt_status_t status = checked->set_name(dead(checked), "late");
    REQUIRE(status != MEMRT_OK);
}

static void read_the_dead(const memrt_api_t *checked)
{
    checked->size(dead(checked));
}

#define ASK_THE_DEAD(slot)                                                                         \
    static void slot##_of_the_dead(const memrt_api_t *checked)                                     \
    {                                                                                              \
        (void)checked->slot(dead(checked));                                                        \
    }
ASK_THE_DEAD(refcount)
ASK_THE_DEAD(dtor_info)
ASK_THE_DEAD(readonly)
ASK_THE_DEAD(external_allocator)
ASK_THE_DEAD(policy_of)

static void call_dtor_while_held(const memrt_api_t *checked)
{
    checked->call_dtor(named(checked, 10));
}

static void write_past_the_end(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(fenced(checked), 100);
    ((char *)data)[100] = 1;
    checked->block_free(NULL, data, 100);
}

static void write_past_the_end_of_a_meminfo(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 100);
    ((char *)checked->get_data(mi))[103] = 1;
    checked->release(mi);
}

static void write_before_the_data(const memrt_api_t *checked, size_t bytes, int value)
{
    memrt_meminfo_t *mi = named(checked, 100);
    memset((char *)checked->get_data(mi) - bytes, value, bytes);
    checked->release(mi);
}

static void write_ones_just_before_the_data(const memrt_api_t *checked)
{
    write_before_the_data(checked, 8, 0xFF);
}

static void write_zeros_just_before_the_data(const memrt_api_t *checked)
{
    write_before_the_data(checked, 4, 0);
}

static void write_over_the_header(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 100);
    memset(&mi->policy, 0xFF, 8);
    checked->release(mi);
}

static void write_over_the_header_of_one_without_a_name(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = checked->allocate(100);
    memset(&mi->policy, 0xFF, 8);
    checked->release(mi);
}

/// Others that died before and after lie in the same quarantine, and another policy has none.
static void acquire_the_last_of_many_dead(const memrt_api_t *checked)
{
    enum { MANY = 100 };
    memrt_meminfo_t *many[MANY];
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .policy = fenced(checked), .name = "victim"};
    fenced(checked);
    for (size_t i = 0; i < MANY; i++) {
        REQUIRE(checked->meminfo_new(10, &options, &many[i]) == MEMRT_OK);
    }
    for (size_t i = 0; i < MANY; i++) {
        checked->release(many[i]);
    }
    checked->acquire(many[MANY - 1]);
}

/// What the guard knows of the block stands there.
static void write_far_before_a_freed_block(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(fenced(checked), 100);
    checked->block_free(NULL, data, 100);
    memset(data - MEMRT_HEADER_SIZE - 64 - 8, 1, 8);
    checked->release_unused();
}

static void resize_what_was_adopted(const memrt_api_t *checked)
{
    static char foreign[8];
    checked->resizable_realloc(checked->manage_memory(foreign, NULL), 20);
}

static void write_after_the_last_release(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 10);
    char *data = checked->get_data(mi);
    checked->release(mi);
    data[3] = 1;
    checked->release_unused();
}

/// Nobody looks for it any more but the end of the process.
static void write_to_a_freed_block_and_end(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(fenced(checked), 100);
    checked->block_free(NULL, data, 100);
    data[0] = 1;
    memrt__policy_verify_dead();
}

static void release_what_was_read_from_freed_memory(const memrt_api_t *checked)
{
    memrt_meminfo_t **data = checked->block_alloc(fenced(checked), sizeof(*data));
    checked->block_free(NULL, data, sizeof(*data));
    checked->release(*data);
}

static void get_data_of_what_was_read_from_fresh_memory(const memrt_api_t *checked)
{
    memrt_meminfo_t **data = checked->block_alloc(fenced(checked), sizeof(*data));
    checked->get_data(*data);
}

static void release_the_middle_of_a_freed_block(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(fenced(checked), 1000);
    checked->block_free(NULL, data, 1000);
    checked->release((memrt_meminfo_t *)(data + 512));
}

static void release_a_block(const memrt_api_t *checked)
{
    char *data = checked->block_alloc(fenced(checked), 100);
    checked->release((memrt_meminfo_t *)(data - MEMRT_HEADER_SIZE));
}

static void write_another_address_of_the_data(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 100);
    mi->data = (char *)mi->data + 64;
    checked->release(mi);
}

static void write_another_distance_to_the_start(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 100);
    mi->lead *= 2;
    checked->release(mi);
}

static void write_before_the_block(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 100);
    ((char *)mi)[-3] = 1;
    checked->release(mi);
}

static void free_a_block_twice(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(NULL, 100);
    checked->block_free(NULL, data, 100);
    checked->block_free(NULL, data, 100);
}

static void free_a_stranger(const memrt_api_t *checked)
{
    void *foreign = malloc(1000);
    checked->block_free(NULL, (char *)foreign + 256, 1000);
    free(foreign);
}

static void free_the_data_of_a_meminfo(const memrt_api_t *checked)
{
    checked->block_free(NULL, checked->get_data(named(checked, 10)), 10);
}

static void realloc_a_freed_block(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(NULL, 100);
    checked->block_free(NULL, data, 100);
    REQUIRE(checked->block_realloc(NULL, data, 200) == NULL);
}

static void use_a_pointer_from_before_a_move(const memrt_api_t *checked)
{
    void *data = checked->block_alloc(NULL, 100);
    REQUIRE(checked->block_realloc(NULL, data, 200) != NULL);
    checked->block_free(NULL, data, 100);
}

static void ask_for_the_meminfo_of_a_stranger(const memrt_api_t *checked)
{
    static _Alignas(64) char foreign[256];
    memrt_meminfo_t *mi;
    memrt_status_t status = checked->block_meminfo(foreign + 128, &mi);
    REQUIRE(status != MEMRT_OK);
}

static void resize_what_is_not_resizable(const memrt_api_t *checked)
{
    REQUIRE(checked->resizable_realloc(named(checked, 10), 20) == NULL);
}

static void release_a_policy_too_often(const memrt_api_t *checked)
{
    memrt_policy_t *policy = fenced(checked);
    checked->policy_release(policy);
    checked->policy_release(policy);
}

static void ask_for_the_scope_of_the_dead(const memrt_api_t *checked)
{
    (void)checked->scope_of(dead(checked));
}

static memrt_scope_t *given_up(const memrt_api_t *checked)
{
    memrt_scope_t *scope, *other;
    REQUIRE(checked->scope_open(NULL, "other", &other) == MEMRT_OK);
    REQUIRE(checked->scope_open(NULL, "given up", &scope) == MEMRT_OK);
    checked->scope_release(scope);
    return scope;
}

static void release_a_scope_too_often(const memrt_api_t *checked)
{
    checked->scope_release(given_up(checked));
}

static void acquire_a_scope_that_nobody_holds(const memrt_api_t *checked)
{
    checked->scope_acquire(given_up(checked));
}

static void enter_a_scope_that_is_none(const memrt_api_t *checked)
{
    (void)checked->scope_enter((memrt_scope_t *)(uintptr_t)4096, NULL);
}

static void release_a_policy_that_its_blocks_keep(const memrt_api_t *checked)
{
    memrt_policy_t *policy = fenced(checked);
    REQUIRE(checked->block_alloc(policy, 10) != NULL);
    checked->policy_release(policy);
    checked->policy_release(policy);
}

static void watch_the_dead(const memrt_api_t *checked)
{
    checked->watch(dead(checked));
}

static void hold_the_dead_under_a_name(const memrt_api_t *checked)
{
    REQUIRE(checked->acquire_as(dead(checked), MEMRT_HOLDER_REFERENCE, "loader") == MEMRT_OK);
}

static void list_holders_of_the_dead(const memrt_api_t *checked)
{
    checked->holders(dead(checked), NULL, 0, 0);
}

static const memrt_dlpack_view_t no_dimensions = {.struct_size = sizeof(no_dimensions),
                                                  .dtype = {kDLInt, 8, 1}};

static void export_the_dead(const memrt_api_t *checked)
{
    DLManagedTensorVersioned *tensor;
    REQUIRE(checked->dlpack_export(dead(checked), &no_dimensions, &tensor, NULL) == MEMRT_OK);
}

static void export_the_dead_unversioned(const memrt_api_t *checked)
{
    DLManagedTensor *tensor;
    REQUIRE(checked->dlpack_export_unversioned(dead(checked), &no_dimensions, &tensor, NULL) ==
            MEMRT_OK);
}

static const memrt_arrow_view_t no_elements = {.struct_size = sizeof(no_elements), .format = "g"};

static void export_the_dead_to_arrow(const memrt_api_t *checked)
{
    struct ArrowArray array;
    REQUIRE(checked->arrow_export(dead(checked), &no_elements, NULL, &array, NULL) == MEMRT_OK);
}

static void export_a_dead_bitmap_to_arrow(const memrt_api_t *checked)
{
    struct ArrowArray array;
    memrt_arrow_view_t view = no_elements;
    view.validity_owner = dead(checked);
    view.validity = (const uint8_t *)view.validity_owner;
    memrt_meminfo_t *mi = named(checked, 10);
    REQUIRE(checked->arrow_export(mi, &view, NULL, &array, NULL) == MEMRT_OK);
}

static memrt_meminfo_t *held(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = named(checked, 10);
    REQUIRE(checked->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "loader") == MEMRT_OK);
    return mi;
}

static void release_under_a_name_twice(const memrt_api_t *checked)
{
    memrt_meminfo_t *mi = held(checked);
    checked->release_as(mi, MEMRT_HOLDER_REFERENCE, "loader");
    checked->release_as(mi, MEMRT_HOLDER_REFERENCE, "loader");
}

static void release_under_another_kind(const memrt_api_t *checked)
{
    checked->release_as(held(checked), MEMRT_HOLDER_EXPORT, "loader");
}

static void release_under_no_name(const memrt_api_t *checked)
{
    checked->release_as(held(checked), MEMRT_HOLDER_REFERENCE, NULL);
}

static void release_the_dead_under_a_name(const memrt_api_t *checked)
{
    checked->release_as(dead(checked), MEMRT_HOLDER_REFERENCE, "loader");
}

#define DEAD ", policy policy): it is dead already; it was released more often than acquired"
#define DYING ", inline, policy policy: it is dying, nobody holds it any more"
#define STRANGER ": memrt made nothing that is alive at that address"

#define MISUSE(act, message) {#act, act, message}

static const misuse_t misuses[] = {
    MISUSE(release_twice, DEAD),
    MISUSE(acquire_the_dead, DEAD),
    MISUSE(acquire_the_dying, DYING),
    MISUSE(release_the_dying, DYING),
    MISUSE(release_a_stranger, STRANGER),
    MISUSE(get_data_of_the_dead, DEAD),
    MISUSE(try_acquire_the_dead, DEAD),
    MISUSE(name_the_dead, DEAD),
    MISUSE(name_the_dead, "memrt: set_name of 0x"),
    MISUSE(name_the_dead, " (\"victim\", 10 bytes at 0x"),
    MISUSE(read_the_dead, "memrt: size of "),
    MISUSE(refcount_of_the_dead, DEAD),
    MISUSE(dtor_info_of_the_dead, DEAD),
    MISUSE(readonly_of_the_dead, DEAD),
    MISUSE(external_allocator_of_the_dead, DEAD),
    MISUSE(policy_of_of_the_dead, DEAD),
    MISUSE(call_dtor_while_held, "refcount 1, inline, policy policy: its count must be zero"),
    MISUSE(write_past_the_end, "a write 1 bytes past its end was found"),
    MISUSE(write_past_the_end_of_a_meminfo, "a write 4 bytes past its end was found"),
    MISUSE(write_ones_just_before_the_data, "its header was overwritten"),
    MISUSE(write_zeros_just_before_the_data, "its header was overwritten"),
    MISUSE(write_over_the_header, " \"victim\": its header was overwritten"),
    MISUSE(write_over_the_header_of_one_without_a_name, ": its header was overwritten"),
    MISUSE(acquire_the_last_of_many_dead, DEAD),
    MISUSE(write_far_before_a_freed_block, "a write 65 to "),
    MISUSE(resize_what_was_adopted, ": it is not resizable"),
    MISUSE(write_after_the_last_release, " (\"victim\", 10 bytes at 0x"),
    MISUSE(write_after_the_last_release, ": a write to byte 67 after it was freed was found"),
    MISUSE(write_to_a_freed_block_and_end, "a write to byte 64 after it was freed was found"),
    MISUSE(release_what_was_read_from_freed_memory,
           "; it is 0xDD..: read from memory of a block that was released"),
    MISUSE(get_data_of_what_was_read_from_fresh_memory,
           "; it is 0xCD..: read from memory that was never written"),
    MISUSE(release_the_middle_of_a_freed_block, STRANGER),
    MISUSE(release_a_block, "nobody asked for its MemInfo: it is a block, give it to block_free"),
    MISUSE(write_another_address_of_the_data, "its header was overwritten"),
    MISUSE(write_another_distance_to_the_start, "its header was overwritten"),
    MISUSE(write_before_the_block, "a write 3 bytes before the start of its block was found"),
    MISUSE(free_a_block_twice, "memrt: block_free of "),
    MISUSE(free_a_stranger, STRANGER),
    MISUSE(free_the_data_of_a_meminfo, "it was not made as a block, release the MemInfo"),
    MISUSE(realloc_a_freed_block, "memrt: block_realloc of "),
    MISUSE(use_a_pointer_from_before_a_move, "it is dead already"),
    MISUSE(ask_for_the_meminfo_of_a_stranger, STRANGER),
    MISUSE(resize_what_is_not_resizable, ": it is not resizable"),
    MISUSE(release_a_policy_too_often, "memrt: policy_release of "),
    MISUSE(release_a_policy_that_its_blocks_keep, "released more often than acquired"),
    MISUSE(watch_the_dead, DEAD),
    MISUSE(ask_for_the_scope_of_the_dead, DEAD),
    MISUSE(release_a_scope_too_often, "memrt: scope_release of 0x"),
    MISUSE(acquire_a_scope_that_nobody_holds, ": no scope of memrt's lives at that address"),
    MISUSE(enter_a_scope_that_is_none, "memrt: scope_enter of 0x1000: no scope of memrt's"),
    MISUSE(hold_the_dead_under_a_name, DEAD),
    MISUSE(list_holders_of_the_dead, DEAD),
    MISUSE(export_the_dead, DEAD),
    MISUSE(export_the_dead_unversioned, DEAD),
    MISUSE(export_the_dead_to_arrow, DEAD),
    MISUSE(export_a_dead_bitmap_to_arrow, DEAD),
    MISUSE(release_under_a_name_twice, "no reference of it is held under the name \"loader\""),
    MISUSE(release_under_another_kind, "no reference of it is held under the name \"loader\""),
    MISUSE(release_under_no_name, "no reference of it is held under the name \"\""),
    MISUSE(release_the_dead_under_a_name, DEAD),
};

static void commit(void *context)
{
    const misuse_t *misuse = context;
    misuse->act(turn_checking_on());
}

TEST_EACH(a_misuse_aborts_with_a_message_that_names_it, sizeof(misuses) / sizeof(misuses[0]))
{
    misuse_t misuse = misuses[index];
    child_expect_abort(commit, &misuse, misuse.message);
}

/// A word of a header, what is written over it, and what is said then.
typedef struct damage {
    const char *name;
    size_t offset, size;
    uint64_t value; ///< what is written over it, as many bytes as the word has
    const char *message;
} damage_t;

#define DAMAGE(word, value, message)                                                               \
    {#word, offsetof(memrt_meminfo_t, word), sizeof(((memrt_meminfo_t *)NULL)->word), value,       \
     message}
#define OVERWRITTEN "its header was overwritten"

static const damage_t damages[] = {
    DAMAGE(refct, 0, "it is dying, nobody holds it any more"),
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
    DAMAGE(flags, 0, OVERWRITTEN),
    DAMAGE(flags, UINT64_MAX, OVERWRITTEN),
};

static void release_damaged(void *context)
{
    const damage_t *damage = context;
    const memrt_api_t *checked = turn_checking_on();
    memrt_meminfo_t *mi = named(checked, 100);
    memcpy((char *)mi + damage->offset, &damage->value, damage->size); /* the low bytes first */
    checked->release(mi);
}

TEST_EACH(a_header_with_an_overwritten_word_is_told_at_its_release,
          sizeof(damages) / sizeof(damages[0]))
{
    damage_t damage = damages[index];
    child_expect_abort(release_damaged, &damage, damage.message);
}

static void use_rightly(void *context)
{
    (void)context;
    const memrt_api_t *checked = turn_checking_on();
    memrt_policy_t *policy = fenced(checked);
    memrt_meminfo_t *mi, *resizable, *found, *adopted;
    static char foreign[8];
    char name[MEMRT_NAME_MAX + 1];
    checked->policy_acquire(policy);
    checked->policy_release(policy);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    REQUIRE(checked->meminfo_new(100, &options, &mi) == MEMRT_OK);
    REQUIRE(checked->resizable_new(100, &options, &resizable) == MEMRT_OK);
    REQUIRE(checked->meminfo_adopt(foreign, 8, &options, &adopted) == MEMRT_OK);
    checked->acquire(mi);
    REQUIRE(checked->try_acquire(mi) && checked->refcount(mi) == 3 && checked->size(mi) == 100);
    REQUIRE(checked->find(checked->get_data(mi), &found) == MEMRT_OK && found == mi);
    REQUIRE(checked->set_name(mi, "right") == MEMRT_OK);
    checked->get_name(mi, name);
    REQUIRE(strcmp(name, "right") == 0 && checked->policy_of(mi) == policy);
    REQUIRE(checked->dtor_info(mi) == NULL && checked->external_allocator(mi) == NULL);
    REQUIRE(!checked->readonly(mi) && checked->dump(mi, NULL, 0) > 0);
    for (int i = 0; i < 4; i++) {
        checked->release(mi);
    }
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
    checked->watch(resizable);
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

TEST(right_use_of_every_slot_passes_the_checks)
{
    child_expect_success(use_rightly, NULL);
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
