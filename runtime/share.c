#include "runtime/share.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/alloc/policy.h"
#include "runtime/alloc/scope.h"
#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/base/size.h"
#include "runtime/stats/stats.h"

/* Under the lock of rank SHARE: */
static memrt__os_page_t page;
static uint64_t serial;  /* of what was last written to it */
static bool shared;      /* it is this process's */
static bool runs;        /* the thread does */
static bool busy;        /* it is reading */
static unsigned pausing; /* forks that it must not begin to read for */
static bool ended;

/* Relaxed; written under the lock: */
static size_t process; /* whose page it is */

static pthread_cond_t change; /* of the clock that only runs forward */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&change, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* --- What is told. --- */

static void read_figures(const memrt__level_t *level, size_t cached, uint64_t *figures)
{
    memrt_stats_t stats = {.cached = cached};
    memrt__stats_read(level, &stats);
    stats.reserved += cached;
    memcpy(figures, &stats.alloc, MEMRT__PAGE_FIGURES * sizeof(*figures));
}
_Static_assert(sizeof(memrt_stats_t) == (1 + MEMRT__PAGE_FIGURES) * sizeof(uint64_t),
               "a new figure is a new version of the page");

/// The next row, or NULL where there is none any more.
static memrt__page_row_t *new_row(memrt__page_slot_t *slot, uint32_t kind, const char *name)
{
    if (slot->rows == MEMRT__PAGE_ROWS) {
        slot->left_out++;
        return NULL;
    }
    memrt__page_row_t *row = &slot->row[slot->rows++];
    *row = (memrt__page_row_t){.kind = kind};
    memcpy(row->name, name, strlen(name));
    return row;
}
_Static_assert(MEMRT_NAME_MAX < sizeof(((memrt__page_row_t *)0)->name), "names fit");

static void tell_policy(memrt__page_slot_t *slot, const memrt_policy_t *policy)
{
    memrt__page_row_t *row = new_row(slot, MEMRT__PAGE_POLICY, policy->name);
    if (row != NULL) {
        row->number = policy->index;
        read_figures(&policy->level, memrt__policy_cached(policy), row->figures);
    }
}

static void tell_scope(memrt__page_slot_t *slot, const memrt_scope_t *scope)
{
    memrt__page_row_t *row = new_row(slot, MEMRT__PAGE_SCOPE, scope->name);
    if (row != NULL) {
        row->number = scope->id;
        row->parent = scope->parent == NULL ? 0 : scope->parent->id;
        read_figures(&scope->level, 0, row->figures);
    }
}

static void tell_policies(memrt__page_slot_t *slot)
{
    uint32_t indices = memrt__policy_limit();
    for (uint32_t index = 0; index < indices; index++) {
        memrt_policy_t *policy = memrt__policy_at(index);
        if (policy != NULL) {
            tell_policy(slot, policy);
            memrt__policy_release(policy);
        }
    }
}

static void tell_scopes(memrt__page_slot_t *slot)
{
    memrt_scope_t *scope = memrt__scope_next(NULL);
    while (scope != NULL) {
        tell_scope(slot, scope);
        memrt_scope_t *next = memrt__scope_next(scope);
        memrt__scope_release(scope);
        scope = next;
    }
}

/// As RFC 1950 has it.
static uint32_t adler32(const unsigned char *bytes, size_t count)
{
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < count; i++) {
        low = (low + bytes[i]) % 65521u;
        high = (high + low) % 65521u;
    }
    return high << 16 | low;
}

void memrt__share_fill(memrt__page_slot_t *slot, uint64_t turn)
{
    memset(slot, 0, offsetof(memrt__page_slot_t, row));
    slot->serial = turn;
    slot->time_ns = memrt__os_wall_ns();
    slot->resident = memrt__os_resident();
    read_figures(&memrt__process, memrt__policy_cached(NULL), slot->figures);
    tell_policies(slot);
    tell_scopes(slot);
    slot->bytes = (uint32_t)(offsetof(memrt__page_slot_t, row) + slot->rows * sizeof(slot->row[0]));
    slot->sum =
        adler32((const unsigned char *)slot + sizeof(slot->sum), slot->bytes - sizeof(slot->sum));
}

/* --- The thread. --- */

static void write_head(const memrt__os_page_t *to)
{
    memrt__page_head_t head = {.magic = MEMRT__PAGE_MAGIC,
                               .version = MEMRT__PAGE_VERSION,
                               .order = MEMRT__PAGE_ORDER,
                               .process = to->process,
                               .started = to->started,
                               .begun_ns = memrt__os_wall_ns()};
    memrt__os_command(head.command, sizeof(head.command));
    (void)memrt__os_page_write(to, &head, sizeof(head), 0);
}

#define STALE ((uint64_t)24 * 3600) /* seconds; who looks the day after finds what was killed */

static void begin_page(const memrt__os_page_t *to)
{
    char folder[MEMRT__OS_FOLDER];
    write_head(to);
    memrt__os_page_folder(folder, sizeof(folder));
    memrt__os_page_sweep(folder, STALE);
}

/// A page that cannot be written now, for want of room, or because its user took it away, is
/// tried again the next time: what stood in it stays.
static void write_slot(const memrt__os_page_t *to, uint64_t turn)
{
    static memrt__page_slot_t slot; /* the thread's alone */
    memrt__share_fill(&slot, turn);
    (void)memrt__os_page_write(to, &slot, slot.bytes,
                               MEMRT__PAGE_HEAD + turn % 2 * MEMRT__PAGE_SLOT);
}

