#include "support/suite.h"

#include <string.h>

#include <memrt/arrow.h>

#include "support/books.h"
#include "support/crew.h"

static const char untouched[] = "untouched";

/* --- Producer of arrays. --- */

static double numbers[24];
static const uint8_t bitmap[] = {0xFE, 0x00, 0x80}; /* 24 elements, 16 of them null */

/// Array of another library, with a count of its releases.
typedef struct foreign {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[2];
    size_t released;
} foreign_t;

static void count_schema(struct ArrowSchema *self)
{
    self->release = NULL;
}

static void count_array(struct ArrowArray *self)
{
    ((foreign_t *)self->private_data)->released++;
    self->release = NULL;
}

/// Fill `out` with an array over all of `numbers`.
static void create_foreign_array(foreign_t *out)
{
    *out = (foreign_t){.schema = {.format = "g", .name = "numbers", .release = count_schema},
                       .array = {.length = 24,
                                 .n_buffers = 2,
                                 .buffers = out->buffers,
                                 .release = count_array,
                                 .private_data = out},
                       .buffers = {NULL, numbers}};
}

static memrt_meminfo_t *adopt_array(foreign_t *foreign, memrt_arrow_view_t *view)
{
    memrt_meminfo_t *mi = NULL;
    const char *why = untouched;
    *view = (memrt_arrow_view_t){.struct_size = sizeof(*view)};
    memrt_status_t status =
        api->arrow_adopt(&foreign->schema, &foreign->array, NULL, view, &mi, &why);
    ck_assert_msg(status == MEMRT_OK, "%s", why);
    ck_assert_ptr_eq(why, untouched);
    return mi;
}

/// Check the refusal of an import: the reason contains `word`, and nothing has changed. The caller
/// still owns and releases the array.
static void expect_refusal(foreign_t *foreign, memrt_status_t expected, const char *word)
{
    memrt_meminfo_t *mi = NULL;
    memrt_arrow_view_t view = {.struct_size = sizeof(view), .length = -5};
    struct ArrowArray before = foreign->array;
    const char *why = "";
    ck_assert_int_eq(api->arrow_adopt(&foreign->schema, &foreign->array, NULL, &view, &mi, &why),
                     expected);
    ck_assert_msg(strstr(why, word) != NULL, "\"%s\" lacks \"%s\"", why, word);
    ck_assert_int_eq(api->arrow_adopt(&foreign->schema, &foreign->array, NULL, &view, &mi, NULL),
                     expected);
    ck_assert_ptr_null(mi);
    ck_assert_int_eq(view.length, -5);
    ck_assert_uint_eq(foreign->released, 0);
    ck_assert_mem_eq(&foreign->array, &before, sizeof(before));
}

/* --- Consumer. --- */

static memrt_arrow_view_t describe_doubles(int64_t length)
{
    return (memrt_arrow_view_t){
        .struct_size = sizeof(memrt_arrow_view_t), .format = "g", .length = length};
}

static void expect_export_refused(memrt_meminfo_t *mi, const memrt_arrow_view_t *view,
                                  memrt_status_t expected, const char *word)
{
    struct ArrowSchema schema = {.name = untouched};
    struct ArrowArray array = {.length = -7};
    const char *why = "";
    ck_assert_int_eq(api->arrow_export(mi, view, &schema, &array, &why), expected);
    ck_assert_msg(strstr(why, word) != NULL, "\"%s\" lacks \"%s\"", why, word);
    ck_assert_int_eq(api->arrow_export(mi, view, &schema, &array, NULL), expected);
    ck_assert_ptr_eq(schema.name, untouched);
    ck_assert_int_eq(array.length, -7);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(api->holders(mi, NULL, 0, 0), 0);
}

/* --- Exports. --- */

