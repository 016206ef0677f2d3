#include "fake_driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/// A lock for all state: speed does not matter in tests.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_DEVICE = 101 };
enum { OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, INVALID_HANDLE = 400 };

#define PAGE ((size_t)4096)
#define MOST_BYTES ((size_t)1 << 40) ///< more than any device has

static int devices = 1;
static int has_pools = 1;
static unsigned faults;

/* --- Log of calls, and planned failures. --- */

static char text[1 << 20];
static size_t text_length;

typedef struct plan {
    char function[40];
    unsigned nth;
    int error, goes_on;
} plan_t;

static plan_t plans[8];

/// Call that waits for another thread.
static struct {
    char function[40]; ///< empty: no call waits
    bool waits, may_go;
    pthread_cond_t change;
} hold = {.change = PTHREAD_COND_INITIALIZER};

/// Wait if the function is the function of fake_hold(). Under the lock, which is released during
/// the wait.
static void wait_if_held(const char *function)
{
    if (strcmp(hold.function, function) != 0) {
        return;
    }
    /* The C tests replace clock_gettime() in the whole build, so the time comes from time(). */
    struct timespec until = {.tv_sec = time(NULL) + 5};
    hold.function[0] = 0;
    hold.waits = true;
    int result = 0;
    while (!hold.may_go && result == 0) {
        result = pthread_cond_timedwait(&hold.change, &lock, &until);
    }
    faults += !hold.may_go;
    hold.waits = false;
}

static int planned(const char *function)
{
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        plan_t *plan = &plans[i];
        if (plan->nth == 0 || strcmp(plan->function, function) != 0) {
            continue;
        }
        if (plan->nth > 1) {
            plan->nth--;
            return SUCCESS;
        }
        plan->nth = plan->goes_on ? 1 : 0;
        return plan->error;
    }
    return SUCCESS;
}

__attribute__((format(printf, 2, 3))) static int enter(const char *function, const char *format,
                                                       ...)
{
    va_list arguments;
    pthread_mutex_lock(&lock);
    va_start(arguments, format);
    if (text_length + 200 < sizeof(text)) {
        text_length += (size_t)snprintf(text + text_length, 60, "%s", function);
        text_length += (size_t)vsnprintf(text + text_length, 120, format, arguments);
        text[text_length++] = '\n';
        text[text_length] = 0;
    }
    va_end(arguments);
    wait_if_held(function);
    return planned(function);
}

/// Return `result` with the side effects of a real driver: a changed errno and a cancellation
/// point.
static int leave(int result)
{
    pthread_mutex_unlock(&lock);
    errno = EIO;
    pthread_testcancel();
    return result;
}

/// Begin a driver function: take the lock, log the call, and return early with a planned error.
#define ENTER(...)                                                                                 \
    do {                                                                                           \
        int planned_error = enter(__func__, __VA_ARGS__);                                          \
        if (planned_error != SUCCESS) {                                                            \
            return leave(planned_error);                                                           \
        }                                                                                          \
    } while (0)

/* --- Memory. --- */

typedef enum kind { DEVICE, MANAGED, PINNED } kind_t;

typedef struct piece {
    struct piece *next;
    uintptr_t address; ///< address for programs
    uintptr_t alias;   ///< 0: none
    char *contents;    ///< device memory: at another address
    size_t size, mapped;
    kind_t kind;
    bool freed;  ///< the address is never used again
    bool doomed; ///< a stream will free the memory
    int device;
} piece_t;

static piece_t *pieces;

static bool lies_in(uintptr_t address, uintptr_t start, size_t size)
{
    return start != 0 && address - start < size;
}

static piece_t *piece_at(uintptr_t address)
{
    for (piece_t *piece = pieces; piece != NULL; piece = piece->next) {
        if (lies_in(address, piece->address, piece->size) ||
            lies_in(address, piece->alias, piece->size)) {
            return piece;
        }
    }
    return NULL;
}

