/* receipt.c - see receipt.h. */
#include "proofs/receipt/receipt.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "engine/decode/sampler.h"
#include "engine/ops/real.h"
#include "engine/rules/rule.h"

#define BEGINNING "{\"config\":"
#define DEPTH_MAX 2
#define BITS_SIZE 8 /* digits of a binary32 */

enum status receipt_init(struct receipt *receipt, uint32_t count, uint32_t prompt,
                         struct error *error)
{
    struct receipt_row *row = &receipt->row;

    *receipt = (struct receipt){.rules_version = RULES_VERSION};
    if (prompt == 0 || count <= prompt || count > RECEIPT_TOKENS_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a receipt of %u tokens, of which %u are the prompt: there must be one or "
                         "more of prompt and of answer, and at most %u",
                         count, prompt, RECEIPT_TOKENS_MAX);
    }
    row->count = count;
    row->prompt = prompt;
    row->top_p = 1.0f;
    row->tokens = calloc(count, sizeof(*row->tokens));
    row->thresholds_p = calloc(count - prompt, sizeof(*row->thresholds_p));
    row->thresholds_k = calloc(count - prompt, sizeof(*row->thresholds_k));
    if (row->tokens == NULL || row->thresholds_p == NULL || row->thresholds_k == NULL) {
        receipt_release(receipt);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a receipt of %u tokens", count);
    }
    return STATUS_OK;
}

void receipt_release(struct receipt *receipt)
{
    free(receipt->row.tokens);
    free(receipt->row.thresholds_p);
    free(receipt->row.thresholds_k);
    *receipt = (struct receipt){0};
}

uint32_t receipt_answer(const struct receipt *receipt)
{
    return receipt->row.count - receipt->row.prompt;
}

static bool ends_answers(const struct receipt *receipt, uint32_t token)
{
    for (uint32_t i = 0; i < receipt->stop_count; i++) {
        if (receipt->stops[i] == token) {
            return true;
        }
    }
    return false;
}

bool receipt_stopped(const struct receipt *receipt)
{
    return ends_answers(receipt, receipt->row.tokens[receipt->row.count - 1]);
}

/* ---- writing -------------------------------------------------------------- */

static json_t *json_float(float value)
{
    char text[BITS_SIZE + 1];

    (void)snprintf(text, sizeof(text), "%08x", real_to_bits(value));
    return json_string(text);
}

static json_t *json_floats(const float *values, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, json_float(values[i]));
    }
    return list;
}

static json_t *json_tokens(const uint32_t *tokens, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, json_integer((json_int_t)tokens[i]));
    }
    return list;
}

static json_t *receipt_json(const struct receipt *receipt)
{
    const struct receipt_row *row = &receipt->row;
    const uint32_t answer = receipt_answer(receipt);
    char seed[17];

    (void)snprintf(seed, sizeof(seed), "%016llx", (unsigned long long)row->seed);
    return json_pack("{s:o, s:s, s:o, s:I, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "config",
                     strict_json_digest(&receipt->config), "format", RECEIPT_FORMAT, "model_root",
                     strict_json_digest(&receipt->model_root), "prompt_tokens",
                     (json_int_t)row->prompt, "rules", (json_int_t)receipt->rules_version, "seed",
                     seed, "stops", json_tokens(receipt->stops, receipt->stop_count), "temperature",
                     json_float(row->temperature), "thresholds_k",
                     json_floats(row->thresholds_k, answer), "thresholds_p",
                     json_floats(row->thresholds_p, answer), "tokens",
                     json_tokens(row->tokens, row->count), "top_k", (json_int_t)row->top_k, "top_p",
                     json_float(row->top_p));
}

enum status receipt_bytes(struct buffer *bytes, struct error *error, const struct receipt *receipt)
{
    json_t *json = receipt_json(receipt);
    const enum status status = strict_json_line(bytes, error, json);

    json_decref(json);
    return status;
}

enum status receipt_write(const struct receipt *receipt, struct error *error, const char *path)
{
    struct buffer bytes;
    enum status status;

    buffer_init(&bytes, RECEIPT_SIZE_MAX);
    status = receipt_bytes(&bytes, error, receipt);
    if (status == STATUS_OK) {
        status = file_write(path, error, bytes.data, bytes.size, 0644);
    }
    buffer_release(&bytes);
    return status;
}

