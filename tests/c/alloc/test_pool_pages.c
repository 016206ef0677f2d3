/// Test the rungs of pages of the pool. The machine may have no pool, so the tests pretend one of
/// small pages; tests/guest has a real pool.

#include "support/suite.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/alloc/placed/page_ladder.h"
#include "runtime/alloc/placed/pool_fork.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"
#include "support/child.h"
#include "support/kernel.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static memrt_policy_t *policy;

static void start(const char *pages)
{
    memrt_placement_options_t placement = {.struct_size = sizeof(placement), .pages = pages};
    memrt_allocator_t placed;
    ck_assert_int_eq(api->allocator_placed(&placement, &placed, NULL, 0), MEMRT_OK);
    memrt_policy_options_t options = {.struct_size = sizeof(options), .allocator = &placed};
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
}

static char *allocate(size_t size)
{
    return api->block_alloc(policy, size);
}

static void release(char *block)
{
    api->block_free(policy, block, 0);
}

static memrt_placement_asked_t read_asked(void)
{
    memrt_placement_asked_t asked = {.struct_size = sizeof(asked)};
    ck_assert_int_eq(api->policy_placement(policy, &asked), MEMRT_OK);
    return asked;
}

/// Return the bytes of pages of the pool at the start of a block's mapping.
static size_t get_pool(const char *block)
{
    uintptr_t mapping;
    size_t bytes;
    memrt__mapping_use_t use;
    REQUIRE(memrt__mapping_table_find((uintptr_t)block, &mapping, &bytes, &use));
    return memrt__mapping_table_pool((const char *)mapping);
}

