#include "support/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/pattern.h"
#include "runtime/base/atomics.h"
#include "runtime/meminfo/meminfo.h"
#include "runtime/stats/tally.h"
#include "support/books.h"
#include "support/child.h"
#include "support/crew.h"

typedef struct call {
    size_t count;
    void *data, *info;
    size_t size;
    memrt_meminfo_t *other; ///< released by the destructor
} call_t;

static void record_call(void *data, size_t size, void *info)
{
    call_t *call = info;
    call->count++;
    call->data = data;
    call->size = size;
    call->info = info;
    if (call->other != NULL) {
        api->release(call->other);
    }
}

static memrt_meminfo_t *create_with_dtor(size_t size, call_t *call)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = record_call, .dtor_info = call};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(size, &options, &mi), MEMRT_OK);
    return mi;
}

TEST(new_meminfo_has_refcount_1_and_requested_size)
{
    memrt_meminfo_t *mi = api->allocate(100);
    ck_assert_uint_eq(api->refcount(mi), 1);
    ck_assert_uint_eq(api->size(mi), 100);
    ck_assert_ptr_null(api->external_allocator(mi));
    ck_assert_int_eq(api->readonly(mi), 0);
    ck_assert_ptr_null(api->dtor_info(mi));
    ck_assert_ptr_eq(api->policy_of(mi), api->policy_default());
    memset(api->get_data(mi), 1, 100);
    api->release(mi);
}

TEST(zero_size_meminfo_has_data_address)
{
    memrt_meminfo_t *mi = api->allocate(0);
    ck_assert_ptr_nonnull(api->get_data(mi));
    ck_assert_uint_eq(api->size(mi), 0);
    api->release(mi);
}

TEST(last_release_runs_destructor_with_data_size_and_info)
{
    call_t call = {0};
    memrt_meminfo_t *mi = create_with_dtor(300, &call);
    void *data = api->get_data(mi);
    ck_assert_ptr_eq(api->dtor_info(mi), &call);
    api->acquire(mi);
    api->release(mi);
    ck_assert_uint_eq(call.count, 0);
    api->release(mi);
    ck_assert_uint_eq(call.count, 1);
    ck_assert_ptr_eq(call.data, data);
    ck_assert_uint_eq(call.size, 300);
    ck_assert_ptr_eq(call.info, &call);
}

TEST(call_dtor_runs_destructor_after_manual_countdown)
{
    call_t call = {0};
    memrt_meminfo_t *mi = create_with_dtor(10, &call);
    mi->refct++;
    mi->refct -= 2;
    api->call_dtor(mi);
    ck_assert_uint_eq(call.count, 1);
}

TEST(options_set_zeroed_readonly_and_name)
{
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .zeroed = 1, .readonly = 1, .name = "four"};
    char name[MEMRT_NAME_MAX + 1];
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(5000, &options, &mi), MEMRT_OK);
    ck_assert(pattern_is_zero(api->get_data(mi), 5000));
    ck_assert_int_ne(api->readonly(mi), 0);
    api->get_name(mi, name);
    ck_assert_str_eq(name, "four");
    api->release(mi);
}

static const size_t zeroed_sizes[] = {1, 1000, 16 << 10, (16 << 10) + 1, 3000000};

TEST_EACH(zeroed_meminfo_is_zero_after_previous_use, sizeof(zeroed_sizes) / sizeof(zeroed_sizes[0]))
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .zeroed = 1};
    for (int round = 0; round < 2; round++) {
        memrt_meminfo_t *mi;
        ck_assert_int_eq(api->meminfo_new(zeroed_sizes[index], &options, &mi), MEMRT_OK);
        ck_assert(pattern_is_zero(api->get_data(mi), zeroed_sizes[index]));
        memset(api->get_data(mi), 0xFF, zeroed_sizes[index]);
        api->release(mi);
    }
}

