/// Pass structs of callers built against other versions. Missing fields of shorter structs count as
/// zero. Additional fields of longer structs are ignored. Allocator tables may lack required
/// functions. Each struct has a heap block of its exact size, so that AddressSanitizer reports
/// accesses beyond the end.
///
/// No library knows the expected outcome: libFuzzer makes the inputs, and the structs are memrt's
/// own.

#include <string.h>

#include <memrt/memrt.h>

#include "support/input.h"

static const memrt_api_t *api;

/// Return a copy of a struct as a caller with a struct of `size` bytes would pass it. The copy has
/// the first `known` bytes of `whole`, as far as they fit, and 0xA5 in all further bytes. The
/// caller frees the copy.
static void *foreign(const void *whole, size_t known, size_t size)
{
    char *copy = malloc(size);
    HOLDS(copy != NULL);
    memset(copy, 0xA5, size);
    memcpy(copy, whole, known < size ? known : size);
    memcpy(copy, &size, sizeof(size)); /* struct_size is the first field of every struct */
    return copy;
}

/// Return a multiple of the word size, at most twice the size in the current version. Fields end at
/// multiples of a word.
static size_t choose_size(input_t *input, size_t known)
{
    size_t words = 2 * known / sizeof(size_t);
    return sizeof(size_t) * (1 + input_byte(input) % words);
}

#define HAS(type, field, size) ((size) >= offsetof(type, field) + sizeof(((type *)0)->field))

static size_t ran;

static void count_runs(void *data, size_t size, void *info)
{
    (void)data, (void)size;
    HOLDS(info == &ran);
    ran++;
}

/// Return random options. The destructor is set only if the struct has room for both `dtor` and
/// `dtor_info`. A struct with only one of the two fields is the caller's responsibility.
static memrt_new_options_t choose_options(input_t *input, size_t *size)
{
    unsigned how = input_byte(input);
    *size = choose_size(input, sizeof(memrt_new_options_t));
    bool dtor = HAS(memrt_new_options_t, dtor_info, *size);
    return (memrt_new_options_t){.struct_size = *size,
                                 .alignment = (how & 1) != 0 ? 4096 : 0,
                                 .zeroed = (how & 2) != 0,
                                 .readonly = (how & 4) != 0,
                                 .dtor = dtor ? count_runs : NULL,
                                 .dtor_info = dtor ? &ran : NULL,
                                 .name = (how & 8) != 0 ? "named" : NULL};
}

static void do_meminfo(input_t *input)
{
    size_t size, before = ran;
    memrt_new_options_t options = choose_options(input, &size);
    bool resizable = input_byte(input) % 2 != 0;
    void *given = foreign(&options, sizeof(options), size);
    memrt_meminfo_t *mi = NULL;
    char name[MEMRT_NAME_MAX + 1];
    memrt_status_t status =
        resizable ? api->resizable_new(100, given, &mi) : api->meminfo_new(100, given, &mi);
    free(given);
    HOLDS(status == MEMRT_OK);
    char *data = api->get_data(mi);
    size_t align = HAS(memrt_new_options_t, alignment, size) ? options.alignment : 0;
    HOLDS(((uintptr_t)data & ((align == 0 ? 64 : align) - 1)) == 0);
    HOLDS(!HAS(memrt_new_options_t, readonly, size) || !options.readonly == !api->readonly(mi));
    HOLDS(HAS(memrt_new_options_t, readonly, size) || !api->readonly(mi));
    if (HAS(memrt_new_options_t, zeroed, size) && options.zeroed) {
        HOLDS(data[0] == 0 && memcmp(data, data + 1, 99) == 0);
    }
    api->get_name(mi, name);
    bool named = HAS(memrt_new_options_t, name, size) && options.name != NULL;
    HOLDS(strcmp(name, named ? "named" : "") == 0);
    api->release(mi);
    HOLDS(ran == before + (options.dtor != NULL));
}

static void do_policy(input_t *input)
{
    static const char *const decays[] = {NULL, "0", "never", "soon"};
    unsigned how = input_byte(input);
    size_t size = choose_size(input, sizeof(memrt_policy_options_t));
    memrt_policy_options_t options = {.name = (how & 1) != 0 ? "foreign" : NULL,
                                      .alignment = (how & 2) != 0 ? 256 : 0,
                                      .decay = decays[how >> 2 & 3]};
    void *given = foreign(&options, sizeof(options), size);
    memrt_policy_t *policy = NULL;
    memrt_option_t row;
    memrt_status_t status = api->policy_new(given, &policy);
    free(given);
    const char *decay = HAS(memrt_policy_options_t, decay, size) ? options.decay : NULL;
    if (decay != NULL && strcmp(decay, "soon") == 0) {
        HOLDS(status == MEMRT_EINVAL && policy == NULL);
        return;
    }
    HOLDS(status == MEMRT_OK);
    bool named = HAS(memrt_policy_options_t, name, size) && options.name != NULL;
    bool aligned = HAS(memrt_policy_options_t, alignment, size) && options.alignment != 0;
    HOLDS(strcmp(api->policy_name(policy), named ? "foreign" : "policy") == 0);
    HOLDS(api->policy_alignment(policy) == (aligned ? 256 : 64));
    HOLDS(!api->policy_option(policy, 0, &row) == (decay == NULL));
    api->policy_release(policy);
}

