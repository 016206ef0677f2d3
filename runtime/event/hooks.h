#ifndef MEMRT_EVENT_HOOKS_H
#define MEMRT_EVENT_HOOKS_H

#include <memrt/observe/hook.h>

#include "runtime/event/block_event.h"

/// Hooks: observers that programs add and remove. Each hook has a bit in the flags of a block, so a
/// resize or free reaches only the hooks that know the block.

/// Implementations of the memrt_api_t functions with the same names.
memrt_status_t memrt__hook_add(const memrt_hook_t *hook, uint64_t *id) MEMRT_MUST_CHECK;
memrt_status_t memrt__hook_remove(uint64_t id) MEMRT_MUST_CHECK;

/// Call the hooks in `wanted`, a set of bits of MEMRT__FLAG_HOOKS. An allocation sets the bits of
/// the hooks that take the block; `wanted` is then the set of all hooks.
void memrt__hooks_notify(const memrt__block_event_t *event, unsigned wanted);

/// In a forked child: forget the calls that run in threads of the parent.
void memrt__hooks_forked(void);

#endif
