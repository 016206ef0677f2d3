/// Model: two threads promise a byte each above a soft limit of one byte, one of them reports the
/// byte, and the pressure thread ends an earlier rise meanwhile. The new rise is noted or counted.

#include "tests/models/stats/sums.h"

static void promise_one_byte(void)
{
    assert(memrt__level_promise(&level, 1)); /* there is no limit */
    memrt__level_note_soft(&level);
}

static void *promise_and_report(void *context)
{
    promise_one_byte();
    memrt__level_report(&level, 1, 1);
    memrt__level_end_promise(&level, 1);
    return context;
}

static void *promise_only(void *context)
{
    promise_one_byte();
    return context;
}

int main(void)
{
    memrt__level_set_soft(&level, 1);
    level.soft_state = MEMRT__SOFT_ABOVE;
    pthread_t first = model_thread(promise_and_report, NULL);
    pthread_t second = model_thread(promise_only, NULL);
    (void)!memrt__level_update_soft(&level);
    model_join(first);
    model_join(second);
    assert(level.soft_state != MEMRT__SOFT_BELOW);
    return 0;
}
