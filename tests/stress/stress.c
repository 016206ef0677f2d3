/// Random use of the API by threads that start and end, for a few seconds. The threads share,
/// resize, chain, name, find and release buffers. They also switch policies, scopes and options,
/// and return unused memory. Every word of every buffer has a known value. Users, destructors and
/// each move verify the words. At the end, each buffer was destroyed once, the statistics are as
/// before, and the outermost scope has counted the same changes as the process.
///
/// Environment variables set the run: STRESS_SECONDS, STRESS_SEED, STRESS_THREADS. The actions of a
/// thread follow from the seed, its seat and the number of earlier threads on the seat. With one
/// thread, a run is fully reproducible.

#include "support/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/os/os.h"
#include "support/books.h"
#include "support/chance.h"
#include "support/child.h"
#include "support/crew.h"
#include "support/words.h"

#define THREADS 4
#define SLOTS 16
#define POLICIES 4
#define KEPT 8
#define WORDS_MAX 4000
#define DECAY_MS 4
#define DEEDS_MAX 8000 ///< of one thread

/// Place where threads leave buffers for other threads.
typedef struct slot {
    pthread_mutex_t lock;
    memrt_meminfo_t *mi;    ///< under the lock; a reference, or NULL
    memrt_meminfo_t *grows; ///< under the lock; resizable, never leaves the slot, or NULL
    size_t *block;          ///< under the lock; a raw block, or NULL
    size_t data;            ///< any thread, relaxed; a recent address of its data
} slot_t;

/// Policy for all threads to take, until a thread replaces the policy.
typedef struct office {
    pthread_mutex_t lock;
    memrt_policy_t *policy; ///< under the lock; a reference, or NULL
} office_t;

static struct stage {
    slot_t slots[SLOTS];
    office_t offices[POLICIES];
    memrt_scope_t *scope; ///< a reference; every thread is in this scope or in an inner scope
    size_t serial;        ///< relaxed add; numbers the buffers
    size_t made, links, destroyed;   ///< relaxed adds; buffers, links of chains, their destructors
    size_t deeds, threads, policies; ///< relaxed adds
    size_t fault;                    ///< number of the buffer that gets a wrong word; 0: none
    uint64_t end_ns;
    unsigned seed;
} stage;

/// State of one thread.
typedef struct actor {
    chance_t chance;
    memrt_policy_t *policy;      ///< a reference, or NULL: the default policy
    memrt_scope_t *scope;        ///< a reference; current scope of the thread
    memrt_meminfo_t *kept[KEPT]; ///< references taken from slots
    size_t *block;               ///< a raw block of its own, or NULL
} actor_t;

static size_t choose(actor_t *actor, size_t limit)
{
    return chance_below(&actor->chance, limit);
}

static slot_t *random_slot(actor_t *actor)
{
    return &stage.slots[choose(actor, SLOTS)];
}

static size_t next_serial(void)
{
    return memrt__fetch_add_relaxed(&stage.serial, 1) + 1;
}

static size_t random_words(actor_t *actor)
{
    /* A few buffers are large enough for a mapping. */
    size_t limit = choose(actor, 200) == 0 ? WORDS_MAX * 50 : WORDS_MAX / 10;
    return WORDS_MIN + choose(actor, limit);
}

/* --- Buffers with a destructor. --- */

static void verify(const void *data)
{
    const size_t *words = data;
    REQUIRE(words_hold(words, words[0]));
}

static void destroy_buffer(void *data, size_t size, void *info)
{
    (void)info;
    REQUIRE(size == *(size_t *)data * sizeof(size_t));
    verify(data);
    memset(data, 0xDD, size);
    memrt__fetch_add_relaxed(&stage.destroyed, 1);
}

static void destroy_adopted(void *data, size_t size, void *info)
{
    destroy_buffer(data, size, info);
    free(data);
}

/// Destructor of a link of a chain: release the next link.
static void destroy_link(void *data, size_t size, void *next)
{
    REQUIRE(size == *(size_t *)data * sizeof(size_t));
    verify(data);
    memrt__fetch_add_relaxed(&stage.destroyed, 1);
    api->release(next);
}

