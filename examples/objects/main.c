/* C program that calls the functions of kernels.py. README.md has the commands. */

#include <inttypes.h>
#include <stdio.h>

#include "kernels.h"

enum { ROWS = 4, COLUMNS = 6 };

/// Return the array of an image in C memory, which the caller keeps.
static memrt_nrt_array2_t describe(double *pixels)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    return memrt_nrt_array2_borrow(pixels, sizeof(*pixels), shape);
}

/// Print the status of a call, and return whether the call succeeded.
static bool succeeded(const char *function, int32_t status)
{
    if (status != KERNELS_OK) {
        printf("%s: %s\n", function, kernels_status_name(status));
    }
    return status == KERNELS_OK;
}

static void print_halved(const memrt_nrt_array2_t *image)
{
    memrt_nrt_array2_t halved;
    if (succeeded("halve", halve(image, &halved))) {
        const double *pixels = halved.data;
        printf("halved: %" PRId64 " x %" PRId64 ", first %.2f, last %.2f\n", halved.shape[0],
               halved.shape[1], pixels[0], pixels[halved.nitems - 1]);
        NRT_MemInfo_release(halved.meminfo);
    }
}

static void print_statistics(void)
{
    memrt_stats_t stats = {.struct_size = sizeof(stats)};
    if (NRT_get_api()->stats_read(NULL, &stats) == MEMRT_OK) {
        printf("memrt: %" PRIu64 " blocks allocated, %" PRIu64 " bytes live\n", stats.alloc,
               stats.live);
    }
}

int main(void)
{
    double pixels[ROWS * COLUMNS], flat[ROWS * COLUMNS] = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        pixels[i] = i;
    }
    memrt_nrt_array2_t image = describe(pixels), black = describe(flat);
    double deviation;
    if (succeeded("contrast", contrast(&image, &deviation))) {
        printf("contrast: %.2f\n", deviation);
    }
    if (succeeded("stretch", stretch(&image))) {
        print_halved(&image);
    }
    succeeded("stretch", stretch(&black));
    print_statistics();
    return 0;
}
