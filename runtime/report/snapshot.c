#include "runtime/report/snapshot.h"

#include <sched.h>
#include <string.h>

#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/policy/policy_table.h"
#include "runtime/policy/scope_tree.h"
#include "runtime/stats/pause.h"
#include "runtime/stats/stats.h"
#include "runtime/stats/thread_stats.h"

_Static_assert(sizeof(((memrt_level_stats_t *)NULL)->name) == MEMRT_NAME_MAX + 1, "names fit");

/// Time for which other threads may wait.
#define PATIENCE (50 * MEMRT__MS)

/// Elements of the caller, and the number of levels so far.
typedef struct writer {
    memrt_level_stats_t *out;
    size_t room, count;
} writer_t;

static void write_level(writer_t *writer, memrt_level_kind_t kind, const memrt__level_t *level,
                        uint64_t id, uint64_t parent, const char *name)
{
    if (writer->count < writer->room) {
        memrt_level_stats_t *out = &writer->out[writer->count];
        *out = (memrt_level_stats_t){
            .struct_size = sizeof(*out), .kind = kind, .id = id, .parent = parent};
        memcpy(out->name, name, strlen(name));
        memrt__stats_read_locked(level, &out->stats);
        out->stats.struct_size = sizeof(out->stats);
    }
    writer->count++;
}

/// Write the levels of all policies that callers can find.
static void write_policies(writer_t *writer)
{
    for (uint32_t index = 0; index < memrt__policy_table_end; index++) {
        const memrt_policy_t *policy = memrt__policies[index];
        if (policy != NULL && policy->base == policy) {
            write_level(writer, MEMRT_LEVEL_POLICY, &policy->level, policy->index, 0, policy->name);
        }
    }
}

static void write_scopes(writer_t *writer)
{
    for (const memrt_scope_t *s = memrt__scope_tree_first(); s != NULL; s = s->next) {
        uint64_t parent = s->parent == NULL ? 0 : s->parent->id;
        write_level(writer, MEMRT_LEVEL_SCOPE, &s->level, s->id, parent, s->name);
    }
}

/// Read all levels once. Returns whether no counter changed meanwhile.
static bool read_once(memrt_snapshot_t *snapshot, size_t level_room, size_t thread_room)
{
    writer_t writer = {snapshot->levels, level_room, 0};
    uint64_t before = memrt__stats_fingerprint();
    write_level(&writer, MEMRT_LEVEL_PROCESS, &memrt__process, 0, 0, "");
    write_policies(&writer);
    write_scopes(&writer);
    snapshot->level_count = writer.count;
    snapshot->thread_count = memrt__thread_stats_read_locked(snapshot->threads, thread_room);
    snapshot->readings++;
    return memrt__stats_fingerprint() == before;
}

/// Read until no counter changes. Between two readings, threads in the middle of an operation get
/// the processor. Under the locks of ranks POLICIES and THREADS.
static bool read_at_rest(memrt_snapshot_t *snapshot)
{
    size_t level_room = snapshot->level_count, thread_room = snapshot->thread_count;
    uint64_t start = memrt__os_now_ns();
    snapshot->readings = 0;
    memrt__stats_pause();
    bool consistent = read_once(snapshot, level_room, thread_room);
    while (!consistent && memrt__os_now_ns() - start < PATIENCE) {
        sched_yield();
        consistent = read_once(snapshot, level_room, thread_room);
    }
    memrt__stats_resume();
    snapshot->nanoseconds = memrt__os_now_ns() - start;
    if (snapshot->struct_size >= sizeof(*snapshot)) {
        snapshot->generation = memrt__stats_generation();
    }
    return consistent;
}

static bool has_sizes(const memrt_snapshot_t *snapshot)
{
    size_t i = 0;
    if (snapshot->struct_size < offsetof(memrt_snapshot_t, generation) ||
        (snapshot->levels == NULL && snapshot->level_count != 0)) {
        return false;
    }
    while (i < snapshot->level_count &&
           snapshot->levels[i].struct_size == sizeof(*snapshot->levels)) {
        i++;
    }
    return i == snapshot->level_count &&
           memrt__thread_stats_have_sizes(snapshot->threads, snapshot->thread_count);
}

memrt_status_t memrt__snapshot_read(memrt_snapshot_t *snapshot)
{
    if (!has_sizes(snapshot)) {
        return MEMRT_EINVAL;
    }
    memrt__lock(MEMRT__RANK_POLICIES);
    memrt__lock(MEMRT__RANK_THREADS);
    bool consistent = read_at_rest(snapshot);
    memrt__unlock(MEMRT__RANK_THREADS);
    memrt__unlock(MEMRT__RANK_POLICIES);
    return consistent ? MEMRT_OK : MEMRT_EBUSY;
}