/// Return whether the process has mapped all pages of a range. msync(MS_ASYNC) writes nothing.
static bool is_mapped(uintptr_t address, size_t size)
{
    uintptr_t first = address / PAGE * PAGE;
    return size <= MOST_BYTES && msync((void *)first, address - first + size, MS_ASYNC) == 0;
}

/// Return the contents of `size` bytes at an address. Count a fault and return NULL if the memory
/// is freed, too short or not mapped.
static char *contents_at(uintptr_t address, size_t size)
{
    piece_t *piece = piece_at(address);
    if (piece == NULL && is_mapped(address, size)) {
        return (char *)address; /* host memory */
    }
    if (piece == NULL) {
        faults++;
        return NULL;
    }
    size_t offset =
        address - (lies_in(address, piece->address, piece->size) ? piece->address : piece->alias);
    if (piece->freed || size > piece->size - offset) {
        faults++;
        return NULL;
    }
    return piece->contents + offset;
}

/// Map memory by system call number, because the C tests intercept mmap and munmap.
static char *map(size_t size, int protection)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    long start = syscall(SYS_mmap, NULL, size, protection, flags, -1, 0L);
    return start == -1 ? NULL : (char *)start;
}

static int allocate(kind_t kind, size_t size, uintptr_t *address)
{
    if (size == 0 || size > MOST_BYTES) {
        return size == 0 ? INVALID_VALUE : OUT_OF_MEMORY;
    }
    piece_t *piece = calloc(1, sizeof(*piece));
    piece->kind = kind;
    piece->size = size;
    piece->mapped = (size + PAGE - 1) / PAGE * PAGE;
    piece->contents = map(piece->mapped, PROT_READ | PROT_WRITE);
    piece->address =
        (uintptr_t)(kind == DEVICE && piece->contents != NULL ? map(piece->mapped, PROT_NONE)
                                                              : piece->contents);
    if (piece->contents == NULL || piece->address == 0) {
        free(piece);
        return OUT_OF_MEMORY;
    }
    memset(piece->contents, 0xA5, size < PAGE ? size : PAGE);
    piece->next = pieces;
    pieces = piece;
    *address = piece->address;
    return SUCCESS;
}

/// Free a piece. The address stays mapped without access rights, so that no later mapping reuses
/// the address.
static void free_piece(piece_t *piece)
{
    piece->freed = true;
    if (piece->kind == DEVICE) {
        (void)syscall(SYS_munmap, piece->contents, piece->mapped);
    } else {
        (void)mprotect(piece->contents, piece->mapped, PROT_NONE);
    }
    piece->contents = NULL;
}

/// Return a piece that may be freed. Count a fault and return NULL if there is no such piece.
static piece_t *piece_to_free(uintptr_t address, bool pinned)
{
    piece_t *piece = piece_at(address);
    if (piece == NULL || piece->freed || piece->doomed || piece->address != address ||
        (piece->kind == PINNED) != pinned) {
        faults++;
        return NULL;
    }
    return piece;
}

/* --- Streams: queues of pending work. --- */

typedef struct event event_t;
typedef enum work { COPY, SET, RECORD, WAIT, FREE } work_t;

typedef struct op {
    struct op *next;
    work_t work;
    uintptr_t to, from;
    size_t size;
    int value;
    event_t *event;
} op_t;

typedef struct stream {
    op_t *first, **end;
} stream_t;

struct event {
    stream_t *stream; ///< where recorded; NULL: never recorded
    bool happened;
};

static stream_t legacy;
static __thread stream_t per_thread;

/// Header of streams and events, which stay allocated, because calls may name them after their end.
typedef struct kept {
    struct kept *next;
} kept_t;

static kept_t *kept;

static void *make_for_good(size_t size)
{
    kept_t *node = calloc(1, sizeof(*node) + size);
    node->next = kept;
    kept = node;
    return node + 1;
}

static stream_t *known[256]; ///< created and not destroyed
static size_t known_count;

