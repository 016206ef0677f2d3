#include "runtime/event/user_observer.h"

static const memrt_observer_t *observer;

void memrt__user_observer_set(const memrt_observer_t *next)
{
    memrt__store_release((size_t *)&observer, (size_t)next);
}

static const memrt_observer_t *get_observer(void)
{
    return (const memrt_observer_t *)memrt__load_acquire((const size_t *)&observer);
}

void memrt__user_observer_mark(const memrt_meminfo_t *mi)
{
    const memrt_observer_t *now = get_observer();
    if (now != NULL && now->struct_size >= sizeof(*now) && now->observe != NULL) {
        now->observe(mi->data);
    }
}

void memrt__user_observer_notify(const memrt__block_event_t *event)
{
    const memrt_observer_t *now = get_observer();
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
