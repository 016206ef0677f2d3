#ifndef MEMRT_OS_CRASH_TEXT_H
#define MEMRT_OS_CRASH_TEXT_H

#include <stddef.h>
#include <stdint.h>

/// Text on standard error from a signal handler. No function takes a lock or allocates. Failed
/// writes are ignored.

void memrt__crash_text(const char *text);

/// Write a decimal number between two texts.
void memrt__crash_number(const char *before, size_t number, const char *after);

/// Write an address in hexadecimal form.
void memrt__crash_address(uintptr_t address);

/// Write an address of code, and the mapped file with the offset in the file, from /proc/self/maps.
void memrt__crash_frame(uintptr_t address);

#endif
