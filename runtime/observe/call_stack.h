#ifndef MEMRT_OBSERVE_CALL_STACK_H
#define MEMRT_OBSERVE_CALL_STACK_H

#include <stddef.h>

/// A call stack: return addresses of the calls that led to an event, innermost first.

/// Maximum number of recorded frames. The outermost frames of a deeper call stack are cut.
#define MEMRT__CALL_STACK_DEPTH 16

/// Bytes of a buffer for the native calls, or for the calls of an interpreter, of one event.
#define MEMRT__CALL_STACK_TEXT 700

/// Bytes of a buffer for all calls of a block's allocation and of its free, with two headings. A
/// message has room for the buffer besides a sentence.
#define MEMRT__CALL_STACKS_TEXT (4 * MEMRT__CALL_STACK_TEXT + 64)

typedef struct memrt__call_stack {
    void *frames[MEMRT__CALL_STACK_DEPTH]; ///< NULL after the last frame, unless the array is full
} memrt__call_stack_t;

/// Record the call stack of the calling thread, with memrt__unwind(). The innermost frames are
/// calls inside libmemrt. The call stack is empty if memrt__unwind() returns no frames.
void memrt__call_stack_record(memrt__call_stack_t *stack);

/// Write a line "    function+0xNN in object" for each frame, but skip the innermost frames inside
/// libmemrt and frames without a known object. Where the loader knows no function, the line is
/// "    object+0xNN", for addr2line.
///
/// Each line ends with a newline. Text that does not fit in `length` bytes, NUL included, is cut
/// after a whole line. Returns the length of the written text, without the NUL. Allocates nothing.
size_t memrt__call_stack_text(const memrt__call_stack_t *stack, char *text, size_t length);

#endif
