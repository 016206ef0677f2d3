#include "support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/config/options.h"
#include "runtime/stats/promise.h"
#include "runtime/stats/shard.h"
#include "support/chance.h"
#include "support/child.h"
#include "support/crew.h"

#define MIB ((size_t)1 << 20)

/// Object of a limit, and the policy whose blocks count under the limit.
enum { PROCESS, POLICY, SCOPE, OUTER_SCOPE, PLACES };

typedef struct place {
    memrt_policy_t *policy, *limited_policy;
    memrt_scope_t *outer, *scope, *limited_scope;
    uint64_t before; ///< live bytes under the limit when the place was made
} place_t;

static memrt_limit_t read_limit(const place_t *place)
{
    memrt_limit_t limit = {.struct_size = sizeof(limit)};
    REQUIRE(api->limit_read(place->limited_policy, place->limited_scope, &limit) == MEMRT_OK);
    return limit;
}

/// Set a limit `room` bytes above the live bytes.
static void set_room(const place_t *place, uint64_t room)
{
    uint64_t limit = room == MEMRT_NO_LIMIT ? room : place->before + room;
    REQUIRE(api->limit_set(place->limited_policy, place->limited_scope, limit) == MEMRT_OK);
}

static uint64_t read_process_live(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK);
    return stats.live;
}

/// Make a policy and two scopes, and enter the inner scope. Allocations come from `place.policy`.
static place_t enter_place(int where)
{
    place_t place = {0};
    memrt_policy_options_t options = {.struct_size = sizeof(options), .name = "limited"};
    ck_assert_int_eq(api->policy_new(&options, &place.policy), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(NULL, "outer", &place.outer), MEMRT_OK);
    ck_assert_int_eq(api->scope_open(place.outer, "inner", &place.scope), MEMRT_OK);
    ck_assert_int_eq(api->scope_enter(place.scope, NULL), MEMRT_OK);
    place.limited_policy = where == POLICY ? place.policy : NULL;
    place.limited_scope = where == SCOPE ? place.scope : where == OUTER_SCOPE ? place.outer : NULL;
    place.before = where == PROCESS ? read_process_live() : 0;
    return place;
}

static void leave_place(place_t *place)
{
    set_room(place, MEMRT_NO_LIMIT);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(place->scope);
    api->scope_release(place->outer);
    api->policy_release(place->policy);
}

static void *alloc(const place_t *place, size_t size)
{
    return api->block_alloc(place->policy, size);
}

static void release(const place_t *place, void *block, size_t size)
{
    api->block_free(place->policy, block, size);
}

/// Sizes whose multiples fill a limit: tiny, from the thread cache, from spans, mapped.
static const size_t sizes[] = {16, 64, 1024, 48 << 10, 256 << 10, 2 << 20};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), FILL = 4 << 20 };

TEST_EACH(last_byte_below_limit_can_be_used, PLACES *SIZES)
{
    place_t place = enter_place(index / (int)SIZES);
    size_t size = sizes[index % SIZES], count = FILL / size;
    void **blocks = calloc(count, sizeof(*blocks));
    set_room(&place, count * size);
    for (size_t round = 0; round < 2; round++) {
        size_t refused = 0;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = alloc(&place, size);
            refused += blocks[i] == NULL;
        }
        ck_assert_uint_eq(refused, 0);
        ck_assert_ptr_null(alloc(&place, 1));
        ck_assert_ptr_null(alloc(&place, size));
        ck_assert_uint_eq(read_limit(&place).live, read_limit(&place).limit);
        for (size_t i = 0; i < count; i++) {
            release(&place, blocks[i], size);
        }
    }
    free(blocks);
    leave_place(&place);
}