/// Return the index of a stream in `known`, or `known_count` if absent.
static size_t place_of(const stream_t *stream)
{
    size_t place = 0;
    while (place < known_count && known[place] != stream) {
        place++;
    }
    return place;
}

/// Return the stream of a handle. Count a fault and return NULL if the handle is unknown.
static stream_t *stream_of(void *handle)
{
    stream_t *stream = handle;
    if ((uintptr_t)handle <= 2) {
        stream = (uintptr_t)handle == 2 ? &per_thread : &legacy;
    } else if (place_of(stream) == known_count) {
        faults++;
        return NULL;
    }
    if (stream->end == NULL) {
        stream->end = &stream->first;
    }
    return stream;
}

static void push(stream_t *stream, const op_t *what)
{
    op_t *op = malloc(sizeof(*op));
    *op = *what;
    op->next = NULL;
    *stream->end = op;
    stream->end = &op->next;
}

static void run_until(stream_t *stream, const event_t *event);

static void run(const op_t *op)
{
    char *to, *from;
    switch (op->work) {
    case COPY:
        to = contents_at(op->to, op->size);
        from = contents_at(op->from, op->size);
        if (to != NULL && from != NULL) {
            memmove(to, from, op->size);
        }
        break;
    case SET:
        to = contents_at(op->to, op->size);
        if (to != NULL) {
            memset(to, op->value, op->size);
        }
        break;
    case RECORD:
        op->event->happened = true;
        break;
    case WAIT:
        if (op->event->stream != NULL && !op->event->happened) {
            run_until(op->event->stream, op->event);
        }
        break;
    case FREE:
        free_piece(piece_at(op->to));
        break;
    }
}

/// Do the work of a stream, up to an event; NULL: all work.
static void run_until(stream_t *stream, const event_t *event)
{
    while (stream->first != NULL && (event == NULL || !event->happened)) {
        op_t *op = stream->first;
        stream->first = op->next;
        if (stream->first == NULL) {
            stream->end = &stream->first;
        }
        run(op);
        free(op);
    }
}

static void run_all(void)
{
    run_until(&legacy, NULL);
    run_until(&per_thread, NULL);
    for (size_t i = 0; i < known_count; i++) {
        run_until(known[i], NULL);
    }
}

/* --- Contexts. --- */

#define DEPTH 8
static char primary[64]; ///< the addresses are the contexts
static __thread void *stack[DEPTH];
static __thread unsigned depth;

#define NEED_CONTEXT()                                                                             \
    if (depth == 0) {                                                                              \
        return leave(INVALID_CONTEXT);                                                             \
    }

/* --- Functions for tests. --- */

void fake_reset(void)
{
    pthread_mutex_lock(&lock);
    text_length = 0;
    text[0] = 0;
    faults = 0;
    memset(plans, 0, sizeof(plans));
    hold.function[0] = 0;
    pthread_mutex_unlock(&lock);
}