static const size_t bad_alignments[] = {3, 48, (size_t)1 << 31, (size_t)PTRDIFF_MAX + 1, SIZE_MAX};

TEST_EACH(invalid_alignment_is_refused, sizeof(bad_alignments) / sizeof(bad_alignments[0]))
{
    memrt_new_options_t options = {.struct_size = sizeof(options),
                                   .alignment = bad_alignments[index]};
    memrt_meminfo_t *mi = (memrt_meminfo_t *)&options;
    books_t before = books_now();
    ck_assert_int_eq(api->meminfo_new(10, &options, &mi), MEMRT_EINVAL);
    ck_assert_int_eq(api->resizable_new(10, &options, &mi), MEMRT_EINVAL);
    ck_assert_ptr_eq(mi, &options);
    books_expect_unchanged(&before);
}

TEST(largest_alignment_is_honored)
{
    memrt_new_options_t options = {.struct_size = sizeof(options), .alignment = MEMRT_ALIGN_MAX};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(10, &options, &mi), MEMRT_OK);
    ck_assert_uint_eq((uintptr_t)api->get_data(mi) % MEMRT_ALIGN_MAX, 0);
    api->release(mi);
}

static const size_t too_large[] = {(size_t)PTRDIFF_MAX - 4096,
                                   (size_t)PTRDIFF_MAX,
                                   SIZE_MAX - 4160,
                                   SIZE_MAX - 64,
                                   SIZE_MAX - 63,
                                   SIZE_MAX};

TEST_EACH(overflowing_size_is_out_of_memory_and_counts_as_failed,
          sizeof(too_large) / sizeof(too_large[0]))
{
    size_t size = too_large[index];
    memrt_meminfo_t *mi = NULL;
    books_t before = books_now();
    ck_assert_ptr_null(api->allocate(size));
    ck_assert_int_eq(api->meminfo_new(size, NULL, &mi), MEMRT_ENOMEM);
    ck_assert_int_eq(api->resizable_new(size, NULL, &mi), MEMRT_ENOMEM);
    ck_assert_ptr_null(mi);
    books_expect_unchanged(&before);
    ck_assert_uint_eq(stats_of(NULL).failed, before.stats.failed + 3);
}

TEST(too_short_options_are_refused_and_missing_fields_ignored)
{
    memrt_new_options_t options = {.struct_size = 2};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(10, &options, &mi), MEMRT_EINVAL);
    options.struct_size = offsetof(memrt_new_options_t, alignment);
    options.alignment = 3; /* beyond the struct_size of the caller */
    ck_assert_int_eq(api->meminfo_new(10, &options, &mi), MEMRT_OK);
    api->release(mi);
}

TEST(adopted_buffer_keeps_size_and_reaches_destructor)
{
    static char foreign[1234];
    call_t call = {0};
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = record_call, .dtor_info = &call};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_adopt(foreign, sizeof(foreign), &options, &mi), MEMRT_OK);
    ck_assert_ptr_eq(api->get_data(mi), foreign);
    ck_assert_uint_eq(api->size(mi), sizeof(foreign));
    api->release(mi);
    ck_assert_uint_eq(call.count, 1);
    ck_assert_ptr_eq(call.data, foreign);
    ck_assert_uint_eq(call.size, sizeof(foreign));
}

TEST(adopt_refuses_unsuitable_options_without_taking_memory)
{
    static char foreign[64];
    memrt_external_allocator_t external = {0};
    call_t call = {0};
    memrt_new_options_t good = {
        .struct_size = sizeof(good), .dtor = record_call, .dtor_info = &call};
    memrt_new_options_t bad[3] = {good, good, good};
    bad[0].zeroed = 1;
    bad[1].alignment = 64;
    bad[2].external = &external;
    memrt_meminfo_t *mi = NULL;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(api->meminfo_adopt(foreign, 64, &bad[i], &mi), MEMRT_EINVAL);
    }
    ck_assert_int_eq(api->meminfo_adopt(NULL, 1, &good, &mi), MEMRT_EINVAL);
    ck_assert_ptr_null(mi);
    ck_assert_uint_eq(call.count, 0);
    ck_assert_int_eq(api->meminfo_adopt(NULL, 0, NULL, &mi), MEMRT_OK);
    api->release(mi);
}

