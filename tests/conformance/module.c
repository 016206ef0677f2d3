/* The clauses as a library for a process of Python, which makes the table (allocator_worker.py). */

#include "conformance/report.h"

__attribute__((visibility("default"))) int memrt_check_allocator(const memrt_allocator_t *table,
                                                                 const char *name);

int memrt_check_allocator(const memrt_allocator_t *table, const char *name)
{
    return print_verdict(table, name);
}
