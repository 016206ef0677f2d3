#ifndef MEMRT_ARRAY_HPP
#define MEMRT_ARRAY_HPP

/// C++17: elements of one type in the memory of a MemInfo.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <memrt/meminfo.hpp>

namespace memrt
{

/// Elements of type T in the memory of a MemInfo, or no elements.
///
/// A copy shares the elements, as the assignment of an array does in Python; clone() copies the
/// elements. A const array has writable elements; array<const T> has read-only elements.
/// Threads: as memrt::ref.
template <class T> class array
{
    static_assert(std::is_trivially_copyable_v<T>,
                  "C and NumPy share the elements: T must be trivially copyable");

  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using size_type = std::size_t;
    using reference = T &;
    using iterator = T *;

    array() noexcept = default;
    array(const array &) noexcept = default;
    array(array &&other) noexcept
        : owner_(std::move(other.owner_)), data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0))
    {
    }
    array &operator=(array other) noexcept
    {
        std::swap(owner_, other.owner_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~array() = default;

    /// View the whole memory of a MemInfo as elements.
    /// Failure: throws std::invalid_argument for a MemInfo that is resizable, for read-only memory
    ///          unless T is const, and for memory that is not a whole number of aligned elements.
    explicit array(ref owner) : owner_(std::move(owner))
    {
        memrt_meminfo_t *mi = owner_.get();
        if (mi == nullptr) {
            return;
        }
        if (mi->kind == MEMRT_KIND_RESIZABLE) {
            throw std::invalid_argument("array needs memory that cannot move, got a resizable "
                                        "MemInfo: copy the data");
        }
        if (!std::is_const_v<T> && table()->readonly(mi) != 0) {
            throw std::invalid_argument("array needs writable memory, got a read-only MemInfo: "
                                        "use an array of const elements");
        }
        if (mi->size % sizeof(T) != 0 ||
            reinterpret_cast<std::uintptr_t>(mi->data) % alignof(T) != 0) {
            throw std::invalid_argument("array needs a whole number of aligned elements: use an "
                                        "element type that fits the MemInfo");
        }
        data_ = static_cast<T *>(mi->data);
        size_ = mi->size / sizeof(T);
    }

    T *data() const noexcept
    {
        return data_;
    }
    std::size_t size() const noexcept
    {
        return size_;
    }
    bool empty() const noexcept
    {
        return size_ == 0;
    }
    /// Return the element at `index`, which must be less than size().
    T &operator[](std::size_t index) const noexcept
    {
        return data_[index];
    }
    T *begin() const noexcept
    {
        return data_;
    }
    T *end() const noexcept
    {
        return data_ + size_;
    }

    /// Return the reference to the MemInfo, borrowed.
    const ref &owner() const noexcept
    {
        return owner_;
    }

    /// Hand the reference to the caller, for a function that steals a reference, such as
    /// memrt_meminfo_as_array(). The array then has no elements.
    [[nodiscard]] memrt_meminfo_t *release() noexcept
    {
        data_ = nullptr;
        size_ = 0;
        return owner_.release();
    }

    /// Return a new array with copies of the elements.
    /// Failure: throws out_of_memory.
    array<value_type> clone() const;

  private:
    ref owner_;
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/// Create an array of `count` elements, with the given options of memrt_api_t.meminfo_new. The
/// elements have no defined value, unless the option `zeroed` is set.
/// Failure: throws out_of_memory, or std::invalid_argument for an option that does not apply.
template <class T> array<T> empty(std::size_t count, memrt_new_options_t options = {})
{
    if (count > SIZE_MAX / sizeof(T)) {
        throw out_of_memory(SIZE_MAX, options.policy);
    }
    if (alignof(T) > MEMRT_ALIGN_MIN && options.alignment < alignof(T)) {
        options.alignment = alignof(T);
    }
    return array<T>(allocate(count * sizeof(T), options));
}

/// Create an array of `count` elements whose bytes are zero.
/// Failure: throws out_of_memory.
template <class T> array<T> zeros(std::size_t count)
{
    memrt_new_options_t options = {};
    options.zeroed = 1;
    return empty<T>(count, options);
}

/// Create an array over the elements of a vector, without a copy of the elements.
/// Ownership: the array owns the elements. After an exception `values` is as before.
/// Failure:   throws std::bad_alloc.
template <class T> array<T> adopt(std::vector<T> &&values)
{
    auto holder = std::make_unique<std::vector<T>>();
    memrt_new_options_t options = {};
    options.dtor = [](void *, std::size_t, void *vector) {
        delete static_cast<std::vector<T> *>(vector);
    };
    options.dtor_info = holder.get();
    ref owner = adopt(values.data(), values.size() * sizeof(T), options);
    holder.release()->swap(values);
    return array<T>(std::move(owner));
}

template <class T> array<typename array<T>::value_type> array<T>::clone() const
{
    array<value_type> copy = memrt::empty<value_type>(size_);
    if (size_ != 0) {
        std::memcpy(copy.data(), data_, size_ * sizeof(T));
    }
    return copy;
}

} // namespace memrt

#endif