TEST(export_describes_elements_and_copies_texts)
{
    memrt_meminfo_t *mi = api->allocate(24 * 8);
    memrt_arrow_view_t view = describe_doubles(20);
    struct ArrowSchema schema;
    struct ArrowArray array;
    char name[] = "column";
    view.name = name;
    view.offset = 32;
    ck_assert_int_eq(api->arrow_export(mi, &view, &schema, &array, NULL), MEMRT_OK);
    name[0] = 'x'; /* texts are copied */
    ck_assert_str_eq(schema.format, "g");
    ck_assert_str_eq(schema.name, "column");
    ck_assert_ptr_null(schema.metadata);
    ck_assert_int_eq(schema.flags, 0);
    ck_assert_int_eq(schema.n_children, 0);
    ck_assert_int_eq(array.length, 20);
    ck_assert_int_eq(array.null_count, 0);
    ck_assert_int_eq(array.offset, 0);
    ck_assert_int_eq(array.n_buffers, 2);
    ck_assert_ptr_null(array.buffers[0]);
    ck_assert_ptr_eq(array.buffers[1], (char *)api->get_data(mi) + 32);
    schema.release(&schema);
    array.release(&array);
    ck_assert_ptr_null(schema.release);
    ck_assert_ptr_null(array.release);
    api->release(mi);
}

TEST(export_holds_named_reference_until_release)
{
    memrt_meminfo_t *mi = api->allocate(64);
    memrt_arrow_view_t view = describe_doubles(8);
    struct ArrowArray array;
    memrt_holder_t row;
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &array, NULL), MEMRT_OK);
    ck_assert_uint_eq(api->refcount(mi), 2);
    ck_assert_uint_eq(api->holders(mi, &row, sizeof(row), 1), 1);
    ck_assert_str_eq(row.name, MEMRT_ARROW_HOLDER);
    ck_assert_int_eq(row.kind, MEMRT_HOLDER_EXPORT);
    array.release(&array);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(api->holders(mi, NULL, 0, 0), 0);
    api->release(mi);
}

TEST(schema_export_holds_no_reference)
{
    memrt_meminfo_t *mi = api->allocate(64);
    memrt_arrow_view_t view = describe_doubles(8);
    struct ArrowSchema schema;
    ck_assert_int_eq(api->arrow_export(mi, &view, &schema, NULL, NULL), MEMRT_OK);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_str_eq(schema.name, "");
    api->release(mi);
    ck_assert_str_eq(schema.format, "g");
    schema.release(&schema);
}

TEST(moved_export_outlives_caller_reference)
{
    memrt_meminfo_t *mi = api->allocate(64);
    memrt_arrow_view_t view = describe_doubles(8);
    struct ArrowArray array, moved;
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &array, NULL), MEMRT_OK);
    api->release(mi);
    moved = array;
    array.release = NULL;
    memset((void *)(uintptr_t)moved.buffers[1], 7, 64);
    moved.release(&moved);
}

static void export_and_release(size_t index, void *context)
{
    memrt_arrow_view_t view = describe_doubles(8);
    for (int i = 0; i < 200; i++) {
        struct ArrowArray array;
        REQUIRE(api->arrow_export(context, &view, NULL, &array, NULL) == MEMRT_OK);
        REQUIRE(api->holders(context, NULL, 0, 0) == 1);
        array.release(&array);
    }
    (void)index;
}

TEST(concurrent_exports_of_meminfo_balance_references)
{
    memrt_meminfo_t *mi = api->allocate(64);
    crew_run(6, export_and_release, mi);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(api->holders(mi, NULL, 0, 0), 0);
    api->release(mi);
}

