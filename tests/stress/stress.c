/// Threads that share, resize, name, find and drop buffers at random for a few seconds, while
/// unused memory goes back to the system within milliseconds. Every buffer has a pattern in every
/// word, which its users, its destructor and each move verify.
///
/// STRESS_SECONDS and STRESS_SEED in the environment change how long and which.

#include "support/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/base/atomics.h"
#include "runtime/base/options.h"
#include "runtime/base/os.h"
#include "support/books.h"
#include "support/crew.h"

#define THREADS 4
#define SLOTS 16
#define KEPT 8
#define WORDS_MAX 4000
#define DECAY_MS 4
#define GENERATION_NS 60000000u

/// A place where threads leave a buffer for others.
typedef struct slot {
    pthread_mutex_t lock;
    memrt_meminfo_t *mi; ///< under the lock; a reference, or NULL
    size_t *block;       ///< under the lock; a raw block, or NULL
    size_t data;         ///< any thread, relaxed; where its data was lately
} slot_t;

typedef struct stage {
    slot_t slots[SLOTS];
    size_t serial;          ///< relaxed add; numbers the buffers
    size_t made, buried;    ///< relaxed adds; buffers with a destructor, destructors that ran
    uint64_t end_ns;        ///< of all
    uint64_t generation_ns; ///< when the threads that run now end and others begin
    unsigned seed, generation;
} stage_t;

/// What one thread has for itself.
typedef struct actor {
    stage_t *stage;
    uint64_t random;
    memrt_meminfo_t *kept[KEPT]; ///< references taken from slots
    size_t *block;               ///< a raw block of its own, or NULL
} actor_t;

static size_t next_random(actor_t *actor, size_t limit)
{
    actor->random ^= actor->random << 13;
    actor->random ^= actor->random >> 7;
    actor->random ^= actor->random << 17;
    return (size_t)(actor->random >> 11) % limit;
}

static size_t word_at(size_t serial, size_t place)
{
    return (serial + place) * 0x9E3779B97F4A7C15u;
}

/// The first two words say how long a buffer is and which; the others follow from that.
static void fill(size_t *words, size_t count, size_t serial)
{
    words[0] = count;
    words[1] = serial;
    for (size_t i = 2; i < count; i++) {
        words[i] = word_at(serial, i);
    }
}

/// The first `count` words are as they were filled.
static void verify(const size_t *words, size_t count)
{
    for (size_t i = 2; i < count; i++) {
        REQUIRE(words[i] == word_at(words[1], i));
    }
}

static size_t next_serial(stage_t *stage)
{
    return memrt__fetch_add_relaxed(&stage->serial, 1) + 1;
}

static size_t random_words(actor_t *actor)
{
    /* Few are large enough to be mapped. */
    size_t limit = next_random(actor, 200) == 0 ? WORDS_MAX * 50 : WORDS_MAX / 10;
    return 2 + next_random(actor, limit);
}

static void bury(void *data, size_t size, void *info)
{
    stage_t *stage = info;
    size_t *words = data;
    REQUIRE(size == words[0] * sizeof(size_t));
    verify(words, words[0]);
    memset(data, 0xDD, size);
    memrt__fetch_add_relaxed(&stage->buried, 1);
}

static void bury_adopted(void *data, size_t size, void *info)
{
    bury(data, size, info);
    free(data);
}

static memrt_meminfo_t *make_adopted(actor_t *actor, memrt_new_options_t *options, size_t words)
{
    memrt_meminfo_t *mi;
    size_t *data = malloc(words * sizeof(*data));
    REQUIRE(data != NULL);
    fill(data, words, next_serial(actor->stage));
    options->dtor = bury_adopted;
    REQUIRE(api->meminfo_adopt(data, words * sizeof(*data), options, &mi) == MEMRT_OK);
    return mi;
}

static memrt_meminfo_t *make_resized(actor_t *actor, const memrt_new_options_t *options,
                                     size_t words)
{
    memrt_meminfo_t *mi;
    size_t first = random_words(actor), serial = next_serial(actor->stage);
    REQUIRE(api->resizable_new(first * sizeof(size_t), options, &mi) == MEMRT_OK);
    fill(api->get_data(mi), first, serial);
    size_t *data = api->resizable_realloc(mi, words * sizeof(size_t));
    REQUIRE(data != NULL);
    verify(data, first < words ? first : words);
    fill(data, words, serial);
    return mi;
}

