/* probe_i8mm.c - the probe of NEON with the products of bytes: see probe_body.h. */
#define PROBE_RUN probe_i8mm
#include "engine/cpu/isa/probe_arm_body.h"
