#include "support/suite.h"

#include "runtime/policy/home_setup.h"
#include "runtime/policy/policy.h"
#include "support/books.h"
#include "support/crew.h"

#define SIZE 1000

static memrt_policy_t *create_policy(size_t alignment)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .alignment = alignment};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

/// Allocate and free until the fast path of `policy` is open on the calling thread.
static void warm_up(memrt_policy_t *policy, size_t size)
{
    for (int i = 0; i < 4; i++) {
        api->block_free(policy, api->block_alloc(policy, size), size);
    }
}

static bool has_home(const memrt_policy_t *policy)
{
    return memrt__home_is_set_for(&memrt__self->homes[0], policy) ||
           memrt__home_is_set_for(&memrt__self->homes[1], policy);
}

TEST(thread_has_homes_of_the_last_two_policies)
{
    memrt_policy_t *policies[3];
    for (int i = 0; i < 3; i++) {
        policies[i] = create_policy(0);
        warm_up(policies[i], SIZE);
        ck_assert(has_home(policies[i]));
        ck_assert(i == 0 || has_home(policies[i - 1]));
    }
    ck_assert(!has_home(policies[0]));
    warm_up(policies[0], SIZE);
    ck_assert(has_home(policies[0]) && has_home(policies[2]));
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(stats_of(policies[i]).alloc, i == 0 ? 8 : 4);
        ck_assert_uint_eq(stats_of(policies[i]).free, i == 0 ? 8 : 4);
        api->policy_release(policies[i]);
    }
}

TEST(destroyed_policy_has_no_home_on_any_thread)
{
    memrt_policy_t *policy = create_policy(0);
    warm_up(policy, SIZE);
    ck_assert(has_home(policy));
    api->policy_release(policy);
    ck_assert(!has_home(policy));
}

/// Return a policy at the address of a destroyed policy. NULL: the memory went elsewhere.
static memrt_policy_t *create_policy_at_freed_address(const memrt_policy_t *freed)
{
    memrt_policy_t *policy = create_policy(0);
    if (policy != freed) {
        api->policy_release(policy);
    }
    return policy == freed ? policy : NULL;
}

TEST(policy_at_the_address_of_another_counts_its_own_blocks)
{
    memrt_policy_t *other = create_policy(0), *policy = create_policy(0);
    warm_up(policy, SIZE);
    api->policy_release(policy);
    memrt_policy_t *next = create_policy_at_freed_address(policy);
    if (next != NULL) {
        void *data = api->block_alloc(next, SIZE);
        ck_assert_uint_eq(stats_of(next).live, SIZE);
        api->block_free(next, data, SIZE);
        ck_assert_uint_eq(stats_of(next).live, 0);
        api->policy_release(next);
    }
    api->policy_release(other);
}

TEST(reacquired_policy_counts_in_the_scope_of_the_thread)
{
    memrt_policy_t *policy = create_policy(0);
    uint32_t at = api->policy_index(policy);
    void *kept = api->block_alloc(policy, SIZE);
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "reacquired", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    warm_up(policy, SIZE);
    api->policy_release(policy); /* the subpolicy of the scope has no block, and leaves */
    ck_assert_ptr_eq(api->policy_at(at), policy);
    void *data = api->block_alloc(policy, SIZE);
    ck_assert_uint_eq(stats_of(policy).live, 2 * SIZE);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->scope_stats(scope, &stats), MEMRT_OK);
    ck_assert_uint_eq(stats.live, SIZE);
    api->block_free(policy, data, SIZE);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->block_free(policy, kept, SIZE);
    api->policy_release(policy);
    api->scope_release(scope);
}

static const size_t sizes[] = {1, 16, 17, 48, 49, 64, 65, 1024, 1025, 70000, 1 << 20};

