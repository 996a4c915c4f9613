/* division_bytes.h - the bytes that move between the machines of a divided tape. */
#ifndef TESTS_SUPPORT_NUMERIC_DIVISION_BYTES_H
#define TESTS_SUPPORT_NUMERIC_DIVISION_BYTES_H

#include "engine/plan/division.h"

/* Bytes that move in a step. */
uint64_t division_bytes(const struct division *division, const struct tape *tape);

#endif /* TESTS_SUPPORT_NUMERIC_DIVISION_BYTES_H */
