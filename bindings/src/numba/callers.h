#ifndef MEMRT_BINDINGS_NUMBA_CALLERS_H
#define MEMRT_BINDINGS_NUMBA_CALLERS_H

#include "support/binding.h"

/// Entry points that compiled code of Numba calls around work without the GIL. The functions give
/// the policy and scope of the caller to such work.
///
/// Functions compiled with nogil=True call memrt__nrt_save_thread() and
/// memrt__nrt_restore_thread(). Parallel loops call both functions around
/// memrt__nrt_parallel_for(), which runs chunks of the loop on the threads of Numba's threading
/// layer.

/// Return the scope of the allocations of the calling thread, borrowed; NULL outside of scopes. In
/// chunks of parallel loops, the scope of the launch.
memrt_scope_t *memrt__nrt_scope(void);

/// PyEval_SaveThread(), with the current policy as policy of the caller. Without memory for the
/// caller, the policy of the outer caller stays in force.
/// Returns a value for memrt__nrt_restore_thread() alone: a thread state, or a tagged pointer.
void *memrt__nrt_save_thread(void);

/// PyEval_RestoreThread(), for the result of memrt__nrt_save_thread() on the same thread.
void memrt__nrt_restore_thread(void *saved);

/// Chunk of a parallel loop, as Numba compiles it.
typedef void (*memrt_nrt_chunk_fn)(char **args, size_t *dims, size_t *steps, void *data);

/// Function of a threading layer that runs the chunks of a loop and waits for their end. The layer
/// passes `data` to each chunk unchanged.
typedef void (*memrt_nrt_parallel_for_fn)(memrt_nrt_chunk_fn chunk, char **args, size_t *dims,
                                          size_t *steps, void *data, size_t inner_ndim,
                                          size_t array_count, int num_threads);

/// Run a parallel loop by the function of the threading layer. Every chunk allocates from the
/// policy of the caller. Later, the thread of the chunk has its earlier policy again.
void memrt__nrt_parallel_for(memrt_nrt_chunk_fn chunk, char **args, size_t *dims, size_t *steps,
                             void *data, size_t inner_ndim, size_t array_count, int num_threads);

/// Set the function of the threading layer, a memrt_nrt_parallel_for_fn. Needs the GIL, and no
/// loop may run.
/// Returns the address of memrt__nrt_parallel_for(). That address as argument changes nothing.
void *memrt__nrt_wrap_parallel_for(void *layer);

#endif
