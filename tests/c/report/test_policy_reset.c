/// Tests of the reset of policies: the check of live blocks, and the memory given back.

#include "support/suite.h"

#include <string.h>

#include "support/crew.h"

static char why[4096];

static memrt_policy_t *create_policy(const char *name, const memrt_allocator_t *allocator)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .name = name, .allocator = allocator};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

static memrt_policy_t *create_arena(void)
{
    memrt_adaptor_options_t options = {.struct_size = sizeof(options), .kind = MEMRT_ADAPTOR_ARENA};
    memrt_allocator_t arena;
    ck_assert_int_eq(api->allocator_adaptor(api->allocator_mapped(), &options, &arena), MEMRT_OK);
    return create_policy("arena", &arena);
}

static size_t expect_reset(memrt_policy_t *policy)
{
    size_t bytes = 77;
    ck_assert_int_eq(api->policy_reset(policy, &bytes, why, sizeof(why)), MEMRT_OK);
    ck_assert_str_eq(why, "");
    return bytes;
}

static void expect_refusal(memrt_policy_t *policy, const char *part)
{
    size_t bytes = 77;
    ck_assert_int_eq(api->policy_reset(policy, &bytes, why, sizeof(why)), MEMRT_EBUSY);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_msg(strstr(why, part) != NULL, "no \"%s\" in: %s", part, why);
}

static memrt_meminfo_t *create_in(memrt_policy_t *policy, size_t size, const char *name)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy, .name = name};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(size, &options, &mi), MEMRT_OK);
    return mi;
}

TEST(reset_of_an_arena_gives_all_chunks_back)
{
    memrt_policy_t *policy = create_arena();
    void *blocks[3000];
    for (size_t i = 0; i < 3000; i++) {
        blocks[i] = api->block_alloc(policy, 1000);
    }
    expect_refusal(policy, "policy 'arena' must have no live block, got 3000 of 2.9 MiB (");
    for (size_t i = 0; i < 3000; i++) {
        memset(blocks[i], 1, 1000); /* still valid after the refusal */
        api->block_free(NULL, blocks[i], 1000);
    }
    ck_assert_uint_ge(expect_reset(policy), 3u << 20);
    ck_assert_uint_eq(expect_reset(policy), 0);
    void *again = api->block_alloc(policy, 1000);
    expect_refusal(policy, "got 1 of 1000 bytes (MemInfos: 0)");
    api->block_free(NULL, again, 1000);
    api->policy_release(policy);
}

TEST(blocks_inside_and_outside_of_a_scope_refuse_the_reset)
{
    memrt_policy_t *policy = create_policy("both", NULL);
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "reset both", &scope), MEMRT_OK);
    void *outside = api->block_alloc(policy, 1000);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    void *inside = api->block_alloc(policy, 1000);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    expect_refusal(policy, "got 2 of");
    api->block_free(NULL, inside, 1000);
    expect_refusal(policy, "got 1 of");
    api->block_free(NULL, outside, 1000);
    expect_reset(policy);
    api->scope_release(scope);
    api->policy_release(policy);
}

TEST(block_in_a_scope_refuses_the_reset)
{
    memrt_policy_t *policy = create_policy("scoped", NULL);
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "scope", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    void *block = api->block_alloc(policy, 100);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    expect_refusal(policy, "got 1 of 100 bytes");
    api->block_free(NULL, block, 100);
    ck_assert_uint_eq(expect_reset(policy), 0); /* memory of the heap serves all policies */
    api->scope_release(scope);
    api->policy_release(policy);
}

TEST(adopted_memory_refuses_the_reset)
{
    static char foreign[100];
    memrt_policy_t *policy = create_policy("adopts", NULL);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_adopt(foreign, 100, &options, &mi), MEMRT_OK);
    expect_refusal(policy, "got 1 of 0 bytes and adopted memory of 100 bytes (MemInfos: 1)");
    api->release(mi);
    expect_reset(policy);
    api->policy_release(policy);
}

TEST(refusal_names_the_largest_blocks_with_their_references)
{
    memrt_policy_t *policy = create_policy("names", NULL);
    memrt_meminfo_t *named[7], *other = create_in(NULL, 1 << 20, "other policy");
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (size_t i = 0; i < 7; i++) {
        named[i] = create_in(policy, 100 * (i + 1), names[i]);
    }
    ck_assert_int_eq(api->acquire_as(named[6], MEMRT_HOLDER_EXPORT, "viewer"), MEMRT_OK);
    expect_refusal(policy, "  700 bytes 'g', 2 references, held by C export 'viewer'");
    ck_assert_ptr_nonnull(strstr(why, "  600 bytes 'f', 1 reference"));
    ck_assert_ptr_nonnull(strstr(why, "'c', "));
    ck_assert_ptr_null(strstr(why, "'b'"));
    ck_assert_ptr_null(strstr(why, "other policy"));
    ck_assert_ptr_nonnull(strstr(why, "\n  and 2 more"));
    api->release_as(named[6], MEMRT_HOLDER_EXPORT, "viewer");
    for (size_t i = 0; i < 7; i++) {
        api->release(named[i]);
    }
    api->release(other);
    expect_reset(policy);
    api->policy_release(policy);
}

