/*
 * base_rotation.h - what config.json says of rotary positions. For base_config.c.
 */
#ifndef PROOFS_FORMAT_BASE_ROTATION_H
#define PROOFS_FORMAT_BASE_ROTATION_H

#include "proofs/format/base_families.h"

/* rope_scaling, or rope_parameters of newer configs, which also hold the base. */
enum status rotation_take(struct reading *reading, const char *name, json_t *value,
                          struct error *error);
/* What follows from several keys. */
enum status rotation_settle(struct reading *reading, struct error *error);

#endif /* PROOFS_FORMAT_BASE_ROTATION_H */
