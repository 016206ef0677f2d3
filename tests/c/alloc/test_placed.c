#include "support/suite.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/alloc/placed/node_place.h"
#include "runtime/alloc/placed/node_text.h"
#include "runtime/alloc/placed/placed.h"
#include "runtime/alloc/placed/refusal.h"
#include "runtime/config/options.h"
#include "runtime/os/os.h"
#include "support/child.h"
#include "support/kernel.h"

#define TEN "0,0,0,0,0,0,0,0,0,0,"
#define TENTH "1:1:1:1:1:1:1:1:1:1:"
#define MIB ((size_t)1 << 20)

static memrt_allocator_t placed;

static memrt_status_t create(memrt_placement_options_t options)
{
    options.struct_size = sizeof(options);
    return api->allocator_placed(&options, &placed, NULL, 0);
}

static void require(memrt_placement_options_t options)
{
    ck_assert_int_eq(create(options), MEMRT_OK);
}

static void end(void)
{
    placed.destroy(placed.ctx);
}

/// Return false in containers whose filter refuses mbind().
static bool has_nodes(void)
{
    bool has = create((memrt_placement_options_t){.node = "0"}) == MEMRT_OK;
    if (has) {
        end();
    }
    return has;
}

static char *allocate(size_t size)
{
    return placed.alloc(placed.ctx, size, 64);
}

static void release(void *ptr, size_t size)
{
    placed.free(placed.ctx, ptr, size, 64);
}

static memrt_placement_t read_placement(const void *address, size_t size)
{
    memrt_placement_t placement = {.struct_size = sizeof(placement)};
    ck_assert_int_eq(api->placement_read(address, size, &placement), MEMRT_OK);
    return placement;
}