TEST_EACH(limit_refuses_block_of_one_more_byte, PLACES)
{
    place_t place = enter_place(index);
    set_room(&place, MIB);
    ck_assert_ptr_null(alloc(&place, MIB + 1));
    ck_assert_ptr_null(alloc(&place, SIZE_MAX / 2));
    ck_assert_ptr_null(api->block_calloc(place.policy, MIB + 1, 1));
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = place.policy};
    memrt_meminfo_t *mi = NULL;
    ck_assert_int_eq(api->meminfo_new(MIB + 1, &options, &mi), MEMRT_ENOMEM);
    ck_assert_int_eq(api->resizable_new(MIB + 1, &options, &mi), MEMRT_ENOMEM);
    void *block = alloc(&place, MIB);
    ck_assert_ptr_nonnull(block);
    void *unlimited = api->block_alloc(NULL, 5 * MIB);
    ck_assert((unlimited == NULL) == (index != POLICY)); /* other places have the default policy */
    if (unlimited != NULL) {
        api->block_free(NULL, unlimited, 5 * MIB);
    }
    release(&place, block, MIB);
    leave_place(&place);
}

/// Make a request of each kind under a limit of its size, so that a single byte more is refused.
static void expect_resizes_within(const place_t *place, size_t from, size_t to)
{
    release(place, alloc(place, 8), 8); /* with counters, the thread uses tiny blocks */
    set_room(place, to);
    char *block = alloc(place, from);
    ck_assert_ptr_nonnull(block);
    memset(block, 5, from);
    ck_assert_ptr_null(api->block_realloc(place->policy, block, to + 1));
    char *resized = api->block_realloc(place->policy, block, to);
    ck_assert_ptr_nonnull(resized);
    ck_assert_int_eq(resized[0], 5);
    ck_assert_int_eq(resized[from - 1], 5);
    ck_assert_ptr_null(alloc(place, 1));
    release(place, resized, to);
}

TEST_EACH(resize_stays_within_limit, PLACES)
{
    static const size_t pairs[][2] = {{20, 30},          {30, 60},           {60, 200},
                                      {1000, 1010},      {1000, 100000},     {100000, 400000},
                                      {300000, 3000000}, {3000000, 3100000}, {3000000, 9000000}};
    place_t place = enter_place(index);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        expect_resizes_within(&place, pairs[i][0], pairs[i][1]);
    }
    leave_place(&place);
}

TEST(resizable_meminfo_stays_within_limit)
{
    place_t place = enter_place(SCOPE);
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = place.policy};
    memrt_meminfo_t *mi = NULL;
    set_room(&place, 1000);
    ck_assert_int_eq(api->resizable_new(400, &options, &mi), MEMRT_OK);
    ck_assert_ptr_null(api->resizable_realloc(mi, 1001));
    ck_assert_ptr_nonnull(api->resizable_realloc(mi, 1000));
    ck_assert_ptr_null(alloc(&place, 1));
    api->release(mi);
    leave_place(&place);
}

TEST_EACH(failed_allocation_leaves_its_room, SIZES)
{
    place_t place = enter_place(SCOPE);
    size_t size = sizes[index];
    set_room(&place, size);
    release(&place, alloc(&place, size), size); /* the thread has its counters from now on */
    memrt_failure_plan_t plan = {.struct_size = sizeof(plan), .nth = 1, .every = 1};
    ck_assert_int_eq(api->fail_allocations(&plan), MEMRT_OK);
    ck_assert_ptr_null(alloc(&place, size));
    ck_assert_int_eq(api->fail_allocations(NULL), MEMRT_OK);
    void *block = alloc(&place, size);
    ck_assert_ptr_nonnull(block);
    ck_assert_ptr_null(alloc(&place, 1));
    release(&place, block, size);
    leave_place(&place);
}

TEST(outer_limit_holds_for_inner_scopes_with_higher_limits)
{
    place_t place = enter_place(OUTER_SCOPE);
    ck_assert_int_eq(api->limit_set(NULL, place.scope, 10 * MIB), MEMRT_OK);
    set_room(&place, MIB);
    ck_assert_ptr_null(alloc(&place, MIB + 1));
    ck_assert_int_eq(api->scope_enter(place.outer, NULL), MEMRT_OK);
    void *outside = alloc(&place, MIB / 2);
    ck_assert_int_eq(api->scope_enter(place.scope, NULL), MEMRT_OK);
    void *inside = alloc(&place, MIB / 2);
    ck_assert_ptr_nonnull(outside);
    ck_assert_ptr_nonnull(inside);
    ck_assert_ptr_null(alloc(&place, 1));
    release(&place, outside, MIB / 2);
    release(&place, inside, MIB / 2);
    leave_place(&place);
}

