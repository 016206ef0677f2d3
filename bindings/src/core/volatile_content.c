#include "core/volatile_content.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/errors.h"

/// First word of a page while the content is not pinned.
#define TAG ((uint64_t)0x6d656d7274766f6c)

/// Priority of the first reclaim callback: contents go before the memory of other callbacks.
#define PRIORITY (-1000)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Under the mutex, under which no function of memrt runs: contents that are not pinned, by the time
   of the last use. */
static memrt_content_t *oldest, *newest;

static void lock_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock_mutex(void)
{
    pthread_mutex_unlock(&mutex);
}

static void add_to_list(memrt_content_t *content)
{
    content->older = newest;
    content->newer = NULL;
    *(newest == NULL ? &oldest : &newest->newer) = content;
    newest = content;
    content->listed = true;
}

static void remove_from_list(memrt_content_t *content)
{
    *(content->older == NULL ? &oldest : &content->older->newer) = content->newer;
    *(content->newer == NULL ? &newest : &content->newer->older) = content->older;
    content->listed = false;
}

/// Return the first word of a page.
static _Atomic uint64_t *get_word(const memrt_content_t *content, size_t page)
{
    return (_Atomic uint64_t *)(void *)((char *)content->mi->data + page * content->page_size);
}

/// Allow the kernel to drop the pages. Without MADV_FREE, or for locked memory, the kernel keeps
/// the pages, and only memrt drops the content.
static void allow_drop(memrt_content_t *content)
{
    for (size_t page = 0; page < content->pages; page++) {
        content->words[page] = atomic_exchange(get_word(content, page), TAG);
    }
    (void)madvise(content->mi->data, content->pages * content->page_size, MADV_FREE);
    add_to_list(content);
}

/// Keep the pages from now on. Returns false if the kernel dropped a page.
static bool forbid_drop(memrt_content_t *content)
{
    bool kept = true;
    remove_from_list(content);
    for (size_t page = 0; page < content->pages && kept; page++) {
        kept = atomic_exchange(get_word(content, page), content->words[page]) == TAG;
    }
    return kept;
}

/// Take the block out of a content that may be dropped or was not made. NULL without a block.
static memrt_meminfo_t *take_block(memrt_content_t *content)
{
    memrt_meminfo_t *mi = content->mi;
    if (content->listed) {
        remove_from_list(content);
    }
    content->mi = NULL;
    content->made = false;
    return mi;
}

static void release_block(memrt_meminfo_t *mi)
{
    if (mi != NULL) {
        memrt__api()->release(mi);
    }
}

void memrt__content_end(memrt_content_t *content, bool pin)
{
    memrt_meminfo_t *dead = NULL;
    lock_mutex();
    content->pins -= pin;
    bool last = --content->refs == 0, unpinned = pin && content->pins == 0;
    if (last || (unpinned && !content->made)) {
        dead = take_block(content);
    } else if (unpinned) {
        allow_drop(content);
    }
    unlock_mutex();
    release_block(dead);
    if (last) {
        PyMem_RawFree(content);
    }
}

/// Chain of blocks to release. The data of a block has the link.
typedef struct chain {
    memrt_meminfo_t *first;
    size_t bytes;
} chain_t;

static void add_to_chain(chain_t *chain, memrt_content_t *content)
{
    memrt_meminfo_t *mi = take_block(content);
    *(memrt_meminfo_t **)mi->data = chain->first;
    chain->first = mi;
    chain->bytes += content->pages * content->page_size;
}

/// Release the blocks and return the result of a reclaim callback.
static size_t release_chain(const chain_t *chain)
{
    if (chain->first == NULL) {
        return MEMRT_RECLAIM_NOTHING;
    }
    for (memrt_meminfo_t *mi = chain->first, *next; mi != NULL; mi = next) {
        next = *(memrt_meminfo_t **)mi->data;
        memrt__api()->release(mi);
    }
    return chain->bytes;
}

