#include "support/suite.h"

#include "runtime/os/frame_reader.h"

static memrt__frame_reader_t make_reader(const uint8_t *bytes, size_t size)
{
    return (memrt__frame_reader_t){bytes, bytes + size, false};
}

TEST(numbers_are_little_endian_and_stop_at_the_end)
{
    const uint8_t bytes[] = {1, 2, 3, 4, 5};
    memrt__frame_reader_t reader = make_reader(bytes, sizeof(bytes));
    ck_assert_uint_eq(memrt__frame_read(&reader, 1), 1);
    ck_assert_uint_eq(memrt__frame_read(&reader, 2), 0x0302);
    ck_assert(!reader.failed);
    ck_assert_uint_eq(memrt__frame_read(&reader, 4), 0);
    ck_assert(reader.failed);
    ck_assert_uint_eq(memrt__frame_read(&reader, 1), 0);
}

TEST(leb128_numbers_have_up_to_63_bits)
{
    const uint8_t bytes[] = {0xe5, 0x8e, 0x26, 0x9b, 0xf1, 0x59, 0x3f, 0x40};
    memrt__frame_reader_t reader = make_reader(bytes, sizeof(bytes));
    ck_assert_uint_eq(memrt__frame_read_unsigned(&reader), 624485);
    ck_assert_int_eq(memrt__frame_read_signed(&reader), -624485);
    ck_assert_int_eq(memrt__frame_read_signed(&reader), 63);
    ck_assert_int_eq(memrt__frame_read_signed(&reader), -64);
    ck_assert(!reader.failed);

    const uint8_t nine[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    reader = make_reader(nine, sizeof(nine));
    ck_assert_uint_eq(memrt__frame_read_unsigned(&reader), UINT64_MAX >> 1);
    ck_assert(!reader.failed);

    const uint8_t ten[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    reader = make_reader(ten, sizeof(ten));
    ck_assert_uint_eq(memrt__frame_read_unsigned(&reader), 0);
    ck_assert(reader.failed);
    reader = make_reader(ten, 3); /* ends within the number */
    ck_assert_int_eq(memrt__frame_read_signed(&reader), 0);
    ck_assert(reader.failed);
}

TEST(skip_stops_at_the_end)
{
    const uint8_t bytes[] = {1, 2, 3};
    memrt__frame_reader_t reader = make_reader(bytes, sizeof(bytes));
    memrt__frame_skip(&reader, 2);
    ck_assert_uint_eq(memrt__frame_read(&reader, 1), 3);
    memrt__frame_skip(&reader, 0);
    ck_assert(!reader.failed);
    memrt__frame_skip(&reader, UINT64_MAX);
    ck_assert(reader.failed && reader.at == reader.end);
}

typedef struct pointer_case {
    unsigned encoding;
    bool is_read;
    uint64_t value; /* without the position */
    bool is_relative;
} pointer_case_t;

static const pointer_case_t pointers[] = {
    {0x00, true, 0x8887868584838281, false}, /* absolute */
    {0x02, true, 0x8281, false},
    {0x03, true, 0x84838281, false},
    {0x04, true, 0x8887868584838281, false},
    {0x0a, true, 0xffffffffffff8281, false}, /* signed */
    {0x0b, true, 0xffffffff84838281, false},
    {0x0c, true, 0x8887868584838281, false},
    {0x1b, true, 0xffffffff84838281, true},
    {0x01, false, 0, false}, /* LEB128 */
    {0x09, false, 0, false},
    {0x05, false, 0, false},
    {0x3b, false, 0, false}, /* relative to the data */
    {0x9b, false, 0, false}, /* indirect */
    {MEMRT__FRAME_OMITTED, false, 0, false},
};

TEST_EACH(pointer_encodings_are_read_or_refused, sizeof(pointers) / sizeof(pointers[0]))
{
    const pointer_case_t *one = &pointers[index];
    const uint8_t bytes[] = {0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88};
    memrt__frame_reader_t reader = make_reader(bytes, sizeof(bytes));
    uint64_t position = one->is_relative ? (uintptr_t)bytes : 0;
    ck_assert_uint_eq(memrt__frame_read_pointer(&reader, one->encoding), one->value + position);
    ck_assert_int_eq(reader.failed, !one->is_read);
}

TEST(pointer_past_the_end_is_0)
{
    const uint8_t bytes[] = {0x81, 0x82, 0x83};
    memrt__frame_reader_t reader = make_reader(bytes, sizeof(bytes));
    ck_assert_uint_eq(memrt__frame_read_pointer(&reader, 0x1b), 0);
    ck_assert(reader.failed);
}
