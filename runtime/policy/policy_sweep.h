#ifndef MEMRT_POLICY_POLICY_SWEEP_H
#define MEMRT_POLICY_POLICY_SWEEP_H

#include <stddef.h>

/// Sweep: destroys policies that no reference and no block needs.

/// Number of destroyed subpolicies. After a change, a remembered subpolicy address may be reused.
extern size_t memrt__subpolicies_gone;

/// Destroy the policies that have neither references nor live blocks.
void memrt__policy_sweep(void);

#endif
