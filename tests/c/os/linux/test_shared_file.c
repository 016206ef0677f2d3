#include "support/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/os/os.h"

/// Folder of the test, with the path of the folder for statistics pages.
typedef struct ground {
    char root[32];
    char folder[MEMRT__OS_FOLDER];
} ground_t;

static ground_t create_ground(void)
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
    memrt__os_shared_file_t page;
    ck_assert(!memrt__os_shared_file_make(ground->folder, &page, why, sizeof(why)));
    ck_assert_msg(strstr(why, part) != NULL, "%s", why);
    ck_assert_ptr_nonnull(strstr(why, ground->folder));
}

static size_t read_back(const memrt__os_shared_file_t *page, char *bytes, size_t room)
{
    int file = open(page->path, O_RDONLY);
    ck_assert_int_ge(file, 0);
    ssize_t length = read(file, bytes, room);
    close(file);
    ck_assert_int_ge(length, 0);
    return (size_t)length;
}

TEST(stats_page_has_mode_0600_and_holds_written_bytes)
{
    ground_t ground = create_ground();
    memrt__os_shared_file_t page;
    char why[256], bytes[32] = "";
    struct stat about;
    mode_t before = umask(0);
    ck_assert(memrt__os_shared_file_make(ground.folder, &page, why, sizeof(why)));
    umask(before);
    ck_assert_int_eq(stat(page.path, &about), 0);
    ck_assert_uint_eq(about.st_mode & 0777, 0600);
    ck_assert_uint_eq(page.process, (uint64_t)getpid());
    ck_assert_uint_gt(page.started, 0);
    ck_assert(memrt__os_shared_file_write(&page, "there", 5, 3));
    ck_assert(memrt__os_shared_file_write(&page, "here", 4, 0));
    ck_assert_uint_eq(read_back(&page, bytes, sizeof(bytes)), 8);
    ck_assert_mem_eq(bytes, "herehere", 8);
    memrt__os_shared_file_remove(&page);
    ck_assert_int_ne(stat(page.path, &about), 0);
    clear_ground(&ground);
}

TEST(stats_page_folder_has_mode_0700)
{
    ground_t ground = create_ground();
    memrt__os_shared_file_t page;
    char why[256];
    struct stat about;
    ck_assert(memrt__os_shared_file_make(ground.folder, &page, why, sizeof(why)));
    ck_assert_int_eq(stat(ground.folder, &about), 0);
    ck_assert_uint_eq(about.st_mode & 0777, 0700);
    memrt__os_shared_file_remove(&page);
    clear_ground(&ground);
}

TEST(stats_page_replaces_an_old_page_and_follows_no_link)
{
    ground_t ground = create_ground();
    memrt__os_shared_file_t page;
    char why[256], bytes[8], victim[64];
    snprintf(victim, sizeof(victim), "%s/victim", ground.root);
    ck_assert(memrt__os_shared_file_make(ground.folder, &page, why, sizeof(why)));
    ck_assert(memrt__os_shared_file_write(&page, "old", 3, 0));
    ck_assert(memrt__os_shared_file_make(ground.folder, &page, why, sizeof(why)));
    ck_assert_uint_eq(read_back(&page, bytes, sizeof(bytes)), 0);
    memrt__os_shared_file_remove(&page);
    ck_assert_int_eq(symlink(victim, page.path), 0);
    ck_assert(!memrt__os_shared_file_write(&page, "new", 3, 0));
    ck_assert_int_ne(access(victim, F_OK), 0);
    ck_assert(memrt__os_shared_file_make(ground.folder, &page, why, sizeof(why)));
    ck_assert(memrt__os_shared_file_write(&page, "new", 3, 0));
    ck_assert_int_ne(access(victim, F_OK), 0);
    memrt__os_shared_file_remove(&page);
    clear_ground(&ground);
}

TEST(removed_stats_page_is_not_written)
{
    ground_t ground = create_ground();
    memrt__os_shared_file_t page;
    char why[256];
    ck_assert(memrt__os_shared_file_make(ground.folder, &page, why, sizeof(why)));
    memrt__os_shared_file_remove(&page);
    ck_assert(!memrt__os_shared_file_write(&page, "new", 3, 0));
    ck_assert_int_ne(access(page.path, F_OK), 0);
    clear_ground(&ground);
}

