#ifndef MEMRT_TESTS_SUPPORT_PATTERN_H
#define MEMRT_TESTS_SUPPORT_PATTERN_H

#include "conformance/pattern.h"

#endif
