/// Model: one thread is inside the unwinder, while another thread forks. The forking thread goes on
/// after the other thread left the unwinder.

#include "tests/models/os/unwind.h"

static size_t held; /* 1 while a thread is inside the unwinder, as a lock of the library */

static void *call(void *context)
{
    if (enter_gate(&gates[0])) {
        held = 1;
        held = 0;
        leave_gate(&gates[0]);
    }
    return context;
}

int main(void)
{
    pthread_t caller = model_thread(call, NULL);
    memrt__fetch_add_relaxed(&gates[0].inside, CLOSED);
    wait_for_gate(&gates[0], 1);
    assert(held == 0);
    model_join(caller);
    return 0;
}
