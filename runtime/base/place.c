#include "runtime/base/place.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifdef __GLIBC__
#include <execinfo.h>
#endif

void memrt__place_take(memrt__place_t *place)
{
    memset(place, 0, sizeof(*place));
#ifdef __GLIBC__
    backtrace(place->frames, MEMRT__PLACE_DEPTH);
#endif
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

/// Where this library is loaded.
static const void *own_base(void)
{
    Dl_info info;
    return dladdr((const void *)&own_base, &info) != 0 ? info.dli_fbase : NULL;
}

size_t memrt__place_text(const memrt__place_t *place, char *text, size_t length)
{
    const void *own = own_base();
    bool inside = true; /* memrt's own calls come first and say nothing */
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < MEMRT__PLACE_DEPTH && place->frames[i] != NULL; i++) {
        Dl_info info;
        bool known = dladdr(place->frames[i], &info) != 0 && info.dli_fname != NULL;
        inside = inside && known && info.dli_fbase == own;
        if (inside || !known) {
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