static void *freed;

static void record_free(void *data)
{
    freed = data;
}

TEST(managed_memory_is_passed_to_destructor)
{
    static char foreign[10];
    memrt_meminfo_t *mi = api->manage_memory(foreign, record_free);
    freed = NULL;
    ck_assert_ptr_eq(api->get_data(mi), foreign);
    api->release(mi);
    ck_assert_ptr_eq(freed, foreign);
    mi = api->manage_memory(foreign, NULL);
    api->release(mi);
}

typedef struct external {
    size_t mallocs, frees, size;
    void *given; ///< result of malloc; free must get the same pointer
    size_t off;  ///< misalignment in bytes
    bool refuse;
} external_t;

static void *external_malloc(size_t size, void *opaque)
{
    external_t *self = opaque;
    if (self->refuse) {
        return NULL;
    }
    self->mallocs++;
    self->size = size;
    char *memory = malloc(size + 64);
    self->given = memory + self->off;
    return self->given;
}

static void external_free(void *ptr, void *opaque)
{
    external_t *self = opaque;
    REQUIRE(ptr == self->given);
    self->frees++;
    free((char *)ptr - self->off);
}

static memrt_external_allocator_t create_external(external_t *self)
{
    return (memrt_external_allocator_t){external_malloc, NULL, external_free, self};
}

TEST(external_memory_is_aligned_and_freed_at_same_address)
{
    for (size_t off = 0; off < 64; off += 4) {
        external_t self = {.off = off};
        memrt_external_allocator_t table = create_external(&self);
        for (size_t align = 1; align <= 4096; align *= 8) {
            memrt_new_options_t options = {.struct_size = sizeof(options),
                                           .alignment = align,
                                           .zeroed = 1,
                                           .external = &table};
            memrt_meminfo_t *mi;
            ck_assert_int_eq(api->meminfo_new(1000, &options, &mi), MEMRT_OK);
            ck_assert_uint_eq((uintptr_t)api->get_data(mi) % align, 0);
            ck_assert(pattern_is_zero(api->get_data(mi), 1000));
            ck_assert_ptr_eq(api->external_allocator(mi), &table);
            memset(api->get_data(mi), 0xFF, 1000);
            char *end = (char *)api->get_data(mi) + 1000;
            ck_assert(end <= (char *)self.given + self.size);
            ck_assert((char *)mi >= (char *)self.given);
            api->release(mi);
        }
        ck_assert_uint_eq(self.mallocs, self.frees);
    }
}

TEST(external_allocator_failure_or_overflow_returns_null)
{
    external_t self = {.refuse = true};
    memrt_external_allocator_t table = create_external(&self);
    books_t before = books_now();
    ck_assert_ptr_null(api->allocate_external(100, &table));
    self.refuse = false;
    for (size_t less = 0; less < 300; less++) {
        ck_assert_ptr_null(api->allocate_external(SIZE_MAX - less, &table));
    }
    ck_assert_uint_eq(self.mallocs, 0);
    books_expect_unchanged(&before);
    memrt_meminfo_t *mi = api->allocate_external(100, &table);
    ck_assert_uint_eq((uintptr_t)api->get_data(mi) % 64, 0);
    api->release(mi);
    ck_assert_uint_eq(self.frees, 1);
}

TEST(null_external_allocator_uses_memrt_allocator)
{
    memrt_meminfo_t *mi = api->allocate_external(100, NULL);
    ck_assert_ptr_null(api->external_allocator(mi));
    api->release(mi);
}

