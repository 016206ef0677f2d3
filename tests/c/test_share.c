#include "support/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/alloc/scope.h"
#include "runtime/base/options.h"
#include "runtime/share.h"
#include "runtime/stats/stats.h"
#include "support/books.h"
#include "support/child.h"
#include "support/kernel.h"

static memrt__page_slot_t slot; /* too large for a stack */

static uint32_t sum_of(const memrt__page_slot_t *of)
{
    uint32_t low = 1, high = 0;
    for (size_t i = sizeof(of->sum); i < of->bytes; i++) {
        low = (low + ((const unsigned char *)of)[i]) % 65521;
        high = (high + low) % 65521;
    }
    return high << 16 | low;
}

static const memrt__page_row_t *row_of(uint32_t kind, const char *name)
{
    for (uint32_t i = 0; i < slot.rows; i++) {
        if (slot.row[i].kind == kind && strcmp(slot.row[i].name, name) == 0) {
            return &slot.row[i];
        }
    }
    return NULL;
}

/// A field of memrt_stats_t among the figures.
#define FIGURE(field) (offsetof(memrt_stats_t, field) / sizeof(uint64_t) - 1)

TEST(a_slot_says_what_the_statistics_say)
{
    void *data = api->block_alloc(NULL, 100000);
    memrt_stats_t stats = stats_of(NULL);
    memrt__share_fill(&slot, 7);
    ck_assert_uint_eq(slot.serial, 7);
    ck_assert_mem_eq(slot.figures, &stats.alloc, sizeof(slot.figures));
    ck_assert_uint_ge(slot.figures[FIGURE(live)], 100000);
    ck_assert_uint_eq(slot.left_out, 0);
    ck_assert_uint_eq(slot.sum, sum_of(&slot));
    ck_assert_uint_eq(slot.bytes,
                      offsetof(memrt__page_slot_t, row) + slot.rows * sizeof(slot.row[0]));
    ck_assert_uint_gt(slot.time_ns, (uint64_t)1600000000 * 1000000000);
    ck_assert_uint_gt(slot.resident, 100000);
    const memrt__page_row_t *row = row_of(MEMRT__PAGE_POLICY, "default");
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

TEST(scopes_have_rows_with_who_is_around_them)
{
    memrt_scope_t *outer = open_scope(NULL, "outer"), *inner = open_scope(outer, "inner");
    ck_assert_int_eq(api->scope_enter(inner, NULL), MEMRT_OK);
    void *data = api->block_alloc(NULL, 5000);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    memrt__share_fill(&slot, 1);
    const memrt__page_row_t *around = row_of(MEMRT__PAGE_SCOPE, "outer");
    const memrt__page_row_t *row = row_of(MEMRT__PAGE_SCOPE, "inner");
    ck_assert_ptr_nonnull(row);
    ck_assert_ptr_nonnull(around);
    ck_assert_uint_eq(around->parent, 0);
    ck_assert_uint_eq(row->parent, around->number);
    ck_assert_uint_eq(row->figures[FIGURE(live)], 5000);
    ck_assert_uint_eq(around->figures[FIGURE(live)], 5000);
    ck_assert_uint_eq(row->figures[FIGURE(cached)], 0);
    api->block_free(NULL, data, 0);
    memrt__share_fill(&slot, 2);
    ck_assert_uint_eq(row_of(MEMRT__PAGE_SCOPE, "inner")->figures[FIGURE(live)], 0);
    api->scope_release(inner);
    api->scope_release(outer);
}

TEST(a_policy_that_went_has_no_row_and_no_reference_stays)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "of a while"};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    memrt__share_fill(&slot, 1);
    const memrt__page_row_t *row = row_of(MEMRT__PAGE_POLICY, "of a while");
    ck_assert_ptr_nonnull(row);
    ck_assert_uint_eq(row->number, policy->index);
    uint32_t number = policy->index;
    api->policy_release(policy);
    ck_assert_ptr_null(memrt__policy_at(number));
    memrt__share_fill(&slot, 2);
    ck_assert_ptr_null(row_of(MEMRT__PAGE_POLICY, "of a while"));
}

TEST(what_has_no_room_is_counted)
{
    char name[32];
    uint32_t before;
    memrt__share_fill(&slot, 1);
    before = slot.rows;
    uint32_t more = MEMRT__PAGE_ROWS - before + 3;
    memrt_scope_t **scopes = calloc(more, sizeof(*scopes));
    for (uint32_t i = 0; i < more; i++) {
        snprintf(name, sizeof(name), "many %u", (unsigned)i);
        scopes[i] = open_scope(NULL, name);
    }
    memrt__share_fill(&slot, 2);
    ck_assert_uint_eq(slot.rows, MEMRT__PAGE_ROWS);
    ck_assert_uint_eq(slot.left_out, 3);
    ck_assert_uint_eq(slot.bytes, sizeof(slot));
    ck_assert_uint_eq(slot.sum, sum_of(&slot));
    for (uint32_t i = 0; i < more; i++) {
        api->scope_release(scopes[i]);
    }
    free(scopes);
}

