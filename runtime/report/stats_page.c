#include "runtime/report/stats_page.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/atomics.h"
#include "runtime/base/shield.h"
#include "runtime/base/size.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/policy_allocators.h"
#include "runtime/policy/scope.h"
#include "runtime/stats/stats.h"

/* Under the lock of rank STATS_PAGE: */
static memrt__os_shared_file_t page;
static uint64_t serial;  /* of the last snapshot written */
static bool shared;      /* this process has a page */
static bool runs;        /* the thread runs */
static bool busy;        /* the thread reads statistics */
static unsigned pausing; /* number of forks that forbid the thread to start reading */
static bool ended;

/* Relaxed; written under the lock: */
static size_t process; /* id of the process that has the page */
static size_t late;    /* 1: a forked child starts its thread with a later allocation */

static pthread_cond_t change;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_condition(void)
{
    memrt__lock_condition(&change);
}

/* --- Content of a slot. --- */

static void read_figures(const memrt__level_t *level, size_t cached, uint64_t *figures)
{
    memrt_stats_t stats = {.cached = cached};
    memrt__stats_read(level, &stats);
    stats.reserved += cached;
    memcpy(figures, &stats.alloc, MEMRT__STATS_PAGE_FIGURES * sizeof(*figures));
}
_Static_assert(sizeof(memrt_stats_t) == (1 + MEMRT__STATS_PAGE_FIGURES) * sizeof(uint64_t),
               "a new figure is a new version of the page");

/// Return the next free row, or NULL if all rows are in use.
static memrt__stats_row_t *add_row(memrt__stats_slot_t *slot, uint32_t kind, const char *name)
{
    if (slot->rows == MEMRT__STATS_PAGE_ROWS) {
        slot->left_out++;
        return NULL;
    }
    MEMRT__ASSERT(slot->rows < MEMRT__STATS_PAGE_ROWS && strlen(name) <= MEMRT_NAME_MAX);
    memrt__stats_row_t *row = &slot->row[slot->rows++];
    *row = (memrt__stats_row_t){.kind = kind};
    memcpy(row->name, name, strlen(name));
    return row;
}
_Static_assert(MEMRT_NAME_MAX < sizeof(((memrt__stats_row_t *)0)->name), "names fit");

static void write_policy_row(memrt__stats_slot_t *slot, const memrt_policy_t *policy)
{
    memrt__stats_row_t *row = add_row(slot, MEMRT__STATS_PAGE_POLICY, policy->name);
    if (row != NULL) {
        row->number = policy->index;
        read_figures(&policy->level, memrt__policy_cached(policy), row->figures);
    }
}

static void write_scope_row(memrt__stats_slot_t *slot, const memrt_scope_t *scope)
{
    memrt__stats_row_t *row = add_row(slot, MEMRT__STATS_PAGE_SCOPE, scope->name);
    if (row != NULL) {
        row->number = scope->id;
        row->parent = scope->parent == NULL ? 0 : scope->parent->id;
        read_figures(&scope->level, 0, row->figures);
    }
}

static void write_policy_rows(memrt__stats_slot_t *slot)
{
    uint32_t indices = memrt__policy_limit();
    for (uint32_t index = 0; index < indices; index++) {
        memrt_policy_t *policy = memrt__policy_at(index);
        if (policy != NULL) {
            write_policy_row(slot, policy);
            memrt__policy_release(policy);
        }
    }
}

static void write_scope_rows(memrt__stats_slot_t *slot)
{
    memrt_scope_t *scope = memrt__scope_next(NULL);
    while (scope != NULL) {
        write_scope_row(slot, scope);
        memrt_scope_t *next = memrt__scope_next(scope);
        memrt__scope_release(scope);
        scope = next;
    }
}

#define ADLER_MODULUS 65521u /* largest prime below 65536 */

/// Return the Adler-32 checksum of RFC 1950.
static uint32_t compute_adler32(const unsigned char *bytes, size_t count)
{
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < count; i++) {
        low = (low + bytes[i]) % ADLER_MODULUS;
        high = (high + low) % ADLER_MODULUS;
    }
    return high << 16 | low;
}

