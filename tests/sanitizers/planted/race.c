/// Write one word of a block from two threads without a lock. ThreadSanitizer must report the race.

#include <pthread.h>
#include <stddef.h>

#include <memrt/memrt.h>

static void *write_often(void *data)
{
    size_t *word = data;
    for (int i = 0; i < 100000; i++) {
        ++*(volatile size_t *)word;
    }
    return NULL;
}

int main(void)
{
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_meminfo_t *mi = api->allocate(sizeof(size_t));
    void *data = api->get_data(mi);
    pthread_t other;
    if (pthread_create(&other, NULL, write_often, data) != 0) {
        return 0; /* no second thread, so neither a race nor a report */
    }
    write_often(data);
    pthread_join(other, NULL);
    api->release(mi);
    return 0;
}
