/// Tells callgrind which instructions count; loaded by ctypes. Does nothing outside of valgrind.

#include <valgrind/callgrind.h>

void start_counting(void)
{
    CALLGRIND_START_INSTRUMENTATION;
}

void stop_counting(void)
{
    CALLGRIND_STOP_INSTRUMENTATION;
}

/// Count from nothing again.
void count_anew(void)
{
    CALLGRIND_ZERO_STATS;
    CALLGRIND_START_INSTRUMENTATION;
}

/// Write down what was counted, under a name, and stop.
void write_counted(const char *name)
{
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
}
