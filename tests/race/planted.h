/*
 * planted.h - small kernels, each with one fault and with a twin that has none: what race_test.c
 * holds the detector to. They are compiled as the true ones are.
 */
#ifndef TESTS_RACE_PLANTED_H
#define TESTS_RACE_PLANTED_H

#ifndef RACECHECK
#define RACECHECK
#endif
#include "tests/race/race.h"
#include "tests/support/device/emulator.h"

#define PLANTED_WORDS   1024 /* of words, written; as many of fresh, which nobody wrote */
#define PLANTED_DYNAMIC 9216 /* bytes of dynamic shared memory */

struct planted_args {
    uint32_t *words;
    uint32_t *fresh;
    uint32_t *tickets; /* zeros */
    uint32_t sound;    /* the twin without a fault */
};

struct planted {
    const char *name;
    emulated_kernel *kernel;
    enum race_kind kind; /* what is to be found, perhaps with what follows from it */
    uint32_t grid;
    uint32_t block;
};

extern const struct planted planted[];
extern const uint32_t planted_count;

#endif /* TESTS_RACE_PLANTED_H */