TEST(name_can_be_set_changed_and_removed)
{
    char name[MEMRT_NAME_MAX + 1];
    memrt_meminfo_t *mi = api->allocate(10);
    api->get_name(mi, name);
    ck_assert_str_eq(name, "");
    ck_assert_int_eq(api->set_name(mi, NULL), MEMRT_OK);
    ck_assert_int_eq(api->set_name(mi, "first"), MEMRT_OK);
    ck_assert_int_eq(api->set_name(mi, "second"), MEMRT_OK);
    api->get_name(mi, name);
    ck_assert_str_eq(name, "second");
    ck_assert_int_eq(api->set_name(mi, ""), MEMRT_OK);
    api->get_name(mi, name);
    ck_assert_str_eq(name, "");
    api->release(mi);
}

TEST(name_up_to_limit_is_kept_and_longer_is_refused)
{
    char longest[MEMRT_NAME_MAX + 2], name[MEMRT_NAME_MAX + 1];
    memset(longest, 'x', sizeof(longest));
    longest[MEMRT_NAME_MAX + 1] = '\0';
    memrt_meminfo_t *mi = api->allocate(10);
    ck_assert_int_eq(api->set_name(mi, longest), MEMRT_EINVAL);
    memrt_new_options_t options = {.struct_size = sizeof(options), .name = longest};
    memrt_meminfo_t *refused = NULL;
    ck_assert_int_eq(api->meminfo_new(10, &options, &refused), MEMRT_EINVAL);
    ck_assert_ptr_null(refused);
    longest[MEMRT_NAME_MAX] = '\0';
    ck_assert_int_eq(api->set_name(mi, longest), MEMRT_OK);
    api->get_name(mi, name);
    ck_assert_str_eq(name, longest);
    api->release(mi);
}

TEST(dump_describes_meminfo_and_truncates_to_buffer)
{
    char line[300], cut[20];
    memrt_meminfo_t *mi = api->allocate(4321);
    ck_assert_int_eq(api->set_name(mi, "dumped"), MEMRT_OK);
    size_t needed = api->dump(mi, line, sizeof(line));
    ck_assert_uint_eq(needed, strlen(line));
    ck_assert_ptr_nonnull(strstr(line, "\"dumped\""));
    ck_assert_ptr_nonnull(strstr(line, "4321 bytes"));
    ck_assert_ptr_nonnull(strstr(line, "refcount 1, inline, policy default"));
    ck_assert_uint_eq(api->dump(mi, cut, sizeof(cut)), needed);
    ck_assert_uint_eq(strlen(cut), sizeof(cut) - 1);
    ck_assert_uint_eq(api->dump(mi, NULL, 0), needed);
    api->release(mi);
}

TEST(invalid_kind_has_text_unknown)
{
    ck_assert_str_eq(memrt__kind_text(MEMRT_KIND_BLOCK), "block");
    ck_assert_str_eq(memrt__kind_text(MEMRT_KIND_BLOCK + 1), "unknown");
    ck_assert_str_eq(memrt__kind_text(UINT32_MAX), "unknown");
}

static void use_everything(void *data, size_t size, void *info)
{
    (void)data, (void)size;
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    memrt_live_t *list;
    size_t count;
    memrt_meminfo_t *found;
    REQUIRE(api->stats_read(NULL, &stats) == MEMRT_OK && stats.live >= 100);
    REQUIRE(api->live(&list, &count) == MEMRT_OK);
    api->live_free(list);
    REQUIRE(api->find(data, &found) == MEMRT_ENOENT); /* a dying MemInfo is not found */
    memrt_meminfo_t *mi = api->allocate(1000);
    REQUIRE(mi != NULL && api->set_name(mi, "in a destructor") == MEMRT_OK);
    api->release(mi);
    *(void **)info = api->block_alloc(NULL, 10);
}

