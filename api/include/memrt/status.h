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

/// Result of every call that can fail for reasons other than memory. If the result is not MEMRT_OK,
/// nothing has changed: out-parameters, counters, reference counts and blocks are as before.
typedef enum memrt_status {
    MEMRT_OK = 0,
    MEMRT_ENOMEM = 1,  ///< out of memory, or the size overflows with header and alignment
    MEMRT_EINVAL = 2,  ///< an argument violates the documentation of the call
    MEMRT_ENOENT = 3,  ///< nothing is known under the pointer or name
    MEMRT_EBUSY = 4,   ///< refused while another holder or user has the object
    MEMRT_ELIMIT = 5,  ///< a limit is reached; the documentation of the call states the limit
    MEMRT_ENOTSUP = 6, ///< not supported for the kind of object, or no CUDA driver exists
    MEMRT_EDEVICE = 7, ///< the CUDA driver refused; memrt_api_t.cuda_error explains the error
    MEMRT_EIO = 8,     ///< the system refused a file; the call returns the errno
} memrt_status_t;

/// Return one sentence for a status.
typedef const char *(*memrt_status_text_fn)(memrt_status_t status);

#ifdef __cplusplus
}
#endif

#endif
