/// Model: two threads unwind for the first time. One of them loads the unwinder, and both find the
/// loaded unwinder.

#include "tests/models/os/unwind.h"

static int find_one_frame(void **frames, int max)
{
    (void)frames;
    return max;
}

void *dlopen(const char *file, int mode)
{
    (void)file, (void)mode;
    return gates;
}

void *dlsym(void *library, const char *name)
{
    (void)library, (void)name;
    return (void *)find_one_frame;
}

/// Fail to create keys, as with many keys in use.
int pthread_key_create(pthread_key_t *key, void (*destructor)(void *value))
{
    (void)key, (void)destructor;
    return 1;
}

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *object, size_t size, void *context),
                    void *context)
{
    (void)visit, (void)context;
    own_end = 1;
    return 1;
}

static bool can_walk;

void memrt__frame_walk_start(void)
{
    can_walk = true;
}

int memrt__frame_walk(const memrt__frame_registers_t *from, void **frames, int max, bool may_find)
{
    (void)from, (void)frames, (void)may_find;
    assert(can_walk);
    return max;
}

static void *const no_frames[1];

static void *find_frame(void *context)
{
    assert(memrt__unwind_is_fast() && unwind == find_one_frame);
    assert(memrt__unwind_own(no_frames, 1) == 1);
    return context;
}

int main(void)
{
    void *frames[1];
    pthread_t other = model_thread(find_frame, NULL);
    assert(memrt__unwind(frames, 1) == 1);
    model_join(other);
    return 0;
}