TEST(bad_options_are_refused_with_a_reason)
{
    if (!has_nodes()) {
        return;
    }
    static const struct {
        memrt_placement_options_t options;
        const char *reason;
    } cases[] = {
        {{.pages = "8K"},
         "pages must be some of '1G', '2M', 'thp' and '4K' in this order, with ',' between "
         "and '!' at most at the end, got '8K'"},
        {{.node = ""}, "node must be 'local'"},
        {{.node = "0,"}, "node must be 'local'"},
        {{.node = "0,1"}, "node must be 'local'"},
        {{.node = "0x"}, "node must be 'local'"},
        {{.node = "64"}, "node must be 'local'"},
        {{.node = "x"}, "node must be 'local'"},
        {{.node = TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "0!"}, "node must be 'local'"},
        {{.node = "interleave:"}, "node must be 'local'"},
        {{.node = "interleave:0!"}, "node must be 'local'"},
        {{.node = "weighted:"}, "node must be 'local'"},
        {{.node = "0,1!home:2"}, "node must be 'local'"},
        {{.node = "0!home:"}, "node must be 'local'"},
        {{.node = "0,1!home:0,1"}, "node must be 'local'"},
        {{.node = "0!hom:0"}, "node must be 'local'"},
        {{.node = "0home:0"}, "node must be 'local'"},
        {{.node = "split:"}, "node must be 'local'"},
        {{.node = "split:x"}, "node must be 'local'"},
        {{.node = "0!home:0x"}, "node must be 'local'"},
        {{.node = "split:0"}, "node must be 'local'"},
        {{.node = "split:256"}, "node must be 'local'"},
        {{.node = "split:1:"}, "node must be 'local'"},
        {{.node = "split:1,1"}, "node must be 'local'"},
        {{.node = "split:" TENTH TENTH TENTH TENTH TENTH TENTH TENTH "1"}, "node must be 'local'"},
        {{.node = "split:1:1:0:1"}, "node must exist"},
        {{.node = "weighted:63"}, "node must exist"},
        {{.node = "63!"}, "node must exist, see /sys/devices/system/node/online, got '63!'"},
        {{.node = "63"}, "node must exist, see /sys/devices/system/node/online, got '63'"},
        {{.node = "0,63!"}, "node must exist, see /sys/devices/system/node/online, got '0,63!'"},
        {{.node = "interleave:63,0"}, "node must exist, see /sys/devices/system/node/online"},
        {{.lock = 3}, "lock must be a memrt_lock_t, got '3'"},
        {{.prefault = 65}, "prefault must be at most 64 threads, got '65'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memrt_placement_options_t options = cases[i].options;
        char why[160] = "";
        options.struct_size = sizeof(options);
        ck_assert_int_eq(api->allocator_placed(&options, &placed, why, sizeof(why)), MEMRT_EINVAL);
        ck_assert_msg(strncmp(why, cases[i].reason, strlen(cases[i].reason)) == 0, "%s", why);
        ck_assert_int_eq(api->allocator_placed(&options, &placed, NULL, 0), MEMRT_EINVAL);
    }
    memrt_placement_options_t small = {.struct_size = 1};
    ck_assert_int_eq(api->allocator_placed(&small, &placed, NULL, 0), MEMRT_EINVAL);
}

TEST(block_may_have_huge_and_small_pages)
{
    require((memrt_placement_options_t){.pages = "thp,4K"});
    char *block = allocate(5 * MIB);
    ck_assert_ptr_nonnull(block);
    memset(block, 1, 5 * MIB);
    release(block, 5 * MIB);
    end();
}

TEST(refused_node_names_containers)
{
    memrt_placement_options_t options = {.struct_size = sizeof(options), .node = "local"};
    char why[160] = "";
    kernel_refuse(KERNEL_PLACE, 0, 1);
    ck_assert_int_eq(api->allocator_placed(&options, &placed, why, sizeof(why)), MEMRT_EINVAL);
    ck_assert_str_eq(why, "node must be unset where the system refuses mbind(), as containers do, "
                          "got 'local'");
}

TEST(node_texts_give_modes_and_sets)
{
    static const struct {
        const char *text;
        memrt__nodes_t nodes;
    } cases[] = {
        {NULL, {.mode = MEMRT__NODE_ANY}},
        {"local", {.mode = MEMRT__NODE_PREFER, .local = true}},
        {"63", {.mode = MEMRT__NODE_PREFER, .set = (uint64_t)1 << 63}},
        {"2!", {.mode = MEMRT__NODE_BIND, .set = 4}},
        {"0,2!", {.mode = MEMRT__NODE_BIND, .set = 5}},
        {"0,2!home:2", {.mode = MEMRT__NODE_BIND, .set = 5, .has_home = true, .home = 2}},
        {"interleave:1,0", {.mode = MEMRT__NODE_INTERLEAVE, .set = 3}},
        {"weighted:1,0", {.mode = MEMRT__NODE_WEIGHTED, .set = 3}},
        {"split:3:0:1", {.mode = MEMRT__NODE_SPLIT, .set = 5, .weights = {3, 0, 1}}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memrt__nodes_t nodes;
        ck_assert(memrt__node_text_read(cases[i].text, &nodes));
        ck_assert_int_eq(nodes.mode, cases[i].nodes.mode);
        ck_assert_uint_eq(nodes.set, cases[i].nodes.set);
        ck_assert_int_eq(nodes.local, cases[i].nodes.local);
        ck_assert_int_eq(nodes.has_home, cases[i].nodes.has_home);
        ck_assert_uint_eq(nodes.home, cases[i].nodes.home);
        ck_assert_mem_eq(nodes.weights, cases[i].nodes.weights, sizeof(nodes.weights));
    }
}

TEST(blocks_lie_on_the_node_of_their_policy)
{
    if (!has_nodes()) {
        return;
    }
    static const char *const nodes[] = {"local", "0", "0!", "interleave:0", "split:7", "0!home:0"};
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        size_t before = kernel_calls(KERNEL_PLACE);
        require((memrt_placement_options_t){.node = nodes[i], .pages = "4K"});
        char *block = allocate(3 * MIB);
        memset(block, 1, 3 * MIB);
        memrt_placement_t found = read_placement(block, 3 * MIB);
        ck_assert_uint_eq(found.bytes, 3 * MIB);
        ck_assert_uint_eq(found.resident, 3 * MIB);
        ck_assert_uint_eq(found.by_node[0], 3 * MIB);
        ck_assert_uint_eq(kernel_calls(KERNEL_PLACE) - before, 2); /* the first tries the node */
        release(block, 3 * MIB);
        end();
    }
}

/// Return the settings of a policy over the allocator, after one block.
static memrt_placement_asked_t read_asked_after_a_block(void)
{
    memrt_placement_asked_t asked = {.struct_size = sizeof(asked)};
    char *block = allocate(3 * MIB);
    ck_assert_ptr_nonnull(block);
    release(block, 3 * MIB);
    ck_assert(memrt__placed_asked(&placed, &asked));
    return asked;
}

TEST(unknown_ways_of_placement_are_recorded)
{
    if (!has_nodes()) {
        return;
    }
    require((memrt_placement_options_t){.node = "weighted:0"});
    int error = read_asked_after_a_block().node_refused;
    ck_assert(error == 0 || error == EINVAL); /* before Linux 6.9 */
    kernel_refuse(KERNEL_WEIGHTED, 0, SIZE_MAX);
    ck_assert_int_eq(read_asked_after_a_block().node_refused, EINVAL);
    end();
    require((memrt_placement_options_t){.node = "0!home:0"});
    kernel_refuse(KERNEL_HOME, 0, SIZE_MAX);
    memrt_placement_asked_t asked = read_asked_after_a_block();
    ck_assert_int_eq(asked.home_refused, ENOSYS);
    ck_assert_int_eq(asked.node_refused, 0);
    end();
}

TEST(split_places_parts_by_weights)
{
    if (!has_nodes()) {
        return;
    }
    char *mapping = memrt__os_map(8 * MIB, 0, 2 * MIB);
    memrt__nodes_t nodes = {
        .mode = MEMRT__NODE_SPLIT, .set = 1, .weights = {3, 0, 1}}; /* node 2 does not exist */
    kernel_refuse(KERNEL_PLACE, 1, 1);
    ck_assert_int_eq(memrt__node_place(&nodes, mapping, 8 * MIB, 2 * MIB), ENOSYS);
    kernel_obey();
    memset(mapping, 1, 8 * MIB);
    ck_assert_uint_eq(read_placement(mapping, 6 * MIB).by_node[0], 6 * MIB);
    ck_assert_int_eq(memrt__refusal_read(&nodes.refused), ENOSYS);
    size_t calls = kernel_calls(KERNEL_PLACE);
    nodes.weights[2] = 0;
    ck_assert_int_eq(memrt__node_place(&nodes, mapping, 8 * MIB, 2 * MIB), 0);
    ck_assert_uint_eq(kernel_calls(KERNEL_PLACE), calls + 1);
    ck_assert(memrt__os_unmap(mapping, 8 * MIB));
}

TEST(refused_node_refuses_the_block)
{
    if (!has_nodes()) {
        return;
    }
    require((memrt_placement_options_t){.node = "0"});
    kernel_refuse(KERNEL_PLACE, 0, SIZE_MAX);
    ck_assert_ptr_null(allocate(MIB));
    kernel_obey();
    kernel_refuse(KERNEL_MAP, 0, SIZE_MAX);
    ck_assert_ptr_null(allocate(MIB));
    kernel_obey();
    char *block = allocate(MIB);
    ck_assert_ptr_nonnull(block);
    release(block, MIB);
    end();
    kernel_refuse(KERNEL_MAP, 0, 1); /* the node cannot be tested */
    require((memrt_placement_options_t){.node = "0"});
    kernel_obey();
    end();
}

/// Return the locked memory of the process in KiB.
static unsigned long read_locked(void)
{
    char line[256];
    unsigned long locked = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL &&
           sscanf(line, "VmLck: %lu kB", &locked) != 1) {
    }
    ck_assert_ptr_nonnull(file);
    fclose(file);
    return locked;
}

