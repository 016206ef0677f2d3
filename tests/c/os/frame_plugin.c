/// Library for tests of unloading. Two builds differ only in the size of a stack frame.

int plugin_call(int (*callback)(void *context), void *context);

/// Call a function, with a stack frame of more than FRAME_BYTES bytes.
__attribute__((visibility("default"))) int plugin_call(int (*callback)(void *context),
                                                       void *context)
{
    char buffer[FRAME_BYTES];
    __asm__ volatile("" : : "r"(buffer) : "memory");
    int result = callback(context);
    __asm__ volatile("" : : "r"(buffer) : "memory");
    return result;
}
