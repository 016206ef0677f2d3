#include "support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "runtime/alloc/adaptors/arena.h"
#include "runtime/alloc/allocator.h"
#include "runtime/alloc/heap/large_cache.h"
#include "runtime/alloc/heap/purger.h"
#include "runtime/alloc/heap/retention_budget.h"
#include "runtime/base/shield.h"
#include "runtime/config/options.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/kernel.h"
#include "support/tape.h"

#define MIB ((size_t)1 << 20)
#define KEPT 77

/* ThreadSanitizer does not survive libunwind's destructor of a thread that ends. */
#define NATIVE_FRAMES (SUITE_THREAD_SANITIZER ? 0 : 8)

/* --- Operations that keep errno and are not cancellation points. --- */

/// Fail unless the last call kept errno. REQUIRE reports the failure, for threads and children.
static void expect_errno(void)
{
    REQUIRE(errno == KEPT);
}

/// Advance the clock until the retention budget is due for an update.
static void let_budget_expire(void)
{
    kernel_let_pass(2 * MEMRT__RETENTION_NS);
}

static void use_block(void *policy, size_t size)
{
    let_budget_expire();
    errno = KEPT;
    void *data = api->block_alloc(policy, size);
    expect_errno();
    void *moved = data == NULL ? NULL : api->block_realloc(policy, data, 2 * size);
    data = moved == NULL ? data : moved;
    expect_errno();
    moved = data == NULL ? NULL : api->block_realloc(policy, data, size / 2);
    data = moved == NULL ? data : moved;
    expect_errno();
    api->block_free(policy, data, 0);
    expect_errno();
    data = api->block_calloc(policy, 1, size);
    expect_errno();
    api->block_free(policy, data, 0);
    expect_errno();
}

/// Use tiny, small, large and huge blocks. Sanitizers take long for the huge block, so the last
/// size is left out. A resize doubles each size.
static void use_sizes(void *policy)
{
    static const size_t sizes[] = {8, 600, 40000, 200000, 500000, 3 * MIB, 9 * MIB, 20 * MIB};
    size_t count = sizeof(sizes) / sizeof(sizes[0]) - (suite_measures_memory() ? 0 : 1);
    for (size_t i = 0; i < count; i++) {
        use_block(policy, sizes[i]);
    }
}

static void use_default(void)
{
    use_sizes(NULL);
}

static void use_policy(const memrt_policy_options_t *options)
{
    memrt_policy_t *policy;
    if (api->policy_new(options, &policy) == MEMRT_OK) {
        use_sizes(policy);
        errno = KEPT;
        api->policy_release(policy);
        expect_errno();
    }
}

static void use_allocator(const memrt_allocator_t *allocator)
{
    use_policy(&(memrt_policy_options_t){
        .struct_size = sizeof(memrt_policy_options_t), .allocator = allocator, .alignment = 256});
}

static void use_uncached(void)
{
    use_allocator(&memrt__uncached_allocator);
}

static void use_system(void)
{
    use_allocator(api->allocator_system());
}

static void use_mapped(void)
{
    use_allocator(api->allocator_mapped());
}

static void use_guard(void)
{
    memrt_allocator_t guard;
    if (api->allocator_guard(api->allocator_default(), &guard) == MEMRT_OK) {
        use_allocator(&guard);
    }
}

/* A policy destroys its allocator. */

static void use_prefault(void)
{
    memrt_placement_options_t options = {
        .struct_size = sizeof(options), .prefault = 3, .lock = MEMRT_LOCK_TRY};
    memrt_allocator_t placed;
    if (api->allocator_placed(&options, &placed, NULL, 0) == MEMRT_OK) {
        use_allocator(&placed);
    }
}

static void use_files(void)
{
    memrt_allocator_t files;
    if (api->allocator_file("/tmp", &files) == MEMRT_OK) {
        use_allocator(&files);
    }
}

static void use_arena(void)
{
    memrt_allocator_t arena;
    if (memrt__arena_new(api->allocator_default(), 0, &arena) == MEMRT_OK) {
        use_allocator(&arena);
    }
}

