/// Conformance clauses on concurrency: free on another thread, concurrent use, and use after fork.
///
/// No library tests an allocator behind a table: test suites of allocators replace malloc of the
/// process.

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/clauses.h"
#include "conformance/pattern.h"

#define THREADS 4
#define HANDED 16
#define CHILD_SECONDS 20u

typedef struct handed {
    trial_t *trial;
    void *blocks[HANDED];
} handed_t;

/// Return the size of a handed block: 70 bytes for index 0, more than a MiB for the last index.
static size_t handed_size(size_t index)
{
    return (size_t)70 << index;
}

static void *free_handed(void *argument)
{
    handed_t *handed = argument;
    for (size_t i = 0; i < HANDED; i++) {
        trial_free(handed->trial, handed->blocks[i], handed_size(i), 16);
    }
    return NULL;
}

static void make_handed(handed_t *handed)
{
    for (size_t i = 0; i < HANDED; i++) {
        handed->blocks[i] = trial_alloc(handed->trial, handed_size(i), 16);
        EXPECT(handed->trial, handed->blocks[i] != NULL, "%zu bytes were refused", handed_size(i));
        memset(handed->blocks[i], 0x3C, handed_size(i));
    }
}

void clause_free_elsewhere(trial_t *trial)
{
    handed_t handed = {.trial = trial};
    make_handed(&handed);
    pthread_t thread;
    if (!trial_goes_on(trial)) {
        return;
    }
    APPLIES(trial, pthread_create(&thread, NULL, free_handed, &handed) == 0,
            "the system refused a thread");
    pthread_join(thread, NULL);
    make_handed(&handed);
    if (trial_goes_on(trial)) {
        free_handed(&handed);
    }
}

typedef struct worker {
    trial_t *trial;
    pthread_barrier_t *ready;
    size_t index;
} worker_t;

#define HELD 8
#define ROUNDS 60

/// A block of one thread, filled with a pattern of its own.
typedef struct held {
    void *ptr; ///< NULL without a block
    size_t size, align;
    unsigned seed;
} held_t;

static void let_go(trial_t *trial, held_t *held)
{
    if (held->ptr != NULL) {
        EXPECT(trial, pattern_holds(held->ptr, held->size, held->seed),
               "another thread changed a block of %zu bytes", held->size);
        trial_free(trial, held->ptr, held->size, held->align);
        held->ptr = NULL;
    }
}

static void take(trial_t *trial, held_t *held)
{
    held->ptr = trial_alloc(trial, held->size, held->align);
    EXPECT(trial, held->ptr != NULL, "%zu bytes were refused", held->size);
    pattern_write(held->ptr, held->size, held->seed);
}

static void resize(trial_t *trial, held_t *held, size_t size)
{
    void *moved = trial_realloc(trial, held->ptr, held->size, size, held->align);
    EXPECT(trial, moved != NULL, "resizing %zu to %zu bytes was refused", held->size, size);
    held->ptr = moved;
    held->size = size;
    pattern_write(moved, size, held->seed);
}

/// Free one block and allocate another. Resize the new block in every odd round.
static void work_once(trial_t *trial, held_t *held, size_t index, size_t round)
{
    let_go(trial, held);
    *held = (held_t){.size = 200 + (round * 977 + index * 131) % 20000,
                     .align = (size_t)1 << ((round + index) % 5),
                     .seed = (unsigned)(index * ROUNDS + round)};
    if (trial_goes_on(trial)) {
        take(trial, held);
    }
    if (trial_goes_on(trial) && trial->allocator->realloc != NULL && round % 2 == 1) {
        resize(trial, held, 200 + (held->size * 7) % 30000);
    }
}

/// Allocate, resize and free blocks. All threads wait at a barrier every HELD rounds, while they
/// hold blocks.
static void *work(void *argument)
{
    const worker_t *worker = argument;
    held_t held[HELD] = {{0}};
    for (size_t round = 0; round < ROUNDS; round++) {
        if (round % HELD == 0) {
            pthread_barrier_wait(worker->ready);
        }
        if (trial_goes_on(worker->trial)) {
            work_once(worker->trial, &held[round % HELD], worker->index, round);
        }
    }
    for (size_t i = 0; i < HELD && trial_goes_on(worker->trial); i++) {
        let_go(worker->trial, &held[i]);
    }
    return NULL;
}

void clause_threads(trial_t *trial)
{
    pthread_barrier_t ready;
    worker_t workers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_init(&ready, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){trial, &ready, i};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            abort(); /* the other threads would wait at the barrier forever */
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&ready);
}

/// Use an inherited block and a new block in the child. Return the exit status: 0 for success, 1
/// for changed contents, 2 for a failed allocation.
static int use_inherited(trial_t *trial, void *inherited)
{
    if (!pattern_holds(inherited, 5000, 1)) {
        return 1;
    }
    trial_free(trial, inherited, 5000, 16);
    void *own = trial_alloc(trial, 5000, 16);
    if (own == NULL) {
        return 2;
    }
    pattern_write(own, 5000, 2);
    trial_free(trial, own, 5000, 16);
    return 0;
}

static int status_of_child(trial_t *trial, void *inherited)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(CHILD_SECONDS);
        _exit(use_inherited(trial, inherited));
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

void clause_fork(trial_t *trial)
{
    void *ptr = trial_alloc(trial, 5000, 16);
    EXPECT(trial, ptr != NULL, "5000 bytes were refused");
    pattern_write(ptr, 5000, 1);
    int status = status_of_child(trial, ptr);
    APPLIES(trial, status != -1, "the system refused a process");
    EXPECT(trial, !WIFSIGNALED(status), "the child was killed by signal %d (%s)", WTERMSIG(status),
           strsignal(WTERMSIG(status)));
    EXPECT(trial, WEXITSTATUS(status) != 1, "the contents of a block changed in the child");
    EXPECT(trial, WEXITSTATUS(status) == 0, "5000 bytes were refused in the child");
    EXPECT(trial, pattern_holds(ptr, 5000, 1), "the child changed a block of its parent");
    trial_free(trial, ptr, 5000, 16);
}
