/* rounds.c - see rounds.h. */
#include "proofs/rounds/rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/hex.h"
#include "base/io/strict_json.h"
#include "proofs/hash/sha256.h"

enum { DEPTH = 8 };

/* ---- canonical JSON ------------------------------------------------------- */

enum status rounds_json_write(struct digest *digest, json_t *json, const char *path,
                              struct error *error)
{
    struct buffer text;
    enum status status;

    buffer_init(&text, SIZE_MAX / 2);
    TRY_OUT(strict_json_line(&text, error, json));
    sha256(digest, text.data, text.size);
    status = file_write_new(path, error, text.data, text.size, 0644);
out:
    buffer_release(&text);
    json_decref(json);
    return status;
}

enum status rounds_json_parse(json_t **json, struct digest *digest, const void *bytes, size_t size,
                              size_t size_max, struct error *error)
{
    struct buffer text;
    enum status status;

    *json = NULL;
    buffer_init(&text, size_max + 1);
    TRY_OUT(strict_json_parse(json, error, "the record", bytes, size, size_max, DEPTH));
    TRY_OUT(strict_json_line(&text, error, *json));
    if (text.size != size || memcmp(text.data, bytes, size) != 0) {
        status = error_set(error, STATUS_BAD_FORMAT,
                           "it is not canonical: compact, keys in order, one line");
        goto out;
    }
    sha256(digest, bytes, size);
out:
    if (status != STATUS_OK) {
        json_decref(*json);
        *json = NULL;
    }
    buffer_release(&text);
    return status;
}

/* ---- what is agreed ------------------------------------------------------- */

static bool is_name(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const size_t length = strnlen(name, ROUNDS_NAME_MAX + 1);

    return length > 0 && length <= ROUNDS_NAME_MAX && strspn(name, plain) == length;
}

/* A factor from 0 to 100, in digits with one point at most. */
static bool is_factor(const char *text)
{
    const size_t length = strnlen(text, ROUNDS_FACTOR_MAX + 1);
    const char *point = strchr(text, '.');

    return length > 0 && length <= ROUNDS_FACTOR_MAX && strspn(text, "0123456789.") == length &&
           text[0] != '.' && text[length - 1] != '.' &&
           (point == NULL || strchr(point + 1, '.') == NULL) && strtof(text, NULL) <= 100.0f;
}

bool rounds_has_outer(const struct rounds *rounds)
{
    return rounds->outer_rate[0] != '\0';
}

float rounds_outer_rate(const struct rounds *rounds)
{
    return strtof(rounds->outer_rate, NULL);
}

float rounds_outer_momentum(const struct rounds *rounds)
{
    return strtof(rounds->outer_momentum, NULL);
}

uint64_t rounds_salt(const struct rounds *rounds, uint32_t at)
{
    return (uint64_t)endian_load_be32(rounds->id.bytes) << 8 | at;
}

/* One job would be opened once, and its state counted twice. */
static enum status check_own_job(const struct rounds *rounds, uint32_t owner, struct error *error)
{
    for (uint32_t i = 0; i < owner; i++) {
        if (digest_equal(&rounds->owners[i].job, &rounds->owners[owner].job)) {
            return error_set(error, STATUS_USAGE,
                             "'%s' and '%s' have one job: each owner has rows of its own",
                             rounds->owners[i].name, rounds->owners[owner].name);
        }
    }
    return STATUS_OK;
}

static enum status check_owners(const struct rounds *rounds, struct error *error)
{
    if (rounds->owner_count < 1 || rounds->owner_count > ROUNDS_OWNERS_MAX) {
        return error_set(error, STATUS_USAGE, "%u owners: there must be 1 to %d",
                         rounds->owner_count, ROUNDS_OWNERS_MAX);
    }
    for (uint32_t i = 0; i < rounds->owner_count; i++) {
        const char *name = rounds->owners[i].name;

        if (!is_name(name)) {
            return error_set(error, STATUS_USAGE,
                             "owner %u: a name has 1 to %d letters, digits, - and _", i + 1,
                             ROUNDS_NAME_MAX);
        }
        if (rounds_find(rounds, name) != i) {
            return error_set(error, STATUS_USAGE, "two owners are called '%s'", name);
        }
        TRY(check_own_job(rounds, i, error));
    }
    return STATUS_OK;
}

