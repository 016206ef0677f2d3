#include "support/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/os.h"

/// A folder of the test's own, in which that of the pages is to be.
typedef struct ground {
    char root[32];
    char folder[MEMRT__OS_FOLDER];
} ground_t;

static ground_t make_ground(void)
{
    ground_t ground = {.root = "/tmp/memrt-page-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(ground.root));
    snprintf(ground.folder, sizeof(ground.folder), "%s/pages", ground.root);
    return ground;
}

static void clear_ground(const ground_t *ground)
{
    (void)unlink(ground->folder);
    (void)rmdir(ground->folder);
    ck_assert_int_eq(rmdir(ground->root), 0);
}

static void expect_refusal(const ground_t *ground, const char *part)
{
    char why[256] = "";
    memrt__os_page_t page;
    ck_assert(!memrt__os_page_make(ground->folder, &page, why, sizeof(why)));
    ck_assert_msg(strstr(why, part) != NULL, "%s", why);
    ck_assert_ptr_nonnull(strstr(why, ground->folder));
}

static size_t read_back(const memrt__os_page_t *page, char *bytes, size_t room)
{
    int file = open(page->path, O_RDONLY);
    ck_assert_int_ge(file, 0);
    ssize_t length = read(file, bytes, room);
    close(file);
    ck_assert_int_ge(length, 0);
    return (size_t)length;
}

TEST(a_page_is_its_users_alone_and_what_is_written_stands_in_it)
{
    ground_t ground = make_ground();
    memrt__os_page_t page;
    char why[256], bytes[32] = "";
    struct stat about;
    mode_t before = umask(0);
    ck_assert(memrt__os_page_make(ground.folder, &page, why, sizeof(why)));
    umask(before);
    ck_assert_int_eq(stat(page.path, &about), 0);
    ck_assert_uint_eq(about.st_mode & 0777, 0600);
    ck_assert_uint_eq(page.process, (uint64_t)getpid());
    ck_assert_uint_gt(page.started, 0);
    ck_assert(memrt__os_page_write(&page, "there", 5, 3));
    ck_assert(memrt__os_page_write(&page, "here", 4, 0));
    ck_assert_uint_eq(read_back(&page, bytes, sizeof(bytes)), 8);
    ck_assert_mem_eq(bytes, "herehere", 8);
    memrt__os_page_remove(&page);
    ck_assert_int_ne(stat(page.path, &about), 0);
    clear_ground(&ground);
}

TEST(the_folder_is_made_for_its_user_alone)
{
    ground_t ground = make_ground();
    memrt__os_page_t page;
    char why[256];
    struct stat about;
    ck_assert(memrt__os_page_make(ground.folder, &page, why, sizeof(why)));
    ck_assert_int_eq(stat(ground.folder, &about), 0);
    ck_assert_uint_eq(about.st_mode & 0777, 0700);
    memrt__os_page_remove(&page);
    clear_ground(&ground);
}

TEST(what_this_process_left_before_is_replaced_and_no_link_is_followed)
{
    ground_t ground = make_ground();
    memrt__os_page_t page;
    char why[256], bytes[8], victim[64];
    snprintf(victim, sizeof(victim), "%s/victim", ground.root);
    ck_assert(memrt__os_page_make(ground.folder, &page, why, sizeof(why)));
    ck_assert(memrt__os_page_write(&page, "old", 3, 0));
    ck_assert(memrt__os_page_make(ground.folder, &page, why, sizeof(why)));
    ck_assert_uint_eq(read_back(&page, bytes, sizeof(bytes)), 0);
    memrt__os_page_remove(&page);
    ck_assert_int_eq(symlink(victim, page.path), 0);
    ck_assert(!memrt__os_page_write(&page, "new", 3, 0));
    ck_assert_int_ne(access(victim, F_OK), 0);
    ck_assert(memrt__os_page_make(ground.folder, &page, why, sizeof(why)));
    ck_assert(memrt__os_page_write(&page, "new", 3, 0));
    ck_assert_int_ne(access(victim, F_OK), 0);
    memrt__os_page_remove(&page);
    clear_ground(&ground);
}

TEST(a_page_that_is_gone_is_not_written)
{
    ground_t ground = make_ground();
    memrt__os_page_t page;
    char why[256];
    ck_assert(memrt__os_page_make(ground.folder, &page, why, sizeof(why)));
    memrt__os_page_remove(&page);
    ck_assert(!memrt__os_page_write(&page, "new", 3, 0));
    ck_assert_int_ne(access(page.path, F_OK), 0);
    clear_ground(&ground);
}

TEST(a_folder_that_others_may_look_into_is_refused)
{
    static const mode_t modes[] = {0750, 0705, 0770, 0777};
    ground_t ground = make_ground();
    ck_assert_int_eq(mkdir(ground.folder, 0700), 0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        ck_assert_int_eq(chmod(ground.folder, modes[i]), 0);
        expect_refusal(&ground, "no folder of this user's alone");
    }
    clear_ground(&ground);
}

TEST(a_link_to_a_folder_is_refused_and_so_is_a_file)
{
    ground_t ground = make_ground();
    ck_assert_int_eq(symlink(ground.root, ground.folder), 0);
    expect_refusal(&ground, "no folder of this user's alone");
    ck_assert_int_eq(unlink(ground.folder), 0);
    int file = open(ground.folder, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(file, 0);
    close(file);
    expect_refusal(&ground, "no folder of this user's alone");
    clear_ground(&ground);
}

TEST(a_folder_of_another_user_is_refused)
{
    ground_t ground = make_ground();
    if (geteuid() == 0) { /* else nobody can give one away */
        ck_assert_int_eq(mkdir(ground.folder, 0700), 0);
        ck_assert_int_eq(chown(ground.folder, 12345, 12345), 0);
        expect_refusal(&ground, "no folder of this user's alone");
    }
    clear_ground(&ground);
}

TEST(a_folder_that_cannot_be_made_is_refused)
{
    ground_t ground = {.folder = "/proc/memrt-pages"};
    expect_refusal(&ground, "cannot be made");
}

TEST(a_page_that_cannot_be_made_is_refused_with_the_reason)
{
    ground_t ground = make_ground();
    memrt__os_page_t page;
    char why[256];
    ck_assert(memrt__os_page_make(ground.folder, &page, why, sizeof(why)));
    memrt__os_page_remove(&page);
    ck_assert_int_eq(mkdir(page.path, 0700), 0); /* which unlink does not remove */
    expect_refusal(&ground, "File exists");
    ck_assert_int_eq(rmdir(page.path), 0);
    clear_ground(&ground);
}

/// A file of that name in the folder, last written so many seconds ago.
static void leave(const ground_t *ground, const char *name, time_t ago)
{
    char path[MEMRT__OS_FOLDER + 300];
    snprintf(path, sizeof(path), "%s/%s", ground->folder, name);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    struct timespec then[2] = {{.tv_sec = time(NULL) - ago}, {.tv_sec = time(NULL) - ago}};
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(futimens(file, then), 0);
    close(file);
}

/// Whether it is still there; it is not, afterwards.
static bool take(const ground_t *ground, const char *name)
{
    char path[MEMRT__OS_FOLDER + 300];
    snprintf(path, sizeof(path), "%s/%s", ground->folder, name);
    return unlink(path) == 0;
}

static unsigned dead_process(void)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return (unsigned)child;
}

TEST(what_processes_left_long_ago_is_removed_and_nothing_else)
{
    ground_t ground = make_ground();
    unsigned dead = dead_process(), live = (unsigned)getpid();
    const struct {
        unsigned process;
        const char *rest;
        time_t ago;
        bool stays;
    } files[] = {
        {dead, "-10", 101, false}, {dead, "-11", 99, true},      {live, "-12", 101, true},
        {1, "-13", 101, true},     {0, "-14", 101, true},        {dead, "-15x", 101, true},
        {dead, "", 101, true},     {dead, "-16", 100000, false},
    };
    size_t count = sizeof(files) / sizeof(files[0]);
    char name[8][32];
    ck_assert_int_eq(mkdir(ground.folder, 0700), 0);
    for (size_t i = 0; i < count; i++) {
        snprintf(name[i], sizeof(name[i]), "%u%s", files[i].process, files[i].rest);
        leave(&ground, name[i], files[i].ago);
    }
    leave(&ground, "notes", 101);
    memrt__os_page_sweep(ground.folder, 100);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(take(&ground, name[i]) == files[i].stays, "%s", name[i]);
    }
    ck_assert(take(&ground, "notes"));
    clear_ground(&ground);
    memrt__os_page_sweep(ground.folder, 100); /* which is not there */
}

TEST(the_folder_of_pages_has_the_users_number)
{
    char folder[MEMRT__OS_FOLDER], expected[64];
    memrt__os_page_folder(folder, sizeof(folder));
    snprintf(expected, sizeof(expected), "/dev/shm/memrt-%u", (unsigned)geteuid());
    ck_assert_str_eq(folder, expected);
}

TEST(a_command_is_words_with_blanks_cut_to_the_room)
{
    char text[200], cut[4];
    memrt__os_command(text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "test_os_page"));
    memrt__os_command(cut, sizeof(cut));
    ck_assert_uint_eq(strlen(cut), 3);
    ck_assert_mem_eq(cut, text, 3);
}

TEST(the_clock_on_the_wall_is_that_of_all)
{
    uint64_t now = memrt__os_wall_ns() / 1000000000u;
    ck_assert_uint_ge(now, (uint64_t)time(NULL) - 1);
    ck_assert_uint_le(now, (uint64_t)time(NULL) + 1);
}
