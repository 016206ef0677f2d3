#ifndef MEMRT_CHECK_H
#define MEMRT_CHECK_H

/// Leak checks and memory limits for tests with Check (libcheck). Most test cases only need
/// memrt_ck_add_no_leaks(). Header-only: a program links only libmemrt and Check.
///
/// A check counts all memory that the process allocates from memrt between the start and the end of
/// a test. Memory of other threads that run at the same time is included.

#include <check.h>
#include <stdio.h>
#include <string.h>

#include <memrt/external.h>
#include <memrt/observe/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Maximum number of buffers that a message lists.
#define MEMRT_CK_LISTED 10u

/// Size of a message in bytes.
#define MEMRT__CK_TEXT 4096u

/// State at the start of the running test. All files of a program share one variable.
typedef struct memrt__ck_start {
    const memrt_api_t *api;
    uint64_t last_id; ///< highest id of the buffers from before the test
    uint64_t live;    ///< live bytes
    int tracking;     ///< whether tracking was on
} memrt__ck_start_t;

__attribute__((weak)) memrt__ck_start_t memrt__ck_start;

/// Return the table of the libmemrt that the test program is linked to. Without a table, the test
/// fails.
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

/// Return the live list. The caller frees the list with live_free.
static inline memrt_live_t *memrt__ck_live(size_t *count)
{
    memrt_live_t *list = NULL;
    if (memrt_ck_api()->live(&list, count) != MEMRT_OK) {
        ck_abort_msg("memrt: no memory to list live buffers");
    }
    return list;
}

/// Return the bytes in use above the bytes in use at the start of the test.
static inline uint64_t memrt_ck_live_bytes(void)
{
    uint64_t live = memrt__ck_stats().live;
    return live > memrt__ck_start.live ? live - memrt__ck_start.live : 0;
}

/// Return the maximum bytes in use at once since the start of the test, above the bytes in use at
/// the start.
static inline uint64_t memrt_ck_peak_bytes(void)
{
    uint64_t peak = memrt__ck_stats().peak;
    return peak > memrt__ck_start.live ? peak - memrt__ck_start.live : 0;
}

/// Begin a test: turn tracking on and restart the peak. For tcase_add_checked_fixture.
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

/// Write a line about a buffer; return the length of the line.
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

/// Write the buffers of the test, out of a list, to `text`; return their number.
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

/// End a test: fail with a list of buffers, if buffers that were allocated since the start are
/// live. For tcase_add_checked_fixture.
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

/// Make each test of `tcase` fail if a buffer is still live at the end. Fixtures that are added
/// later run inside the check, so that their allocations and frees count.
static inline void memrt_ck_add_no_leaks(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, memrt_ck_no_leaks_begin, memrt_ck_no_leaks_end);
}

/// Fail unless exactly `bytes` more bytes are in use than at the start of the test.
#define memrt_ck_assert_live(bytes) ck_assert_uint_eq(memrt_ck_live_bytes(), bytes)

/// Fail unless at most `bytes` more bytes were in use at once than at the start of the test. With
/// several threads, the peak may be off by `peak_error` of memrt_stats_t.
#define memrt_ck_assert_peak(bytes) ck_assert_uint_le(memrt_ck_peak_bytes(), bytes)

#ifdef __cplusplus
}
#endif

#endif
