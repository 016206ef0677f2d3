#ifndef MEMRT_SHARE_H
#define MEMRT_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/status.h>

#include "runtime/base/os.h"

/// The statistics of the process in a file in memory, the page, which other processes of its user
/// read while it runs and after it was killed. Off unless MEMRT_SHARE is 1. A thread writes it ten
/// times a second; nobody who allocates does anything for it, whoever reads.
///
/// A page has a head and two slots, to which the thread writes in turn, so that one of them is
/// whole whenever it is killed. A reader takes the slot with the higher serial number of those
/// whose sum is right. Numbers are as the machine has them, sizes in bytes.

#define MEMRT__PAGE_MAGIC "memrtpg"
#define MEMRT__PAGE_VERSION 1u
#define MEMRT__PAGE_ORDER 0x01020304u
#define MEMRT__PAGE_SLOT ((size_t)256 << 10) ///< one slot is that far behind the other
#define MEMRT__PAGE_HEAD ((size_t)4 << 10)   ///< the first slot is there
#define MEMRT__PAGE_ROWS 1024u
#define MEMRT__PAGE_FIGURES 17u ///< those of memrt_stats_t behind struct_size, in its order

typedef struct memrt__page_head {
    char magic[8];
    uint32_t version;
    uint32_t order;   ///< MEMRT__PAGE_ORDER, by which a reader sees that the bytes stand its way
    uint64_t process; ///< its id
    uint64_t
        started; ///< when, in ticks of the system since its start: the id may be another's by now
    uint64_t begun_ns; ///< when the page was begun, since 1970
    char command[216]; ///< how the process was called, cut, ended by a zero
} memrt__page_head_t;

typedef struct memrt__page_row {
    uint32_t kind;   ///< MEMRT__PAGE_POLICY or _SCOPE
    uint32_t number; ///< index of the policy, id of the scope
    uint32_t parent; ///< id of the scope around it; 0: none
    uint32_t unused;
    char name[64];
    uint64_t figures[MEMRT__PAGE_FIGURES];
} memrt__page_row_t;
#define MEMRT__PAGE_POLICY 1u
#define MEMRT__PAGE_SCOPE 2u

typedef struct memrt__page_slot {
    uint32_t sum;      ///< Adler-32 of all that follows, as far as `bytes` says
    uint32_t bytes;    ///< of the slot, from its start
    uint64_t serial;   ///< counts what was written, from 1
    uint64_t time_ns;  ///< when, since 1970
    uint64_t resident; ///< bytes that the process had in memory
    uint32_t rows;
    uint32_t left_out;                     ///< policies and scopes that there was no row for
    uint64_t figures[MEMRT__PAGE_FIGURES]; ///< of the process
    memrt__page_row_t row[MEMRT__PAGE_ROWS];
} memrt__page_slot_t;

_Static_assert(sizeof(memrt__page_head_t) == 256, "as readers know it");
_Static_assert(offsetof(memrt__page_slot_t, row) == 176, "as readers know it");
_Static_assert(sizeof(memrt__page_row_t) == 216, "as readers know it");
_Static_assert(sizeof(memrt__page_slot_t) <= MEMRT__PAGE_SLOT, "slots do not overlap");

/// Begin or end, as the option says. False: it cannot be begun, `why` is a sentence.
bool memrt__share_follow(char *why, size_t length) MEMRT_MUST_CHECK;

/// Fill in what a slot says now, as the snapshot of that serial number.
void memrt__share_fill(memrt__page_slot_t *slot, uint64_t turn);

/// The page of this process; false: it has none now.
bool memrt__share_page(memrt__os_page_t *out);

/// End for good: the process does. The page goes.
void memrt__share_end(void);

/// Before a fork, and after it in the parent: the thread is not in the middle of reading meanwhile,
/// unless that takes seconds.
void memrt__share_pause(void);
void memrt__share_resume(void);

/// In a forked child, with locks made anew: it has a page of its own once it allocates.
void memrt__share_forked(void);

#endif