TEST(limit_below_live_bytes_refuses_until_blocks_are_freed)
{
    place_t place = enter_place(POLICY);
    void *first = alloc(&place, MIB), *second = alloc(&place, MIB);
    set_room(&place, MIB + 100);
    ck_assert_ptr_null(alloc(&place, 1));
    release(&place, first, MIB);
    void *small = alloc(&place, 100);
    ck_assert_ptr_nonnull(small);
    ck_assert_ptr_null(alloc(&place, 1));
    set_room(&place, MEMRT_NO_LIMIT);
    first = alloc(&place, 5 * MIB);
    ck_assert_ptr_nonnull(first);
    release(&place, first, 5 * MIB);
    release(&place, second, MIB);
    release(&place, small, 100);
    leave_place(&place);
}

TEST(limit_of_scope_ends_with_last_reference)
{
    place_t place = enter_place(SCOPE);
    set_room(&place, 10);
    leave_place(&place);
    place = enter_place(SCOPE);
    set_room(&place, 10);
    api->scope_acquire(place.scope);
    api->scope_release(place.scope);
    ck_assert_uint_eq(read_limit(&place).limit, 10);
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(place.scope);
    ck_assert_int_eq(api->scope_open(place.outer, "inner", &place.scope), MEMRT_OK);
    place.limited_scope = place.scope;
    ck_assert(read_limit(&place).limit == MEMRT_NO_LIMIT);
    leave_place(&place);
}

TEST(limit_of_outer_scope_lasts_while_an_inner_scope_is_held)
{
    place_t place = enter_place(OUTER_SCOPE);
    set_room(&place, 10);
    api->scope_release(place.outer);
    ck_assert_ptr_null(alloc(&place, 11));
    ck_assert_int_eq(api->scope_enter(NULL, NULL), MEMRT_OK);
    api->scope_release(place.scope);
    ck_assert_int_eq(api->scope_open(NULL, "outer", &place.outer), MEMRT_OK);
    ck_assert(read_limit(&place).limit == MEMRT_NO_LIMIT);
    ck_assert_int_eq(api->scope_open(place.outer, "inner", &place.scope), MEMRT_OK);
    leave_place(&place);
}

TEST(refusal_counts_as_failed_and_names_the_limit)
{
    static const char *const names[PLACES] = {
        "limit of the process: ", "limit of policy 'limited': ", "limit of scope 'outer/inner': ",
        "limit of scope 'outer': "};
    for (int where = PROCESS; where < PLACES; where++) {
        place_t place = enter_place(where);
        memrt_stats_t stats = {.struct_size = sizeof(stats)};
        char text[4000];
        set_room(&place, 8 * MIB);
        void *block = alloc(&place, 5 * MIB);
        ck_assert_ptr_null(alloc(&place, 4 * MIB));
        ck_assert_int_eq(api->stats_read(place.policy, &stats), MEMRT_OK);
        ck_assert_uint_eq(stats.failed, 1);
        ck_assert_uint_eq(stats.peak, 5 * MIB);
        (void)api->explain_shortage(place.policy, 4 * MIB, text, sizeof(text));
        ck_assert_ptr_nonnull(strstr(text, names[where]));
        memrt_policy_t *inside;
        ck_assert_int_eq(api->scope_policy(place.scope, place.policy, &inside), MEMRT_OK);
        (void)api->explain_shortage(inside, 4 * MIB, text, sizeof(text));
        ck_assert_ptr_nonnull(strstr(text, names[where]));
        api->policy_release(inside);
        release(&place, block, 5 * MIB);
        leave_place(&place);
    }
}

/* Threads: `counted` is at most the live bytes at each moment, because it rises after an allocation
 * and falls before a free. */