/// Free the blocks of one account after the homes lead to another account.
TEST_EACH(blocks_of_an_earlier_account_are_counted_there, sizeof(sizes) / sizeof(sizes[0]))
{
    size_t size = sizes[index];
    memrt_policy_t *policies[4];
    void *blocks[4];
    for (int i = 0; i < 4; i++) {
        policies[i] = create_policy(0);
        warm_up(policies[i], size);
        blocks[i] = api->block_alloc(policies[i], size);
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(stats_of(policies[i]).live, size);
        api->block_free(NULL, blocks[i], size);
        ck_assert_uint_eq(stats_of(policies[i]).live, 0);
        ck_assert_uint_eq(stats_of(policies[i]).free, 5);
        api->policy_release(policies[i]);
    }
}

TEST_EACH(zeroed_blocks_are_zero_in_all_bytes, sizeof(sizes) / sizeof(sizes[0]))
{
    size_t size = sizes[index];
    for (int i = 0; i < 6; i++) {
        unsigned char *data = api->block_calloc(NULL, 1, size);
        size_t dirty = 0;
        for (size_t at = 0; at < size; at++) {
            dirty += data[at] != 0;
            data[at] = 0xEE;
        }
        ck_assert_uint_eq(dirty, 0);
        api->block_free(NULL, data, size);
    }
}

TEST(policy_with_alignment_has_a_home_without_a_fast_path)
{
    memrt_policy_t *policy = create_policy(4096);
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(NULL, "aligned", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    warm_up(policy, SIZE);
    ck_assert(has_home(policy));
    void *data = api->block_alloc(policy, SIZE), *zeroed = api->block_calloc(policy, 1, 10);
    ck_assert_uint_eq((uintptr_t)data % 4096 + (uintptr_t)zeroed % 4096, 0);
    ck_assert_uint_eq(stats_of(policy).live, SIZE + 10);
    api->block_free(policy, data, SIZE);
    api->block_free(policy, zeroed, 10);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->policy_release(policy);
    api->scope_release(scope);
}

static void release_policy(size_t index, void *context)
{
    (void)index;
    api->policy_release(context);
}

TEST(policy_destroyed_by_another_thread_has_no_home)
{
    memrt_policy_t *policy = create_policy(0);
    warm_up(policy, SIZE);
    crew_run(1, release_policy, policy);
    ck_assert(!has_home(policy));
}

static size_t destroyed;

static void count_destruction(void *data, size_t size, void *info)
{
    (void)data, (void)size, (void)info;
    destroyed++;
}

/// Create a MemInfo by meminfo_new(), or without a destructor by allocate_from() every other time.
static memrt_meminfo_t *create_meminfo(memrt_policy_t *policy, memrt_dtor_fn dtor)
{
    static unsigned calls;
    if (dtor == NULL && calls++ % 2 == 0) {
        return api->allocate_from(SIZE, policy);
    }
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy, .dtor = dtor};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(SIZE, &options, &mi), MEMRT_OK);
    return mi;
}

/// Release the last reference in the way of Numba's compiled code.
static void release_by_compiled_code(memrt_meminfo_t *mi)
{
    ck_assert_uint_eq(__atomic_sub_fetch(&mi->refct, 1, __ATOMIC_ACQ_REL), 0);
    api->call_dtor(mi);
}

/// Allocate and free MemInfos of a policy in each way: 4 MemInfos, 2 with a destructor.
static void use_meminfos(memrt_policy_t *policy)
{
    memrt_meminfo_t *meminfos[4];
    for (size_t i = 0; i < 4; i++) {
        meminfos[i] = create_meminfo(policy, i < 2 ? NULL : count_destruction);
    }
    api->acquire(meminfos[0]);
    api->release(meminfos[0]);
    ck_assert_uint_ge(stats_of(policy).live, 4 * SIZE);
    api->release(meminfos[0]);
    release_by_compiled_code(meminfos[1]);
    api->release(meminfos[2]);
    release_by_compiled_code(meminfos[3]);
}