void memrt__stats_page_fill(memrt__stats_slot_t *slot, uint64_t turn)
{
    memset(slot, 0, offsetof(memrt__stats_slot_t, row));
    slot->serial = turn;
    slot->time_ns = memrt__os_wall_ns();
    slot->resident = memrt__os_resident();
    read_figures(&memrt__process, memrt__policy_cached(NULL), slot->figures);
    write_policy_rows(slot);
    write_scope_rows(slot);
    slot->bytes =
        (uint32_t)(offsetof(memrt__stats_slot_t, row) + slot->rows * sizeof(slot->row[0]));
    MEMRT__ASSERT(slot->bytes <= MEMRT__STATS_PAGE_SLOT);
    slot->sum = compute_adler32((const unsigned char *)slot + sizeof(slot->sum),
                                slot->bytes - sizeof(slot->sum));
}

/* --- The thread. --- */

static void write_head(const memrt__os_shared_file_t *to)
{
    memrt__stats_head_t head = {.magic = MEMRT__STATS_PAGE_MAGIC,
                                .version = MEMRT__STATS_PAGE_VERSION,
                                .order = MEMRT__STATS_PAGE_ORDER,
                                .process = to->process,
                                .started = to->started,
                                .begun_ns = memrt__os_wall_ns()};
    memrt__os_command(head.command, sizeof(head.command));
    (void)memrt__os_shared_file_write(to, &head, sizeof(head), 0);
}

#define STALE ((uint64_t)24 * 3600) /* seconds: pages of killed processes stay a day */

static void begin_page(const memrt__os_shared_file_t *to)
{
    char folder[MEMRT__OS_FOLDER];
    write_head(to);
    memrt__os_shared_file_folder(folder, sizeof(folder));
    memrt__os_shared_file_sweep(folder, STALE);
}

/// Write a snapshot to the page. A failed write is retried with the next snapshot, for example when
/// there is no room or the user removed the page. The old content stays.
static void write_slot(const memrt__os_shared_file_t *to, uint64_t turn)
{
    static memrt__stats_slot_t slot; /* used by the thread only */
    memrt__stats_page_fill(&slot, turn);
    (void)memrt__os_shared_file_write(to, &slot, slot.bytes,
                                      MEMRT__STATS_PAGE_HEAD + turn % 2 * MEMRT__STATS_PAGE_SLOT);
}

#define PERIOD (100 * MEMRT__MS)
#define SHARE 50 /* the thread works for at most 1/SHARE of the time */

/// Sleep until the next snapshot. A snapshot that took long makes the pause longer. Under the lock.
static void wait_for_next_snapshot(uint64_t begun)
{
    uint64_t now = memrt__os_now_ns();
    uint64_t until = now + memrt__size_max(PERIOD, (now - begun) * SHARE);
    int status = 0;
    while (shared && status == 0) {
        status = memrt__lock_wait(MEMRT__RANK_STATS_PAGE, &change, until);
    }
}

/// Write one snapshot, with the lock released meanwhile. A fork waits for the end of the snapshot.
static void publish_snapshot(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_STATS_PAGE);
    MEMRT__ASSERT(shared && !busy);
    memrt__os_shared_file_t to = page;
    uint64_t turn = ++serial;
    busy = true;
    memrt__unlock(MEMRT__RANK_STATS_PAGE);
    if (turn == 1) {
        begin_page(&to);
    }
    write_slot(&to, turn);
    memrt__lock(MEMRT__RANK_STATS_PAGE);
    busy = false;
    pthread_cond_broadcast(&change);
}

/// Create the page, under the lock.
static bool create_page(char *why, size_t length)
{
    char folder[MEMRT__OS_FOLDER];
    MEMRT__ASSERT_HELD(MEMRT__RANK_STATS_PAGE);
    MEMRT__ASSERT(!shared && !ended);
    memrt__os_shared_file_folder(folder, sizeof(folder));
    shared = memrt__os_shared_file_make(folder, &page, why, length);
    memrt__store_relaxed(&process, memrt__os_process_id());
    serial = 0;
    return shared;
}

/// Return whether the process has a page, and create a page if the option requests one. A forked
/// child gets no message on failure. The option may be off again when the thread starts late.
static bool ensure_page(void)
{
    char why[1];
    bool wanted = memrt__load_relaxed(&memrt__options.share) != 0;
    return shared || (wanted && create_page(why, sizeof(why)));
}

