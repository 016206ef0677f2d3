#include "support/suite.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/observe/live_set.h"
#include "runtime/observe/live_table.h"
#include "runtime/os/lock.h"
#include "support/crew.h"

/* Keys without a MemInfo. The fixture reports keys that a test did not remove. */
#define KEY(i) ((uintptr_t)0x1000 + (uintptr_t)(i) * 64)
#define MANY 5000

static const memrt__live_details_t details = {.data = 0x5000, .size = 77, .policy = "of details"};

static void insert_all(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert(memrt__live_insert(KEY(i), 0, 1));
    }
}

static void remove_all(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert(memrt__live_remove(KEY(i), &details));
    }
}

static void copy_entry(const memrt__live_entry_t *entry, void *context)
{
    *(memrt__live_entry_t *)context = *entry;
}

static memrt__live_entry_t read_entry(uintptr_t key)
{
    memrt__live_entry_t entry;
    ck_assert(memrt__live_visit(key, copy_entry, &entry));
    return entry;
}

TEST(key_is_in_live_set_between_insert_and_remove)
{
    ck_assert(!memrt__live_contains(KEY(0)));
    insert_all(1);
    ck_assert(memrt__live_contains(KEY(0)));
    ck_assert(memrt__live_remove(KEY(0), &details));
    ck_assert(!memrt__live_contains(KEY(0)));
    ck_assert(!memrt__live_remove(KEY(0), &details));
}

TEST(live_set_keeps_keys_through_growth_and_removal)
{
    size_t before = memrt__live_count();
    insert_all(MANY);
    ck_assert_uint_eq(memrt__live_count(), before + MANY);
    for (size_t i = 0; i < MANY; i += 3) {
        ck_assert(memrt__live_remove(KEY(i), &details));
    }
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(memrt__live_contains(KEY(i)), i % 3 != 0);
    }
    for (size_t i = MANY; i-- > 0;) {
        ck_assert_int_eq(memrt__live_remove(KEY(i), &details), i % 3 != 0);
    }
    ck_assert_uint_eq(memrt__live_count(), before);
}

TEST(inserted_keys_get_increasing_ids)
{
    insert_all(100);
    for (size_t i = 1; i < 100; i++) {
        memrt__live_entry_t older = read_entry(KEY(i - 1)), younger = read_entry(KEY(i));
        ck_assert_uint_lt(older.id, younger.id);
        ck_assert(older.allocated <= younger.allocated);
    }
    remove_all(100);
}

TEST(key_name_can_be_set_changed_and_removed)
{
    insert_all(1);
    ck_assert(memrt__live_set_name(KEY(0), "first"));
    ck_assert_str_eq(read_entry(KEY(0)).name, "first");
    ck_assert(memrt__live_set_name(KEY(0), "second"));
    ck_assert_str_eq(read_entry(KEY(0)).name, "second");
    ck_assert(memrt__live_set_name(KEY(0), NULL));
    ck_assert_ptr_null(read_entry(KEY(0)).name);
    remove_all(1);
}

TEST(naming_unknown_key_adds_key)
{
    ck_assert(memrt__live_set_name(KEY(0), "new"));
    ck_assert_str_eq(read_entry(KEY(0)).name, "new");
    ck_assert(memrt__live_remove(KEY(0), &details));
    ck_assert(!memrt__live_contains(KEY(0)));
}

TEST(failed_naming_keeps_old_name_and_adds_no_key)
{
    insert_all(1);
    ck_assert(memrt__live_set_name(KEY(0), "kept"));
    suite_fail_request(1);
    ck_assert(!memrt__live_set_name(KEY(0), "lost"));
    suite_fail_request(1);
    ck_assert(!memrt__live_set_name(KEY(1), "lost"));
    suite_fail_request(0);
    ck_assert_str_eq(read_entry(KEY(0)).name, "kept");
    ck_assert(!memrt__live_contains(KEY(1)));
    remove_all(1);
}

TEST(failed_insert_leaves_live_set_unchanged)
{
    size_t before = memrt__live_count(), inserted = 0;
    suite_fail_all_requests();
    while (memrt__live_insert(KEY(inserted), 0, 1)) {
        inserted++;
    }
    suite_allow_requests();
    ck_assert(!memrt__live_contains(KEY(inserted)));
    ck_assert_uint_eq(memrt__live_count(), before + inserted);
    ck_assert(memrt__live_insert(KEY(inserted), 0, 1));
    remove_all(inserted + 1);
}

