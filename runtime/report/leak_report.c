#include "runtime/report/leak_report.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/shield.h"
#include "runtime/config/options.h"
#include "runtime/meminfo/lookup.h"
#include "runtime/observe/named_refs.h"
#include "runtime/observe/sites.h"
#include "runtime/os/lock.h"
#include "runtime/report/stats_page.h"

#define LASTING_MAX 64u
#define TEXT_MAX 256u

/// Exit status of a process with leaks whose own status would be 0.
#define EXIT_LEAKED 23

/// Limits of a report: allocation sites, frames of each site, and named references of each site.
#define PLACES_SHOWN 10u
#define CALLS_SHOWN 5u
#define HOLDERS_SHOWN 3u

/// A suppression: buffers of an allocation site are meant to stay if the pattern matches a frame.
typedef struct suppression {
    char pattern[TEXT_MAX], reason[TEXT_MAX];
} suppression_t;

static suppression_t suppressions[LASTING_MAX]; /* entries are fixed once counted */
static size_t suppression_count;                /* store: release, under the lock; load: acquire */

memrt_status_t memrt__suppression_add(const char *pattern, const char *what)
{
    if (pattern == NULL || what == NULL || pattern[0] == '\0' || what[0] == '\0' ||
        strlen(pattern) >= TEXT_MAX || strlen(what) >= TEXT_MAX) {
        return MEMRT_EINVAL;
    }
    memrt_status_t status = MEMRT_ELIMIT;
    memrt__lock(MEMRT__RANK_INTERNED);
    size_t count = memrt__load_relaxed(&suppression_count);
    if (count < LASTING_MAX) {
        MEMRT__ASSERT(suppressions[count].pattern[0] == '\0'); /* entries are fixed once counted */
        strcpy(suppressions[count].pattern, pattern);
        strcpy(suppressions[count].reason, what);
        memrt__store_release(&suppression_count, count + 1);
        status = MEMRT_OK;
    }
    memrt__unlock(MEMRT__RANK_INTERNED);
    return status;
}

static const char *find_reason(const char *line)
{
    size_t count = memrt__load_acquire(&suppression_count);
    for (size_t i = 0; i < count; i++) {
        if (fnmatch(suppressions[i].pattern, line, 0) == 0) {
            return suppressions[i].reason;
        }
    }
    return NULL;
}

const char *memrt__suppression_at(uint32_t site)
{
    memrt_frame_t frames[2 * MEMRT_FRAMES_MAX];
    size_t count = memrt__site_frames(site, frames, sizeof(frames) / sizeof(frames[0]));
    const char *found = NULL;
    for (size_t i = 0; i < count && found == NULL; i++) {
        char line[MEMRT__FRAME_LINE];
        memrt__frame_line(frames[i], line, sizeof(line));
        found = find_reason(line);
    }
    return found;
}

/// Live buffers of one allocation site.
typedef struct leak_site {
    uint32_t site;
    const memrt_buffer_t *buffers; ///< first of `count` buffers
    size_t count;
    double blocks, bytes;
    const char *suppression_reason; ///< text of the suppression; NULL: the buffers are leaks
} leak_site_t;

static int compare_by_site(const void *a, const void *b)
{
    uint32_t left = ((const memrt_buffer_t *)a)->site, right = ((const memrt_buffer_t *)b)->site;
    return (left > right) - (left < right);
}

static int compare_by_bytes(const void *a, const void *b)
{
    double left = ((const leak_site_t *)a)->bytes, right = ((const leak_site_t *)b)->bytes;
    return (left < right) - (left > right);
}

/// Add up buffers, sorted by site, into one row for each site. Skips buffers that tracking does not
/// count, and buffers inherited by fork. Returns the number of rows.
static size_t sum_by_site(const memrt_buffer_t *buffers, size_t count, leak_site_t *leak_sites)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const memrt_buffer_t *buffer = &buffers[i];
        if (buffer->weight == 0 || buffer->inherited) {
            continue;
        }
        if (found == 0 || leak_sites[found - 1].site != buffer->site) {
            leak_sites[found++] =
                (leak_site_t){.site = buffer->site,
                              .buffers = buffer,
                              .suppression_reason = memrt__suppression_at(buffer->site)};
        }
        MEMRT__ASSERT(found != 0 && found <= i + 1);
        leak_sites[found - 1].count = (size_t)(buffer + 1 - leak_sites[found - 1].buffers);
        leak_sites[found - 1].blocks += buffer->weight;
        leak_sites[found - 1].bytes += buffer->weight * (double)buffer->live.size;
    }
    return found;
}

/// Return the blocks and bytes of all sites without a suppression.
static leak_site_t sum_leaks(const leak_site_t *leak_sites, size_t count)
{
    leak_site_t sum = {0};
    for (size_t i = 0; i < count; i++) {
        if (leak_sites[i].suppression_reason == NULL) {
            sum.blocks += leak_sites[i].blocks;
            sum.bytes += leak_sites[i].bytes;
        }
    }
    return sum;
}

