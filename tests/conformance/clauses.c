/// List of all conformance clauses, in the order of check_allocator's output.

#include "conformance/clauses.h"

const clause_t clauses[] = {
    {"table", "the table has a size, a version, `alloc` and `free`", clause_table},
    {"alignment", "a block of any size has the requested alignment", clause_alignment},
    {"blocks", "blocks do not overlap and keep their contents", clause_blocks},
    {"smallest", "blocks of 1 byte have distinct addresses", clause_smallest},
    {"zeroed", "zeroed memory is zero, also in reused memory", clause_zeroed},
    {"refusal", "an impossible size gives NULL and changes no block", clause_refusal},
    {"realloc-contents", "contents survive growing and shrinking", clause_realloc_contents},
    {"realloc-alignment", "a resized block keeps its alignment", clause_realloc_alignment},
    {"realloc-same-size", "a block resized to the same size stays live", clause_realloc_same_size},
    {"realloc-refusal", "a failed realloc returns NULL and keeps the old block",
     clause_realloc_refusal},
    {"try-expand", "a block grows at its address, or stays unchanged", clause_try_expand},
    {"usable-size", "a block grows to its usable size", clause_usable_size},
    {"good-size", "a good size is no smaller than the request", clause_good_size},
    {"free-elsewhere", "any thread can free a block", clause_free_elsewhere},
    {"threads", "concurrent use by threads changes no block of another thread", clause_threads},
    {"fork", "a forked child uses and frees inherited blocks, and allocates", clause_fork},
    {"usage", "`usage` writes the cached bytes, and changes nothing", clause_usage},
    {"release-unused", "`release_unused` gives back all cached memory", clause_release_unused},
    {"destroy", "`destroy` ends an allocator without live blocks", clause_destroy},
};

const size_t clause_count = sizeof(clauses) / sizeof(clauses[0]);
