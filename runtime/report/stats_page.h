#ifndef MEMRT_REPORT_STATS_PAGE_H
#define MEMRT_REPORT_STATS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#include "runtime/os/os.h"

/// Statistics page: the statistics of the process in a file in memory. Other processes of the same
/// user read the page while the process runs, and after the process was killed. Off unless
/// MEMRT_SHARE is 1. A thread writes the page ten times a second. Allocating threads do no work for
/// the page.
///
/// A page has a head and two slots. The thread writes the slots in turn, so that one slot is
/// complete at any moment of a kill. A reader checks the sums, and takes the valid slot with the
/// higher serial number. Numbers are in the machine's byte order, sizes in bytes.

#define MEMRT__STATS_PAGE_MAGIC "memrtpg"
#define MEMRT__STATS_PAGE_VERSION 1u
#define MEMRT__STATS_PAGE_ORDER 0x01020304u
#define MEMRT__STATS_PAGE_SLOT ((size_t)256 << 10) ///< distance between the two slots
#define MEMRT__STATS_PAGE_HEAD ((size_t)4 << 10)   ///< offset of the first slot
#define MEMRT__STATS_PAGE_ROWS 1024u
#define MEMRT__STATS_PAGE_FIGURES 17u ///< members of memrt_stats_t after struct_size, in order

typedef struct memrt__stats_head {
    char magic[8];
    uint32_t version;
    uint32_t order;    ///< MEMRT__STATS_PAGE_ORDER, for a reader to check the byte order
    uint64_t process;  ///< process id
    uint64_t started;  ///< start, in system ticks since boot; detects a reused process id
    uint64_t begun_ns; ///< creation time of the page, ns since 1970
    char command[216]; ///< command line of the process, cut, NUL-terminated
} memrt__stats_head_t;

typedef struct memrt__stats_row {
    uint32_t kind;   ///< MEMRT__STATS_PAGE_POLICY or _SCOPE
    uint32_t number; ///< index of the policy, or id of the scope
    uint32_t parent; ///< id of the enclosing scope; 0: none
    uint32_t unused;
    char name[64];
    uint64_t figures[MEMRT__STATS_PAGE_FIGURES];
} memrt__stats_row_t;
#define MEMRT__STATS_PAGE_POLICY 1u
#define MEMRT__STATS_PAGE_SCOPE 2u

typedef struct memrt__stats_slot {
    uint32_t sum;      ///< Adler-32 of the rest of the slot, up to `bytes`
    uint32_t bytes;    ///< size of the used part of the slot, from its start
    uint64_t serial;   ///< number of the snapshot, from 1
    uint64_t time_ns;  ///< time of the snapshot, ns since 1970
    uint64_t resident; ///< resident bytes of the process
    uint32_t rows;
    uint32_t left_out;                           ///< policies and scopes without a row
    uint64_t figures[MEMRT__STATS_PAGE_FIGURES]; ///< statistics of the process
    memrt__stats_row_t row[MEMRT__STATS_PAGE_ROWS];
} memrt__stats_slot_t;

_Static_assert(sizeof(memrt__stats_head_t) == 256, "readers depend on the layout");
_Static_assert(offsetof(memrt__stats_slot_t, row) == 176, "readers depend on the layout");
_Static_assert(sizeof(memrt__stats_row_t) == 216, "readers depend on the layout");
_Static_assert(sizeof(memrt__stats_slot_t) <= MEMRT__STATS_PAGE_SLOT, "slots do not overlap");

/// Start or stop sharing as the option requests. Returns false if sharing cannot start, and `why`
/// is a sentence.
bool memrt__stats_page_follow(char *why, size_t length) MEMRT_MUST_CHECK;

/// Fill in a slot with current statistics, as the snapshot with serial number `turn`.
void memrt__stats_page_fill(memrt__stats_slot_t *slot, uint64_t turn);

/// Copy the page of this process to `*out`. Returns false if the process has no page now.
bool memrt__stats_page_page(memrt__os_shared_file_t *out);

/// Stop sharing for good at the end of the process, and remove the page.
void memrt__stats_page_end(void);

/// Pause the thread before a fork, and resume in the parent after the fork.
/// memrt__stats_page_pause() waits until the thread is not reading statistics, for two seconds at
/// most.
void memrt__stats_page_pause(void);
void memrt__stats_page_resume(void);

/// Return whether a forked child has not yet restarted sharing.
bool memrt__stats_page_is_late(void);

/// Start the thread of such a child. Runs on an allocating thread, under unknown locks. If the
/// thread cannot start, the child has no page.
void memrt__stats_page_start_in_child(void);

/// Restart sharing in a forked child, after the locks were initialized. The child creates a page of
/// its own when the child first allocates.
void memrt__stats_page_forked(void);

#endif
