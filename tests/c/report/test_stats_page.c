/// Tests of the statistics page.

#include "support/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/config/options.h"
#include "runtime/policy/scope.h"
#include "runtime/report/stats_page.h"
#include "runtime/stats/stats.h"
#include "support/books.h"
#include "support/child.h"
#include "support/kernel.h"

static memrt__stats_slot_t slot; /* too large for a stack */

static uint32_t compute_sum(const memrt__stats_slot_t *of)
{
    uint32_t low = 1, high = 0;
    for (size_t i = sizeof(of->sum); i < of->bytes; i++) {
        low = (low + ((const unsigned char *)of)[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

static const memrt__stats_row_t *find_row(uint32_t kind, const char *name)
{
    for (uint32_t i = 0; i < slot.rows; i++) {
        if (slot.row[i].kind == kind && strcmp(slot.row[i].name, name) == 0) {
            return &slot.row[i];
        }
    }
    return NULL;
}

/// Index of a field of memrt_stats_t among the figures.
#define FIGURE(field) (offsetof(memrt_stats_t, field) / sizeof(uint64_t) - 1)

TEST(stats_page_slot_equals_the_statistics)
{
    void *data = api->block_alloc(NULL, 100000);
    memrt_stats_t stats = stats_of(NULL);
    memrt__stats_page_fill(&slot, 7);
    ck_assert_uint_eq(slot.serial, 7);
    ck_assert_mem_eq(slot.figures, &stats.alloc, sizeof(slot.figures));
    ck_assert_uint_ge(slot.figures[FIGURE(live)], 100000);
    ck_assert_uint_eq(slot.left_out, 0);
    ck_assert_uint_eq(slot.sum, compute_sum(&slot));
    ck_assert_uint_eq(slot.bytes,
                      offsetof(memrt__stats_slot_t, row) + slot.rows * sizeof(slot.row[0]));
    ck_assert_uint_gt(slot.time_ns, (uint64_t)1600000000 * 1000000000);
    ck_assert_uint_gt(slot.resident, 100000);
    const memrt__stats_row_t *row = find_row(MEMRT__STATS_PAGE_POLICY, "default");
    ck_assert_ptr_nonnull(row);
    ck_assert_uint_eq(row->number, 0);
    memrt_stats_t own = stats_of(memrt__policy_default());
    ck_assert_mem_eq(row->figures, &own.alloc, sizeof(row->figures));
    api->block_free(NULL, data, 0);
}

static memrt_scope_t *open_scope(memrt_scope_t *parent, const char *name)
{
    memrt_scope_t *scope;
    ck_assert_int_eq(api->scope_open(parent, name, &scope), MEMRT_OK);
    return scope;
}

TEST(stats_page_scope_rows_have_parent_and_live_bytes)
{
    memrt_scope_t *outer = open_scope(NULL, "outer"), *inner = open_scope(outer, "inner");
    ck_assert_int_eq(api->scope_enter(inner, NULL), MEMRT_OK);
    void *data = api->block_alloc(NULL, 5000);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    memrt__stats_page_fill(&slot, 1);
    const memrt__stats_row_t *around = find_row(MEMRT__STATS_PAGE_SCOPE, "outer");
    const memrt__stats_row_t *row = find_row(MEMRT__STATS_PAGE_SCOPE, "inner");
    ck_assert_ptr_nonnull(row);
    ck_assert_ptr_nonnull(around);
    ck_assert_uint_eq(around->parent, 0);
    ck_assert_uint_eq(row->parent, around->number);
    ck_assert_uint_eq(row->figures[FIGURE(live)], 5000);
    ck_assert_uint_eq(around->figures[FIGURE(live)], 5000);
    ck_assert_uint_eq(row->figures[FIGURE(cached)], 0);
    api->block_free(NULL, data, 0);
    memrt__stats_page_fill(&slot, 2);
    ck_assert_uint_eq(find_row(MEMRT__STATS_PAGE_SCOPE, "inner")->figures[FIGURE(live)], 0);
    api->scope_release(inner);
    api->scope_release(outer);
}

TEST(released_policy_has_no_row_and_no_reference)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "of a while"};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    memrt__stats_page_fill(&slot, 1);
    const memrt__stats_row_t *row = find_row(MEMRT__STATS_PAGE_POLICY, "of a while");
    ck_assert_ptr_nonnull(row);
    ck_assert_uint_eq(row->number, policy->index);
    uint32_t number = policy->index;
    api->policy_release(policy);
    ck_assert_ptr_null(memrt__policy_at(number));
    memrt__stats_page_fill(&slot, 2);
    ck_assert_ptr_null(find_row(MEMRT__STATS_PAGE_POLICY, "of a while"));
}

TEST(scopes_beyond_the_page_capacity_are_counted)
{
    char name[32];
    uint32_t before;
    memrt__stats_page_fill(&slot, 1);
    before = slot.rows;
    uint32_t more = MEMRT__STATS_PAGE_ROWS - before + 3;
    memrt_scope_t **scopes = calloc(more, sizeof(*scopes));
    for (uint32_t i = 0; i < more; i++) {
        snprintf(name, sizeof(name), "many %u", (unsigned)i);
        scopes[i] = open_scope(NULL, name);
    }
    memrt__stats_page_fill(&slot, 2);
    ck_assert_uint_eq(slot.rows, MEMRT__STATS_PAGE_ROWS);
    ck_assert_uint_eq(slot.left_out, 3);
    ck_assert_uint_eq(slot.bytes, sizeof(slot));
    ck_assert_uint_eq(slot.sum, compute_sum(&slot));
    for (uint32_t i = 0; i < more; i++) {
        api->scope_release(scopes[i]);
    }
    free(scopes);
}

#define POLICIES (MEMRT__STATS_PAGE_ROWS + 5)

TEST(policies_beyond_the_page_capacity_are_counted)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "one of many"};
    memrt_policy_t **policies = calloc(POLICIES, sizeof(*policies));
    memrt__stats_page_fill(&slot, 1);
    uint32_t before = slot.rows + slot.left_out; /* scopes of earlier tests stay for reports */
    for (uint32_t i = 0; i < POLICIES; i++) {
        ck_assert_int_eq(api->policy_new(&options, &policies[i]), MEMRT_OK);
    }
    memrt__stats_page_fill(&slot, 2);
    ck_assert_uint_eq(slot.rows, MEMRT__STATS_PAGE_ROWS);
    ck_assert_uint_eq(slot.left_out, before + POLICIES - MEMRT__STATS_PAGE_ROWS);
    for (uint32_t i = 0; i < POLICIES; i++) {
        api->policy_release(policies[i]);
    }
    free(policies);
}

