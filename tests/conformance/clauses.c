#include "conformance/clauses.h"

const clause_t clauses[] = {
    {"table", "the table has a size, a version, `alloc` and `free`", clause_table},
    {"alignment", "a block of any size has the alignment that was asked for", clause_alignment},
    {"blocks", "blocks do not overlap and keep what is written to them", clause_blocks},
    {"smallest", "blocks of one byte have addresses of their own", clause_smallest},
    {"zeroed", "zeroed memory is zero, also when it was used before", clause_zeroed},
    {"refusal", "a size that nobody has gives NULL and disturbs nothing", clause_refusal},
    {"realloc-contents", "contents survive growing and shrinking", clause_realloc_contents},
    {"realloc-alignment", "a resized block has the alignment of the old", clause_realloc_alignment},
    {"realloc-same-size", "a block that is resized to its size is live", clause_realloc_same_size},
    {"realloc-refusal", "a realloc that gives NULL keeps the old block", clause_realloc_refusal},
    {"free-elsewhere", "any thread frees a block", clause_free_elsewhere},
    {"threads", "threads that use it at once do not disturb each other", clause_threads},
    {"fork", "a child of fork uses and frees what it inherited, and allocates", clause_fork},
    {"usage", "`usage` fills in what is kept, and changes nothing", clause_usage},
    {"release-unused", "`release_unused` gives back all that is kept", clause_release_unused},
    {"destroy", "`destroy` ends an allocator without live blocks", clause_destroy},
};

const size_t clause_count = sizeof(clauses) / sizeof(clauses[0]);