TEST(validity_bitmap_is_exported_and_held)
{
    memrt_meminfo_t *mi = api->allocate(24 * 8), *bits = api->allocate(4);
    memrt_arrow_view_t view = describe_doubles(24);
    struct ArrowSchema schema;
    struct ArrowArray array;
    view.validity_owner = bits;
    view.validity = (uint8_t *)api->get_data(bits) + 1;
    view.null_count = -1;
    ck_assert_int_eq(api->arrow_export(mi, &view, &schema, &array, NULL), MEMRT_OK);
    ck_assert_int_eq(schema.flags, ARROW_FLAG_NULLABLE);
    ck_assert_int_eq(array.null_count, -1);
    ck_assert_ptr_eq(array.buffers[0], view.validity);
    ck_assert_uint_eq(api->refcount(bits), 2);
    ck_assert_uint_eq(api->holders(bits, NULL, 0, 0), 1);
    schema.release(&schema);
    array.release(&array);
    ck_assert_uint_eq(api->refcount(bits), 1);
    api->release(mi);
    api->release(bits);
}

TEST(meminfo_without_data_exports_null_buffer)
{
    foreign_t foreign;
    memrt_arrow_view_t view;
    create_foreign_array(&foreign);
    foreign.array.length = 0;
    foreign.buffers[1] = NULL;
    memrt_meminfo_t *mi = adopt_array(&foreign, &view);
    ck_assert_int_eq(api->arrow_export(mi, &view, NULL, &foreign.array, NULL), MEMRT_OK);
    ck_assert_ptr_null(foreign.array.buffers[1]);
    foreign.array.release(&foreign.array);
    api->release(mi);
    ck_assert_uint_eq(foreign.released, 1);
}

TEST(invalid_bitmap_is_not_exported)
{
    memrt_meminfo_t *mi = api->allocate(24 * 8), *bits = api->allocate(3);
    memrt_arrow_view_t good = describe_doubles(24), view;
    good.validity_owner = bits;
    good.validity = api->get_data(bits);
    view = good;
    view.validity++;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "bitmap");
    view.validity -= 2;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "bitmap");
    view = good;
    view.validity_owner = NULL;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    view = good;
    view.validity = NULL;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    view = good;
    view.first_bit = 1;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    view = describe_doubles(24);
    view.null_count = 1;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "bitmap");
    view.null_count = 25;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    view.null_count = -2;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    api->release(mi);
    api->release(bits);
}

TEST(elements_outside_data_are_not_exported)
{
    static const struct {
        int64_t length;
        uint64_t offset;
    } bad[] = {{9, 0}, {8, 1}, {-1, 0}, {0, 65}, {1, UINT64_MAX}, {INT64_MAX, 0}, {INT64_MIN, 0}};
    memrt_meminfo_t *mi = api->allocate(64);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memrt_arrow_view_t view = describe_doubles(bad[i].length);
        view.offset = bad[i].offset;
        expect_export_refused(mi, &view, MEMRT_EINVAL, "outside");
    }
    api->release(mi);
}

TEST(invalid_view_is_not_exported)
{
    memrt_meminfo_t *mi = api->allocate(64);
    memrt_arrow_view_t view = describe_doubles(8);
    view.struct_size = 8;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    view = describe_doubles(8);
    view.flags = 4;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "view");
    view = describe_doubles(8);
    view.flags = MEMRT_ARROW_BOOL8;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "truth");
    view.format = NULL;
    expect_export_refused(mi, &view, MEMRT_EINVAL, "format");
    api->release(mi);
}