void fake_fail(const char *function, unsigned nth, int error, int goes_on)
{
    plan_t plan = {.nth = nth, .error = error, .goes_on = goes_on};
    snprintf(plan.function, sizeof(plan.function), "%s", function);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        if (plans[i].nth == 0) {
            plans[i] = plan;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void fake_hold(const char *function)
{
    pthread_mutex_lock(&lock);
    snprintf(hold.function, sizeof(hold.function), "%s", function);
    hold.may_go = false;
    pthread_mutex_unlock(&lock);
}

int fake_holds(void)
{
    pthread_mutex_lock(&lock);
    int waits = hold.waits;
    pthread_mutex_unlock(&lock);
    return waits;
}

void fake_let_go(void)
{
    pthread_mutex_lock(&lock);
    hold.may_go = true;
    pthread_cond_broadcast(&hold.change);
    pthread_mutex_unlock(&lock);
}

const char *fake_log(void)
{
    return text;
}

unsigned fake_calls(const char *function)
{
    unsigned calls = 0;
    size_t length = strlen(function);
    pthread_mutex_lock(&lock);
    for (const char *line = text; *line != 0; line = strchr(line, '\n') + 1) {
        calls +=
            strncmp(line, function, length) == 0 && (line[length] == ' ' || line[length] == '\n');
    }
    pthread_mutex_unlock(&lock);
    return calls;
}

unsigned fake_live(void)
{
    unsigned live = 0;
    pthread_mutex_lock(&lock);
    for (const piece_t *piece = pieces; piece != NULL; piece = piece->next) {
        live += !piece->freed && !piece->doomed;
    }
    pthread_mutex_unlock(&lock);
    return live;
}

unsigned fake_faults(void)
{
    return faults;
}

unsigned fake_contexts(void)
{
    return depth;
}

void fake_launch(uintptr_t stream, uintptr_t address, int value, size_t size)
{
    op_t op = {.work = SET, .to = address, .value = value, .size = size};
    pthread_mutex_lock(&lock);
    stream_t *queue = stream_of((void *)stream);
    if (queue != NULL) {
        push(queue, &op);
    }
    pthread_mutex_unlock(&lock);
}

int fake_peek(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    const piece_t *piece = piece_at(address);
    int byte = piece == NULL || piece->freed ? -1 : (unsigned char)*contents_at(address, 1);
    pthread_mutex_unlock(&lock);
    return byte;
}

uintptr_t fake_alias(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    piece_t *piece = piece_at(address);
    if (piece->alias == 0) {
        piece->alias = (uintptr_t)map(piece->mapped, PROT_NONE);
    }
    pthread_mutex_unlock(&lock);
    return piece->alias;
}

void fake_machine(int count, int pools)
{
    devices = count;
    has_pools = pools;
}

/* --- Driver functions for memrt. --- */

FAKE_EXPORT int cuInit(unsigned flags)
{
    ENTER(" flags=%u", flags);
    return leave(devices == 0 ? NO_DEVICE : SUCCESS);
}

static const struct {
    int error;
    const char *name, *meaning;
} errors[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
};

static int describe(int error, const char **name, const char **meaning)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].error == error) {
            *name = errors[i].name;
            *meaning = errors[i].meaning;
            return SUCCESS;
        }
    }
    return INVALID_VALUE;
}

FAKE_EXPORT int cuGetErrorName(int error, const char **name)
{
    const char *ignored;
    return describe(error, name, &ignored);
}

FAKE_EXPORT int cuGetErrorString(int error, const char **meaning)
{
    const char *ignored;
    return describe(error, &ignored, meaning);
}

FAKE_EXPORT int cuDeviceGetCount(int *count)
{
    ENTER("%s", "");
    *count = devices < 0 ? 0 : devices;
    return leave(SUCCESS);
}

FAKE_EXPORT int cuDeviceGet(int *device, int ordinal)
{
    ENTER(" ordinal=%d", ordinal);
    *device = ordinal;
    return leave(ordinal >= 0 && ordinal < devices ? SUCCESS : INVALID_DEVICE);
}

FAKE_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    ENTER(" attribute=%d device=%d", attribute, device);
    *value = attribute == 115 ? has_pools : 1;
    return leave(SUCCESS);
}

FAKE_EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    ENTER(" device=%d", device);
    *context = &primary[device];
    return leave(SUCCESS);
}

FAKE_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    ENTER(" device=%d", device);
    *flags = 0;
    *active = device == 0;
    return leave(SUCCESS);
}

FAKE_EXPORT int cuCtxPushCurrent_v2(void *context)
{
    ENTER("%s", "");
    if (depth == DEPTH) {
        return leave(INVALID_CONTEXT);
    }
    stack[depth++] = context;
    return leave(SUCCESS);
}

FAKE_EXPORT int cuCtxPopCurrent_v2(void **context)
{
    ENTER("%s", "");
    NEED_CONTEXT();
    *context = stack[--depth];
    return leave(SUCCESS);
}

