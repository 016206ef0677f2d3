/// Tests of the log of operations: lines, choices by name and address, threads, forks, and failures
/// of the file.

#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/checking_table.h"
#include "runtime/base/slow_path.h"
#include "runtime/config/options.h"
#include "runtime/event/operation_log.h"
#include "runtime/meminfo/tiny.h"
#include "support/child.h"
#include "support/crew.h"

enum { CREW = 4, ROUNDS = 500 };

/// Text of the log, up to the last read_log().
static char text[1 << 20];

static int stderr_before = -1;

static void choose(const char *choice)
{
    char why[200];
    REQUIRE(api->option_set("log_operations", choice, why, sizeof(why)) == MEMRT_OK);
}

/// Turn the log on, as a process does at its start, and redirect standard error to a file. Returns
/// the table with the log.
static const memrt_api_t *turn_log_on(const char *choice)
{
    memrt__options.log = true;
    memrt__slow_path_set(MEMRT__SLOW_HOOKS, true);
    choose(choice);
    int file = memfd_create("log", 0);
    stderr_before = dup(STDERR_FILENO);
    REQUIRE(file != -1 && stderr_before != -1 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
    REQUIRE(fcntl(STDERR_FILENO, F_SETFL, O_APPEND) == 0); /* threads and children share the file */
    close(file);
    return memrt_get_api(MEMRT_ABI_MAJOR, NULL);
}

/// Read the log so far into `text`, and end the redirection.
static void read_log(void)
{
    ssize_t length = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);
    REQUIRE(dup2(stderr_before, STDERR_FILENO) == STDERR_FILENO);
    REQUIRE(length >= 0 && (size_t)length < sizeof(text) - 1);
    text[length] = '\0';
}

/// Compare the next line of the log with its expected facts, and return the rest of the log.
static const char *expect_line(const char *log, const char *operation, const memrt_meminfo_t *mi,
                               const char *facts)
{
    char line[400];
    snprintf(line, sizeof(line), "memrt: %s %p (%s, thread %d\n", operation, (const void *)mi,
             facts, (int)gettid());
    if (strncmp(log, line, strlen(line)) != 0) {
        fprintf(stderr, "expected %sgot %s", line, log);
    }
    REQUIRE(strncmp(log, line, strlen(line)) == 0);
    return log + strlen(line);
}

/// Write the facts of a line behind the address, up to the thread.
static const char *facts_of(size_t size, const void *data, const char *rest)
{
    static char facts[2][300];
    static unsigned turn;
    char *to = facts[turn++ % 2];
    snprintf(to, sizeof(facts[0]), "%zu bytes at %p%s", size, data, rest);
    return to;
}

static memrt_meminfo_t *create_named(const memrt_api_t *table, const char *name)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .name = name};
    memrt_meminfo_t *mi;
    REQUIRE(table->meminfo_new(1000, &options, &mi) == MEMRT_OK);
    return mi;
}

static void log_all(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("all");
    memrt_meminfo_t *mi = table->allocate(1000);
    const void *data = table->get_data(mi);
    table->acquire(mi);
    REQUIRE(table->try_acquire(mi));
    table->release(mi);
    REQUIRE(table->refcount(mi) == 2);
    table->release(mi);
    table->release(mi);
    read_log();
    const char *log = text;
    log = expect_line(log, "allocate", mi, facts_of(1000, data, ") refcount 0 -> 1"));
    log = expect_line(log, "acquire", mi, facts_of(1000, data, ") refcount 1 -> 2"));
    log = expect_line(log, "try_acquire", mi, facts_of(1000, data, ") refcount 2 -> 3"));
    log = expect_line(log, "release", mi, facts_of(1000, data, ") refcount 3 -> 2"));
    log = expect_line(log, "release", mi, facts_of(1000, data, ") refcount 2 -> 1"));
    log = expect_line(log, "release", mi, facts_of(1000, data, ") refcount 1 -> 0"));
    log = expect_line(log, "free", mi, facts_of(1000, data, ")"));
    REQUIRE(*log == '\0');
}

TEST(log_has_each_operation_with_the_exact_count)
{
    child_expect_success(log_all, NULL);
}

static void log_over_checking(void *context)
{
    memrt__options.check = true;
    memrt__options.cache = false;
    log_all(context);
}

TEST(log_has_the_same_lines_over_the_checking_table)
{
    if (api == &memrt__checking_table) {
        child_expect_success(log_over_checking, NULL);
    }
}