typedef struct shared {
    place_t place;
    size_t counted, room, refused;
} shared_t;

enum { THREADS = 8, HELD = 40 };

static void count(shared_t *shared, size_t size)
{
    size_t now = memrt__fetch_add_relaxed(&shared->counted, size) + size;
    REQUIRE(now <= shared->room);
}

static void use_limit(size_t index, void *context)
{
    shared_t *shared = context;
    chance_t chance = chance_from(suite_number("STRESS_SEED", 1) + (unsigned)index);
    struct {
        void *data;
        size_t size;
    } held[HELD] = {{NULL, 0}};
    REQUIRE(api->scope_enter(shared->place.scope, NULL) == MEMRT_OK);
    for (size_t step = 0; step < (memrt__options.check ? 2000u : 8000u); step++) {
        size_t at = chance_below(&chance, HELD);
        if (held[at].data != NULL) {
            memrt__fetch_add_relaxed(&shared->counted, (size_t)0 - held[at].size);
            release(&shared->place, held[at].data, held[at].size);
            held[at].data = NULL;
        } else {
            size_t size = 1 + chance_below(&chance, (size_t)1 << (4 + chance_below(&chance, 17)));
            held[at].data = alloc(&shared->place, size);
            held[at].size = size;
            if (held[at].data == NULL) {
                memrt__fetch_add_relaxed(&shared->refused, 1);
            } else {
                count(shared, size);
            }
        }
    }
    for (size_t at = 0; at < HELD; at++) {
        if (held[at].data != NULL) {
            memrt__fetch_add_relaxed(&shared->counted, (size_t)0 - held[at].size);
            release(&shared->place, held[at].data, held[at].size);
        }
    }
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
}

TEST_EACH(threads_never_exceed_limit, PLACES)
{
    shared_t shared = {.place = enter_place(index), .room = 3 * MIB};
    set_room(&shared.place, shared.room);
    crew_run(THREADS, use_limit, &shared);
    ck_assert_uint_ne(shared.refused, 0);
    ck_assert_uint_eq(shared.counted, 0);
    void *block = alloc(&shared.place, shared.room); /* ended threads keep nothing */
    ck_assert_ptr_nonnull(block);
    release(&shared.place, block, shared.room);
    leave_place(&shared.place);
}

/// Thread 0 fills the limit and waits. Thread 1 frees the blocks and allocates as much.
typedef struct relay {
    place_t place;
    void *blocks[64];
    size_t turn;
} relay_t;

static void await_turn(relay_t *relay, size_t turn)
{
    while (memrt__load_acquire(&relay->turn) != turn) {
        usleep(100);
    }
}

static void relay_blocks(size_t index, void *context)
{
    relay_t *relay = context;
    REQUIRE(api->scope_enter(relay->place.scope, NULL) == MEMRT_OK);
    for (size_t turn = index; turn < 20; turn += 2) {
        await_turn(relay, turn);
        for (size_t i = 0; i < 64; i++) {
            if (relay->blocks[i] != NULL) {
                release(&relay->place, relay->blocks[i], 64 << 10);
            }
            relay->blocks[i] = alloc(&relay->place, 64 << 10);
            REQUIRE(relay->blocks[i] != NULL);
        }
        memrt__store_release(&relay->turn, turn + 1);
    }
    REQUIRE(api->scope_enter(NULL, NULL) == MEMRT_OK);
}

TEST_EACH(thread_reuses_room_that_waiting_thread_left, PLACES)
{
    relay_t relay = {.place = enter_place(index)};
    set_room(&relay.place, 64 * (64 << 10));
    crew_run(2, relay_blocks, &relay);
    for (size_t i = 0; i < 64; i++) {
        release(&relay.place, relay.blocks[i], 64 << 10);
    }
    leave_place(&relay.place);
}

