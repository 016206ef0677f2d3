#ifndef MEMRT_TESTS_SUPPORT_CHILD_H
#define MEMRT_TESTS_SUPPORT_CHILD_H

/// Things done in a child process, because they end it.

#include <sys/types.h>

typedef void (*child_fn)(void *context);

/// Run `act` in a child; fails the test unless the child aborts and its standard error has
/// `message` in it.
void child_expect_abort(child_fn act, void *context, const char *message);

/// Run `act`, which exits by itself, in a child; fails the test unless its status is that and its
/// standard error has `message` in it, NULL: nothing.
void child_expect_exit(child_fn act, void *context, int status, const char *message);

/// End this process, which is a child, if it does not end by itself within half a minute.
void child_start_watchdog(void);

/// The status of a child forked before, which exits by itself; REQUIRE is how it fails, so that
/// threads and children may call it.
int child_wait(pid_t child);

/// Run `act` in a child; fails the test unless it returns, within half a minute.
void child_expect_success(child_fn act, void *context);

#endif