/// Formats and bytes per element; 0: arrays of the format are refused. Source: the tables "Data
/// type description -- format strings" of the specification of Arrow's C data interface.
static const struct {
    const char *format;
    size_t width;
} formats[] = {
    {"c", 1},
    {"C", 1},
    {"s", 2},
    {"S", 2},
    {"i", 4},
    {"I", 4},
    {"l", 8},
    {"L", 8},
    {"e", 2},
    {"f", 4},
    {"g", 8},
    {"w:1", 1},
    {"w:42", 42},
    {"w:", 0},
    {"w:0", 0},
    {"w:-1", 0},
    {"w:4x", 0},
    {"w4", 0},
    {"w", 0},
    {"d:19,10", 16},
    {"d:5,2,32", 4},
    {"d:5,-2,64", 8},
    {"d:76,0,256", 32},
    {"d:76,0,100", 0},
    {"d:76", 0},
    {"d:76,", 0},
    {"d:76,-", 0},
    {"d:,1", 0},
    {"d:1,1,", 0},
    {"d:1,1,32,", 0},
    {"d:", 0},
    {"tdD", 4},
    {"tdm", 8},
    {"tts", 4},
    {"ttm", 4},
    {"ttu", 8},
    {"ttn", 8},
    {"tss:", 8},
    {"tsm:UTC", 8},
    {"tsu:Asia/Tokyo", 8},
    {"tsn:", 8},
    {"tsx:", 0},
    {"tss", 0},
    {"ts", 0},
    {"ts:", 0},
    {"tDs", 8},
    {"tDm", 8},
    {"tDu", 8},
    {"tDn", 8},
    {"tDx", 0},
    {"tiM", 4},
    {"tiD", 8},
    {"tin", 16},
    {"t", 0},
    {"tdDx", 0},
    {"n", 0},
    {"b", 0},
    {"z", 0},
    {"u", 0},
    {"vu", 0},
    {"+s", 0},
    {"+l", 0},
    {"+w:3", 0},
    {"", 0},
    {"gg", 0},
    {"w:99999999999999999999", 0},
    {"w:18446744073709551616", 0},
    {"d:99999999999999999999,1", 0},
};

TEST_EACH(only_fixed_width_formats_are_adopted, sizeof(formats) / sizeof(formats[0]))
{
    foreign_t foreign;
    memrt_arrow_view_t view;
    create_foreign_array(&foreign);
    foreign.schema.format = formats[index].format;
    foreign.array.length = 2;
    if (formats[index].width == 0) {
        expect_refusal(&foreign, MEMRT_ENOTSUP, "format");
        return;
    }
    memrt_meminfo_t *mi = adopt_array(&foreign, &view);
    ck_assert_uint_eq(api->size(mi), 2 * formats[index].width);
    ck_assert_str_eq(view.format, formats[index].format);
    api->release(mi);
}

TEST(variable_width_format_is_not_exported)
{
    memrt_meminfo_t *mi = api->allocate(64);
    memrt_arrow_view_t view = describe_doubles(8);
    view.format = "u";
    expect_export_refused(mi, &view, MEMRT_ENOTSUP, "format");
    api->release(mi);
}

/* --- Imports. --- */

TEST(array_is_adopted_without_copy_and_released_once)
{
    foreign_t foreign;
    memrt_arrow_view_t view;
    memrt_stats_t before = stats_of(NULL), during;
    create_foreign_array(&foreign);
    memrt_meminfo_t *mi = adopt_array(&foreign, &view);
    during = stats_of(NULL);
    ck_assert_ptr_null(foreign.array.release); /* the array was moved */
    ck_assert_ptr_eq(api->get_data(mi), numbers);
    ck_assert_uint_eq(api->size(mi), sizeof(numbers));
    ck_assert_int_eq(api->readonly(mi), 1);
    ck_assert_uint_eq(during.adopted - before.adopted, sizeof(numbers));
    ck_assert_str_eq(view.name, "numbers");
    ck_assert_int_eq(view.length, 24);
    ck_assert_int_eq(view.null_count, 0);
    ck_assert_ptr_null(view.validity);
    api->acquire(mi);
    api->release(mi);
    ck_assert_uint_eq(foreign.released, 0);
    api->release(mi);
    ck_assert_uint_eq(foreign.released, 1);
}

TEST(array_cannot_be_adopted_twice)
{
    foreign_t foreign;
    memrt_arrow_view_t view;
    create_foreign_array(&foreign);
    memrt_meminfo_t *mi = adopt_array(&foreign, &view);
    expect_refusal(&foreign, MEMRT_EINVAL, "array was released");
    api->release(mi);
    ck_assert_uint_eq(foreign.released, 1);
}

static void count_call(void *data, size_t size, void *calls)
{
    ck_assert_ptr_eq(data, numbers);
    ck_assert_uint_eq(size, sizeof(numbers));
    ++*(size_t *)calls;
}

