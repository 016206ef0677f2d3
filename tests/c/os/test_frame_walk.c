#include "support/suite.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/os/frame_walk.h"
#include "runtime/os/unwind.h"

#define MOST 64

/// Result of one collection: the frames by the walk and by the unwinder, and the walk's own answer.
typedef struct stacks {
    void *frames[2][MOST];
    int counts[2];
    int walked; ///< of memrt__frame_walk(), or -1
} stacks_t;

typedef int (*unwind_fn)(void **frames, int max);

__attribute__((noinline)) static int walk_here(bool may_find)
{
    int count = -1;
#if MEMRT__FRAME_WALK
    void *frames[MOST];
    memrt__frame_registers_t here;
    MEMRT__FRAME_CAPTURE(here);
    count = memrt__frame_walk(&here, frames, MOST, may_find);
#else
    (void)may_find;
#endif
    __asm__ volatile("" ::: "memory"); /* not a tail call */
    return count;
}

/// Collect twice from one call instruction, so that all frames but the innermost are equal.
__attribute__((noinline)) static int collect(void *context)
{
    static const unwind_fn unwinders[] = {memrt__unwind, memrt__unwind_by_library};
    stacks_t *stacks = context;
    for (volatile int i = 0; i < 2; i++) {
        int count = unwinders[i](stacks->frames[i], MOST);
        stacks->counts[i] = count;
    }
    int walked[2] = {0, 0};
    for (volatile int i = 0; i < 2; i++) {
        int count = walk_here(i == 0);
        walked[i] = count;
    }
    REQUIRE(walked[1] == walked[0]); /* all layouts are in the table */
    stacks->walked = walked[0];
    return 1;
}

/// Expect equal frames. `is_walked`: the walk finds the frames without the unwinder.
static void expect_equal(const stacks_t *stacks, bool is_walked)
{
    if (stacks->counts[1] <= 0) {
        return; /* no unwinder */
    }
    REQUIRE(stacks->counts[0] == stacks->counts[1]);
    for (int i = 1; i < stacks->counts[0]; i++) {
        REQUIRE(stacks->frames[0][i] == stacks->frames[1][i]);
    }
    REQUIRE(stacks->counts[0] > 3);
    REQUIRE(!MEMRT__FRAME_WALK || (stacks->walked > 0) == is_walked);
}

__attribute__((noinline)) static int call_plain(int depth, stacks_t *stacks)
{
    int result = depth == 0 ? collect(stacks) : call_plain(depth - 1, stacks);
    __asm__ volatile("" ::: "memory");
    return result + 1;
}

__attribute__((noinline)) static int call_with_alloca(size_t size, stacks_t *stacks)
{
    char *room = alloca(size);
    memset(room, 1, size);
    int result = call_plain(2, stacks);
    __asm__ volatile("" : : "r"(room) : "memory");
    return result;
}

TEST(walk_finds_frames_of_plain_functions)
{
    stacks_t stacks;
    call_plain(8, &stacks);
    expect_equal(&stacks, true);
}

TEST(walk_finds_frames_with_a_frame_pointer)
{
    stacks_t stacks;
    for (size_t size = 1; size < 5000; size = size * 3 + 1) {
        call_with_alloca(size, &stacks);
        expect_equal(&stacks, true);
    }
}

static stacks_t *shared; /* of callbacks without an argument */

static int compare(const void *a, const void *b)
{
    (void)a;
    (void)b;
    return collect(shared) - 1;
}

TEST(walk_passes_frames_of_the_c_library)
{
    stacks_t stacks;
    int numbers[] = {2, 1};
    shared = &stacks;
    qsort(numbers, 2, sizeof(numbers[0]), compare);
    bool has_frame_of_tool = SUITE_THREAD_SANITIZER || SUITE_ADDRESS_SANITIZER;
    expect_equal(&stacks, has_frame_of_tool ? stacks.walked > 0 : true);
}

static void *collect_in_thread(void *context)
{
    stacks_t stacks;
    (void)context;
    call_with_alloca(100, &stacks);
    expect_equal(&stacks, true);
    return NULL;
}

TEST(walk_of_a_thread_ends_at_its_first_function)
{
    pthread_t thread;
    if (SUITE_THREAD_SANITIZER) {
        return; /* does not survive libunwind's destructor of a thread that ends */
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, collect_in_thread, NULL), 0);
    pthread_join(thread, NULL);
}

static void collect_in_handler(int number)
{
    (void)number;
    collect(shared);
}

static void raise_with(int flags)
{
    struct sigaction action = {.sa_handler = collect_in_handler, .sa_flags = flags}, before;
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &before), 0);
    raise(SIGUSR1);
    ck_assert_int_eq(sigaction(SIGUSR1, &before, NULL), 0);
}

TEST(unwinder_passes_the_frame_of_a_signal)
{
    stacks_t stacks;
    shared = &stacks;
    raise_with(0);
    expect_equal(&stacks, false);
}

TEST(unwinder_passes_an_alternate_stack)
{
    stacks_t stacks;
    shared = &stacks;
    size_t size = (size_t)1 << 18;
    stack_t other = {.ss_sp = malloc(size), .ss_size = size}, before;
    ck_assert_int_eq(sigaltstack(&other, &before), 0);
    raise_with(SA_ONSTACK);
    ck_assert_int_eq(sigaltstack(&before, NULL), 0);
    free(other.ss_sp);
    expect_equal(&stacks, false);
}

