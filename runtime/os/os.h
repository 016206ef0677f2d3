#ifndef MEMRT_OS_OS_H
#define MEMRT_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// The operating system interface of memrt. The folder runtime/os/linux implements the interface
/// for Linux; another system needs another folder.
///
/// Mapping functions take sizes that are multiples of memrt__os_page_size() and not 0, and page
/// aligned addresses in a mapping from memrt__os_map(). Failure: a mapping function returns NULL or
/// false, and all mappings are unchanged.

size_t memrt__os_page_size(void);

/// Map fresh zero pages. The address `lead` bytes behind the start is a multiple of `align`. `lead`
/// is a whole number of pages, `align` a power of two.
void *memrt__os_map(size_t size, size_t lead, size_t align);
bool memrt__os_unmap(void *address, size_t size);

/// Grow or shrink a mapping and keep its contents. Returns the address, which differs from
/// `address` only if `may_move` is true. A mapping that moves may lose an alignment greater than
/// the page size.
void *memrt__os_remap(void *address, size_t old_size, size_t new_size, bool may_move);

/// Return the pages to the system but keep the addresses. The range reads as fresh zero pages
/// afterwards. Failure: returns false, and some pages of the range may be zero already.
bool memrt__os_discard(void *address, size_t size);

/// Reserve addresses without memory; the start is a multiple of `align`. An access to a page faults
/// until memrt__os_commit(). memrt__os_unmap() ends the reservation.
void *memrt__os_reserve(size_t size, size_t align);

/// Change the accessible part of a reservation, which starts at `address`, from `old_size` to
/// `new_size` bytes. New pages are zero, and removed pages are returned to the system.
bool memrt__os_commit(void *address, size_t old_size, size_t new_size);

/// Refuse accesses to a range by SIGSEGV. The range keeps its contents.
bool memrt__os_forbid_access(void *address, size_t size);

/// Refuse writes to a range by SIGSEGV, or allow reads and writes. Returns 0, or the errno: the
/// range may then be protected in part.
int memrt__os_forbid_writes(void *address, size_t size);
int memrt__os_allow_writes(void *address, size_t size);

/// Advise the system to use huge pages for a range, or not to. Advice only: no code depends on the
/// effect. The mapping table keeps the advice for a whole mapping.
void memrt__os_advise_huge(void *address, size_t size, bool huge);
#define MEMRT__HUGE_PAGE ((size_t)2 << 20)

/// Give memory to the pages of a range, which keep their contents, so that later writes cause no
/// page faults. Any addresses of writable memory are valid. The system may have no memory for all
/// pages. Returns false where the system lacks the call.
bool memrt__os_populate(void *address, size_t size);

/// Replace the pages of a range by those of a new file without a name: in `folder`, or in memory
/// for NULL. All bytes of a file in a folder have space, so that no write ends in SIGBUS. A forked
/// child shares the pages. Returns 0, or the errno: the range may then be unmapped, and other
/// threads may use its addresses.
int memrt__os_map_file(void *address, size_t size, const char *folder);

/// Advise the system to take the memory of a range before other memory, or to take it now. The
/// contents stay. Any addresses are valid. Returns false for a range that is locked or not mapped,
/// and where the system lacks the call.
bool memrt__os_cold(void *address, size_t size, bool now);

/// Return whether a folder exists and can have new files.
bool memrt__os_can_map_file(const char *folder);

/// Copy `size` bytes from any address of the process. Returns false if the range is not mapped, or
/// where the system refuses the call.
bool memrt__os_read(const void *address, void *out, size_t size);

/// Return the resident bytes of the process, or 0 where the system does not report the value.
size_t memrt__os_resident(void);

/// Return the bytes of a range whose pages are in memory. Unlike memrt__os_resident(), zero pages
/// that were only read count. Addresses that are not mapped count as not in memory. Threads: other
/// threads may change mappings meanwhile.
size_t memrt__os_resident_part(uintptr_t address, size_t bytes);

/// A limit that the system sets on the memory of the process.
typedef struct memrt__os_limit {
    const char *what; ///< description for reports: "of address space (RLIMIT_AS)"
    uint64_t bytes;
    uint64_t used; ///< bytes in use under the limit; 0: unknown
} memrt__os_limit_t;