static void write_leak_site(const leak_site_t *leak_site)
{
    memrt_frame_t frames[CALLS_SHOWN];
    size_t count = memrt__site_frames(leak_site->site, frames, CALLS_SHOWN);
    dprintf(STDERR_FILENO, "  %.0f bytes in %.0f buffer%s, allocated at%s\n", leak_site->bytes,
            leak_site->blocks, leak_site->blocks == 1 ? "" : "s",
            count == 0 ? " an unknown site: MEMRT_TRACK_NATIVE=8 records native calls" : "");
    for (size_t i = 0; i < count && i < CALLS_SHOWN; i++) {
        char line[MEMRT__FRAME_LINE];
        memrt__frame_line(frames[i], line, sizeof(line));
        dprintf(STDERR_FILENO, "      %s\n", line);
    }
}

static bool is_written_holder(const memrt_holder_t *holder, const memrt_holder_t *written,
                              size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (written[i].kind == holder->kind && strcmp(written[i].name, holder->name) == 0) {
            return true;
        }
    }
    return false;
}

/// Write the named references of a site: the first reference of each buffer, each name once.
static void write_holders(const leak_site_t *leak_site)
{
    memrt_holder_t written[HOLDERS_SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < leak_site->count && count < HOLDERS_SHOWN; i++) {
        memrt_holder_t *holder = &written[count];
        uintptr_t key = (uintptr_t)leak_site->buffers[i].live.meminfo;
        if (memrt__named_refs_list(key, holder, sizeof(*holder), 1) != 0 &&
            !is_written_holder(holder, written, count)) {
            dprintf(STDERR_FILENO, "      held by C %s '%s'\n",
                    memrt__holder_kind_text(holder->kind), holder->name);
            count++;
        }
    }
}

static void write_leaks(const leak_site_t *leak_sites, size_t count)
{
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < count; i++) {
        if (leak_sites[i].suppression_reason != NULL) {
            continue;
        }
        if (shown < PLACES_SHOWN) {
            write_leak_site(&leak_sites[i]);
            write_holders(&leak_sites[i]);
            shown++;
        } else {
            left++;
        }
    }
    if (left != 0) {
        dprintf(STDERR_FILENO, "  and at %zu more sites\n", left);
    }
}

static void write_suppressed(const leak_site_t *leak_sites, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (leak_sites[i].suppression_reason != NULL) {
            dprintf(STDERR_FILENO, "  suppressed: %.0f bytes in %.0f buffer%s, %s\n",
                    leak_sites[i].bytes, leak_sites[i].blocks, leak_sites[i].blocks == 1 ? "" : "s",
                    leak_sites[i].suppression_reason);
        }
    }
}

/// Write the leak report to stderr. Returns true if there are leaks. Without memory for the report,
/// writes a message and returns false.
static bool write_report(void)
{
    void *buffers;
    size_t count;
    if (memrt__lookup_buffers(sizeof(memrt_buffer_t), &buffers, &count) != MEMRT_OK) {
        dprintf(STDERR_FILENO, "memrt: no memory to list the buffers still live at exit\n");
        return false;
    }
    qsort(buffers, count, sizeof(memrt_buffer_t), compare_by_site);
    leak_site_t *leak_sites = malloc((count + 1) * sizeof(*leak_sites));
    if (leak_sites == NULL) {
        dprintf(STDERR_FILENO, "memrt: no memory to add up the buffers still live at exit\n");
        free(buffers);
        return false;
    }
    count = sum_by_site(buffers, count, leak_sites);
    MEMRT__ASSERT(count == 0 || leak_sites[0].count != 0);
    qsort(leak_sites, count, sizeof(*leak_sites), compare_by_bytes);
    leak_site_t leaked = sum_leaks(leak_sites, count);
    if (leaked.blocks != 0) {
        dprintf(STDERR_FILENO, "memrt: %.0f buffer%s still live at exit, %.0f bytes\n",
                leaked.blocks, leaked.blocks == 1 ? "" : "s", leaked.bytes);
        write_leaks(leak_sites, count);
        write_suppressed(leak_sites, count);
    }
    free(leak_sites);
    free(buffers);
    return leaked.blocks != 0;
}

static void report_at_exit(int status, void *unused)
{
    MEMRT__SHIELD;
    (void)unused;
    if (write_report() && memrt__options.leaks == MEMRT__LEAKS_FAIL && status == 0) {
        fflush(NULL);
        memrt__stats_page_end();
        _exit(EXIT_LEAKED);
    }
}

#ifndef __GLIBC__
/// Without on_exit() the exit status is not known. So a failed process keeps its own status only
/// with glibc.
static void report_at_exit_without_status(void)
{
    report_at_exit(0, NULL);
}
#define on_exit(function, argument) atexit(function##_without_status)
#endif

void memrt__leak_report_start(void)
{
    if (memrt__options.leaks != MEMRT__LEAKS_OFF) {
        /* Fails only without memory; then no report is written. */
        (void)on_exit(report_at_exit, NULL);
    }
}
