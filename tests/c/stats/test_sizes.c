#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/stats/shard.h"
#include "support/crew.h"

static memrt_sizes_t read_sizes(const memrt_policy_t *policy)
{
    memrt_sizes_t sizes = {.struct_size = sizeof(sizes)};
    REQUIRE(api->stats_sizes(policy, &sizes) == MEMRT_OK);
    return sizes;
}

static memrt_policy_t *create_policy(size_t alignment)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .alignment = alignment};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

TEST(sizes_with_struct_size_0_are_refused)
{
    memrt_sizes_t sizes = {.struct_size = 0, .live = {77}};
    ck_assert_int_eq(api->stats_sizes(NULL, &sizes), MEMRT_EINVAL);
    ck_assert_uint_eq(sizes.live[0], 77);
}

TEST(shorter_sizes_struct_is_filled_only_up_to_its_size)
{
    memrt_sizes_t sizes = {.struct_size = offsetof(memrt_sizes_t, live), .live = {77}};
    sizes.allocated[0] = UINT64_MAX;
    ck_assert_int_eq(api->stats_sizes(NULL, &sizes), MEMRT_OK);
    ck_assert_uint_eq(sizes.struct_size, offsetof(memrt_sizes_t, live));
    ck_assert_uint_ne(sizes.allocated[0], UINT64_MAX);
    ck_assert_uint_eq(sizes.live[0], 77);
}

enum { PLACES = 40, STEPS = 4000 };

/// Blocks of one thread, and the counts that the library must have.
typedef struct book {
    memrt_policy_t *policy;
    size_t sizes[PLACES];
    void *blocks[PLACES];
    memrt_meminfo_t *infos[PLACES];
    memrt_sizes_t expected;
} book_t;

static const size_t common_sizes[] = {0,
                                      1,
                                      2,
                                      15,
                                      16,
                                      17,
                                      31,
                                      32,
                                      33,
                                      48,
                                      49,
                                      63,
                                      64,
                                      65,
                                      80,
                                      127,
                                      128,
                                      1023,
                                      1024,
                                      1025,
                                      65536,
                                      1 << 20,
                                      (1 << 20) + 1,
                                      3000000};

static size_t choose_size(unsigned *seed)
{
    enum { COUNT = sizeof(common_sizes) / sizeof(common_sizes[0]) };
    return common_sizes[(size_t)rand_r(seed) % COUNT];
}

static void count_block(book_t *book, size_t size, uint64_t change)
{
    book->expected.live[memrt__size_bin(size)] += change;
    book->expected.allocated[memrt__size_bin(size)] += change == 1;
}

static void allocate(book_t *book, size_t place, unsigned *seed)
{
    size_t size = choose_size(seed);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = book->policy};
    switch (rand_r(seed) % 3) {
    case 0:
        REQUIRE(api->meminfo_new(size, &options, &book->infos[place]) == MEMRT_OK);
        break;
    case 1:
        book->blocks[place] = api->block_calloc(book->policy, size, 1);
        break;
    default:
        book->blocks[place] = api->block_alloc(book->policy, size);
    }
    book->sizes[place] = size;
    count_block(book, size, 1);
}

static void release(book_t *book, size_t place)
{
    if (book->infos[place] != NULL) {
        api->release(book->infos[place]);
    } else {
        api->block_free(book->policy, book->blocks[place], 0);
    }
    book->infos[place] = NULL;
    book->blocks[place] = NULL;
    count_block(book, book->sizes[place], (uint64_t)-1);
}

/// A resized block leaves the count of its old size for the count of its new size.
static void resize(book_t *book, size_t place, unsigned *seed)
{
    size_t size = choose_size(seed), old = memrt__size_bin(book->sizes[place]);
    book->blocks[place] = api->block_realloc(book->policy, book->blocks[place], size);
    REQUIRE(book->blocks[place] != NULL);
    book->expected.live[old]--;
    book->expected.allocated[old]--;
    book->sizes[place] = size;
    count_block(book, size, 1);
}

static void use_memory_at_random(size_t index, void *context)
{
    book_t *book = &((book_t *)context)[index];
    unsigned seed = (unsigned)index + 1;
    for (size_t step = 0; step < STEPS; step++) {
        size_t place = (size_t)rand_r(&seed) % PLACES;
        if (book->blocks[place] == NULL && book->infos[place] == NULL) {
            allocate(book, place, &seed);
        } else if (book->blocks[place] != NULL && rand_r(&seed) % 2 == 0) {
            resize(book, place, &seed);
        } else {
            release(book, place);
        }
    }
}

static void add_counts(const memrt_sizes_t *from, memrt_sizes_t *sum)
{
    for (size_t bin = 0; bin < MEMRT_SIZE_BINS; bin++) {
        sum->allocated[bin] += from->allocated[bin];
        sum->live[bin] += from->live[bin];
    }
}

static const size_t alignments[] = {0, 64, 4096};

/// Threads allocate, resize and free memory of a policy at random; the policy and the process count
/// each block by its size, also after the policy was destroyed.
TEST_EACH(blocks_count_by_their_size_in_policy_and_process, 3)
{
    enum { THREADS = 3 };
    memrt_policy_t *policy = create_policy(alignments[index]);
    memrt_sizes_t of_process = read_sizes(NULL), of_policy = {.struct_size = sizeof(of_policy)};
    static book_t books[THREADS];
    memset(books, 0, sizeof(books));
    for (size_t i = 0; i < THREADS; i++) {
        books[i].policy = policy;
    }
    crew_run(THREADS, use_memory_at_random, books);
    for (size_t i = 0; i < THREADS; i++) {
        add_counts(&books[i].expected, &of_policy);
    }
    add_counts(&of_policy, &of_process);
    memrt_sizes_t found = read_sizes(policy);
    ck_assert_mem_eq(&found, &of_policy, sizeof(found));
    found = read_sizes(NULL);
    ck_assert_mem_eq(&found, &of_process, sizeof(found));
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t place = 0; place < PLACES; place++) {
            if (books[i].blocks[place] != NULL || books[i].infos[place] != NULL) {
                release(&books[i], place);
                of_process.live[memrt__size_bin(books[i].sizes[place])]--;
            }
        }
    }
    api->policy_release(policy);
    api->release_unused();
    found = read_sizes(NULL);
    ck_assert_mem_eq(&found, &of_process, sizeof(found));
}

TEST(scope_counts_live_blocks_by_size_until_their_free)
{
    memrt_scope_t *scope, *previous;
    memrt_sizes_t sizes = {.struct_size = sizeof(sizes)};
    ck_assert_int_eq(api->scope_open(NULL, "sizes", &scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(scope, &previous), MEMRT_OK);
    void *small = api->block_alloc(NULL, 5), *large = api->block_alloc(NULL, 3000000);
    ck_assert_int_eq(api->scope_enter(previous, NULL), MEMRT_OK);
    api->block_free(NULL, small, 5);
    ck_assert_int_eq(api->scope_stats_sizes(scope, &sizes), MEMRT_OK);
    ck_assert_uint_eq(sizes.allocated[3], 1);
    ck_assert_uint_eq(sizes.live[3], 0);
    ck_assert_uint_eq(sizes.allocated[22], 1);
    ck_assert_uint_eq(sizes.live[22], 1);
    api->block_free(NULL, large, 3000000);
    ck_assert_int_eq(api->scope_stats_sizes(scope, &sizes), MEMRT_OK);
    ck_assert_uint_eq(sizes.live[22], 0);
    api->scope_release(scope);
}
