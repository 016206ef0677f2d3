/// Call every creator with random sizes and alignments. A successful call returns memory of the
/// requested size and alignment. An impossible request fails with the documented error, and counts
/// as a failure.
///
/// No library knows the expected outcome: libFuzzer makes the sizes, and the contract is memrt's
/// own.

#include <string.h>

#include <memrt/memrt.h>

#include "support/input.h"

/// Arguments of a creator.
typedef struct request {
    size_t size, count, align;
    bool zeroed;
} request_t;

/// Result of a creator: a MemInfo, a block, or neither.
typedef struct result {
    memrt_meminfo_t *mi;
    void *block;
    memrt_status_t status;
    size_t align; ///< expected alignment of the data
} result_t;

static const memrt_api_t *api;
static memrt_policy_t *aligned; ///< a policy with an alignment of 4096 bytes

/// Largest size that the target writes completely. Larger blocks get only three bytes written.
#define TOUCHED ((size_t)1 << 20)

/// Return a number near a power of two, near a power of two below SIZE_MAX, or any number.
static size_t choose_number(input_t *input)
{
    unsigned how = input_byte(input);
    if (how >= 224) {
        return (size_t)input_number(input, 8);
    }
    size_t power = (size_t)1 << (how % 64);
    size_t near = power + (size_t)(int8_t)input_byte(input);
    return how < 128 ? near : SIZE_MAX - near + 1;
}

static bool is_alignment(size_t align)
{
    return (align & (align - 1)) == 0 && align <= MEMRT_ALIGN_MAX;
}

static size_t align_of(size_t asked)
{
    return asked < MEMRT_ALIGN_MIN ? MEMRT_ALIGN_MIN : asked;
}

static memrt_new_options_t options_of(const request_t *request)
{
    return (memrt_new_options_t){.struct_size = sizeof(memrt_new_options_t),
                                 .alignment = request->align,
                                 .zeroed = request->zeroed};
}

static result_t of_meminfo(memrt_status_t status, memrt_meminfo_t *mi, const request_t *request)
{
    HOLDS((status == MEMRT_OK) == (mi != NULL));
    HOLDS(is_alignment(request->align) ? status != MEMRT_EINVAL : status == MEMRT_EINVAL);
    return (result_t){.mi = mi, .status = status, .align = align_of(request->align)};
}

static result_t of_pointer(memrt_meminfo_t *mi, void *block, size_t align)
{
    bool none = mi == NULL && block == NULL;
    return (result_t){mi, block, none ? MEMRT_ENOMEM : MEMRT_OK, align};
}

static result_t do_meminfo_new(const request_t *request)
{
    memrt_new_options_t options = options_of(request);
    memrt_meminfo_t *mi = NULL;
    memrt_status_t status = api->meminfo_new(request->size, &options, &mi);
    return of_meminfo(status, mi, request);
}

static result_t do_resizable_new(const request_t *request)
{
    memrt_new_options_t options = options_of(request);
    memrt_meminfo_t *mi = NULL;
    memrt_status_t status = api->resizable_new(request->size, &options, &mi);
    return of_meminfo(status, mi, request);
}

static result_t do_allocate(const request_t *request)
{
    return of_pointer(api->allocate(request->size), NULL, MEMRT_ALIGN_MIN);
}

static void *external_malloc(size_t size, void *opaque)
{
    (void)opaque;
    return size > TOUCHED ? NULL : malloc(size);
}

static void external_free(void *ptr, void *opaque)
{
    (void)opaque;
    free(ptr);
}

static memrt_external_allocator_t external = {external_malloc, NULL, external_free, NULL};

static result_t do_allocate_external(const request_t *request)
{
    return of_pointer(api->allocate_external(request->size, &external), NULL, MEMRT_ALIGN_MIN);
}

static result_t do_allocate_from(const request_t *request)
{
    return of_pointer(api->allocate_from(request->size, aligned), NULL, 4096);
}

static result_t do_new_external(const request_t *request)
{
    memrt_new_options_t options = options_of(request);
    memrt_meminfo_t *mi = NULL;
    options.external = &external;
    memrt_status_t status = api->meminfo_new(request->size, &options, &mi);
    return of_meminfo(status, mi, request);
}

static result_t do_block_alloc(const request_t *request)
{
    return of_pointer(NULL, api->block_alloc(NULL, request->size), 16);
}

static result_t do_block_of_policy(const request_t *request)
{
    return of_pointer(NULL, api->block_alloc(aligned, request->size), 4096);
}

static result_t do_block_calloc(const request_t *request)
{
    void *block = api->block_calloc(NULL, request->count, request->size);
    size_t product;
    HOLDS(block == NULL || !__builtin_mul_overflow(request->count, request->size, &product));
    return of_pointer(NULL, block, 16);
}