TEST(ladders_are_read)
{
    static const struct {
        const char *text;
        memrt__page_ladder_t ladder;
    } cases[] = {
        {NULL, {{0}, 0, {0}}},
        {"1G,2M,thp,4K", {{true, true, true, true}, 0, {0}}},
        {"2M", {{false, true, false, false}, 0, {0}}},
        {"1G!", {{true, false, false, false}, GIB, {0}}},
        {"1G,2M!", {{true, true, false, false}, 2 * MIB, {0}}},
        {"2M,thp!", {{false, true, true, false}, 2 * MIB, {0}}},
        {"4K!", {{false, false, false, true}, 0, {0}}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memrt__page_ladder_t ladder;
        ck_assert(memrt__page_ladder_read(cases[i].text, &ladder));
        ck_assert_mem_eq(ladder.has, cases[i].ladder.has, sizeof(ladder.has));
        ck_assert_uint_eq(ladder.demanded, cases[i].ladder.demanded);
    }
    static const char *const bad[] = {"",       "2M,", "2M,1G", "2M,2M",  "2M!,4K", "2M!!",
                                      "thp,2M", "4K,", "2Mx",   "2M, 4K", ",2M"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memrt__page_ladder_t ladder;
        ck_assert_msg(!memrt__page_ladder_read(bad[i], &ladder), "%s", bad[i]);
    }
}

TEST(block_has_as_many_pages_of_the_pool_as_fit)
{
    kernel_pretend_pool();
    start("2M,4K");
    char *small = allocate(MIB), *block = allocate(5 * MIB);
    ck_assert(small != NULL && block != NULL);
    memset(block, 1, 5 * MIB);
    ck_assert_uint_eq(get_pool(small), 0);
    ck_assert_uint_eq(get_pool(block), 4 * MIB);
    block = api->block_realloc(policy, block, 9 * MIB);
    ck_assert_uint_eq(get_pool(block), 8 * MIB);
    ck_assert_int_eq(block[5 * MIB - 1], 1);
    ck_assert_int_eq(read_asked().pool_2m_refused, 0);
    size_t maps = kernel_calls(KERNEL_POOL);
    release(block);
    block = api->block_calloc(policy, 1, 9 * MIB);
    ck_assert_uint_eq(kernel_calls(KERNEL_POOL), maps + 1); /* nothing was kept */
    ck_assert_int_eq(block[4 * MIB] | block[9 * MIB - 1], 0);
    release(block);
    release(small);
    api->policy_release(policy);
}

TEST(giant_pages_come_first_and_smaller_ones_fill_the_rest)
{
    kernel_pretend_pool();
    start("1G,2M,thp");
    char *block = allocate(GIB + 3 * MIB);
    ck_assert_uint_eq(get_pool(block), GIB + 2 * MIB);
    release(block);
    kernel_refuse(KERNEL_POOL, 1, 1); /* the smaller pages */
    block = allocate(GIB + 3 * MIB);
    ck_assert_uint_eq(get_pool(block), GIB);
    release(block);
    kernel_refuse(KERNEL_POOL, 0, 1); /* the giant pages */
    block = allocate(GIB + 3 * MIB);
    ck_assert_uint_eq(get_pool(block), GIB + 2 * MIB);
    release(block);
    memrt_placement_asked_t asked = read_asked();
    ck_assert_int_eq(asked.pool_1g_refused, ENOMEM);
    ck_assert_int_eq(asked.pool_2m_refused, ENOMEM);
    ck_assert_int_eq(asked.thp_refused, 0);
    api->policy_release(policy);
    start("1G!");
    block = allocate(1);
    ck_assert_uint_eq(get_pool(block), GIB);
    release(block);
    api->policy_release(policy);
}

TEST_EACH(refused_step_leads_to_the_next_rung, 4)
{
    static const kernel_call_t calls[] = {KERNEL_POOL, KERNEL_POPULATE, KERNEL_ADVISE,
                                          KERNEL_REMAP};
    static const int errors[] = {ENOMEM, EINVAL, ENOMEM, ENOMEM};
    kernel_pretend_pool();
    start("2M,4K");
    kernel_refuse(calls[index], 0, SIZE_MAX);
    char *block = allocate(5 * MIB);
    ck_assert_ptr_nonnull(block);
    memset(block, 1, 5 * MIB);
    ck_assert_uint_eq(get_pool(block), 0);
    ck_assert_int_eq(read_asked().pool_2m_refused, errors[index]);
    release(block);
    api->policy_release(policy);
    kernel_obey();
    kernel_pretend_pool();
    start("2M!");
    kernel_refuse(calls[index], 0, SIZE_MAX);
    ck_assert_ptr_null(allocate(5 * MIB));
    kernel_obey();
    api->policy_release(policy);
}

/// Calls that put small pages back after a shortage. KERNEL_MAP: the mapping of the block, pages of
/// the pool, small pages.
TEST_EACH(refused_return_to_small_pages_refuses_the_block, 4)
{
    kernel_pretend_pool();
    start(index < 2 ? "2M,4K" : "1G,2M");
    release(allocate(index < 2 ? 5 * MIB : GIB)); /* makes tables for these addresses */
    kernel_refuse(KERNEL_POPULATE, 0, SIZE_MAX);
    kernel_refuse(index % 2 == 0 ? KERNEL_MAP : KERNEL_REMAP, index % 2 == 0 ? 2 : 1, SIZE_MAX);
    ck_assert_ptr_null(allocate(index < 2 ? 5 * MIB : GIB));
    kernel_obey();
    api->policy_release(policy);
}

TEST(refused_node_refuses_pages_of_the_pool)
{
    memrt_placement_options_t options = {
        .struct_size = sizeof(options), .pages = "2M!", .node = "split:1"};
    memrt_allocator_t placed;
    kernel_pretend_pool();
    if (api->allocator_placed(&options, &placed, NULL, 0) == MEMRT_OK) { /* not in a container */
        kernel_refuse(KERNEL_PLACE, 0, SIZE_MAX);
        ck_assert_ptr_null(placed.alloc(placed.ctx, 5 * MIB, 64));
        placed.destroy(placed.ctx);
    }
}

TEST(pages_of_the_pool_need_no_lock)
{
    memrt_placement_options_t options = {
        .struct_size = sizeof(options), .pages = "2M!", .lock = MEMRT_LOCK_MUST};
    memrt_allocator_t placed;
    kernel_pretend_pool();
    kernel_refuse(KERNEL_LOCK, 0, SIZE_MAX);
    ck_assert_int_eq(api->allocator_placed(&options, &placed, NULL, 0), MEMRT_OK);
    void *block = placed.alloc(placed.ctx, 5 * MIB, 64);
    ck_assert_ptr_nonnull(block);
    placed.free(placed.ctx, block, 5 * MIB, 64);
    placed.destroy(placed.ctx);
}

TEST(demanded_transparent_pages_fill_the_rest)
{
    kernel_pretend_pool();
    start("2M,thp!");
    char *block = allocate(5 * MIB);
    ck_assert_uint_eq(get_pool(block), 6 * MIB);
    release(block);
    api->policy_release(policy);
}

static void use_pages(void *context)
{
    char *block = context;
    REQUIRE(block[4096] == 9);
    block[4096] = 8;
}

static void use_inherited(void *context)
{
    char **blocks = context;
    REQUIRE(get_pool(blocks[0]) == 0);
    for (size_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < 5 * MIB; at += 4096) {
            REQUIRE(blocks[i][at] == (char)(i + 1));
            blocks[i][at] = 9;
        }
    }
    blocks[0] = api->block_realloc(policy, blocks[0], 7 * MIB);
    REQUIRE(blocks[0] != NULL && blocks[0][MIB] == 9);
    child_expect_success(use_pages, blocks[1]); /* a child of the child */
    release(blocks[0]);
    release(blocks[1]);
}