/// Release a reference, by the inline function of compiled code or by the table.
static void drop(actor_t *actor, memrt_meminfo_t *mi)
{
    if (mi == NULL) {
        return;
    }
    verify(api->get_data(mi));
    if (choose(actor, 2) == 0) {
        api->release(mi);
    } else {
        memrt_meminfo_release(api, mi);
    }
}

static memrt_meminfo_t *make_adopted(actor_t *actor, memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    size_t words = random_words(actor), *data = malloc(words * sizeof(*data));
    REQUIRE(data != NULL);
    words_fill(data, words, next_serial());
    options->dtor = destroy_adopted;
    REQUIRE(api->meminfo_adopt(data, words * sizeof(*data), options, &mi) == MEMRT_OK);
    return mi;
}

/// Change the size and words of a resizable MemInfo: by growing, by shrinking, or by a new block.
static void resize(actor_t *actor, memrt_meminfo_t *mi)
{
    size_t *old = api->get_data(mi), had = old[0], words = random_words(actor), *data;
    if (choose(actor, 4) == 0) {
        data = api->resizable_alloc(mi, words * sizeof(size_t));
        REQUIRE(data != NULL && data != old && words_hold(old, had));
        api->resizable_free(mi, old);
    } else {
        data = api->resizable_realloc(mi, words * sizeof(size_t));
        REQUIRE(data != NULL && words_hold(data, had < words ? had : words));
    }
    REQUIRE(data == api->get_data(mi));
    words_fill(data, words, next_serial());
}

static memrt_meminfo_t *make_resizable(actor_t *actor, memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    size_t words = random_words(actor);
    REQUIRE(api->resizable_new(words * sizeof(size_t), options, &mi) == MEMRT_OK);
    words_fill(api->get_data(mi), words, next_serial());
    resize(actor, mi);
    return mi;
}

static memrt_meminfo_t *make_inline(actor_t *actor, memrt_new_options_t *options)
{
    memrt_meminfo_t *mi;
    size_t words = random_words(actor);
    options->alignment = choose(actor, 16) == 0 ? (size_t)64 << choose(actor, 8) : 0;
    options->zeroed = choose(actor, 8) == 0;
    REQUIRE(api->meminfo_new(words * sizeof(size_t), options, &mi) == MEMRT_OK);
    size_t *data = api->get_data(mi);
    REQUIRE(!options->zeroed || pattern_is_zero(data, words * sizeof(size_t)));
    words_fill(data, words, next_serial());
    return mi;
}

static memrt_new_options_t random_options(actor_t *actor)
{
    return (memrt_new_options_t){.struct_size = sizeof(memrt_new_options_t),
                                 .policy = actor->policy,
                                 .name = choose(actor, 8) == 0 ? "stressed" : NULL,
                                 .dtor = destroy_buffer};
}

/// Count a new buffer. The buffer with number `fault` gets a wrong word. The word lies within the
/// minimum size, because the words behind are lost unread when a buffer shrinks.
static memrt_meminfo_t *count_new_buffer(memrt_meminfo_t *mi)
{
    if (memrt__fetch_add_relaxed(&stage.made, 1) + 1 == stage.fault) {
        size_t *words = api->get_data(mi);
        words[WORDS_MIN - 1] ^= 1;
    }
    return mi;
}

/// Create a buffer of a random kind, sometimes with a name.
static memrt_meminfo_t *make(actor_t *actor)
{
    static memrt_meminfo_t *(*const kinds[])(actor_t *, memrt_new_options_t *) = {
        make_adopted, make_resizable, make_inline, make_inline};
    memrt_new_options_t options = random_options(actor);
    return count_new_buffer(kinds[choose(actor, 4)](actor, &options));
}

/// Adopt the words of `mi` in a further MemInfo. Ownership: the link steals the caller's reference
/// to `mi`.
static memrt_meminfo_t *chain(actor_t *actor, memrt_meminfo_t *mi)
{
    memrt_meminfo_t *link;
    memrt_new_options_t options = random_options(actor);
    options.dtor = destroy_link;
    options.dtor_info = mi;
    REQUIRE(api->meminfo_adopt(api->get_data(mi), api->size(mi), &options, &link) == MEMRT_OK);
    memrt__fetch_add_relaxed(&stage.links, 1);
    return link;
}

/* --- Actions on buffers. --- */