TEST(folder_accessible_to_group_or_world_is_refused)
{
    static const mode_t modes[] = {0750, 0705, 0770, 0777};
    ground_t ground = create_ground();
    ck_assert_int_eq(mkdir(ground.folder, 0700), 0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        ck_assert_int_eq(chmod(ground.folder, modes[i]), 0);
        expect_refusal(&ground, "the folder must be owned by the user, with mode 0700");
    }
    clear_ground(&ground);
}

TEST(symlink_or_file_in_place_of_the_folder_is_refused)
{
    ground_t ground = create_ground();
    ck_assert_int_eq(symlink(ground.root, ground.folder), 0);
    expect_refusal(&ground, "the folder must be owned by the user, with mode 0700");
    ck_assert_int_eq(unlink(ground.folder), 0);
    int file = open(ground.folder, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(file, 0);
    close(file);
    expect_refusal(&ground, "the folder must be owned by the user, with mode 0700");
    clear_ground(&ground);
}

TEST(folder_of_another_user_is_refused)
{
    ground_t ground = create_ground();
    if (geteuid() == 0) { /* only root can change the owner */
        ck_assert_int_eq(mkdir(ground.folder, 0700), 0);
        ck_assert_int_eq(chown(ground.folder, 12345, 12345), 0);
        expect_refusal(&ground, "the folder must be owned by the user, with mode 0700");
    }
    clear_ground(&ground);
}

TEST(folder_that_cannot_be_created_is_reported)
{
    ground_t ground = {.folder = "/proc/memrt-pages"};
    expect_refusal(&ground, "cannot use /proc/memrt-pages");
}

TEST(stats_page_creation_failure_reports_the_reason)
{
    ground_t ground = create_ground();
    memrt__os_shared_file_t page;
    char why[256];
    ck_assert(memrt__os_shared_file_make(ground.folder, &page, why, sizeof(why)));
    memrt__os_shared_file_remove(&page);
    /* a folder, because unlink cannot remove folders */
    ck_assert_int_eq(mkdir(page.path, 0700), 0);
    expect_refusal(&ground, "File exists");
    ck_assert_int_eq(rmdir(page.path), 0);
    clear_ground(&ground);
}

/// Create a file in the folder whose last write was `ago` seconds ago.
static void create_old_file(const ground_t *ground, const char *name, time_t ago)
{
    char path[MEMRT__OS_FOLDER + 300];
    snprintf(path, sizeof(path), "%s/%s", ground->folder, name);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    struct timespec then[2] = {{.tv_sec = time(NULL) - ago}, {.tv_sec = time(NULL) - ago}};
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(futimens(file, then), 0);
    close(file);
}

/// Remove a file. Returns whether the file existed.
static bool remove_file(const ground_t *ground, const char *name)
{
    char path[MEMRT__OS_FOLDER + 300];
    snprintf(path, sizeof(path), "%s/%s", ground->folder, name);
    return unlink(path) == 0;
}

static unsigned get_dead_process_id(void)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return (unsigned)child;
}

TEST(sweep_removes_only_old_pages_of_dead_processes)
{
    ground_t ground = create_ground();
    unsigned dead = get_dead_process_id(), live = (unsigned)getpid();
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
        create_old_file(&ground, name[i], files[i].ago);
    }
    create_old_file(&ground, "notes", 101);
    memrt__os_shared_file_sweep(ground.folder, 100);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(remove_file(&ground, name[i]) == files[i].stays, "%s", name[i]);
    }
    ck_assert(remove_file(&ground, "notes"));
    clear_ground(&ground);
    memrt__os_shared_file_sweep(ground.folder, 100); /* the folder does not exist */
}

TEST(stats_page_folder_name_has_the_user_id)
{
    char folder[MEMRT__OS_FOLDER], expected[64];
    memrt__os_shared_file_folder(folder, sizeof(folder));
    snprintf(expected, sizeof(expected), "/dev/shm/memrt-%u", (unsigned)geteuid());
    ck_assert_str_eq(folder, expected);
}

TEST(process_command_is_cut_to_the_buffer)
{
    char text[200], cut[4];
    memrt__os_command(text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "test_shared_file"));
    memrt__os_command(cut, sizeof(cut));
    ck_assert_uint_eq(strlen(cut), 3);
    ck_assert_mem_eq(cut, text, 3);
}

TEST(wall_clock_agrees_with_time)
{
    uint64_t now = memrt__os_wall_ns() / 1000000000u;
    ck_assert_uint_ge(now, (uint64_t)time(NULL) - 1);
    ck_assert_uint_le(now, (uint64_t)time(NULL) + 1);
}
