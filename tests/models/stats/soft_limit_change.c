/// Model: a soft limit is set while the owner of a gauge follows the limits. A gauge that knows the
/// change has the new limit.

#include "tests/models/stats/sums.h"

static void *set_soft(void *context)
{
    memrt__level_set_soft(&level, 6400);
    return context;
}

int main(void)
{
    maker.sequence = 1;
    pthread_t setter = model_thread(set_soft, NULL);
    memrt__promise_follow_limits(&maker, &account);
    assert(maker.quantum == (maker.limit_changes == 0 ? 0 : 100));
    model_join(setter);
    return 0;
}
