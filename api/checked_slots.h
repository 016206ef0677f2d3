#ifndef MEMRT_API_CHECKED_SLOTS_H
#define MEMRT_API_CHECKED_SLOTS_H

#include <memrt/external.h>

#include "api/slots.h"

/// Functions of the checking table. memrt__checked_<slot> verifies every MemInfo, block, policy and
/// scope among its arguments, and then calls the slot of the plain table. Misuse ends the process
/// with a message about the call and the object.

/* Declare a function for each row of CHECKED, with the type of the slot. */
#define MEMRT__PLAIN_SLOT(slot, function)
#define MEMRT__CHECKED_SLOT(slot, function)                                                        \
    __typeof__(*((memrt_api_t *)0)->slot) memrt__checked_##slot;
MEMRT__SLOTS(MEMRT__PLAIN_SLOT, MEMRT__CHECKED_SLOT)

#endif
