#ifndef MEMRT_TESTS_MODELS_GUARD_GUARD_H
#define MEMRT_TESTS_MODELS_GUARD_GUARD_H

/// Lower layers of the tables of guard pages and frozen pages: a lock, a page size, and one signal
/// handler.

#include "tests/models/model.h"

#include "runtime/observe/call_stack.h"
#include "runtime/os/fault_signal.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"

/* The checker refuses copies of call stacks. A stack is a word here. */
#define memrt__call_stack_t size_t
#define memrt__call_stack_record(stack) ((void)(*(stack) = 9))

enum { PAGE = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

unsigned memrt__slow_path;

void memrt__lock(memrt__rank_t rank)
{
    (void)rank;
    pthread_mutex_lock(&mutex);
}

void memrt__unlock(memrt__rank_t rank)
{
    (void)rank;
    pthread_mutex_unlock(&mutex);
}

size_t memrt__os_page_size(void)
{
    return PAGE;
}

bool memrt__fault_signal_install(memrt__fault_report_fn report)
{
    return report != NULL;
}

uint64_t memrt__os_thread_id(void)
{
    return 1;
}

#endif
