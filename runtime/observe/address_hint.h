#ifndef MEMRT_OBSERVE_ADDRESS_HINT_H
#define MEMRT_OBSERVE_ADDRESS_HINT_H

#include <stdint.h>

/// Return a clause for a crash report if `address` looks like a pointer read from memory filled
/// with a MEMRT_POISON_... byte. Returns NULL for any other address.
const char *memrt__address_hint(uintptr_t address);

#endif
