#include "support/suite.h"

#include <string.h>

#include <memrt/allocator.h>

#include "runtime/observe/address_hint.h"

static uintptr_t create_address(unsigned char byte)
{
    uintptr_t address;
    memset(&address, byte, sizeof(address));
    return address;
}

TEST(poison_text_names_the_kind_of_memory_read)
{
    ck_assert_str_eq(memrt__address_hint(create_address(MEMRT_POISON_FREED)),
                     "0xDD..: read from a freed block");
    ck_assert_str_eq(memrt__address_hint(create_address(MEMRT_POISON_FRESH)),
                     "0xCD..: read from uninitialized memory");
    ck_assert_str_eq(memrt__address_hint(create_address(MEMRT_POISON_REDZONE)),
                     "0xFD..: read from a redzone, outside of a block");
}

TEST(poison_is_recognized_with_an_offset)
{
    ck_assert_ptr_nonnull(memrt__address_hint(create_address(MEMRT_POISON_FREED) - 64));
    ck_assert_ptr_nonnull(memrt__address_hint(create_address(MEMRT_POISON_FREED) + 4096));
}

TEST(ordinary_addresses_are_not_poison)
{
    int here;
    ck_assert_ptr_null(memrt__address_hint(0));
    ck_assert_ptr_null(memrt__address_hint(UINTPTR_MAX));
    ck_assert_ptr_null(memrt__address_hint((uintptr_t)&here));
    ck_assert_ptr_null(memrt__address_hint(0xDD));
}
