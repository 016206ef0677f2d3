/// Model: two threads map memory in the same part of the address space, so that either thread may
/// make the leaf of the table. A third thread visits the table meanwhile. Both mappers find their
/// mappings. The visitor finds only existing mappings, in a leaf of zeros.

#include "tests/models/model.h"

#include <sys/mman.h>

/* Leaves of few words, to keep memory small. */
static size_t leaves[2][4], leaves_used;

static void *map_leaf(void)
{
    size_t *leaf = leaves[memrt__fetch_add_relaxed(&leaves_used, 1)];
    for (size_t i = 0; i < 4; i++) {
        leaf[i] = 0; /* plain stores: an unordered access is a race */
    }
    return leaf;
}

static void unmap_leaf(void *leaf)
{
    for (size_t i = 0; i < 4; i++) {
        ((size_t *)leaf)[i] = 7; /* the discarded leaf must stay invisible */
    }
}

#define mmap(...) map_leaf()
#define munmap(leaf, size) unmap_leaf(leaf)
#define FANOUT_LOG2 2u
#include "runtime/os/linux/mapping_table.c"

#define FIRST ((uintptr_t)1 << GRANULE_LOG2)
#define SECOND ((uintptr_t)2 << GRANULE_LOG2)
#define BYTES ((size_t)1 << GRANULE_LOG2)

static void *map_second(void *context)
{
    memrt__mapping_table_add((const void *)SECOND, BYTES);
    memrt__mapping_table_mark((const void *)SECOND, MEMRT__USE_BLOCK);
    assert(memrt__mapping_table_remove((const void *)SECOND) != 0);
    return context;
}

static void check_mapping(void *context, uintptr_t address, size_t bytes, memrt__mapping_use_t use)
{
    (void)context;
    bool is_leaf = bytes == sizeof(leaf_t);
    assert(is_leaf || bytes == BYTES);
    assert(is_leaf || address == FIRST || (address == SECOND && use != MEMRT__USE_CACHED));
}

static void *visit_all(void *context)
{
    memrt__mapping_table_visit(check_mapping, NULL);
    return context;
}

int main(void)
{
    pthread_t mapper = model_thread(map_second, NULL);
    pthread_t visitor = model_thread(visit_all, NULL);
    memrt__mapping_table_add((const void *)FIRST, BYTES);
    assert(memrt__mapping_table_remove((const void *)FIRST) != 0);
    model_join(mapper);
    model_join(visitor);
    return 0;
}
