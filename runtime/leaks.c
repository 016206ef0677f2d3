#include "runtime/leaks.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/debug/holders.h"
#include "runtime/debug/site.h"
#include "runtime/meminfo/owner.h"
#include "runtime/share.h"

#define LASTING_MAX 64u
#define TEXT_MAX 256u

/// Status of a process that would have ended well but for its leaks.
#define EXIT_LEAKED 23

/// Most places of birth that a report tells of, most calls of each, and most who hold of it.
#define PLACES_SHOWN 10u
#define CALLS_SHOWN 5u
#define HOLDERS_SHOWN 3u

/// Buffers that are born where the pattern fits a call are expected to last.
typedef struct lasting {
    char pattern[TEXT_MAX], what[TEXT_MAX];
} lasting_t;

static lasting_t lasting[LASTING_MAX]; /* entries are fixed once counted */
static size_t lasting_count;           /* release by who adds, acquire by who looks */

memrt_status_t memrt__lasting_add(const char *pattern, const char *what)
{
    if (pattern == NULL || what == NULL || pattern[0] == '\0' || what[0] == '\0' ||
        strlen(pattern) >= TEXT_MAX || strlen(what) >= TEXT_MAX) {
        return MEMRT_EINVAL;
    }
    memrt_status_t status = MEMRT_ELIMIT;
    memrt__lock(MEMRT__RANK_INTERNED);
    size_t count = memrt__load_relaxed(&lasting_count);
    if (count < LASTING_MAX) {
        strcpy(lasting[count].pattern, pattern);
        strcpy(lasting[count].what, what);
        memrt__store_release(&lasting_count, count + 1);
        status = MEMRT_OK;
    }
    memrt__unlock(MEMRT__RANK_INTERNED);
    return status;
}

static const char *what_lasts(const char *line)
{
    size_t count = memrt__load_acquire(&lasting_count);
    for (size_t i = 0; i < count; i++) {
        if (fnmatch(lasting[i].pattern, line, 0) == 0) {
            return lasting[i].what;
        }
    }
    return NULL;
}

const char *memrt__lasting_at(uint32_t site)
{
    memrt_frame_t frames[2 * MEMRT_FRAMES_MAX];
    size_t count = memrt__site_frames(site, frames, sizeof(frames) / sizeof(frames[0]));
    const char *found = NULL;
    for (size_t i = 0; i < count && found == NULL; i++) {
        char line[MEMRT__FRAME_LINE];
        memrt__frame_line(frames[i], line, sizeof(line));
        found = what_lasts(line);
    }
    return found;
}

/// What is live that was born at one site.
typedef struct place {
    uint32_t site;
    const memrt_buffer_t *buffers; ///< `count` of them
    size_t count;
    double blocks, bytes;
    const char *lasts; ///< what it is, or NULL: nobody expects it to last
} place_t;

static int by_site(const void *a, const void *b)
{
    uint32_t left = ((const memrt_buffer_t *)a)->site, right = ((const memrt_buffer_t *)b)->site;
    return (left > right) - (left < right);
}

static int by_bytes(const void *a, const void *b)
{
    double left = ((const place_t *)a)->bytes, right = ((const place_t *)b)->bytes;
    return (left < right) - (left > right);
}

/// Add up buffers in the order of their sites; returns how many places there are.
static size_t add_up(const memrt_buffer_t *buffers, size_t count, place_t *places)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const memrt_buffer_t *buffer = &buffers[i];
        if (buffer->stands_for == 0 || buffer->inherited) {
            continue;
        }
        if (found == 0 || places[found - 1].site != buffer->site) {
            places[found++] = (place_t){
                .site = buffer->site, .buffers = buffer, .lasts = memrt__lasting_at(buffer->site)};
        }
        places[found - 1].count = (size_t)(buffer + 1 - places[found - 1].buffers);
        places[found - 1].blocks += buffer->stands_for;
        places[found - 1].bytes += buffer->stands_for * (double)buffer->live.size;
    }
    return found;
}

/// Blocks and bytes of the places of which nobody expects that they last.
static place_t sum_of_leaks(const place_t *places, size_t count)
{
    place_t sum = {0};
    for (size_t i = 0; i < count; i++) {
        if (places[i].lasts == NULL) {
            sum.blocks += places[i].blocks;
            sum.bytes += places[i].bytes;
        }
    }
    return sum;
}