TEST(removed_key_is_remembered_with_name_data_and_policy)
{
    memrt__live_removed_t removed;
    ck_assert(!memrt__live_find_removed(KEY(0), &removed));
    insert_all(2);
    ck_assert(memrt__live_set_name(KEY(0), "gone"));
    remove_all(2);
    ck_assert(memrt__live_find_removed(KEY(0), &removed));
    ck_assert_str_eq(removed.name, "gone");
    ck_assert_str_eq(removed.policy, details.policy);
    ck_assert_uint_eq(removed.data, details.data);
    ck_assert_uint_eq(removed.size, details.size);
    ck_assert(memrt__live_find_removed(KEY(1), &removed));
    ck_assert_str_eq(removed.name, "");
}

TEST(removed_key_is_found_by_address_range)
{
    memrt__live_removed_t removed;
    uintptr_t key = KEY(2 * MANY); /* a key that no other test uses */
    ck_assert(!memrt__live_find_removed_within(key, 1, &removed));
    ck_assert(memrt__live_insert(key, 0, 1));
    ck_assert(memrt__live_remove(key, &details));
    ck_assert(memrt__live_find_removed_within(key - 10, 11, &removed));
    ck_assert_uint_eq(removed.key, key);
    ck_assert(!memrt__live_find_removed_within(key - 10, 10, &removed));
    ck_assert(!memrt__live_find_removed_within(key + 1, 10, &removed));
}

TEST(each_removed_key_is_found_right_after_removal)
{
    memrt__live_removed_t removed;
    for (size_t i = 0; i < 1000; i++) { /* enough keys for each partition of the set */
        uintptr_t key = KEY(3 * MANY + i);
        ck_assert(memrt__live_insert(key, 0, 1));
        ck_assert(memrt__live_remove(key, &details));
        ck_assert(memrt__live_find_removed_within(key, 1, &removed));
        ck_assert_uint_eq(removed.key, key);
    }
}

TEST(last_removal_of_repeated_key_is_remembered)
{
    memrt__live_removed_t removed;
    uintptr_t key = KEY(2 * MANY + 1);
    for (size_t i = 1; i <= 300; i++) {
        memrt__live_details_t last = {.data = 0x5000, .size = i, .policy = "p"};
        ck_assert(memrt__live_insert(key, 0, 1));
        ck_assert(memrt__live_remove(key, &last));
        ck_assert(memrt__live_find_removed_within(key, 1, &removed));
        ck_assert_uint_eq(removed.size, i);
    }
}

TEST(removed_key_is_forgotten_after_many_removals)
{
    memrt__live_removed_t removed;
    ck_assert(memrt__live_set_name(KEY(0), "gone"));
    ck_assert(memrt__live_remove(KEY(0), &details));
    for (size_t i = 1; i < MANY; i++) {
        ck_assert(memrt__live_insert(KEY(i), 0, 1));
        ck_assert(memrt__live_remove(KEY(i), &details));
    }
    ck_assert(!memrt__live_find_removed(KEY(0), &removed));
}

TEST(replacing_key_inherits_id_time_thread_and_name)
{
    ck_assert(memrt__live_set_name(KEY(0), "heirloom"));
    memrt__live_entry_t old = read_entry(KEY(0));
    ck_assert(memrt__live_insert(KEY(1), 0, 1));
    memrt__live_move(KEY(0), KEY(1));
    ck_assert(memrt__live_remove(KEY(0), &details));
    memrt__live_entry_t heir = read_entry(KEY(1));
    ck_assert_uint_eq(heir.id, old.id);
    ck_assert_uint_eq(heir.allocated, old.allocated);
    ck_assert_uint_eq(heir.thread, old.thread);
    ck_assert_str_eq(heir.name, "heirloom");
    ck_assert(memrt__live_remove(KEY(1), &details));
}

#if defined(__x86_64__) /* single steps inside of a lock may not end on other processors */
static void record_entry(const memrt__live_entry_t *entry, void *context)
{
    *(const memrt__live_entry_t **)context = entry;
}

/// Read the entry at an address in a traced child.
static memrt__live_entry_t peek_entry(pid_t child, const memrt__live_entry_t *at)
{
    memrt__live_entry_t entry;
    for (size_t i = 0; i < sizeof(entry) / sizeof(long); i++) {
        long word = ptrace(PTRACE_PEEKDATA, child, (const long *)at + i, NULL);
        memcpy((char *)&entry + i * sizeof(word), &word, sizeof(word));
    }
    return entry;
}