/// Exchange the MemInfo of a slot; either may be NULL.
static memrt_meminfo_t *swap(slot_t *slot, memrt_meminfo_t *mi)
{
    pthread_mutex_lock(&slot->lock);
    memrt_meminfo_t *old = slot->mi;
    slot->mi = mi;
    memrt__store_relaxed(&slot->data, mi == NULL ? 0 : (size_t)api->get_data(mi));
    pthread_mutex_unlock(&slot->lock);
    return old;
}

static void publish(actor_t *actor)
{
    drop(actor, swap(random_slot(actor), make(actor)));
}

/// Acquire the MemInfo of a slot. Returns NULL for an empty slot.
static memrt_meminfo_t *share(actor_t *actor)
{
    slot_t *slot = random_slot(actor);
    pthread_mutex_lock(&slot->lock);
    memrt_meminfo_t *mi = slot->mi;
    if (mi != NULL && choose(actor, 2) == 0) {
        api->acquire(mi);
    } else if (mi != NULL) {
        memrt_meminfo_acquire(mi);
    }
    pthread_mutex_unlock(&slot->lock);
    return mi;
}

static void keep(actor_t *actor)
{
    size_t place = choose(actor, KEPT);
    drop(actor, actor->kept[place]);
    actor->kept[place] = share(actor);
}

static void lengthen_chain(actor_t *actor)
{
    memrt_meminfo_t *mi = share(actor);
    if (mi != NULL) {
        drop(actor, swap(random_slot(actor), chain(actor, mi)));
    }
}

/// Resize under the lock of the slot: a MemInfo may be resized by one thread at a time, while no
/// other thread has a reference.
static void resize_shared(actor_t *actor)
{
    slot_t *slot = random_slot(actor);
    pthread_mutex_lock(&slot->lock);
    if (slot->grows == NULL) {
        memrt_new_options_t options = random_options(actor);
        slot->grows = count_new_buffer(make_resizable(actor, &options));
    } else if (choose(actor, 8) == 0) {
        drop(actor, slot->grows);
        slot->grows = NULL;
    } else {
        resize(actor, slot->grows);
    }
    pthread_mutex_unlock(&slot->lock);
}

static void rename_kept(actor_t *actor)
{
    static const char *const names[] = {"one", "another", NULL};
    char name[MEMRT_NAME_MAX + 1];
    memrt_meminfo_t *mi = actor->kept[choose(actor, KEPT)];
    if (mi != NULL) {
        REQUIRE(api->set_name(mi, names[choose(actor, 3)]) == MEMRT_OK);
        api->get_name(mi, name);
        REQUIRE(strlen(name) <= MEMRT_NAME_MAX);
    }
}

/// Find a MemInfo by an address whose buffer may be freed. A found MemInfo is alive until its
/// release.
static void find_by_address(actor_t *actor)
{
    void *data = (void *)memrt__load_relaxed(&random_slot(actor)->data);
    memrt_meminfo_t *mi;
    if (api->find(data, &mi) == MEMRT_OK) {
        REQUIRE(api->refcount(mi) >= 1);
        api->release(mi);
    }
}

/* --- Raw blocks. --- */

/// Resize the own block and verify its words. While another reference exists, the resize copies the
/// block.
static void resize_block(actor_t *actor)
{
    size_t words = random_words(actor), old = actor->block == NULL ? 0 : actor->block[0];
    memrt_meminfo_t *held = NULL;
    if (actor->block != NULL && choose(actor, 4) == 0) {
        REQUIRE(api->block_meminfo(actor->block, &held) == MEMRT_OK);
    }
    actor->block = api->block_realloc(actor->policy, actor->block, words * sizeof(size_t));
    REQUIRE(actor->block != NULL && words_hold(actor->block, old < words ? old : words));
    if (held != NULL) {
        REQUIRE(api->get_data(held) != actor->block);
        drop(actor, held);
    }
    words_fill(actor->block, words, next_serial());
}

static void free_block(actor_t *actor)
{
    if (actor->block != NULL) {
        verify(actor->block);
    }
    api->block_free(actor->policy, actor->block, choose(actor, 1000));
    actor->block = NULL;
}

/// Leave the own block in a slot and take the block from the slot, possibly made by another thread.
static void hand_block(actor_t *actor)
{
    slot_t *slot = random_slot(actor);
    pthread_mutex_lock(&slot->lock);
    size_t *block = slot->block;
    slot->block = actor->block;
    pthread_mutex_unlock(&slot->lock);
    actor->block = block;
    if (block != NULL) {
        verify(block);
    }
}