TEST(cached_memory_is_released_within_limit_of_process)
{
    place_t place = enter_place(PROCESS);
    set_room(&place, 64 * MIB);
    void *large = alloc(&place, 48 * MIB);
    memset(large, 1, 48 * MIB);
    release(&place, large, 48 * MIB);
    void *blocks[24];
    for (size_t i = 0; i < 24; i++) {
        blocks[i] = alloc(&place, 2 * MIB);
        ck_assert_ptr_nonnull(blocks[i]);
        memrt_stats_t stats = {.struct_size = sizeof(stats)};
        ck_assert_int_eq(api->stats_read(NULL, &stats), MEMRT_OK);
        ck_assert_uint_le(stats.live + stats.cached, place.before + 65 * MIB);
    }
    for (size_t i = 0; i < 24; i++) {
        release(&place, blocks[i], 2 * MIB);
    }
    leave_place(&place);
}

static void use_limit_in_child(void *context)
{
    place_t *place = context;
    void *block = alloc(place, MIB / 2);
    REQUIRE(block != NULL && alloc(place, 1) == NULL);
    release(place, block, MIB / 2);
    REQUIRE(alloc(place, MIB / 2) != NULL);
}

TEST_EACH(limit_holds_in_forked_child, PLACES)
{
    place_t place = enter_place(index);
    set_room(&place, MIB);
    void *block = alloc(&place, MIB / 2);
    child_expect_success(use_limit_in_child, &place);
    release(&place, block, MIB / 2);
    leave_place(&place);
}

TEST(invalid_limit_calls_are_refused)
{
    place_t place = enter_place(SCOPE);
    memrt_limit_t limit = {0};
    ck_assert_int_eq(api->limit_set(place.policy, place.scope, 1), MEMRT_EINVAL);
    ck_assert_int_eq(api->limit_read(place.policy, NULL, &limit), MEMRT_EINVAL);
    limit.struct_size = sizeof(limit);
    ck_assert_int_eq(api->limit_read(place.policy, place.scope, &limit), MEMRT_EINVAL);
    ck_assert_int_eq(api->limit_read(NULL, NULL, &limit), MEMRT_OK);
    ck_assert(limit.limit == MEMRT_NO_LIMIT);
    leave_place(&place);
}

TEST(shared_counters_stay_within_limit)
{
    memrt__level_t level = {0};
    memrt__shard_t shared = MEMRT__SHARED_SHARD;
    memrt__account_t account = {.shared = &shared, .policy = &level};
    ck_assert(memrt__promise_shared(&account, 5));
    ck_assert_uint_eq(level.promised, 0);
    memrt__level_set_limit(&level, 10);
    ck_assert(memrt__promise_shared(&account, 6));
    ck_assert(!memrt__promise_shared(&account, 5));
    memrt__account_add_shared(&account, 6);
    memrt__promise_end_shared(&account, 1); /* nothing is promised any more */
    ck_assert_uint_eq(level.flushed, 6);
    ck_assert_uint_eq(level.promised, 0);
    memrt__level_set_limit(&level, SIZE_MAX);
}

TEST(frees_of_other_threads_may_be_reported_first)
{
    memrt__level_t level = {.flushed = (size_t)-5};
    memrt__level_set_limit(&level, 10);
    ck_assert_uint_eq(memrt__level_room(&level), 10);
    ck_assert(memrt__level_promise(&level, 3));
    memrt__level_set_limit(&level, SIZE_MAX);
}

TEST(option_limits_the_process)
{
    static const char *const texts[] = {"80%", "auto"};
    place_t place = enter_place(PROCESS);
    ck_assert_int_eq(api->option_set("limit", "64M", NULL, 0), MEMRT_OK);
    ck_assert_uint_eq(read_limit(&place).limit, 64 * MIB);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(api->option_set("limit", texts[i], NULL, 0), MEMRT_OK);
        uint64_t limit = read_limit(&place).limit;
        ck_assert(limit > MIB &&
                  limit < (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)getpagesize());
    }
    ck_assert_int_eq(api->option_set("limit", "none", NULL, 0), MEMRT_OK);
    ck_assert(read_limit(&place).limit == MEMRT_NO_LIMIT);
    leave_place(&place);
}