/// Drop contents, least recently used first, until `wanted` bytes are free.
static size_t drop_oldest(void *context, size_t wanted)
{
    chain_t chain = {NULL, 0};
    (void)context;
    lock_mutex();
    while (oldest != NULL && chain.bytes < wanted) {
        add_to_chain(&chain, oldest);
    }
    unlock_mutex();
    return release_chain(&chain);
}

enum { ACCOUNTS = 4096 }; /* indices of policies and their parts in scopes are lower */

/// Drop contents, least recently used first, until `wanted` bytes are free in each account. Runs if
/// drop_oldest() freed memory that counts under other limits.
static size_t drop_oldest_of_accounts(void *context, size_t wanted)
{
    static size_t freed[ACCOUNTS]; /* under the mutex; by account */
    chain_t chain = {NULL, 0};
    (void)context;
    lock_mutex();
    memset(freed, 0, sizeof(freed));
    for (memrt_content_t *content = oldest, *next; content != NULL; content = next) {
        size_t *bytes = &freed[content->mi->policy % ACCOUNTS];
        next = content->newer;
        if (*bytes < wanted) {
            *bytes += content->pages * content->page_size;
            add_to_chain(&chain, content);
        }
    }
    unlock_mutex();
    return release_chain(&chain);
}

static memrt_status_t add_callbacks(void)
{
    memrt_status_t status = memrt__api()->reclaim_add(drop_oldest, NULL, PRIORITY);
    if (status != MEMRT_OK) {
        return status;
    }
    status = memrt__api()->reclaim_add(drop_oldest_of_accounts, NULL, PRIORITY + 1);
    if (status != MEMRT_OK) {
        (void)!memrt__api()->reclaim_remove(drop_oldest, NULL); /* not inside of a callback */
    }
    return status;
}

int memrt__content_set_up(void)
{
    static atomic_bool ready;
    if (atomic_load(&ready)) {
        return 0;
    }
    memrt_status_t status = add_callbacks();
    if (status == MEMRT_EINVAL) { /* another thread has added the callbacks */
        return 0;
    }
    if (status != MEMRT_OK) {
        memrt__raise(status, "cannot add callbacks, of at most %d", MEMRT_RECLAIM_MAX);
        return -1;
    }
    /* Fails only without memory; then a child of a threaded process may find the mutex held. */
    (void)pthread_atfork(lock_mutex, unlock_mutex, unlock_mutex);
    atomic_store(&ready, true);
    return 0;
}

memrt_content_t *memrt__content_new(size_t size)
{
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = size / page_size + (size % page_size != 0 || size == 0);
    memrt_content_t *content =
        PyMem_RawCalloc(1, sizeof(*content) + pages * sizeof(content->words[0]));
    if (content == NULL) {
        return NULL;
    }
    content->size = size;
    content->page_size = page_size;
    content->pages = pages;
    content->refs = 1;
    return content;
}

bool memrt__content_pin(memrt_content_t *content, memrt_meminfo_t **fresh, bool *made)
{
    lock_mutex();
    if (content->mi == NULL) {
        content->mi = *fresh;
        *fresh = NULL;
    } else if (content->pins == 0) {
        content->made = forbid_drop(content);
    }
    bool pinned = content->mi != NULL;
    content->pins += pinned;
    content->refs += pinned;
    *made = content->made;
    unlock_mutex();
    return pinned;
}

void memrt__content_set_made(memrt_content_t *content)
{
    lock_mutex();
    content->made = content->pins != 0;
    unlock_mutex();
}

bool memrt__content_drop(memrt_content_t *content)
{
    lock_mutex();
    memrt_meminfo_t *dead = content->listed ? take_block(content) : NULL;
    unlock_mutex();
    release_block(dead);
    return dead != NULL;
}

memrt_content_state_t memrt__content_read(memrt_content_t *content)
{
    memrt_content_state_t state = {0, 0, 0};
    lock_mutex();
    state.pins = content->pins;
    if (content->mi != NULL) {
        state.address = (uintptr_t)content->mi->data;
        state.bytes = content->pages * content->page_size;
    }
    unlock_mutex();
    return state;
}