static size_t write_frames(memrt_frame_t *frames, size_t max)
{
    frames[0] = api->frame_new("load", "program.py", 3);
    return max > 0;
}

TEST(refusal_has_the_allocation_site)
{
    memrt_policy_t *policy = create_policy("sites", NULL);
    memrt_tracking_t on = {.struct_size = sizeof(on), .on = 1, .frames = 4}, before = on;
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    api->set_frames(write_frames);
    ck_assert_int_eq(api->tracking_set(&on), MEMRT_OK);
    void *blocks[7];
    for (size_t i = 0; i < 7; i++) {
        blocks[i] = api->block_alloc(policy, 100); /* equal sizes: the first found stay */
    }
    expect_refusal(policy, "\n  100 bytes, 1 reference, allocated in load");
    for (size_t i = 0; i < 7; i++) {
        api->block_free(NULL, blocks[i], 100);
    }
    expect_reset(policy);
    api->set_frames(NULL);
    ck_assert_int_eq(api->tracking_set(&before), MEMRT_OK);
    api->policy_release(policy);
}

TEST(resizable_is_named_once_with_its_size)
{
    memrt_policy_t *policy = create_policy("resizes", NULL);
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .policy = policy, .name = "growing"};
    memrt_tracking_t on = {.struct_size = sizeof(on), .on = 1}, before = on;
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->tracking_get(&before), MEMRT_OK);
    ck_assert_int_eq(api->tracking_set(&on), MEMRT_OK);
    ck_assert_int_eq(api->resizable_new(100, &options, &mi), MEMRT_OK);
    expect_refusal(policy, "got 2 of 100 bytes (MemInfos: 1)");
    ck_assert_ptr_nonnull(strstr(why, "  100 bytes 'growing', 1 reference"));
    ck_assert_ptr_null(strstr(why, "more"));
    api->release(mi);
    expect_reset(policy);
    ck_assert_int_eq(api->tracking_set(&before), MEMRT_OK);
    api->policy_release(policy);
}

TEST(default_policy_has_a_reset)
{
    memrt_meminfo_t *mi = create_in(NULL, 100, NULL);
    size_t bytes;
    expect_refusal(NULL, "policy 'default' must have no live block");
    ck_assert_int_eq(api->policy_reset(NULL, &bytes, NULL, 0), MEMRT_EBUSY);
    api->release(mi);
}

TEST(short_room_cuts_the_text)
{
    memrt_policy_t *policy = create_policy("cut", NULL);
    void *block = api->block_alloc(policy, 100);
    size_t bytes;
    char text[12];
    ck_assert_int_eq(api->policy_reset(policy, &bytes, text, sizeof(text)), MEMRT_EBUSY);
    ck_assert_str_eq(text, "policy 'cut");
    api->block_free(NULL, block, 100);
    api->policy_release(policy);
}

enum { ROUNDS = 200 };

/// Allocate and free in one thread, while the other threads reset the policy.
static void use_or_reset(size_t index, void *context)
{
    for (size_t round = 0; round < ROUNDS; round++) {
        if (index == 0) {
            unsigned char *block = api->block_alloc(context, 1000);
            memset(block, (int)round, 1000);
            REQUIRE(block[999] == (unsigned char)round);
            api->block_free(NULL, block, 1000);
        } else {
            size_t bytes;
            memrt_status_t status = api->policy_reset(context, &bytes, NULL, 0);
            REQUIRE(status == MEMRT_OK || status == MEMRT_EBUSY);
        }
    }
}

TEST(reset_beside_allocations_keeps_their_blocks)
{
    memrt_policy_t *policy = create_arena();
    crew_run(3, use_or_reset, policy);
    expect_reset(policy);
    api->policy_release(policy);
}

TEST(guarded_policy_gives_quarantine_back)
{
    memrt_allocator_t guard;
    ck_assert_int_eq(api->allocator_guard(api->allocator_mapped(), &guard), MEMRT_OK);
    memrt_policy_t *policy = create_policy("guarded", &guard);
    api->block_free(NULL, api->block_alloc(policy, 100), 100);
    expect_reset(policy);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->stats_read(policy, &stats), MEMRT_OK);
    ck_assert_uint_eq(stats.cached, 0);
    api->policy_release(policy);
}
