/// Model: one thread pushes two batches of one block, and two threads pop. Each block goes to one
/// thread, together with what the first thread wrote to the block.

#include "tests/models/model.h"

#include "runtime/alloc/heap/handover.c"
#include "runtime/alloc/heap/size_class.c"

memrt__thread_t memrt__no_thread;
MEMRT__THREAD_LOCAL memrt__thread_t *memrt__self = &memrt__no_thread;
size_t memrt__purger_runs = 1;
memrt__link_t memrt__link;

static memrt__thread_t popper;
static struct {
    size_t header[2];
    void *next;
    size_t value;
} blocks[2];
static size_t popped[2];

bool memrt__lock_is_forking(void)
{
    return false;
}

void memrt__link_refuse(const void *next)
{
    (void)next;
    abort();
}

void memrt__purger_start(void)
{
}

void memrt__purger_add(const memrt__purged_t *cache)
{
    (void)cache;
}

void memrt__central_list_give(unsigned class, void *list)
{
    (void)class, (void)list;
}

static void *pop_one(void *context)
{
    size_t taken;
    memrt__self = &popper;
    void *list = memrt__handover_pop(0, 1, &taken);
    if (list != NULL) {
        size_t index = list == &blocks[1];
        assert(taken == 1 && blocks[index].next == NULL && blocks[index].value == index + 1);
        assert(memrt__fetch_add_relaxed(&popped[index], 1) == 0);
    }
    return context;
}

int main(void)
{
    memrt__store_relaxed(&relays[0].taker, (size_t)&popper);
    memrt__store_relaxed(&relays[0].used, 1);
    pthread_t a = model_thread(pop_one, NULL), b = model_thread(pop_one, NULL);
    for (size_t i = 0; i < 2; i++) {
        blocks[i].next = NULL;
        blocks[i].value = i + 1;
        assert(memrt__handover_push(0, &blocks[i], 1));
    }
    model_join(a);
    model_join(b);
    return 0;
}