TEST(caller_destructor_replaces_array_release)
{
    foreign_t foreign;
    memrt_meminfo_t *mi;
    memrt_arrow_view_t view = {.struct_size = sizeof(view)};
    size_t calls = 0;
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = count_call, .dtor_info = &calls};
    create_foreign_array(&foreign);
    ck_assert_int_eq(api->arrow_adopt(&foreign.schema, &foreign.array, &options, &view, &mi, NULL),
                     MEMRT_OK);
    ck_assert(foreign.array.release == count_array);
    api->release(mi);
    ck_assert_uint_eq(foreign.released, 0);
    ck_assert_uint_eq(calls, 1);
}

TEST(offset_applies_to_elements_and_validity_bits)
{
    foreign_t foreign;
    memrt_arrow_view_t view;
    create_foreign_array(&foreign);
    foreign.buffers[0] = bitmap;
    foreign.array.offset = 10;
    foreign.array.length = 14;
    foreign.array.null_count = -1;
    memrt_meminfo_t *mi = adopt_array(&foreign, &view);
    ck_assert_ptr_eq(api->get_data(mi), numbers + 10);
    ck_assert_uint_eq(api->size(mi), 14 * 8);
    ck_assert_ptr_eq(view.validity, bitmap + 1);
    ck_assert_int_eq(view.first_bit, 2);
    ck_assert_int_eq(view.null_count, 13);
    api->release(mi);
}

TEST_EACH(nulls_are_counted_from_any_bit_offset, 24)
{
    /* the sums of the first bits of neighbouring bytes differ, however many bits are summed */
    static const uint8_t bits[] = {0x9A, 0x37, 0xC6};
    for (int64_t length = 0; index + length <= 24; length++) {
        foreign_t foreign;
        memrt_arrow_view_t view;
        int64_t nulls = 0;
        for (int64_t i = index; i < index + length; i++) {
            nulls += (bits[i / 8] >> (i % 8) & 1) == 0;
        }
        create_foreign_array(&foreign);
        foreign.buffers[0] = bits;
        foreign.array.offset = index;
        foreign.array.length = length;
        foreign.array.null_count = -1;
        memrt_meminfo_t *mi = adopt_array(&foreign, &view);
        ck_assert_int_eq(view.null_count, nulls);
        ck_assert((view.validity != NULL) == (nulls != 0));
        api->release(mi);
    }
}

TEST(bitmap_is_not_read_without_nulls)
{
    foreign_t foreign;
    memrt_arrow_view_t view;
    create_foreign_array(&foreign);
    foreign.buffers[0] = (const void *)8; /* not a valid address */
    memrt_meminfo_t *mi = adopt_array(&foreign, &view);
    ck_assert_ptr_null(view.validity);
    api->release(mi);
    create_foreign_array(&foreign);
    foreign.array.null_count = -1; /* unknown number of nulls, but no bitmap */
    mi = adopt_array(&foreign, &view);
    ck_assert_int_eq(view.null_count, 0);
    api->release(mi);
}

TEST(adoption_without_elements_ignores_data)
{
    const void *addresses[] = {NULL, numbers, (const void *)8};
    for (size_t i = 0; i < 3; i++) {
        foreign_t foreign;
        memrt_arrow_view_t view;
        create_foreign_array(&foreign);
        foreign.buffers[1] = addresses[i];
        foreign.array.length = 0;
        foreign.array.null_count = -1;
        foreign.array.offset = INT64_MAX;
        memrt_meminfo_t *mi = adopt_array(&foreign, &view);
        ck_assert_uint_eq(api->size(mi), 0);
        api->release(mi);
        ck_assert_uint_eq(foreign.released, 1);
    }
}

