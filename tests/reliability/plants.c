/* Seeded bugs: possible mistakes of C programs that use memrt. Each run makes the mistake named by
   the argument. Functions for allocation and release are not static, so that the call stacks of
   reports show the function names.

   No library has the bugs: each bug is a misuse of memrt's own functions. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memrt/memrt.h>

#define SIZE 100

static const memrt_api_t *api;
static memrt_policy_t *policy;
static volatile unsigned char sink;

memrt_meminfo_t *make_victim(void);
void *make_block(void);
void release_victim(memrt_meminfo_t *mi);
void free_block(void *data);
void *make_guarded(const memrt_allocator_t *guard);

static void must(int held, const char *what)
{
    if (!held) {
        fprintf(stderr, "plants: %s failed\n", what);
        exit(2);
    }
}

memrt_meminfo_t *make_victim(void)
{
    memrt_new_options_t options = {sizeof(options), .policy = policy, .name = "victim"};
    memrt_meminfo_t *mi;
    must(api->meminfo_new(SIZE, &options, &mi) == MEMRT_OK, "meminfo_new");
    memset(api->get_data(mi), 0, SIZE);
    return mi;
}

void *make_block(void)
{
    void *data = api->block_calloc(policy, 1, SIZE);
    must(data != NULL, "block_calloc");
    return data;
}

void *make_guarded(const memrt_allocator_t *guard)
{
    void *ptr = guard->alloc(guard->ctx, SIZE, 64);
    must(ptr != NULL, "alloc");
    return ptr;
}

void release_victim(memrt_meminfo_t *mi)
{
    api->release(mi);
}

void free_block(void *data)
{
    api->block_free(policy, data, SIZE);
}

static void none(void)
{
    memrt_meminfo_t *mi = make_victim();
    void *data = make_block();
    api->acquire(mi);
    release_victim(mi);
    release_victim(mi);
    free_block(data);
}

static void overrun(void)
{
    memrt_meminfo_t *mi = make_victim();
    ((char *)api->get_data(mi))[SIZE] = 1;
    release_victim(mi);
}

static void overrun_of_a_block(void)
{
    char *data = make_block();
    data[SIZE + 2] = 1;
    free_block(data);
}

static void underrun(void)
{
    memrt_meminfo_t *mi = make_victim();
    memset((char *)api->get_data(mi) - 8, 0, 8);
    release_victim(mi);
}

static void underrun_of_the_block(void)
{
    memrt_meminfo_t *mi = make_victim();
    ((char *)mi)[-1] = 1;
    release_victim(mi);
}

static void call_after_release(void)
{
    memrt_meminfo_t *mi = make_victim();
    release_victim(mi);
    sink = (unsigned char)api->size(mi);
}

static void write_after_release(void)
{
    memrt_meminfo_t *mi = make_victim();
    char *data = api->get_data(mi);
    release_victim(mi);
    data[3] = 1; /* checking mode finds the write at process exit at the latest */
}

static void use_of_what_was_read_after_release(void)
{
    memrt_meminfo_t **data = make_block();
    *data = make_victim();
    free_block(data);
    api->acquire(*data);
}

static void use_of_what_was_never_written(void)
{
    memrt_meminfo_t **data = api->block_alloc(policy, SIZE);
    must(data != NULL, "block_alloc");
    api->acquire(*data);
}

static void double_release(void)
{
    memrt_meminfo_t *mi = make_victim();
    release_victim(mi);
    release_victim(mi);
}

static void double_free(void)
{
    void *data = make_block();
    free_block(data);
    free_block(data);
}

static void foreign_free(void)
{
    char *foreign = malloc(1000);
    must(foreign != NULL, "malloc");
    free_block(foreign + 256);
}

static void acquire_of_the_dead(void)
{
    memrt_meminfo_t *mi = make_victim();
    release_victim(mi);
    api->acquire(mi);
}

static void free_with_a_wrong_size(void)
{
    memrt_allocator_t guard;
    must(api->allocator_guard(api->allocator_system(), &guard) == MEMRT_OK, "allocator_guard");
    void *ptr = make_guarded(&guard);
    guard.free(guard.ctx, ptr, SIZE - 1, 64);
}

static void free_of_a_meminfos_data(void)
{
    free_block(api->get_data(make_victim()));
}

static void release_of_a_block(void)
{
    char *data = make_block();
    release_victim((memrt_meminfo_t *)(data - MEMRT_HEADER_SIZE));
}

static void destructor_of_what_is_held(void)
{
    api->call_dtor(make_victim());
}

#define PLANT(name) {#name, name}

static const struct {
    const char *name;
    void (*act)(void);
} plants[] = {
    PLANT(none),
    PLANT(overrun),
    PLANT(overrun_of_a_block),
    PLANT(underrun),
    PLANT(underrun_of_the_block),
    PLANT(call_after_release),
    PLANT(write_after_release),
    PLANT(use_of_what_was_read_after_release),
    PLANT(use_of_what_was_never_written),
    PLANT(double_release),
    PLANT(double_free),
    PLANT(foreign_free),
    PLANT(acquire_of_the_dead),
    PLANT(free_with_a_wrong_size),
    PLANT(free_of_a_meminfos_data),
    PLANT(release_of_a_block),
    PLANT(destructor_of_what_is_held),
};

int main(int argc, char **argv)
{
    memrt_policy_options_t options = {sizeof(options), .name = "planted"};
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    must(api != NULL && argc == 2, "usage");
    must(api->policy_new(&options, &policy) == MEMRT_OK, "policy_new");
    for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
        if (strcmp(plants[i].name, argv[1]) == 0) {
            plants[i].act();
            return 0;
        }
    }
    must(0, "search for the seeded bug");
    return 2;
}
