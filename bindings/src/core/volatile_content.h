#ifndef MEMRT_BINDINGS_CORE_VOLATILE_CONTENT_H
#define MEMRT_BINDINGS_CORE_VOLATILE_CONTENT_H

#include "support/binding.h"

#include <stdbool.h>
#include <stdint.h>

/// Contents of volatile arrays: memory that memrt or the kernel may drop while the memory is not
/// pinned. All functions run on any thread, also without the GIL, except where stated.
///
/// The last unpinning stores the first word of each page elsewhere, writes a tag in its place, and
/// advises the kernel that the pages may be dropped (MADV_FREE). A dropped page reads as zeros. A
/// pin exchanges each tag for the stored word, atomically. The write cancels the advice for the
/// page. An exchanged word other than the tag proves that the kernel dropped the page.

/// Content of a volatile array. Members that are not fixed change under the mutex.
typedef struct memrt_content {
    size_t size;         ///< fixed; bytes of the data
    size_t page_size;    ///< fixed
    size_t pages;        ///< fixed; pages of the block, which are whole
    memrt_meminfo_t *mi; ///< block; NULL: none
    size_t refs;         ///< capsule and pins
    size_t pins;         ///< MemInfos over the data
    bool made;           ///< the data is valid, except for pages that the kernel dropped
    bool listed;         ///< in the list of contents that may be dropped
    struct memrt_content *older, *newer;
    uint64_t words[]; ///< first word of each page, while the content is not pinned
} memrt_content_t;

/// State of a content.
typedef struct memrt_content_state {
    uintptr_t address; ///< of the memory; 0: none
    size_t bytes;      ///< of the memory
    size_t pins;
} memrt_content_state_t;

/// Add the callbacks that drop contents before a refusal, and keep the mutex from being held in a
/// forked child. Needs the GIL. -1 with an exception.
int memrt__content_set_up(void);

/// Return a content of `size` bytes without memory, with one reference. NULL without memory.
memrt_content_t *memrt__content_new(size_t size);

/// Pin a content that has a block, or gets `*fresh`, which is NULL afterwards. A pin is one more
/// reference. `*made`: the data is valid. Returns false without a block.
bool memrt__content_pin(memrt_content_t *content, memrt_meminfo_t **fresh, bool *made);

/// End a reference, which may be a pin. The last pin lets the content be dropped, and frees a
/// content that was not made. The last reference frees the content.
void memrt__content_end(memrt_content_t *content, bool pin);

/// Mark the data of a pinned content as valid.
void memrt__content_set_made(memrt_content_t *content);

/// Free the memory of a content that is not pinned. Returns whether there was memory.
bool memrt__content_drop(memrt_content_t *content);

/// Return the state of a content. Other threads may change the state at once.
memrt_content_state_t memrt__content_read(memrt_content_t *content);

#endif