TEST(released_array_or_schema_is_refused)
{
    foreign_t foreign;
    create_foreign_array(&foreign);
    foreign.array.release = NULL;
    expect_refusal(&foreign, MEMRT_EINVAL, "array was released");
    create_foreign_array(&foreign);
    foreign.schema.release = NULL;
    expect_refusal(&foreign, MEMRT_EINVAL, "schema was released");
}

TEST(invalid_length_offset_or_null_count_is_refused)
{
    foreign_t foreign;
    struct ArrowArray *array = &foreign.array;
    create_foreign_array(&foreign);
    array->length = -1;
    expect_refusal(&foreign, MEMRT_EINVAL, "length");
    create_foreign_array(&foreign);
    array->offset = -1;
    expect_refusal(&foreign, MEMRT_EINVAL, "offset");
    create_foreign_array(&foreign);
    array->null_count = -2;
    expect_refusal(&foreign, MEMRT_EINVAL, "nulls");
    array->null_count = 25;
    expect_refusal(&foreign, MEMRT_EINVAL, "nulls");
    array->null_count = 24;
    expect_refusal(&foreign, MEMRT_EINVAL, "bitmap");
}

TEST(missing_data_or_wrong_buffer_count_is_refused)
{
    foreign_t foreign;
    struct ArrowArray *array = &foreign.array;
    create_foreign_array(&foreign);
    foreign.buffers[1] = NULL;
    expect_refusal(&foreign, MEMRT_EINVAL, "no data");
    create_foreign_array(&foreign);
    array->buffers = NULL;
    expect_refusal(&foreign, MEMRT_EINVAL, "buffers");
    static const int64_t counts[] = {-1, 0, 1, 3, INT64_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        create_foreign_array(&foreign);
        array->n_buffers = counts[i];
        expect_refusal(&foreign, MEMRT_EINVAL, "buffers");
    }
}

TEST(buffers_outside_address_space_are_refused)
{
    foreign_t foreign;
    struct ArrowArray *array = &foreign.array;
    create_foreign_array(&foreign);
    array->length = INT64_MAX;
    expect_refusal(&foreign, MEMRT_EINVAL, "address space");
    array->length = INT64_MAX / 8 + 1;
    expect_refusal(&foreign, MEMRT_EINVAL, "address space");
    create_foreign_array(&foreign);
    array->offset = INT64_MAX;
    expect_refusal(&foreign, MEMRT_EINVAL, "address space");
    create_foreign_array(&foreign);
    foreign.buffers[1] = (const void *)(UINTPTR_MAX - 100);
    expect_refusal(&foreign, MEMRT_EINVAL, "address space");
    array->length = 1;
    array->offset = 13;
    expect_refusal(&foreign, MEMRT_EINVAL, "address space");
    create_foreign_array(&foreign);
    array->null_count = -1;
    foreign.buffers[0] = (const void *)UINTPTR_MAX;
    expect_refusal(&foreign, MEMRT_EINVAL, "bitmap");
}

TEST(children_and_dictionaries_are_refused)
{
    foreign_t foreign;
    create_foreign_array(&foreign);
    foreign.schema.n_children = 1;
    expect_refusal(&foreign, MEMRT_ENOTSUP, "children");
    create_foreign_array(&foreign);
    foreign.schema.dictionary = &foreign.schema;
    expect_refusal(&foreign, MEMRT_ENOTSUP, "dictionary");
    create_foreign_array(&foreign);
    foreign.array.n_children = 1;
    expect_refusal(&foreign, MEMRT_EINVAL, "buffers");
    create_foreign_array(&foreign);
    foreign.array.dictionary = &foreign.array;
    expect_refusal(&foreign, MEMRT_EINVAL, "buffers");
}

