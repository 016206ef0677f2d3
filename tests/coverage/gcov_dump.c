/// Programs that count branches write what they counted also when they abort or leave by _exit, as
/// the children of tests do: the tests are linked with both calls wrapped.

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
