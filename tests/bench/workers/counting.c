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
