#include "runtime/alloc/heap/block_search.h"

#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"

static bool search_segment(uintptr_t start, uintptr_t address, memrt__heap_room_t *out)
{
    const memrt__segment_t *segment = (const memrt__segment_t *)start;
    size_t unit = (address - start) / MEMRT__UNIT;
    uint16_t head;
    memrt__span_t span;
    if (unit < MEMRT__SEGMENT_TABLE || !memrt__os_read(&segment->head[unit], &head, sizeof(head)) ||
        head >= MEMRT__SEGMENT_UNITS ||
        !memrt__os_read(&segment->spans[head], &span, sizeof(span))) {
        return false;
    }
    uintptr_t base = (uintptr_t)span.base;
    if (span.used == 0 || span.class >= MEMRT__CLASSES || span.bytes == 0 || address < base ||
        address >= (uintptr_t)span.fresh) {
        return false;
    }
    *out = (memrt__heap_room_t){.start = base + (address - base) / span.bytes * span.bytes,
                                .bytes = span.bytes,
                                .class = span.class};
    return true;
}

bool memrt__heap_search(uintptr_t address, memrt__heap_room_t *out)
{
    memrt__mapping_use_t use;
    *out = (memrt__heap_room_t){.class = MEMRT__CLASSES};
    if (!memrt__mapping_table_find(address, &out->start, &out->bytes, &use)) {
        return false;
    }
    return use == MEMRT__USE_BLOCK ||
           (use == MEMRT__USE_SEGMENT && search_segment(out->start, address, out));
}