static void write_place(const place_t *place)
{
    memrt_frame_t frames[CALLS_SHOWN];
    size_t count = memrt__site_frames(place->site, frames, CALLS_SHOWN);
    dprintf(STDERR_FILENO, "  %.0f bytes in %.0f buffer%s, born at%s\n", place->bytes,
            place->blocks, place->blocks == 1 ? "" : "s",
            count == 0 ? " a place that is not known: MEMRT_TRACK_NATIVE=8 records native calls"
                       : "");
    for (size_t i = 0; i < count && i < CALLS_SHOWN; i++) {
        char line[MEMRT__FRAME_LINE];
        memrt__frame_line(frames[i], line, sizeof(line));
        dprintf(STDERR_FILENO, "      %s\n", line);
    }
}

static bool is_told(const memrt_holder_t *holder, const memrt_holder_t *told, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (told[i].kind == holder->kind && strcmp(told[i].name, holder->name) == 0) {
            return true;
        }
    }
    return false;
}

/// The names under which C code holds buffers of a place: of each the first, and each name once.
static void write_holders(const place_t *place)
{
    memrt_holder_t told[HOLDERS_SHOWN];
    size_t count = 0;
    for (size_t i = 0; i < place->count && count < HOLDERS_SHOWN; i++) {
        memrt_holder_t *holder = &told[count];
        uintptr_t key = (uintptr_t)place->buffers[i].live.meminfo;
        if (memrt__holders_list(key, holder, sizeof(*holder), 1) != 0 &&
            !is_told(holder, told, count)) {
            dprintf(STDERR_FILENO, "      held by C %s '%s'\n",
                    memrt__holder_kind_text(holder->kind), holder->name);
            count++;
        }
    }
}

static void write_leaks(const place_t *places, size_t count)
{
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < count; i++) {
        if (places[i].lasts != NULL) {
            continue;
        }
        if (shown < PLACES_SHOWN) {
            write_place(&places[i]);
            write_holders(&places[i]);
            shown++;
        } else {
            left++;
        }
    }
    if (left != 0) {
        dprintf(STDERR_FILENO, "  and at %zu places more\n", left);
    }
}

static void write_lasting(const place_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (places[i].lasts != NULL) {
            dprintf(STDERR_FILENO, "  known to last: %.0f bytes in %.0f buffer%s, %s\n",
                    places[i].bytes, places[i].blocks, places[i].blocks == 1 ? "" : "s",
                    places[i].lasts);
        }
    }
}

/// Returns whether there are leaks.
static bool report(void)
{
    void *buffers;
    size_t count;
    if (memrt__owner_buffers(sizeof(memrt_buffer_t), &buffers, &count) != MEMRT_OK) {
        dprintf(STDERR_FILENO, "memrt: no memory to list what is still live at the end\n");
        return false;
    }
    qsort(buffers, count, sizeof(memrt_buffer_t), by_site);
    place_t *places = malloc((count + 1) * sizeof(*places));
    if (places == NULL) {
        dprintf(STDERR_FILENO, "memrt: no memory to add up what is still live at the end\n");
        free(buffers);
        return false;
    }
    count = add_up(buffers, count, places);
    qsort(places, count, sizeof(*places), by_bytes);
    place_t leaked = sum_of_leaks(places, count);
    if (leaked.blocks != 0) {
        dprintf(STDERR_FILENO, "memrt: %.0f buffer%s still live at the end, %.0f bytes\n",
                leaked.blocks, leaked.blocks == 1 ? "" : "s", leaked.bytes);
        write_leaks(places, count);
        write_lasting(places, count);
    }
    free(places);
    free(buffers);
    return leaked.blocks != 0;
}

static void end(int status, void *unused)
{
    (void)unused;
    if (report() && memrt__options.leaks == MEMRT__LEAKS_FAIL && status == 0) {
        fflush(NULL);
        memrt__share_end();
        _exit(EXIT_LEAKED);
    }
}

#ifndef __GLIBC__
/// The status is not known here: a process that failed by itself keeps its own only with glibc.
static void end_without_status(void)
{
    end(0, NULL);
}
#define on_exit(function, argument) atexit(function##_without_status)
#endif

void memrt__leaks_start(void)
{
    if (memrt__options.leaks != MEMRT__LEAKS_OFF) {
        /* Refused only for want of memory; then there is no report. */
        (void)on_exit(end, NULL);
    }
}
