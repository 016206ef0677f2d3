/// Model: one thread sets the callback that lists frames, while another thread records a call
/// stack. The callback sees the memory that the first thread wrote before.

#include "tests/models/model.h"

#include "runtime/base/shield.h"

/* The checker refuses copies of memory and of shields. */
#define memcpy(to, from, bytes) (void)(*(size_t *)(to) = *(const size_t *)(from))
#undef MEMRT__SHIELD
#define MEMRT__SHIELD (void)0

#include "runtime/observe/sites.c"

static size_t interpreter;

static size_t list_one_frame(memrt_frame_t *out, size_t max)
{
    assert(max == 1 && interpreter == 1);
    out[0] = FRAME_OF_INTERPRETER;
    return 1;
}

static void *start_interpreter(void *context)
{
    interpreter = 1;
    memrt__site_set_frames(list_one_frame);
    return context;
}

int main(void)
{
    memrt_frame_t frame = 0;
    pthread_t starter = model_thread(start_interpreter, NULL);
    size_t count = list_interpreter_frames(&frame, 1);
    assert(count <= 1 && (count == 0) == (frame == 0));
    model_join(starter);
    assert(list_interpreter_frames(&frame, 1) == 1);
    return 0;
}
