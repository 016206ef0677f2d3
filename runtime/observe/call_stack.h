#ifndef MEMRT_OBSERVE_CALL_STACK_H
#define MEMRT_OBSERVE_CALL_STACK_H

#include <stddef.h>

/// A call stack: return addresses of the calls that led to an event, innermost first.

#define MEMRT__CALL_STACK_DEPTH 16

/// Bytes of text for the call stacks of a block's allocation and free.
#define MEMRT__CALL_STACKS_TEXT 2048

typedef struct memrt__call_stack {
    void *frames[MEMRT__CALL_STACK_DEPTH]; ///< return addresses; NULL after the last frame
} memrt__call_stack_t;

/// Record the call stack of the caller, with memrt__unwind().
void memrt__call_stack_record(memrt__call_stack_t *place);

/// Write a line "    function+0xNN in object" for each call outside of libmemrt. Where the loader
/// knows no function, the line is "    object+0xNN", for addr2line. Text that does not fit is cut
/// after a whole line. Returns the length of the written text. Allocates nothing.
size_t memrt__call_stack_text(const memrt__call_stack_t *place, char *text, size_t length);

#endif
