#ifndef MEMRT_CHAIN_H
#define MEMRT_CHAIN_H

#include "binding.h"

/// From any object to the buffer of memrt's that it keeps alive, by the links that arrays, views of
/// memory and MemInfos are made of. Runs no code of anybody's, takes no reference and makes no
/// MemInfo, so that a whole heap can be asked.

typedef enum memrt_link {
    MEMRT_LINK_NONE,       ///< nothing that could keep a buffer
    MEMRT_LINK_ARRAY,      ///< an array over memory of another object
    MEMRT_LINK_BLOCK,      ///< an array that NumPy frees by a handler of memrt's
    MEMRT_LINK_MEMORYVIEW, ///< a memoryview
    MEMRT_LINK_BUFFER,     ///< what the memoryviews of one buffer share
    MEMRT_LINK_STRIDES,    ///< what NumPy's as_strided leaves between two arrays
    MEMRT_LINK_MEMINFO,    ///< a memrt.MemInfo
    MEMRT_LINK_JITTED,     ///< a _MemInfo, which arrays of jitted functions lie over
    MEMRT_LINK_CAPSULE,    ///< a capsule "memrt.meminfo"
} memrt_link_t;

/// Once, at import, before anything else here. -1 with an exception.
int memrt__chain_setup(void);

/// Quickly whether it may be a link: no object that is one is missed.
int memrt__link_maybe(PyObject *object);

memrt_link_t memrt__link_of(PyObject *object);

/// Whether a link of that kind holds a reference to the MemInfo itself.
static inline int memrt__link_is_last(memrt_link_t link)
{
    return link == MEMRT_LINK_BLOCK || link >= MEMRT_LINK_MEMINFO;
}

/// The object that a link keeps alive and takes its memory from, or NULL. Borrowed.
PyObject *memrt__link_next(PyObject *object);

/// What tells a buffer from all others, or 0.
typedef uintptr_t memrt_buffer_key_t;

/// The buffer at the end of the chain of `object`, or 0.
memrt_buffer_key_t memrt__chain_key(PyObject *object);

/// The buffer of a MemInfo.
memrt_buffer_key_t memrt__meminfo_key(const memrt_meminfo_t *mi);

/// The MemInfo that the last link of a chain holds; borrowed. NULL for a tiny block, of which only
/// memrt knows whether it has one.
memrt_meminfo_t *memrt__link_meminfo(PyObject *object);

#endif
