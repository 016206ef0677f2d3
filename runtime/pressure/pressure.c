#include "runtime/pressure/pressure.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/os/lock.h"
#include "runtime/os/os.h"
#include "runtime/policy/soft_limit.h"
#include "runtime/pressure/headroom.h"
#include "runtime/pressure/pressure_callbacks.h"
#include "runtime/pressure/pressure_thread.h"

memrt_status_t memrt__pressure_read(memrt_pressure_t *out)
{
    if (out->struct_size < sizeof(out->struct_size)) {
        return MEMRT_EINVAL;
    }
    memrt__pressure_state_t state;
    memrt__headroom_t room = memrt__headroom_read();
    memrt__lock(MEMRT__RANK_PRESSURE);
    memrt_pressure_source_t source = memrt__pressure_last_state(&state);
    memrt__unlock(MEMRT__RANK_PRESSURE);
    memrt_pressure_level_t level =
        memrt__pressure_update(&state, room.permille, MEMRT_PRESSURE_NONE, memrt__os_now_ns());
    size_t above = memrt__load_relaxed(&memrt__soft_limits_above);
    memrt_pressure_t pressure = {.struct_size = out->struct_size,
                                 .level = memrt__pressure_raise(level, above),
                                 .source = source,
                                 .limit = room.limit,
                                 .used = room.used,
                                 .headroom = room.limit > room.used ? room.limit - room.used : 0,
                                 .of = room.of,
                                 .above_soft = above};
    memcpy(out, &pressure, memrt__size_min(out->struct_size, sizeof(pressure)));
    return MEMRT_OK;
}

/// Add a callback and start the thread. Under the lock.
static memrt_status_t add_callback(memrt_pressure_callback callback, void *context,
                                   memrt_pressure_level_t level, uint64_t *id)
{
    uint64_t added = memrt__pressure_callbacks_add(callback, context, level);
    if (added == 0) {
        return MEMRT_ELIMIT;
    }
    if (!memrt__pressure_hurry()) {
        (void)memrt__pressure_callbacks_remove(added, false);
        return MEMRT_ENOMEM;
    }
    *id = added;
    return MEMRT_OK;
}

memrt_status_t memrt__pressure_add(memrt_pressure_callback callback, void *context,
                                   memrt_pressure_level_t level, uint64_t *id)
{
    if (callback == NULL || id == NULL || level < MEMRT_PRESSURE_LOW ||
        level > MEMRT_PRESSURE_CRITICAL) {
        return MEMRT_EINVAL;
    }
    memrt__pressure_callbacks_start();
    memrt__lock(MEMRT__RANK_PRESSURE);
    memrt_status_t status = add_callback(callback, context, level, id);
    memrt__unlock(MEMRT__RANK_PRESSURE);
    return status;
}

memrt_status_t memrt__pressure_remove(uint64_t id)
{
    memrt__pressure_callbacks_start();
    memrt__lock(MEMRT__RANK_PRESSURE);
    bool found = memrt__pressure_callbacks_remove(id, true);
    (void)memrt__pressure_hurry(); /* the thread may have no more work */
    memrt__unlock(MEMRT__RANK_PRESSURE);
    return found ? MEMRT_OK : MEMRT_ENOENT;
}