static void use_limits(void)
{
    use_policy(&(memrt_policy_options_t){.struct_size = sizeof(memrt_policy_options_t),
                                         .cache_limit = "0",
                                         .decay = "10",
                                         .hugepages = "advise"});
}

static void ignore_data(void *data, size_t size, void *context)
{
    (void)data;
    (void)size;
    (void)context;
}

static void *external_malloc(size_t size, void *context)
{
    (void)context;
    return malloc(size);
}

static void *external_realloc(void *data, size_t size, void *context)
{
    (void)context;
    return realloc(data, size);
}

static void external_free(void *data, void *context)
{
    (void)context;
    free(data);
}

static void release_meminfo(memrt_meminfo_t *mi)
{
    expect_errno();
    if (mi != NULL) {
        api->acquire(mi);
        api->release(mi);
        api->release(mi);
    }
    expect_errno();
}

static void use_meminfos(void)
{
    static memrt_external_allocator_t external = {external_malloc, external_realloc, external_free,
                                                  NULL};
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .alignment = 8192, .zeroed = 1, .dtor = ignore_data};
    memrt_meminfo_t *mi = NULL;
    char foreign[64];
    let_budget_expire();
    errno = KEPT;
    release_meminfo(api->allocate(500000));
    release_meminfo(api->allocate_external(1000, &external));
    release_meminfo(api->meminfo_new(500000, &options, &mi) == MEMRT_OK ? mi : NULL);
    release_meminfo(api->meminfo_adopt(foreign, 64, &options, &mi) == MEMRT_OK ? mi : NULL);
    if (api->resizable_new(100, NULL, &mi) == MEMRT_OK) {
        (void)!api->resizable_realloc(mi, 500000);
        (void)!api->resizable_realloc(mi, 5 * MIB);
        release_meminfo(mi);
    }
    void *data = api->block_alloc(NULL, 30);
    release_meminfo(data != NULL && api->block_meminfo(data, &mi) == MEMRT_OK ? mi : NULL);
    api->block_free(NULL, data, 0);
    expect_errno();
}

static void use_scope(void)
{
    memrt_scope_t *scope, *before;
    if (api->scope_open(NULL, "shield", &scope) != MEMRT_OK) {
        return;
    }
    REQUIRE(api->scope_enter(scope, &before) == MEMRT_OK);
    use_sizes(NULL);
    REQUIRE(api->scope_enter(before, &before) == MEMRT_OK);
    api->scope_release(scope);
}

/// Allocate enough blocks to make tables grow.
static void use_many(void)
{
    enum { MANY = 3000 };
    static void *blocks[MANY];
    errno = KEPT;
    for (size_t i = 0; i < MANY; i++) {
        blocks[i] = api->block_alloc(NULL, 1000 + i);
        expect_errno();
    }
    for (size_t i = 0; i < MANY; i++) {
        api->block_free(NULL, blocks[i], 0);
        expect_errno();
    }
}

static void use_tracking(void)
{
    memrt_tracking_t tracking = {.struct_size = sizeof(tracking), .on = 1, .native = NATIVE_FRAMES};
    memrt_meminfo_t *mi;
    int before = api->tracking_enabled();
    REQUIRE(api->tracking_set(&tracking) == MEMRT_OK);
    errno = KEPT;
    mi = api->allocate(100);
    if (mi != NULL && api->acquire_as(mi, MEMRT_HOLDER_REFERENCE, "shield") == MEMRT_OK) {
        api->release_as(mi, MEMRT_HOLDER_REFERENCE, "shield");
    }
    (void)!(mi != NULL && api->set_name(mi, "shield"));
    release_meminfo(mi);
    use_many();
    tracking = (memrt_tracking_t){.struct_size = sizeof(tracking), .on = before};
    REQUIRE(api->tracking_set(&tracking) == MEMRT_OK);
}

static void use_trace(void)
{
    const char *path = tape_path();
    memrt_trace_options_t options = {
        .struct_size = sizeof(options), .path = path, .replace = 1, .native = NATIVE_FRAMES};
    errno = KEPT;
    if (api->trace_start(&options, NULL) == MEMRT_OK) {
        use_many();
        REQUIRE(api->trace_stop(NULL) == MEMRT_OK);
    }
    expect_errno();
    remove(path);
}

