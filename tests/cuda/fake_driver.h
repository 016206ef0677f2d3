#ifndef MEMRT_TESTS_CUDA_FAKE_DRIVER_H
#define MEMRT_TESTS_CUDA_FAKE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/// A CUDA driver without a device, for tests: a shared library with the libcuda functions that
/// memrt calls. The functions below let a test control and inspect the driver.
///
/// Device memory has addresses that the host cannot touch: a program that tries ends by SIGSEGV.
/// The contents lie at other addresses. Work in a stream stays queued until a call waits for the
/// work, as on a busy device. A program that does not wait reads the old contents. A use of memory
/// that was freed too early counts as a fault.
///
/// No library replaces the driver: simulators such as GPGPU-Sim run kernels, but neither fail calls
/// nor record misuse.

#define FAKE_EXPORT __attribute__((visibility("default")))

/// Forget calls, failures and faults. Allocated memory stays.
FAKE_EXPORT void fake_reset(void);

/// Make the `nth` next call of a function return `error`, and all later calls if `goes_on`.
FAKE_EXPORT void fake_fail(const char *function, unsigned nth, int error, int goes_on);

/// Make the next call of a function wait for fake_let_go(). A wait of 5 seconds ends by itself and
/// is a fault.
FAKE_EXPORT void fake_hold(const char *function);

/// Return whether a call waits for fake_let_go().
FAKE_EXPORT int fake_holds(void);

/// Let the waiting call continue.
FAKE_EXPORT void fake_let_go(void);

/// Return the calls since fake_reset(), each on a line with its arguments. Valid until the next
/// call.
FAKE_EXPORT const char *fake_log(void);

/// Return the number of calls of a function since fake_reset().
FAKE_EXPORT unsigned fake_calls(const char *function);

/// Return the number of allocated pieces of memory, except pieces whose free waits in a stream.
FAKE_EXPORT unsigned fake_live(void);

/// Return the number of faults since fake_reset(): uses of freed memory, invalid frees, unknown
/// streams, accesses beyond the end or to addresses that are not mapped.
FAKE_EXPORT unsigned fake_faults(void);

/// Return the depth of the calling thread's stack of contexts.
FAKE_EXPORT unsigned fake_contexts(void);

/// Add work to a stream: `size` bytes at `address` become `value`. An unknown stream is a fault.
FAKE_EXPORT void fake_launch(uintptr_t stream, uintptr_t address, int value, size_t size);

/// Return a byte of memory in its current state, without pending work; -1 if freed or unknown.
FAKE_EXPORT int fake_peek(uintptr_t address);

/// Return a second address of a piece of memory, as in another context. The host cannot touch the
/// address.
FAKE_EXPORT uintptr_t fake_alias(uintptr_t address);

/// Set the number of devices, and whether the devices have memory pools. With 0 devices, cuInit
/// fails. With -1, cuInit succeeds and finds no device.
FAKE_EXPORT void fake_machine(int devices, int pools);

#endif