/// Return whether mlock() has an effect. Sanitizers replace the call by one without.
static bool can_lock(void)
{
    static char page[4096];
    bool can = mlock(page, sizeof(page)) == 0 && read_locked() != 0;
    munlock(page, sizeof(page));
    return can;
}

TEST(locked_blocks_are_locked)
{
    if (!can_lock()) {
        return;
    }
    require((memrt_placement_options_t){.lock = MEMRT_LOCK_MUST});
    char *block = allocate(MIB);
    if (block == NULL) { /* the limit of locked memory is less */
        end();
        return;
    }
    memrt_placement_t found = read_placement(block, MIB);
    ck_assert_uint_eq(found.locked, MIB);
    ck_assert_uint_eq(found.resident, MIB);
    release(block, MIB);
    end();
}

TEST(refused_lock_refuses_the_block_on_demand)
{
    kernel_refuse(KERNEL_LOCK, 0, SIZE_MAX);
    require((memrt_placement_options_t){.lock = MEMRT_LOCK_MUST});
    ck_assert_ptr_null(allocate(MIB));
    end();
    require((memrt_placement_options_t){.lock = MEMRT_LOCK_TRY});
    char *block = allocate(MIB);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq(read_placement(block, MIB).locked, 0);
    release(block, MIB);
    end();
}

