#ifndef MEMRT_TESTS_SUPPORT_CHILD_H
#define MEMRT_TESTS_SUPPORT_CHILD_H

/// Run code in a child process, because the code ends its process.

#include <sys/types.h>

typedef void (*child_fn)(void *context);

/// Run `act` in a child. Fails the test unless the child aborts and `message` occurs in its
/// standard error.
void child_expect_abort(child_fn act, void *context, const char *message);

/// The same, for a child that a signal ends: child_expect_abort() is for SIGABRT.
void child_expect_signal(child_fn act, void *context, int signal, const char *message);

/// Run `act` in a child; `act` calls exit or _exit. Fails the test unless the exit status is
/// `status` and `message` occurs in the child's standard error. `message` NULL: standard error must
/// be empty.
void child_expect_exit(child_fn act, void *context, int status, const char *message);

/// End this child process after half a minute, unless the process has ended before.
void child_start_watchdog(void);

/// Wait for a forked child to exit, and return its exit status. Fails by REQUIRE, so that threads
/// and children may call the function.
int child_wait(pid_t child);

/// Run `act` in a child. Fails the test unless `act` returns within half a minute.
void child_expect_success(child_fn act, void *context);

#endif
