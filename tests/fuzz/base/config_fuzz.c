/* config_fuzz.c - any bytes as a config file: parsed entries must lie inside the text, in order. */
#include "base/cli/config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config config;
    struct error error;

    error_init(&error);
    if (config_parse(&config, &error, "fuzz", (const char *)data, size) != STATUS_OK) {
        if (error.text[0] == '\0' || config.text != NULL) {
            abort();
        }
        return 0;
    }
    for (size_t i = 0; i < config.entry_count; i++) {
        const struct config_entry *entry = &config.entries[i];

        if (entry->key < config.text || entry->value <= entry->key ||
            entry->value + strlen(entry->value) > config.text + size || entry->line == 0 ||
            (i > 0 && entry->line <= entry[-1].line)) {
            abort();
        }
    }
    config_release(&config);
    return 0;
}