static void use_reports(void)
{
    char text[4096];
    errno = KEPT;
    (void)api->explain_shortage(NULL, 100, text, sizeof(text));
    (void)api->release_unused();
    expect_errno();
}

static void use_options(void)
{
    errno = KEPT;
    REQUIRE(api->option_set("MEMRT_HUGEPAGES", "advise", NULL, 0) == MEMRT_OK);
    use_sizes(NULL);
    REQUIRE(api->option_set("MEMRT_HUGEPAGES", "off", NULL, 0) == MEMRT_OK);
    use_sizes(NULL);
    /* ThreadSanitizer sees a late thread read options that the suite restores. */
    if (!SUITE_THREAD_SANITIZER && api->option_set("MEMRT_SHARE", "1", NULL, 0) == MEMRT_OK) {
        REQUIRE(api->option_set("MEMRT_SHARE", "0", NULL, 0) == MEMRT_OK);
    }
}

static void use_purger(void)
{
    memrt__store_relaxed(&memrt__options.decay, 20);
    use_sizes(NULL);
    memrt__purger_stop();
    memrt__store_relaxed(&memrt__options.decay, MEMRT__DECAY_NEVER);
}

static void use_in_thread(size_t index, void *context)
{
    (void)index;
    (void)context;
    use_default();
}

/// Run on a thread without a record.
static void use_new_thread(void)
{
    crew_run(1, use_in_thread, NULL);
}

static void (*const operations[])(void) = {
    use_default, use_uncached, use_system,  use_mapped, use_guard,      use_prefault,
    use_files,   use_arena,    use_limits,  use_scope,  use_meminfos,   use_tracking,
    use_trace,   use_reports,  use_options, use_purger, use_new_thread,
};
#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static void empty_caches(void)
{
    suite_set_decay(MEMRT__DECAY_NEVER);
    memrt__allocator_release_unused(&memrt__heap_allocator);
}

/* --- Cancellation. --- */

static void *run_with_pending_cancel(void *context)
{
    void (*const *operation)(void) = context;
    pthread_cancel(pthread_self());
    (*operation)();
    return context;
}

static void expect_no_cancellation_in(void (*operation)(void))
{
    pthread_t thread;
    void *result = NULL;
    ck_assert_int_eq(pthread_create(&thread, NULL, run_with_pending_cancel, &operation), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_ne(result, PTHREAD_CANCELED);
}

/* crew_run() waits for its thread. The wait is a cancellation point of the test, so the last
 * operation is left out. */
TEST_EACH(pending_cancellation_does_not_end_a_thread_in_memrt, OPERATIONS - 1)
{
    if (SUITE_THREAD_SANITIZER && operations[index] == use_guard) {
        return; /* a guard also unwinds */
    }
    empty_caches();
    size_t opens = kernel_calls(KERNEL_OPEN);
    expect_no_cancellation_in(operations[index]);
    operations[index](); /* on this thread: checks that no lock is held */
    if (index == 0 && memrt__options.cache) {
        ck_assert_uint_gt(kernel_calls(KERNEL_OPEN), opens);
    }
}

static bool purger_runs(void)
{
    return memrt__load_relaxed(&memrt__purger_runs) != 0;
}

static void start_purger(void)
{
    memrt__store_relaxed(&memrt__options.decay, 3600000);
    void *data = memrt__allocator_alloc(&memrt__heap_allocator, 3 * MIB, 64, false);
    REQUIRE(data != NULL);
    memrt__allocator_free(&memrt__heap_allocator, data, 3 * MIB, 64);
    REQUIRE(purger_runs());
}

static void fork_once(void)
{
    int ignored;
    start_purger();
    pid_t child = fork();
    if (child == 0) {
        child_start_watchdog();
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ignored);
        use_default();
        _exit(0);
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &ignored);
    REQUIRE(child_wait(child) == 0);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &ignored);
}

