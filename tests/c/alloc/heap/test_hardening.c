#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/alloc/heap/span.h"
#include "runtime/base/check.h"
#include "runtime/policy/policy_table.h"
#include "support/child.h"

/// Attacks on free blocks and on headers: memory is written after its free, or past the end of the
/// block before. The process ends before a written word is used as an address.

static const size_t sizes[] = {8, 40, 64, 100, 1000, 32768, 500000};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

enum { BLOCKS = 32 };

static char target[4096];

typedef struct attack {
    size_t size, word;
    bool drains; ///< the free blocks go to the central list, in place of an allocation
} attack_t;

/// Return the start of a block. Policies without tiny blocks give small blocks a header of 64
/// bytes.
static size_t *get_start(char *data)
{
    return (size_t *)(data - ((size_t)data % MEMRT_ALIGN_MIN != 0 ? 16 : MEMRT_HEADER_SIZE));
}

static void use_class(const attack_t *attack)
{
    if (attack->drains) {
        api->release_unused();
    }
    for (int i = 0; i < 2 * BLOCKS; i++) {
        char *data = api->block_alloc(NULL, attack->size);
        REQUIRE(data < target || data >= target + sizeof(target));
    }
}

/// Overwrite the link of the block that was freed last.
static void write_after_free(void *context)
{
    const attack_t *attack = context;
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = api->block_alloc(NULL, attack->size);
    }
    for (int i = 0; i < BLOCKS; i++) {
        api->block_free(NULL, blocks[i], attack->size);
    }
    get_start(blocks[BLOCKS - 1])[2] = attack->word;
    use_class(attack);
}

/// Overrun a block up to the link of the free block behind.
static void overrun_into_free_block(void *context)
{
    const attack_t *attack = context;
    char *blocks[BLOCKS], *low = NULL, *high = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = api->block_alloc(NULL, attack->size);
        for (int j = 0; j < i; j++) {
            size_t distance = (size_t)labs(blocks[i] - blocks[j]);
            if (distance < 2 * attack->size + 128) {
                low = blocks[i] < blocks[j] ? blocks[i] : blocks[j];
                high = low + distance;
            }
        }
    }
    REQUIRE(low != NULL);
    api->block_free(NULL, high, attack->size);
    size_t word = attack->word;
    for (char *at = low + (attack->size + 7) / 8 * 8; at < high; at += sizeof(word)) {
        memcpy(at, &word, sizeof(word));
    }
    get_start(high)[2] = word; /* the link of a tiny block overlays the data */
    use_class(attack);
}

static const size_t words[] = {0, 1, 64, 0x4141414141414141};
#define WORDS (sizeof(words) / sizeof(words[0]))

static void expect_abort(child_fn attack_fn, attack_t attack)
{
    child_expect_abort(attack_fn, &attack, "the link to the next block decodes to 0x");
}

TEST_EACH(overwritten_link_aborts_at_an_allocation_or_drain, SIZES)
{
    if (!memrt__policy_default()->fast) { /* otherwise freed memory is malloc's or checked */
        return;
    }
    for (int drains = 0; drains < 2; drains++) {
        for (size_t i = 0; i < WORDS; i++) {
            expect_abort(write_after_free, (attack_t){sizes[index], words[i], drains != 0});
        }
        expect_abort(write_after_free, (attack_t){sizes[index], (size_t)target, drains != 0});
    }
}

TEST_EACH(overrun_into_a_free_block_aborts, SIZES)
{
    if (memrt__policy_default()->fast) {
        attack_t attack = {sizes[index], (size_t)target, false};
        child_expect_abort(overrun_into_free_block, &attack, "memrt: "); /* or a broken invariant */
        attack.drains = true;
        child_expect_abort(overrun_into_free_block, &attack, "memrt: ");
    }
}

TEST(key_of_the_links_differs_between_processes_with_its_mark)
{
    size_t key = memrt__link.key;
    ck_assert_uint_eq(key >> 63, 1);
    memrt__link_start();
    ck_assert_uint_ne(memrt__link.key, key);
    ck_assert_uint_eq(memrt__link.key >> 63, 1);
    memrt__link.key = key; /* links of this process have the first key */
}

static void refuse_to_run(void *data, size_t size, void *info)
{
    (void)data, (void)size, (void)info;
    fprintf(stderr, "the destructor of the attacker ran\n");
    _exit(1);
}

/// Overrun a block by two words: the count stays right, and the destructor is the attacker's.
static void plant_dtor(char *data)
{
    memrt_meminfo_t *mi = (memrt_meminfo_t *)data - 1;
    mi->dtor = refuse_to_run;
}

static void release_meminfo_of_overrun_block(void *context)
{
    memrt_meminfo_t *mi;
    api->block_free(NULL, api->block_alloc(NULL, 1000), 1000); /* the bin gets room */
    char *data = api->block_alloc(NULL, 1000);
    if (context != NULL) {
        plant_dtor(data);
    }
    api->block_free(NULL, data, 1000);
    data = api->block_alloc(NULL, 1000); /* the same memory */
    if (context == NULL) {
        plant_dtor(data);
    }
    REQUIRE(api->block_meminfo(data, &mi) == MEMRT_OK);
    api->release(mi);
    api->block_free(NULL, data, 1000);
}

TEST(planted_destructor_of_a_block_aborts_at_the_last_release)
{
    if (memrt__policy_default()->fast) {
        child_expect_abort(release_meminfo_of_overrun_block, NULL, "header of the block");
        if (!MEMRT_DEBUG) {
            child_expect_abort(release_meminfo_of_overrun_block, target, "header of the block");
        }
    }
}

static void free_and_allocate_meminfo(void *context)
{
    (void)context;
    api->block_free(NULL, api->block_alloc(NULL, 1000), 1000); /* the bin gets room */
    char *data = api->block_alloc(NULL, 1000);
    plant_dtor(data);
    api->block_free(NULL, data, 1000);
    memrt_meminfo_t *mi = api->allocate(1000);
    REQUIRE(api->get_data(mi) == data);
    api->release(mi);
}

TEST(new_meminfo_never_has_a_planted_destructor)
{
    if (memrt__policy_default()->fast && !MEMRT_DEBUG) { /* otherwise the invariant is reported */
        child_expect_success(free_and_allocate_meminfo, NULL);
    }
}
