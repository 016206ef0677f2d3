#include "runtime/meminfo/block_layout.h"

#include "runtime/base/check.h"
#include "runtime/base/size.h"
#include "runtime/policy/policy.h"

_Static_assert(sizeof(memrt_meminfo_t) == MEMRT_HEADER_SIZE, "the header is one line");
_Static_assert(offsetof(memrt_meminfo_t, refct) == 0, "compiled code counts at 0");
_Static_assert(offsetof(memrt_meminfo_t, dtor) == 8, "NRT's second word");
_Static_assert(offsetof(memrt_meminfo_t, dtor_info) == 16, "NRT's third word");
_Static_assert(offsetof(memrt_meminfo_t, data) == 24, "compiled code reads data at 24");
_Static_assert(offsetof(memrt_meminfo_t, size) == 32, "NRT's fifth word");
_Static_assert(offsetof(memrt_meminfo_t, external_allocator) == 40, "NRT's sixth word");
_Static_assert(((MEMRT__FLAG_FAST | MEMRT__FLAG_MEMINFO) & MEMRT__FLAG_KNOWN) == 0,
               "no state of a fast path has the flag of an observer");
_Static_assert(MEMRT__ACCOUNTS <= UINT16_MAX + 1u, "an index fits the header");

bool memrt__block_layout_compute(memrt_kind_t kind, size_t size, size_t alignment, size_t shift,
                                 memrt__block_layout_t *out)
{
    MEMRT__ASSERT(memrt__is_power_of_two(alignment));
    out->align = memrt__size_max(alignment, MEMRT_ALIGN_MIN);
    out->guarded = false;
    if (!memrt__has_data(kind)) {
        out->lead = out->bytes = MEMRT_HEADER_SIZE;
        return true;
    }
    MEMRT__ASSERT(shift < out->align && shift % MEMRT__HEADER_ALIGN == 0);
    out->lead = shift == 0 ? out->align : memrt__size_max(out->align, MEMRT__OFFSET_LEAD) + shift;
    return memrt__size_add(out->lead, memrt__size_max(size, 1), &out->bytes) &&
           out->bytes <= PTRDIFF_MAX;
}

bool memrt__block_layout_resize(const memrt_meminfo_t *mi, size_t size, memrt__block_layout_t *out)
{
    return memrt__block_layout_compute((memrt_kind_t)mi->kind, size, (size_t)1 << mi->align_log2,
                                       memrt__block_shift_of(mi), out);
}

memrt__block_layout_t memrt__block_layout_of(const memrt_meminfo_t *mi)
{
    memrt__block_layout_t layout;
    bool fits = memrt__block_layout_resize(mi, mi->size, &layout);
    MEMRT__ASSERT(fits);
    (void)fits;
    if (mi->external_allocator != NULL) {
        layout.bytes += layout.align;
    }
    return layout;
}

size_t memrt__block_extra_bytes(const memrt_meminfo_t *mi, size_t bytes)
{
    size_t data = memrt__has_data((memrt_kind_t)mi->kind) ? mi->size : 0;
    MEMRT__ASSERT(bytes >= MEMRT_HEADER_SIZE + data);
    return bytes - MEMRT_HEADER_SIZE - data;
}
