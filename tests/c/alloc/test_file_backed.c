#include "support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/alloc/allocator.h"
#include "runtime/alloc/file_backed.h"
#include "runtime/alloc/guard/guard.h"
#include "runtime/config/options.h"
#include "runtime/os/os.h"
#include "runtime/policy/policy_table.h"
#include "support/child.h"
#include "support/kernel.h"
#include "support/system_tree.h"

#define FOLDER "/tmp"
#define SIZE ((size_t)3 << 20)
#define PAGE memrt__os_page_size()

static memrt_allocator_t made;

static memrt_allocator_t *create(const char *folder)
{
    ck_assert_int_eq(api->allocator_file(folder, &made), MEMRT_OK);
    return &made;
}

static void end(void)
{
    made.destroy(made.ctx);
}

static char *allocate(size_t size)
{
    return made.alloc(made.ctx, size, 64);
}

static void release(void *ptr, size_t size)
{
    made.free(made.ctx, ptr, size, 64);
}

static memrt_policy_t *create_policy(const char *folder)
{
    memrt_policy_options_t options = {.struct_size = sizeof(options), .allocator = create(folder)};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    return policy;
}

/// Write the line of /proc/self/maps for an address to `line`.
static void find_mapping(const void *address, char *line, size_t room)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    unsigned long start = 1, end = 0;
    while (fgets(line, (int)room, maps) != NULL &&
           (sscanf(line, "%lx-%lx", &start, &end) != 2 || (uintptr_t)address < start ||
            (uintptr_t)address >= end)) {
    }
    fclose(maps);
    ck_assert_uint_lt((uintptr_t)address, end);
}

/// Check that the pages of an address are shared and belong to a file with a name like `name`.
static void require_file(const void *address, const char *name)
{
    char line[512];
    find_mapping(address, line, sizeof(line));
    ck_assert_msg(strstr(line, " rw-s ") != NULL && strstr(line, name) != NULL, "%s", line);
}

static void require_private(const void *address)
{
    char line[512];
    find_mapping(address, line, sizeof(line));
    ck_assert_msg(strstr(line, " rw-p ") != NULL, "%s", line);
}

/// Return the number of mapped files without a name. ThreadSanitizer maps such files, and coverage
/// builds share anonymous memory.
static size_t count_files(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    char line[512];
    size_t count = 0;
    while (fgets(line, sizeof(line), maps) != NULL) {
        count += strstr(line, "(deleted)") != NULL && strstr(line, "/tsan.") == NULL &&
                 strstr(line, "/dev/zero") == NULL;
    }
    fclose(maps);
    return count;
}

static const struct {
    const char *folder, *name;
} kinds[] = {{FOLDER, FOLDER "/"}, {NULL, "memfd:memrt"}};

TEST(data_lies_in_a_file_and_the_header_does_not)
{
    for (size_t i = 0; i < 2; i++) {
        memrt_policy_t *policy = create_policy(kinds[i].folder);
        for (size_t size = 1; size <= SIZE; size = size * 3 + 1) {
            unsigned char *data = api->block_calloc(policy, 1, size);
            ck_assert_uint_eq((uintptr_t)data % PAGE, 0);
            require_file(data, kinds[i].name);
            require_file(data + size - 1, kinds[i].name);
            require_private(data - 1);
            require_private(data - MEMRT_HEADER_SIZE);
            ck_assert_uint_eq(data[0] | data[size - 1], 0);
            memset(data, 7, size);
            api->block_free(policy, data, size);
        }
        ck_assert_uint_eq(count_files(), 0);
        api->policy_release(policy);
    }
}

TEST(file_backed_blocks_have_any_alignment)
{
    create(NULL);
    for (size_t align = 64; align <= (size_t)4 << 20; align *= 4) {
        char *block = made.alloc(made.ctx, align + 10000, align);
        ck_assert_uint_eq((uintptr_t)block % align, 0);
        block[0] = block[align + 9999] = 1;
        require_file(block + align, "memfd:memrt");
        require_private(block + align - 1);
        made.free(made.ctx, block, align + 10000, align);
    }
    ck_assert_ptr_null(made.alloc(made.ctx, SIZE_MAX - 4096, 64));
    ck_assert_ptr_null(made.alloc(made.ctx, PTRDIFF_MAX, 64));
    ck_assert_uint_eq(made.good_size(made.ctx, SIZE_MAX, 64), SIZE_MAX);
    ck_assert_uint_eq(made.good_size(made.ctx, 65, 64), 64 + PAGE);
    ck_assert_uint_eq(made.usable_size(made.ctx, NULL, 64 + PAGE, 64), 64 + PAGE);
    end();
}