/// Resize a block of at most 3000 bytes, and check that the contents survive.
static result_t do_block_realloc(const request_t *request)
{
    size_t few = request->count % 3000 + 1;
    char *block = api->block_alloc(NULL, few), *moved;
    HOLDS(block != NULL);
    memset(block, 7, few);
    moved = api->block_realloc(NULL, block, request->size);
    char *now = moved == NULL ? block : moved;
    size_t left = moved == NULL || few < request->size ? few : request->size;
    HOLDS(left == 0 || (now[0] == 7 && memcmp(now, now + 1, left - 1) == 0));
    if (moved == NULL) {
        api->block_free(NULL, block, 0);
    }
    return of_pointer(NULL, moved, 16);
}

static result_t do_resizable_realloc(const request_t *request)
{
    memrt_meminfo_t *mi = NULL;
    memrt_new_options_t options = options_of(request);
    memrt_status_t status = api->resizable_new(100, &options, &mi);
    if (status != MEMRT_OK) { /* the alignment may be invalid, or need too much memory */
        return of_meminfo(status, mi, request);
    }
    void *before = api->get_data(mi);
    memset(before, 7, 100);
    char *data = api->resizable_realloc(mi, request->size);
    if (data == NULL) {
        HOLDS(api->get_data(mi) == before && api->size(mi) == 100 && *(char *)before == 7);
        api->release(mi);
        return (result_t){.status = MEMRT_ENOMEM};
    }
    HOLDS(request->size == 0 || data[0] == 7);
    return of_pointer(mi, NULL, align_of(request->align));
}

static void use(char *data, size_t size, const request_t *request, size_t align)
{
    HOLDS(((uintptr_t)data & (align - 1)) == 0);
    if (size == 0) {
        return;
    }
    if (request->zeroed) {
        HOLDS(data[0] == 0 && data[size - 1] == 0 && data[size / 2] == 0);
    }
    data[0] = data[size / 2] = data[size - 1] = 1;
    if (size <= TOUCHED) {
        memset(data, 2, size);
    }
}

static void give_back(result_t *result, size_t size)
{
    if (result->mi != NULL) {
        api->release(result->mi);
    } else {
        api->block_free(NULL, result->block, 0);
    }
    if (size > TOUCHED) {
        api->release_unused();
    }
}

static memrt_stats_t stats_now(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    HOLDS(api->stats_read(NULL, &stats) == MEMRT_OK);
    return stats;
}

static void act(input_t *input)
{
    static result_t (*const creators[])(const request_t *) = {
        do_meminfo_new,   do_resizable_new,     do_allocate,     do_allocate_external,
        do_new_external,  do_block_alloc,       do_block_calloc, do_block_of_policy,
        do_block_realloc, do_resizable_realloc, do_allocate_from};
    unsigned which = input_byte(input) % (sizeof(creators) / sizeof(creators[0]));
    bool calloc_like = creators[which] == do_block_calloc;
    request_t request = {.zeroed = input_byte(input) % 2 != 0};
    request.size = choose_number(input);
    request.count = choose_number(input);
    request.align =
        input_byte(input) % 4 == 0 ? choose_number(input) : (size_t)1 << input_byte(input) % 16;
    memrt_stats_t before = stats_now();
    result_t result = creators[which](&request);
    memrt_stats_t after = stats_now();
    HOLDS(after.failed - before.failed == (result.status == MEMRT_ENOMEM));
    if (result.status == MEMRT_OK) {
        size_t size = calloc_like ? request.count * request.size : request.size;
        HOLDS(size <= PTRDIFF_MAX && after.live == before.live + size);
        HOLDS(result.mi == NULL || api->size(result.mi) == size);
        request.zeroed =
            calloc_like ||
            (request.zeroed && result.mi != NULL && creators[which] != do_allocate &&
             creators[which] != do_allocate_external && creators[which] != do_allocate_from &&
             creators[which] != do_resizable_realloc);
        use(result.mi != NULL ? api->get_data(result.mi) : result.block, size, &request,
            result.align);
        give_back(&result, size);
    }
    after = stats_now();
    HOLDS(after.live == before.live && after.alloc - after.free == before.alloc - before.free);
    HOLDS(after.reserved - after.cached == before.reserved - before.cached);
}

static void begin(void)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .alignment = 4096};
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    HOLDS(api->policy_new(&options, &aligned) == MEMRT_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    input_t input = {bytes, bytes + size};
    if (api == NULL) {
        begin();
    }
    while (input_is_left(&input)) {
        act(&input);
    }
    return 0;
}
