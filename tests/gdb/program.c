/// Allocate buffers of every kind, print the statistics of memrt, and abort. test_gdb.py inspects
/// the process and a core file.

#include <stdio.h>
#include <stdlib.h>

#include <memrt/memrt.h>

static const memrt_api_t *api;
static memrt_meminfo_t *named, *unlisted, *moved; /* the tests print these variables in gdb */
static memrt_policy_t *images;
static void *freed, *block;

static void must(int right)
{
    if (!right) {
        fprintf(stderr, "this program went wrong\n");
        exit(1);
    }
}

static memrt_meminfo_t *make(size_t size, const char *name, memrt_policy_t *policy)
{
    memrt_new_options_t options = {sizeof(options), .policy = policy, .name = name};
    memrt_meminfo_t *mi;
    must(api->meminfo_new(size, &options, &mi) == MEMRT_OK);
    return mi;
}

static void enter(const char *outer, const char *inner)
{
    memrt_scope_t *around, *scope;
    must(api->scope_open(NULL, outer, &around) == MEMRT_OK);
    must(api->scope_open(around, inner, &scope) == MEMRT_OK);
    must(api->scope_enter(scope, NULL) == MEMRT_OK);
}

static void say_what_was_counted(void)
{
    memrt_stats_t stats = {sizeof(stats)};
    must(api->stats_read(NULL, &stats) == MEMRT_OK);
    printf("counted %llu %llu %llu %llu %llu\n", (unsigned long long)stats.live,
           (unsigned long long)(stats.alloc - stats.free), (unsigned long long)stats.alloc,
           (unsigned long long)stats.total, (unsigned long long)stats.failed);
    fflush(stdout);
}

int main(void)
{
    static char foreign[800];
    const char *why;
    api = memrt_get_api(MEMRT_ABI_MAJOR, &why);
    must(api != NULL);
    memrt_policy_options_t options = {sizeof(options), .name = "images"};
    must(api->policy_new(&options, &images) == MEMRT_OK);
    unlisted = make(1234, NULL, NULL);
    api->tracking(1);
    named = make(4096, "lookup table", images);
    api->acquire(named);
    must(api->meminfo_adopt(foreign, sizeof(foreign), NULL, &moved) == MEMRT_OK);
    must(api->resizable_new(100, NULL, &moved) == MEMRT_OK);
    must(api->resizable_realloc(moved, 9000) != NULL);
    freed = api->block_alloc(NULL, 300);
    api->block_free(NULL, freed, 0);
    enter("load", "parse");
    block = api->block_alloc(NULL, 2000000);
    say_what_was_counted();
    abort();
}
