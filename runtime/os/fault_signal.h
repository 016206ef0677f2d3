#ifndef MEMRT_OS_FAULT_SIGNAL_H
#define MEMRT_OS_FAULT_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <memrt/status.h>

/// Handler of SIGSEGV for accesses that the protection of a page refuses. The handler runs on the
/// alternate signal stack of the thread, if the thread has one.

#define MEMRT__FAULT_REPORTS 2

/// Report an access. `access` is "read" or "write", or "access" where the machine does not show the
/// direction. Returns whether the address is known. Runs in a signal handler: takes no lock and
/// allocates nothing.
typedef bool (*memrt__fault_report_fn)(uintptr_t address, const char *access);

/// Add one of at most MEMRT__FAULT_REPORTS functions, and install the handler at the first call.
/// The first function that knows the address reports the access. After a report, and for each other
/// SIGSEGV, the previous handler runs: a function gets the same arguments, and the default action
/// ends the process.
///
/// A handler that was installed later may pass the signal on by raise(), as faulthandler does. The
/// signal then has no address. On x86-64, the address of the last fault of the thread is reported.
///
/// Threads: the caller has the lock of the quarantines.
/// Failure: returns false if the system refuses the handler.
bool memrt__fault_signal_install(memrt__fault_report_fn report) MEMRT_MUST_CHECK;

#endif
