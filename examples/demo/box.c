#include "box.h"

/// Sums over the rectangle from the origin to each pixel. The first row and column are zeros.
typedef struct integral {
    uint64_t *sums; ///< (height + 1) * (width + 1)
    size_t stride;  ///< width + 1
} integral_t;

static void integrate(integral_t integral, const uint8_t *pixels, size_t height, size_t width)
{
    for (size_t y = 0; y < height; y++) {
        const uint64_t *above = integral.sums + y * integral.stride;
        uint64_t *here = integral.sums + (y + 1) * integral.stride;
        uint64_t row = 0;
        for (size_t x = 0; x < width; x++) {
            row += pixels[y * width + x];
            here[x + 1] = above[x + 1] + row;
        }
    }
}

static uint64_t sum(integral_t integral, size_t top, size_t left, size_t bottom, size_t right)
{
    const uint64_t *upper = integral.sums + top * integral.stride;
    const uint64_t *lower = integral.sums + bottom * integral.stride;
    return lower[right] - lower[left] - upper[right] + upper[left];
}

static size_t first(size_t centre, size_t radius)
{
    return centre > radius ? centre - radius : 0;
}

static size_t past_last(size_t centre, size_t radius, size_t length)
{
    return length - centre - 1 > radius ? centre + radius + 1 : length;
}

static void average(integral_t integral, uint8_t *means, size_t height, size_t width, size_t radius)
{
    for (size_t y = 0; y < height; y++) {
        size_t top = first(y, radius), bottom = past_last(y, radius, height);
        for (size_t x = 0; x < width; x++) {
            size_t left = first(x, radius), right = past_last(x, radius, width);
            uint64_t count = (bottom - top) * (right - left);
            means[y * width + x] = (uint8_t)(sum(integral, top, left, bottom, right) / count);
        }
    }
}

/// Return the bytes of the integral of an image, or 0 on integer overflow.
static size_t integral_size(size_t height, size_t width)
{
    size_t cells;
    if (height == SIZE_MAX || width == SIZE_MAX ||
        __builtin_mul_overflow(height + 1, width + 1, &cells) ||
        __builtin_mul_overflow(cells, sizeof(uint64_t), &cells))
        return 0;
    return cells;
}

memrt_status_t box_mean(const memrt_api_t *api, const uint8_t *pixels, size_t height, size_t width,
                        size_t radius, memrt_meminfo_t **out)
{
    memrt_new_options_t scratch = {sizeof scratch, .zeroed = 1, .name = "integral image"};
    memrt_new_options_t result = {sizeof result, .name = "box mean"};
    memrt_meminfo_t *sums, *means;
    size_t bytes = integral_size(height, width);
    if (bytes == 0)
        return MEMRT_ENOMEM;

    memrt_status_t status = api->meminfo_new(bytes, &scratch, &sums);
    if (status != MEMRT_OK)
        return status;
    status = api->meminfo_new(height * width, &result, &means);
    if (status != MEMRT_OK)
        goto release_sums;

    integral_t integral = {api->get_data(sums), width + 1};
    integrate(integral, pixels, height, width);
    average(integral, api->get_data(means), height, width, radius);
    *out = means;
release_sums:
    api->release(sums);
    return status;
}
