#ifndef MEMRT_MEMRT_HPP
#define MEMRT_MEMRT_HPP

/// Main header for C++17: references and arrays that release their memory by themselves.

#include <memrt/array.hpp>
#include <memrt/meminfo.hpp>

#endif