static void renew_block(actor_t *actor)
{
    size_t words = random_words(actor);
    free_block(actor);
    actor->block = api->block_calloc(actor->policy, words, sizeof(size_t));
    REQUIRE(actor->block != NULL && pattern_is_zero(actor->block, words * sizeof(size_t)));
    words_fill(actor->block, words, next_serial());
}

/* --- Changes that affect all threads. --- */

static memrt_policy_t *make_policy(actor_t *actor)
{
    const memrt_policy_options_t kinds[] = {{.alignment = 64},
                                            {.alignment = 256},
                                            {.allocator = api->allocator_mapped()},
                                            {.allocator = api->allocator_system()},
                                            {.cache_limit = "4M", .decay = "0"},
                                            {.hugepages = "off", .decay = "never"}};
    memrt_policy_options_t options = kinds[choose(actor, 6)];
    memrt_allocator_t guard;
    memrt_policy_t *policy;
    options.struct_size = sizeof(options);
    if (choose(actor, 8) == 0) {
        REQUIRE(api->allocator_guard(api->allocator_system(), &guard) == MEMRT_OK);
        options = (memrt_policy_options_t){.struct_size = sizeof(options), .allocator = &guard};
    }
    REQUIRE(api->policy_new(&options, &policy) == MEMRT_OK);
    memrt__fetch_add_relaxed(&stage.policies, 1);
    return policy;
}

static void release_policy(memrt_policy_t *policy)
{
    if (policy != NULL) {
        api->policy_release(policy);
    }
}

static void renew_policy(actor_t *actor)
{
    office_t *office = &stage.offices[choose(actor, POLICIES)];
    memrt_policy_t *fresh = make_policy(actor);
    pthread_mutex_lock(&office->lock);
    memrt_policy_t *old = office->policy;
    office->policy = fresh;
    pthread_mutex_unlock(&office->lock);
    release_policy(old);
}

/// Allocate from another policy from now on; half of the time from the default policy.
static void switch_policy(actor_t *actor)
{
    office_t *office = &stage.offices[choose(actor, POLICIES)];
    release_policy(actor->policy);
    actor->policy = NULL;
    if (choose(actor, 2) == 0) {
        return;
    }
    pthread_mutex_lock(&office->lock);
    actor->policy = office->policy;
    if (actor->policy != NULL) {
        api->policy_acquire(actor->policy);
    }
    pthread_mutex_unlock(&office->lock);
}

/// Bind the policy to the current scope: from now on its allocations count in that scope.
static void tie_policy_to_scope(actor_t *actor)
{
    memrt_policy_t *tied;
    REQUIRE(api->scope_policy(actor->scope, actor->policy, &tied) == MEMRT_OK);
    release_policy(actor->policy);
    actor->policy = tied;
}

/// Enter a scope and leave the scope before. Ownership: steals the reference to `scope`.
static void move_to(actor_t *actor, memrt_scope_t *scope)
{
    memrt_scope_t *before;
    REQUIRE(api->scope_enter(scope, &before) == MEMRT_OK);
    REQUIRE(before == actor->scope && api->scope_current() == scope);
    if (before != NULL) {
        api->scope_release(before);
    }
    actor->scope = scope;
}

/// Enter a scope inside of the current scope or of the outermost scope.
static void switch_scope(actor_t *actor)
{
    static const char *const names[] = {"a", "b", "c"};
    bool deep = actor->scope != stage.scope && api->scope_parent(actor->scope) != stage.scope;
    memrt_scope_t *around = deep || choose(actor, 2) == 0 ? stage.scope : actor->scope, *scope;
    REQUIRE(api->scope_open(around, names[choose(actor, 3)], &scope) == MEMRT_OK);
    move_to(actor, scope);
}

static void set_option(actor_t *actor)
{
    static const char *const settings[][2] = {
        {"cache_limit", "none"}, {"cache_limit", "8M"},   {"cache_limit", "0"},
        {"decay", "4"},          {"decay", "0"},          {"decay", "never"},
        {"hugepages", "off"},    {"hugepages", "advise"}, {"hugepages", "large"},
        {"peak", "exact"},       {"peak", "bounded"}};
    const char *const *setting = settings[choose(actor, sizeof(settings) / sizeof(settings[0]))];
    REQUIRE(api->option_set(setting[0], setting[1], NULL, 0) == MEMRT_OK);
}

