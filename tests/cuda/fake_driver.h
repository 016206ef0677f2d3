#ifndef MEMRT_TESTS_CUDA_FAKE_DRIVER_H
#define MEMRT_TESTS_CUDA_FAKE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/// A CUDA driver without a device, for tests: a shared library with the functions of libcuda that
/// memrt calls, and the following, by which a test looks at it.
///
/// Device memory has addresses that the host cannot touch: a program that tries ends by SIGSEGV.
/// Its contents lie elsewhere. Work in streams waits until somebody waits for it, as it may on a
/// busy device: who forgets to wait reads what was there before, and memory that was freed too
/// early is noted as a fault.

#define FAKE_EXPORT __attribute__((visibility("default")))

/// Forget calls, failures and faults; what is allocated stays.
FAKE_EXPORT void fake_reset(void);

/// Have the `nth` next call of a function return `error`, and with `goes_on` all from there on.
FAKE_EXPORT void fake_fail(const char *function, unsigned nth, int error, int goes_on);

/// The calls since fake_reset(), one a line with their arguments; valid until the next call.
FAKE_EXPORT const char *fake_log(void);

/// How often a function was called since fake_reset().
FAKE_EXPORT unsigned fake_calls(const char *function);

/// Pieces of memory that are allocated now, whoever waits to free them.
FAKE_EXPORT unsigned fake_live(void);

/// Uses of memory that was freed, frees of what was not there, and the like, since fake_reset().
FAKE_EXPORT unsigned fake_faults(void);

/// Contexts that are current in the calling thread, one below the other.
FAKE_EXPORT unsigned fake_contexts(void);

/// Put work into a stream: `size` bytes at `address` become `value`.
FAKE_EXPORT void fake_launch(uintptr_t stream, uintptr_t address, int value, size_t size);

/// Read a byte of any memory as it is now, whatever waits. -1: nobody's.
FAKE_EXPORT int fake_peek(uintptr_t address);

/// Another address for a piece of memory, as a context of somebody else's has it.
FAKE_EXPORT uintptr_t fake_alias(uintptr_t address);

/// How many devices there are, and whether they have memory pools. 0: the driver does not start,
/// -1: it does, and knows none.
FAKE_EXPORT void fake_machine(int devices, int pools);

#endif
