/* config.c - see config.h. */
#include "base/cli/config.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"

/* A key is lower-case words with hyphens, as flags are. */
static bool is_key(const char *text)
{
    if (text[0] < 'a' || text[0] > 'z') {
        return false;
    }
    for (; *text != '\0'; text++) {
        bool letter = *text >= 'a' && *text <= 'z';
        bool digit = *text >= '0' && *text <= '9';

        if (!letter && !digit && *text != '-') {
            return false;
        }
    }
    return true;
}

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

/* Cuts blanks off both ends, in place. */
static char *trim_blanks(char *text)
{
    size_t length;

    while (is_blank(*text)) {
        text++;
    }
    length = strlen(text);
    while (length > 0 && is_blank(text[length - 1])) {
        length--;
    }
    text[length] = '\0';
    return text;
}

static enum status parse_line(struct config *config, struct error *error, const char *name,
                              char *text, unsigned line)
{
    char *start = trim_blanks(text);
    char *equals = strchr(start, '=');
    char *key;

    if (*start == '\0' || *start == '#') {
        return STATUS_OK;
    }
    if (equals == NULL) {
        return error_set(error, STATUS_USAGE, "%s:%u: not a line of key=value: '%.40s'", name, line,
                         start);
    }
    *equals = '\0';
    key = trim_blanks(start);
    if (!is_key(key)) {
        return error_set(error, STATUS_USAGE, "%s:%u: '%.40s' is not a key", name, line, key);
    }
    if (config->entry_count == CONFIG_ENTRIES_MAX) {
        return error_set(error, STATUS_USAGE, "%s:%u: more than %d settings", name, line,
                         CONFIG_ENTRIES_MAX);
    }
    config->entries[config->entry_count++] =
        (struct config_entry){.key = key, .value = trim_blanks(equals + 1), .line = line};
    return STATUS_OK;
}

static enum status parse_text(struct config *config, struct error *error, const char *name,
                              size_t size)
{
    char *at = config->text;
    unsigned line = 1;

    while (at < config->text + size) {
        size_t length = strcspn(at, "\n");
        bool last = at + length >= config->text + size;
        enum status status;

        if (!last && at[length] == '\0') {
            return error_set(error, STATUS_USAGE, "%s:%u: holds a zero byte", name, line);
        }
        at[length] = '\0';
        status = parse_line(config, error, name, at, line);
        if (status != STATUS_OK) {
            return status;
        }
        at += length + 1;
        line++;
    }
    return STATUS_OK;
}

enum status config_parse(struct config *config, struct error *error, const char *name,
                         const char *bytes, size_t size)
{
    enum status status;

    memset(config, 0, sizeof(*config));
    if (size > CONFIG_SIZE_MAX) {
        return error_set(error, STATUS_USAGE, "%s: larger than %d bytes", name, CONFIG_SIZE_MAX);
    }
    config->text = malloc(size + 1);
    config->entries = calloc(CONFIG_ENTRIES_MAX, sizeof(*config->entries));
    if (config->text == NULL || config->entries == NULL) {
        config_release(config);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", name);
    }
    if (size > 0) {
        memcpy(config->text, bytes, size);
    }
    config->text[size] = '\0';
    status = parse_text(config, error, name, size);
    if (status != STATUS_OK) {
        config_release(config);
    }
    return status;
}

enum status config_read(struct config *config, struct error *error, const char *path)
{
    struct file_bytes bytes;
    enum status status;

    memset(config, 0, sizeof(*config));
    status = file_read(&bytes, error, path, CONFIG_SIZE_MAX);
    if (status != STATUS_OK) {
        return status;
    }
    status = config_parse(config, error, path, (const char *)bytes.data, bytes.size);
    file_bytes_release(&bytes);
    return status;
}

void config_release(struct config *config)
{
    free(config->text);
    free(config->entries);
    memset(config, 0, sizeof(*config));
}
