/// Uses the headers for C++17 as a program of a user: ownership, elements and exceptions.

#include <memrt/array.hpp>
#include <memrt/meminfo.hpp>
#include <memrt/memrt.hpp>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "expect.h"

namespace
{

static_assert(sizeof(memrt::ref) == sizeof(void *));
static_assert(std::is_nothrow_copy_constructible_v<memrt::ref>);
static_assert(std::is_nothrow_move_constructible_v<memrt::ref>);
static_assert(std::is_nothrow_move_assignable_v<memrt::array<double>>);
static_assert(!std::is_convertible_v<memrt::ref, bool>);

std::size_t count(const memrt::ref &reference)
{
    return memrt::table()->refcount(reference.get());
}

std::uint64_t live()
{
    memrt_stats_t stats = memrt_stats_t();
    stats.struct_size = sizeof(stats);
    EXPECT(memrt::table()->stats_read(nullptr, &stats) == MEMRT_OK);
    return stats.live + stats.adopted;
}

/// Let each request of memory fail, or none.
void fail_requests(bool fail)
{
    memrt_failure_plan_t plan = {};
    plan.struct_size = sizeof(plan);
    plan.nth = plan.every = 1;
    plan.this_thread_only = 1;
    EXPECT(memrt::table()->fail_allocations(fail ? &plan : nullptr) == MEMRT_OK);
}

/// Call a function and return the text of its exception of type E. Other outcomes fail.
template <class E, class F> std::string message(F call)
{
    std::string text;
    bool thrown = false;
    try {
        call();
    } catch (const E &error) {
        text = error.what();
        thrown = true;
    }
    EXPECT(thrown);
    return text;
}

bool contains(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

void copies_and_moves_of_references()
{
    memrt::ref first = memrt::allocate(100);
    EXPECT(first && count(first) == 1);
    memrt::ref second = first;
    EXPECT(count(first) == 2 && second.get() == first.get());
    memrt::ref moved = std::move(second);
    EXPECT(!second && count(first) == 2);
    memrt::ref &alias = moved;
    moved = alias;
    EXPECT(count(first) == 2);
    moved = std::move(alias);
    EXPECT(moved.get() == first.get() && count(first) == 2);
    moved = memrt::ref();
    EXPECT(!moved && count(first) == 1);
    moved = first;
    first = memrt::ref();
    EXPECT(count(moved) == 1);
}

void references_from_and_to_c()
{
    memrt_meminfo_t *mi = memrt::table()->allocate(10);
    memrt::ref owner = memrt::ref::steal(mi);
    EXPECT(count(owner) == 1);
    memrt::ref other = memrt::ref::acquire(mi);
    EXPECT(count(owner) == 2);
    EXPECT(other.release() == mi && !other);
    EXPECT(count(owner) == 2);
    memrt::table()->release(mi);
    EXPECT(count(owner) == 1);
}

void last_array_frees_the_elements()
{
    std::uint64_t before = live();
    memrt::array<double> values = memrt::zeros<double>(1000);
    EXPECT(live() == before + 8000);
    EXPECT(values.size() == 1000 && !values.empty() && values[999] == 0);
    memrt::array<double> shared = values, copied = values.clone();
    shared[1] = 7;
    EXPECT(values[1] == 7 && copied[1] == 0 && count(values.owner()) == 2);
    memrt::array<double> moved = std::move(values);
    EXPECT(values.empty() && values.data() == nullptr && !values.owner());
    std::iota(moved.begin(), moved.end(), 1.0);
    EXPECT(std::accumulate(shared.begin(), shared.end(), 0.0) == 500500);
    shared = memrt::array<double>();
    moved = copied;
    EXPECT(live() == before + 8000);
    memrt_meminfo_t *mi = moved.release();
    EXPECT(moved.empty() && count(copied.owner()) == 2);
    memrt::table()->release(mi);
    copied = memrt::array<double>();
    EXPECT(live() == before);
}

void arrays_of_no_elements()
{
    memrt::array<int> none, zero = memrt::empty<int>(0), copy = none.clone();
    EXPECT(none.empty() && none.data() == nullptr && none.begin() == none.end());
    EXPECT(zero.empty() && zero.owner() && copy.empty());
    memrt::array<int> of_nothing{memrt::ref()};
    EXPECT(of_nothing.empty() && !of_nothing.owner());
}

void elements_with_options()
{
    struct alignas(256) Wide {
        char bytes[256];
    };
    memrt::array<Wide> wide = memrt::empty<Wide>(3);
    EXPECT(reinterpret_cast<std::uintptr_t>(wide.data()) % 256 == 0);
    memrt_new_options_t options = {};
    options.alignment = 4096;
    options.name = "page";
    memrt::array<char> page = memrt::empty<char>(10, options);
    EXPECT(reinterpret_cast<std::uintptr_t>(page.data()) % 4096 == 0);
    char name[MEMRT_NAME_MAX + 1];
    memrt::table()->get_name(page.owner().get(), name);
    EXPECT(std::strcmp(name, "page") == 0);
}

void vector_becomes_an_array_without_a_copy()
{
    std::uint64_t before = live();
    std::vector<int> values = {1, 2, 3};
    const int *data = values.data();
    memrt::array<int> adopted = memrt::adopt(std::move(values));
    EXPECT(values.empty() && adopted.data() == data && adopted[2] == 3);
    EXPECT(live() == before + 3 * sizeof(int));
    adopted = memrt::adopt(std::vector<int>());
    EXPECT(adopted.empty() && adopted.owner());
    adopted = memrt::array<int>();
    EXPECT(live() == before);
}

void last_release_on_another_thread()
{
    std::uint64_t before = live();
    memrt::array<int> values = memrt::zeros<int>(100);
    std::thread([moved = std::move(values)] { EXPECT(moved[99] == 0); }).join();
    EXPECT(live() == before);
}

void refused_allocations_explain_themselves()
{
    std::uint64_t before = live();
    using memrt::out_of_memory;
    std::string text = message<std::bad_alloc>([] { memrt::empty<double>(std::size_t(1) << 50); });
    EXPECT(contains(text, "no memory for 8.0 PiB") && contains(text, "policy 'default'"));
    EXPECT(text.back() != '\n');
    text = message<out_of_memory>([] { memrt::zeros<double>(SIZE_MAX / 8 + 1); });
    EXPECT(contains(text, "no memory for"));
    fail_requests(true);
    text = message<out_of_memory>([] { memrt::zeros<double>(100); });
    EXPECT(contains(text, "800 bytes"));
    fail_requests(false);
    std::vector<int> values = {1, 2, 3};
    fail_requests(true);
    message<out_of_memory>([&values] { memrt::adopt(std::move(values)); });
    fail_requests(false);
    EXPECT(values.size() == 3 && live() == before);
}

void wrong_arguments_are_refused()
{
    using std::invalid_argument;
    std::uint64_t before = live();
    EXPECT(contains(message<invalid_argument>([] { memrt::set_table(nullptr); }), "not be NULL"));
    memrt_new_options_t options = {};
    options.alignment = 3;
    message<invalid_argument>([options] { memrt::allocate(10, options); });
    message<invalid_argument>([] { memrt::array<double>(memrt::allocate(12)); });
    options.alignment = 0;
    options.readonly = 1;
    memrt::ref fixed = memrt::allocate(16, options);
    message<invalid_argument>([&fixed] { memrt::array<double>{fixed}; });
    EXPECT(memrt::array<const double>(fixed).size() == 2);
    memrt_meminfo_t *mi = nullptr;
    EXPECT(memrt::table()->resizable_new(16, nullptr, &mi) == MEMRT_OK);
    memrt::ref movable = memrt::ref::steal(mi);
    std::string text = message<invalid_argument>([&movable] { memrt::array<char>{movable}; });
    EXPECT(contains(text, "resizable"));
    std::string status = message<std::runtime_error>([] { memrt::check(MEMRT_EBUSY); });
    EXPECT(status == memrt::table()->status_text(MEMRT_EBUSY));
    fixed = movable = memrt::ref();
    EXPECT(live() == before);
}

} // namespace

int main()
{
    memrt::set_table(memrt_get_api(MEMRT_ABI_MAJOR, nullptr));
    copies_and_moves_of_references();
    references_from_and_to_c();
    last_array_frees_the_elements();
    arrays_of_no_elements();
    elements_with_options();
    vector_becomes_an_array_without_a_copy();
    last_release_on_another_thread();
    refused_allocations_explain_themselves();
    wrong_arguments_are_refused();
    return 0;
}