/* ---- reading -------------------------------------------------------------- */

static enum status float_of(float *value, const json_t *json, const char *name, struct error *error)
{
    uint8_t bytes[4];
    const char *text = json_string_value(json);

    if (text == NULL || strlen(text) != BITS_SIZE ||
        hex_decode(bytes, sizeof(bytes), text, BITS_SIZE) != STATUS_OK) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "'%s': no binary32, as its bits in 8 hexadecimal digits", name);
    }
    *value = real_from_bits((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
                            (uint32_t)bytes[2] << 8 | bytes[3]);
    /* -0 compares as 0 does, so that a claim would have two files. */
    return signbit(*value) ? error_set(error, STATUS_BAD_FORMAT, "'%s': a number below +0", name)
                           : STATUS_OK;
}

/* Thresholds are shares of the probability; those of a rule that is off are 0. */
static enum status read_thresholds(float *values, uint32_t count, bool on, const json_t *root,
                                   const char *name, struct error *error)
{
    const json_t *list;

    TRY(strict_json_array(root, error, &list, name, RECEIPT_TOKENS_MAX));
    if (json_array_size(list) != count) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s': %zu thresholds for %u tokens", name,
                         json_array_size(list), count);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(float_of(&values[i], json_array_get(list, i), name, error));
        if (!(values[i] >= 0.0f && values[i] <= 1.0f) || (!on && values[i] != 0.0f)) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s': number %u is %s", name, i,
                             on ? "no share" : "not 0, and the rule is off");
        }
    }
    return STATUS_OK;
}

static enum status read_tokens(uint32_t *tokens, const json_t *list, const char *name,
                               struct error *error)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);

        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) > RECEIPT_VOCABULARY_MAX) {
            return error_set(error, STATUS_BAD_FORMAT, "'%s': number %zu is no token", name, i);
        }
        tokens[i] = (uint32_t)json_integer_value(item);
    }
    return STATUS_OK;
}

/* How tokens were chosen: as engine/decode/sampler.h takes it. */
static enum status read_rule(struct receipt_row *row, const json_t *root, struct error *error)
{
    uint64_t top_k = 0;
    uint8_t seed[8];

    TRY(float_of(&row->temperature, json_object_get(root, "temperature"), "temperature", error));
    TRY(float_of(&row->top_p, json_object_get(root, "top_p"), "top_p", error));
    TRY(strict_json_number(root, error, &top_k, "top_k", RECEIPT_VOCABULARY_MAX));
    TRY(strict_json_hex(root, error, seed, sizeof(seed), "seed"));
    row->top_k = (uint32_t)top_k;
    row->seed = 0;
    for (size_t i = 0; i < sizeof(seed); i++) {
        row->seed = row->seed << 8 | seed[i];
    }
    if (!(row->temperature == 0.0f || (row->temperature >= SAMPLER_TEMPERATURE_LEAST &&
                                       row->temperature <= SAMPLER_TEMPERATURE_MAX)) ||
        !(row->top_p > 0.0f && row->top_p <= 1.0f) ||
        (row->temperature == 0.0f && (row->top_k != 0 || row->top_p < 1.0f))) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a temperature of %g, top-k of %u and top-p of %g choose no token",
                         (double)row->temperature, row->top_k, (double)row->top_p);
    }
    /* No condition would hold it. */
    return row->temperature == 0.0f && row->seed != 0
               ? error_set(error, STATUS_BAD_FORMAT, "a seed of no draw: it must be 0")
               : STATUS_OK;
}

static enum status read_stops(struct receipt *receipt, const json_t *root, struct error *error)
{
    const struct receipt_row *row = &receipt->row;
    const json_t *list;

    TRY(strict_json_array(root, error, &list, "stops", RECEIPT_STOPS_MAX));
    TRY(read_tokens(receipt->stops, list, "stops", error));
    receipt->stop_count = (uint32_t)json_array_size(list);
    for (uint32_t i = 1; i < receipt->stop_count; i++) {
        if (receipt->stops[i] <= receipt->stops[i - 1]) {
            return error_set(error, STATUS_BAD_FORMAT, "'stops' do not rise");
        }
    }
    for (uint32_t i = row->prompt; i + 1 < row->count; i++) {
        if (ends_answers(receipt, row->tokens[i])) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "token %u of the answer ends answers, and this one goes on",
                             i - row->prompt);
        }
    }
    return STATUS_OK;
}