TEST(meminfos_of_named_policies_are_counted_there)
{
    memrt_policy_t *policies[] = {create_policy(0), create_policy(0), create_policy(4096), NULL};
    for (int i = 0; i < 16; i++) {
        use_meminfos(policies[i / 2 % 4]);
    }
    ck_assert_uint_eq(destroyed, 32);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(stats_of(policies[i]).mi_alloc, 16);
        ck_assert_uint_eq(stats_of(policies[i]).mi_free, 16);
        ck_assert_uint_eq(stats_of(policies[i]).live, 0);
        api->policy_release(policies[i]);
    }
}

TEST(meminfos_overflow_the_thread_cache)
{
    static memrt_meminfo_t *meminfos[4000];
    memrt_policy_t *policies[] = {create_policy(0), NULL};
    for (int of = 0; of < 2; of++) {
        uint64_t freed = stats_of(policies[of]).mi_free;
        for (size_t i = 0; i < 4000; i++) {
            meminfos[i] = create_meminfo(policies[of], NULL);
        }
        for (size_t i = 0; i < 2000; i++) {
            api->release(meminfos[2 * i]);
        }
        api->release_unused(); /* the thread cache is empty again */
        for (size_t i = 0; i < 2000; i++) {
            release_by_compiled_code(meminfos[2 * i + 1]);
        }
        ck_assert_uint_eq(stats_of(policies[of]).mi_free - freed, 4000);
    }
    ck_assert_uint_eq(stats_of(policies[0]).live, 0);
    api->policy_release(policies[0]);
}

TEST(tracking_lists_meminfos_of_a_named_policy)
{
    memrt_policy_t *policy = create_policy(0);
    use_meminfos(policy);
    int was = api->tracking(1);
    memrt_meminfo_t *mi = create_meminfo(policy, NULL), *found;
    ck_assert_int_eq(api->find(api->get_data(mi), &found), MEMRT_OK);
    ck_assert_ptr_eq(found, mi);
    api->release(found);
    api->tracking(was);
    release_by_compiled_code(mi);
    ck_assert_uint_eq(stats_of(policy).live, 0);
    api->policy_release(policy);
}

TEST(destroyed_policy_has_no_home_for_meminfos)
{
    memrt_policy_t *policy = create_policy(0);
    use_meminfos(policy);
    ck_assert(has_home(policy));
    crew_run(1, release_policy, policy);
    ck_assert(!has_home(policy));
}

TEST(meminfos_of_two_policies_in_turn_keep_both_homes)
{
    memrt_policy_t *policies[] = {create_policy(0), create_policy(0)};
    memrt_meminfo_t *meminfos[20];
    for (size_t i = 0; i < 20; i++) {
        meminfos[i] = api->allocate_from(SIZE, policies[i % 2]);
        ck_assert_ptr_eq(api->policy_of(meminfos[i]), policies[i % 2]);
        ck_assert(i < 3 || (has_home(policies[0]) && has_home(policies[1])));
    }
    for (size_t i = 0; i < 20; i++) {
        ck_assert_uint_eq(stats_of(policies[i % 2]).live, (20 - i + 1) / 2 * SIZE);
        api->release(meminfos[i]);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(stats_of(policies[i]).mi_free, 10);
        ck_assert_uint_eq(stats_of(policies[i]).live, 0);
        api->policy_release(policies[i]);
    }
}

TEST(meminfos_after_a_change_of_homes_free_to_their_account)
{
    memrt_policy_t *policies[4];
    memrt_meminfo_t *meminfos[4];
    for (int i = 0; i < 4; i++) {
        policies[i] = create_policy(0);
        use_meminfos(policies[i]);
        meminfos[i] = api->allocate_from(SIZE, policies[i]);
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(stats_of(policies[i]).live, SIZE);
        release_by_compiled_code(meminfos[i]);
        ck_assert_uint_eq(stats_of(policies[i]).live, 0);
        api->policy_release(policies[i]);
    }
}

