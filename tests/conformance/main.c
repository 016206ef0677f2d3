/* Run one conformance clause on an allocator of a shared library.

   check_allocator                     prints all clauses: name, tab, requirement
   check_allocator LIBRARY SYMBOL NAME runs the clause NAME on the table that the library exports.
                                       Prints pass, fail or not applicable, then tab and reason.

   The exit status is 0 for any verdict, and 2 if the clause cannot run. Each process runs a single
   clause, so that an allocator that crashes or hangs affects no other clause. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/report.h"

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(2);
}

static const memrt_allocator_t *load(const char *library, const char *symbol)
{
    void *loaded = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (loaded == NULL) {
        give_up("cannot load", dlerror());
    }
    const memrt_allocator_t *exported = dlsym(loaded, symbol);
    if (exported == NULL) {
        give_up("cannot find the table", dlerror());
    }
    return exported;
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        return print_verdict(load(argv[1], argv[2]), argv[3]);
    }
    print_clauses();
    return argc == 1 ? 0 : 2;
}
