/// Model: an interpreter writes to memory and sets the callback that writes its running calls,
/// while another thread calls the callback for a message. The callback sees the written memory.

#include "tests/models/model.h"

#include <unistd.h>

#include "runtime/base/check.h"

/* The checker lacks copies between types, and texts. All copies are of one word. */
#define memcpy(to, from, bytes) (*(size_t *)(to) = *(const size_t *)(from))
#define strlen(text) ((size_t)1)
#undef write
#define write(file, text, length) (1)
#ifndef STDERR_FILENO
#define STDERR_FILENO 2
#endif
#define memrt__abort static unused_abort
#include "runtime/base/check.c"

static size_t written;

static void write_calls(int file)
{
    (void)file;
    assert(written == 1);
}

static void *set_callback(void *context)
{
    written = 1;
    memrt__set_write_frames(write_calls);
    return context;
}

int main(void)
{
    pthread_t setter = model_thread(set_callback, NULL);
    memrt__write_running_calls("called at");
    model_join(setter);
    return 0;
}
