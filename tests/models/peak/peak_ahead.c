/// Model: one thread reports more than its bytes in use, and the report raises the peak. Another
/// thread that reads the raised peak also finds that the peak may be too high.

#include "tests/models/peak/peak.h"

static void *report_ahead(void *context)
{
    open_shard(&record.first);
    report_gauge(&record.first, &account, 1);
    close_shard(&record.first);
    return context;
}

int main(void)
{
    level.most_gauges = level.most_hidden = 1;
    pthread_t reporter = model_thread(report_ahead, NULL);
    assert(peak_now() == 0 || found.error != 0);
    model_join(reporter);
    assert(peak_now() == 1);
    return 0;
}
