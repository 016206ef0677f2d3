#include "runtime/report/mappings.h"

#include "runtime/alloc/heap/pages/segment.h"
#include "runtime/os/mapping_table.h"

/// Elements that the caller provides, and the number of mappings so far.
typedef struct writer {
    memrt_mapping_t *out;
    size_t room, count;
} writer_t;

static void write_mapping(writer_t *writer, uintptr_t address, size_t bytes,
                          memrt_mapping_use_t use)
{
    if (writer->count < writer->room) {
        memrt_mapping_t *out = &writer->out[writer->count];
        out->address = address;
        out->bytes = bytes;
        out->use = (uint64_t)use;
    }
    writer->count++;
}

static void add_mapping(void *context, uintptr_t address, size_t bytes, memrt__mapping_use_t use)
{
    size_t table = MEMRT__SEGMENT_TABLE * MEMRT__UNIT;
    switch (use) {
    case MEMRT__USE_SEGMENT:
        write_mapping(context, address, table, MEMRT_MAPPING_RECORDS);
        write_mapping(context, address + table, bytes - table, MEMRT_MAPPING_SPANS);
        break;
    case MEMRT__USE_BLOCK:
        write_mapping(context, address, bytes, MEMRT_MAPPING_BLOCK);
        break;
    case MEMRT__USE_CACHED:
        write_mapping(context, address, bytes, MEMRT_MAPPING_CACHED);
        break;
    case MEMRT__USE_RECORDS:
        write_mapping(context, address, bytes, MEMRT_MAPPING_RECORDS);
        break;
    }
}

static bool has_sizes(const memrt_mapping_t *out, size_t count)
{
    size_t i = 0;
    while (i < count && out[i].struct_size == sizeof(*out)) {
        i++;
    }
    return i == count;
}

memrt_status_t memrt__mappings_read(memrt_mapping_t *out, size_t *count)
{
    if (count == NULL || (out == NULL && *count != 0) || !has_sizes(out, *count)) {
        return MEMRT_EINVAL;
    }
    writer_t writer = {out, *count, 0};
    memrt__mapping_table_visit(add_mapping, &writer);
    *count = writer.count;
    return MEMRT_OK;
}
