/// Another library that the loader finds first in place of libmemrt: an older version with a
/// shorter table, or, with OTHER_MAJOR, a library with another contract.

#include <stddef.h>

#include <memrt/memrt.h>

#ifdef OTHER_MAJOR

MEMRT_EXPORT const memrt_api_t *memrt_get_api(uint32_t abi_major, const char **why)
{
    (void)abi_major;
    *why = "it is of another contract";
    return NULL;
}

#else

MEMRT_EXPORT const memrt_api_t *memrt_get_api(uint32_t abi_major, const char **why)
{
    static const memrt_api_t older = {.struct_size = offsetof(memrt_api_t, policy_option),
                                      .abi_major = MEMRT_ABI_MAJOR,
                                      .version = "0.0.7"};
    (void)abi_major;
    (void)why;
    return &older;
}

#endif

MEMRT_EXPORT const char *memrt_version(void)
{
    return "0.0.7";
}
