/// Model: a table with one record. The owner of a frozen buffer reports a write, frees the buffer,
/// and later frees another buffer with the same address. Another thread meanwhile freezes its own
/// buffer. The second free never ends the freeze of the other buffer, and the owner of a record
/// reads only its own record. A report of a buffer of both threads reads a complete record.

#include "tests/models/guard/guard.h"

#include "runtime/alloc/guard/frozen_pages.h"

#undef MEMRT__FROZEN_BUFFERS
#define MEMRT__FROZEN_BUFFERS 1u

#include "runtime/alloc/guard/frozen_pages.c"

static const memrt__frozen_range_t first = {PAGE, 100, PAGE, PAGE};
static const memrt__frozen_range_t second = {2 * PAGE, 200, 2 * PAGE, PAGE};

static memrt__frozen_record_t records[MEMRT__FROZEN_BUFFERS];

void *memrt__os_map(size_t size, size_t lead, size_t align)
{
    (void)size, (void)lead, (void)align;
    records[0].page_bytes = 0; /* a plain store: an unordered access is a race */
    return records;
}

int memrt__os_forbid_writes(void *pages, size_t bytes)
{
    (void)pages, (void)bytes;
    return 0;
}

int memrt__os_allow_writes(void *pages, size_t bytes)
{
    (void)bytes;
    assert(pages == (void *)first.pages);
    return 0;
}

uint32_t memrt__site_here(size_t frames, size_t native)
{
    (void)frames, (void)native;
    return 5;
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
