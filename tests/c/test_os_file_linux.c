#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/os.h"
#include "support/child.h"
#include "support/kernel.h"
#include "support/tape.h"

static int create(bool replace)
{
    int error = 0;
    int file = memrt__os_file_create(tape_path(), replace, &error);
    ck_assert_msg(file >= 0, "%s", strerror(error));
    return file;
}

static void expect_contents(const char *text)
{
    char bytes[100] = "";
    FILE *file = fopen(tape_path(), "rb");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(bytes, 1, sizeof(bytes) - 1, file);
    fclose(file);
    ck_assert_uint_eq(size, strlen(text));
    ck_assert_str_eq(bytes, text);
}

static void end(int file)
{
    memrt__os_file_close(file);
    memrt__os_file_remove(tape_path());
    ck_assert_int_ne(access(tape_path(), F_OK), 0);
}

static void put(int file, uint64_t at, const char *text)
{
    int error = 77;
    ck_assert(memrt__os_file_write(file, at, text, strlen(text), &error));
    ck_assert_int_eq(error, 77);
}

TEST(what_is_written_is_there_where_it_was_put)
{
    int file = create(false);
    put(file, 0, "hello");
    put(file, 5, " world");
    put(file, 0, "J");
    put(file, 11, "");
    expect_contents("Jello world");
    memrt__os_file_cut(file, 5);
    expect_contents("Jello");
    end(file);
}

TEST(a_file_that_is_there_is_replaced_only_where_that_is_asked_for)
{
    int error = 0, file = create(false);
    put(file, 0, "old");
    memrt__os_file_close(file);
    ck_assert_int_eq(memrt__os_file_create(tape_path(), false, &error), -1);
    ck_assert_int_eq(error, EEXIST);
    expect_contents("old");
    file = create(true);
    expect_contents("");
    end(file);
}

TEST(programs_that_the_process_becomes_do_not_have_the_file)
{
    int file = create(false);
    ck_assert_int_eq(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    end(file);
}

static void expect_refusal(const char *path, int expected)
{
    int error = 0;
    ck_assert_int_eq(memrt__os_file_create(path, true, &error), -1);
    ck_assert_int_eq(error, expected);
}

TEST(what_is_no_regular_file_is_refused_and_waited_for_by_nobody)
{
    expect_refusal("/tmp/no/such/folder/file", ENOENT);
    expect_refusal("/tmp", EISDIR);
    expect_refusal("/dev/full", EINVAL);
    ck_assert_int_eq(mkfifo(tape_path(), 0600), 0);
    expect_refusal(tape_path(), ENXIO); /* nobody reads it */
    int reader = open(tape_path(), O_RDONLY | O_NONBLOCK);
    expect_refusal(tape_path(), EINVAL);
    close(reader);
    unlink(tape_path());
}

TEST(a_file_that_cannot_be_emptied_is_refused)
{
    kernel_refuse(KERNEL_TRUNCATE, 0, 1);
    expect_refusal(tape_path(), EIO);
    unlink(tape_path());
}

TEST(a_write_that_is_refused_says_why_and_leaves_errno_alone)
{
    int error = 0, file = create(false);
    put(file, 0, "whole");
    errno = 55;
    kernel_refuse(KERNEL_WRITE, 0, 1);
    ck_assert(!memrt__os_file_write(file, 5, "part", 4, &error));
    ck_assert_int_eq(error, ENOSPC);
    ck_assert_int_eq(errno, 55);
    put(file, 5, "+");
    expect_contents("whole+");
    end(file);
}

TEST(a_write_in_parts_and_one_that_was_disturbed_go_on)
{
    int file = create(false);
    kernel_refuse(KERNEL_PART, 0, 2);
    put(file, 0, "12345678");
    kernel_refuse(KERNEL_DISTURB, 0, 3);
    put(file, 8, "9");
    expect_contents("123456789");
    end(file);
}

TEST(a_write_that_never_gets_on_is_refused)
{
    int error = 0, file = create(false);
    kernel_refuse(KERNEL_PART, 0, SIZE_MAX);
    ck_assert(!memrt__os_file_write(file, 0, "x", 1, &error)); /* a half of one is none */
    ck_assert_int_eq(error, EIO);
    end(file);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static bool is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) == 1;
}

static void write_beyond_the_limit(void *context)
{
    int error = 0, file = memrt__os_file_create(context, true, &error);
    limit_file_size(10);
    REQUIRE(!memrt__os_file_write(file, 0, "twelve bytes", 12, &error));
    REQUIRE(error == EFBIG);
    REQUIRE(!is_pending());
    sigset_t signals;
    pthread_sigmask(SIG_BLOCK, NULL, &signals);
    REQUIRE(sigismember(&signals, SIGXFSZ) == 0);
    limit_file_size(RLIM_INFINITY); /* what the end of the process writes is its own affair */
}

TEST(the_signal_for_a_file_that_is_too_large_kills_nobody)
{
    child_expect_success(write_beyond_the_limit, (void *)(uintptr_t)tape_path());
    unlink(tape_path());
}

static void write_with_the_signal_pending(void *context)
{
    int error = 0, file = memrt__os_file_create(context, true, &error);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    raise(SIGXFSZ);
    limit_file_size(10);
    REQUIRE(!memrt__os_file_write(file, 0, "twelve bytes", 12, &error));
    REQUIRE(is_pending()); /* it is the program's */
    limit_file_size(RLIM_INFINITY);
    REQUIRE(memrt__os_file_write(file, 0, "twelve bytes", 12, &error));
    REQUIRE(is_pending());
}

TEST(a_signal_that_the_program_waits_for_stays)
{
    child_expect_success(write_with_the_signal_pending, (void *)(uintptr_t)tape_path());
    unlink(tape_path());
}

static void *write_while_cancelled(void *context)
{
    int error = 0;
    pthread_cancel(pthread_self());
    bool done = memrt__os_file_write(*(int *)context, 0, "written", 7, &error);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &error);
    return done && error == PTHREAD_CANCEL_ENABLE ? context : NULL;
}

TEST(no_thread_ends_in_a_write)
{
    int file = create(false);
    pthread_t thread;
    void *result = NULL;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_while_cancelled, &file), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, &file);
    expect_contents("written");
    end(file);
}