/* --- The page, in children: each process has one page. --- */

static void pause_ms(unsigned ms)
{
    (void)usleep(ms * 1000);
}

/// Read the newest complete slot of a page. Returns false when no slot is complete.
static bool read_page(const char *path, memrt__stats_head_t *head, memrt__stats_slot_t *out)
{
    static memrt__stats_slot_t now;
    bool found = false;
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, head, sizeof(*head)) != (ssize_t)sizeof(*head)) {
        close(file);
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        ssize_t length = pread(file, &now, sizeof(now),
                               (off_t)(MEMRT__STATS_PAGE_HEAD + i * MEMRT__STATS_PAGE_SLOT));
        if (length > 0 && now.bytes <= (size_t)length && now.bytes >= 176 &&
            now.sum == compute_sum(&now) && (!found || now.serial > out->serial)) {
            memcpy(out, &now, now.bytes);
            found = true;
        }
    }
    close(file);
    return found;
}

static memrt__stats_head_t head;

/// Wait until the page of a path has a snapshot later than a serial number.
static void wait_for_snapshot(const char *path, uint64_t after)
{
    bool news = false;
    for (int i = 0; i < 2000 && !news; i++) {
        news = read_page(path, &head, &slot) && slot.serial > after;
        pause_ms(news ? 0 : 10);
    }
    REQUIRE(news);
}

static void set_share(const char *value)
{
    char why[256] = "";
    REQUIRE(api->option_set("share", value, why, sizeof(why)) == MEMRT_OK);
}

static void start_page(memrt__os_shared_file_t *page)
{
    set_share("1");
    REQUIRE(memrt__stats_page_page(page));
    wait_for_snapshot(page->path, 0);
}

