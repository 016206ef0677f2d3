/// Conformance clauses on the allocator table itself, and on `destroy`.

#include "conformance/clauses.h"

void clause_table(trial_t *trial)
{
    const memrt_allocator_t *table = trial->allocator;
    EXPECT(trial, table->struct_size >= offsetof(memrt_allocator_t, free) + sizeof(table->free),
           "struct_size must have room for `free`, got %zu", table->struct_size);
    EXPECT(trial, table->version == MEMRT_ALLOCATOR_VERSION, "version is %u, not %u",
           (unsigned)table->version, MEMRT_ALLOCATOR_VERSION);
    EXPECT(trial, table->reserved == 0, "reserved is %u, not 0", (unsigned)table->reserved);
    EXPECT(trial, table->alloc != NULL, "`alloc` is NULL");
    EXPECT(trial, table->free != NULL, "`free` is NULL");
}

void clause_destroy(trial_t *trial)
{
    APPLIES(trial, trial->allocator->destroy != NULL, "the table has no `destroy`");
    for (size_t size = 1; size <= (size_t)4 << 20; size *= 8) {
        void *ptr = trial_alloc(trial, size, 16);
        EXPECT(trial, ptr != NULL, "%zu bytes were refused", size);
        trial_free(trial, ptr, size, 16);
    }
    trial->allocator->destroy(trial->allocator->ctx);
}
