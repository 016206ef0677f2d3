#ifndef MEMRT_OS_MAPPING_TABLE_H
#define MEMRT_OS_MAPPING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Table of memrt's mappings, for the account of the memory of the process. The system reports the
/// resident bytes of address ranges, but neighbouring mappings of several libraries look like one.
///
/// The table has a word for each MiB of addresses, for the mapping that starts there. All blocks
/// and segments are larger than 1 MiB, so that each has a word of its own. A smaller mapping that
/// starts in the same MiB as another is left out, and so is a mapping without memory for the table.
///
/// Threads: no lock, also while another thread forks. A mapping that another thread makes or
/// unmaps meanwhile may be in the table or not.

/// Content of a mapping.
typedef enum memrt__mapping_use {
    MEMRT__USE_RECORDS, ///< memory that memrt itself uses
    MEMRT__USE_SEGMENT, ///< segment of the page heap
    MEMRT__USE_BLOCK,   ///< one block, in use
    MEMRT__USE_CACHED   ///< freed block of the large-object cache
} memrt__mapping_use_t;

/// Add a new mapping, with MEMRT__USE_RECORDS.
void memrt__mapping_table_add(const void *address, size_t bytes);

/// Remove a mapping, before the system can give its addresses to another thread. Returns the word
/// of the mapping for memrt__mapping_table_restore(); 0: the table does not have the mapping.
size_t memrt__mapping_table_remove(const void *address);

/// Add the mapping of a word, with the same use, possibly with another address and another size.
void memrt__mapping_table_restore(size_t word, const void *address, size_t bytes);

/// Change the use of a mapping.
void memrt__mapping_table_mark(const void *address, memrt__mapping_use_t use);

/// Record that a mapping starts with pages of the pool (memrt__os_map_pool()), as many pages of
/// `page` bytes as fit into the mapping; 0: no page. Returns false if the table lacks the mapping.
bool memrt__mapping_table_set_pool(const void *address, size_t page);

/// Return the bytes of pages of the pool at the start of a mapping.
size_t memrt__mapping_table_pool(const void *address);

/// Record whether memrt asks the system for huge pages in a mapping.
void memrt__mapping_table_ask_huge(const void *address, bool asks);
bool memrt__mapping_table_asks_huge(const void *address);

/// Find the mapping that contains an address. Returns false if the table has no such mapping.
bool memrt__mapping_table_find(uintptr_t address, uintptr_t *start, size_t *bytes,
                               memrt__mapping_use_t *use);

/// Call `visit` with each mapping, in the order of addresses, and with the memory of the table.
void memrt__mapping_table_visit(void (*visit)(void *context, uintptr_t address, size_t bytes,
                                              memrt__mapping_use_t use),
                                void *context);

#endif
