/// Write the branch counters of gcov before abort() and _exit(), because these calls end many child
/// processes of tests. The linker wraps both calls in the test programs of coverage builds.

void __gcov_dump(void);
_Noreturn void __real_abort(void);
_Noreturn void __wrap_abort(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap_abort(void)
{
    __gcov_dump();
    __real_abort();
}

_Noreturn void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