FAKE_EXPORT int cuCtxGetDevice(int *device)
{
    ENTER("%s", "");
    NEED_CONTEXT();
    *device = (int)((char *)stack[depth - 1] - primary);
    return leave(SUCCESS);
}

FAKE_EXPORT int cuCtxSynchronize(void)
{
    ENTER("%s", "");
    NEED_CONTEXT();
    run_all();
    return leave(SUCCESS);
}

static int current_device(void)
{
    return (int)((char *)stack[depth - 1] - primary);
}

static int new_piece(kind_t kind, size_t size, unsigned long long *ptr)
{
    uintptr_t address;
    int result = allocate(kind, size, &address);
    if (result == SUCCESS) {
        pieces->device = current_device();
        *ptr = address;
    }
    return result;
}

FAKE_EXPORT int cuMemAlloc_v2(unsigned long long *ptr, size_t size)
{
    ENTER(" size=%zu", size);
    NEED_CONTEXT();
    return leave(new_piece(DEVICE, size, ptr));
}

FAKE_EXPORT int cuMemAllocManaged(unsigned long long *ptr, size_t size, unsigned flags)
{
    ENTER(" size=%zu flags=%u", size, flags);
    NEED_CONTEXT();
    return leave(flags == 1 ? new_piece(MANAGED, size, ptr) : INVALID_VALUE);
}

FAKE_EXPORT int cuMemHostAlloc(void **ptr, size_t size, unsigned flags)
{
    unsigned long long address;
    ENTER(" size=%zu flags=%u", size, flags);
    NEED_CONTEXT();
    int result = new_piece(PINNED, size, &address);
    if (result == SUCCESS) {
        *ptr = (void *)(uintptr_t)address;
    }
    return leave(result);
}

#ifndef FAKE_OLD /* drivers before 11.2 */
FAKE_EXPORT int cuMemAllocAsync(unsigned long long *ptr, size_t size, void *stream)
{
    ENTER(" size=%zu stream=%p", size, stream);
    NEED_CONTEXT();
    return leave(stream_of(stream) == NULL ? INVALID_HANDLE : new_piece(DEVICE, size, ptr));
}

#endif

/// Free memory after all pending work of all streams, as the driver does.
static int free_now(uintptr_t address, bool pinned)
{
    run_all();
    piece_t *piece = piece_to_free(address, pinned);
    if (piece == NULL) {
        return INVALID_VALUE;
    }
    free_piece(piece);
    return SUCCESS;
}

FAKE_EXPORT int cuMemFree_v2(unsigned long long ptr)
{
    ENTER(" ptr=%#llx", ptr);
    NEED_CONTEXT();
    return leave(free_now(ptr, false));
}

FAKE_EXPORT int cuMemFreeHost(void *ptr)
{
    ENTER(" ptr=%p", ptr);
    NEED_CONTEXT();
    return leave(free_now((uintptr_t)ptr, true));
}

#ifndef FAKE_OLD
FAKE_EXPORT int cuMemFreeAsync(unsigned long long ptr, void *handle)
{
    ENTER(" ptr=%#llx stream=%p", ptr, handle);
    NEED_CONTEXT();
    stream_t *stream = stream_of(handle);
    piece_t *piece = piece_to_free(ptr, false);
    if (stream == NULL || piece == NULL) {
        return leave(INVALID_HANDLE);
    }
    piece->doomed = true;
    push(stream, &(op_t){.work = FREE, .to = ptr});
    return leave(SUCCESS);
}

#endif

FAKE_EXPORT int cuMemcpy(unsigned long long to, unsigned long long from, size_t size)
{
    ENTER(" size=%zu", size);
    NEED_CONTEXT();
    run_until(&legacy, NULL);
    run(&(op_t){.work = COPY, .to = to, .from = from, .size = size});
    return leave(SUCCESS);
}