static memrt_meminfo_t *make_inline(actor_t *actor, const memrt_new_options_t *options,
                                    size_t words)
{
    memrt_meminfo_t *mi;
    REQUIRE(api->meminfo_new(words * sizeof(size_t), options, &mi) == MEMRT_OK);
    fill(api->get_data(mi), words, next_serial(actor->stage));
    return mi;
}

/// A buffer of a random kind, sometimes with a name, sometimes on a policy that is let go at once.
static memrt_meminfo_t *make(actor_t *actor)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = bury, .dtor_info = actor->stage};
    memrt_meminfo_t *mi;
    size_t kind = next_random(actor, 4), words = random_words(actor);
    options.name = next_random(actor, 8) == 0 ? "stressed" : NULL;
    if (next_random(actor, 16) == 0) {
        REQUIRE(api->policy_new(NULL, &options.policy) == MEMRT_OK);
    }
    if (kind == 0) {
        mi = make_adopted(actor, &options, words);
    } else if (kind == 1) {
        mi = make_resized(actor, &options, words);
    } else {
        mi = make_inline(actor, &options, words);
    }
    if (options.policy != NULL) {
        api->policy_release(options.policy);
    }
    memrt__fetch_add_relaxed(&actor->stage->made, 1);
    return mi;
}

/// Exchange what stands in a slot; either may be NULL.
static memrt_meminfo_t *swap(slot_t *slot, memrt_meminfo_t *mi)
{
    pthread_mutex_lock(&slot->lock);
    memrt_meminfo_t *old = slot->mi;
    slot->mi = mi;
    memrt__store_relaxed(&slot->data, mi == NULL ? 0 : (size_t)api->get_data(mi));
    pthread_mutex_unlock(&slot->lock);
    return old;
}

static slot_t *random_slot(actor_t *actor)
{
    return &actor->stage->slots[next_random(actor, SLOTS)];
}

static void drop(memrt_meminfo_t *mi)
{
    if (mi != NULL) {
        const size_t *words = api->get_data(mi);
        verify(words, words[0]);
        api->release(mi);
    }
}

static void publish(actor_t *actor)
{
    drop(swap(random_slot(actor), make(actor)));
}

static void keep(actor_t *actor)
{
    slot_t *slot = random_slot(actor);
    size_t place = next_random(actor, KEPT);
    drop(actor->kept[place]);
    pthread_mutex_lock(&slot->lock);
    actor->kept[place] = slot->mi;
    if (slot->mi != NULL) {
        api->acquire(slot->mi);
    }
    pthread_mutex_unlock(&slot->lock);
}

static void rename_kept(actor_t *actor)
{
    static const char *const names[] = {"one", "another", NULL};
    char name[MEMRT_NAME_MAX + 1];
    memrt_meminfo_t *mi = actor->kept[next_random(actor, KEPT)];
    if (mi != NULL) {
        REQUIRE(api->set_name(mi, names[next_random(actor, 3)]) == MEMRT_OK);
        api->get_name(mi, name);
        REQUIRE(strlen(name) <= MEMRT_NAME_MAX);
    }
}

/// The block keeps its words whoever holds it; while somebody else does it is copied.
static void resize_block(actor_t *actor)
{
    size_t words = random_words(actor), old = actor->block == NULL ? 0 : actor->block[0];
    memrt_meminfo_t *held = NULL;
    if (actor->block != NULL && next_random(actor, 4) == 0) {
        REQUIRE(api->block_meminfo(actor->block, &held) == MEMRT_OK);
    }
    actor->block = api->block_realloc(NULL, actor->block, words * sizeof(size_t));
    REQUIRE(actor->block != NULL);
    verify(actor->block, old < words ? old : words);
    if (held != NULL) {
        REQUIRE(api->get_data(held) != actor->block);
        drop(held);
    }
    fill(actor->block, words, next_serial(actor->stage));
}

static void free_block(actor_t *actor)
{
    if (actor->block != NULL) {
        verify(actor->block, actor->block[0]);
    }
    api->block_free(NULL, actor->block, next_random(actor, 1000));
    actor->block = NULL;
}

