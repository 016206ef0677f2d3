#include "runtime/alloc/placed/placed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/large_cache_purge.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/mapped.h"
#include "runtime/alloc/placed/node_place.h"
#include "runtime/alloc/placed/node_text.h"
#include "runtime/alloc/placed/page_ladder.h"
#include "runtime/alloc/placed/pool_map.h"
#include "runtime/alloc/placed/prefault.h"
#include "runtime/alloc/placed/refusal.h"
#include "runtime/base/atomics.h"
#include "runtime/base/size.h"
#include "runtime/config/fault_injection.h"
#include "runtime/os/mapping_table.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

/// Context of a placed allocator. All members but refusals are fixed.
typedef struct placed {
    memrt__large_cache_t *cache;
    memrt__nodes_t nodes;
    memrt__page_ladder_t ladder;
    char pages[MEMRT__PAGES_TEXT], node[MEMRT__NODE_TEXT]; ///< texts of the options; "": none
    memrt_lock_t lock;
    unsigned prefault; ///< threads; 0: pages have memory from the first touch
    memrt__refusal_t lock_refused;
} placed_t;

/* --- Placing of a mapping. --- */

/// Place pages. Parts of a split range begin at multiples of a huge page, if a huge page fits.
static bool place_on_nodes(placed_t *placed, void *start, size_t bytes)
{
    size_t unit = bytes >= MEMRT__HUGE_PAGE ? MEMRT__HUGE_PAGE : memrt__os_page_size();
    return memrt__node_place(&placed->nodes, start, bytes, unit) == 0;
}

/// Give memory to the pages of a range, by the threads of the setting.
static int fill(const placed_t *placed, void *start, size_t bytes)
{
    return memrt__prefault(start, bytes, placed->prefault, memrt__node_place_set(&placed->nodes));
}

/// Give transparent huge pages to a range of whole huge pages. Pages that the kernel did not make
/// huge at the first touch are replaced.
static bool make_huge(placed_t *placed, void *start, size_t bytes)
{
    int error = fill(placed, start, bytes);
    error = error == 0 ? memrt__os_collapse(start, bytes) : error;
    return memrt__refusal_note(&placed->ladder.refused[MEMRT__RUNG_THP], error);
}

static bool lock_pages(placed_t *placed, void *mapping, size_t bytes)
{
    return placed->lock == MEMRT_LOCK_NONE ||
           memrt__refusal_note(&placed->lock_refused, memrt__os_lock_pages(mapping, bytes)) ||
           placed->lock == MEMRT_LOCK_TRY;
}

/// Place the pages of a mapping, also of one that is reused: its node may be another thread's, and
/// a forked child has lost the lock. False: the system refused a demand.
static bool place(void *context, void *mapping, size_t bytes)
{
    placed_t *placed = context;
    size_t pool = memrt__mapping_table_pool(mapping);
    if (pool == bytes) { /* pages of the pool are placed, and always stay in memory */
        return true;
    }
    char *rest = (char *)mapping + pool;
    bytes -= pool;
    if (!place_on_nodes(placed, rest, bytes) ||
        (placed->ladder.demanded != 0 && !make_huge(placed, rest, bytes))) {
        return false;
    }
    if (placed->prefault != 0) { /* before mlock(), which uses one thread */
        (void)fill(placed, rest, bytes);
    }
    return lock_pages(placed, rest, bytes);
}

/// Map memory, see memrt__map_fn.
static void *map(void *context, size_t bytes, size_t align, memrt__huge_t huge)
{
    placed_t *placed = context;
    memrt__pool_map_t pool = {&placed->ladder, &placed->nodes, placed->prefault};
    size_t least = memrt__page_ladder_align(&placed->ladder, bytes);
    char *mapping = memrt__mapped_new(bytes, memrt__size_max(align, least), huge);
    if (mapping != NULL && placed->ladder.has[MEMRT__RUNG_4K] &&
        !placed->ladder.has[MEMRT__RUNG_THP]) {
        memrt__os_advise_huge(mapping, bytes, false); /* the system may use huge pages by default */
    }
    if (mapping != NULL && !memrt__pool_map(&pool, mapping, bytes)) {
        memrt__mapped_delete(mapping, bytes);
        mapping = NULL;
    }
    return mapping;
}