TEST(prefaulted_blocks_have_all_pages)
{
    require((memrt_placement_options_t){.prefault = 1, .pages = "4K"});
    char *block = allocate(MIB);
    ck_assert_uint_eq(read_placement(block, MIB).resident, MIB);
    release(block, MIB);
    end();
}

/// Let the thread run on one processor only, and return the number of the processor.
static int stay_on_one_processor(void)
{
    cpu_set_t set;
    int processor = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    return processor;
}

/// Fail the test unless the thread still runs on that processor only.
static void expect_processor(int processor)
{
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    ck_assert_int_eq(CPU_COUNT(&set), 1);
    ck_assert(CPU_ISSET((size_t)processor, &set));
}

TEST_EACH(threads_give_memory_to_parts_of_a_block, 4)
{
    static const size_t refused[] = {0, 2, SIZE_MAX, 0};
    const char *node = index == 3 || !has_nodes() ? NULL : "0";
    require((memrt_placement_options_t){.prefault = 64, .pages = "4K", .node = node});
    kernel_refuse(KERNEL_THREAD, 1, refused[index]);
    size_t calls = kernel_calls(KERNEL_POPULATE), size = 40 * MIB;
    int processor = stay_on_one_processor();
    char *block = allocate(size);
    expect_processor(processor);
    ck_assert_uint_eq(kernel_calls(KERNEL_POPULATE), calls + 5);
    ck_assert_uint_eq(read_placement(block, size).resident, size);
    release(block, size);
    block = allocate(7 * MIB); /* too small for two threads */
    ck_assert_uint_eq(kernel_calls(KERNEL_POPULATE), calls + 6);
    release(block, 7 * MIB);
    end();
}

TEST(refusal_of_one_thread_refuses_huge_pages)
{
    require((memrt_placement_options_t){.prefault = 4, .pages = "thp!"});
    kernel_refuse(KERNEL_POPULATE, 1, 1);
    ck_assert_ptr_null(allocate(32 * MIB));
    end();
}