/// Change an option of the policy in use, which other threads use, too.
static void set_policy_option(actor_t *actor)
{
    static const char *const settings[][2] = {{"cache_limit", "4M"}, {"cache_limit", NULL},
                                              {"decay", "0"},        {"decay", "3"},
                                              {"hugepages", "off"},  {"hugepages", "large"},
                                              {"guard_sample", "0"}, {"guard_sample", "1M"}};
    const char *const *setting = settings[choose(actor, sizeof(settings) / sizeof(settings[0]))];
    if (actor->policy != NULL) {
        memrt_status_t status =
            api->policy_option_set(actor->policy, setting[0], setting[1], NULL, 0);
        REQUIRE(status == MEMRT_OK || status == MEMRT_ENOTSUP);
    }
}

static void release_unused(actor_t *actor)
{
    (void)actor;
    api->release_unused();
}

static void switch_tracking(actor_t *actor)
{
    api->tracking(choose(actor, 2) != 0);
}

static void look_around(actor_t *actor)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    REQUIRE(stats.free <= stats.alloc && stats.mi_free <= stats.mi_alloc);
    REQUIRE(stats.live <= stats.peak && stats.peak <= stats.total + stats.peak_error);
    if (choose(actor, 8) == 0) {
        memrt_live_t *list;
        size_t count;
        REQUIRE(api->live(&list, &count) == MEMRT_OK);
        api->live_free(list);
    }
}

/* --- Threads. --- */

typedef struct deed {
    void (*act)(actor_t *actor);
    size_t weight; ///< of 1000
} deed_t;

static void act(actor_t *actor)
{
    static const deed_t deeds[] = {
        {publish, 220},        {keep, 200},         {lengthen_chain, 60},
        {resize_shared, 70},   {rename_kept, 60},   {resize_block, 150},
        {free_block, 40},      {hand_block, 70},    {renew_block, 30},
        {find_by_address, 40}, {look_around, 16},   {switch_policy, 16},
        {renew_policy, 4},     {release_unused, 4}, {set_option, 3},
        {switch_tracking, 3},  {switch_scope, 10},  {tie_policy_to_scope, 4},
        {set_policy_option, 3}};
    size_t chosen = choose(actor, 1000), i = 0;
    while (chosen >= deeds[i].weight) {
        chosen -= deeds[i++].weight;
    }
    deeds[i].act(actor);
}

static void leave(actor_t *actor)
{
    for (size_t i = 0; i < KEPT; i++) {
        drop(actor, actor->kept[i]);
    }
    free_block(actor);
    release_policy(actor->policy);
    move_to(actor, NULL);
}

/// Run one thread: random actions until the time is over.
static void *run_actor(void *context)
{
    actor_t *actor = context;
    size_t deeds = 1 + choose(actor, DEEDS_MAX), done = 0;
    api->scope_acquire(stage.scope);
    move_to(actor, stage.scope);
    while (done < deeds && memrt__os_now_ns() < stage.end_ns) {
        act(actor);
        done++;
    }
    leave(actor);
    memrt__fetch_add_relaxed(&stage.deeds, done);
    memrt__fetch_add_relaxed(&stage.threads, 1);
    return NULL;
}

/// Run threads one after another on a seat.
static void take_turns(size_t seat, void *context)
{
    (void)context;
    for (uint64_t turn = 0; memrt__os_now_ns() < stage.end_ns; turn++) {
        uint64_t number = ((uint64_t)stage.seed << 32) + (turn << 8) + seat;
        actor_t actor = {.chance = chance_from(number)};
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, run_actor, &actor) == 0);
        pthread_join(thread, NULL);
    }
}

/* --- The test. --- */

