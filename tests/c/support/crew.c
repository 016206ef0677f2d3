#include "support/crew.h"

#include <pthread.h>

#include "support/suite.h"

#define CREW_MAX 64

typedef struct crew {
    pthread_barrier_t ready;
    crew_fn work;
    void *context;
} crew_t;

typedef struct member {
    crew_t *crew;
    size_t index;
} member_t;

static void *run_member(void *argument)
{
    const member_t *member = argument;
    pthread_barrier_wait(&member->crew->ready);
    member->crew->work(member->index, member->crew->context);
    return NULL;
}

void crew_run(size_t count, crew_fn work, void *context)
{
    crew_t crew = {.work = work, .context = context};
    member_t members[CREW_MAX];
    pthread_t threads[CREW_MAX];
    REQUIRE(count <= CREW_MAX);
    pthread_barrier_init(&crew.ready, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        members[i] = (member_t){&crew, i};
        REQUIRE(pthread_create(&threads[i], NULL, run_member, &members[i]) == 0);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&crew.ready);
}