/// Write the limits in force to `out`, which has room for MEMRT__OS_LIMITS. Returns the number of
/// limits. Allocates nothing.
size_t memrt__os_limits(memrt__os_limit_t *out);
#define MEMRT__OS_LIMITS 3u

/// Nanoseconds of a millisecond and of a second.
#define MEMRT__MS ((uint64_t)1000000)
#define MEMRT__SECOND (1000 * MEMRT__MS)

/// Return nanoseconds of the monotonic clock.
uint64_t memrt__os_now_ns(void);

/// Return nanoseconds of the monotonic clock at the last tick of the system, at most a few
/// milliseconds ago. Costs a quarter of memrt__os_now_ns().
uint64_t memrt__os_tick_ns(void);

/// Return random bits of the system; without these, bits that differ between processes.
uint64_t memrt__os_random(void);

/// Return nanoseconds since 1970.
uint64_t memrt__os_wall_ns(void);

uint64_t memrt__os_thread_id(void);
uint64_t memrt__os_process_id(void);

/// Create a file for writing that starts with `bytes`, with mode 0600. The descriptor is closed on
/// exec.
///
/// A file at `path` is refused with EEXIST, or replaced if `replace` is true. With `replace`, a
/// symbolic link at `path` is refused with ELOOP, and any other kind of file with EINVAL.
///
/// Failure: returns -1, `*error` is the errno of the system, and nothing has changed.
int memrt__os_file_create(const char *path, bool replace, const void *bytes, size_t size,
                          int *error);

/// Write bytes at an offset of the file. Raises no signal and is not a cancellation point.
///
/// Failure: returns false, `*error` is the errno of the system, and some of the bytes may be
/// written.
bool memrt__os_file_write(int file, uint64_t at, const void *bytes, size_t size, int *error);

/// Truncate the file at `size`, to remove the bytes of a failed write. Best effort: ignores a
/// failure, for example when the file can no longer be written.
void memrt__os_file_cut(int file, uint64_t size);
void memrt__os_file_close(int file);

/// Return the value of an environment variable, or NULL. Always NULL in a set-uid process.
const char *memrt__os_environment(const char *name);

/// Return row `index` of the environment ("NAME=value"), or NULL past the end. Always NULL in a
/// set-uid process.
const char *memrt__os_environment_row(size_t index);

/// Write the command line of this process, with blanks between the words, cut to `room` bytes.
/// Writes "" if the command line is not known.
void memrt__os_command(char *text, size_t room);

/// File of a statistics page: a file in memory that only processes of the same user can read.
typedef struct memrt__os_shared_file {
    char path[96];
    uint64_t process; ///< id of the process that the page describes
    uint64_t started; ///< start of the process, in ticks of the system since boot
} memrt__os_shared_file_t;

/// Bytes of a buffer for the folder name, NUL included.
#define MEMRT__OS_FOLDER 40

/// Write the name of the folder of this user's statistics pages. The folder may not exist yet.
void memrt__os_shared_file_folder(char *folder, size_t room);

/// Create an empty page for this process. Replaces a page of the program that ran in this process
/// before exec. Creates the folder if missing. Refuses a folder of another user, and a folder that
/// other users may access. Failure: returns false, and writes an error message to `why`.
bool memrt__os_shared_file_make(const char *folder, memrt__os_shared_file_t *out, char *why,
                                size_t length);

/// Write to the page. The file is opened and closed for each write, so that no descriptor stays
/// open. The page is not mapped, because truncation of a mapped file would kill the program by a
/// signal. Returns false when the page was removed, or the file system is full.
bool memrt__os_shared_file_write(const memrt__os_shared_file_t *page, const void *data, size_t size,
                                 size_t at);
void memrt__os_shared_file_remove(const memrt__os_shared_file_t *page);

/// Remove pages in the folder that were not written for `age` seconds and whose processes have
/// ended. A page stays while another process has the id of the ended process. Files without the
/// name of a page stay.
void memrt__os_shared_file_sweep(const char *folder, uint64_t age);

#endif
