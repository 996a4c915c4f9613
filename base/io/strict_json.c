/* strict_json.c - see strict_json.h. */
#include "base/io/strict_json.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/hex.h"
#include "base/io/file.h"

/* Nesting is measured before jansson recurses. Inside text, brackets do not count. */
static unsigned nesting_of(const char *bytes, size_t size)
{
    unsigned depth = 0;
    unsigned deepest = 0;
    bool quoted = false;

    for (size_t i = 0; i < size; i++) {
        if (quoted && bytes[i] == '\\') {
            i++; /* any character may follow, a quote too */
        } else if (quoted) {
            quoted = bytes[i] != '"';
        } else if (bytes[i] == '"') {
            quoted = true;
        } else if (bytes[i] == '[' || bytes[i] == '{') {
            depth++;
            deepest = depth > deepest ? depth : deepest;
        } else if ((bytes[i] == ']' || bytes[i] == '}') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

static enum status parse_root(json_t **root, struct error *error, const char *what,
                              const void *bytes, size_t size, size_t size_max, unsigned depth_max,
                              size_t flags)
{
    json_error_t trouble;

    assert(depth_max <= STRICT_JSON_DEPTH_MAX);
    *root = NULL;
    if (size > size_max) {
        return error_set(error, STATUS_OVER_LIMIT, "%s: larger than %zu bytes", what, size_max);
    }
    /* jansson passes over a NUL behind a number or a literal. */
    if (size > 0 && memchr(bytes, '\0', size) != NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: a NUL in JSON", what);
    }
    if (nesting_of(bytes, size) > depth_max) {
        return error_set(error, STATUS_OVER_LIMIT, "%s: nested deeper than %u", what, depth_max);
    }
    *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES | flags, &trouble);
    if (*root == NULL) {
        if (json_error_code(&trouble) == json_error_out_of_memory) {
            return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", what);
        }
        return error_set(error, STATUS_BAD_FORMAT, "%s:%d:%d: %s", what, trouble.line,
                         trouble.column, trouble.text);
    }
    return STATUS_OK;
}

enum status strict_json_parse(json_t **root, struct error *error, const char *what,
                              const void *bytes, size_t size, size_t size_max, unsigned depth_max)
{
    return parse_root(root, error, what, bytes, size, size_max, depth_max, 0);
}

enum status strict_json_parse_escaped_nul(json_t **root, struct error *error, const char *what,
                                          const void *bytes, size_t size, size_t size_max,
                                          unsigned depth_max)
{
    return parse_root(root, error, what, bytes, size, size_max, depth_max, JSON_ALLOW_NUL);
}

enum status strict_json_parse_texts(json_t **root, struct error *error, const char *what,
                                    const void *bytes, size_t size, size_t size_max,
                                    unsigned depth_max)
{
    return parse_root(root, error, what, bytes, size, size_max, depth_max, JSON_DECODE_INT_AS_REAL);
}

bool strict_json_has_nul(const json_t *json)
{
    const char *key;
    json_t *value;
    size_t index;

    if (json_is_string(json)) {
        return strlen(json_string_value(json)) != json_string_length(json);
    }
    json_array_foreach((json_t *)json, index, value)
    {
        if (strict_json_has_nul(value)) {
            return true;
        }
    }
    json_object_foreach((json_t *)json, key, value)
    {
        if (strict_json_has_nul(value)) {
            return true;
        }
    }
    return false;
}

enum status strict_json_read(json_t **root, struct error *error, const char *path, size_t size_max,
                             unsigned depth_max)
{
    struct file_bytes bytes;
    enum status status;

    *root = NULL;
    status = file_read(&bytes, error, path, size_max);
    if (status != STATUS_OK) {
        return status;
    }
    status = strict_json_parse(root, error, path, bytes.data, bytes.size, size_max, depth_max);
    file_bytes_release(&bytes);
    return status;
}

/* The field, when it is there and passes; otherwise the sentence that says what it should be. */
static enum status find_field(const json_t *object, struct error *error, const json_t **field,
                              const char *key, const char *wanted,
                              bool (*passes)(const json_t *field))
{
    *field = json_object_get(object, key);
    if (*field == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s' is missing", key);
    }
    if (!passes(*field)) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s' is not %s", key, wanted);
    }
    return STATUS_OK;
}

static bool is_text(const json_t *field)
{
    return json_is_string(field);
}

static bool is_flag(const json_t *field)
{
    return json_is_boolean(field);
}

static bool is_array(const json_t *field)
{
    return json_is_array(field);
}

static bool is_count(const json_t *field)
{
    return json_is_integer(field) && json_integer_value(field) >= 0;
}

enum status strict_json_text(const json_t *object, struct error *error, const char **text,
                             const char *key)
{
    const json_t *field;
    enum status status = find_field(object, error, &field, key, "text", is_text);

    *text = status == STATUS_OK ? json_string_value(field) : NULL;
    return status;
}

enum status strict_json_number(const json_t *object, struct error *error, uint64_t *number,
                               const char *key, uint64_t maximum)
{
    const json_t *field;
    enum status status =
        find_field(object, error, &field, key, "a whole number from 0 on", is_count);

    *number = status == STATUS_OK ? (uint64_t)json_integer_value(field) : 0;
    if (*number > maximum) {
        *number = 0;
        return error_set(error, STATUS_OVER_LIMIT, "'%s' is more than %llu", key,
                         (unsigned long long)maximum);
    }
    return status;
}

enum status strict_json_flag(const json_t *object, struct error *error, bool *flag, const char *key)
{
    const json_t *field;
    enum status status = find_field(object, error, &field, key, "true or false", is_flag);

    *flag = status == STATUS_OK && json_is_true(field);
    return status;
}

const char *strict_json_text_or(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? otherwise : text;
}

int64_t strict_json_number_or_0(const json_t *object, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(object, key));
}

