/// Callers built against another version of the library: a smaller table, a larger table, another
/// major version. Each caller uses the struct of its own version.

#include <memrt/memrt.h>

#include <stdint.h>
#include <string.h>

#include "expect.h"

/// Table of an older caller, whose header ended after meminfo_new.
typedef struct older_api {
    memrt_meminfo_t *(*allocate)(size_t nbytes);
    memrt_meminfo_t *(*allocate_external)(size_t nbytes, memrt_external_allocator_t *allocator);
    memrt_meminfo_t *(*manage_memory)(void *data, memrt_managed_dtor_fn dtor);
    void (*acquire)(memrt_meminfo_t *mi);
    void (*release)(memrt_meminfo_t *mi);
    void *(*get_data)(memrt_meminfo_t *mi);
    size_t struct_size;
    uint32_t abi_major, abi_minor;
    uint64_t features;
    const char *version;
    memrt_status_t (*meminfo_new)(size_t size, const void *options, memrt_meminfo_t **out);
} older_api_t;

/// Options of the older caller.
typedef struct older_options {
    size_t struct_size;
    memrt_policy_t *policy;
    size_t alignment;
} older_options_t;

/// Table of a caller built against a later memrt. newer_options_t has the options of the same
/// caller.
typedef struct newer_api {
    void (*nrt[6])(void);
    size_t struct_size;
    char others[sizeof(memrt_api_t) - 7 * 8];
    int (*of_tomorrow)(void);
} newer_api_t;

typedef struct newer_options {
    memrt_new_options_t present;
    int of_tomorrow;
} newer_options_t;

static void use_as_older_caller(const older_api_t *api)
{
    older_options_t options = {sizeof(options), NULL, 4096};
    memrt_meminfo_t *mi;
    EXPECT(api->struct_size > sizeof(older_api_t));
    EXPECT(api->meminfo_new(100, &options, &mi) == MEMRT_OK);
    EXPECT((uintptr_t)api->get_data(mi) % 4096 == 0);
    memset(api->get_data(mi), 1, 100);
    api->acquire(mi);
    api->release(mi);
    api->release(mi);
}

static void use_newer_options(const memrt_api_t *api)
{
    newer_options_t options = {.present = {.struct_size = sizeof(options), .zeroed = 1},
                               .of_tomorrow = 1};
    memrt_meminfo_t *mi;
    EXPECT(api->meminfo_new(100, &options.present, &mi) == MEMRT_OK);
    EXPECT(*(char *)api->get_data(mi) == 0);
    api->release(mi);
}

static void ask_for_slots_as_present_caller(const memrt_api_t *api)
{
    EXPECT(MEMRT_HAS(api, meminfo_new));
    EXPECT(MEMRT_HAS(api, policy_option));
}

#define memrt_api_t newer_api_t /* the name in the later header */

static void ask_for_slots_as_newer_caller(const newer_api_t *api)
{
    EXPECT(MEMRT_HAS(api, others));
    EXPECT(!MEMRT_HAS(api, of_tomorrow));
}

#undef memrt_api_t

static void ask_for_another_major(void)
{
    const char *why = NULL;
    EXPECT(memrt_get_api(MEMRT_ABI_MAJOR + 1, &why) == NULL);
    EXPECT(why != NULL && strstr(why, "rebuild the caller") != NULL);
    EXPECT(memrt_get_api(MEMRT_ABI_MAJOR + 1, NULL) == NULL);
    EXPECT(memrt_get_api(MEMRT_ABI_MAJOR, &why) != NULL);
}

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    EXPECT(api != NULL);
    EXPECT(strcmp(api->version, memrt_version()) == 0);
    use_as_older_caller((const older_api_t *)(const void *)api);
    use_newer_options(api);
    ask_for_slots_as_present_caller(api);
    ask_for_slots_as_newer_caller((const newer_api_t *)(const void *)api);
    ask_for_another_major();
    return 0;
}
