#ifndef MEMRT_CONFORMANCE_REPORT_H
#define MEMRT_CONFORMANCE_REPORT_H

#include "conformance/clauses.h"

/// Run clauses for programs, which read verdicts from the standard output.

/// Print all clauses, one a line: name, tab, requirement.
void print_clauses(void);

/// Run one clause on a table, and print pass, fail or not applicable, then tab and reason. Fields
/// beyond the table's struct_size count as zero. Returns 0, or 2 for an unknown clause.
int print_verdict(const memrt_allocator_t *table, const char *name);

#endif
