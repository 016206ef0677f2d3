#include "runtime/observe/address_hint.h"

#include <stddef.h>

#include <memrt/allocator.h>

typedef struct poison {
    unsigned char byte;
    const char *text;
} poison_t;

static const poison_t poisons[] = {
    {MEMRT_POISON_FRESH, "0xCD..: read from uninitialized memory"},
    {MEMRT_POISON_FREED, "0xDD..: read from a freed block"},
    {MEMRT_POISON_REDZONE, "0xFD..: read from a redzone, outside of a block"},
};

/// Drop the low 16 bits, which differ where an offset was added to a poisoned pointer.
static uintptr_t drop_low_bits(uintptr_t address)
{
    return address >> 16;
}

const char *memrt__address_hint(uintptr_t address)
{
    for (size_t i = 0; i < sizeof(poisons) / sizeof(poisons[0]); i++) {
        if (drop_low_bits(address) == drop_low_bits(UINTPTR_MAX / 0xFF * poisons[i].byte)) {
            return poisons[i].text;
        }
    }
    return NULL;
}
