#ifndef MEMRT_MEMINFO_HPP
#define MEMRT_MEMINFO_HPP

/// C++17: the table, exceptions, and references to MemInfos that release by themselves.
///
/// Call memrt::set_table() once in each program or shared library, before any other function.

#if __cplusplus < 201703L
#error "memrt's headers for C++ need C++17: compile with -std=c++17 or newer"
#endif

#include <cstddef>
#include <new>
#include <stdexcept>
#include <utility>

#include <memrt/external.h>

namespace memrt
{

namespace detail
{
inline const memrt_api_t *table = nullptr;
}

/// Set the function table: the result of memrt_get_api() in a program, or of memrt_import() in an
/// extension module.
/// Failure: throws std::invalid_argument if `api` is NULL.
inline void set_table(const memrt_api_t *api)
{
    if (api == nullptr) {
        throw std::invalid_argument("the table of memrt must not be NULL: check the result of "
                                    "memrt_get_api() or memrt_import()");
    }
    detail::table = api;
}

/// Return the function table of set_table().
inline const memrt_api_t *table() noexcept
{
    return detail::table;
}

/// Exception for a refused allocation. what() is the out-of-memory report of memrt.
class out_of_memory : public std::bad_alloc
{
  public:
    /// Write the report for `size` bytes of `policy` (NULL: the default policy).
    explicit out_of_memory(std::size_t size, const memrt_policy_t *policy = nullptr) noexcept
    {
        std::size_t length = table()->explain_shortage(policy, size, text_, sizeof(text_));
        if (length > 0 && length < sizeof(text_) && text_[length - 1] == '\n') {
            text_[length - 1] = '\0';
        }
    }

    /// Return the report, valid while the exception is.
    const char *what() const noexcept override
    {
        return text_;
    }

  private:
    char text_[1000] = "";
};

/// Throw the exception for a status other than MEMRT_OK.
/// Failure: throws out_of_memory for MEMRT_ENOMEM, std::invalid_argument for MEMRT_EINVAL, and
///          std::runtime_error for any other status.
inline void check(memrt_status_t status, std::size_t size = 0,
                  const memrt_policy_t *policy = nullptr)
{
    switch (status) {
    case MEMRT_OK:
        return;
    case MEMRT_ENOMEM:
        throw out_of_memory(size, policy);
    case MEMRT_EINVAL:
        throw std::invalid_argument(table()->status_text(status));
    default:
        throw std::runtime_error(table()->status_text(status));
    }
}

/// One reference to a MemInfo, or none. As large as a pointer; copies and releases are inline.
///
/// Threads: different objects may be used on different threads, also for one MemInfo. One object
///          must not be changed on one thread while another thread uses the object.
class ref
{
  public:
    ref() noexcept = default;
    ref(const ref &other) noexcept : mi_(other.mi_)
    {
        if (mi_ != nullptr) {
            memrt_meminfo_acquire(mi_);
        }
    }
    ref(ref &&other) noexcept : mi_(std::exchange(other.mi_, nullptr))
    {
    }
    ref &operator=(ref other) noexcept
    {
        std::swap(mi_, other.mi_);
        return *this;
    }
    ~ref()
    {
        if (mi_ != nullptr) {
            memrt_meminfo_release(table(), mi_);
        }
    }

    /// Return the caller's reference to `mi` as an object. Ownership: consumes the reference.
    static ref steal(memrt_meminfo_t *mi) noexcept
    {
        ref stolen;
        stolen.mi_ = mi;
        return stolen;
    }

    /// Return one more reference to `mi`. Ownership: the caller keeps its own reference.
    static ref acquire(memrt_meminfo_t *mi) noexcept
    {
        memrt_meminfo_acquire(mi);
        return steal(mi);
    }

    /// Return the MemInfo, borrowed; NULL without a reference.
    memrt_meminfo_t *get() const noexcept
    {
        return mi_;
    }

    /// Hand the reference to the caller, for a function that steals a reference.
    [[nodiscard]] memrt_meminfo_t *release() noexcept
    {
        return std::exchange(mi_, nullptr);
    }

    explicit operator bool() const noexcept
    {
        return mi_ != nullptr;
    }

  private:
    memrt_meminfo_t *mi_ = nullptr;
};

/// Create a MemInfo over `size` bytes, as memrt_api_t.meminfo_new; `struct_size` is set here.
/// Failure: throws out_of_memory, or std::invalid_argument for an option that does not apply.
inline ref allocate(std::size_t size, memrt_new_options_t options = {})
{
    memrt_meminfo_t *mi = nullptr;
    options.struct_size = sizeof(options);
    check(table()->meminfo_new(size, &options, &mi), size, options.policy);
    return ref::steal(mi);
}

/// Create a MemInfo over memory that the caller hands over, as memrt_api_t.meminfo_adopt.
/// Ownership: as memrt_api_t.meminfo_adopt. After an exception the caller still owns `data`.
/// Failure:   throws out_of_memory, or std::invalid_argument for an option that does not apply.
inline ref adopt(void *data, std::size_t size, memrt_new_options_t options)
{
    memrt_meminfo_t *mi = nullptr;
    options.struct_size = sizeof(options);
    check(table()->meminfo_adopt(data, size, &options, &mi), sizeof(*mi), options.policy);
    return ref::steal(mi);
}

} // namespace memrt

#endif
