#include "runtime/os/fault_signal.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "runtime/base/atomics.h"
#include "runtime/base/check.h"

#define PAGE_FAULT 14 /* number of the trap, on x86-64 */

static struct sigaction previous;
static size_t reports[MEMRT__FAULT_REPORTS]; /* atomic, release; functions, 0: none */

/// Call the functions in turn, until one knows the address.
static void report_access(uintptr_t address, const char *access)
{
    bool known = false;
    for (size_t i = 0; !known && i < MEMRT__FAULT_REPORTS; i++) {
        size_t word = memrt__load_acquire(&reports[i]);
        memrt__fault_report_fn report;
        memcpy(&report, &word, sizeof(report));
        known = word != 0 && report(address, access);
    }
}

static const char *get_access(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "write" : "read";
#else
    (void)context;
    return "access";
#endif
}

/// Return whether `info` describes an access that the protection of a page refused.
static bool is_refused_access(const siginfo_t *info)
{
    return info->si_signo == SIGSEGV && info->si_code == SEGV_ACCERR;
}

/// Report the last refused access of the thread, for a signal from raise(). The kernel stores the
/// address of the last fault of the thread in the context of each signal. Other machines do not.
static void report_earlier_access(const ucontext_t *context)
{
#if defined(__x86_64__)
    const greg_t *registers = context->uc_mcontext.gregs;
    if (registers[REG_TRAPNO] == PAGE_FAULT) {
        report_access((uintptr_t)registers[REG_CR2], get_access(context));
    }
#else
    (void)context;
#endif
}

/// Let the default action end the process: the access repeats after the return, or the signal does.
static void restore_default(int number, const siginfo_t *info)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(number, &action, NULL);
    if (info->si_code <= 0) { /* from kill() or raise() */
        raise(number);
    }
}

static void handle_signal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    if (is_refused_access(info)) {
        report_access((uintptr_t)info->si_addr, get_access(context));
    } else if (info->si_code <= 0) {
        report_earlier_access(context);
    }
    if ((previous.sa_flags & SA_SIGINFO) != 0) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    } else {
        restore_default(number, info);
    }
    errno = error;
}

static bool install_handler(void)
{
    struct sigaction action = {.sa_sigaction = handle_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    /* `previous` is complete before the handler can run */
    return sigaction(SIGSEGV, NULL, &previous) == 0 && sigaction(SIGSEGV, &action, NULL) == 0;
}

bool memrt__fault_signal_install(memrt__fault_report_fn report)
{
    static bool installed;
    size_t word, place = 0;
    memcpy(&word, &report, sizeof(word));
    while (memrt__load_relaxed(&reports[place]) != 0) {
        place++;
        MEMRT__ASSERT(place < MEMRT__FAULT_REPORTS);
    }
    installed = installed || install_handler();
    memrt__store_release(&reports[place], installed ? word : 0);
    return installed;
}