/// Another policy may get the index and the address of a destroyed policy, which both homes of this
/// thread named.
TEST(meminfos_of_a_policy_with_a_reused_index_count_there)
{
    memrt_policy_t *other = create_policy(0);
    for (int i = 0; i < 8; i++) {
        memrt_policy_t *policy = create_policy(0);
        uint32_t at = api->policy_index(policy);
        use_meminfos(policy);
        use_meminfos(i % 2 == 0 ? other : policy);
        crew_run(1, release_policy, policy);
        memrt_policy_t *next = create_policy(0);
        ck_assert_uint_eq(api->policy_index(next), at);
        memrt_meminfo_t *mi = api->allocate_from(SIZE, next);
        ck_assert_ptr_eq(api->policy_of(mi), next);
        ck_assert_uint_eq(stats_of(next).live, SIZE);
        api->release(mi);
        ck_assert_uint_eq(stats_of(next).mi_alloc, 1);
        ck_assert_uint_eq(stats_of(next).mi_free, 1);
        api->policy_release(next);
    }
    api->policy_release(other);
}

TEST(allocate_from_null_uses_the_default_policy)
{
    uint64_t before = stats_of(NULL).live;
    for (int i = 0; i < 4; i++) {
        memrt_meminfo_t *mi = api->allocate_from(SIZE, NULL);
        ck_assert_ptr_eq(api->policy_of(mi), api->policy_default());
        ck_assert_uint_eq(stats_of(NULL).live - before, SIZE);
        api->release(mi);
    }
}

/// Allocate and free MemInfos of a policy on a thread without a record at first.
static void allocate_on_new_thread(size_t index, void *context)
{
    (void)index;
    for (int i = 0; i < 3; i++) {
        memrt_meminfo_t *mi = api->allocate_from(SIZE, context);
        REQUIRE(mi != NULL && api->policy_of(mi) == context);
        api->release(mi);
    }
}

TEST(allocate_from_on_new_threads_counts_in_the_policy)
{
    memrt_policy_t *policy = create_policy(0);
    crew_run(4, allocate_on_new_thread, policy);
    ck_assert_uint_eq(stats_of(policy).mi_alloc, 12);
    ck_assert_uint_eq(stats_of(policy).mi_free, 12);
    api->policy_release(policy);
}

TEST(meminfos_of_a_named_policy_count_in_the_scope)
{
    memrt_policy_t *policy = create_policy(0);
    memrt_scope_t *scope;
    use_meminfos(policy);
    ck_assert_int_eq(api->scope_open(NULL, "named", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, NULL), MEMRT_OK);
    use_meminfos(policy);
    memrt_meminfo_t *mi = create_meminfo(policy, NULL);
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    ck_assert_int_eq(api->scope_stats(scope, &stats), MEMRT_OK);
    ck_assert_uint_eq(stats.mi_alloc, 5);
    ck_assert_uint_eq(stats.live, SIZE);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    use_meminfos(policy);
    api->release(mi);
    ck_assert_uint_eq(stats_of(policy).live, 0);
    api->policy_release(policy);
    api->scope_release(scope);
}

TEST(meminfos_of_two_growing_policies_have_exact_peaks)
{
    enum { COUNT = 300 };
    memrt_policy_t *policies[2] = {create_policy(0), create_policy(0)};
    memrt_meminfo_t *meminfos[2 * COUNT];
    for (size_t round = 0; round < 2; round++) { /* the second round has no new maximum */
        for (size_t i = 0; i < 2 * COUNT; i++) {
            meminfos[i] = api->allocate_from(SIZE, policies[i % 2]);
            ck_assert_ptr_nonnull(meminfos[i]);
        }
        for (size_t i = 0; i < 2 * COUNT; i++) {
            api->release(meminfos[i]);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(stats_of(policies[i]).peak, COUNT * SIZE);
        ck_assert_uint_eq(stats_of(policies[i]).live, 0);
        api->policy_release(policies[i]);
    }
}