static void log_with_counts(void *context)
{
    memrt__options.references = true;
    log_all(context);
    memrt_reference_counts_t counts = {.struct_size = sizeof(counts)};
    REQUIRE(api->reference_counts(NULL, &counts) == MEMRT_OK);
    REQUIRE(counts.acquired == 2 && counts.released == 3);
}

TEST(log_and_counts_of_references_work_together)
{
    if (!memrt__options.references) {
        child_expect_success(log_with_counts, NULL);
    }
}

static void log_returned(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("later");
    void *data = table->block_alloc(NULL, 1000);
    memrt_meminfo_t *mi, *same;
    REQUIRE(data != NULL);
    choose("all");
    REQUIRE(table->block_meminfo(data, &mi) == MEMRT_OK);
    REQUIRE(table->set_name(mi, "x") == MEMRT_OK);
    REQUIRE(table->find(data, &same) == MEMRT_OK && same == mi);
    memrt_weak_t weak;
    REQUIRE(table->weak_new(mi, &weak) == MEMRT_OK && table->weak_acquire(&weak) == mi);
    REQUIRE(table->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "test") == MEMRT_OK);
    table->release_as(mi, MEMRT_HOLDER_REFERENCE, "test");
    choose("none");
    table->release(mi);
    choose("all");
    table->block_free(NULL, data, 1000);
    table->block_free(NULL, NULL, 0);
    choose("none");
    table->release(mi);
    table->release(mi);
    choose("all");
    REQUIRE(table->weak_acquire(&weak) == NULL);
    REQUIRE(table->find(&data, &same) == MEMRT_ENOENT);
    read_log();
    const char *log = text;
    log = expect_line(log, "block_meminfo", mi, facts_of(1000, data, ") refcount 1 -> 2"));
    log = expect_line(log, "name", mi, facts_of(1000, data, ", \"x\")"));
    log = expect_line(log, "find", mi, facts_of(1000, data, ", \"x\") refcount 2 -> 3"));
    log = expect_line(log, "weak_acquire", mi, facts_of(1000, data, ", \"x\") refcount 3 -> 4"));
    log = expect_line(log, "acquire_as", mi, facts_of(1000, data, ", \"x\") refcount 4 -> 5"));
    log = expect_line(log, "release_as", mi, facts_of(1000, data, ", \"x\") refcount 5 -> 4"));
    log = expect_line(log, "block_free", mi, facts_of(1000, data, ", \"x\") refcount 3 -> 2"));
    REQUIRE(*log == '\0');
}

TEST(log_has_references_that_calls_return)
{
    child_expect_success(log_returned, NULL);
}

static void log_by_name(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("input table");
    memrt_meminfo_t *mi = create_named(table, "input table");
    memrt_meminfo_t *other = create_named(table, "input table 2");
    memrt_meminfo_t *later = table->allocate(1000);
    const void *data = table->get_data(mi), *later_data = table->get_data(later);
    table->acquire(later);
    table->acquire(other);
    table->release(other);
    REQUIRE(table->set_name(later, "input table") == MEMRT_OK);
    REQUIRE(table->set_name(other, "") == MEMRT_OK);
    table->release(mi);
    table->release(later);
    REQUIRE(table->set_name(later, "output") == MEMRT_OK);
    table->release(later);
    table->release(other);
    read_log();
    const char *log = text, *name = ", \"input table\")";
    log = expect_line(log, "allocate", mi,
                      facts_of(1000, data, ", \"input table\") refcount 0 -> 1"));
    log = expect_line(log, "name", later, facts_of(1000, later_data, name));
    log =
        expect_line(log, "release", mi, facts_of(1000, data, ", \"input table\") refcount 1 -> 0"));
    log = expect_line(log, "free", mi, facts_of(1000, data, name));
    log = expect_line(log, "release", later,
                      facts_of(1000, later_data, ", \"input table\") refcount 2 -> 1"));
    REQUIRE(*log == '\0');
}

TEST(name_chooses_the_meminfos_that_have_the_name_now)
{
    child_expect_success(log_by_name, NULL);
}