static enum status read_all(struct receipt *receipt, const json_t *root, struct error *error)
{
    static const char *const keys[] = {
        "config",      "format",       "model_root",   "prompt_tokens", "rules", "seed", "stops",
        "temperature", "thresholds_k", "thresholds_p", "tokens",        "top_k", "top_p"};
    struct receipt_row *row = &receipt->row;
    const json_t *tokens;
    const char *format;
    uint64_t prompt = 0;
    uint64_t rules = 0;

    TRY(strict_json_text(root, error, &format, "format"));
    if (strcmp(format, RECEIPT_FORMAT) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "the format '%.40s'; this program reads '%s'",
                         format, RECEIPT_FORMAT);
    }
    TRY(strict_json_only(root, error, keys, sizeof(keys) / sizeof(keys[0])));
    TRY(strict_json_number(root, error, &rules, "rules", UINT32_MAX));
    if (rules != RULES_VERSION) {
        return error_set(error, STATUS_REFUSED,
                         "the receipt is made for version %llu of the rules; this program knows %d",
                         (unsigned long long)rules, RULES_VERSION);
    }
    TRY(strict_json_number(root, error, &prompt, "prompt_tokens", RECEIPT_TOKENS_MAX));
    TRY(strict_json_array(root, error, &tokens, "tokens", RECEIPT_TOKENS_MAX));
    TRY(receipt_init(receipt, (uint32_t)json_array_size(tokens), (uint32_t)prompt, error));
    TRY(read_tokens(row->tokens, tokens, "tokens", error));
    TRY(read_rule(row, root, error));
    TRY(read_thresholds(row->thresholds_p, receipt_answer(receipt), row->top_p < 1.0f, root,
                        "thresholds_p", error));
    TRY(read_thresholds(row->thresholds_k, receipt_answer(receipt), row->top_k != 0, root,
                        "thresholds_k", error));
    TRY(read_stops(receipt, root, error));
    TRY(strict_json_hex(root, error, receipt->config.bytes, DIGEST_SIZE, "config"));
    return strict_json_hex(root, error, receipt->model_root.bytes, DIGEST_SIZE, "model_root");
}

/* One receipt has one file: other bytes that say the same are refused. */
static enum status check_canonical(const struct receipt *receipt, const void *bytes, size_t size,
                                   struct error *error)
{
    struct buffer again;
    enum status status;
    bool same;

    buffer_init(&again, RECEIPT_SIZE_MAX);
    status = receipt_bytes(&again, error, receipt);
    same = status == STATUS_OK && again.size == size && memcmp(again.data, bytes, size) == 0;
    buffer_release(&again);
    TRY(status);
    return same ? STATUS_OK
                : error_set(error, STATUS_BAD_FORMAT,
                            "the bytes are not those of a receipt: no blanks, sorted keys, one "
                            "newline at the end");
}

enum status receipt_parse(struct receipt *receipt, struct error *error, const char *what,
                          const void *bytes, size_t size)
{
    json_t *root = NULL;
    enum status status;

    *receipt = (struct receipt){0};
    TRY(strict_json_parse(&root, error, what, bytes, size, RECEIPT_SIZE_MAX, DEPTH_MAX));
    status = read_all(receipt, root, error);
    json_decref(root);
    if (status == STATUS_OK) {
        status = check_canonical(receipt, bytes, size, error);
    }
    if (status != STATUS_OK) {
        receipt_release(receipt);
        (void)error_wrap(error, "%s", what);
    }
    return status;
}

enum status receipt_read(struct receipt *receipt, struct error *error, const char *path)
{
    struct file_bytes bytes = {0};
    enum status status;

    *receipt = (struct receipt){0};
    TRY(file_read(&bytes, error, path, RECEIPT_SIZE_MAX));
    status = receipt_parse(receipt, error, path, bytes.data, bytes.size);
    file_bytes_release(&bytes);
    return status;
}

bool receipt_is(const char *path)
{
    char found[sizeof(BEGINNING) - 1];
    struct stat about;
    /* Opening a pipe would wait for its writer. */
    FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    bool is = file != NULL && fread(found, 1, sizeof(found), file) == sizeof(found) &&
              memcmp(found, BEGINNING, sizeof(found)) == 0;

    if (file != NULL) {
        (void)fclose(file);
    }
    return is;
}
