#include "runtime/base/place.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/unwind.h"

void memrt__place_take(memrt__place_t *place)
{
    memset(place, 0, sizeof(*place));
    memrt__unwind(place->frames, MEMRT__PLACE_DEPTH);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static int frame_text(const Dl_info *info, const void *frame, char *text, size_t length)
{
    const char *object = last_part(info->dli_fname);
    if (info->dli_sname != NULL) {
        return snprintf(text, length, "    %s+%#tx in %s\n", info->dli_sname,
                        (const char *)frame - (const char *)info->dli_saddr, object);
    }
    return snprintf(text, length, "    %s+%#tx\n", object,
                    (const char *)frame - (const char *)info->dli_fbase);
}

size_t memrt__place_text(const memrt__place_t *place, char *text, size_t length)
{
    size_t used = 0;
    size_t i = memrt__unwind_own(place->frames, MEMRT__PLACE_DEPTH); /* they say nothing */
    text[0] = '\0';
    for (; i < MEMRT__PLACE_DEPTH && place->frames[i] != NULL; i++) {
        Dl_info info;
        if (dladdr(place->frames[i], &info) == 0 || info.dli_fname == NULL) {
            continue;
        }
        int wrote = frame_text(&info, place->frames[i], text + used, length - used);
        if (wrote < 0 || (size_t)wrote >= length - used) {
            text[used] = '\0'; /* whole lines only */
            break;
        }
        used += (size_t)wrote;
    }
    return used;
}
