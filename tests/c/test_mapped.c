#include "support/suite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/alloc/allocator.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"

static const memrt_allocator_t *const mapped = &memrt__mapped_allocator;

/// Mappings of this process that have the advice for huge pages.
static size_t advised_mappings(void)
{
    char line[512];
    size_t count = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        count += strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL;
    }
    fclose(file);
    return count;
}

static bool kernel_takes_advice(void)
{
    return access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) == 0;
}

static size_t resident_bytes(void)
{
    size_t total, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%zu %zu", &total, &resident), 2);
    fclose(file);
    return resident * memrt__os_page_size();
}

TEST(a_large_block_is_advised_and_the_advice_goes_with_it)
{
    size_t before = advised_mappings();
    void *ptr = memrt__allocator_alloc(mapped, (size_t)8 << 20, 64, false);
    ck_assert_ptr_nonnull(ptr);
    if (kernel_takes_advice()) {
        ck_assert_uint_eq(advised_mappings(), before + 1);
    }
    memset(ptr, 1, (size_t)8 << 20);
    memrt__allocator_free(mapped, ptr, (size_t)8 << 20, 64);
    ck_assert_uint_eq(advised_mappings(), before);
}

TEST(the_advice_stays_home_when_a_block_grows_and_shrinks)
{
    size_t before = advised_mappings();
    size_t sizes[] = {(size_t)1 << 20, (size_t)9 << 20, (size_t)30 << 20, (size_t)5 << 20, 4096};
    void *ptr = memrt__allocator_alloc(mapped, 100, 4096, false);
    size_t size = 100;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ptr = memrt__allocator_realloc(mapped, ptr, size, sizes[i], 4096);
        ck_assert_ptr_nonnull(ptr);
        size = sizes[i];
        ck_assert_uint_le(advised_mappings(), before + 1);
    }
    memrt__allocator_free(mapped, ptr, size, 4096);
    ck_assert_uint_eq(advised_mappings(), before);
}

TEST(no_block_is_advised_when_the_option_is_off)
{
    size_t was = memrt__options.huge_pages;
    size_t before = advised_mappings();
    memrt__options.huge_pages = MEMRT__HUGE_OFF;
    void *ptr = memrt__allocator_alloc(mapped, (size_t)8 << 20, 64, false);
    ck_assert_uint_eq(advised_mappings(), before);
    ptr = memrt__allocator_realloc(mapped, ptr, (size_t)8 << 20, (size_t)16 << 20, 64);
    ck_assert_uint_eq(advised_mappings(), before);
    memrt__allocator_free(mapped, ptr, (size_t)16 << 20, 64);
    memrt__options.huge_pages = was;
}

TEST(zeroed_pages_take_no_memory_before_they_are_touched)
{
    size_t size = (size_t)512 << 20;
    size_t before = resident_bytes();
    void *ptr = memrt__allocator_alloc(mapped, size, 64, true);
    ck_assert_ptr_nonnull(ptr);
    ck_assert_uint_lt(resident_bytes(), before + ((size_t)64 << 20));
    memrt__allocator_free(mapped, ptr, size, 64);
}

TEST(a_freed_block_is_gone_from_the_address_space)
{
    size_t size = (size_t)64 << 20;
    void *ptr = memrt__allocator_alloc(mapped, size, 64, false);
    ck_assert_ptr_nonnull(ptr);
    memset(ptr, 1, size);
    size_t held = resident_bytes();
    memrt__allocator_free(mapped, ptr, size, 64);
    ck_assert_uint_lt(resident_bytes() + size / 2, held);
}