enum status rounds_check(const struct rounds *rounds, struct error *error)
{
    TRY(check_owners(rounds, error));
    if (rounds->count < 1 || rounds->count > ROUNDS_MAX) {
        return error_set(error, STATUS_USAGE, "%u rounds: there must be 1 to %d", rounds->count,
                         ROUNDS_MAX);
    }
    if (rounds->quorum < 1 || rounds->quorum > rounds->owner_count) {
        return error_set(error, STATUS_USAGE, "a quorum of %u: there must be 1 to %u, all owners",
                         rounds->quorum, rounds->owner_count);
    }
    if (rounds_has_outer(rounds) != (rounds->outer_momentum[0] != '\0') ||
        (rounds_has_outer(rounds) &&
         (!is_factor(rounds->outer_rate) || !is_factor(rounds->outer_momentum)))) {
        return error_set(error, STATUS_USAGE,
                         "an outer step has a rate and a momentum, such as 0.7:0.9, each of 0 to "
                         "100");
    }
    return STATUS_OK;
}

uint32_t rounds_find(const struct rounds *rounds, const char *name)
{
    uint32_t at = 0;

    while (at < rounds->owner_count && strcmp(rounds->owners[at].name, name) != 0) {
        at++;
    }
    return at;
}

/* ---- the file ------------------------------------------------------------- */

static json_t *owners_json(const struct rounds *rounds)
{
    json_t *owners = json_array();

    for (uint32_t i = 0; i < rounds->owner_count; i++) {
        char job[HEX_SIZE(DIGEST_SIZE)];

        hex_encode(job, rounds->owners[i].job.bytes, DIGEST_SIZE);
        (void)json_array_append_new(
            owners, json_pack("{s:s, s:s}", "name", rounds->owners[i].name, "job", job));
    }
    return owners;
}

enum status rounds_write(struct rounds *rounds, const char *folder, struct error *error)
{
    char nonce[HEX_SIZE(DIGEST_SIZE)];
    char path[FILE_PATH_MAX];

    TRY(rounds_check(rounds, error));
    TRY(rounds_path(path, folder, 0, ROUNDS_FILE, error));
    hex_encode(nonce, rounds->nonce.bytes, DIGEST_SIZE);
    return rounds_json_write(&rounds->id,
                             json_pack("{s:s, s:o, s:i, s:i, s:b, s:s, s:s, s:s, s:s}", "format",
                                       ROUNDS_FORMAT, "owners", owners_json(rounds), "rounds",
                                       (int)rounds->count, "quorum", (int)rounds->quorum,
                                       "keep_moments", (int)rounds->keep_moments, "outer_rate",
                                       rounds->outer_rate, "outer_momentum", rounds->outer_momentum,
                                       "place", rounds->place, "nonce", nonce),
                             path, error);
}

static enum status take_text(char *to, size_t size_max, const json_t *json, const char *key,
                             struct error *error)
{
    const char *text;

    TRY(strict_json_text(json, error, &text, key));
    if (strlen(text) > size_max) {
        return error_set(error, STATUS_BAD_FORMAT, "'%s' is longer than %zu bytes", key, size_max);
    }
    memcpy(to, text, strlen(text) + 1);
    return STATUS_OK;
}

static enum status read_owners(struct rounds *rounds, const json_t *json, struct error *error)
{
    static const char *const known[] = {"name", "job"};
    const json_t *owners;

