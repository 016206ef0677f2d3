/// Import malformed and valid DLPack tensors, and compare with an independent check in 128-bit
/// arithmetic. The data of an accepted tensor lies at the tensor's address. A refused tensor stays
/// with its producer. Shapes and strides have heap blocks of their exact size, so that
/// AddressSanitizer reports reads beyond the end.
///
/// No library replaces the check: libFuzzer makes the inputs, and the check must be independent of
/// memrt's code.

#include <string.h>

#include <memrt/dlpack.h>
#include <memrt/memrt.h>

#include "support/input.h"

enum { ROOM = 4096, FEW = 8 };

static const memrt_api_t *api;
static char memory[ROOM];
static size_t deleted;

__extension__ typedef __int128 wide_t;

/// Return a small number, or a number near a limit of int64_t.
static int64_t choose_number(input_t *input)
{
    static const int64_t edges[] = {INT64_MIN, INT64_MIN + 1, INT64_MIN / 8, -1, 0,
                                    1,         INT64_MAX / 8, INT64_MAX};
    unsigned how = input_byte(input);
    return (how & 1) != 0 ? edges[how >> 1 & 7] : (int8_t)how / 2;
}

static int64_t *choose_numbers(input_t *input, int32_t count)
{
    int64_t *numbers = malloc((size_t)count * sizeof(int64_t));
    HOLDS(numbers != NULL || count == 0);
    for (int32_t i = 0; i < count; i++) {
        numbers[i] = choose_number(input);
    }
    return numbers;
}

static void *choose_data(input_t *input)
{
    void *const places[] = {memory, memory + ROOM / 2, NULL, (void *)(UINTPTR_MAX - 100)};
    return places[input_byte(input) % 4];
}

static void count_versioned(DLManagedTensorVersioned *self)
{
    free(self->dl_tensor.shape);
    free(self->dl_tensor.strides);
    deleted++;
}

static void count_unversioned(DLManagedTensor *self)
{
    free(self->dl_tensor.shape);
    free(self->dl_tensor.strides);
    deleted++;
}

/// Return a random tensor. Some tensors claim a negative or too large number of dimensions.
static DLTensor choose_tensor(input_t *input)
{
    static const int32_t wrong[] = {-1, INT32_MIN, MEMRT_DLPACK_NDIM_MAX + 1, INT32_MAX};
    unsigned how = input_byte(input);
    int32_t ndim = input_byte(input) % FEW;
    DLTensor tensor = {.data = choose_data(input),
                       .device = {(DLDeviceType)((how & 1) != 0 ? input_byte(input) : kDLCPU), 0},
                       .ndim = ndim,
                       .dtype = {(uint8_t)(input_byte(input) % 20),
                                 (uint8_t)(1u << input_byte(input) % 9 | (how >> 1 & 1)),
                                 (uint16_t)(1 + (how >> 2 & 1))},
                       .byte_offset = (uint64_t)choose_number(input)};
    tensor.shape = (how & 8) != 0 ? NULL : choose_numbers(input, ndim);
    tensor.strides = (how & 16) != 0 ? NULL : choose_numbers(input, ndim);
    if ((how & 0xE0) == 0xE0) {
        tensor.ndim = wrong[input_byte(input) % 4];
    }
    return tensor;
}

/* --- The independent check, in 128-bit numbers. --- */

static wide_t itemsize_of(DLDataType dtype)
{
    static const char *const codes[] = {"1248", "1248", "248", "",  "2", "8g", "1", "1",
                                        "1",    "1",    "1",   "1", "1", "1",  "1"};
    char size = dtype.bits / 8 == 16 ? 'g' : (char)('0' + dtype.bits / 8);
    bool known = dtype.code < 15 && dtype.lanes == 1 && dtype.bits % 8 == 0 && dtype.bits > 0 &&
                 strchr(codes[dtype.code], size) != NULL;
    return known ? dtype.bits / 8 : 0;
}

static bool is_host(DLDevice device)
{
    return device.device_type == 1 || device.device_type == 3 || device.device_type == 11 ||
           device.device_type == 13;
}

/// Compute the range of bytes of all elements, relative to the first element. Return false if no
/// memory can hold the range.
static bool read_reach(const DLTensor *tensor, wide_t itemsize, wide_t *low, wide_t *high)
{
    wide_t bytes = itemsize;
    bool empty = false;
    *low = 0, *high = itemsize;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        empty |= tensor->shape[i] == 0;
        bytes *= tensor->shape[i] == 0 ? 1 : tensor->shape[i];
        if (tensor->shape[i] < 0 || bytes > PTRDIFF_MAX) {
            return false;
        }
    }
    for (int32_t i = 0; tensor->strides != NULL && i < tensor->ndim && !empty; i++) {
        wide_t far = (wide_t)(tensor->shape[i] - 1) * tensor->strides[i];
        if (far > PTRDIFF_MAX || far < -(wide_t)PTRDIFF_MAX) {
            return false;
        }
        *(far < 0 ? low : high) += far * itemsize;
    }
    if (tensor->strides == NULL || empty) {
        *high = empty ? 0 : bytes;
    }
    return *high - *low <= PTRDIFF_MAX;
}

