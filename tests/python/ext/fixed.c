/// A Python with a fixed address, which stores the address of malloc(). The linker then gives the
/// program a jump to malloc(), and the jump is the malloc() that the loader finds.

#include <Python.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    void *(*volatile address)(size_t) = malloc;
    return address == NULL ? 1 : Py_BytesMain(count, arguments);
}
