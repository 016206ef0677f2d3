#ifndef MEMRT_BINDINGS_CALLBACKS_BLOCK_HOOKS_H
#define MEMRT_BINDINGS_CALLBACKS_BLOCK_HOOKS_H

#include "support/binding.h"

/// Hooks in Python: objects that are called with events of blocks. The C hook of an object writes
/// each event into a queue (event_queue.h), on the thread that allocates or frees. A pending call
/// on the main thread calls the object.
extern PyMethodDef memrt__block_hook_methods[];

#endif
