#include "support/advice.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/suite.h"

#define FLAGS "VmFlags:"

/// Read the address range and the advice of the next mapping in smaps. Returns false at the end of
/// the file.
static bool read_next_mapping(FILE *file, uintptr_t *start, uintptr_t *end, advice_t *advice)
{
    char line[4096];
    while (fgets(line, sizeof(line), file) != NULL) {
        uintptr_t from, to;
        if (sscanf(line, "%zx-%zx ", &from, &to) == 2) {
            *start = from;
            *end = to;
        }
        if (strncmp(line, FLAGS, strlen(FLAGS)) == 0) {
            *advice = strstr(line, " hg") != NULL   ? ADVICE_HUGE
                      : strstr(line, " nh") != NULL ? ADVICE_SMALL
                                                    : ADVICE_NONE;
            return true;
        }
    }
    return false;
}

static FILE *open_smaps(void)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    REQUIRE(file != NULL);
    return file;
}

advice_t advice_at(const void *address)
{
    uintptr_t start, end;
    advice_t advice, found = ADVICE_NONE;
    FILE *file = open_smaps();
    while (read_next_mapping(file, &start, &end, &advice)) {
        if (start <= (uintptr_t)address && (uintptr_t)address < end) {
            found = advice;
        }
    }
    fclose(file);
    return found;
}

size_t advice_count_huge(void)
{
    uintptr_t start, end;
    advice_t advice;
    size_t count = 0;
    FILE *file = open_smaps();
    while (read_next_mapping(file, &start, &end, &advice)) {
        count += advice == ADVICE_HUGE;
    }
    fclose(file);
    return count;
}

bool advice_is_taken(void)
{
    return access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) == 0;
}
