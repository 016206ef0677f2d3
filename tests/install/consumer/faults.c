/* A program with a mistake, for tools that check memory: `faults CREATOR FAULT SIZE`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memrt/memrt.h>

static const memrt_api_t *api;

/* A buffer of any creator: a block, or a MemInfo with data. */
typedef struct buffer {
    memrt_meminfo_t *mi;
    volatile char *data;
} buffer_t;

__attribute__((noinline)) static buffer_t create_buffer(const char *creator, size_t size)
{
    buffer_t buffer = {NULL, NULL};
    memrt_status_t status = MEMRT_OK;
    if (strcmp(creator, "block") == 0) {
        buffer.data = api->block_alloc(NULL, size);
        return buffer;
    }
    if (strcmp(creator, "meminfo") == 0) {
        status = api->meminfo_new(size, NULL, &buffer.mi);
    } else {
        status = api->resizable_new(size / 2, NULL, &buffer.mi);
        if (status == MEMRT_OK && api->resizable_realloc(buffer.mi, size) == NULL) {
            status = MEMRT_ENOMEM;
        }
    }
    buffer.data = status == MEMRT_OK ? api->get_data(buffer.mi) : NULL;
    return buffer;
}

__attribute__((noinline)) static void delete_buffer(buffer_t buffer)
{
    if (buffer.mi != NULL) {
        api->release(buffer.mi);
    } else {
        api->block_free(NULL, (void *)(uintptr_t)buffer.data, 0);
    }
}

/* Lose a buffer. Later calls wipe the address from registers and from the stack. */
__attribute__((noinline)) static void leak_buffer(const char *creator, size_t size)
{
    (void)create_buffer(creator, size);
}

int main(int argc, char **argv)
{
    api = memrt_get_api(MEMRT_ABI_MAJOR, NULL);
    if (argc != 4 || api == NULL) {
        return 2;
    }
    const char *creator = argv[1], *fault = argv[2];
    size_t size = strtoul(argv[3], NULL, 10);
    if (strcmp(fault, "leak") == 0) {
        leak_buffer(creator, size);
        delete_buffer(create_buffer(creator, size));
        return 0;
    }
    buffer_t buffer = create_buffer(creator, size);
    if (strcmp(fault, "overflow") == 0) {
        buffer.data[size] = 1;
    } else if (strcmp(fault, "underflow") == 0) {
        buffer.data[-1] = 1;
    } else if (strcmp(fault, "uninitialised") == 0) {
        puts(buffer.data[size - 1] == 7 ? "seven" : "other");
    } else if (strcmp(fault, "write_freed") == 0) {
        delete_buffer(buffer);
        buffer.data[size / 2] = 1;
        return 0;
    } else if (strcmp(fault, "read_freed") == 0) {
        delete_buffer(buffer);
        return buffer.data[size / 2] == 7;
    }
    buffer.data[0] = buffer.data[size - 1] = 1;
    delete_buffer(buffer);
    return 0;
}