static bool is_sound(const DLTensor *tensor, bool has_strides, wide_t *first, wide_t *low,
                     wide_t *high)
{
    wide_t itemsize = itemsize_of(tensor->dtype);
    if (!is_host(tensor->device) || itemsize == 0 || tensor->ndim < 0 || tensor->ndim > FEW ||
        (tensor->ndim > 0 && (tensor->shape == NULL || (has_strides && tensor->strides == NULL))) ||
        !read_reach(tensor, itemsize, low, high)) {
        return false;
    }
    *first = (wide_t)(uintptr_t)tensor->data + tensor->byte_offset;
    return *high == 0 || (tensor->data != NULL && *first + *low >= 0 && *first <= UINTPTR_MAX &&
                          *first + *high <= UINTPTR_MAX);
}

/* --- The result of memrt. --- */

static void expect_as_read(memrt_meminfo_t *mi, const DLTensor *tensor,
                           const memrt_dlpack_view_t *view, wide_t first, wide_t low, wide_t high)
{
    HOLDS(api->size(mi) == (size_t)(high - low) && view->offset == (uint64_t)-low);
    HOLDS(high == 0 || (wide_t)(uintptr_t)api->get_data(mi) == first + low);
    HOLDS(view->ndim == tensor->ndim && view->dtype.bits == tensor->dtype.bits);
}

/// Export the imported tensor again, and check that the exported tensor equals the imported one.
static void check_export(memrt_meminfo_t *mi, const memrt_dlpack_view_t *view)
{
    DLManagedTensorVersioned *tensor = NULL;
    HOLDS(api->dlpack_export(mi, view, &tensor, NULL) == MEMRT_OK);
    size_t bytes = (size_t)view->ndim * sizeof(int64_t);
    HOLDS(bytes == 0 || memcmp(tensor->dl_tensor.shape, view->shape, bytes) == 0);
    HOLDS(tensor->dl_tensor.data == NULL ||
          tensor->dl_tensor.data == (char *)api->get_data(mi) + view->offset);
    tensor->deleter(tensor);
    HOLDS(api->refcount(mi) == 1);
}

/// Check the result of an import. Return true if memrt accepted the tensor, and then also released
/// it.
static bool check_import(memrt_status_t status, memrt_meminfo_t *mi, const DLTensor *tensor,
                         const memrt_dlpack_view_t *view, bool has_strides, const char *why)
{
    wide_t first, low, high;
    bool sound = is_sound(tensor, has_strides, &first, &low, &high);
    HOLDS((status == MEMRT_OK) == sound && (why == NULL) == sound && (mi != NULL) == sound);
    if (sound) {
        expect_as_read(mi, tensor, view, first, low, high);
        check_export(mi, view);
        HOLDS(deleted == 0);
        api->release(mi);
        HOLDS(deleted == 1);
    }
    return sound;
}

static void do_versioned(input_t *input)
{
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_meminfo_t *mi = NULL;
    const char *why = NULL;
    uint32_t minor = input_byte(input) % 4;
    uint64_t flags = input_byte(input);
    DLManagedTensorVersioned managed = {.version = {1, minor},
                                        .deleter = count_versioned,
                                        .flags = flags,
                                        .dl_tensor = choose_tensor(input)};
    memrt_status_t status = api->dlpack_adopt(&managed, NULL, &view, &mi, &why);
    HOLDS(status != MEMRT_OK || api->readonly(mi) == (int)(flags & 1));
    if (!check_import(status, mi, &managed.dl_tensor, &view, minor >= 2, why)) {
        count_versioned(&managed);
    }
}

static void do_unversioned(input_t *input)
{
    memrt_dlpack_view_t view = {.struct_size = sizeof(view)};
    memrt_meminfo_t *mi = NULL;
    const char *why = NULL;
    DLManagedTensor managed = {.dl_tensor = choose_tensor(input), .deleter = count_unversioned};
    memrt_status_t status = api->dlpack_adopt_unversioned(&managed, NULL, &view, &mi, &why);
    HOLDS(status != MEMRT_OK || api->readonly(mi));
    if (!check_import(status, mi, &managed.dl_tensor, &view, false, why)) {
        count_unversioned(&managed);
    }
}

/// Get the table, and disable the CUDA driver. memrt then refuses device memory on every machine.
static void start(void)
{
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    HOLDS(api->option_set("cuda_driver", "there is none", NULL, 0) == MEMRT_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input_t input = {bytes, bytes + size};
    if (api == NULL) {
        start();
    }
    while (input_is_left(&input)) {
        deleted = 0;
        if (input_byte(&input) % 4 == 0) {
            do_unversioned(&input);
        } else {
            do_versioned(&input);
        }
    }
    return 0;
}