static void follow_live_bytes(void *context)
{
    (void)context;
    memrt__os_shared_file_t page;
    REQUIRE(!memrt__stats_page_page(&page));
    start_page(&page);
    REQUIRE(strcmp(head.magic, MEMRT__STATS_PAGE_MAGIC) == 0 &&
            head.version == MEMRT__STATS_PAGE_VERSION);
    REQUIRE(head.order == MEMRT__STATS_PAGE_ORDER && head.process == (uint64_t)getpid());
    REQUIRE(head.started == page.started && strstr(head.command, "test_stats_page") != NULL);
    REQUIRE(head.begun_ns <= slot.time_ns);
    uint64_t before = slot.figures[FIGURE(live)];
    void *data = api->block_alloc(NULL, 777777);
    wait_for_snapshot(page.path, slot.serial + 1);
    REQUIRE(slot.figures[FIGURE(live)] == before + 777777);
    api->block_free(NULL, data, 0);
    wait_for_snapshot(page.path, slot.serial + 1);
    REQUIRE(slot.figures[FIGURE(live)] == before);
    set_share("1"); /* not a change */
    set_share("0");
    REQUIRE(access(page.path, F_OK) != 0 && !memrt__stats_page_page(&page));
    set_share("0");
}

TEST(stats_page_follows_live_bytes_until_turned_off)
{
    child_expect_success(follow_live_bytes, NULL);
}

static void restart_page(void *context)
{
    (void)context;
    memrt__os_shared_file_t page;
    for (int round = 0; round < 3; round++) {
        start_page(&page);
        REQUIRE(head.version == MEMRT__STATS_PAGE_VERSION);
        set_share("0");
    }
    start_page(&page);
    /* late writer threads of earlier rounds have ended, or the last thread goes on */
    pause_ms(250);
    wait_for_snapshot(page.path, slot.serial);
    set_share("0");
}

TEST(stats_page_can_be_turned_on_repeatedly)
{
    child_expect_success(restart_page, NULL);
}

static void exit_shared(void *context)
{
    memrt__os_shared_file_t page;
    start_page(&page);
    REQUIRE(write(*(int *)context, page.path, sizeof(page.path)) == (ssize_t)sizeof(page.path));
    exit(0);
}

