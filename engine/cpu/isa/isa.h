/*
 * isa.h - which instruction sets of this machine may compute.
 *
 * An instruction set may compute where the processor has it and where it has shown, once in this
 * process, that its operations have the bits of the rules (probe.h). An emulator or a faulty
 * processor may have it and not the bits.
 */
#ifndef ENGINE_CPU_ISA_ISA_H
#define ENGINE_CPU_ISA_ISA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum isa {
    ISA_SCALAR = 0, /* the looped rules */
    ISA_AVX2,       /* AVX2, FMA, F16C and BMI2 */
    ISA_AVX512,     /* these and AVX-512 F, BW, DQ, VL and VNNI */
    ISA_NEON,       /* of 64-bit ARM */
    ISA_I8MM,       /* this and the dot and matrix products of bytes */
    ISA_COUNT,
};

const char *isa_name(enum isa isa);

/* May isa compute here? */
bool isa_available(enum isa isa);

/* The best instruction set that may compute. */
enum isa isa_best(void);

/* STATUS_USAGE where the processor has no isa, STATUS_REFUSED where isa computes other bits. */
MUST_CHECK enum status isa_check(enum isa isa, struct error *error);

/* One line for the user where the processor has an instruction set that computes other bits. */
bool isa_trouble(char *line, size_t size);

#endif /* ENGINE_CPU_ISA_ISA_H */