/* --- Blocks. --- */

static size_t get_bytes(const placed_t *placed, size_t size)
{
    size_t bytes;
    bool fits = memrt__page_ladder_bytes(&placed->ladder, size, &bytes);
    MEMRT__ASSERT(fits);
    (void)fits;
    return bytes;
}

static void *take(const placed_t *placed, size_t size, size_t align, bool zeroed)
{
    size_t bytes;
    size_t least = memrt__size_max(placed->ladder.demanded, memrt__os_page_size());
    return memrt__page_ladder_bytes(&placed->ladder, size, &bytes)
               ? memrt__large_cache_take(placed->cache, bytes, memrt__size_max(align, least),
                                         zeroed)
               : NULL;
}

static void *placed_alloc(void *ctx, size_t size, size_t align)
{
    return take(ctx, size, align, false);
}

static void *placed_alloc_zeroed(void *ctx, size_t size, size_t align)
{
    return take(ctx, size, align, true);
}

static void placed_free(void *ctx, void *ptr, size_t size, size_t align)
{
    const placed_t *placed = ctx;
    (void)align;
    if (memrt__mapping_table_pool(ptr) != 0) { /* other processes may need the pages of the pool */
        memrt__large_cache_drop(placed->cache, ptr, get_bytes(placed, size));
        return;
    }
    memrt__large_cache_give(placed->cache, ptr, get_bytes(placed, size));
    memrt__purger_wake();
}

static size_t placed_release_unused(void *ctx)
{
    return memrt__large_cache_purge(((const placed_t *)ctx)->cache, UINT64_MAX);
}

static void placed_usage(void *ctx, memrt_allocator_usage_t *out)
{
    out->cached = memrt__large_cache_cached(((const placed_t *)ctx)->cache);
}

static size_t placed_good_size(void *ctx, size_t size, size_t align)
{
    const placed_t *placed = ctx;
    size_t bytes;
    (void)align;
    return memrt__page_ladder_bytes(&placed->ladder, size, &bytes) ? bytes : size;
}

static size_t placed_usable_size(void *ctx, const void *ptr, size_t size, size_t align)
{
    (void)ptr;
    return placed_good_size(ctx, size, align);
}

static void placed_destroy(void *ctx)
{
    placed_t *placed = ctx;
    memrt__large_cache_delete(placed->cache);
    free(placed);
}

/* --- Creation. --- */

static bool refuse(char *why, size_t length, const char *rule, const char *value)
{
    if (why != NULL) {
        snprintf(why, length, "%s, got '%.60s'", rule, value);
    }
    return false;
}

static bool refuse_number(char *why, size_t length, const char *rule, uint32_t value)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", value);
    return refuse(why, length, rule, number);
}

static bool read_pages(const char *text, placed_t *placed, memrt__limits_t *limits)
{
    memrt__page_ladder_t *ladder = &placed->ladder;
    if (!memrt__page_ladder_read(text, ladder)) {
        return false;
    }
    if (ladder->has[MEMRT__RUNG_THP] || ladder->has[MEMRT__RUNG_4K]) {
        limits->huge_pages = ladder->has[MEMRT__RUNG_THP] ? MEMRT__HUGE_ADVISE : MEMRT__HUGE_OFF;
    }
    return true;
}

static bool has_nodes(const memrt__nodes_t *nodes, const char *text, char *why, size_t length)
{
    int error = memrt__node_place_try(nodes);
    if (error == 0) {
        return true;
    }
    return refuse(why, length,
                  error == EINVAL
                      ? "node must exist, see /sys/devices/system/node/online"
                      : "node must be unset where the system refuses mbind(), as containers do",
                  text);
}

