#ifndef MEMRT_TESTS_SUPPORT_ATTEMPTS_H
#define MEMRT_TESTS_SUPPORT_ATTEMPTS_H

#include "support/suite.h"

/// Table of attempts: every slot of the API table and every function of the public headers. Each
/// attempt makes one call and returns the outcome. Tests make the call while memory, pages and
/// threads are refused.
///
/// No library lists the calls: arguments and expected outcomes are specific to memrt.

enum { GROUND_MANY = 64 };

/// Objects of an attempt: its inputs and its results. ground_clear() releases every pointer except
/// NULL.
typedef struct ground {
    memrt_policy_t *policy;     ///< exists before the attempt
    memrt_policy_t *idle;       ///< exists before; nothing was allocated from it
    memrt_scope_t *scope;       ///< exists before; nothing was allocated in it
    memrt_meminfo_t *resizable; ///< exists before: 100 bytes of pattern 1
    memrt_meminfo_t *growing;   ///< exists before: 20,000 bytes with a reserve, pattern 5 in 100
    memrt_meminfo_t *mi;        ///< exists before
    void *block;                ///< exists before: 100 bytes of pattern 2
    void *shared_block;         ///< exists before: 100 bytes of pattern 3
    memrt_meminfo_t *sharer;    ///< holds shared_block too
    memrt_live_t *list;         ///< exists before
    memrt_meminfo_t *device;    ///< exists before: 100 bytes of device memory
    void *large;                ///< exists before: 3 MB, the first 100 bytes of pattern 4
    void *many[GROUND_MANY];    ///< exist before: 32 KB each
    memrt_meminfo_t *made;
    memrt_policy_t *made_policy;
    memrt_scope_t *made_scope;
    memrt_allocator_t made_guard;
    memrt_live_t *made_list;
    void *made_block;
    void *left; ///< former data block of a resizable MemInfo
} ground_t;

ground_t ground_new(void);
void ground_clear(ground_t *ground);

typedef enum outcome {
    MADE,
    REFUSED, ///< failed with the documented error, and wrote nothing
} outcome_t;

/// Make the call and return the outcome. Fails the test on any result except MADE and REFUSED.
typedef outcome_t (*attempt_fn)(ground_t *ground);

typedef enum need {
    NOTHING,   ///< cannot fail: returns no status and no pointer, or an existing pointer
    NO_MEMORY, ///< can fail, but not out of memory: requests no memory
    MEMORY,
} need_t;

typedef struct slot {
    const char *name;
    size_t offset; ///< in the table; SIZE_MAX: a variant of a slot listed before
    need_t need;
    attempt_fn attempt;
} slot_t;

enum { SLOTS = 183 };

extern const slot_t slots[SLOTS];

#endif
