#include "buffer/buffer_items.h"

#include <string.h>

#include "support/free_threading.h"
#include "support/oom_error.h"

/// Bytes for record and header of memrt in the first page.
#define LEAD ((size_t)128)
#define STEP ((size_t)4096)

/// Return the bytes of the next growth: at least `needed`, at least half more than before, and up
/// to the end of a page.
static size_t choose_capacity(const memrt_buffer_object_t *self, size_t needed)
{
    size_t before = memrt__api()->size(self->mi);
    size_t least = before + before / 2;
    least = least < needed ? needed : least;
    least = (least + LEAD + STEP - 1) / STEP * STEP - LEAD;
    return least < self->reserve ? least : self->reserve;
}

/// Grow to exactly `needed` bytes, after memrt freed memory. -1 with an exception.
static int grow_by_reclaim(memrt_buffer_object_t *self, size_t needed)
{
    self->growing = 1;
    void *data = memrt__api()->resizable_realloc(self->mi, needed);
    self->growing = 0;
    if (data != NULL) {
        return 0;
    }
    memrt__raise_out_of_memory(memrt__api()->policy_of(self->mi), needed, NULL);
    return -1;
}

/// Make room for `count` items more. -1 with MemoryError, and nothing changed.
static int make_room(memrt_buffer_object_t *self, size_t count)
{
    size_t needed;
    if (__builtin_mul_overflow(self->length + count, self->itemsize, &needed) ||
        needed > self->reserve) {
        PyErr_Format(PyExc_MemoryError,
                     "items must fit the reserve of %zu bytes, got %zu items of %zu bytes: create "
                     "the buffer with a larger reserve",
                     self->reserve, self->length + count, self->itemsize);
        return -1;
    }
    if (needed <= memrt__api()->size(self->mi)) {
        return 0;
    }
    if (self->growing) { /* the growth in progress would end below the needed size */
        PyErr_SetString(PyExc_MemoryError, "buffer must not grow while memory is freed for its "
                                           "growth");
        return -1;
    }
    if (memrt__api()->resizable_try_expand(self->mi, choose_capacity(self, needed)) == MEMRT_OK) {
        return 0;
    }
    return grow_by_reclaim(self, needed);
}

int memrt__buffer_add(memrt_buffer_object_t *self, const void *items, size_t count)
{
    int result;
    MEMRT_BEGIN_CRITICAL_SECTION(self);
    result = make_room(self, count);
    if (result == 0) {
        memcpy(self->data + self->length * self->itemsize, items, count * self->itemsize);
        self->length += count;
    }
    MEMRT_END_CRITICAL_SECTION();
    return result;
}

/// Check that no view and no other holder of the memory exists. -1 with BufferError.
static int check_alone(const memrt_buffer_object_t *self)
{
    size_t others = memrt__api()->refcount(self->mi) - 1;
    if (others == 0 && !self->growing) {
        return 0;
    }
    PyErr_Format(PyExc_BufferError,
                 "buffer must have no views to shrink, got %zu references: delete the arrays and "
                 "memoryviews over the buffer, or copy them",
                 others);
    return -1;
}

static int shrink(memrt_buffer_object_t *self, size_t length)
{
    if (check_alone(self) < 0) {
        return -1;
    }
    size_t bytes = self->length * self->itemsize;
    self->written = bytes > self->written ? bytes : self->written;
    self->length = length;
    return 0;
}

static int expand(memrt_buffer_object_t *self, size_t length)
{
    size_t before = self->length;
    if (make_room(self, length - before) < 0) {
        return -1;
    }
    size_t start = before * self->itemsize, end = length * self->itemsize;
    end = end < self->written ? end : self->written;
    if (start < end) {
        memset(self->data + start, 0, end - start);
    }
    self->length = length;
    return 0;
}

int memrt__buffer_resize(memrt_buffer_object_t *self, size_t length)
{
    int result = 0;
    MEMRT_BEGIN_CRITICAL_SECTION(self);
    if (length != self->length) {
        result = length < self->length ? shrink(self, length) : expand(self, length);
    }
    MEMRT_END_CRITICAL_SECTION();
    return result;
}

int memrt__buffer_fit(memrt_buffer_object_t *self)
{
    int result;
    MEMRT_BEGIN_CRITICAL_SECTION(self);
    result = check_alone(self);
    if (result == 0 &&
        memrt__api()->resizable_try_shrink(self->mi, self->length * self->itemsize) != MEMRT_OK) {
        result = check_alone(self); /* 0: another holder came and went meanwhile */
    }
    MEMRT_END_CRITICAL_SECTION();
    return result;
}
