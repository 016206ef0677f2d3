#ifndef MEMRT_TESTS_FUZZ_SUPPORT_INPUT_H
#define MEMRT_TESTS_FUZZ_SUPPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/// The bytes that a fuzzer chose, read as whatever a target needs.
typedef struct input {
    const uint8_t *at, *end;
} input_t;

/// What libFuzzer calls for each input; anything but 0 is reserved.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline bool input_is_left(const input_t *input)
{
    return input->at < input->end;
}

/// The next byte; 0 past the end.
static inline uint8_t input_byte(input_t *input)
{
    return input_is_left(input) ? *input->at++ : 0;
}

/// The next `bytes` bytes as a number, the lowest first.
static inline uint64_t input_number(input_t *input, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++) {
        number |= (uint64_t)input_byte(input) << (8 * i);
    }
    return number;
}

/// What does not hold is a find: the fuzzer keeps the input.
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
