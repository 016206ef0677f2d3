#include "support/suite.h"

#include <dlfcn.h>
#include <stdio.h>

#include "runtime/base/unwind.h"

#define MOST 32

/// The calls from here on, which are in the caller's object.
__attribute__((noinline)) static size_t unwind_here(void **frames, size_t max)
{
    int count = memrt__unwind(frames, (int)max);
    __asm__ volatile("" ::: "memory"); /* not a tail call */
    ck_assert_int_ge(count, 0);
    return (size_t)count;
}

TEST(calls_are_found_from_the_innermost_on_up_to_the_number_asked_for)
{
    void *all[MOST], *some[3];
    size_t count = unwind_here(all, MOST);
    if (count == 0) {
        return; /* neither libunwind nor the C library unwinds here */
    }
    ck_assert_uint_gt(count, 3);
    ck_assert_uint_eq(unwind_here(some, 3), 3);
    ck_assert_uint_eq(unwind_here(some, 0), 0);
    uintptr_t into = (uintptr_t)all[0] - (uintptr_t)unwind_here;
    ck_assert_msg(into < 4096 || (uintptr_t)all[1] - (uintptr_t)unwind_here < 4096,
                  "%p is not in the function at %p", all[0], (void *)(uintptr_t)unwind_here);
}

TEST(calls_of_the_library_itself_are_counted_as_long_as_they_come_first)
{
    void *here = (void *)(uintptr_t)memrt__unwind, *libc = (void *)(uintptr_t)puts;
    void *frames[] = {here, here, libc, here};
    ck_assert_uint_eq(memrt__unwind_own(frames, 4), 2);
    ck_assert_uint_eq(memrt__unwind_own(frames, 1), 1);
    ck_assert_uint_eq(memrt__unwind_own(frames + 2, 2), 0);
    ck_assert_uint_eq(memrt__unwind_own(frames, 0), 0);
}

TEST(libunwind_is_taken_where_it_is_installed)
{
    void *library = dlopen("libunwind.so.8", RTLD_LAZY);
    ck_assert_int_eq(memrt__unwind_is_fast(), library != NULL);
}