/// Return whether the system makes huge pages at a demand.
static bool has_huge_pages(void)
{
    void *memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *start = (char *)(((uintptr_t)memory + 2 * MIB - 1) & ~(uintptr_t)(2 * MIB - 1));
    memset(start, 1, 2 * MIB);
    bool has = memory != MAP_FAILED && madvise(start, 2 * MIB, 25 /* MADV_COLLAPSE */) == 0;
    munmap(memory, 4 * MIB);
    return has;
}

TEST(huge_pages_only_or_no_block)
{
    require((memrt_placement_options_t){.pages = "thp!"});
    char *block = allocate(5 * MIB);
    if (block == NULL) {
        ck_assert(!has_huge_pages());
    } else {
        memrt_placement_t found = read_placement(block, 6 * MIB);
        ck_assert(found.huge == 6 * MIB || found.huge == MEMRT_PLACEMENT_UNKNOWN);
        ck_assert_uint_eq(placed.usable_size(placed.ctx, block, 5 * MIB, 64), 6 * MIB);
        release(block, 5 * MIB);
    }
    placed.release_unused(placed.ctx);
    kernel_refuse(KERNEL_COLLAPSE, 0, SIZE_MAX);
    ck_assert_ptr_null(allocate(MIB));
    kernel_obey();
    kernel_refuse(KERNEL_POPULATE, 0, SIZE_MAX);
    ck_assert_ptr_null(allocate(MIB));
    ck_assert_ptr_null(allocate(SIZE_MAX - 100));
    ck_assert_uint_eq(placed.good_size(placed.ctx, SIZE_MAX - 100, 64), SIZE_MAX - 100);
    end();
}

TEST(small_pages_are_not_huge)
{
    require((memrt_placement_options_t){.pages = "4K"});
    size_t advice = kernel_calls(KERNEL_ADVISE);
    char *block = allocate(5 * MIB);
    ck_assert_uint_eq(kernel_calls(KERNEL_ADVISE), advice + 1); /* no huge pages */
    memset(block, 1, 5 * MIB);
    memrt_placement_t found = read_placement(block, 5 * MIB);
    ck_assert(found.huge == 0 || found.huge == MEMRT_PLACEMENT_UNKNOWN);
    release(block, 5 * MIB);
    end();
}

static size_t read_cached(void)
{
    memrt_allocator_usage_t usage;
    placed.usage(placed.ctx, &usage);
    return usage.cached;
}

TEST(mappings_are_reused_and_zeroed)
{
    bool keeps = memrt__options.cache && memrt__options.cache_limit != 0;
    if (!keeps || !has_nodes()) {
        return;
    }
    size_t size = 40 * MIB;
    suite_set_decay(MEMRT__DECAY_NEVER);
    require((memrt_placement_options_t){.node = "local", .pages = "4K"});
    char *block = allocate(size);
    memset(block, 1, size);
    release(block, size);
    ck_assert_uint_ge(read_cached(), size);
    size_t placings = kernel_calls(KERNEL_PLACE);
    char *again = placed.alloc_zeroed(placed.ctx, size, 64);
    ck_assert_ptr_eq(again, block);
    ck_assert_uint_eq(kernel_calls(KERNEL_PLACE), placings + 1);
    ck_assert_int_eq(again[0] | again[size - 1] | again[size / 2], 0);
    ck_assert_uint_eq(read_placement(again, size).resident, size); /* kept its pages */
    release(again, size);
    kernel_refuse(KERNEL_PLACE, 0, 1);
    ck_assert_ptr_null(allocate(size));
    ck_assert_uint_ge(read_cached(), size);
    ck_assert_uint_ge(placed.release_unused(placed.ctx), size);
    ck_assert_uint_eq(read_cached(), 0);
    end();
}

static void allocate_in_child(void *context)
{
    size_t before = kernel_calls(KERNEL_LOCK);
    char *block = allocate(*(size_t *)context);
    REQUIRE(kernel_calls(KERNEL_LOCK) == before + 1);
    REQUIRE(block != NULL);
    release(block, *(size_t *)context);
}