typedef int (*plugin_fn)(int (*callback)(void *context), void *context);
static plugin_fn plugin_call;

static int collect_through_again(void *context)
{
    int result = plugin_call(collect, context);
    __asm__ volatile("" ::: "memory"); /* not a tail call */
    return result;
}

/// Collect through a library twice, and unload the library.
static void collect_through(const char *path, stacks_t *stacks)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    *(void **)&plugin_call = dlsym(library, "plugin_call");
    ck_assert_int_eq(plugin_call(collect_through_again, stacks), 1);
    dlclose(library);
}

/* The libraries differ in the size of a frame alone. At the same address, all return addresses are
 * equal. libunwind 1.6.2 takes the frame of the first library for the frame of the other. */
TEST(library_at_the_address_of_another_has_right_frames)
{
    stacks_t first, second;
    bool is_walked = dlsym(RTLD_DEFAULT, "_dl_find_object") != NULL;
    collect_through(MEMRT_FRAME_PLUGIN, &first);
    expect_equal(&first, is_walked);
    plugin_fn address = plugin_call;
    for (int i = 0; i < 10 && first.counts[0] > 0 && is_walked; i++) {
        collect_through(i % 2 == 0 ? MEMRT_OTHER_FRAME_PLUGIN : MEMRT_FRAME_PLUGIN, &second);
        ck_assert_int_eq(second.counts[0], first.counts[0]);
        ck_assert_int_eq(second.walked, first.walked);
        for (int frame = 1; frame < 5 && plugin_call == address; frame++) {
            ck_assert_ptr_eq(second.frames[0][frame], first.frames[0][frame]);
        }
    }
}

TEST(unwinder_passes_a_library_without_a_build_id)
{
    stacks_t stacks;
    collect_through(MEMRT_NAMELESS_FRAME_PLUGIN, &stacks);
    expect_equal(&stacks, false);
}

#if MEMRT__FRAME_WALK

TEST(walk_writes_up_to_the_limit)
{
    void *frames[MOST] = {NULL};
    memrt__frame_registers_t here;
    memrt__frame_walk_start();
    MEMRT__FRAME_CAPTURE(here);
    for (int i = 0; i < 1000; i++) { /* gcov may lose some calls to processes killed in a walk */
        ck_assert_int_eq(memrt__frame_walk(&here, frames, 0, true), 0);
    }
    ck_assert_int_eq(memrt__frame_walk(&here, frames, 1, true), 1);
    ck_assert_ptr_eq(frames[0], (void *)here.pc);
    ck_assert_int_eq(memrt__frame_walk(&here, frames, 3, true), 3);
    ck_assert_ptr_null(frames[3]);
}

TEST(missing_layout_is_found_only_on_request)
{
    memrt__frame_walk_start();
    for (volatile int i = 0; i < 3; i++) {
        int count = walk_here(i == 1);
        ck_assert_int_eq(count > 0, i != 0);
    }
}

/* Registers that do not fit the stack. Each change makes the walk end within the stack. */
TEST(wrong_registers_end_the_walk_inside_the_stack)
{
    void *frames[MOST];
    memrt__frame_registers_t here, wrong;
    if (!suite_measures_memory()) {
        return; /* such walks read words that were never written, which Valgrind reports */
    }
    memrt__frame_walk_start();
    MEMRT__FRAME_CAPTURE(here);
    ck_assert_int_gt(memrt__frame_walk(&here, frames, MOST, true), 0);
    for (uintptr_t moved = 0; moved < 4096; moved += 8) {
        wrong = here;
        wrong.rsp += moved;
        wrong.rbp = here.rsp + moved;
        ck_assert_int_le(memrt__frame_walk(&wrong, frames, MOST, true), MOST);
        for (uintptr_t rbp = 0; rbp < 3; rbp++) {
            wrong.rbp = UINTPTR_MAX - 20 * rbp;
            ck_assert_int_le(memrt__frame_walk(&wrong, frames, MOST, true), MOST);
        }
    }
    wrong = here;
    wrong.pc = UINTPTR_MAX;
    ck_assert_int_eq(memrt__frame_walk(&wrong, frames, MOST, true), -1);
}

/// Return how a walk ends that starts in a function with frame pointer, with an rbp at a distance
/// from the stack pointer. The CFA of such a function is two words above rbp.
__attribute__((noinline)) static int walk_with_rbp(size_t size, uintptr_t distance)
{
    __asm__ volatile("" : "+r"(size)); /* with a constant size, clang needs no frame pointer */
    char *room = alloca(size);
    void *frames[MOST];
    memrt__frame_registers_t here;
    __asm__ volatile("" : : "r"(room) : "memory");
    MEMRT__FRAME_CAPTURE(here);
    here.rbp = here.rsp + distance;
    return memrt__frame_walk(&here, frames, MOST, true);
}

TEST(wrong_frame_pointer_ends_the_walk)
{
    memrt__frame_walk_start();
    ck_assert_int_eq(walk_with_rbp(100, (uintptr_t)0 - 4096), -1); /* CFA below the stack */
    ck_assert_int_eq(walk_with_rbp(100, (uintptr_t)0 - 16), -1);   /* an empty frame */
    ck_assert_int_eq(walk_with_rbp(100, (uintptr_t)0 - 8), -1);    /* no room for rbp */
    ck_assert_int_eq(walk_with_rbp(100, 1), -1);                   /* not aligned */
    ck_assert_int_eq(walk_with_rbp(100, (uintptr_t)1 << 40), -1);  /* above the stack */
}

#endif
