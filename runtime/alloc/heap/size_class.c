#include "runtime/alloc/heap/size_class.h"

#define WITH_DATA(lines) (MEMRT_HEADER_SIZE + 64 * (lines))
#define FOUR(first, step)                                                                          \
    WITH_DATA(first), WITH_DATA((first) + (step)), WITH_DATA((first) + 2 * (step)),                \
        WITH_DATA((first) + 3 * (step))
#define EIGHT(first, step) FOUR(first, step), FOUR((first) + 4 * (step), step)

/// A doubling in eighths: 9 to 16 steps.
#define DOUBLING(step) EIGHT(9 * (step), step)

const uint32_t memrt__bytes_of_classes[MEMRT__CLASSES] = {
    EIGHT(1, 1),
    EIGHT(9, 1),
    DOUBLING(2),
    DOUBLING(4),
    DOUBLING(8),
    DOUBLING(16),
    DOUBLING(32),
    DOUBLING(64),
    DOUBLING(128),
    DOUBLING(256),
    DOUBLING(512),
    DOUBLING(1024),
    [MEMRT__CLASS_HEADER] = MEMRT_HEADER_SIZE,
    [MEMRT__CLASS_TINY] = 32,
    64,
    96,
};
