#include "conformance/report.h"

#include <stdio.h>
#include <string.h>

void print_clauses(void)
{
    for (size_t i = 0; i < clause_count; i++) {
        printf("%s\t%s\n", clauses[i].name, clauses[i].says);
    }
}

static const clause_t *find_clause(const char *name)
{
    for (size_t i = 0; i < clause_count; i++) {
        if (strcmp(clauses[i].name, name) == 0) {
            return &clauses[i];
        }
    }
    return NULL;
}

static bool can_run(const memrt_allocator_t *table, const clause_t *clause)
{
    return clause->run == clause_table || (table->alloc != NULL && table->free != NULL);
}

static void try(const memrt_allocator_t *table, const clause_t *clause)
{
    static const char *const words[] = {"pass", "fail", "not applicable"};
    trial_t trial;
    trial_start(&trial, table);
    if (can_run(table, clause)) {
        clause->run(&trial);
    } else {
        trial_conclude(&trial, VERDICT_NOT_APPLICABLE, "`alloc` or `free` is missing");
    }
    printf("%s\t%s\n", words[trial.verdict], trial.saw);
    fflush(stdout);
}

int print_verdict(const memrt_allocator_t *table, const char *name)
{
    memrt_allocator_t copy = {0};
    const clause_t *clause = find_clause(name);
    if (clause == NULL) {
        fprintf(stderr, "%s: unknown clause\n", name);
        return 2;
    }
    size_t size = table->struct_size;
    memcpy(&copy, table, size < sizeof(copy) ? size : sizeof(copy));
    try(&copy, clause);
    return 0;
}