TEST(forked_child_shares_data_and_counts_alone)
{
    for (size_t i = 0; i < 2; i++) {
        memrt_policy_t *policy = create_policy(kinds[i].folder);
        memrt_new_options_t options = {.struct_size = sizeof(options), .policy = policy};
        memrt_meminfo_t *mi;
        ck_assert_int_eq(api->meminfo_new(SIZE, &options, &mi), MEMRT_OK);
        char *data = api->get_data(mi);
        memset(data, 1, SIZE);
        pid_t child = fork();
        if (child == 0) {
            int inherited = data[SIZE - 1];
            data[SIZE - 1] = 2;
            api->release(mi);
            char *own = api->block_alloc(policy, SIZE);
            memset(own, 3, SIZE);
            api->block_free(policy, own, SIZE);
            _exit(inherited);
        }
        ck_assert_int_eq(child_wait(child), 1);
        ck_assert_uint_eq(api->refcount(mi), 1);
        ck_assert_int_eq(data[0], 1);
        ck_assert_int_eq(data[SIZE - 1], 2);
        api->release(mi);
        api->policy_release(policy);
    }
}

TEST(child_keeps_data_that_the_parent_frees)
{
    create(FOLDER);
    char *block = allocate(SIZE);
    memset(block + 64, 1, SIZE - 64);
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        char go;
        close(pipes[1]);
        _exit(read(pipes[0], &go, 1) == 0 && block[64] == 1 && block[SIZE - 1] == 1 ? 0 : 1);
    }
    release(block, SIZE);
    close(pipes[1]);
    close(pipes[0]);
    ck_assert_int_eq(child_wait(child), 0);
    end();
}

/// Check that requests fail with nothing left behind, and succeed after the refusal.
static void require_refusal(const char *what)
{
    errno = 77;
    char *block = allocate(SIZE);
    ck_assert_msg(block == NULL, "%s", what);
    ck_assert_int_eq(errno, 77);
    kernel_obey();
    ck_assert_uint_eq(count_files(), 0);
    block = allocate(SIZE);
    ck_assert_msg(block != NULL, "%s", what);
    release(block, SIZE);
}

TEST(each_refused_call_refuses_the_request)
{
    static const struct {
        const char *what;
        size_t kind;
        kernel_call_t call;
        size_t pass, times;
    } cases[] = {
        {"addresses", 0, KERNEL_MAP, 0, 1},
        {"private page", 0, KERNEL_PROTECT, 0, 1},
        {"both ways to open", 0, KERNEL_OPEN, 0, 2},
        {"space", 0, KERNEL_RESERVE, 0, 1},
        {"mapping of the file", 0, KERNEL_MAP, 1, 1},
        {"memory file", 1, KERNEL_OPEN, 0, 1},
        {"size of a memory file", 1, KERNEL_TRUNCATE, 0, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        create(kinds[cases[i].kind].folder);
        kernel_refuse(cases[i].call, cases[i].pass, cases[i].times);
        require_refusal(cases[i].what);
        end();
    }
}

TEST(file_system_without_nameless_files_gets_a_removed_name)
{
    create(FOLDER);
    kernel_refuse(KERNEL_OPEN, 0, 1);
    char *block = allocate(SIZE);
    kernel_obey();
    require_file(block + 64, FOLDER "/.memrt-");
    require_file(block + 64, "(deleted)");
    release(block, SIZE);
    end();
}

TEST(limit_of_file_sizes_refuses_without_a_signal)
{
    create(FOLDER);
    struct rlimit before, low;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = SIZE / 2;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &low), 0);
    char *block = allocate(SIZE);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_ptr_null(block);
    end();
}

TEST(strict_accounting_reserves_memory_files)
{
    create(NULL);
    system_tree_begin();
    system_tree_write("/proc/sys/vm/overcommit_memory", "2\n");
    kernel_refuse(KERNEL_RESERVE, 0, 1);
    char *refused = allocate(SIZE);
    char *block = allocate(SIZE);
    system_tree_write("/proc/sys/vm/overcommit_memory", "1\n");
    kernel_refuse(KERNEL_RESERVE, 0, SIZE_MAX);
    char *lazy = allocate(SIZE);
    system_tree_end();
    ck_assert_ptr_null(refused);
    ck_assert_ptr_nonnull(block);
    ck_assert_ptr_nonnull(lazy);
    release(block, SIZE);
    release(lazy, SIZE);
    end();
}

TEST(memory_file_needs_no_proc)
{
    create(NULL);
    kernel_refuse(KERNEL_OPEN, 1, 1); /* the first call makes the file */
    char *block = allocate(SIZE);
    kernel_obey();
    require_file(block + 64, "memfd:memrt");
    release(block, SIZE);
    end();
}

