/// Model: two threads publish tables of driver functions. Both threads get the first table, with
/// its contents.

#include "tests/models/model.h"

static void discard_table(void *table)
{
    *(size_t *)table = 0;
}

#define free(table) discard_table(table)

#include "runtime/cuda/driver.c"

#undef free

unsigned memrt__slow_path;
memrt__options_t memrt__options;

static memrt__driver_t tables[2];

static memrt__cu_result_t initialize(unsigned flags)
{
    return flags;
}

static const memrt__driver_t *publish_table(memrt__driver_t *table)
{
    table->init = initialize;
    const memrt__driver_t *published = publish_driver(table);
    assert(published->init == initialize);
    return published;
}

static void *publish_other(void *context)
{
    return (void *)publish_table(&tables[1]);
}

int main(void)
{
    pthread_t other = model_thread(publish_other, NULL);
    const memrt__driver_t *published = publish_table(&tables[0]);
    model_join(other);
    assert(published == get_loaded_driver());
    return 0;
}
