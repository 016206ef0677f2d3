/// Model: a limit is set while the owner of a gauge follows the limits. A gauge that knows the
/// change has the new limit.

#include "tests/models/stats/sums.h"

static void *set_limit(void *context)
{
    memrt__level_set_limit(&level, 6400);
    return context;
}

int main(void)
{
    maker.sequence = 1;
    pthread_t setter = model_thread(set_limit, NULL);
    memrt__promise_follow_limits(&maker, &account);
    assert(maker.quantum == (maker.limit_changes == 0 ? 0 : 100));
    model_join(setter);
    memrt__promise_follow_limits(&maker, &account);
    assert(maker.limit_changes == 1 && maker.quantum == 100);
    return 0;
}
