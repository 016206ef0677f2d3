#include "support/suite.h"

#include <string.h>

#include <memrt/allocator.h>

#include "runtime/base/poison.h"

static uintptr_t address_of(unsigned char byte)
{
    uintptr_t address;
    memset(&address, byte, sizeof(address));
    return address;
}

TEST(an_address_made_of_poison_says_where_it_was_read)
{
    ck_assert_str_eq(memrt__poison_text(address_of(MEMRT_POISON_FREED)),
                     "0xDD..: read from memory of a block that was released");
    ck_assert_str_eq(memrt__poison_text(address_of(MEMRT_POISON_FRESH)),
                     "0xCD..: read from memory that was never written");
    ck_assert_str_eq(memrt__poison_text(address_of(MEMRT_POISON_FENCE)),
                     "0xFD..: read from outside of a block");
}

TEST(an_offset_does_not_hide_the_poison)
{
    ck_assert_ptr_nonnull(memrt__poison_text(address_of(MEMRT_POISON_FREED) - 64));
    ck_assert_ptr_nonnull(memrt__poison_text(address_of(MEMRT_POISON_FREED) + 4096));
}

TEST(other_addresses_are_not_poison)
{
    int here;
    ck_assert_ptr_null(memrt__poison_text(0));
    ck_assert_ptr_null(memrt__poison_text(UINTPTR_MAX));
    ck_assert_ptr_null(memrt__poison_text((uintptr_t)&here));
    ck_assert_ptr_null(memrt__poison_text(0xDD));
}
