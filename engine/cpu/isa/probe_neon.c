/* probe_neon.c - the probe of NEON: see probe_body.h. */
#define PROBE_RUN probe_neon
#include "engine/cpu/isa/probe_arm_body.h"