static void log_long_name(void *context)
{
    (void)context;
    char name[MEMRT_NAME_MAX + 1] = "";
    memset(name, 'n', MEMRT_NAME_MAX);
    const memrt_api_t *table = turn_log_on(name);
    memrt_meminfo_t *mi = create_named(table, name);
    table->release(mi);
    choose("all");
    mi = create_named(table, "a\nb\x7f\xc3\xa9");
    choose("none");
    table->release(mi);
    read_log();
    const char *second = strchr(text, '\n');
    REQUIRE(strstr(text, name) != NULL && second != NULL);
    REQUIRE(strstr(second, "\"a?b?\xc3\xa9\"") != NULL);
}

TEST(longest_name_is_chosen_and_control_bytes_are_replaced)
{
    child_expect_success(log_long_name, NULL);
}

static void choose_address(const void *address)
{
    char choice[40];
    snprintf(choice, sizeof(choice), "%p", address);
    choose(choice);
}

static void log_by_address(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("later");
    memrt_meminfo_t *mi = table->allocate(1000), *other = table->allocate(1000);
    const void *data = table->get_data(mi);
    table->acquire(mi);
    choose_address(mi);
    table->release(mi);
    table->release(other);
    choose_address(data);
    table->release(mi);
    read_log();
    const char *log = text;
    log = expect_line(log, "release", mi, facts_of(1000, data, ") refcount 2 -> 1"));
    log = expect_line(log, "release", mi, facts_of(1000, data, ") refcount 1 -> 0"));
    log = expect_line(log, "free", mi, facts_of(1000, data, ")"));
    REQUIRE(*log == '\0');
}

TEST(address_of_header_or_data_chooses_a_live_meminfo)
{
    child_expect_success(log_by_address, NULL);
}

/// Return the line that begins with a word, or fail.
static const char *find_line(const char *operation)
{
    char begin[40];
    snprintf(begin, sizeof(begin), "memrt: %s ", operation);
    const char *line = strstr(text, begin);
    REQUIRE(line != NULL);
    return line;
}

static void log_resizes(void *context)
{
    (void)context;
    char from[80];
    const memrt_api_t *table = turn_log_on("later");
    void *data = table->block_alloc(NULL, 100);
    snprintf(from, sizeof(from), "from 100 bytes at %p, thread", data);
    void *other = table->block_realloc(NULL, table->block_alloc(NULL, 100), 4000000);
    choose_address(data);
    void *moved = table->block_realloc(NULL, data, 3000000);
    other = table->block_realloc(NULL, other, 5000000);
    table->block_free(NULL, other, 5000000);
    choose("all");
    table->block_free(NULL, moved, 3000000);
    memrt_meminfo_t *mi;
    REQUIRE(table->resizable_new(100, NULL, &mi) == MEMRT_OK);
    REQUIRE(table->resizable_realloc(mi, 2000000) != NULL);
    table->release(mi);
    read_log();
    const char *line = find_line("resize");
    REQUIRE(strstr(line, " (3000000 bytes at ") != NULL && strstr(line, from) != NULL);
    line = strstr(line + 1, "memrt: resize");
    REQUIRE(line != NULL && strstr(line, " (2000000 bytes at ") != NULL);
    REQUIRE(strstr(text, "(4000000 ") == NULL && strstr(text, "(5000000 ") == NULL);
}

TEST(log_has_resizes_and_the_move_away_from_an_address)
{
    child_expect_success(log_resizes, NULL);
}

/// A process that starts with the log makes no tiny blocks: here, the log begins later.
static void free_tiny(void *context)
{
    (void)context;
    api->block_free(NULL, api->block_alloc(NULL, 8),
                    8); /* the first block of a thread is not tiny */
    void *data = api->block_alloc(NULL, 8);
    bool tiny = memrt__is_tiny(data);
    const memrt_api_t *table = turn_log_on("all");
    table->block_free(NULL, data, 8);
    read_log();
    REQUIRE((strstr(text, "block_free") == NULL) == tiny);
}

TEST(free_of_a_block_without_a_meminfo_has_no_line)
{
    child_expect_success(free_tiny, NULL);
}

static void log_nothing(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("later");
    memrt_meminfo_t *mi = create_named(table, "none");
    table->acquire(mi);
    table->release(mi);
    table->release(mi);
    read_log();
    REQUIRE(text[0] == '\0');
}

TEST(log_without_a_choice_is_empty)
{
    child_expect_success(log_nothing, NULL);
}

static void ignore_event(const memrt_hook_event_t *event, void *context)
{
    (void)event;
    ++*(size_t *)context;
}

