#ifndef MEMRT_CONFORMANCE_CLAUSES_H
#define MEMRT_CONFORMANCE_CLAUSES_H

#include "conformance/trial.h"

/// Check memrt's requirements on an allocator, with a function for each clause. A passing clause
/// frees all blocks of the clause. A failing clause may leave live blocks. Each clause checks a
/// single requirement, so that a single fault breaks a single clause.

typedef void (*clause_fn)(trial_t *trial);

typedef struct clause {
    const char *name;
    const char *says; ///< the requirement, in one sentence
    clause_fn run;
} clause_t;

extern const clause_t clauses[];
extern const size_t clause_count;

/// table.c
void clause_table(trial_t *trial);
void clause_destroy(trial_t *trial);

/// blocks.c
void clause_alignment(trial_t *trial);
void clause_blocks(trial_t *trial);
void clause_smallest(trial_t *trial);
void clause_zeroed(trial_t *trial);
void clause_refusal(trial_t *trial);

/// resizing.c
void clause_realloc_contents(trial_t *trial);
void clause_realloc_alignment(trial_t *trial);
void clause_realloc_same_size(trial_t *trial);
void clause_realloc_refusal(trial_t *trial);

/// growth.c
void clause_try_expand(trial_t *trial);
void clause_usable_size(trial_t *trial);
void clause_good_size(trial_t *trial);

/// company.c
void clause_free_elsewhere(trial_t *trial);
void clause_threads(trial_t *trial);
void clause_fork(trial_t *trial);

/// keeping.c
void clause_usage(trial_t *trial);
void clause_release_unused(trial_t *trial);

#endif
