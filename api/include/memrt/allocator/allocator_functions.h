#ifndef MEMRT_ALLOCATOR_FUNCTIONS_H
#define MEMRT_ALLOCATOR_FUNCTIONS_H

/// All function types around allocators: allocators, policies and scopes.

#include <memrt/allocator.h>
#include <memrt/allocator/adaptor.h>
#include <memrt/allocator/file.h>
#include <memrt/allocator/placement.h>
#include <memrt/policy.h>
#include <memrt/scope.h>

#endif