static void *run_page_thread(void *context)
{
    memrt__lock(MEMRT__RANK_STATS_PAGE);
    if (!runs && !ended && ensure_page()) {
        runs = true;
        while (shared) {
            uint64_t begun = memrt__os_now_ns();
            if (pausing == 0) {
                publish_snapshot();
            }
            wait_for_next_snapshot(begun);
        }
        runs = false;
    }
    memrt__unlock(MEMRT__RANK_STATS_PAGE);
    return context;
}

/// Start the thread, detached and with all signals blocked.
static bool start_thread(void)
{
    MEMRT__KEEP_ERRNO;
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&thread, &attributes, run_page_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return status == 0;
}

/* --- Beginning and end. --- */

/// Remove the page, under the lock. The thread ends when it next checks.
static void remove_page(void)
{
    MEMRT__ASSERT_HELD(MEMRT__RANK_STATS_PAGE);
    if (shared) {
        shared = false;
        memrt__os_shared_file_remove(&page);
        pthread_cond_broadcast(&change);
    }
}

/// Create the page and start the thread, under the lock.
static bool start_sharing(char *why, size_t length)
{
    if (!create_page(why, length)) {
        return false;
    }
    if (runs || start_thread()) {
        return true;
    }
    remove_page();
    snprintf(why, length, "MEMRT_SHARE is refused: no thread can be started");
    return false;
}

bool memrt__stats_page_follow(char *why, size_t length)
{
    bool good = true;
    pthread_once(&once, make_condition);
    memrt__store_relaxed(&late, 0);
    memrt__lock(MEMRT__RANK_STATS_PAGE);
    if (memrt__load_relaxed(&memrt__options.share) == 0) {
        remove_page();
    } else if (!shared && !ended) {
        good = start_sharing(why, length);
    }
    memrt__unlock(MEMRT__RANK_STATS_PAGE);
    return good;
}

bool memrt__stats_page_page(memrt__os_shared_file_t *out)
{
    memrt__lock(MEMRT__RANK_STATS_PAGE);
    bool known = shared;
    *out = page;
    memrt__unlock(MEMRT__RANK_STATS_PAGE);
    return known;
}

/// Return whether this process created the page. A child made without fork handlers, for example by
/// clone(), has neither thread nor page. In such a child, the lock may be held by a thread of the
/// parent.
static bool is_page_of_this_process(void)
{
    return memrt__load_relaxed(&process) == memrt__os_process_id();
}

void memrt__stats_page_end(void)
{
    if (is_page_of_this_process()) {
        memrt__lock(MEMRT__RANK_STATS_PAGE);
        ended = true;
        remove_page();
        memrt__unlock(MEMRT__RANK_STATS_PAGE);
    }
}

/// Stop sharing at exit, or when the library is unloaded.
__attribute__((destructor)) static void remove_page_at_exit(void)
{
    memrt__stats_page_end();
}

/* --- Forks. --- */

#define PATIENCE (2 * MEMRT__SECOND)

/// Wait for the thread for at most PATIENCE. Reading statistics also calls allocators of other
/// libraries, and these may wait for any length of time.
void memrt__stats_page_pause(void)
{
    uint64_t until = memrt__os_now_ns() + PATIENCE;
    int status = 0;
    pthread_once(&once, make_condition);
    memrt__lock(MEMRT__RANK_STATS_PAGE);
    pausing++;
    while (busy && status == 0) {
        status = memrt__lock_wait(MEMRT__RANK_STATS_PAGE, &change, until);
    }
    memrt__unlock(MEMRT__RANK_STATS_PAGE);
}

void memrt__stats_page_resume(void)
{
    memrt__lock(MEMRT__RANK_STATS_PAGE);
    MEMRT__ASSERT(pausing != 0);
    pausing--;
    memrt__unlock(MEMRT__RANK_STATS_PAGE);
}

bool memrt__stats_page_is_late(void)
{
    return memrt__load_relaxed(&late) != 0;
}

void memrt__stats_page_start_in_child(void)
{
    if (memrt__load_relaxed(&late) != 0 && memrt__cas_relaxed(&late, 1, 0)) {
        (void)start_thread();
    }
}

/// Reset the state in a forked child. A child that does not allocate, for example before exec, gets
/// no page.
void memrt__stats_page_forked(void)
{
    make_condition();
    shared = runs = busy = false;
    pausing = 0;
    memrt__store_relaxed(&late, memrt__load_relaxed(&memrt__options.share) != 0);
}
