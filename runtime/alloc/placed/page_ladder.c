#include "runtime/alloc/placed/page_ladder.h"

#include <string.h>

#include "runtime/alloc/heap/large_cache.h"
#include "runtime/base/size.h"
#include "runtime/os/os.h"
#include "runtime/os/placement.h"

static const struct {
    const char *name;
    size_t page; ///< bytes of a page
} rungs[] = {
    [MEMRT__RUNG_1G] = {"1G", MEMRT__GIANT_PAGE},
    [MEMRT__RUNG_2M] = {"2M", MEMRT__HUGE_PAGE},
    [MEMRT__RUNG_THP] = {"thp", MEMRT__HUGE_PAGE},
    [MEMRT__RUNG_4K] = {"4K", 0},
};

/// Return the rung at the start of a text, or MEMRT__RUNGS.
static unsigned find_rung(const char *text)
{
    unsigned rung = 0;
    while (rung < MEMRT__RUNGS && strncmp(text, rungs[rung].name, strlen(rungs[rung].name)) != 0) {
        rung++;
    }
    return rung;
}

bool memrt__page_ladder_read(const char *text, memrt__page_ladder_t *out)
{
    *out = (memrt__page_ladder_t){0};
    if (text == NULL) {
        return true;
    }
    for (unsigned next = 0;;) {
        unsigned rung = find_rung(text);
        if (rung == MEMRT__RUNGS || rung < next) {
            return false;
        }
        out->has[rung] = true;
        text += strlen(rungs[rung].name);
        if (*text != ',') {
            out->demanded = *text == '!' ? rungs[rung].page : 0;
            return *text == '\0' || strcmp(text, "!") == 0;
        }
        text++;
        next = rung + 1;
    }
}

bool memrt__page_ladder_has_pool(const memrt__page_ladder_t *ladder)
{
    return ladder->has[MEMRT__RUNG_1G] || ladder->has[MEMRT__RUNG_2M];
}

bool memrt__page_ladder_bytes(const memrt__page_ladder_t *ladder, size_t size, size_t *bytes)
{
    size_t page = memrt__os_page_size();
    if (ladder->demanded != 0) {
        return memrt__size_round_up(size, ladder->demanded, bytes);
    }
    return memrt__page_ladder_has_pool(ladder)
               ? memrt__size_round_up(memrt__size_max(size, 2 * page), page, bytes)
               : memrt__large_cache_bytes(size, bytes);
}

size_t memrt__page_ladder_align(const memrt__page_ladder_t *ladder, size_t bytes)
{
    size_t align = memrt__size_max(ladder->demanded, memrt__os_page_size());
    for (unsigned rung = MEMRT__RUNG_1G; rung <= MEMRT__RUNG_2M; rung++) {
        if (ladder->has[rung] && bytes >= rungs[rung].page) {
            align = memrt__size_max(align, rungs[rung].page);
        }
    }
    return align;
}
