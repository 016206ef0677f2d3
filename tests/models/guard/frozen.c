/// Model: a table with one record. The owner of a frozen buffer reports a write, frees the buffer,
/// and later frees another buffer with the same address. Another thread meanwhile freezes its own
/// buffer. The second free never ends the freeze of the other buffer, and the owner of a record
/// reads only its own record. A report of a buffer of both threads reads a complete record.

#include "tests/models/model.h"

#include "runtime/alloc/guard/frozen_pages.h"

#undef MEMRT__FROZEN_BUFFERS
#define MEMRT__FROZEN_BUFFERS 1u

#include "runtime/observe/call_stack.h"

/* The checker refuses copies of call stacks. A stack is a word here. */
#define memrt__call_stack_t size_t
#define memrt__call_stack_record(stack) ((void)(*(stack) = 9))

#include "runtime/alloc/guard/frozen_pages.c"

enum { PAGE = 4096 };
static const memrt__frozen_range_t first = {PAGE, 100, PAGE, PAGE};
static const memrt__frozen_range_t second = {2 * PAGE, 200, 2 * PAGE, PAGE};

static memrt__frozen_record_t records[MEMRT__FROZEN_BUFFERS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_second_protected; /* by the thread that froze the second buffer */

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

void *memrt__os_map(size_t size, size_t lead, size_t align)
{
    (void)size, (void)lead, (void)align;
    records[0].page_bytes = 0; /* a plain store: an unordered access is a race */
    return records;
}

int memrt__os_forbid_writes(void *pages, size_t bytes)
{
    (void)bytes;
    is_second_protected |= pages == (void *)second.pages;
    return 0;
}

int memrt__os_allow_writes(void *pages, size_t bytes)
{
    (void)bytes;
    assert(pages == (void *)first.pages);
    return 0;
}

bool memrt__fault_signal_install(memrt__fault_report_fn report)
{
    return report != NULL;
}

uint32_t memrt__site_here(size_t frames, size_t native)
{
    (void)frames, (void)native;
    return 5;
}

uint64_t memrt__os_thread_id(void)
{
    return 1;
}

void memrt__frozen_record_report(const memrt__frozen_record_t *record, uintptr_t address,
                                 const char *access)
{
    (void)access;
    assert(record->bytes == address / PAGE * 100 && record->site == 5 && record->stack == 9);
}

static void *freeze_second(void *context)
{
    if (memrt__frozen_pages_add(&second) == MEMRT_OK) {
        assert(memrt__frozen_pages_report(second.pages, "write"));
    }
    return context;
}

int main(void)
{
    pthread_t other = model_thread(freeze_second, NULL);
    assert(memrt__frozen_pages_end(3 * PAGE));
    if (memrt__frozen_pages_add(&first) == MEMRT_OK) {
        assert(memrt__frozen_pages_report(first.pages, "write"));
        assert(memrt__frozen_pages_end(first.data));
        assert(memrt__frozen_pages_end(first.data));
    }
    (void)memrt__frozen_pages_report(second.pages, "write"); /* of a buffer of both threads */
    model_join(other);
    return 0;
}
