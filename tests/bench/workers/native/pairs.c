/// Allocate, touch and free blocks in a plain loop, for callgrind to count.
///
/// usage: pairs LIBRARY WORK SIZE PAIRS [none | policy | scope | child | limit | soft [PEAK]]
///
///   LIBRARY  path of a libmemrt
///   WORK     meminfo, meminfo of policy, named meminfo, compiled meminfo, block, zeroed block,
///            two policies, meminfos of two policies, older, or malloc; see `works`
///   policy   allocate from a new policy
///   scope    enter a scope before the loop
///   child    fork, and run the loop in the child
///   limit    limit the live bytes of the process to 1 GiB
///   PEAK     bytes that are live at once before the loop, in each policy and scope of the loop
///
/// No library has the loop: benchmarks such as mimalloc-bench call malloc, not a table.

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memrt/memrt.h>

#define BATCH 100 /* blocks that are live when a scope begins */

typedef struct loop {
    const memrt_api_t *api;
    memrt_policy_t *policies[2]; ///< policies of blocks; NULL: the default policy
    memrt_scope_t *scope;        ///< a scope that no thread has entered yet
    size_t size;
    size_t pairs;
} loop_t;

typedef void (*work_fn)(const loop_t *loop);

static void stop(const char *why)
{
    (void)fprintf(stderr, "pairs: %s\n", why);
    exit(1);
}

static void require(memrt_status_t status)
{
    if (status != MEMRT_OK)
        stop("a call of memrt failed");
}

static void run_meminfos(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    for (size_t i = 0; i < loop->pairs; i++) {
        memrt_meminfo_t *mi = api->allocate(loop->size);
        *(volatile char *)mi->data = 1;
        api->release(mi);
    }
}

static void run_meminfos_of_policy(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    for (size_t i = 0; i < loop->pairs; i++) {
        memrt_meminfo_t *mi = api->allocate_from(loop->size, loop->policies[0]);
        *(volatile char *)mi->data = 1;
        api->release(mi);
    }
}

/// Allocate by the options of a policy.
static void run_named_meminfos(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = loop->policies[0]};
    for (size_t i = 0; i < loop->pairs; i++) {
        memrt_meminfo_t *mi;
        require(api->meminfo_new(loop->size, &options, &mi));
        *(volatile char *)mi->data = 1;
        api->release(mi);
    }
}

/// Release as Numba's compiled code does.
static void run_compiled_meminfos(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    for (size_t i = 0; i < loop->pairs; i++) {
        memrt_meminfo_t *mi = api->allocate(loop->size);
        *(volatile char *)mi->data = 1;
        if (__atomic_sub_fetch(&mi->refct, 1, __ATOMIC_ACQ_REL) == 0)
            api->call_dtor(mi);
    }
}

static void run_blocks(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    void *policy = loop->policies[0];
    for (size_t i = 0; i < loop->pairs; i++) {
        volatile char *data = api->block_alloc(policy, loop->size);
        *data = 1;
        api->block_free(policy, (void *)data, loop->size);
    }
}

static void run_zeroed_blocks(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    void *policy = loop->policies[0];
    for (size_t i = 0; i < loop->pairs; i++) {
        volatile char *data = api->block_calloc(policy, 1, loop->size);
        *data = 1;
        api->block_free(policy, (void *)data, loop->size);
    }
}

/// Alternate between two policies.
static void run_two_policies(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    for (size_t i = 0; i < loop->pairs; i++) {
        void *policy = loop->policies[i % 2];
        volatile char *data = api->block_alloc(policy, loop->size);
        *data = 1;
        api->block_free(policy, (void *)data, loop->size);
    }
}

/// Alternate between MemInfos of two policies.
static void run_meminfos_of_two_policies(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    for (size_t i = 0; i < loop->pairs; i++) {
        memrt_meminfo_t *mi = api->allocate_from(loop->size, loop->policies[i % 2]);
        *(volatile char *)mi->data = 1;
        api->release(mi);
    }
}

/// Allocate blocks outside of the scope, and free the blocks inside. `pairs` must be a multiple of
/// BATCH.
static void run_older_blocks(const loop_t *loop)
{
    const memrt_api_t *api = loop->api;
    volatile char *blocks[BATCH];
    for (size_t done = 0; done < loop->pairs; done += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            blocks[i] = api->block_alloc(NULL, loop->size);
            *blocks[i] = 1;
        }
        require(api->scope_enter(loop->scope, NULL));
        for (size_t i = 0; i < BATCH; i++)
            api->block_free(NULL, (void *)blocks[i], loop->size);
        require(api->scope_enter(NULL, NULL));
    }
}

