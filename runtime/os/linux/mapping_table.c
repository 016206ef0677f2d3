#include "runtime/os/mapping_table.h"

#include <sys/mman.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

#define GRANULE_LOG2 20u /* bytes of addresses of one word */
#ifndef FANOUT_LOG2
#define FANOUT_LOG2 14u /* words of a leaf, and leaves of the root */
#endif
#define FANOUT ((size_t)1 << FANOUT_LOG2)
#define ADDRESS_LOG2 (GRANULE_LOG2 + 2 * FANOUT_LOG2)

/* A word has the bytes of a mapping, the kind of its pages of the pool, the page of its start in
   the granule, and its use. The bytes are a multiple of 4096, and so leave 12 bits. */
#define PAGE_LOG2 12u
#define START_LOG2 2u
#define POOL_LOG2 10u
#define USE_MASK (((size_t)1 << START_LOG2) - 1)
#define POOL_MASK ((size_t)3 << POOL_LOG2)
#define START_MASK (((size_t)1 << POOL_LOG2) - 1 - USE_MASK)
#define LOW_MASK (((size_t)1 << PAGE_LOG2) - 1)
#define ASKS_HUGE ((size_t)1 << 63)
#define BYTES_MASK (~LOW_MASK & ~ASKS_HUGE)
_Static_assert(START_LOG2 + GRANULE_LOG2 - PAGE_LOG2 <= POOL_LOG2, "page and use fit");
_Static_assert(MEMRT__USE_CACHED <= USE_MASK, "a use fits");

/// Words of 16 GiB of addresses.
typedef struct leaf {
    size_t word[FANOUT]; ///< any thread, relaxed; only the thread with the mapping changes a word
} leaf_t;

/* Each entry is written once, by a release exchange that publishes the zeros of a leaf. */
static size_t root[FANOUT];

static size_t *get_entry(uintptr_t address)
{
    return &root[address >> (GRANULE_LOG2 + FANOUT_LOG2)];
}

static size_t make_word(uintptr_t address, size_t bytes, memrt__mapping_use_t use)
{
    size_t page = (address & (((size_t)1 << GRANULE_LOG2) - 1)) >> PAGE_LOG2;
    MEMRT__ASSERT((bytes & LOW_MASK) == 0 && (address & LOW_MASK) == 0);
    return bytes | page << START_LOG2 | (size_t)use;
}

/// Return whether a word is for the mapping at an address of its granule.
static bool is_word_of(size_t word, uintptr_t address)
{
    size_t start = make_word(address, 0, MEMRT__USE_RECORDS);
    return word != 0 && (word & START_MASK) == (start & START_MASK);
}

/// Return the word of an address. NULL: its leaf does not exist.
static size_t *find_word(uintptr_t address)
{
    if (address >> ADDRESS_LOG2 != 0) {
        return NULL;
    }
    leaf_t *leaf = (leaf_t *)memrt__load_acquire(get_entry(address));
    return leaf == NULL ? NULL : &leaf->word[(address >> GRANULE_LOG2) & (FANOUT - 1)];
}

