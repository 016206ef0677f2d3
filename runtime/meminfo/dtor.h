#ifndef MEMRT_MEMINFO_DTOR_H
#define MEMRT_MEMINFO_DTOR_H

#include <memrt/meminfo.h>

/// The end of a MemInfo: its destructor, then its memory.

/// Run the destructor of a MemInfo whose count is zero, then delete it.
///
/// A destructor may release the last reference to another, whose destructor does the same. Beyond a
/// depth it waits until the first one has returned, so that no chain is too long for the stack. The
/// one exception are MemInfos of an external allocator.
void memrt__dtor_call(memrt_meminfo_t *mi);

/// From now on destructors do not run.
void memrt__dtor_shutdown(void);

#endif
