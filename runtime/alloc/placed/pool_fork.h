#ifndef MEMRT_ALLOC_PLACED_POOL_FORK_H
#define MEMRT_ALLOC_PLACED_POOL_FORK_H

/// Pages of the pool in forked children. A private mapping of pool pages needs further pages of the
/// pool after a fork, for each page that parent or child writes. Without such pages, the child ends
/// by SIGBUS, also at a read. So children do not inherit pages of the pool. Before a fork, the
/// contents are copied to small pages, and the child moves the copies to the addresses of the
/// arrays.
///
/// Writes of other threads during the fork may be missing in a copy. A mapping made by another
/// thread during the fork reads as zeros in the child.

/// Note that this process has mappings with pages of the pool.
void memrt__pool_fork_note(void);

/// Copy before a fork, under all locks; then drop the copies in the parent.
void memrt__pool_fork_prepare(void);
void memrt__pool_fork_in_parent(void);

/// Put the copies in place in the child. Later calls do nothing.
void memrt__pool_fork_in_child(void);

#endif