#define POLICIES (MEMRT__PAGE_ROWS + 5)

TEST(policies_that_have_no_room_are_counted)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "one of many"};
    memrt_policy_t **policies = calloc(POLICIES, sizeof(*policies));
    memrt__share_fill(&slot, 1);
    uint32_t before = slot.rows + slot.left_out; /* scopes of other tests stay for reports */
    for (uint32_t i = 0; i < POLICIES; i++) {
        ck_assert_int_eq(api->policy_new(&options, &policies[i]), MEMRT_OK);
    }
    memrt__share_fill(&slot, 2);
    ck_assert_uint_eq(slot.rows, MEMRT__PAGE_ROWS);
    ck_assert_uint_eq(slot.left_out, before + POLICIES - MEMRT__PAGE_ROWS);
    for (uint32_t i = 0; i < POLICIES; i++) {
        api->policy_release(policies[i]);
    }
    free(policies);
}

/* --- The page, in children: a process has one. --- */

static void pause_ms(unsigned ms)
{
    (void)usleep(ms * 1000);
}

/// The newest whole slot of a page; false: there is none.
static bool read_page(const char *path, memrt__page_head_t *head, memrt__page_slot_t *out)
{
    static memrt__page_slot_t now;
    bool found = false;
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, head, sizeof(*head)) != (ssize_t)sizeof(*head)) {
        close(file);
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        ssize_t length =
            pread(file, &now, sizeof(now), (off_t)(MEMRT__PAGE_HEAD + i * MEMRT__PAGE_SLOT));
        if (length > 0 && now.bytes <= (size_t)length && now.bytes >= 176 &&
            now.sum == sum_of(&now) && (!found || now.serial > out->serial)) {
            memcpy(out, &now, now.bytes);
            found = true;
        }
    }
    close(file);
    return found;
}

/// ThreadSanitizer knows no locks that are made anew after a fork.
static void in_child(child_fn act)
{
    if (!SUITE_THREAD_SANITIZER) {
        child_expect_success(act, NULL);
    }
}

static memrt__page_head_t head;

/// Wait until the page of a path has a snapshot later than a serial number.
static void await_news(const char *path, uint64_t after)
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

static void begin(memrt__os_page_t *page)
{
    set_share("1");
    REQUIRE(memrt__share_page(page));
    await_news(page->path, 0);
}

static void live_follows(void *context)
{
    (void)context;
    memrt__os_page_t page;
    REQUIRE(!memrt__share_page(&page));
    begin(&page);
    REQUIRE(strcmp(head.magic, MEMRT__PAGE_MAGIC) == 0 && head.version == MEMRT__PAGE_VERSION);
    REQUIRE(head.order == MEMRT__PAGE_ORDER && head.process == (uint64_t)getpid());
    REQUIRE(head.started == page.started && strstr(head.command, "test_share") != NULL);
    REQUIRE(head.begun_ns <= slot.time_ns);
    uint64_t before = slot.figures[FIGURE(live)];
    void *data = api->block_alloc(NULL, 777777);
    await_news(page.path, slot.serial + 1);
    REQUIRE(slot.figures[FIGURE(live)] == before + 777777);
    api->block_free(NULL, data, 0);
    await_news(page.path, slot.serial + 1);
    REQUIRE(slot.figures[FIGURE(live)] == before);
    set_share("1"); /* nothing new */
    set_share("0");
    REQUIRE(access(page.path, F_OK) != 0 && !memrt__share_page(&page));
    set_share("0");
}

TEST(the_page_follows_what_is_live_until_the_option_ends_it)
{
    in_child(live_follows);
    if (SUITE_THREAD_SANITIZER) {
        live_follows(NULL);
    }
}

static void begin_again(void *context)
{
    (void)context;
    memrt__os_page_t page;
    for (int round = 0; round < 3; round++) {
        begin(&page);
        REQUIRE(head.version == MEMRT__PAGE_VERSION);
        set_share("0");
    }
    begin(&page);
    pause_ms(250); /* threads of before, which were late, are gone or are the one */
    await_news(page.path, slot.serial);
    set_share("0");
}

TEST(a_page_may_be_begun_again)
{
    in_child(begin_again);
}

static void exit_shared(void *context)
{
    memrt__os_page_t page;
    begin(&page);
    REQUIRE(write(*(int *)context, page.path, sizeof(page.path)) == (ssize_t)sizeof(page.path));
    exit(0);
}

