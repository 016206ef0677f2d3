/// Select the instructions that callgrind counts. Loaded by ctypes; no effect outside of valgrind.

#include <valgrind/callgrind.h>

/// Reset the counts to zero and start counting.
void count_anew(void)
{
    CALLGRIND_ZERO_STATS;
    CALLGRIND_START_INSTRUMENTATION;
}

/// Dump the counts under `name` and stop counting.
void write_counted(const char *name)
{
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
}
