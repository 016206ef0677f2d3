#ifndef MEMRT_BASE_OS_H
#define MEMRT_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// All that memrt asks of the operating system. Another system is another os_<name>.c.
///
/// For every function: sizes are multiples of memrt__os_page_size() and not 0, addresses come from
/// memrt__os_map(), NULL or false means that the system refused and nothing changed.

size_t memrt__os_page_size(void);

/// Fresh zero pages, of which those after the first `lead` bytes, whole pages, begin at a multiple
/// of `align`, a power of two.
void *memrt__os_map(size_t size, size_t lead, size_t align);
bool memrt__os_unmap(void *address, size_t size);

/// Grow or shrink a mapping, keeping its contents; stays at a multiple of the page size.
void *memrt__os_remap(void *address, size_t old_size, size_t new_size, bool may_move);

/// Give the pages back but keep their addresses: they are fresh zero pages from now on.
bool memrt__os_discard(void *address, size_t size);

/// Ask for huge pages there, or for none. A wish: nothing depends on it.
void memrt__os_advise_huge(void *address, size_t size, bool huge);
#define MEMRT__HUGE_PAGE ((size_t)2 << 20)

/// Bytes that the process has in memory; 0 where the system does not say.
size_t memrt__os_resident(void);

/// A bound that the system sets to the memory of the process.
typedef struct memrt__os_limit {
    const char *what; ///< for people
    uint64_t bytes;
    uint64_t used; ///< bytes of it; 0: the system does not say
} memrt__os_limit_t;

/// Write the bounds that there are, at most MEMRT__OS_LIMITS; returns how many. Allocates nothing.
size_t memrt__os_limits(memrt__os_limit_t *out);
#define MEMRT__OS_LIMITS 3u

/// Nanoseconds on a clock that only runs forward.
uint64_t memrt__os_now_ns(void);

/// The same as it was at the system's last tick, a few milliseconds ago at most, for a quarter of
/// the time that it takes to ask.
uint64_t memrt__os_tick_ns(void);

/// Nanoseconds since 1970 began.
uint64_t memrt__os_date_ns(void);
uint64_t memrt__os_thread_id(void);
uint64_t memrt__os_process_id(void);

/// Create a regular file for writing, or, where `replace`, empty the one that is there. Its
/// descriptor is closed in programs that the process becomes. -1: the system refused and `*error`
/// is its errno; EINVAL: what is there is no regular file.
int memrt__os_file_create(const char *path, bool replace, int *error);

/// Write bytes at a place of the file. False: the system refused, `*error` is its errno, and a part
/// of them may be there. No signal comes of it, and no thread ends in it.
bool memrt__os_file_write(int file, uint64_t at, const void *bytes, size_t size, int *error);

/// Let the file end there. A wish, as for a file that cannot be written any more.
void memrt__os_file_cut(int file, uint64_t size);
void memrt__os_file_close(int file);
void memrt__os_file_remove(const char *path);

/// Value of an environment variable, or NULL; always NULL in a set-uid process.
const char *memrt__os_environment(const char *name);
/// Row `index` of the environment ("NAME=value"), or NULL past the end; NULL in a set-uid process.
const char *memrt__os_environment_row(size_t index);

/// Nanoseconds since 1970.
uint64_t memrt__os_wall_ns(void);

/// How this process was called, with blanks between the words, cut to the room; "": not known.
void memrt__os_command(char *text, size_t room);

/// A file in memory that other processes of this user read, and nobody else.
typedef struct memrt__os_page {
    char path[96];
    uint64_t process; ///< whose it is
    uint64_t started; ///< when that began, in ticks of the system since its start
} memrt__os_page_t;

/// The folder of this user's pages, which need not be there.
#define MEMRT__OS_FOLDER 40
void memrt__os_page_folder(char *folder, size_t room);

/// Make an empty page for this process, in place of one that a program left which it was before.
/// The folder is made where there is none; one that others may write to, or that is another
/// user's, is none. False: `why` is a sentence.
bool memrt__os_page_make(const char *folder, memrt__os_page_t *out, char *why, size_t length);

/// Write to the page. It is opened for that alone, so that no file descriptor stays, and no memory
/// of it, by whose loss the program would come to harm. False: the page is gone, or has no room.
bool memrt__os_page_write(const memrt__os_page_t *page, const void *data, size_t size, size_t at);
void memrt__os_page_remove(const memrt__os_page_t *page);

/// Remove the pages of that folder that nobody has written for `age` seconds and whose processes
/// run no more, as far as their numbers tell. What is named otherwise stays.
void memrt__os_page_sweep(const char *folder, uint64_t age);

#endif
