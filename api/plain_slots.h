#ifndef MEMRT_API_PLAIN_SLOTS_H
#define MEMRT_API_PLAIN_SLOTS_H

#include <memrt/external.h>

/// Functions of the plain table that no module of the runtime has with the signature of the slot.
/// memrt/external.h documents the slots.

int memrt__plain_try_acquire(memrt_meminfo_t *mi);
size_t memrt__plain_size(const memrt_meminfo_t *mi);
void *memrt__plain_dtor_info(const memrt_meminfo_t *mi);
int memrt__plain_readonly(const memrt_meminfo_t *mi);
memrt_external_allocator_t *memrt__plain_external_allocator(const memrt_meminfo_t *mi);
memrt_policy_t *memrt__plain_policy_of(const memrt_meminfo_t *mi);
const char *memrt__plain_policy_name(const memrt_policy_t *policy);
size_t memrt__plain_policy_alignment(const memrt_policy_t *policy);
uint32_t memrt__plain_policy_index(const memrt_policy_t *policy);
const memrt_allocator_t *memrt__plain_allocator_system(void);
const memrt_allocator_t *memrt__plain_allocator_mapped(void);
memrt_status_t memrt__plain_stats_read(const memrt_policy_t *policy, memrt_stats_t *out);
memrt_status_t memrt__plain_stats_sizes(const memrt_policy_t *policy, memrt_sizes_t *out);
void memrt__plain_stats_reset_peak(memrt_policy_t *policy);
int memrt__plain_tracking(int on);
int memrt__plain_tracking_enabled(void);
int memrt__plain_option(size_t index, memrt_option_t *out);
const char *memrt__plain_status_text(memrt_status_t status);
int memrt__plain_policy_option(const memrt_policy_t *policy, size_t index, memrt_option_t *out);
memrt_scope_t *memrt__plain_scope_of(const memrt_meminfo_t *mi);
memrt_scope_t *memrt__plain_scope_parent(const memrt_scope_t *scope);
const char *memrt__plain_scope_name(const memrt_scope_t *scope);
uint32_t memrt__plain_scope_id(const memrt_scope_t *scope);
memrt_status_t memrt__plain_scope_stats(const memrt_scope_t *scope, memrt_stats_t *out);
void memrt__plain_scope_sizes(const memrt_scope_t *scope, uint64_t *out);
memrt_status_t memrt__plain_scope_stats_sizes(const memrt_scope_t *scope, memrt_sizes_t *out);
void memrt__plain_scope_reset_peak(memrt_scope_t *scope);
size_t memrt__plain_cuda_why_not(char *text, size_t length);
const memrt_allocator_t *memrt__plain_allocator_pinned(void);

#endif
