#ifndef MEMRT_CHECK_H
#define MEMRT_CHECK_H

/// For tests with Check (libcheck): that each test gives back what it takes, and how much memory it
/// may need. Header-only; links to libmemrt and Check alone. memrt_ck_add_no_leaks() is what most
/// test cases need.
///
/// What counts is all that the process allocates of memrt between the start and the end of a test.
/// A test that lets threads of others run meanwhile counts what these do, too.

#include <check.h>
#include <stdio.h>
#include <string.h>

#include <memrt/external.h>
#include <memrt/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/// How many buffers a message lists.
#define MEMRT_CK_LISTED 10u

/// Bytes of a message.
#define MEMRT__CK_TEXT 4096u

/// Where the test that runs began. One for all files of a program.
typedef struct memrt__ck_start {
    const memrt_api_t *api;
    uint64_t last_id; ///< of the buffers that are not the test's
    uint64_t live;    ///< bytes
    int tracking;     ///< whether it was on
} memrt__ck_start_t;

__attribute__((weak)) memrt__ck_start_t memrt__ck_start;

/// The table of the libmemrt that the test program is linked to. The test fails without one.
static inline const memrt_api_t *memrt_ck_api(void)
{
    const char *why = "the library gives no reason";
    if (memrt__ck_start.api == NULL) {
        memrt__ck_start.api = memrt_get_api(MEMRT_ABI_MAJOR, &why);
        if (memrt__ck_start.api == NULL) {
            ck_abort_msg("memrt: %s", why);
        }
    }
    return memrt__ck_start.api;
}

static inline memrt_stats_t memrt__ck_stats(void)
{
    memrt_stats_t stats;
    memset(&stats, 0, sizeof(stats));
    stats.struct_size = sizeof(stats);
    if (memrt_ck_api()->stats_read(NULL, &stats) != MEMRT_OK) {
        ck_abort_msg("memrt: cannot read statistics");
    }
    return stats;
}

/// The live list, to be given to live_free.
static inline memrt_live_t *memrt__ck_live(size_t *count)
{
    memrt_live_t *list = NULL;
    if (memrt_ck_api()->live(&list, count) != MEMRT_OK) {
        ck_abort_msg("memrt: no memory to list live buffers");
    }
    return list;
}

/// Bytes in use above those at the start of the test.
static inline uint64_t memrt_ck_live_bytes(void)
{
    uint64_t live = memrt__ck_stats().live;
    return live > memrt__ck_start.live ? live - memrt__ck_start.live : 0;
}

/// Most bytes in use at once since the start of the test, above those at its start.
static inline uint64_t memrt_ck_peak_bytes(void)
{
    uint64_t peak = memrt__ck_stats().peak;
    return peak > memrt__ck_start.live ? peak - memrt__ck_start.live : 0;
}

/// Begin a test: tracking is turned on, and the peak starts again. For tcase_add_checked_fixture.
static inline void memrt_ck_no_leaks_begin(void)
{
    const memrt_api_t *api = memrt_ck_api();
    size_t count = 0;
    memrt_live_t *list = memrt__ck_live(&count);
    memrt__ck_start.last_id = count == 0 ? 0 : list[count - 1].id;
    api->live_free(list);
    memrt__ck_start.tracking = api->tracking(1);
    api->stats_reset_peak(NULL);
    memrt__ck_start.live = memrt__ck_stats().live;
}

/// A line about a buffer; returns its length.
static inline size_t memrt__ck_describe(const memrt_live_t *buffer, char *text, size_t room)
{
    const memrt_api_t *api = memrt_ck_api();
    memrt_policy_t *policy = api->policy_at(buffer->policy);
    int named = buffer->name[0] != '\0';
    int length =
        snprintf(text, room, "\n  %zu bytes%s%s%s, %zu reference%s, policy '%s'", buffer->size,
                 named ? " '" : "", buffer->name, named ? "'" : "", buffer->refcount,
                 buffer->refcount == 1 ? "" : "s", policy != NULL ? api->policy_name(policy) : "");
    if (policy != NULL) {
        api->policy_release(policy);
    }
    return length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

/// The test's buffers of a list into `text`; returns how many there are.
static inline size_t memrt__ck_tell(const memrt_live_t *list, size_t count, char *text, size_t room)
{
    size_t found = 0, at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (list[i].id > memrt__ck_start.last_id && ++found <= MEMRT_CK_LISTED) {
            at += memrt__ck_describe(&list[i], text + at, room - at);
        }
    }
    if (found > MEMRT_CK_LISTED) {
        (void)snprintf(text + at, room - at, "\n  and %zu more", found - MEMRT_CK_LISTED);
    }
    return found;
}

/// End a test: it fails when a buffer that was made since its begin is live, with a list of these.
/// For tcase_add_checked_fixture.
static inline void memrt_ck_no_leaks_end(void)
{
    char text[MEMRT__CK_TEXT];
    size_t count = 0;
    memrt_live_t *list = memrt__ck_live(&count);
    size_t leaks = memrt__ck_tell(list, count, text, sizeof(text));
    memrt_ck_api()->live_free(list);
    memrt_ck_api()->tracking(memrt__ck_start.tracking);
    if (leaks != 0) {
        ck_abort_msg("memrt: %zu buffer%s of this test %s live%s", leaks, leaks == 1 ? "" : "s",
                     leaks == 1 ? "is" : "are", text);
    }
}

/// Have each test of `tcase` fail that leaves a buffer live. Fixtures that are added after it run
/// inside, so that what they set up and tear down counts.
static inline void memrt_ck_add_no_leaks(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, memrt_ck_no_leaks_begin, memrt_ck_no_leaks_end);
}

/// Fail unless exactly `bytes` more are in use than at the start of the test.
#define memrt_ck_assert_live(bytes) ck_assert_uint_eq(memrt_ck_live_bytes(), bytes)

/// Fail unless at most `bytes` more were in use at once than at the start of the test. With several
/// threads the peak may be off by what `peak_error` of memrt_stats_t says.
#define memrt_ck_assert_peak(bytes) ck_assert_uint_le(memrt_ck_peak_bytes(), bytes)

#ifdef __cplusplus
}
#endif

#endif
