#ifndef MEMRT_BASE_MEMORY_TOOL_H
#define MEMRT_BASE_MEMORY_TOOL_H

#include <stdbool.h>
#include <stddef.h>

/// Tools that check the memory accesses of the process: AddressSanitizer, LeakSanitizer and
/// Valgrind's memcheck. A tool knows the blocks of malloc only.
///
/// The runtime of a sanitizer is found by its symbols, so libmemrt itself may be built without a
/// sanitizer. memcheck is found by a client request, which is compiled in if MEMRT_VALGRIND is 1.

/// Names of the tools that this build finds, for texts.
#if MEMRT_VALGRIND
#define MEMRT__MEMORY_TOOLS "AddressSanitizer, LeakSanitizer or memcheck"
#else
#define MEMRT__MEMORY_TOOLS "AddressSanitizer or LeakSanitizer"
#endif

/// Return whether a tool checks the process. The result never changes.
bool memrt__memory_tool_is_present(void);

/// Have AddressSanitizer report accesses to `bytes` bytes of a block of malloc. No effect under
/// other tools, and in builds of libmemrt with AddressSanitizer, where libmemrt's own accesses
/// would be reported. The C library's memcpy() and memset() are checked in all builds.
///
/// `from` and `bytes` must be multiples of 8. A free of the block ends the effect.
void memrt__memory_tool_forbid(const void *from, size_t bytes);

/// End the effect of memrt__memory_tool_forbid().
void memrt__memory_tool_permit(const void *from, size_t bytes);

#endif