/// Make the leaf of an address, unless another thread was first.
static void make_leaf(uintptr_t address)
{
    void *leaf =
        mmap(NULL, sizeof(leaf_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (leaf != MAP_FAILED && !memrt__cas_release(get_entry(address), 0, (size_t)leaf)) {
        munmap(leaf, sizeof(leaf_t));
    }
}

static void add_word(uintptr_t address, size_t new_word)
{
    size_t *word = find_word(address);
    if (word == NULL && address >> ADDRESS_LOG2 == 0) {
        make_leaf(address);
        word = find_word(address);
    }
    if (word != NULL) {
        (void)memrt__cas_relaxed(word, 0, new_word);
    }
}

void memrt__mapping_table_add(const void *address, size_t bytes)
{
    add_word((uintptr_t)address, make_word((uintptr_t)address, bytes, MEMRT__USE_RECORDS));
}

size_t memrt__mapping_table_remove(const void *address)
{
    size_t *word = find_word((uintptr_t)address);
    size_t old = word == NULL ? 0 : memrt__load_relaxed(word);
    if (!is_word_of(old, (uintptr_t)address)) {
        return 0;
    }
    memrt__store_relaxed(word, 0);
    return old;
}

void memrt__mapping_table_restore(size_t word, const void *address, size_t bytes)
{
    if (word != 0) {
        memrt__mapping_use_t use = (memrt__mapping_use_t)(word & USE_MASK);
        size_t new_word = make_word((uintptr_t)address, bytes, use);
        add_word((uintptr_t)address, new_word | (word & ASKS_HUGE));
    }
}

void memrt__mapping_table_mark(const void *address, memrt__mapping_use_t use)
{
    size_t *word = find_word((uintptr_t)address);
    size_t old = word == NULL ? 0 : memrt__load_relaxed(word);
    if (is_word_of(old, (uintptr_t)address)) {
        memrt__store_relaxed(word, (old & ~USE_MASK) | (size_t)use);
    }
}

void memrt__mapping_table_ask_huge(const void *address, bool asks)
{
    size_t *word = find_word((uintptr_t)address);
    size_t old = word == NULL ? 0 : memrt__load_relaxed(word);
    if (is_word_of(old, (uintptr_t)address)) {
        memrt__store_relaxed(word, (old & ~ASKS_HUGE) | (asks ? ASKS_HUGE : 0));
    }
}

bool memrt__mapping_table_asks_huge(const void *address)
{
    const size_t *word = find_word((uintptr_t)address);
    size_t old = word == NULL ? 0 : memrt__load_relaxed(word);
    return is_word_of(old, (uintptr_t)address) && (old & ASKS_HUGE) != 0;
}

/* Kinds of pages of the pool. */
static const size_t pool_pages[] = {SIZE_MAX, MEMRT__HUGE_PAGE, MEMRT__GIANT_PAGE};

bool memrt__mapping_table_set_pool(const void *address, size_t page)
{
    size_t *word = find_word((uintptr_t)address), kind = 0;
    size_t old = word == NULL ? 0 : memrt__load_relaxed(word);
    if (!is_word_of(old, (uintptr_t)address)) {
        return false;
    }
    if (page != 0) {
        kind = page == MEMRT__HUGE_PAGE ? 1 : 2;
        MEMRT__ASSERT(page == pool_pages[kind]);
    }
    memrt__store_relaxed(word, (old & ~POOL_MASK) | kind << POOL_LOG2);
    return true;
}

size_t memrt__mapping_table_pool(const void *address)
{
    const size_t *word = find_word((uintptr_t)address);
    size_t old = word == NULL ? 0 : memrt__load_relaxed(word);
    size_t kind = is_word_of(old, (uintptr_t)address) ? (old & POOL_MASK) >> POOL_LOG2 : 0;
    return kind == 0 ? 0 : (old & BYTES_MASK) / pool_pages[kind] * pool_pages[kind];
}

/// Return the start of the mapping of a word, for an address in the granule of the word.
static uintptr_t get_start(size_t word, uintptr_t address)
{
    size_t page = (word & START_MASK) >> START_LOG2;
    return (address >> GRANULE_LOG2 << GRANULE_LOG2) + (page << PAGE_LOG2);
}

/// Return the highest address below the granule of `address`, or below its leaf if the leaf does
/// not exist.
static uintptr_t get_address_before(uintptr_t address, bool has_leaf)
{
    size_t log2 = has_leaf ? GRANULE_LOG2 : GRANULE_LOG2 + FANOUT_LOG2;
    return (address >> log2 << log2) - 1;
}

/// Mappings do not overlap, so only the nearest mapping that starts before the address can contain
/// the address.
bool memrt__mapping_table_find(uintptr_t address, uintptr_t *start, size_t *bytes,
                               memrt__mapping_use_t *use)
{
    bool found = false;
    for (uintptr_t at = address; at >> ADDRESS_LOG2 == 0 && !found;) {
        const size_t *entry = find_word(at);
        size_t word = entry == NULL ? 0 : memrt__load_relaxed(entry);
        found = word != 0 && get_start(word, at) <= address;
        if (found) {
            *start = get_start(word, at);
            *bytes = word & BYTES_MASK;
            *use = (memrt__mapping_use_t)(word & USE_MASK);
        }
        at = get_address_before(at, entry != NULL); /* wraps around at the end */
    }
    return found && address - *start < *bytes;
}

/// State of a visit.
typedef struct visitor {
    void (*visit)(void *context, uintptr_t address, size_t bytes, memrt__mapping_use_t use);
    void *context;
} visitor_t;

static void visit_leaf(const visitor_t *visitor, const leaf_t *leaf, uintptr_t address)
{
    for (size_t i = 0; i < FANOUT; i++) {
        size_t word = memrt__load_relaxed(&leaf->word[i]);
        if (word != 0) {
            size_t page = (word & START_MASK) >> START_LOG2;
            visitor->visit(visitor->context, address + (i << GRANULE_LOG2) + (page << PAGE_LOG2),
                           word & BYTES_MASK, (memrt__mapping_use_t)(word & USE_MASK));
        }
    }
}

void memrt__mapping_table_visit(void (*visit)(void *context, uintptr_t address, size_t bytes,
                                              memrt__mapping_use_t use),
                                void *context)
{
    visitor_t visitor = {visit, context};
    for (size_t i = 0; i < FANOUT; i++) {
        const leaf_t *leaf = (const leaf_t *)memrt__load_acquire(&root[i]);
        if (leaf != NULL) {
            visit(context, (uintptr_t)leaf, sizeof(*leaf), MEMRT__USE_RECORDS);
            visit_leaf(&visitor, leaf, i << (GRANULE_LOG2 + FANOUT_LOG2));
        }
    }
}
