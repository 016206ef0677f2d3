#include "runtime/alloc/file_backed.h"

#include <stdlib.h>
#include <string.h>

#include <memrt/meminfo.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/mapped.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"

/// Parts of a block's mapping. The block starts in the private pages, so that its data starts on
/// the first page of the file.
typedef struct parts {
    size_t lead; ///< bytes of the block before its data
    size_t own;  ///< bytes of private pages
    size_t file; ///< bytes of the file; 0: the block has no data
} parts_t;

/// Compute the parts. False: too many bytes.
static bool compute_parts(size_t size, size_t align, parts_t *out)
{
    size_t page = memrt__os_page_size(), total;
    out->lead = memrt__size_max(align, MEMRT_HEADER_SIZE);
    out->own = memrt__size_max(out->lead, page);
    return memrt__size_round_up(size > out->lead ? size - out->lead : 0, page, &out->file) &&
           memrt__size_add(out->own, out->file, &total) && total <= PTRDIFF_MAX;
}

/// Map the file of a block. After a refusal, the pages of the range may be unmapped, and other
/// threads may use the addresses; so only the private pages are unmapped.
static bool map_file(const char *folder, char *mapping, const parts_t *parts)
{
    if (parts->file == 0) {
        return true;
    }
    int error = memrt__os_map_file(mapping + parts->own, parts->file, folder);
    if (error != 0) {
        memrt__mapped_delete(mapping, parts->own);
        return false;
    }
    size_t word = memrt__mapping_table_remove(mapping);
    memrt__mapping_table_restore(word, mapping, parts->own + parts->file);
    return true;
}

static void *file_alloc(void *ctx, size_t size, size_t align)
{
    parts_t parts;
    if (!compute_parts(size, align, &parts)) {
        return NULL;
    }
    size_t page = memrt__os_page_size(), bytes = parts.own + parts.file;
    char *mapping = memrt__os_reserve(bytes, memrt__size_max(align, page));
    if (mapping == NULL) {
        return NULL;
    }
    if (!memrt__os_commit(mapping, 0, parts.own)) {
        memrt__mapped_delete(mapping, bytes);
        return NULL;
    }
    memrt__mapping_table_mark(mapping, MEMRT__USE_BLOCK);
    return map_file(ctx, mapping, &parts) ? mapping + parts.own - parts.lead : NULL;
}

static void file_free(void *ctx, void *ptr, size_t size, size_t align)
{
    parts_t parts;
    bool fits = compute_parts(size, align, &parts);
    (void)ctx;
    MEMRT__ASSERT(fits);
    (void)fits;
    memrt__mapped_delete((char *)ptr + parts.lead - parts.own, parts.own + parts.file);
}

static size_t file_good_size(void *ctx, size_t size, size_t align)
{
    parts_t parts;
    (void)ctx;
    return compute_parts(size, align, &parts) ? parts.lead + parts.file : size;
}

static size_t file_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ptr;
    return file_good_size(ctx, size, align);
}

bool memrt__is_file_backed(const memrt_allocator_t *allocator)
{
    return allocator->alloc == file_alloc;
}

memrt_status_t memrt__upstream_copy(const memrt_allocator_t *from, memrt_allocator_t *to)
{
    memrt_status_t status = memrt__allocator_copy(from, to);
    return status == MEMRT_OK && memrt__is_file_backed(to) ? MEMRT_EINVAL : status;
}

memrt_status_t memrt__file_backed_new(const char *folder, memrt_allocator_t *out)
{
    char *path = NULL;
    if (folder != NULL && !memrt__os_can_map_file(folder)) {
        return MEMRT_EINVAL;
    }
    if (folder != NULL) {
        path = memrt__fault_is_due() ? NULL : realpath(folder, NULL);
        if (path == NULL) {
            return MEMRT_ENOMEM;
        }
    }
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = folder == NULL ? "memory file" : "file",
        .ctx = path,
        .alloc = file_alloc,
        .alloc_zeroed = file_alloc, /* a new file is zero */
        .free = file_free,
        .destroy = free,
        .usable_size = file_usable_size,
        .good_size = file_good_size,
    };
    return MEMRT_OK;
}
