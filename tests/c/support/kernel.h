#ifndef MEMRT_TESTS_SUPPORT_KERNEL_H
#define MEMRT_TESTS_SUPPORT_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

/// What memrt asks of the system goes through here first, so that any of it can be refused: the
/// tests are linked with these calls wrapped. What Check and the C library ask is not seen.

typedef enum kernel_call {
    KERNEL_MAP,      ///< mmap
    KERNEL_UNMAP,    ///< munmap
    KERNEL_REMAP,    ///< mremap
    KERNEL_DISCARD,  ///< madvise(MADV_DONTNEED)
    KERNEL_ADVISE,   ///< madvise with other advice
    KERNEL_THREAD,   ///< pthread_create
    KERNEL_WRITE,    ///< pwrite, as on a full disk
    KERNEL_PART,     ///< pwrite; when refused, the first half is written
    KERNEL_DISTURB,  ///< pwrite, as by a signal
    KERNEL_TRUNCATE, ///< ftruncate
    KERNEL_CALLS
} kernel_call_t;

/// Refuse the next `times` calls after the next `pass`; SIZE_MAX: all.
void kernel_refuse(kernel_call_t call, size_t pass, size_t times);

/// Refuse nothing any more, and let pages have their own size again. Also after each test.
void kernel_obey(void);

/// Calls so far, refused ones too.
size_t kernel_calls(kernel_call_t call);

/// Whether a thread of memrt's own has gone to sleep for longer than a minute.
bool kernel_sleeps_long(void);

/// Have memrt take pages for that large, and discard as such a system does: whole pages.
void kernel_pretend_page_size(size_t size);

#endif