TEST(destructor_may_allocate_release_and_read_statistics)
{
    void *left = NULL;
    int was = api->tracking(1);
    memrt_new_options_t options = {
        .struct_size = sizeof(options), .dtor = use_everything, .dtor_info = &left};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_new(100, &options, &mi), MEMRT_OK);
    api->release(mi);
    ck_assert_ptr_nonnull(left);
    api->block_free(NULL, left, 10);
    api->tracking(was);
}

TEST(destructor_may_release_next_meminfo_in_long_chain)
{
    enum { LINKS = 1000 };
    static call_t calls[LINKS];
    memset(calls, 0, sizeof(calls));
    memrt_meminfo_t *last = NULL;
    for (size_t i = 0; i < LINKS; i++) {
        calls[i].other = last;
        last = create_with_dtor(10, &calls[i]);
    }
    api->release(last);
    for (size_t i = 0; i < LINKS; i++) {
        ck_assert_uint_eq(calls[i].count, 1);
    }
}

static void release_after_shutdown(void *context)
{
    call_t call = {0};
    (void)context;
    memrt_meminfo_t *mi = create_with_dtor(10, &call);
    books_t before = books_now();
    api->shutdown();
    api->shutdown();
    api->release(mi);
    REQUIRE(call.count == 0);
    REQUIRE(stats_of(NULL).free == before.stats.free + 1);
    mi = api->allocate(10);
    REQUIRE(mi != NULL);
    api->release(mi);
}

TEST(release_after_shutdown_frees_without_destructor)
{
    child_expect_success(release_after_shutdown, NULL);
}

TEST(try_acquire_succeeds_only_above_refcount_zero)
{
    memrt_meminfo_t *mi = api->allocate(10);
    ck_assert_int_ne(api->try_acquire(mi), 0);
    ck_assert_uint_eq(api->refcount(mi), 2);
    api->release(mi);
    mi->refct = 0;
    ck_assert_int_eq(api->try_acquire(mi), 0);
    ck_assert_uint_eq(api->refcount(mi), 0);
    api->call_dtor(mi);
}

#define CREW 4
#define ROUNDS 400

typedef struct last_release {
    memrt_meminfo_t *mi;
    size_t dtors;
} last_release_t;

static void expect_all_writes(void *data, size_t size, void *info)
{
    const size_t *words = data;
    for (size_t i = 0; i < size / sizeof(size_t); i++) {
        REQUIRE(words[i] == i + 1);
    }
    ((last_release_t *)info)->dtors++; /* not atomic: two destructors at once would be a race */
}

static void write_and_release(size_t index, void *context)
{
    const last_release_t *shared = context;
    size_t *words = api->get_data(shared->mi);
    words[index] = index + 1;
    api->acquire(shared->mi);
    api->release(shared->mi);
    api->release(shared->mi);
}

TEST(concurrent_last_release_runs_destructor_after_all_writes)
{
    for (size_t round = 0; round < ROUNDS; round++) {
        last_release_t shared = {0};
        memrt_new_options_t options = {
            .struct_size = sizeof(options), .dtor = expect_all_writes, .dtor_info = &shared};
        ck_assert_int_eq(api->meminfo_new(CREW * sizeof(size_t), &options, &shared.mi), MEMRT_OK);
        for (size_t i = 1; i < CREW; i++) {
            api->acquire(shared.mi);
        }
        crew_run(CREW, write_and_release, &shared);
        ck_assert_uint_eq(shared.dtors, 1);
    }
}

static void set_alternating_name(size_t index, void *context)
{
    REQUIRE(api->set_name(context, index % 2 == 0 ? "even" : "odd") == MEMRT_OK);
}

TEST(meminfo_named_concurrently_is_not_found_after_release)
{
    for (size_t round = 0; round < ROUNDS; round++) {
        memrt_meminfo_t *mi = api->allocate(10), *found;
        void *data = api->get_data(mi);
        crew_run(CREW, set_alternating_name, mi);
        api->release(mi);
        ck_assert_int_eq(api->find(data, &found), MEMRT_ENOENT);
    }
}

