#include "support/child.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/atomics.h"
#include "runtime/base/compiler.h"
#include "runtime/config/options.h"
#include "support/suite.h"

typedef struct ending {
    int status;
    char text[16384]; ///< written to standard error by the child
} ending_t;

void child_start_watchdog(void)
{
    signal(SIGALRM, SIG_DFL); /* Check's handler is inherited and kills the whole process group */
    alarm(SUITE_TIMEOUT / 2);
    if (MEMRT__THREAD_SANITIZER) { /* it does not follow threads that a forked child starts */
        memrt__store_relaxed(&memrt__options.decay, MEMRT__DECAY_NEVER); /* read by other threads */
    }
}

int child_wait(pid_t child)
{
    int status;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static _Noreturn void run_in_child(child_fn act, void *context, int to)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    child_start_watchdog();
    dup2(to, STDERR_FILENO);
    act(context);
    _exit(0); /* exit would run the parent's exit handlers */
}

static void read_all_output(int from, char *text, size_t room)
{
    size_t length = 0;
    ssize_t got;
    while (length + 1 < room && (got = read(from, text + length, room - length - 1)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
}

static void run_child(child_fn act, void *context, ending_t *ending)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        run_in_child(act, context, ends[1]);
    }
    close(ends[1]);
    read_all_output(ends[0], ending->text, sizeof(ending->text));
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &ending->status, 0), child);
}

void child_expect_signal(child_fn act, void *context, int signal, const char *message)
{
    ending_t ending;
    run_child(act, context, &ending);
    ck_assert_msg(WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == signal,
                  "status %#x instead of signal %d; output: %s", ending.status, signal,
                  ending.text);
    ck_assert_msg(strstr(ending.text, message) != NULL, "no \"%s\" in: %s", message, ending.text);
}

void child_expect_abort(child_fn act, void *context, const char *message)
{
    child_expect_signal(act, context, SIGABRT, message);
}

void child_expect_exit(child_fn act, void *context, int status, const char *message)
{
    ending_t ending;
    run_child(act, context, &ending);
    ck_assert_msg(WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == status,
                  "status %#x; output: %s", ending.status, ending.text);
    ck_assert_msg(message == NULL ? ending.text[0] == '\0' : strstr(ending.text, message) != NULL,
                  "no \"%s\" in: %s", message == NULL ? "" : message, ending.text);
}

void child_expect_success(child_fn act, void *context)
{
    ending_t ending;
    run_child(act, context, &ending);
    ck_assert_msg(WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0,
                  "status %#x; output: %s", ending.status, ending.text);
}
