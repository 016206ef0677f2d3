#ifndef MEMRT_TESTS_FUZZ_SUPPORT_INPUT_H
#define MEMRT_TESTS_FUZZ_SUPPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/// Bytes from the fuzzer, read as numbers by a fuzz target.
typedef struct input {
    const uint8_t *at, *end;
} input_t;

/// Run the fuzz target on one input. libFuzzer calls the function for each input. The result must
/// be 0, because other values are reserved.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline bool input_is_left(const input_t *input)
{
    return input->at < input->end;
}

/// Return the next byte, or 0 past the end.
static inline uint8_t input_byte(input_t *input)
{
    return input_is_left(input) ? *input->at++ : 0;
}

/// Return the next `bytes` bytes as a little-endian number.
static inline uint64_t input_number(input_t *input, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++) {
        number |= (uint64_t)input_byte(input) << (8 * i);
    }
    return number;
}

/// Abort unless `condition` holds. The fuzzer then saves the input as a crash.
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
