#ifndef MEMRT_TESTS_ABI_NRT_CALLER_H
#define MEMRT_TESTS_ABI_NRT_CALLER_H

#include "nrt_external.h"

/// Call all six functions of the table and verify the results.
void use_nrt(const NRT_api_functions *nrt);

#endif
