#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/os/os.h"
#include "support/child.h"
#include "support/kernel.h"
#include "support/tape.h"

static int create_file(bool replace)
{
    int error = 0;
    int file = memrt__os_file_create(tape_path(), replace, "", 0, &error);
    ck_assert_msg(file >= 0, "%s", strerror(error));
    return file;
}

static void expect_contents_of(const char *path, const char *text)
{
    char bytes[100] = "";
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(bytes, 1, sizeof(bytes) - 1, file);
    fclose(file);
    ck_assert_uint_eq(size, strlen(text));
    ck_assert_str_eq(bytes, text);
}

static void expect_contents(const char *text)
{
    expect_contents_of(tape_path(), text);
}

static void remove_file(int file)
{
    memrt__os_file_close(file);
    ck_assert_int_eq(unlink(tape_path()), 0);
}

static void write_text(int file, uint64_t at, const char *text)
{
    int error = 77;
    ck_assert(memrt__os_file_write(file, at, text, strlen(text), &error));
    ck_assert_int_eq(error, 77);
}

TEST(file_holds_bytes_at_their_offsets_and_can_be_cut)
{
    int file = create_file(false);
    write_text(file, 0, "hello");
    write_text(file, 5, " world");
    write_text(file, 0, "J");
    write_text(file, 11, "");
    expect_contents("Jello world");
    memrt__os_file_cut(file, 5);
    expect_contents("Jello");
    remove_file(file);
}

TEST(existing_file_is_replaced_only_on_request)
{
    int error = 0, file = create_file(false);
    write_text(file, 0, "old");
    memrt__os_file_close(file);
    ck_assert_int_eq(memrt__os_file_create(tape_path(), false, "", 0, &error), -1);
    ck_assert_int_eq(error, EEXIST);
    expect_contents("old");
    file = create_file(true);
    expect_contents("");
    remove_file(file);
}

TEST(tape_folder_is_private)
{
    struct stat about;
    char folder[64];
    snprintf(folder, sizeof(folder), "%s", tape_path());
    *strrchr(folder, '/') = 0;
    ck_assert_int_eq(stat(folder, &about), 0);
    ck_assert_uint_eq(about.st_mode & 07777, 0700);
    ck_assert_uint_eq(about.st_uid, geteuid());
}

