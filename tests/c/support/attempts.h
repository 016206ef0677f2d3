#ifndef MEMRT_TESTS_SUPPORT_ATTEMPTS_H
#define MEMRT_TESTS_SUPPORT_ATTEMPTS_H

#include "support/suite.h"

/// Every slot of the table and every function of the public headers, each with a call of it that
/// says how it went, to be made where memory, pages and threads are refused.

enum { GROUND_MANY = 64 };

/// What an attempt works on and what it made; whatever is not NULL is given back at the end.
typedef struct ground {
    memrt_policy_t *policy;     ///< stood before
    memrt_policy_t *idle;       ///< stood before, nothing was made from it
    memrt_scope_t *scope;       ///< stood before, nothing was born in it
    memrt_meminfo_t *resizable; ///< stood before, 100 bytes of pattern 1
    memrt_meminfo_t *mi;        ///< stood before
    void *block;                ///< stood before, 100 bytes of pattern 2
    void *shared_block;         ///< stood before, 100 bytes of pattern 3
    memrt_meminfo_t *sharer;    ///< holds shared_block too
    memrt_live_t *list;         ///< stood before
    memrt_meminfo_t *device;    ///< stood before, 100 bytes of a device
    void *large;                ///< stood before, 3 MB, the first 100 bytes of pattern 4
    void *many[GROUND_MANY];    ///< stood before, 32 KB each
    memrt_meminfo_t *made;
    memrt_policy_t *made_policy;
    memrt_scope_t *made_scope;
    memrt_allocator_t made_guard;
    memrt_live_t *made_list;
    void *made_block;
    void *left; ///< data block that a resizable has no more
} ground_t;

ground_t ground_new(void);
void ground_clear(ground_t *ground);

typedef enum outcome {
    MADE,
    REFUSED, ///< with the error that the slot documents, and nothing written
} outcome_t;

/// Fails the test when what the call left is neither.
typedef outcome_t (*attempt_fn)(ground_t *ground);

typedef enum need {
    NOTHING,   ///< cannot fail: returns no status and no pointer, or one that stands already
    NO_MEMORY, ///< can fail, but never for want of memory: asks for none
    MEMORY,
} need_t;

typedef struct slot {
    const char *name;
    size_t offset; ///< in the table; SIZE_MAX: another way of a slot that stands before
    need_t need;
    attempt_fn attempt;
} slot_t;

enum { SLOTS = 139 };

extern const slot_t slots[SLOTS];

#endif