TEST(forked_child_locks_a_reused_mapping_again)
{
    size_t size = MIB;
    require((memrt_placement_options_t){.lock = MEMRT_LOCK_TRY});
    char *block = allocate(size);
    ck_assert_ptr_nonnull(block);
    release(block, size);
    child_expect_success(allocate_in_child, &size);
    end();
}

TEST(policy_with_placement_serves_blocks)
{
    if (!has_nodes()) {
        return;
    }
    require((memrt_placement_options_t){.node = "0"});
    memrt_policy_options_t options = {.struct_size = sizeof(options), .allocator = &placed};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    char *small = api->block_alloc(policy, 10);
    char *large = api->block_alloc(policy, 3 * MIB);
    ck_assert(small != NULL && large != NULL);
    large = api->block_realloc(policy, large, 8 * MIB);
    ck_assert_ptr_nonnull(large);
    memset(large, 1, 8 * MIB);
    ck_assert_uint_ge(read_placement(large, 8 * MIB).by_node[0], 8 * MIB);
    memrt_location_t found = {.struct_size = sizeof(found)};
    ck_assert_int_eq(api->locate(large + 5 * MIB, &found), MEMRT_OK);
    ck_assert_uint_eq(found.data, (uintptr_t)large);
    api->policy_release(policy); /* a block keeps the allocator */
    api->block_free(NULL, small, 0);
    api->block_free(NULL, large, 0);
}

TEST(placement_of_bad_ranges_is_refused)
{
    memrt_placement_t placement = {.struct_size = sizeof(placement) - 1};
    ck_assert_int_eq(api->placement_read(&placement, 1, &placement), MEMRT_EINVAL);
    placement.struct_size = sizeof(placement);
    ck_assert_int_eq(api->placement_read(&placement, SIZE_MAX, &placement), MEMRT_EINVAL);
    ck_assert_int_eq(api->placement_read(&placement, SIZE_MAX - 9000, &placement), MEMRT_EINVAL);
    ck_assert_int_eq(api->placement_read((void *)(UINTPTR_MAX - 9000), 20000, &placement),
                     MEMRT_EINVAL);
    ck_assert_int_eq(api->placement_read((void *)4096, SIZE_MAX, &placement), MEMRT_EINVAL);
    ck_assert_int_eq(api->placement_read(&placement, 0, &placement), MEMRT_OK);
    ck_assert_uint_le(placement.bytes, memrt__os_page_size());
}

