#ifndef MEMRT_CONFORMANCE_CLAUSES_H
#define MEMRT_CONFORMANCE_CLAUSES_H

#include "conformance/trial.h"

/// What memrt expects of an allocator, one function a clause. A clause that is met leaves the
/// allocator as it found it; of one that is broken blocks may be left. Each looks at its own matter
/// alone, so that one mistake breaks one clause.

typedef void (*clause_fn)(trial_t *trial);

typedef struct clause {
    const char *name;
    const char *says; ///< one sentence
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

/// company.c
void clause_free_elsewhere(trial_t *trial);
void clause_threads(trial_t *trial);
void clause_fork(trial_t *trial);

/// keeping.c
void clause_usage(trial_t *trial);
void clause_release_unused(trial_t *trial);

#endif