static void hook_without_log(void *context)
{
    (void)context;
    size_t events = 0;
    uint64_t id;
    memrt_hook_t hook = {.struct_size = sizeof(hook), .call = ignore_event, .context = &events};
    REQUIRE(api->hook_add(&hook, &id) == MEMRT_OK);
    memrt_meminfo_t *mi = api->allocate(1000);
    REQUIRE((memrt__flags_load_relaxed(&mi->flags) & MEMRT__FLAG_LOGGED) == 0);
    api->release(mi);
    REQUIRE(events == 2 && api->hook_remove(id) == MEMRT_OK);
}

TEST(hook_in_a_process_without_the_log_marks_no_block)
{
    if (!memrt__options.log) {
        child_expect_success(hook_without_log, NULL);
    }
}

static void hook_with_log(void *context)
{
    (void)context;
    size_t events = 0;
    uint64_t id;
    const memrt_api_t *table = turn_log_on("all");
    memrt_hook_t hook = {.struct_size = sizeof(hook), .call = ignore_event, .context = &events};
    REQUIRE(table->hook_add(&hook, &id) == MEMRT_OK);
    table->release(table->allocate(1000));
    suite_fail_all_requests();
    REQUIRE(table->allocate(1000) == NULL);
    suite_allow_requests();
    REQUIRE(events == 3 && table->hook_remove(id) == MEMRT_OK);
    table->release(table->allocate(2000)); /* the log goes on without the hook */
    REQUIRE(events == 3);
    read_log();
    REQUIRE(strstr(find_line("allocate"), "memrt: free") != NULL);
    const char *second = strstr(find_line("free") + 1, "memrt: allocate");
    REQUIRE(second != NULL && strstr(second, "(2000 bytes at ") != NULL);
    second = strstr(second, "memrt: free");
    REQUIRE(second != NULL && strstr(second + 1, "memrt:") == NULL);
}

TEST(log_and_hooks_get_the_same_events)
{
    child_expect_success(hook_with_log, NULL);
}

static void refuse_log(void *context)
{
    (void)context;
    char why[200];
    REQUIRE(api->option_set("log_operations", "all", why, sizeof(why)) == MEMRT_EINVAL);
    REQUIRE(strstr(why, "set MEMRT_LOG_OPERATIONS in the environment") != NULL);
}

TEST(process_that_started_without_the_log_refuses_a_choice)
{
    if (!memrt__options.log) {
        child_expect_success(refuse_log, NULL);
    }
}

static void log_to_closed_file(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("all");
    close(STDERR_FILENO);
    errno = ERANGE;
    memrt_meminfo_t *mi = table->allocate(1000);
    table->acquire(mi);
    REQUIRE(table->refcount(mi) == 2);
    table->release(mi);
    table->release(mi);
    REQUIRE(errno == ERANGE);
    REQUIRE(dup2(stderr_before, STDERR_FILENO) == STDERR_FILENO);
}

TEST(failed_write_changes_neither_operation_nor_errno)
{
    child_expect_success(log_to_closed_file, NULL);
}

static void log_without_memory(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("named");
    memrt_meminfo_t *mi = create_named(table, "named");
    suite_fail_all_requests();
    table->acquire(mi);
    table->release(mi);
    REQUIRE(table->set_name(mi, "other") == MEMRT_ENOMEM);
    REQUIRE(table->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "x") == MEMRT_ENOMEM);
    table->release(mi);
    suite_allow_requests();
    read_log();
    (void)find_line("acquire");
    (void)find_line("free");
    REQUIRE(strstr(text, "memrt: name") == NULL && strstr(text, "acquire_as") == NULL);
}

TEST(log_needs_no_memory)
{
    child_expect_success(log_without_memory, NULL);
}

static void *cancel_at_next_point(void *context)
{
    const memrt_api_t *table = context;
    REQUIRE(pthread_cancel(pthread_self()) == 0); /* pending until a cancellation point */
    memrt_meminfo_t *mi = table->allocate(1000);
    table->acquire(mi);
    table->release(mi);
    table->release(mi);
    choose("none");
    pthread_testcancel();
    return NULL;
}

