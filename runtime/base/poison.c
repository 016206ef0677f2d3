#include "runtime/base/poison.h"

#include <stddef.h>

#include <memrt/allocator.h>

typedef struct poison {
    unsigned char byte;
    const char *text;
} poison_t;

static const poison_t poisons[] = {
    {MEMRT_POISON_FRESH, "0xCD..: read from memory that was never written"},
    {MEMRT_POISON_FREED, "0xDD..: read from memory of a block that was released"},
    {MEMRT_POISON_FENCE, "0xFD..: read from outside of a block"},
};

/// The last bytes may have an offset in them that somebody added.
static uintptr_t upper(uintptr_t address)
{
    return address >> 16;
}

const char *memrt__poison_text(uintptr_t address)
{
    for (size_t i = 0; i < sizeof(poisons) / sizeof(poisons[0]); i++) {
        if (upper(address) == upper(UINTPTR_MAX / 0xFF * poisons[i].byte)) {
            return poisons[i].text;
        }
    }
    return NULL;
}