TEST(forked_child_reads_and_writes_its_copies)
{
    if (suite_is_under_valgrind()) {
        return; /* Valgrind does not know that a child lacks pages of MADV_DONTFORK */
    }
    kernel_pretend_pool();
    start("2M!");
    char *blocks[2] = {allocate(5 * MIB), allocate(5 * MIB)};
    memset(blocks[0], 1, 5 * MIB);
    memset(blocks[1], 2, 5 * MIB);
    child_expect_success(use_inherited, blocks);
    ck_assert_uint_eq(get_pool(blocks[0]), 6 * MIB);
    ck_assert_int_eq(blocks[0][MIB] + 10 * blocks[1][MIB], 21);
    release(blocks[0]);
    release(blocks[1]);
    api->policy_release(policy);
}

/// Fork, and return what the fork handlers of the child write on standard error.
static const char *read_message_of_fork(void)
{
    static char text[512];
    int ends[2], kept = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ck_assert_int_eq(child_wait(child), 0);
    ssize_t length = read(ends[0], text, sizeof(text) - 1);
    close(ends[0]);
    text[length < 0 ? 0 : length] = '\0';
    return text;
}

/// Refusals before a fork: no memory, no right to read, a limit of address space.
TEST_EACH(child_without_a_copy_gets_a_message, 3)
{
    kernel_pretend_pool();
    start("2M!");
    char *block = allocate(5 * MIB);
    ck_assert_ptr_nonnull(block);
    struct rlimit before, limit;
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = index == 2 ? 8 * MIB : before.rlim_cur;
    if (index < 2) {
        kernel_refuse(index == 0 ? KERNEL_MAP : KERNEL_PEEK, 0, SIZE_MAX);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    const char *message = read_message_of_fork();
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    kernel_obey();
    ck_assert_msg(strstr(message, "memrt: this forked child lacks 6291456 bytes of arrays") != NULL,
                  "%s", message);
    release(block);
    api->policy_release(policy);
}

/// Unmap the pages of the pool of a block, as in a child that does not inherit them.
static void hide(char *block)
{
    uintptr_t mapping;
    size_t bytes;
    memrt__mapping_use_t use;
    REQUIRE(memrt__mapping_table_find((uintptr_t)block, &mapping, &bytes, &use));
    munmap((void *)mapping, memrt__mapping_table_pool((void *)mapping));
}

/* Acts of another thread during a fork, by a child that calls the fork handlers once more. */

static void free_during_fork(void *context)
{
    char *freed = allocate(5 * MIB), *kept = allocate(5 * MIB);
    (void)context;
    memset(kept, 3, 5 * MIB);
    memrt__pool_fork_prepare();
    release(freed);
    hide(kept);
    memrt__pool_fork_in_child();
    memrt__pool_fork_in_child(); /* does nothing */
    REQUIRE(get_pool(kept) == 0 && kept[0] == 3 && kept[5 * MIB - 1] == 3);
    release(kept);
}

static void allocate_during_fork(void *context)
{
    (void)context;
    memrt__pool_fork_note(); /* as a block freed earlier did */
    memrt__pool_fork_prepare();
    char *late = allocate(5 * MIB);
    memset(late, 3, 5 * MIB);
    hide(late);
    memrt__pool_fork_in_child();
    REQUIRE(late[0] == 0 && late[5 * MIB - 1] == 0);
}

static void refuse_move_during_fork(void *context)
{
    char *block = allocate(5 * MIB);
    (void)context;
    memrt__pool_fork_prepare();
    hide(block);
    kernel_refuse(KERNEL_REMAP, 0, 1);
    memrt__pool_fork_in_child();
}

static void take_addresses_during_fork(void *context)
{
    (void)context;
    REQUIRE(allocate(5 * MIB) != NULL); /* stays mapped */
    memrt__pool_fork_prepare();
    memrt__pool_fork_in_child();
}

TEST(other_threads_may_free_and_allocate_during_a_fork)
{
    kernel_pretend_pool();
    start("2M!");
    child_expect_success(free_during_fork, NULL);
    child_expect_success(allocate_during_fork, NULL);
    child_expect_exit(refuse_move_during_fork, NULL, 0, "lacks 6291456 bytes of arrays");
    child_expect_exit(take_addresses_during_fork, NULL, 0, "lacks 6291456 bytes of arrays");
    api->policy_release(policy);
}