#define MS ((uint64_t)1000000) /* nanoseconds */
#define PERIOD (100 * MS)
#define SHARE 50 /* the thread works for at most this part of the time */

/// Sleep until the next turn, which is the later the longer the last one took. Under the lock.
static void wait(uint64_t begun)
{
    uint64_t now = memrt__os_now_ns();
    uint64_t until = now + memrt__size_max(PERIOD, (now - begun) * SHARE);
    struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    int status = 0;
    while (shared && status == 0) {
        status = memrt__lock_wait(MEMRT__RANK_SHARE, &change, &time);
    }
}

/// One snapshot, with the lock let go meanwhile. A fork waits for its end.
static void publish(void)
{
    memrt__os_page_t to = page;
    uint64_t turn = ++serial;
    busy = true;
    memrt__unlock(MEMRT__RANK_SHARE);
    if (turn == 1) {
        begin_page(&to);
    }
    write_slot(&to, turn);
    memrt__lock(MEMRT__RANK_SHARE);
    busy = false;
    pthread_cond_broadcast(&change);
}

/// Under the lock.
static bool make_page(char *why, size_t length)
{
    char folder[MEMRT__OS_FOLDER];
    memrt__os_page_folder(folder, sizeof(folder));
    shared = memrt__os_page_make(folder, &page, why, length);
    memrt__store_relaxed(&process, memrt__os_process_id());
    serial = 0;
    return shared;
}

/// Where a forked child cannot have a page, nobody hears why. A thread that begins late finds that
/// none is wanted any more.
static bool has_page(void)
{
    char why[1];
    bool wanted = memrt__load_relaxed(&memrt__options.share) != 0;
    return shared || (wanted && make_page(why, sizeof(why)));
}

static void *run(void *context)
{
    memrt__lock(MEMRT__RANK_SHARE);
    if (!runs && !ended && has_page()) {
        runs = true;
        while (shared) {
            uint64_t begun = memrt__os_now_ns();
            if (pausing == 0) {
                publish();
            }
            wait(begun);
        }
        runs = false;
    }
    memrt__unlock(MEMRT__RANK_SHARE);
    return context;
}

/// No signal is for this thread, and nobody waits for its end.
static bool start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&thread, &attributes, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return status == 0;
}

/* --- Beginning and end. --- */

/// Under the lock: the page goes, and the thread when it next looks.
static void stop(void)
{
    if (shared) {
        shared = false;
        memrt__os_page_remove(&page);
        pthread_cond_broadcast(&change);
    }
}

/// Under the lock.
static bool begin(char *why, size_t length)
{
    if (!make_page(why, length)) {
        return false;
    }
    if (runs || start_thread()) {
        return true;
    }
    stop();
    snprintf(why, length, "MEMRT_SHARE is refused: the system has no thread for it");
    return false;
}

bool memrt__share_follow(char *why, size_t length)
{
    bool good = true;
    pthread_once(&once, make_condition);
    memrt__gauge_call_once(NULL);
    memrt__lock(MEMRT__RANK_SHARE);
    if (memrt__load_relaxed(&memrt__options.share) == 0) {
        stop();
    } else if (!shared && !ended) {
        good = begin(why, length);
    }
    memrt__unlock(MEMRT__RANK_SHARE);
    return good;
}

bool memrt__share_page(memrt__os_page_t *out)
{
    memrt__lock(MEMRT__RANK_SHARE);
    bool known = shared;
    *out = page;
    memrt__unlock(MEMRT__RANK_SHARE);
    return known;
}

/// A child that came to be without fork's handlers, as by clone(), has neither thread nor page, and
/// may find the lock held by one.
static bool is_of_this_process(void)
{
    return memrt__load_relaxed(&process) == memrt__os_process_id();
}

void memrt__share_end(void)
{
    if (is_of_this_process()) {
        memrt__lock(MEMRT__RANK_SHARE);
        ended = true;
        stop();
        memrt__unlock(MEMRT__RANK_SHARE);
    }
}

/// At exit, or when the library is unloaded.
__attribute__((destructor)) static void end(void)
{
    memrt__share_end();
}

/* --- Forks. --- */

/// Reading asks allocators of others, too: whatever these wait for, a fork does not for long.
void memrt__share_pause(void)
{
    struct timespec until = {.tv_sec = (time_t)(memrt__os_now_ns() / 1000000000u) + 2};
    int status = 0;
    pthread_once(&once, make_condition);
    memrt__lock(MEMRT__RANK_SHARE);
    pausing++;
    while (busy && status == 0) {
        status = memrt__lock_wait(MEMRT__RANK_SHARE, &change, &until);
    }
    memrt__unlock(MEMRT__RANK_SHARE);
}

void memrt__share_resume(void)
{
    memrt__lock(MEMRT__RANK_SHARE);
    pausing--;
    memrt__unlock(MEMRT__RANK_SHARE);
}

/// On a thread that allocates, with who knows what locks held. Without a thread there is no page.
static void begin_in_child(void)
{
    (void)start_thread();
}

/// A child that does not allocate, as one that becomes another program at once, has no page.
void memrt__share_forked(void)
{
    make_condition();
    shared = runs = busy = false;
    pausing = 0;
    if (memrt__load_relaxed(&memrt__options.share) != 0) {
        memrt__gauge_call_once(begin_in_child);
    }
}