    TRY(strict_json_array(json, error, &owners, "owners", ROUNDS_OWNERS_MAX));
    rounds->owner_count = (uint32_t)json_array_size(owners);
    for (uint32_t i = 0; i < rounds->owner_count; i++) {
        const json_t *one = json_array_get(owners, i);

        TRY(strict_json_only(one, error, known, 2));
        TRY(take_text(rounds->owners[i].name, ROUNDS_NAME_MAX, one, "name", error));
        TRY(strict_json_hex(one, error, rounds->owners[i].job.bytes, DIGEST_SIZE, "job"));
    }
    return STATUS_OK;
}

static enum status read_agreement(struct rounds *rounds, const json_t *json, struct error *error)
{
    static const char *const known[] = {"format",         "owners",       "rounds",
                                        "quorum",         "keep_moments", "outer_rate",
                                        "outer_momentum", "place",        "nonce"};
    const char *format;
    uint64_t count;
    uint64_t quorum;

    TRY(strict_json_only(json, error, known, sizeof(known) / sizeof(known[0])));
    TRY(strict_json_text(json, error, &format, "format"));
    if (strcmp(format, ROUNDS_FORMAT) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "its format is not " ROUNDS_FORMAT);
    }
    TRY(read_owners(rounds, json, error));
    TRY(strict_json_number(json, error, &count, "rounds", ROUNDS_MAX));
    TRY(strict_json_number(json, error, &quorum, "quorum", ROUNDS_OWNERS_MAX));
    TRY(strict_json_flag(json, error, &rounds->keep_moments, "keep_moments"));
    TRY(take_text(rounds->outer_rate, ROUNDS_FACTOR_MAX, json, "outer_rate", error));
    TRY(take_text(rounds->outer_momentum, ROUNDS_FACTOR_MAX, json, "outer_momentum", error));
    TRY(take_text(rounds->place, ROUNDS_PLACE_MAX, json, "place", error));
    TRY(strict_json_hex(json, error, rounds->nonce.bytes, DIGEST_SIZE, "nonce"));
    rounds->count = (uint32_t)count;
    rounds->quorum = (uint32_t)quorum;
    return rounds_check(rounds, error);
}

enum status rounds_parse(struct rounds *rounds, const void *bytes, size_t size, struct error *error)
{
    json_t *json = NULL;
    enum status status;

    *rounds = (struct rounds){0};
    TRY(rounds_json_parse(&json, &rounds->id, bytes, size, ROUNDS_SIZE_MAX, error));
    status = read_agreement(rounds, json, error);
    json_decref(json);
    return status;
}

enum status rounds_read(struct rounds *rounds, const char *folder, struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status;

    *rounds = (struct rounds){0};
    TRY(rounds_path(path, folder, 0, ROUNDS_FILE, error));
    TRY(file_read(&bytes, error, path, ROUNDS_SIZE_MAX));
    status = rounds_parse(rounds, bytes.data, bytes.size, error);
    file_bytes_release(&bytes);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "%s", path);
        return status == STATUS_NO_MEMORY ? status : STATUS_BAD_FORMAT;
    }
    return STATUS_OK;
}

bool rounds_is_folder(const char *path)
{
    char file[FILE_PATH_MAX];

    return file_path_join(file, sizeof(file), NULL, path, ROUNDS_FILE) == STATUS_OK &&
           file_exists(file);
}

/* ---- paths ---------------------------------------------------------------- */

enum status rounds_path(char *path, const char *folder, uint32_t round, const char *name,
                        struct error *error)
{
    char below[ROUNDS_NAME_MAX + 32];

    if (round == 0) {
        return file_path_join(path, FILE_PATH_MAX, error, folder, name);
    }
    (void)snprintf(below, sizeof(below), name[0] == '\0' ? "round-%03u%.40s" : "round-%03u/%.40s",
                   round, name);
    return file_path_join(path, FILE_PATH_MAX, error, folder, below);
}

enum status rounds_owner_path(char *path, const char *folder, uint32_t round, uint32_t owner,
                              const char *ending, struct error *error)
{
    char name[ROUNDS_NAME_MAX];

    (void)snprintf(name, sizeof(name), "owner-%02u.%.20s", owner + 1, ending);
    return rounds_path(path, folder, round, name, error);
}