TEST(folder_must_exist_and_may_be_relative)
{
    ck_assert_int_eq(api->allocator_file("/tmp/memrt-missing", &made), MEMRT_EINVAL);
    ck_assert_int_eq(api->allocator_file("/dev/null", &made), MEMRT_EINVAL);
    char long_name[5000];
    memset(long_name, '/', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    ck_assert_int_eq(api->allocator_file(long_name, &made), MEMRT_EINVAL);
    char before[4096];
    ck_assert_ptr_nonnull(getcwd(before, sizeof(before)));
    ck_assert_int_eq(chdir(FOLDER), 0);
    create(".");
    ck_assert_int_eq(chdir(before), 0);
    char *block = allocate(SIZE);
    require_file(block + 64, FOLDER "/");
    release(block, SIZE);
    end();
}

TEST(adaptors_and_guards_refuse_files)
{
    memrt_allocator_t over;
    create(NULL);
    for (uint32_t kind = MEMRT_ADAPTOR_COUNTING; kind <= MEMRT_ADAPTOR_ARENA; kind++) {
        memrt_adaptor_counts_t counts;
        memrt_adaptor_options_t options = {.struct_size = sizeof(options),
                                           .kind = kind,
                                           .amount = (size_t)1 << 16,
                                           .counts = &counts,
                                           .file = 2};
        ck_assert_int_eq(api->allocator_adaptor(&made, &options, &over), MEMRT_EINVAL);
    }
    ck_assert_int_eq(api->allocator_guard(&made, &over), MEMRT_EINVAL);
    end();
}

TEST(policy_over_files_has_no_offset_alignment)
{
    memrt_policy_options_t options = {
        .struct_size = sizeof(options), .alignment = 16, .allocator = create(NULL)};
    memrt_policy_t *policy;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_EINVAL);
    end();
    options.allocator = &memrt__mapped_allocator;
    ck_assert_int_eq(api->policy_new(&options, &policy), MEMRT_OK);
    api->policy_release(policy);
    size_t before = memrt__options.alignment;
    memrt__options.alignment = 16;
    policy = create_policy(NULL);
    memrt__options.alignment = before;
    char *data = api->block_alloc(policy, SIZE);
    ck_assert_uint_eq((uintptr_t)data % PAGE, 0);
    api->block_free(policy, data, SIZE);
    api->policy_release(policy);
}

static void use_files_in_checking_mode(void *unused)
{
    (void)unused;
    memrt__options.check = true;
    memrt_policy_t *policy = create_policy(NULL);
    ck_assert(memrt__is_file_backed(&policy->allocator));
    char *data = api->block_alloc(policy, SIZE);
    require_private(data - 1);
    require_file(data, "memfd:memrt");
    api->block_free(policy, data, SIZE);
    api->policy_release(policy);
    memrt__options.check = false;
}

TEST(checking_mode_puts_no_guard_over_files)
{
    child_expect_success(use_files_in_checking_mode, NULL);
}

static void set_default(void *unused)
{
    (void)unused;
    REQUIRE(api->allocator_file(NULL, &made) == MEMRT_OK);
    memrt_status_t status = api->policy_default_set_allocator(&made);
    REQUIRE(status == MEMRT_OK);
    char *data = api->block_alloc(NULL, SIZE);
    require_file(data, "memfd:memrt");
    api->block_free(NULL, data, SIZE);
}

TEST(default_policy_may_use_files)
{
    child_expect_success(set_default, NULL);
}

TEST(cold_pages_keep_their_contents)
{
    size_t bytes;
    create(FOLDER);
    unsigned char *block = (unsigned char *)allocate(SIZE), *data = block + MEMRT_HEADER_SIZE;
    memset(data, 7, SIZE - MEMRT_HEADER_SIZE);
    for (int pageout = 0; pageout < 2; pageout++) {
        ck_assert_int_eq(api->pages_cold(data, 3 * PAGE + 1, pageout, &bytes), MEMRT_OK);
        ck_assert_uint_eq(bytes, 3 * PAGE);
        ck_assert_int_eq(api->pages_cold(data + 1, 3 * PAGE, pageout, &bytes), MEMRT_OK);
        ck_assert_uint_eq(bytes, 2 * PAGE);
        ck_assert_int_eq(api->pages_cold(data + 1, PAGE, pageout, &bytes), MEMRT_OK);
        ck_assert_uint_eq(bytes, 0);
        ck_assert_int_eq(data[0] & data[PAGE] & data[2 * PAGE], 7);
    }
    kernel_refuse(KERNEL_ADVISE, 0, 1);
    ck_assert_int_eq(api->pages_cold(data, PAGE, 1, &bytes), MEMRT_ENOTSUP);
    ck_assert_int_eq(api->pages_cold(data, SIZE_MAX, 1, &bytes), MEMRT_EINVAL);
    release(block, SIZE);
    end();
}
