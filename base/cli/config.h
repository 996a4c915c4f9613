/*
 * config.h - the configuration file: lines of key=value, comments that start with #, empty lines.
 *
 * Blanks around key and value do not count; a value may hold any text but a line end, so there are
 * no quotes and no escapes. A line that is none of these is refused with file and line. options.c
 * knows what a key means. Nothing here reads the environment.
 */
#ifndef BASE_CLI_CONFIG_H
#define BASE_CLI_CONFIG_H

#include <stddef.h>

#include "base/error.h"

#define CONFIG_SIZE_MAX    65536
#define CONFIG_ENTRIES_MAX 512

struct config_entry {
    const char *key;
    const char *value;
    unsigned line; /* from 1 */
};

struct config {
    char *text; /* owned; keys and values point into it */
    struct config_entry *entries;
    size_t entry_count;
};

/* Reads bytes as a configuration. name is what errors call it. Zero-filled on failure. */
MUST_CHECK enum status config_parse(struct config *config, struct error *error, const char *name,
                                    const char *bytes, size_t size);

/* As config_parse, from a file. STATUS_NOT_FOUND when there is none. */
MUST_CHECK enum status config_read(struct config *config, struct error *error, const char *path);

/* Accepts a zero-filled config. */
void config_release(struct config *config);

#endif /* BASE_CLI_CONFIG_H */