static void log_in_cancelled_thread(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("all");
    pthread_t thread;
    void *result;
    REQUIRE(pthread_create(&thread, NULL, cancel_at_next_point, (void *)(uintptr_t)table) == 0);
    REQUIRE(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    read_log();
    (void)find_line("free");
}

TEST(line_is_no_cancellation_point)
{
    child_expect_success(log_in_cancelled_thread, NULL);
}

static void release_twice(void *context)
{
    (void)context;
    memrt__options.log = true;
    memrt__slow_path_set(MEMRT__SLOW_HOOKS, true);
    choose("all");
    const memrt_api_t *table = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_meminfo_t *mi = table->allocate(100);
    memrt_meminfo_t dead = {.refct = 0, .policy = mi->policy, .kind = MEMRT_KIND_ADOPTED};
    table->release(&dead);
}

TEST(release_with_a_count_of_0_aborts_with_the_log)
{
    child_expect_abort(release_twice, NULL, "release of");
}

static void release_as_twice(void *context)
{
    (void)context;
    memrt__options.log = true;
    choose("all");
    const memrt_api_t *table = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    memrt_meminfo_t dead = {.refct = 0, .kind = MEMRT_KIND_ADOPTED};
    table->release_as(&dead, MEMRT_HOLDER_REFERENCE, "x");
}

TEST(release_as_with_a_count_of_0_aborts_with_the_log)
{
    child_expect_abort(release_as_twice, NULL, "release");
}

static void use_shared(size_t index, void *context)
{
    const memrt_api_t *table = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    (void)index;
    for (size_t i = 0; i < ROUNDS; i++) {
        table->acquire(context);
        table->release(context);
    }
}

/// Count the lines of an operation for each count that the operation started from.
static void count_lines(const char *operation, size_t *lines)
{
    char begin[40];
    snprintf(begin, sizeof(begin), "memrt: %s ", operation);
    for (const char *line = strstr(text, begin); line != NULL; line = strstr(line + 1, begin)) {
        const char *count = strstr(line, "refcount ");
        size_t before = count == NULL ? SIZE_MAX : strtoull(count + strlen("refcount "), NULL, 10);
        REQUIRE(before <= CREW + 1);
        lines[before]++;
    }
}

static void log_on_threads(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("shared");
    memrt_meminfo_t *mi = create_named(table, "shared");
    crew_run(CREW, use_shared, mi);
    read_log();
    choose("none");
    table->release(mi);
    size_t acquired[CREW + 2] = {0}, released[CREW + 2] = {0}, sum = 0;
    count_lines("acquire", acquired);
    count_lines("release", released);
    for (size_t count = 1; count <= CREW; count++) {
        REQUIRE(acquired[count] == released[count + 1]); /* as often up as down */
        sum += acquired[count];
    }
    REQUIRE(sum == (size_t)CREW * ROUNDS && acquired[0] == 0 && released[1] == 0);
}

TEST(counts_of_threads_are_exact_and_lines_do_not_mix)
{
    child_expect_success(log_on_threads, NULL);
}

static void change_choice(size_t index, void *context)
{
    static const char *const choices[] = {"all", "shared", "0x10", "none"};
    if (index != 0) {
        use_shared(index, context);
        return;
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        choose(choices[i % 4]);
    }
}

static void log_while_choice_changes(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("later");
    memrt_meminfo_t *mi = create_named(table, "shared");
    crew_run(CREW, change_choice, mi);
    REQUIRE(table->refcount(mi) == 1);
    choose("none");
    table->release(mi);
    read_log();
}

TEST(choice_changes_while_threads_log)
{
    child_expect_success(log_while_choice_changes, NULL);
}

static void fork_and_use(size_t index, void *context)
{
    const memrt_api_t *table = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    if (index != 0) {
        use_shared(index, context);
        return;
    }
    for (size_t i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            child_start_watchdog();
            table->acquire(context);
            table->release(create_named(table, "shared"));
            table->release(context);
            _exit(0);
        }
        REQUIRE(child != -1 && child_wait(child) == 0);
    }
}

static void log_in_forks(void *context)
{
    (void)context;
    const memrt_api_t *table = turn_log_on("shared");
    memrt_meminfo_t *mi = create_named(table, "shared");
    crew_run(CREW, fork_and_use, mi);
    choose("none");
    table->release(mi);
    read_log();
    size_t frees = 0;
    for (const char *at = strstr(text, "memrt: free"); at != NULL;
         at = strstr(at + 1, "memrt: free")) {
        frees++;
    }
    REQUIRE(frees == 10);
}

TEST(forked_children_log_while_threads_of_the_parent_log)
{
    child_expect_success(log_in_forks, NULL);
}
