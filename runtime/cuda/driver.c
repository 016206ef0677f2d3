#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"
#include "runtime/base/compiler.h"
#include "runtime/base/shield.h"
#include "runtime/config/fault_injection.h"
#include "runtime/config/options.h"

/// Symbol name of a driver function, and offset of the function's field.
typedef struct call {
    const char *symbol;
    size_t offset; ///< offset in memrt__driver_t
    bool required;
} call_t;

static const call_t calls[] = {
#define ROW(required, field, symbol, parameters)                                                   \
    {#symbol, offsetof(memrt__driver_t, field), required},
    MEMRT__DRIVER_CALLS(ROW)
#undef ROW
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static const memrt__driver_t *loaded; ///< atomic; store: release, load: acquire
static bool forked;                   ///< written while a child has one thread only

/// Last failed driver call of the thread, with the result.
static MEMRT__THREAD_LOCAL const call_t *failed_call;
static MEMRT__THREAD_LOCAL memrt__cu_result_t failed_with;

static const memrt__driver_t *get_loaded_driver(void)
{
    return (const memrt__driver_t *)memrt__load_acquire((const size_t *)&loaded);
}

/// Look up all functions. On failure returns false, and `why` names the missing function.
static bool find_functions(void *library, memrt__driver_t *driver, char *why, size_t length)
{
    for (size_t i = 0; i < CALLS; i++) {
        void *symbol = dlsym(library, calls[i].symbol);
        if (symbol == NULL && calls[i].required) {
            snprintf(why, length, "the CUDA driver is too old: the function %s is missing",
                     calls[i].symbol);
            return false;
        }
        *(void **)((char *)driver + calls[i].offset) = symbol;
    }
    return true;
}

static bool init_driver(const memrt__driver_t *driver, char *why, size_t length)
{
    int count = 0;
    memrt__cu_result_t result = driver->init(0);
    if (result == MEMRT__CU_SUCCESS) {
        result = driver->device_count(&count);
    }
    if (result != MEMRT__CU_SUCCESS) {
        const char *name = NULL;
        (void)driver->error_name(result, &name);
        snprintf(why, length, "the CUDA driver does not start: %s (%d)",
                 name == NULL ? "an error without a name" : name, result);
        return false;
    }
    if (count == 0) {
        snprintf(why, length, "the CUDA driver has no device");
        return false;
    }
    return true;
}

/// Load and initialize the driver. The library is never closed: the driver has threads of its own,
/// and each free of a buffer calls the driver.
static bool load_driver(memrt__driver_t *driver, char *why, size_t length)
{
    MEMRT__SHIELD;
    char file[MEMRT__TEXT_MAX];
    memrt__options_text(&memrt__options.cuda_driver, file);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(why, length, "the CUDA driver was not found: %s", dlerror());
        return false;
    }
    return find_functions(library, driver, why, length) && init_driver(driver, why, length);
}

/// Publish the table. Several threads may load the driver at once, with equal tables; the first
/// table stays.
static const memrt__driver_t *publish_driver(memrt__driver_t *driver)
{
    if (!memrt__cas_release((size_t *)&loaded, 0, (size_t)driver)) {
        free(driver);
    }
    return get_loaded_driver();
}

const memrt__driver_t *memrt__driver(char *why, size_t length)
{
    char ignored[1];
    if (why == NULL) {
        why = ignored;
        length = sizeof(ignored);
    }
    if (forked) {
        snprintf(why, length, "CUDA does not work in a forked process whose parent used CUDA");
        return NULL;
    }
    const memrt__driver_t *now = get_loaded_driver();
    if (now != NULL) {
        return now;
    }
    memrt__driver_t *driver = memrt__fault_is_due() ? NULL : malloc(sizeof(*driver));
    if (driver == NULL) {
        snprintf(why, length, "no memory for the function table of the CUDA driver");
        return NULL;
    }
    if (!load_driver(driver, why, length)) {
        free(driver);
        return NULL;
    }
    return publish_driver(driver);
}

const memrt__driver_t *memrt__driver_loaded(void)
{
    return forked ? NULL : get_loaded_driver();
}

static const call_t *get_call(size_t offset)
{
    MEMRT__ASSERT(offset / sizeof(memrt__cu_result_t (*)(unsigned)) < CALLS);
    return &calls[offset / sizeof(memrt__cu_result_t (*)(unsigned))];
}

memrt_status_t memrt__driver_judge(size_t offset, memrt__cu_result_t result)
{
    if (result == MEMRT__CU_SUCCESS) {
        return MEMRT_OK;
    }
    failed_call = get_call(offset);
    failed_with = result;
    return result == MEMRT__CU_ERROR_OUT_OF_MEMORY ? MEMRT_ENOMEM : MEMRT_EDEVICE;
}

size_t memrt__driver_error(char *text, size_t length)
{
    const memrt__driver_t *driver = memrt__driver_loaded();
    const char *name = NULL, *meaning = NULL;
    if (failed_call == NULL || driver == NULL) {
        return (size_t)snprintf(text, length, "no call of the CUDA driver failed in this thread");
    }
    (void)driver->error_name(failed_with, &name); /* sets NULL for an unknown error */
    (void)driver->error_string(failed_with, &meaning);
    return (size_t)snprintf(text, length, "%s failed with %s (%d)%s%s", failed_call->symbol,
                            name == NULL ? "an unknown error" : name, failed_with,
                            meaning == NULL ? "" : ": ", meaning == NULL ? "" : meaning);
}

void memrt__driver_forked(void)
{
    forked = get_loaded_driver() != NULL;
}
