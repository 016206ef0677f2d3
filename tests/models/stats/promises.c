/// Model: three threads get promises of a byte under a limit of two bytes, and two of the threads
/// report the byte. No more than two threads get a promise.

#include "tests/models/stats/sums.h"

static size_t promised[2];

static void *promise_and_report(void *context)
{
    size_t *got = context;
    if (memrt__level_promise(&level, 1)) {
        memrt__level_report(&level, 1, 1);
        memrt__level_end_promise(&level, 1);
        *got = 1;
    }
    return context;
}

int main(void)
{
    memrt__level_set_limit(&level, 2);
    pthread_t first = model_thread(promise_and_report, &promised[0]);
    pthread_t second = model_thread(promise_and_report, &promised[1]);
    size_t third = memrt__level_promise(&level, 1);
    model_join(first);
    model_join(second);
    assert(promised[0] + promised[1] + third <= 2);
    assert(level.flushed + level.promised == promised[0] + promised[1] + third);
    return 0;
}
