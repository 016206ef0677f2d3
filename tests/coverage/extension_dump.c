/// Export a function that writes the gcov counters; part of the extension in coverage builds.
/// bindings_start.py calls the function before os._exit(), which runs no functions registered with
/// atexit().

void __gcov_dump(void);

__attribute__((visibility("default"))) void memrt_coverage_dump(void);

void memrt_coverage_dump(void)
{
    __gcov_dump();
}