static void count_references_inline(size_t index, void *context)
{
    memrt_meminfo_t *mi = context;
    for (int i = 0; i < 20000; i++) {
        memrt_meminfo_acquire(mi);
        if ((index + (size_t)i) % 2 == 0) {
            api->release(mi);
        } else {
            memrt_meminfo_release(api, mi);
        }
    }
    memrt_meminfo_release(api, mi);
}

TEST(inline_and_table_calls_share_refcount)
{
    enum { THREADS = 4 };
    books_t before = books_now();
    call_t call = {0};
    memrt_meminfo_t *mi = create_with_dtor(10, &call);
    for (size_t i = 1; i < THREADS; i++) {
        memrt_meminfo_acquire(mi);
    }
    ck_assert_uint_eq(api->refcount(mi), THREADS);
    crew_run(THREADS, count_references_inline, mi);
    ck_assert_uint_eq(call.count, 1);
    books_expect_no_leak(&before);
}

TEST(adopting_into_policy_without_thread_shard_is_counted)
{
    static char foreign[8];
    memrt_policy_t *policies[MEMRT__CHUNK + 1];
    for (size_t i = 0; i <= MEMRT__CHUNK; i++) {
        ck_assert_int_eq(api->policy_new(NULL, &policies[i]), MEMRT_OK);
    }
    memrt_policy_t *last = policies[MEMRT__CHUNK];
    memrt_new_options_t options = {.struct_size = sizeof(options), .policy = last};
    api->release(api->allocate(1)); /* the thread has a record, but no shard for that policy */
    memrt_meminfo_t *mi;
    ck_assert_int_eq(api->meminfo_adopt(foreign, sizeof(foreign), &options, &mi), MEMRT_OK);
    ck_assert_uint_eq(stats_of(last).adopted, sizeof(foreign));
    api->release(mi);
    ck_assert_uint_eq(stats_of(last).adopted, 0);
    for (size_t i = 0; i <= MEMRT__CHUNK; i++) {
        api->policy_release(policies[i]);
    }
}

/* Releases of a reference count of 0, each in a child. Either the MemInfo lies in the thread cache,
 * or compiled code has not called its destructor yet. */

static void release_freed(void *context)
{
    memrt_meminfo_t *mi = api->allocate(*(const size_t *)context);
    api->release(mi);
    api->release(mi);
}

static void release_freed_inline(void *context)
{
    memrt_meminfo_t *mi = api->allocate(*(const size_t *)context);
    memrt_meminfo_release(api, mi);
    memrt_meminfo_release(api, mi);
}

static void release_freed_of_two(void *context)
{
    memrt_meminfo_t *mi = api->allocate(*(const size_t *)context);
    api->acquire(mi);
    api->release(mi);
    api->release(mi);
    api->release(mi);
}

static void release_with_count_zero(void *context)
{
    memrt_meminfo_t *mi = api->allocate(*(const size_t *)context);
    mi->refct--;
    api->release(mi);
}

static void release_header(void *context)
{
    memrt_meminfo_t *mi = api->manage_memory(context, NULL);
    api->release(mi);
    api->release(mi);
}

static void (*const over_releases[])(void *) = {release_freed, release_freed_inline,
                                                release_freed_of_two, release_with_count_zero,
                                                release_header};
enum { OVER_RELEASES = sizeof(over_releases) / sizeof(over_releases[0]) };

TEST_EACH(release_at_refcount_zero_aborts_with_message, OVER_RELEASES)
{
    size_t sizes[] = {10, 100000};
    for (size_t i = 0; i < 2 && memrt__policy_default()->fast; i++) {
        child_expect_abort(over_releases[index], &sizes[i],
                           "the count of references must be at least 1, got 0");
    }
}