TEST(fork_with_pending_cancellation_returns_in_both_processes)
{
    if (!SUITE_THREAD_SANITIZER) { /* does not follow threads into a child */
        empty_caches();
        expect_no_cancellation_in(fork_once);
        start_purger();
    }
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void wait_for_a_past_moment(void)
{
    memrt__lock(MEMRT__RANK_PURGER);
    REQUIRE(memrt__lock_wait(MEMRT__RANK_PURGER, &condition, 1) == ETIMEDOUT);
    memrt__unlock(MEMRT__RANK_PURGER);
}

TEST(pending_cancellation_does_not_end_a_wait_under_a_lock)
{
    expect_no_cancellation_in(wait_for_a_past_moment);
    wait_for_a_past_moment();
}

static void raise_and_lower_shield(int state)
{
    int before, after;
    pthread_setcancelstate(state, &before);
    memrt__shield_t shield = memrt__shield_raise();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &after);
    ck_assert_int_eq(after, PTHREAD_CANCEL_DISABLE);
    memrt__shield_lower(&shield);
    pthread_setcancelstate(before, &after);
    ck_assert_int_eq(after, state);
}

TEST(shield_restores_the_cancellation_state_of_the_caller)
{
    raise_and_lower_shield(PTHREAD_CANCEL_ENABLE);
    raise_and_lower_shield(PTHREAD_CANCEL_DISABLE);
}

/* --- errno. --- */

static const kernel_call_t refused[] = {
    KERNEL_MAP,    KERNEL_UNMAP, KERNEL_REMAP, KERNEL_DISCARD,
    KERNEL_ADVISE, KERNEL_OPEN,  KERNEL_READ,  KERNEL_THREAD,
};

TEST_EACH(refused_call_of_the_system_leaves_errno_unchanged, sizeof(refused) / sizeof(refused[0]))
{
    empty_caches();
    for (size_t i = 0; i < OPERATIONS - 1; i++) {
        kernel_refuse(refused[index], 0, SIZE_MAX);
        operations[i]();
        kernel_obey();
        memrt__allocator_release_unused(&memrt__heap_allocator);
    }
}

/// System calls of memrt and of its C library calls.
static const int system_calls[] = {
    SYS_mmap,   SYS_munmap, SYS_mremap, SYS_madvise, SYS_mprotect,
    SYS_openat, SYS_read,   SYS_close,  SYS_clone,   SYS_clone3,
};

/// Make the system refuse a call from here on.
static void refuse_system_call(int call)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void run_without_system_call(void *context)
{
    const int *call = context;
    refuse_system_call(*call);
    for (size_t i = 0; i < OPERATIONS - 1; i++) {
        operations[i]();
    }
}

/* Sanitizers and Valgrind cannot work without these calls. */
TEST_EACH(system_call_refused_for_ever_leaves_errno_unchanged,
          sizeof(system_calls) / sizeof(system_calls[0]))
{
    if (suite_measures_memory()) {
        empty_caches();
        child_expect_success(run_without_system_call, (void *)&system_calls[index]);
    }
}

/// Map a page behind malloc's heap, so that malloc uses mappings instead.
static void block_malloc_heap(void)
{
    size_t page = memrt__os_page_size();
    char *end = sbrk(0);
    char *next = end + (-(uintptr_t)end & (page - 1));
    void *mapping = mmap(next, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    REQUIRE(mapping == next);
    REQUIRE(sbrk((intptr_t)(2 * page)) == (void *)-1);
}

static void run_without_heap(void *context)
{
    (void)context;
    block_malloc_heap();
    for (size_t i = 0; i < OPERATIONS - 1; i++) {
        operations[i]();
    }
}

TEST(heap_that_cannot_grow_leaves_errno_unchanged)
{
    if (suite_measures_memory()) {
        empty_caches();
        child_expect_success(run_without_heap, NULL);
    }
}

static void run_without_descriptors(void *context)
{
    (void)context;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) == 0);
    for (size_t i = 0; i < OPERATIONS - 1; i++) {
        operations[i]();
    }
}

TEST(limit_of_zero_descriptors_leaves_errno_unchanged)
{
    if (suite_measures_memory()) { /* a sanitizer opens files in a child */
        empty_caches();
        child_expect_success(run_without_descriptors, NULL);
    }
}