TEST(the_page_goes_with_the_process)
{
    int pipe_ends[2];
    char path[sizeof(((memrt__os_page_t *)0)->path)];
    if (SUITE_THREAD_SANITIZER) {
        return;
    }
    ck_assert_int_eq(pipe(pipe_ends), 0);
    child_expect_exit(exit_shared, &pipe_ends[1], 0, NULL);
    ck_assert_int_eq(read(pipe_ends[0], path, sizeof(path)), sizeof(path));
    ck_assert_int_ne(access(path, F_OK), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void be_killed(int report)
{
    memrt__os_page_t page;
    begin(&page);
    void *data = api->block_alloc(NULL, 424242);
    (void)data;
    await_news(page.path, slot.serial + 1);
    REQUIRE(write(report, page.path, sizeof(page.path)) == (ssize_t)sizeof(page.path));
    raise(SIGKILL);
}

TEST(the_page_of_a_killed_process_stays_and_is_whole)
{
    int pipe_ends[2], status;
    char path[sizeof(((memrt__os_page_t *)0)->path)];
    if (SUITE_THREAD_SANITIZER) {
        return;
    }
    ck_assert_int_eq(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        be_killed(pipe_ends[1]);
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
    memrt__os_page_t page;
    begin(&page);
    REQUIRE(unlink(page.path) == 0);
    pause_ms(300);
    REQUIRE(access(page.path, F_OK) != 0);
    void *data = api->block_alloc(NULL, 1000);
    api->block_free(NULL, data, 0);
    set_share("0");
}

TEST(a_page_that_its_user_took_away_does_not_come_back)
{
    in_child(lose_page);
}

static void refuse_thread(void *context)
{
    (void)context;
    char why[256] = "";
    memrt__os_page_t page;
    kernel_refuse(KERNEL_THREAD, 0, SIZE_MAX);
    REQUIRE(api->option_set("share", "1", why, sizeof(why)) == MEMRT_EINVAL);
    REQUIRE(strstr(why, "no thread") != NULL);
    REQUIRE(memrt__load_relaxed(&memrt__options.share) == 0);
    REQUIRE(!memrt__share_page(&page) && access(page.path, F_OK) != 0);
    kernel_obey();
    begin(&page);
    set_share("0");
}

TEST(without_a_thread_there_is_no_page_and_it_may_be_asked_for_again)
{
    in_child(refuse_thread);
}

static void refuse_file(void *context)
{
    (void)context;
    char why[256] = "";
    memrt__os_page_t page;
    int next = dup(0);
    struct rlimit before, none;
    REQUIRE(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = (struct rlimit){(rlim_t)next, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    REQUIRE(api->option_set("share", "1", why, sizeof(why)) == MEMRT_EINVAL);
    REQUIRE(strstr(why, "Too many open files") != NULL && !memrt__share_page(&page));
    REQUIRE(memrt__load_relaxed(&memrt__options.share) == 0);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    begin(&page);
    set_share("0");
}

TEST(without_a_file_there_is_no_page_and_the_reason_is_told)
{
    in_child(refuse_file);
}

static void end_twice(void *context)
{
    (void)context;
    memrt__os_page_t page;
    char why[256];
    begin(&page);
    memrt__share_end();
    REQUIRE(access(page.path, F_OK) != 0);
    memrt__share_end();
    REQUIRE(memrt__share_follow(why, sizeof(why)) && !memrt__share_page(&page));
}

TEST(a_process_that_ends_begins_no_page)
{
    in_child(end_twice);
}

/// What a fork's child has: its own page once it allocates; its end leaves its parent's alone.
static void fork_shared(void *context)
{
    (void)context;
    memrt__os_page_t page, own;
    int status;
    begin(&page);
    pid_t child = fork();
    if (child == 0) {
        REQUIRE(!memrt__share_page(&own));
        void *data = api->block_alloc(NULL, 3 << 20);
        for (int i = 0; i < 2000 && !memrt__share_page(&own); i++) {
            pause_ms(10);
        }
        REQUIRE(memrt__share_page(&own) && own.process == (uint64_t)getpid());
        REQUIRE(strcmp(own.path, page.path) != 0);
        await_news(own.path, 1);
        REQUIRE(slot.figures[FIGURE(live)] >= 3 << 20);
        api->block_free(NULL, data, 0);
        exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(access(page.path, F_OK) == 0);
    REQUIRE(read_page(page.path, &head, &slot));
    await_news(page.path, slot.serial);
    set_share("0");
}

TEST(a_forked_child_has_a_page_of_its_own_once_it_allocates)
{
    in_child(fork_shared);
}

static void fork_often(void *context)
{
    (void)context;
    memrt__os_page_t page;
    begin(&page);
    for (int i = 0; i < 100; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            _exit(memrt__share_page(&page) ? 1 : 0);
        }
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    REQUIRE(read_page(page.path, &head, &slot));
    await_news(page.path, slot.serial);
    set_share("0");
}

TEST(forks_that_do_not_allocate_leave_no_page_and_the_parents_goes_on)
{
    in_child(fork_often);
}

static void unshared_child(void *context)
{
    (void)context;
    memrt__os_page_t page;
    begin(&page);
    pid_t child = fork();
    int status;
    if (child == 0) {
        set_share("0");
        void *data = api->block_alloc(NULL, 3 << 20);
        pause_ms(150);
        api->block_free(NULL, data, 0);
        _exit(memrt__share_page(&page) ? 1 : 0);
    }
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    set_share("0");
}

TEST(a_child_that_turns_it_off_has_no_page)
{
    in_child(unshared_child);
}