TEST(invalid_options_or_views_are_refused)
{
    foreign_t foreign;
    memrt_meminfo_t *mi = NULL;
    memrt_arrow_view_t view = {.struct_size = sizeof(view)};
    memrt_new_options_t good = {.struct_size = sizeof(good)}, options[3] = {good, good, good};
    options[0].struct_size = 0;
    options[1].zeroed = 1;
    options[2].alignment = 128;
    create_foreign_array(&foreign);
    for (size_t i = 0; i < 3; i++) {
        const char *why = "";
        ck_assert_int_eq(
            api->arrow_adopt(&foreign.schema, &foreign.array, &options[i], &view, &mi, &why),
            MEMRT_EINVAL);
        ck_assert_ptr_nonnull(strstr(why, "options"));
    }
    view.struct_size = 8;
    ck_assert_int_eq(api->arrow_adopt(&foreign.schema, &foreign.array, NULL, &view, &mi, NULL),
                     MEMRT_EINVAL);
    ck_assert_ptr_null(mi);
    ck_assert(foreign.array.release == count_array);
}

/* --- Booleans. --- */

TEST(bool8_survives_export_and_adoption)
{
    foreign_t foreign;
    memrt_meminfo_t *mi = api->allocate(10);
    memrt_arrow_view_t view = describe_doubles(10), back;
    view.format = "c";
    view.flags = MEMRT_ARROW_BOOL8;
    create_foreign_array(&foreign);
    ck_assert_int_eq(api->arrow_export(mi, &view, &foreign.schema, &foreign.array, NULL), MEMRT_OK);
    ck_assert_ptr_nonnull(foreign.schema.metadata);
    memrt_meminfo_t *adopted = adopt_array(&foreign, &back);
    ck_assert_uint_eq(back.flags, MEMRT_ARROW_BOOL8);
    ck_assert_ptr_eq(api->get_data(adopted), api->get_data(mi));
    foreign.schema.release(&foreign.schema);
    api->release(adopted);
    ck_assert_uint_eq(api->refcount(mi), 1);
    api->release(mi);
}

/// Metadata of one key and its value, without the number of pairs.
#define PAIR(key_length, key, value_length, value)                                                 \
    key_length "\0\0\0" key value_length "\0\0\0" value
#define BOOL8 PAIR("\x14", "ARROW:extension:name", "\x0b", "arrow.bool8")

static const struct {
    const char *metadata;
    uint64_t flags;
} metadata[] = {
    {NULL, 0},
    {"\0\0\0\0", 0},
    {"\1\0\0\0" BOOL8, MEMRT_ARROW_BOOL8},
    {"\2\0\0\0" PAIR("\1", "k", "\2", "vv") BOOL8, MEMRT_ARROW_BOOL8},
    {"\2\0\0\0" BOOL8 PAIR("\1", "k", "\0", ""), MEMRT_ARROW_BOOL8},
    {"\1\0\0\0" PAIR("\x14", "ARROW:extension:name", "\x0a", "arrow.uuid"), 0},
    {"\1\0\0\0" PAIR("\x14", "ARROW:extension:name", "\x0c", "arrow.bool88"), 0},
    {"\1\0\0\0" PAIR("\x14", "ARROW:extension:game", "\x0b", "arrow.bool8"), 0},
    {"\1\0\0\0\xff\xff\xff\xff", 0},
    {"\1\0\0\0\1\0\0\0k\xff\xff\xff\xff", 0},
    {"\xff\xff\xff\xff" BOOL8, 0},
};

TEST_EACH(bool8_extension_is_read_from_metadata, sizeof(metadata) / sizeof(metadata[0]))
{
    foreign_t foreign;
    memrt_arrow_view_t view;
    create_foreign_array(&foreign);
    foreign.schema.format = "c";
    foreign.schema.metadata = metadata[index].metadata;
    memrt_meminfo_t *mi = adopt_array(&foreign, &view);
    ck_assert_uint_eq(view.flags, metadata[index].flags);
    api->release(mi);
}

TEST(bool8_of_wrong_width_is_refused)
{
    foreign_t foreign;
    create_foreign_array(&foreign);
    foreign.schema.metadata = "\1\0\0\0" BOOL8;
    expect_refusal(&foreign, MEMRT_EINVAL, "truth");
}