static bool has_identity_of(const memrt__live_entry_t *entry, const memrt__live_entry_t *other)
{
    return entry->id == other->id && entry->allocated == other->allocated &&
           entry->thread == other->thread && entry->site == other->site &&
           entry->weight == other->weight && entry->name == other->name;
}

static void inherit_in_steps(void)
{
    REQUIRE(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    raise(SIGSTOP);
    memrt__live_move(KEY(0), KEY(1));
    raise(SIGSTOP); /* the exit has many steps in a build that counts branches */
    _exit(1);
}

/// A fork may copy the memory between any two instructions, so the test checks every step.
TEST(entry_of_heir_is_whole_at_each_step)
{
    const memrt__live_entry_t *place;
    ck_assert(memrt__live_insert(KEY(0), 1, 1));
    ck_assert(memrt__live_insert(KEY(1), 2, 2));
    ck_assert(memrt__live_set_name(KEY(0), "heirloom"));
    memrt__live_entry_t from = read_entry(KEY(0)), to = read_entry(KEY(1)), now = to;
    ck_assert(memrt__live_visit(KEY(1), record_entry, &place));
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        inherit_in_steps();
    }
    int status = 0;
    size_t mixed = 0, stops = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        now = peek_entry(child, place);
        mixed += now.key != 0 && !has_identity_of(&now, &from) && !has_identity_of(&now, &to);
        stops += WSTOPSIG(status) == SIGSTOP;
        if (stops == 2) {
            kill(child, SIGKILL);
        } else {
            ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
        }
    }
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_uint_eq(mixed, 0);
    ck_assert_uint_eq(now.key, KEY(1));
    ck_assert(has_identity_of(&now, &from));
    remove_all(2);
}
#endif

static void count_own_entries(const memrt__live_entry_t *entry, void *context)
{
    size_t *seen = context;
    if (entry->key >= KEY(0) && entry->key < KEY(MANY)) {
        seen[(entry->key - KEY(0)) / 64]++;
    }
}

TEST(visit_all_sees_each_key_once)
{
    static size_t seen[MANY];
    memset(seen, 0, sizeof(seen));
    insert_all(MANY);
    memrt__live_visit_all(count_own_entries, seen);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(seen[i], 1);
    }
    remove_all(MANY);
    ck_assert(!memrt__live_visit(KEY(0), copy_entry, NULL));
}

#define PARTITIONS (MEMRT__RANK_LIVE_LAST - MEMRT__RANK_LIVE + 1)

static void count_in_partition(const memrt__live_entry_t *entry, void *context)
{
    ((size_t *)context)[memrt__live_hash(entry->key) / (SIZE_MAX / PARTITIONS + 1)]++;
}

/* A table is at most half full, and the capacity is a power of two. */
TEST(bytes_of_the_set_cover_the_tables_of_all_partitions)
{
    size_t counts[PARTITIONS] = {0}, slots = 0;
    insert_all(MANY);
    memrt__live_visit_all(count_in_partition, counts);
    for (size_t i = 0; i < PARTITIONS; i++) {
        size_t capacity = 1;
        while (capacity < 2 * counts[i]) {
            capacity *= 2;
        }
        slots += capacity;
    }
    ck_assert_uint_ge(memrt__live_bytes(), slots * sizeof(memrt__live_entry_t));
    remove_all(MANY);
}

/// Insert, read and remove the thread's own keys, while all threads visit the whole set.
static void insert_and_remove(size_t index, void *context)
{
    (void)context;
    for (size_t round = 0; round < 30; round++) {
        for (size_t i = 0; i < 100; i++) {
            REQUIRE(memrt__live_insert(KEY(index * 100 + i), 0, 1));
        }
        REQUIRE(memrt__live_set_name(KEY(index * 100), "mine"));
        REQUIRE(memrt__live_count() >= 100);
        for (size_t i = 0; i < 100; i++) {
            REQUIRE(memrt__live_remove(KEY(index * 100 + i), &details));
        }
    }
}

TEST(threads_keep_own_keys_during_concurrent_changes)
{
    crew_run(4, insert_and_remove, NULL);
}

static void name_same_block(size_t index, void *context)
{
    (void)context;
    REQUIRE(memrt__live_set_name(KEY(0), index == 0 ? "zero" : "other"));
}

TEST(concurrent_naming_adds_key_once)
{
    for (int round = 0; round < 300; round++) {
        size_t before = memrt__live_count();
        crew_run(3, name_same_block, NULL);
        ck_assert_uint_eq(memrt__live_count(), before + 1);
        ck_assert(memrt__live_remove(KEY(0), &details));
        ck_assert(!memrt__live_contains(KEY(0)));
    }
}