enum status strict_json_hex(const json_t *object, struct error *error, uint8_t *bytes, size_t size,
                            const char *key)
{
    const json_t *field;
    enum status status =
        find_field(object, error, &field, key, "text of hexadecimal digits", is_text);

    if (status != STATUS_OK) {
        return status;
    }
    if (hex_decode(bytes, size, json_string_value(field), json_string_length(field)) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s' is not %zu hexadecimal digits", key,
                         2 * size);
    }
    return STATUS_OK;
}

enum status strict_json_array(const json_t *object, struct error *error, const json_t **array,
                              const char *key, size_t count_max)
{
    enum status status = find_field(object, error, array, key, "an array", is_array);

    if (status == STATUS_OK && json_array_size(*array) > count_max) {
        status =
            error_set(error, STATUS_OVER_LIMIT, "'%s' has more than %zu elements", key, count_max);
    }
    if (status != STATUS_OK) {
        *array = NULL;
    }
    return status;
}

enum status strict_json_only(const json_t *object, struct error *error, const char *const *known,
                             size_t known_count)
{
    const char *key;
    json_t *value;

    /* jansson's iteration wants a pointer that is not const, and changes nothing. */
    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;

        while (i < known_count && strcmp(known[i], key) != 0) {
            i++;
        }
        if (i == known_count) {
            return error_set(error, STATUS_BAD_FORMAT, "unknown key '%.60s'", key);
        }
    }
    return STATUS_OK;
}

static int append_bytes(const char *bytes, size_t size, void *context)
{
    buffer_add(context, bytes, size);
    return 0; /* the buffer remembers a failure */
}

json_t *strict_json_real(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *strict_json_bytes(const void *bytes, size_t size)
{
    char *text = malloc(HEX_SIZE(size));
    json_t *json;

    if (text == NULL) {
        return NULL;
    }
    hex_encode(text, bytes, size);
    json = json_string(text);
    free(text);
    return json;
}

json_t *strict_json_digest(const void *digest)
{
    return strict_json_bytes(digest, DIGEST_SIZE);
}

json_t *strict_json_key(const void *key)
{
    char text[2 + HEX_SIZE(DIGEST_SIZE)] = "0x";

    hex_encode(text + 2, key, DIGEST_SIZE);
    return json_string(text);
}

enum status strict_json_write(struct buffer *text, struct error *error, const json_t *value,
                              size_t flags)
{
    if (value == NULL ||
        (json_dump_callback(value, append_bytes, text, flags) != 0 && text->status == STATUS_OK)) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to write JSON");
    }
    return buffer_check(text, error, "the JSON");
}

enum status strict_json_line(struct buffer *text, struct error *error, const json_t *value)
{
    TRY(strict_json_write(text, error, value, JSON_COMPACT | JSON_SORT_KEYS));
    buffer_add_text(text, "\n");
    return buffer_check(text, error, "the JSON");
}

enum status strict_json_save(const char *path, json_t *value, size_t flags, struct error *error)
{
    struct buffer text;
    enum status status;

    buffer_init(&text, SIZE_MAX / 2);
    TRY_OUT(strict_json_write(&text, error, value, flags));
    buffer_add_text(&text, "\n");
    TRY_OUT(buffer_check(&text, error, path));
    status = file_write_new(path, error, text.data, text.size, 0644);
out:
    buffer_release(&text);
    json_decref(value);
    return status;
}