static bool read_options(const memrt_placement_options_t *options, placed_t *placed,
                         memrt__limits_t *limits, char *why, size_t length)
{
    if (!read_pages(options->pages, placed, limits)) {
        return refuse(why, length,
                      "pages must be some of '1G', '2M', 'thp' and '4K' in this order, with ',' "
                      "between and '!' at most at the end",
                      options->pages);
    }
    if (!memrt__node_text_read(options->node, &placed->nodes)) {
        return refuse(why, length,
                      "node must be 'local', 'N', 'N,N!', 'N,N!home:N', 'interleave:N,N', "
                      "'weighted:N,N' or 'split:W:W'",
                      options->node);
    }
    if (!has_nodes(&placed->nodes, options->node, why, length)) {
        return false;
    }
    if (options->lock > MEMRT_LOCK_MUST) {
        return refuse_number(why, length, "lock must be a memrt_lock_t", options->lock);
    }
    if (options->prefault > MEMRT__PREFAULT_THREADS) {
        return refuse_number(why, length, "prefault must be at most 64 threads", options->prefault);
    }
    snprintf(placed->pages, sizeof(placed->pages), "%s",
             options->pages == NULL ? "" : options->pages);
    snprintf(placed->node, sizeof(placed->node), "%s", options->node == NULL ? "" : options->node);
    placed->lock = (memrt_lock_t)options->lock;
    placed->prefault = options->prefault;
    return true;
}

static memrt_status_t create(const placed_t *settings, const memrt__limits_t *limits,
                             memrt_allocator_t *out)
{
    placed_t *placed = memrt__fault_is_due() ? NULL : malloc(sizeof(*placed));
    memrt__large_cache_t *cache = placed == NULL ? NULL : memrt__large_cache_new(limits);
    if (cache == NULL) {
        free(placed);
        return MEMRT_ENOMEM;
    }
    *placed = *settings;
    placed->cache = cache;
    memrt__large_cache_place(cache, map, place, placed);
    *out = (memrt_allocator_t){
        .struct_size = sizeof(*out),
        .version = MEMRT_ALLOCATOR_VERSION,
        .name = "placed",
        .ctx = placed,
        .alloc = placed_alloc,
        .alloc_zeroed = placed_alloc_zeroed,
        .free = placed_free,
        .release_unused = placed_release_unused,
        .usage = placed_usage,
        .destroy = placed_destroy,
        .usable_size = placed_usable_size,
        .good_size = placed_good_size,
    };
    memrt__purger_hurry();
    return MEMRT_OK;
}

memrt_status_t memrt__placed_new(const memrt_placement_options_t *options, memrt_allocator_t *out,
                                 char *why, size_t length)
{
    memrt_placement_options_t all = {0};
    memrt__limits_t limits = MEMRT__INHERIT_ALL;
    placed_t settings = {0};
    if (options->struct_size < sizeof(options->struct_size)) {
        return MEMRT_EINVAL;
    }
    memcpy(&all, options, memrt__size_min(options->struct_size, sizeof(all)));
    if (!read_options(&all, &settings, &limits, why, length)) {
        return MEMRT_EINVAL;
    }
    memrt_status_t status = create(&settings, &limits, out);
    if (status == MEMRT_OK && !memrt__options.cache) {
        memrt__placed_close(out);
    }
    return status;
}

static const char *text_or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

bool memrt__placed_asked(const memrt_allocator_t *allocator, memrt_placement_asked_t *out)
{
    if (allocator->alloc != placed_alloc) {
        return false;
    }
    const placed_t *placed = allocator->ctx;
    *out = (memrt_placement_asked_t){
        .struct_size = out->struct_size,
        .pages = text_or_null(placed->pages),
        .node = text_or_null(placed->node),
        .lock = placed->lock,
        .prefault = placed->prefault,
        .thp_refused = memrt__refusal_read(&placed->ladder.refused[MEMRT__RUNG_THP]),
        .pool_2m_refused = memrt__refusal_read(&placed->ladder.refused[MEMRT__RUNG_2M]),
        .home_refused = memrt__refusal_read(&placed->nodes.home_refused),
        .pool_1g_refused = memrt__refusal_read(&placed->ladder.refused[MEMRT__RUNG_1G]),
        .node_refused = memrt__refusal_read(&placed->nodes.refused),
        .lock_refused = memrt__refusal_read(&placed->lock_refused),
    };
    return true;
}

void memrt__placed_close(const memrt_allocator_t *allocator)
{
    if (allocator->alloc == placed_alloc) {
        memrt__large_cache_close(((const placed_t *)allocator->ctx)->cache);
    }
}
