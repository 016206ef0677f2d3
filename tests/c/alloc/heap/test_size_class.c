#include "support/suite.h"

#include "runtime/alloc/heap/span.h"
#include "runtime/alloc/heap/size_class.h"
#include "runtime/base/compiler.h"

static bool has_smallest_class(size_t size)
{
    unsigned class = memrt__class_of_data(size);
    return class < MEMRT__CLASS_HEADER && memrt__class_bytes(class) >= MEMRT_HEADER_SIZE + size &&
           (class == 0 || memrt__class_bytes(class - 1) < MEMRT_HEADER_SIZE + size);
}

TEST(each_size_has_the_smallest_class_with_room)
{
    size_t size = 1;
    while (size <= MEMRT__CLASS_DATA_MAX && has_smallest_class(size)) {
        size++;
    }
    ck_assert_uint_eq(size, MEMRT__CLASS_DATA_MAX + 1);
}

TEST(last_class_holds_the_largest_size)
{
    ck_assert_uint_eq(memrt__class_of_data(MEMRT__CLASS_DATA_MAX), MEMRT__CLASS_HEADER - 1);
    ck_assert_uint_eq(memrt__class_bytes(MEMRT__CLASS_HEADER - 1), MEMRT__CLASS_BYTES_MAX);
    ck_assert_uint_le(MEMRT__CLASS_BYTES_MAX, MEMRT__SPAN_MAX);
}

TEST(only_a_bare_header_has_the_class_of_headers)
{
    ck_assert_uint_eq(memrt__class_of_bytes(1), MEMRT__CLASS_HEADER);
    ck_assert_uint_eq(memrt__class_of_bytes(MEMRT_HEADER_SIZE), MEMRT__CLASS_HEADER);
    ck_assert_uint_eq(memrt__class_bytes(MEMRT__CLASS_HEADER), MEMRT_HEADER_SIZE);
    ck_assert_uint_eq(memrt__class_of_bytes(MEMRT_HEADER_SIZE + 1), 0);
    ck_assert_uint_eq(memrt__class_of_data(1), 0);
}

TEST(block_has_the_size_class_of_its_data)
{
    for (unsigned class = 0; class < MEMRT__CLASS_HEADER; class++) {
        size_t bytes = memrt__class_bytes(class);
        ck_assert_uint_eq(memrt__class_of_bytes(bytes), class);
        ck_assert_uint_eq(memrt__class_of_data(bytes - MEMRT_HEADER_SIZE), class);
    }
}

TEST(class_sizes_are_multiples_of_the_cache_line)
{
    for (unsigned class = 0; class < MEMRT__CLASS_TINY; class++) {
        ck_assert_uint_eq(memrt__class_bytes(class) % MEMRT__CACHE_LINE, 0);
    }
}

static size_t compute_class_room(size_t size)
{
    return memrt__class_bytes(memrt__class_of_data(size)) - MEMRT_HEADER_SIZE;
}

TEST(classes_waste_at_most_an_eighth_and_fit_powers_of_two)
{
    size_t size = 1025;
    while (size <= MEMRT__CLASS_DATA_MAX && (compute_class_room(size) - size) * 8 <= size) {
        size++;
    }
    ck_assert_uint_eq(size, MEMRT__CLASS_DATA_MAX + 1);
    for (size = 64; size <= MEMRT__CLASS_DATA_MAX; size *= 2) {
        ck_assert_uint_eq(compute_class_room(size), size);
    }
}

TEST(each_tiny_size_has_the_smallest_tiny_class)
{
    for (size_t size = 1; size <= MEMRT_TINY_MAX; size++) {
        unsigned class = (unsigned)memrt__class_of_tiny(size);
        ck_assert_uint_ge(class, MEMRT__CLASS_TINY);
        ck_assert_uint_lt(class, MEMRT__CLASSES);
        ck_assert_uint_ge(memrt__class_bytes(class), MEMRT__TINY_HEADER + size);
        ck_assert_uint_lt(memrt__class_bytes(class), MEMRT__TINY_HEADER + size + 32);
    }
}