FAKE_EXPORT int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t size,
                              void *handle)
{
    ENTER(" size=%zu stream=%p", size, handle);
    NEED_CONTEXT();
    stream_t *stream = stream_of(handle);
    if (stream == NULL) {
        return leave(INVALID_HANDLE);
    }
    push(stream, &(op_t){.work = COPY, .to = to, .from = from, .size = size});
    return leave(SUCCESS);
}

FAKE_EXPORT int cuPointerGetAttribute(void *value, int attribute, unsigned long long ptr)
{
    ENTER(" attribute=%d ptr=%#llx", attribute, ptr);
    NEED_CONTEXT();
    const piece_t *piece = piece_at(ptr);
    if (piece == NULL || piece->freed || piece->doomed) {
        return leave(INVALID_VALUE);
    }
    bool by_alias = !lies_in(ptr, piece->address, piece->size);
    switch (attribute) {
    case 2:
        *(unsigned *)value = piece->kind == PINNED ? 1 : 2;
        break;
    case 3:
        *(unsigned long long *)value = by_alias ? ptr - piece->alias + piece->address : ptr;
        break;
    case 8:
        *(unsigned *)value = piece->kind == MANAGED;
        break;
    case 9:
        *(int *)value = piece->device;
        break;
    default:
        return leave(INVALID_VALUE);
    }
    return leave(SUCCESS);
}

FAKE_EXPORT int cuStreamCreate(void **handle, unsigned flags)
{
    ENTER(" flags=%u", flags);
    NEED_CONTEXT();
    if (known_count == sizeof(known) / sizeof(known[0])) {
        return leave(OUT_OF_MEMORY);
    }
    *handle = known[known_count++] = make_for_good(sizeof(stream_t));
    return leave(SUCCESS);
}

FAKE_EXPORT int cuStreamDestroy_v2(void *handle)
{
    ENTER(" stream=%p", handle);
    NEED_CONTEXT();
    stream_t *stream = stream_of(handle);
    if (stream == NULL || (uintptr_t)handle <= 2) {
        return leave(INVALID_HANDLE);
    }
    run_until(stream, NULL);
    known[place_of(stream)] = known[known_count - 1];
    known_count--;
    return leave(SUCCESS);
}

FAKE_EXPORT int cuStreamSynchronize(void *handle)
{
    ENTER(" stream=%p", handle);
    NEED_CONTEXT();
    stream_t *stream = stream_of(handle);
    if (stream == NULL) {
        return leave(INVALID_HANDLE);
    }
    run_until(stream, NULL);
    return leave(SUCCESS);
}

FAKE_EXPORT int cuEventCreate(void **handle, unsigned flags)
{
    ENTER(" flags=%u", flags);
    NEED_CONTEXT();
    *handle = make_for_good(sizeof(event_t));
    return leave(SUCCESS);
}

FAKE_EXPORT int cuEventRecord(void *handle, void *stream_handle)
{
    ENTER(" event=%p stream=%p", handle, stream_handle);
    NEED_CONTEXT();
    event_t *event = handle;
    event->stream = stream_of(stream_handle);
    if (event->stream == NULL) {
        return leave(INVALID_HANDLE);
    }
    push(event->stream, &(op_t){.work = RECORD, .event = event});
    return leave(SUCCESS);
}

FAKE_EXPORT int cuStreamWaitEvent(void *handle, void *event, unsigned flags)
{
    ENTER(" stream=%p event=%p flags=%u", handle, event, flags);
    NEED_CONTEXT();
    stream_t *stream = stream_of(handle);
    if (stream == NULL) {
        return leave(INVALID_HANDLE);
    }
    push(stream, &(op_t){.work = WAIT, .event = event});
    return leave(SUCCESS);
}

FAKE_EXPORT int cuEventDestroy_v2(void *event)
{
    ENTER(" event=%p", event);
    NEED_CONTEXT();
    return leave(SUCCESS);
}
