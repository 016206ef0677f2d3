#ifndef MEMRT_POLICY_POLICY_SWEEP_H
#define MEMRT_POLICY_POLICY_SWEEP_H

#include <stdint.h>

/// Sweep: destroys policies that no reference and no block needs.

/// Destroy all policies that have neither references nor live blocks.
void memrt__policy_sweep(void);

/// Destroy the policy at `index`, if the policy has neither references nor live blocks. Before a
/// base policy, visit its latest subpolicies, MEMRT__SWEEP_STEPS at most. After the first policy
/// with live blocks, the visit ends.
void memrt__policy_sweep_at(uint32_t index);

/// Visit the next MEMRT__SWEEP_STEPS indices of the table, and destroy policies as
/// memrt__policy_sweep(). The visit ends after MEMRT__SWEEP_WAITS policies with live blocks. The
/// next call continues after the last visited index, so repeated calls visit all policies. With
/// many threads, a call visits nothing while earlier calls exceeded MEMRT__SWEEP_READINGS on
/// average.
void memrt__policy_sweep_some(void);

/// Indices that a bounded sweep visits at most.
#define MEMRT__SWEEP_STEPS 16u

/// Policies without references but with live blocks that a bounded sweep meets at most. Each of
/// these policies costs a reading of the counters of all threads.
#define MEMRT__SWEEP_WAITS 1u

/// Shards that memrt__policy_sweep_some() reads per call, on average over many calls: two readings
/// of one policy's shards of 6 threads.
#define MEMRT__SWEEP_READINGS 12u

#endif
