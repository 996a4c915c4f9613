/*
 * base_config.h - config.json of a model as Hugging Face publishes it: what decoder it is.
 *
 * The file is hostile: bounded, strict JSON. Every key is used, or known to say nothing about what
 * the model computes, or must have the one value under which we compute the same; any other key is
 * refused by its name and value. So no published choice is ever ignored silently.
 *
 * The families are the rows of base_families.c. Of a folder of more than text it is the text part.
 */
#ifndef PROOFS_FORMAT_BASE_CONFIG_H
#define PROOFS_FORMAT_BASE_CONFIG_H

#include "proofs/format/base_families.h"

#define BASE_CONFIG_NAME     "config.json"
#define BASE_CONFIG_SIZE_MAX (1u << 20)

/* Reads config.json in the folder. */
MUST_CHECK enum status base_config_read(struct base_config *config, const char *folder,
                                        struct error *error);

/* The same of bytes in memory; what names them in errors. */
MUST_CHECK enum status base_config_parse(struct base_config *config, const void *bytes, size_t size,
                                         const char *what, struct error *error);

/* Can the model take sequences of so many tokens as we compute it? */
MUST_CHECK enum status base_config_check_length(const struct base_config *config, uint32_t length,
                                                struct error *error);

/* As many tokens as the model takes, as we compute it, and at most so many. */
uint32_t base_config_length(const struct base_config *config, uint32_t most);

#endif /* PROOFS_FORMAT_BASE_CONFIG_H */
