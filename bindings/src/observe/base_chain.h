#ifndef MEMRT_BINDINGS_OBSERVE_BASE_CHAIN_H
#define MEMRT_BINDINGS_OBSERVE_BASE_CHAIN_H

#include "support/binding.h"

/// Follow the chain of bases from any object to the memrt buffer that the object keeps alive. Links
/// are arrays, memoryviews and MemInfos. The functions run no Python code, take no reference and
/// create no MemInfo, so a walk over the whole object graph may call them.

typedef enum memrt_link {
    MEMRT_LINK_NONE,       ///< not a link: cannot keep a buffer alive
    MEMRT_LINK_ARRAY,      ///< an array over the memory of another object
    MEMRT_LINK_BLOCK,      ///< an array whose data NumPy frees by a handler of memrt
    MEMRT_LINK_MEMORYVIEW, ///< a memoryview
    MEMRT_LINK_BUFFER,     ///< the managed buffer that the memoryviews of one exporter share
    MEMRT_LINK_STRIDES,    ///< the DummyArray that as_strided of NumPy leaves between two arrays
    MEMRT_LINK_MEMINFO,    ///< a memrt.MemInfo
    MEMRT_LINK_JITTED,     ///< a _MemInfo, the base of arrays made by jitted functions
    MEMRT_LINK_CAPSULE,    ///< a capsule "memrt.meminfo"
} memrt_link_t;

/// Set up the link types. Call once, at import, before any other function of this header. -1 with
/// an exception.
int memrt__base_chain_setup(void);

/// Return whether an object may be a link. A fast test: false positives are possible, false
/// negatives are not.
int memrt__link_maybe(PyObject *object);

/// Return the kind of link that an object is.
memrt_link_t memrt__link_of(PyObject *object);

/// Return whether a link of this kind holds a reference to the MemInfo itself.
static inline int memrt__link_is_last(memrt_link_t link)
{
    return link == MEMRT_LINK_BLOCK || link >= MEMRT_LINK_MEMINFO;
}

/// Return the object that a link keeps alive and takes its memory from, or NULL. Borrowed.
PyObject *memrt__link_next(PyObject *object);

/// Unique key of a buffer: the address of the MemInfo, or of the data of a tiny block. 0: no
/// buffer.
typedef uintptr_t memrt_buffer_key_t;

/// Return the key of the buffer at the end of the chain of `object`, or 0.
memrt_buffer_key_t memrt__base_chain_key(PyObject *object);

/// Return the key of the buffer of a MemInfo.
memrt_buffer_key_t memrt__meminfo_key(const memrt_meminfo_t *mi);

/// Return the MemInfo that the last link of a chain holds, borrowed. NULL for a tiny block: only
/// memrt knows whether a tiny block has a MemInfo.
memrt_meminfo_t *memrt__link_meminfo(PyObject *object);

#endif
