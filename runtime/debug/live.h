#ifndef MEMRT_DEBUG_LIVE_H
#define MEMRT_DEBUG_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memrt/meminfo.h>

/// The live set: which keys are alive, since when, made by whom, under what name. It knows keys,
/// not what they stand for. In 32 parts with a lock each.

typedef struct memrt__live_entry {
    uintptr_t key;
    uint64_t id;     ///< serial number of birth
    uint64_t birth;  ///< nanoseconds, memrt__os_tick_ns()
    char *name;      ///< owned; NULL for none
    uint32_t thread; ///< operating system's id
    uint32_t site;   ///< number of the place of birth; 0: not known
    double share;    ///< how many like it it stands for; 0: it is in for its name alone
} memrt__live_entry_t;

/// Add a key that is not in the set, born now on this thread. False: no memory, nothing changed.
bool memrt__live_insert(uintptr_t key, uint32_t site, double share);

/// What is to be remembered of a key that leaves.
typedef struct memrt__live_trace {
    uintptr_t data;     ///< address of what the key stood for
    size_t size;        ///< bytes of it
    const char *policy; ///< name, of at most MEMRT_NAME_MAX bytes
} memrt__live_trace_t;

/// Take a key out; NULL: nothing of it is to be remembered. A key that is not in the set is left
/// alone; returns whether it was in.
bool memrt__live_remove(uintptr_t key, const memrt__live_trace_t *trace);

bool memrt__live_contains(uintptr_t key);

/// What is known of a key that left.
typedef struct memrt__live_left {
    uintptr_t key, data;
    size_t size;
    char name[MEMRT_NAME_MAX + 1]; ///< "" for none
    char policy[MEMRT_NAME_MAX + 1];
} memrt__live_left_t;

/// Whether a key that is not in the set was in it lately: one of the last 64 that left its part.
bool memrt__live_left(uintptr_t key, memrt__live_left_t *out);

/// The same for any key from `start` on, below `start + size`; of several the last that left its
/// part.
bool memrt__live_left_within(uintptr_t start, size_t size, memrt__live_left_t *out);

/// Give `to`, which is in the set, the identity of `from`: all but the key. `from` must
/// be in the set as well and keeps an identity of no further use.
void memrt__live_inherit(uintptr_t from, uintptr_t to);

/// Name a key, adding it if it is not in the set; NULL takes the name away. False: no memory,
/// nothing changed.
bool memrt__live_set_name(uintptr_t key, const char *name);

/// Copy the name of a key, "" for none, to `name`, of MEMRT_NAME_MAX + 1 bytes.
void memrt__live_name(uintptr_t key, char *name);

/// Called with the part of the set locked: must be quick and take no lock but of a later rank.
typedef void (*memrt__live_visit_fn)(const memrt__live_entry_t *entry, void *context);

/// Visit one key; false when it is not in the set.
bool memrt__live_visit(uintptr_t key, memrt__live_visit_fn visit, void *context);

/// Visit all, part by part, in no order. A key is visited once unless it comes or goes meanwhile.
void memrt__live_visit_all(memrt__live_visit_fn visit, void *context);

/// Number of keys.
size_t memrt__live_count(void);

/// Serial number of the last birth.
uint64_t memrt__live_births(void);

/// Serial number of the last birth before the fork that made this process; 0: there was none.
uint64_t memrt__live_births_before(void);

/// In a forked child: only births from now on are its own.
void memrt__live_forked(void);

#endif