/// Leave the own block in a slot and take what is there, which another thread may have made.
static void hand_block(actor_t *actor)
{
    slot_t *slot = random_slot(actor);
    pthread_mutex_lock(&slot->lock);
    size_t *block = slot->block;
    slot->block = actor->block;
    pthread_mutex_unlock(&slot->lock);
    actor->block = block;
    if (block != NULL) {
        verify(block, block[0]);
    }
}

static void renew_block(actor_t *actor)
{
    size_t words = random_words(actor);
    free_block(actor);
    actor->block = api->block_calloc(NULL, words, sizeof(size_t));
    REQUIRE(actor->block != NULL && pattern_is_zero(actor->block, words * sizeof(size_t)));
    fill(actor->block, words, next_serial(actor->stage));
}

static void release_unused(actor_t *actor)
{
    (void)actor;
    api->release_unused();
}

/// By an address that may be long dead: whoever is found there is alive until it is let go.
static void find_by_address(actor_t *actor)
{
    void *data = (void *)memrt__load_relaxed(&random_slot(actor)->data);
    memrt_meminfo_t *mi;
    if (api->find(data, &mi) == MEMRT_OK) {
        REQUIRE(api->refcount(mi) >= 1);
        api->release(mi);
    }
}

static void look_around(actor_t *actor)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    REQUIRE(stats.free <= stats.alloc && stats.mi_free <= stats.mi_alloc);
    REQUIRE(stats.live <= stats.peak && stats.peak <= stats.total + stats.peak_error);
    if (next_random(actor, 8) == 0) {
        memrt_live_t *list;
        size_t count;
        REQUIRE(api->live(&list, &count) == MEMRT_OK);
        api->live_free(list);
    }
}

static void switch_tracking(actor_t *actor)
{
    api->tracking(next_random(actor, 2) != 0);
}

typedef struct deed {
    void (*act)(actor_t *actor);
    size_t weight; ///< of 100
} deed_t;

static void act(actor_t *actor)
{
    static const deed_t deeds[] = {{publish, 23},       {keep, 21},           {rename_kept, 9},
                                   {resize_block, 18},  {free_block, 6},      {hand_block, 8},
                                   {renew_block, 3},    {find_by_address, 7}, {look_around, 3},
                                   {release_unused, 1}, {switch_tracking, 1}};
    size_t chosen = next_random(actor, 100), i = 0;
    while (chosen >= deeds[i].weight) {
        chosen -= deeds[i++].weight;
    }
    deeds[i].act(actor);
}

static void perform(size_t index, void *context)
{
    stage_t *stage = context;
    uint64_t number = ((uint64_t)stage->seed << 20) + stage->generation * THREADS + index + 1;
    actor_t actor = {.stage = stage, .random = number * 0x9E3779B97F4A7C15u};
    while (memrt__os_now_ns() < stage->generation_ns) {
        for (int i = 0; i < 100; i++) {
            act(&actor);
        }
    }
    for (size_t i = 0; i < KEPT; i++) {
        drop(actor.kept[i]);
    }
    free_block(&actor);
}

static unsigned number_from(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : (unsigned)strtoul(text, NULL, 10);
}

TEST(buffers_stay_whole_and_the_account_balances_under_random_use_by_all_threads)
{
    static stage_t stage;
    int was = api->tracking_enabled();
    stage.seed = number_from("STRESS_SEED", 1);
    stage.end_ns = memrt__os_now_ns() + (uint64_t)number_from("STRESS_SECONDS", 2) * 1000000000u;
    for (size_t i = 0; i < SLOTS; i++) {
        pthread_mutex_init(&stage.slots[i].lock, NULL);
    }
    size_t limit = memrt__options.cache_limit;
    suite_set_decay(DECAY_MS);
    memrt__options.cache_limit = limit;
    printf("STRESS_SEED=%u\n", stage.seed); /* before: a failure ends the process */
    fflush(stdout);
    for (; memrt__os_now_ns() < stage.end_ns; stage.generation++) {
        stage.generation_ns = memrt__os_now_ns() + GENERATION_NS;
        crew_run(THREADS, perform, &stage);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        drop(swap(&stage.slots[i], NULL));
        api->block_free(NULL, stage.slots[i].block, 0);
        pthread_mutex_destroy(&stage.slots[i].lock);
    }
    api->tracking(was);
    printf("%zu buffers made by %u generations of threads\n", stage.made, stage.generation);
    ck_assert_uint_gt(stage.made, 0);
    ck_assert_uint_eq(stage.buried, stage.made);
}
