#include "runtime/event/watcher_observer.h"

static const memrt_watcher_t *watcher;

void memrt__watcher_set(const memrt_watcher_t *next)
{
    memrt__store_release((size_t *)&watcher, (size_t)next);
}

static const memrt_watcher_t *get_watcher(void)
{
    return (const memrt_watcher_t *)memrt__load_acquire((const size_t *)&watcher);
}

void memrt__watcher_mark(const memrt_meminfo_t *mi)
{
    const memrt_watcher_t *now = get_watcher();
    if (now != NULL && now->struct_size >= sizeof(*now) && now->watch != NULL) {
        now->watch(mi->data);
    }
}

void memrt__watcher_observe(const memrt__block_event_t *event)
{
    const memrt_watcher_t *now = get_watcher();
    const memrt_meminfo_t *mi = event->mi;
    if (now == NULL) {
        return;
    }
    if (event->type == MEMRT__EVENT_RESIZE) {
        now->resize((void *)event->before->data, mi->data, mi->size);
    } else if (mi->data != NULL) {
        now->free(mi->data);
    }
}
