/*
 * test.h - what the tests share: cmocka, skipping with a reason, shares of large counts, a
 * temporary folder and repeatable randomness. Nothing of the product lives here.
 */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Ends the running test as skipped; the runner shows the reason. Does not return. */
void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * How many of full_count cases to run now: share_count under "make test", a tenth of it (at
 * least 1) under "make check", full_count under "make soak".
 */
uint64_t test_share(uint64_t full_count, uint64_t share_count);

/* Minutes that "make soak" grants each long test; 0 in every other run. */
unsigned test_soak_minutes(void);

/*
 * A fresh empty folder below the system's temporary folder, removed with all that is in it when
 * the program exits normally. The text lives until then.
 */
const char *test_temp_dir(void);

/* One test alone: a program's first argument is its name, with * for any letters. */
void test_choose(int argc, char **argv);

/* Where the built program is. */
const char *test_program(void);

/* SplitMix64: the same numbers on every machine. *state is the seed and moves on. */
uint64_t test_random(uint64_t *state);

/* A number below limit (limit > 0); the slight bias of the remainder does not matter here. */
uint64_t test_random_below(uint64_t *state, uint64_t limit);

void test_random_fill(uint64_t *state, void *bytes, size_t size);

#endif /* TESTS_SUPPORT_TEST_H */