/// Call malloc and free by pointers, like the functions of a table.
static void run_malloc(const loop_t *loop)
{
    void *(*volatile alloc)(size_t) = malloc;
    void (*volatile release)(void *) = free;
    for (size_t i = 0; i < loop->pairs; i++) {
        volatile char *data = alloc(loop->size);
        *data = 1;
        release((void *)data);
    }
}

static const struct {
    const char *name;
    work_fn run;
} works[] = {
    {"meminfo", run_meminfos},
    {"meminfo of policy", run_meminfos_of_policy},
    {"named meminfo", run_named_meminfos},
    {"compiled meminfo", run_compiled_meminfos},
    {"block", run_blocks},
    {"zeroed block", run_zeroed_blocks},
    {"two policies", run_two_policies},
    {"meminfos of two policies", run_meminfos_of_two_policies},
    {"older", run_older_blocks},
    {"malloc", run_malloc},
};

static work_fn find_work(const char *name)
{
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, name) == 0)
            return works[i].run;
    stop("unknown work");
    return NULL;
}

static const memrt_api_t *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        stop(dlerror());
    __typeof__(&memrt_get_api) get_api = (__typeof__(get_api))dlsym(library, "memrt_get_api");
    const memrt_api_t *api = get_api != NULL ? get_api(MEMRT_ABI_MAJOR, NULL) : NULL;
    if (api == NULL)
        stop("the library has no table of this version");
    return api;
}

static memrt_policy_t *make_policy(const memrt_api_t *api)
{
    memrt_policy_options_t options = {.struct_size = sizeof options, .name = "pairs"};
    memrt_policy_t *policy;
    require(api->policy_new(&options, &policy));
    return policy;
}

/// Run the work in a child, and return the exit status of the child.
static int run_in_child(work_fn run, const loop_t *loop)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        run(loop);
        _exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void allocate_once(const loop_t *loop, memrt_policy_t *policy, size_t size)
{
    void *data = loop->api->block_alloc(policy, size);
    if (data == NULL)
        stop("no memory for the peak");
    loop->api->block_free(policy, data, size);
}

/// Raise the peak of each policy and scope of the loop, outside and inside of the scope.
static void reach_peak(const loop_t *loop, size_t peak)
{
    allocate_once(loop, loop->policies[0], peak);
    if (loop->policies[1] != NULL)
        allocate_once(loop, loop->policies[1], peak);
    memrt_scope_t *before;
    require(loop->api->scope_enter(loop->scope, &before));
    allocate_once(loop, loop->policies[0], peak);
    require(loop->api->scope_enter(before, NULL));
}

int main(int count, char **words)
{
    if (count < 5)
        stop("usage: pairs LIBRARY WORK SIZE PAIRS "
             "[none | policy | scope | child | limit | soft [PEAK]]");
    const char *setting = count > 5 ? words[5] : "";
    work_fn run = find_work(words[2]);
    loop_t loop = {.api = open_library(words[1]),
                   .size = strtoul(words[3], NULL, 0),
                   .pairs = strtoul(words[4], NULL, 0)};
    require(loop.api->scope_open(NULL, "pairs", &loop.scope));
    bool two = run == run_two_policies || run == run_meminfos_of_two_policies;
    if (strcmp(setting, "policy") == 0 || two)
        loop.policies[0] = make_policy(loop.api);
    if (two)
        loop.policies[1] = make_policy(loop.api);
    if (strcmp(setting, "scope") == 0)
        require(loop.api->scope_enter(loop.scope, NULL));
    if (strcmp(setting, "limit") == 0)
        require(loop.api->limit_set(NULL, NULL, (uint64_t)1 << 30));
    if (strcmp(setting, "soft") == 0)
        require(loop.api->limit_set_soft(NULL, NULL, (uint64_t)1 << 30));
    if (count > 6)
        reach_peak(&loop, strtoul(words[6], NULL, 0));
    if (strcmp(setting, "child") == 0)
        return run_in_child(run, &loop);
    run(&loop);
    return 0;
}