/// Map pages that no mapping beside shares its flags with.
static char *map_pages(size_t pages)
{
    void *memory = mmap(NULL, pages * memrt__os_page_size(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(memory != MAP_FAILED);
    return memory;
}

/// Run in two rounds: with the page scan, and without.
TEST_EACH(pages_that_were_only_read_or_not_touched_have_no_memory, 2)
{
    size_t page = memrt__os_page_size();
    char *pages = map_pages(4);
    ck_assert_int_eq(pages[page], 0); /* Valgrind drops a read whose result is not used */
    pages[2 * page] = 1;
    kernel_refuse(KERNEL_SCAN, 0, index == 0 ? 0 : SIZE_MAX);
    memrt_placement_t placement = read_placement(pages, 4 * page);
    bool is_scanned = placement.huge != MEMRT_PLACEMENT_UNKNOWN;
    ck_assert_uint_eq(placement.resident, is_scanned ? page : 2 * page);
    munmap(pages, 4 * page);
}

TEST(lock_of_other_pages_does_not_count)
{
    size_t page = memrt__os_page_size();
    char *pages = map_pages(3);
    if (can_lock() && mlock(pages, page) == 0) {
        ck_assert_uint_eq(read_placement(pages + 2 * page, page).locked, 0);
        ck_assert_uint_eq(read_placement(pages, page).locked, page);
        kernel_refuse(KERNEL_READ, 0, 1); /* of the file with the locks, with the page scan */
        memrt_placement_t placement = {.struct_size = sizeof(placement)};
        if (api->placement_read(pages, page, &placement) == MEMRT_OK) {
            ck_assert_uint_eq(placement.locked, 0);
        }
    }
    munmap(pages, 3 * page);
}

TEST(placement_needs_proc_but_no_new_kernel)
{
    static char touched[3 << 20];
    memset(touched, 1, sizeof(touched));
    memrt_placement_t placement = {.struct_size = sizeof(placement)};
    kernel_refuse(KERNEL_SCAN, 0, SIZE_MAX);
    kernel_refuse(KERNEL_NODES, 0, SIZE_MAX);
    placement = read_placement(touched, sizeof(touched));
    ck_assert_uint_ge(placement.resident, sizeof(touched));
    ck_assert_uint_eq(placement.huge, MEMRT_PLACEMENT_UNKNOWN);
    ck_assert_uint_eq(placement.by_node[0], MEMRT_PLACEMENT_UNKNOWN);
    kernel_refuse(KERNEL_READ, 0, 1);
    ck_assert_int_eq(api->placement_read(touched, 1, &placement), MEMRT_ENOTSUP);
    kernel_refuse(KERNEL_OPEN, 0, 1);
    ck_assert_int_eq(api->placement_read(touched, 1, &placement), MEMRT_ENOTSUP);
}

TEST(policy_tells_what_was_asked_and_refused)
{
    if (!has_nodes()) {
        return;
    }
    require((memrt_placement_options_t){
        .node = "0", .pages = "4K", .lock = MEMRT_LOCK_TRY, .prefault = 1});
    memrt_policy_options_t options = {.struct_size = sizeof(options), .allocator = &placed};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    kernel_refuse(KERNEL_LOCK, 0, 1);
    void *block = api->block_alloc(policy, 10);
    ck_assert_ptr_nonnull(block);
    memrt_placement_asked_t asked = {.struct_size = sizeof(asked)};
    ck_assert_int_eq(api->policy_placement(policy, &asked), MEMRT_OK);
    ck_assert_str_eq(asked.pages, "4K");
    ck_assert_str_eq(asked.node, "0");
    ck_assert_uint_eq(asked.lock, MEMRT_LOCK_TRY);
    ck_assert_uint_eq(asked.prefault, 1);
    ck_assert_int_eq(asked.lock_refused, EPERM);
    ck_assert_int_eq(asked.node_refused | asked.thp_refused, 0);
    api->block_free(policy, block, 0);
    api->policy_release(policy);
    asked.struct_size = sizeof(asked);
    ck_assert_int_eq(api->policy_placement(NULL, &asked), MEMRT_ENOENT);
    asked.struct_size--;
    ck_assert_int_eq(api->policy_placement(NULL, &asked), MEMRT_EINVAL);
}

TEST(arena_over_placement_packs_small_blocks)
{
    memrt_adaptor_options_t arena = {
        .struct_size = sizeof(arena), .kind = MEMRT_ADAPTOR_ARENA, .amount = 2 * MIB};
    memrt_allocator_t packed;
    require((memrt_placement_options_t){.pages = "thp"});
    ck_assert_int_eq(api->allocator_adaptor(&placed, &arena, &packed), MEMRT_OK);
    memrt_policy_options_t options = {.struct_size = sizeof(options), .allocator = &packed};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    char *one = api->block_alloc(policy, 100), *two = api->block_alloc(policy, 100);
    ck_assert(one != NULL && two != NULL && two > one && two - one < 4096);
    memrt_placement_asked_t asked = {.struct_size = sizeof(asked)};
    ck_assert_int_eq(api->policy_placement(policy, &asked), MEMRT_OK);
    ck_assert_str_eq(asked.pages, "thp");
    ck_assert_ptr_null(asked.node);
    api->block_free(policy, one, 0);
    api->block_free(policy, two, 0);
    api->policy_release(policy);
}
