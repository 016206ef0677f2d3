#ifndef MEMRT_REPORT_OOM_SITES_H
#define MEMRT_REPORT_OOM_SITES_H

#include "runtime/report/oom_text.h"

/// Part of the out-of-memory report about listed buffers. Takes the locks of the live set.

/// Append the allocation sites with most tracked live bytes.
void memrt__oom_append_sites(memrt__writing_t *writing);

/// Append the largest live buffers that have a name or a named reference.
void memrt__oom_append_named_buffers(memrt__writing_t *writing);

#endif
