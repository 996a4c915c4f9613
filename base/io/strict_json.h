/*
 * strict_json.h - JSON from outside: bounded in size and depth, without duplicate keys, trailing
 * bytes or NUL, raw or as an escape: text is read as C strings. Whole numbers are exact or refused,
 * never rounded. Over jansson.
 *
 * The getters say in one sentence which field is missing or wrong. They borrow: what they return
 * lives as long as the object.
 */
#ifndef BASE_IO_STRICT_JSON_H
#define BASE_IO_STRICT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define STRICT_JSON_DEPTH_MAX 64

/* Parses bytes into *root (caller: json_decref). what names them in errors. depth_max of at most
 * STRICT_JSON_DEPTH_MAX arrays and objects inside each other. *root is NULL on failure. */
MUST_CHECK enum status strict_json_parse(json_t **root, struct error *error, const char *what,
                                         const void *bytes, size_t size, size_t size_max,
                                         unsigned depth_max);

/* As strict_json_parse, but strings may hold the escape \u0000: for words of others that are only
 * shown. What is read as text must be asked for with strict_json_has_nul(). */
MUST_CHECK enum status strict_json_parse_escaped_nul(json_t **root, struct error *error,
                                                     const char *what, const void *bytes,
                                                     size_t size, size_t size_max,
                                                     unsigned depth_max);

/* As strict_json_parse, but all numbers are reals, however large: for files of others of which no
 * number is read. */
MUST_CHECK enum status strict_json_parse_texts(json_t **root, struct error *error, const char *what,
                                               const void *bytes, size_t size, size_t size_max,
                                               unsigned depth_max);

/* Does a string of json, at any depth, hold a NUL? NULL has none. */
bool strict_json_has_nul(const json_t *json);

/* As strict_json_parse, from a file. */
MUST_CHECK enum status strict_json_read(json_t **root, struct error *error, const char *path,
                                        size_t size_max, unsigned depth_max);

MUST_CHECK enum status strict_json_text(const json_t *object, struct error *error,
                                        const char **text, const char *key);

/* A whole number that is not negative; at most 2^63 - 1, which is all that jansson can hold. */
MUST_CHECK enum status strict_json_number(const json_t *object, struct error *error,
                                          uint64_t *number, const char *key, uint64_t maximum);

MUST_CHECK enum status strict_json_flag(const json_t *object, struct error *error, bool *flag,
                                        const char *key);

/* Of an object that is our own: its text, or otherwise where it has none; its number, or 0. */
const char *strict_json_text_or(const json_t *object, const char *key, const char *otherwise);
int64_t strict_json_number_or_0(const json_t *object, const char *key);

/* Text of exactly 2 * size hexadecimal digits, with or without 0x. */
MUST_CHECK enum status strict_json_hex(const json_t *object, struct error *error, uint8_t *bytes,
                                       size_t size, const char *key);

/* An array of at most count_max elements. */
MUST_CHECK enum status strict_json_array(const json_t *object, struct error *error,
                                         const json_t **array, const char *key, size_t count_max);

/* Refuses keys that are not in known: a mistyped setting must not be ignored. */
MUST_CHECK enum status strict_json_only(const json_t *object, struct error *error,
                                        const char *const *known, size_t known_count);

/* What JSON can say: null where it is no finite number. */
json_t *strict_json_real(double number);

/* Bytes as lower-case hexadecimal digits; NULL: no memory. 32 of them: a digest, or, with "0x", a
 * key. */
json_t *strict_json_bytes(const void *bytes, size_t size);
json_t *strict_json_digest(const void *digest);
json_t *strict_json_key(const void *key);

/* Appends value as text; flags are jansson's. json_dumps would silently leave out a part when
 * memory runs out. NULL is lack of memory. */
MUST_CHECK enum status strict_json_write(struct buffer *text, struct error *error,
                                         const json_t *value, size_t flags);

/* Appends a line of it that is compact and has sorted keys: the same value has the same bytes on
 * every machine. */
MUST_CHECK enum status strict_json_line(struct buffer *text, struct error *error,
                                        const json_t *value);

/* Writes it to a new file; flags are jansson's. Takes the reference, also after a failure. */
MUST_CHECK enum status strict_json_save(const char *path, json_t *value, size_t flags,
                                        struct error *error);

#endif /* BASE_IO_STRICT_JSON_H */