TEST(stats_page_is_removed_at_process_exit)
{
    int pipe_ends[2];
    char path[sizeof(((memrt__os_shared_file_t *)0)->path)];
    ck_assert_int_eq(pipe(pipe_ends), 0);
    child_expect_exit(exit_shared, &pipe_ends[1], 0, NULL);
    ck_assert_int_eq(read(pipe_ends[0], path, sizeof(path)), sizeof(path));
    ck_assert_int_ne(access(path, F_OK), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void kill_self(int report)
{
    memrt__os_shared_file_t page;
    start_page(&page);
    void *data = api->block_alloc(NULL, 424242);
    (void)data;
    wait_for_snapshot(page.path, slot.serial + 1);
    REQUIRE(write(report, page.path, sizeof(page.path)) == (ssize_t)sizeof(page.path));
    raise(SIGKILL);
}

TEST(killed_process_leaves_a_complete_stats_page)
{
    int pipe_ends[2], status;
    char path[sizeof(((memrt__os_shared_file_t *)0)->path)];
    ck_assert_int_eq(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        kill_self(pipe_ends[1]);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_eq(read(pipe_ends[0], path, sizeof(path)), sizeof(path));
    ck_assert(read_page(path, &head, &slot));
    ck_assert_uint_eq(head.process, (uint64_t)child);
    ck_assert_uint_ge(slot.figures[FIGURE(live)], 424242);
    ck_assert_int_eq(unlink(path), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void lose_page(void *context)
{
    (void)context;
    memrt__os_shared_file_t page;
    start_page(&page);
    REQUIRE(unlink(page.path) == 0);
    pause_ms(300);
    REQUIRE(access(page.path, F_OK) != 0);
    void *data = api->block_alloc(NULL, 1000);
    api->block_free(NULL, data, 0);
    set_share("0");
}

TEST(deleted_stats_page_is_not_created_again)
{
    child_expect_success(lose_page, NULL);
}

static void refuse_thread(void *context)
{
    (void)context;
    char why[256] = "";
    memrt__os_shared_file_t page;
    kernel_refuse(KERNEL_THREAD, 0, SIZE_MAX);
    REQUIRE(api->option_set("share", "1", why, sizeof(why)) == MEMRT_EINVAL);
    REQUIRE(strstr(why, "no thread") != NULL);
    REQUIRE(memrt__load_relaxed(&memrt__options.share) == 0);
    REQUIRE(!memrt__stats_page_page(&page) && access(page.path, F_OK) != 0);
    kernel_obey();
    start_page(&page);
    set_share("0");
}

TEST(stats_page_fails_without_a_thread_and_can_be_retried)
{
    child_expect_success(refuse_thread, NULL);
}

static void refuse_file(void *context)
{
    (void)context;
    char why[256] = "";
    memrt__os_shared_file_t page;
    int next = dup(0);
    struct rlimit before, none;
    REQUIRE(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = (struct rlimit){(rlim_t)next, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    REQUIRE(api->option_set("share", "1", why, sizeof(why)) == MEMRT_EINVAL);
    REQUIRE(strstr(why, "Too many open files") != NULL && !memrt__stats_page_page(&page));
    REQUIRE(memrt__load_relaxed(&memrt__options.share) == 0);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    start_page(&page);
    set_share("0");
}

TEST(stats_page_without_file_descriptor_reports_the_reason)
{
    child_expect_success(refuse_file, NULL);
}

static void end_twice(void *context)
{
    (void)context;
    memrt__os_shared_file_t page;
    char why[256];
    start_page(&page);
    memrt__stats_page_end();
    REQUIRE(access(page.path, F_OK) != 0);
    memrt__stats_page_end();
    REQUIRE(memrt__stats_page_follow(why, sizeof(why)) && !memrt__stats_page_page(&page));
}

TEST(ended_stats_page_is_not_started_again)
{
    child_expect_success(end_twice, NULL);
}

/// Check a forked child: the child gets a page of its own when it allocates, and its end leaves the
/// parent's page alone.
static void fork_shared(void *context)
{
    (void)context;
    memrt__os_shared_file_t page, own;
    int status;
    start_page(&page);
    pid_t child = fork();
    if (child == 0) {
        REQUIRE(!memrt__stats_page_page(&own));
        void *data = api->block_alloc(NULL, 3 << 20);
        for (int i = 0; i < 2000 && !memrt__stats_page_page(&own); i++) {
            pause_ms(10);
        }
        REQUIRE(memrt__stats_page_page(&own) && own.process == (uint64_t)getpid());
        REQUIRE(strcmp(own.path, page.path) != 0);
        wait_for_snapshot(own.path, 1);
        REQUIRE(slot.figures[FIGURE(live)] >= 3 << 20);
        api->block_free(NULL, data, 0);
        exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(access(page.path, F_OK) == 0);
    REQUIRE(read_page(page.path, &head, &slot));
    wait_for_snapshot(page.path, slot.serial);
    set_share("0");
}

TEST(forked_child_gets_its_own_stats_page_after_allocating)
{
    child_expect_success(fork_shared, NULL);
}

static void fork_often(void *context)
{
    (void)context;
    memrt__os_shared_file_t page;
    start_page(&page);
    for (int i = 0; i < 100; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            _exit(memrt__stats_page_page(&page) ? 1 : 0);
        }
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    REQUIRE(read_page(page.path, &head, &slot));
    wait_for_snapshot(page.path, slot.serial);
    set_share("0");
}

TEST(fork_without_allocation_creates_no_stats_page)
{
    child_expect_success(fork_often, NULL);
}

static void fork_without_page(void *context)
{
    (void)context;
    memrt__os_shared_file_t page;
    start_page(&page);
    pid_t child = fork();
    int status;
    if (child == 0) {
        set_share("0");
        void *data = api->block_alloc(NULL, 3 << 20);
        pause_ms(150);
        api->block_free(NULL, data, 0);
        _exit(memrt__stats_page_page(&page) ? 1 : 0);
    }
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    set_share("0");
}

TEST(child_that_turns_the_stats_page_off_has_no_page)
{
    child_expect_success(fork_without_page, NULL);
}
