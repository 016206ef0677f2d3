/// Includes every public header from C++, except headers for Python and for Check, and calls
/// through the table.

#include <memrt/allocator.h>
#include <memrt/api.h>
#include <memrt/arrow.h>
#include <memrt/cuda.h>
#include <memrt/dlpack.h>
#include <memrt/external.h>
#include <memrt/meminfo.h>
#include <memrt/meminfo/block.h>
#include <memrt/meminfo/create.h>
#include <memrt/meminfo/exchange.h>
#include <memrt/meminfo/holder.h>
#include <memrt/meminfo/resizable.h>
#include <memrt/memrt.h>
#include <memrt/observe/site.h>
#include <memrt/observe/stats.h>
#include <memrt/observe/trace.h>
#include <memrt/observe/trace_file.h>
#include <memrt/observe/tracking.h>
#include <memrt/observe/observer.h>
#include <memrt/policy.h>
#include <memrt/process/fault_injection.h>
#include <memrt/process/option.h>
#include <memrt/process/process.h>
#include <memrt/process/symbol.h>
#include <memrt/scope.h>
#include <memrt/status.h>
#include <memrt/version.h>

#include <cstdint>
#include <cstring>

#include "expect.h"

namespace
{

struct Ending {
    int count;
    std::size_t size;
};

extern "C" void note_ending(void *, std::size_t size, void *info)
{
    Ending *ending = static_cast<Ending *>(info);
    ending->count++;
    ending->size = size;
}

void use_a_meminfo(const memrt_api_t *api)
{
    Ending ending = {0, 0};
    memrt_new_options_t options = memrt_new_options_t();
    options.struct_size = sizeof(options);
    options.dtor = note_ending;
    options.dtor_info = &ending;
    memrt_meminfo_t *mi = nullptr;
    EXPECT(api->meminfo_new(100, &options, &mi) == MEMRT_OK);
    std::memset(api->get_data(mi), 1, 100);
    EXPECT(reinterpret_cast<std::uintptr_t>(api->get_data(mi)) % MEMRT_ALIGN_MIN == 0);
    memrt_meminfo_acquire(mi);
    EXPECT(api->refcount(mi) == 2);
    api->release(mi);
    EXPECT(ending.count == 0);
    memrt_meminfo_release(api, mi);
    EXPECT(ending.count == 1 && ending.size == 100);
}

void use_a_policy(const memrt_api_t *api)
{
    memrt_policy_options_t options = memrt_policy_options_t();
    options.struct_size = sizeof(options);
    options.name = "from C++";
    memrt_policy_t *policy = nullptr;
    EXPECT(api->policy_new(&options, &policy) == MEMRT_OK);
    EXPECT(std::strcmp(api->policy_name(policy), "from C++") == 0);
    void *data = api->block_alloc(policy, 10);
    EXPECT(data != nullptr);
    api->block_free(policy, data, 10);
    api->policy_release(policy);
}

} // namespace

int main()
{
    const char *why = nullptr;
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, &why);
    EXPECT(api != nullptr);
    EXPECT(MEMRT_HAS(api, policy_option));
    use_a_meminfo(api);
    use_a_policy(api);
    return 0;
}