static void begin(unsigned seconds)
{
    memset(&stage, 0, sizeof(stage));
    stage.seed = suite_number("STRESS_SEED", 1);
    REQUIRE(api->scope_open(NULL, "stage", &stage.scope) == MEMRT_OK);
    stage.end_ns = memrt__os_now_ns() + (uint64_t)seconds * 1000000000u;
    for (size_t i = 0; i < SLOTS; i++) {
        pthread_mutex_init(&stage.slots[i].lock, NULL);
    }
    for (size_t i = 0; i < POLICIES; i++) {
        pthread_mutex_init(&stage.offices[i].lock, NULL);
    }
    size_t limit = memrt__options.cache_limit;
    suite_set_decay(DECAY_MS);
    memrt__options.cache_limit = limit;
}

static void end(void)
{
    actor_t actor = {.chance = chance_from(0)};
    for (size_t i = 0; i < SLOTS; i++) {
        drop(&actor, swap(&stage.slots[i], NULL));
        drop(&actor, stage.slots[i].grows);
        api->block_free(NULL, stage.slots[i].block, 0);
        pthread_mutex_destroy(&stage.slots[i].lock);
    }
    for (size_t i = 0; i < POLICIES; i++) {
        release_policy(stage.offices[i].policy);
        pthread_mutex_destroy(&stage.offices[i].lock);
    }
    api->scope_release(stage.scope);
}

/// Return the statistics of the scope "stage" and its inner scopes so far.
static memrt_stats_t counted_in_scopes(void)
{
    memrt_scope_t *scope;
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->scope_open(NULL, "stage", &scope) == MEMRT_OK);
    REQUIRE(api->scope_stats(scope, &stats) == MEMRT_OK);
    api->scope_release(scope);
    return stats;
}

/// Check that the scopes and the process changed by the same amounts.
static void expect_same_change(memrt_stats_t then, memrt_stats_t now, memrt_stats_t scopes_then,
                               memrt_stats_t scopes_now)
{
    ck_assert_uint_eq(scopes_now.alloc - scopes_then.alloc, now.alloc - then.alloc);
    ck_assert_uint_eq(scopes_now.free - scopes_then.free, now.free - then.free);
    ck_assert_uint_eq(scopes_now.mi_alloc - scopes_then.mi_alloc, now.mi_alloc - then.mi_alloc);
    ck_assert_uint_eq(scopes_now.mi_free - scopes_then.mi_free, now.mi_free - then.mi_free);
    ck_assert_uint_eq(scopes_now.realloc - scopes_then.realloc, now.realloc - then.realloc);
    ck_assert_uint_eq(scopes_now.total - scopes_then.total, now.total - then.total);
    ck_assert_uint_eq(scopes_now.live, 0);
    ck_assert_uint_eq(scopes_now.adopted, 0);
}

static void run_on_stage(unsigned seconds, unsigned threads, size_t fault)
{
    begin(seconds);
    stage.fault = fault;
    crew_run(threads, take_turns, NULL);
    end();
}

TEST(random_use_keeps_buffers_intact_and_statistics_balanced)
{
    int was = api->tracking_enabled();
    unsigned seconds = suite_number("STRESS_SECONDS", 2);
    unsigned threads = suite_number("STRESS_THREADS", THREADS);
    printf("STRESS_SEED=%u STRESS_SECONDS=%u STRESS_THREADS=%u repeats this\n",
           suite_number("STRESS_SEED", 1), seconds, threads);
    fflush(stdout); /* before the run, because a failure ends the process */
    memrt_stats_t before = stats_of(NULL), scopes_before = counted_in_scopes();
    run_on_stage(seconds, threads, suite_number("STRESS_FAULT", 0));
    api->tracking(was);
    printf("{\"seed\": %u, \"deeds\": %zu, \"buffers\": %zu, \"links of chains\": %zu, "
           "\"threads\": %zu, \"policies\": %zu}\n",
           stage.seed, stage.deeds, stage.made, stage.links, stage.threads, stage.policies);
    expect_same_change(before, stats_of(NULL), scopes_before, counted_in_scopes());
    ck_assert_uint_gt(stage.made, 0);
    ck_assert_uint_eq(stage.destroyed, stage.made + stage.links);
}

static void run_with_a_wrong_word(void *context)
{
    (void)context;
    run_on_stage(20, 2, 500); /* ends when the wrong word is found */
}

TEST(seeded_wrong_word_is_detected)
{
    if (!SUITE_THREAD_SANITIZER) { /* does not follow threads into a child */
        child_expect_abort(run_with_a_wrong_word, NULL, "words_hold");
    }
}
