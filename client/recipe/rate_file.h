/*
 * rate_file.h - a file of learning rates: one number a line, one line a step. Refused by line: what
 * is no number from 0 to 1e6, and a list that is not as long as the training.
 */
#ifndef CLIENT_RECIPE_RATE_FILE_H
#define CLIENT_RECIPE_RATE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RATE_FILE_SIZE_MAX ((size_t)256 << 20)

/* The rates of so many steps; the caller frees them. */
MUST_CHECK enum status rate_file_read(float **rates, const char *path, uint32_t steps,
                                      struct error *error);

/* The same of bytes in memory; what names them in errors. */
MUST_CHECK enum status rate_file_parse(float **rates, const void *bytes, size_t size,
                                       const char *what, uint32_t steps, struct error *error);

#endif /* CLIENT_RECIPE_RATE_FILE_H */
