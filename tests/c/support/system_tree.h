#ifndef MEMRT_TESTS_SUPPORT_SYSTEM_TREE_H
#define MEMRT_TESTS_SUPPORT_SYSTEM_TREE_H

/// Tree of files that memrt reads in the place of the files of the system: control groups, stalls.

/// Create an empty tree, and have memrt read from the tree.
void system_tree_begin(void);

/// Write a file with an absolute path, for example "/proc/self/cgroup".
void system_tree_write(const char *name, const char *text);

/// Remove the tree, and have memrt read the files of the system again.
void system_tree_end(void);

#endif