static void do_stats(input_t *input)
{
    memrt_stats_t whole = {.struct_size = sizeof(whole)};
    size_t size = choose_size(input, sizeof(whole));
    memrt_stats_t *given = foreign(&whole, sizeof(whole), size);
    HOLDS(api->stats_read(NULL, &whole) == MEMRT_OK);
    HOLDS(api->stats_read(NULL, given) == MEMRT_OK);
    HOLDS(given->struct_size == size);
    size_t known = size < sizeof(whole) ? size : sizeof(whole);
    HOLDS(memcmp((char *)given + sizeof(size), (char *)&whole + sizeof(size),
                 known - sizeof(size)) == 0);
    for (size_t i = known; i < size; i++) { /* memrt does not write unknown fields */
        HOLDS(((unsigned char *)given)[i] == 0xA5);
    }
    free(given);
}

static void do_plan(input_t *input)
{
    memrt_failure_plan_t plan = {.nth = 1, .every = 1, .this_thread_only = 1};
    size_t size = choose_size(input, sizeof(plan));
    void *given = foreign(&plan, sizeof(plan), size);
    memrt_status_t status = api->fail_allocations(given);
    free(given);
    size_t least = offsetof(memrt_failure_plan_t, min_size);
    HOLDS(status == (size < least ? MEMRT_EINVAL : MEMRT_OK));
    HOLDS(status != MEMRT_OK || api->allocate(10) == NULL);
    HOLDS(api->fail_allocations(NULL) == MEMRT_OK);
}

/* --- Allocator tables. --- */

static void *table_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    size_t rounded = (size + align - 1) / align * align;
    return aligned_alloc(align, rounded);
}

static void table_free(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx, (void)size, (void)align;
    free(ptr);
}

/// Allocate, resize and free a block. memrt substitutes missing optional functions of the table.
static void use(memrt_policy_t *policy)
{
    char *block = api->block_calloc(policy, 1, 100);
    HOLDS(block != NULL && block[0] == 0 && block[99] == 0);
    block[99] = 9;
    block = api->block_realloc(policy, block, 5000);
    HOLDS(block != NULL && block[99] == 9);
    api->block_free(policy, block, 0);
    HOLDS(api->release_unused() <= SIZE_MAX / 2);
}

static void do_allocator(input_t *input)
{
    unsigned how = input_byte(input);
    size_t size = choose_size(input, sizeof(memrt_allocator_t));
    memrt_allocator_t table = {.version = (how & 1) != 0 ? 0x70707070 : MEMRT_ALLOCATOR_VERSION,
                               .name = (how & 2) != 0 ? "foreign" : NULL,
                               .alloc = (how & 12) == 4 ? NULL : table_alloc,
                               .free = (how & 12) == 8 ? NULL : table_free};
    void *given = foreign(&table, sizeof(table), size);
    bool guarded = (how & 16) != 0;
    memrt_allocator_t guard = {0};
    memrt_policy_t *policy = NULL;
    memrt_policy_options_t options = {.struct_size = sizeof(options), .allocator = given};
    bool legal = table.version == MEMRT_ALLOCATOR_VERSION && table.alloc != NULL &&
                 table.free != NULL && HAS(memrt_allocator_t, free, size);
    memrt_status_t status = guarded ? api->allocator_guard(given, &guard) : MEMRT_OK;
    if (guarded && status == MEMRT_OK) {
        options.allocator = &guard;
    }
    if (status == MEMRT_OK) {
        status = api->policy_new(&options, &policy);
    }
    free(given);
    HOLDS(status == (legal ? MEMRT_OK : MEMRT_EINVAL));
    if (legal) {
        use(policy);
        api->policy_release(policy);
    }
}

static void do_abi(input_t *input)
{
    uint32_t major = (uint32_t)input_number(input, 1 + input_byte(input) % 4);
    const char *why = NULL;
    const memrt_api_t *table = memrt_get_api(major, &why);
    HOLDS((table != NULL) == (major == MEMRT_ABI_MAJOR));
    HOLDS((why != NULL) == (table == NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static void (*const calls[])(input_t *) = {do_meminfo, do_policy, do_stats,
                                               do_plan,    do_abi,    do_allocator};
    input_t input = {bytes, bytes + size};
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    while (input_is_left(&input)) {
        calls[input_byte(&input) % (sizeof(calls) / sizeof(calls[0]))](&input);
    }
    return 0;
}
