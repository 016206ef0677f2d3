/// Compute the box mean of a picture, without Python: boxmain IN.pgm OUT.pgm RADIUS

#include "box.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memrt/memrt.h>

typedef struct picture {
    size_t height, width;
    memrt_meminfo_t *pixels;
} picture_t;

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "boxmain: %s: %s\n", what, why);
    return 1;
}

static int read_pixels(const memrt_api_t *api, FILE *file, const char *path, picture_t *out)
{
    size_t size = out->height * out->width;
    out->pixels = api->allocate(size);
    if (out->pixels == NULL)
        return complain(path, "out of memory");
    if (fread(api->get_data(out->pixels), 1, size, file) == size)
        return 0;
    api->release(out->pixels);
    return complain(path, "the file ends before the last pixel");
}

static int read_picture(const memrt_api_t *api, const char *path, picture_t *out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return complain(path, strerror(errno));
    int failed;
    if (fscanf(file, "P5 %5zu %5zu 255", &out->width, &out->height) != 2 || getc(file) != '\n')
        failed = complain(
            path, "the file must be a PGM file with 8 bits per pixel and sides below 100000");
    else
        failed = read_pixels(api, file, path, out);
    fclose(file);
    return failed;
}

static int write_picture(const memrt_api_t *api, const char *path, const picture_t *picture)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return complain(path, strerror(errno));
    size_t size = picture->height * picture->width;
    int failed = fprintf(file, "P5\n%zu %zu\n255\n", picture->width, picture->height) < 0 ||
                 fwrite(api->get_data(picture->pixels), 1, size, file) != size;
    failed |= fclose(file) != 0;
    return failed ? complain(path, "cannot write the file") : 0;
}

static int convert(const memrt_api_t *api, const char *from, const char *to, size_t radius)
{
    picture_t in, out;
    if (read_picture(api, from, &in) != 0)
        return 1;
    out = in;
    memrt_status_t status =
        box_mean(api, api->get_data(in.pixels), in.height, in.width, radius, &out.pixels);
    api->release(in.pixels);
    if (status != MEMRT_OK)
        return complain(from, api->status_text(status));
    int failed = write_picture(api, to, &out);
    api->release(out.pixels);
    return failed;
}

static int report(const memrt_api_t *api)
{
    memrt_stats_t stats = {.struct_size = sizeof stats};
    memrt_status_t status = api->stats_read(NULL, &stats);
    if (status != MEMRT_OK)
        return complain("statistics", api->status_text(status));
    printf("blocks %" PRIu64 " allocated, %" PRIu64 " freed; bytes %" PRIu64 " total, %" PRIu64
           " peak, %" PRIu64 " live\n",
           stats.alloc, stats.free, stats.total, stats.peak, stats.live);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return complain("usage", "boxmain IN.pgm OUT.pgm RADIUS");
    const char *why;
    const memrt_api_t *api = memrt_get_api(MEMRT_ABI_MAJOR, &why);
    if (api == NULL)
        return complain("memrt", why);
    return convert(api, argv[1], argv[2], strtoul(argv[3], NULL, 10)) || report(api);
}
