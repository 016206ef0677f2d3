#ifndef MEMRT_STATUS_H
#define MEMRT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MEMRT_MUST_CHECK __attribute__((warn_unused_result))
#else
#define MEMRT_MUST_CHECK
#endif

/// Result of every call that can fail for a reason other than memory alone. On anything but
/// MEMRT_OK nothing has changed: out-parameters, counters, counts and blocks are as before.
typedef enum memrt_status {
    MEMRT_OK = 0,
    MEMRT_ENOMEM = 1,  ///< no memory, or the size overflows with header and alignment
    MEMRT_EINVAL = 2,  ///< an argument is outside what the doc line of the call allows
    MEMRT_ENOENT = 3,  ///< nothing known under that pointer or name
    MEMRT_EBUSY = 4,   ///< refused while somebody else holds or uses the object
    MEMRT_ELIMIT = 5,  ///< a stated limit of memrt is reached (number of live policies)
    MEMRT_ENOTSUP = 6, ///< this kind of object cannot do that, or there is no CUDA driver
    MEMRT_EDEVICE = 7, ///< the CUDA driver refused: memrt_api_t.cuda_error says what
    MEMRT_EIO = 8,     ///< the system refused a file: the call says how
} memrt_status_t;

#ifdef __cplusplus
}
#endif

#endif