TEST(file_has_the_close_on_exec_flag)
{
    int file = create_file(false);
    ck_assert_int_eq(fcntl(file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    remove_file(file);
}

static void expect_refusal(const char *path, int expected)
{
    int error = 0;
    ck_assert_int_eq(memrt__os_file_create(path, true, "new", 3, &error), -1);
    ck_assert_int_eq(error, expected);
}

TEST(non_regular_file_is_refused_without_blocking)
{
    expect_refusal("/tmp/no/such/folder/file", ENOENT);
    expect_refusal("/tmp", EINVAL);
    expect_refusal("/dev/full", EINVAL);
    expect_refusal("", ENOENT);
    ck_assert_int_eq(mkfifo(tape_path(), 0600), 0);
    expect_refusal(tape_path(), EINVAL);
    unlink(tape_path());
}

#define CALLERS "of the caller"

/// Return a path in the test's own folder. Valid for two calls.
static const char *build_path(const char *name)
{
    static char paths[2][128];
    static unsigned turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof(paths[0]), "%s-folder/%s", tape_path(), name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(build_path(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_folder(void)
{
    ck_assert_int_eq(mkdir(build_path(""), 0700), 0);
}

/// Remove a file and then the folder, whose only entry is the file.
static void remove_folder_with(const char *name)
{
    ck_assert_int_eq(unlink(build_path(name)), 0);
    ck_assert_int_eq(rmdir(build_path("")), 0);
}

TEST(symbolic_link_is_refused_and_its_target_stays)
{
    int error = 0;
    make_folder();
    write_file("target", CALLERS);
    ck_assert_int_eq(symlink(build_path("target"), build_path("link")), 0);
    expect_refusal(build_path("link"), ELOOP);
    ck_assert_int_eq(memrt__os_file_create(build_path("link"), false, "new", 3, &error), -1);
    ck_assert_int_eq(error, EEXIST);
    expect_contents_of(build_path("target"), CALLERS);
    ck_assert_int_eq(unlink(build_path("target")), 0);
    expect_refusal(build_path("link"), ELOOP); /* the target does not exist any more */
    remove_folder_with("link");
}

TEST(failed_replacement_keeps_the_old_file)
{
    make_folder();
    write_file("file", CALLERS);
    kernel_refuse(KERNEL_WRITE, 0, 1);
    expect_refusal(build_path("file"), ENOSPC);
    expect_contents_of(build_path("file"), CALLERS);
    remove_folder_with("file");
}

TEST(new_file_is_removed_when_the_name_is_too_long)
{
    char name[NAME_MAX + 2] = "", path[PATH_MAX];
    make_folder();
    memset(name, 'x', NAME_MAX + 1);
    snprintf(path, sizeof(path), "%s%s", build_path(""), name);
    expect_refusal(path, ENAMETOOLONG);
    ck_assert_int_eq(rmdir(build_path("")), 0);
}

TEST(new_file_is_removed_when_the_first_write_fails)
{
    int error = 0;
    make_folder();
    kernel_refuse(KERNEL_WRITE, 0, 1);
    ck_assert_int_eq(memrt__os_file_create(build_path("file"), false, "new", 3, &error), -1);
    ck_assert_int_eq(error, ENOSPC);
    ck_assert_int_eq(rmdir(build_path("")), 0);
}

TEST(file_has_mode_0600_even_with_umask_0)
{
    struct stat about;
    mode_t mask = umask(0);
    make_folder();
    for (int replace = 0; replace <= 1; replace++) {
        int error = 0;
        int file = memrt__os_file_create(build_path("file"), replace != 0, "new", 3, &error);
        ck_assert_int_ge(file, 0);
        memrt__os_file_close(file);
        ck_assert_int_eq(stat(build_path("file"), &about), 0);
        ck_assert_uint_eq(about.st_mode & 07777, 0600);
        ck_assert_int_eq(chmod(build_path("file"), 0666), 0); /* the next file replaces this file */
    }
    umask(mask);
    remove_folder_with("file");
}

/// Return the temporary name of a new file, before it replaces the old file.
static const char *build_temporary_name(int number)
{
    static char name[64];
    snprintf(name, sizeof(name), ".memrt-%ld-%d", (long)getpid(), number);
    return name;
}

TEST(temporary_name_search_ends_after_100_taken_names)
{
    make_folder();
    write_file("file", CALLERS);
    for (int number = 0; number < 100; number++) {
        ck_assert_int_eq(symlink("/dev/null", build_path(build_temporary_name(number))), 0);
    }
    expect_refusal(build_path("file"), EEXIST);
    expect_contents_of(build_path("file"), CALLERS);
    ck_assert_int_eq(unlink(build_path(build_temporary_name(99))), 0);
    int error = 0, file = memrt__os_file_create(build_path("file"), true, "new", 3, &error);
    ck_assert_int_ge(file, 0);
    memrt__os_file_close(file);
    expect_contents_of(build_path("file"), "new");
    for (int number = 0; number < 99; number++) {
        ck_assert_int_eq(unlink(build_path(build_temporary_name(number))), 0);
    }
    remove_folder_with("file");
}

TEST(file_in_the_current_folder_is_replaced)
{
    char here[4096];
    make_folder();
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    ck_assert_int_eq(chdir(build_path("")), 0);
    for (int round = 0; round < 2; round++) {
        int error = 0, file = memrt__os_file_create("file", true, "new", 3, &error);
        ck_assert_int_ge(file, 0);
        memrt__os_file_close(file);
    }
    ck_assert_int_eq(chdir(here), 0);
    expect_contents_of(build_path("file"), "new");
    remove_folder_with("file");
}

TEST(path_that_is_too_long_is_refused)
{
    static char path[PATH_MAX];
    for (size_t i = 0; i + 1 < sizeof(path); i++) {
        path[i] = i % 2 == 0 ? '/' : '.'; /* the root, by a path of maximum length */
    }
    path[PATH_MAX - 2] = 'x';
    expect_refusal(path, ENAMETOOLONG);
}

TEST(refused_write_reports_error_and_keeps_errno)
{
    int error = 0, file = create_file(false);
    write_text(file, 0, "whole");
    errno = 55;
    kernel_refuse(KERNEL_WRITE, 0, 1);
    ck_assert(!memrt__os_file_write(file, 5, "part", 4, &error));
    ck_assert_int_eq(error, ENOSPC);
    ck_assert_int_eq(errno, 55);
    write_text(file, 5, "+");
    expect_contents("whole+");
    remove_file(file);
}

TEST(partial_and_interrupted_writes_continue)
{
    int file = create_file(false);
    kernel_refuse(KERNEL_PART, 0, 2);
    write_text(file, 0, "12345678");
    kernel_refuse(KERNEL_DISTURB, 0, 3);
    write_text(file, 8, "9");
    expect_contents("123456789");
    remove_file(file);
}

TEST(write_without_progress_fails_with_eio)
{
    int error = 0, file = create_file(false);
    kernel_refuse(KERNEL_PART, 0, SIZE_MAX);
    /* half of one byte makes no progress */
    ck_assert(!memrt__os_file_write(file, 0, "x", 1, &error));
    ck_assert_int_eq(error, EIO);
    remove_file(file);
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
    int error = 0, file = memrt__os_file_create(context, true, "", 0, &error);
    limit_file_size(10);
    REQUIRE(!memrt__os_file_write(file, 0, "twelve bytes", 12, &error));
    REQUIRE(error == EFBIG);
    REQUIRE(!is_pending());
    sigset_t signals;
    pthread_sigmask(SIG_BLOCK, NULL, &signals);
    REQUIRE(sigismember(&signals, SIGXFSZ) == 0);
    limit_file_size(RLIM_INFINITY); /* writes at the end of the process must not fail */
}

TEST(write_beyond_file_size_limit_fails_without_signal)
{
    child_expect_success(write_beyond_the_limit, (void *)(uintptr_t)tape_path());
    unlink(tape_path());
}

static void write_with_the_signal_pending(void *context)
{
    int error = 0, file = memrt__os_file_create(context, true, "", 0, &error);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    raise(SIGXFSZ);
    limit_file_size(10);
    REQUIRE(!memrt__os_file_write(file, 0, "twelve bytes", 12, &error));
    REQUIRE(is_pending()); /* the program's own signal stays */
    limit_file_size(RLIM_INFINITY);
    REQUIRE(memrt__os_file_write(file, 0, "twelve bytes", 12, &error));
    REQUIRE(is_pending());
}

TEST(pending_sigxfsz_of_the_program_stays_pending)
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

TEST(write_is_not_a_cancellation_point)
{
    int file = create_file(false);
    pthread_t thread;
    void *result = NULL;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_while_cancelled, &file), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, &file);
    expect_contents("written");
    remove_file(file);
}
