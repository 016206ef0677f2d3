#include "support/suite.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/os/own_stack.h"

TEST(stack_of_the_main_thread_ends_above_its_locals)
{
    int local;
    memrt__own_stack_start();
    uintptr_t here = (uintptr_t)&local, end = memrt__own_stack_end(here, false);
    if (SUITE_ADDRESS_SANITIZER) {
        here = end - 8; /* AddressSanitizer may keep locals outside of the stack */
    }
    ck_assert_uint_gt(end, here);
    ck_assert_uint_eq(end % 8, 0);
    ck_assert_uint_eq(memrt__own_stack_end(end, true), 0);
    ck_assert_uint_eq(memrt__own_stack_end(end - ((uintptr_t)1 << 30), true), 0);
}

static void *find_bounds(void *other)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    REQUIRE(memrt__own_stack_end(here, false) == 0); /* not found so far */
    uintptr_t end = memrt__own_stack_end(here, true);
    REQUIRE(end > here && end % 8 == 0);
    REQUIRE(memrt__own_stack_end(here, false) == end);
    REQUIRE(memrt__own_stack_end((uintptr_t)other, true) == 0);
    REQUIRE(memrt__own_stack_end(end, true) == 0);
    return NULL;
}

TEST(thread_finds_its_bounds_once)
{
    pthread_t thread;
    int *other = malloc(sizeof(*other));
    memrt__own_stack_start();
    ck_assert_int_eq(pthread_create(&thread, NULL, find_bounds, other), 0);
    pthread_join(thread, NULL);
    free(other);
}
