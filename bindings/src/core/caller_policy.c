#include "core/caller_policy.h"

MEMRT_THREAD_LOCAL const memrt_caller_t *memrt__caller;
