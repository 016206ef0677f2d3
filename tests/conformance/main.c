/* Run one conformance clause on an allocator of a shared library.

   check_allocator                     prints all clauses: name, tab, requirement
   check_allocator LIBRARY SYMBOL NAME runs the clause NAME on the table that the library exports.
                                       Prints pass, fail or not applicable, then tab and reason.

   The exit status is 0 for any verdict, and 2 if the clause cannot run. Each process runs a single
   clause, so that an allocator that crashes or hangs affects no other clause. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/clauses.h"

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(2);
}

static const clause_t *find_clause(const char *name)
{
    for (size_t i = 0; i < clause_count; i++) {
        if (strcmp(clauses[i].name, name) == 0) {
            return &clauses[i];
        }
    }
    give_up(name, "unknown clause");
}

/// Load the library and return a copy of the table. The copy has at most the bytes in the table's
/// struct_size. Missing fields are zero.
static memrt_allocator_t load(const char *library, const char *symbol)
{
    memrt_allocator_t table = {0};
    void *loaded = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (loaded == NULL) {
        give_up("cannot load", dlerror());
    }
    const memrt_allocator_t *exported = dlsym(loaded, symbol);
    if (exported == NULL) {
        give_up("cannot find the table", dlerror());
    }
    size_t size = exported->struct_size;
    memcpy(&table, exported, size < sizeof(table) ? size : sizeof(table));
    return table;
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
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        const clause_t *clause = find_clause(argv[3]);
        memrt_allocator_t table = load(argv[1], argv[2]);
        try(&table, clause);
        return 0;
    }
    for (size_t i = 0; i < clause_count; i++) {
        printf("%s\t%s\n", clauses[i].name, clauses[i].says);
    }
    return argc == 1 ? 0 : 2;
}
