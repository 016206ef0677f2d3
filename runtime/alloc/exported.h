#ifndef MEMRT_ALLOC_EXPORTED_H
#define MEMRT_ALLOC_EXPORTED_H

#include <stddef.h>

#include <memrt/allocator.h>

/// Load a shared object, and return the allocator table that the object exports. `source` is
/// LIBRARY or LIBRARY:SYMBOL; the default symbol is memrt_allocator. A library without a slash in
/// its name is searched as dlopen() does. The library stays loaded. Runs the constructors of the
/// library.
///
/// Failure: returns NULL, and writes an error message to `why`.
const memrt_allocator_t *memrt__exported_allocator(const char *source, char *why, size_t length);

#endif
