/* round_record.c - see round_record.h. */
#include "proofs/rounds/round_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/strict_json.h"

static const char *const end_words[ROUND_END_COUNT] = {"open", "final",   "convicted", "late",
                                                       "void", "untaken", "diverged"};

const char *round_end_word(enum round_end end)
{
    return end_words[end];
}

static enum status find_end(enum round_end *end, const char *word, struct error *error)
{
    for (int i = 0; i < ROUND_END_COUNT; i++) {
        if (strcmp(end_words[i], word) == 0) {
            *end = (enum round_end)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_FORMAT, "no try ends as '%.40s'", word);
}

/* ---- writing -------------------------------------------------------------- */

static json_t *tries_json(const struct round_owner *owner)
{
    json_t *tries = json_array();

    for (uint32_t i = 0; i < owner->try_count; i++) {
        const struct round_try *one = &owner->tries[i];

        (void)json_array_append_new(
            tries, json_pack("{s:o, s:I, s:s}", "key", strict_json_digest(&one->key), "salt",
                             (json_int_t)one->salt, "end", end_words[one->end]));
    }
    return tries;
}

json_t *round_owner_json(const struct round_owner *owner, const char *name)
{
    json_t *json = json_pack("{s:s, s:o, s:o}", "name", name, "job",
                             strict_json_digest(&owner->job), "tries", tries_json(owner));
    json_t *trees;

    if (owner->has_state) {
        trees = json_array();
        for (uint32_t i = 0; i < owner->tree_count; i++) {
            (void)json_array_append_new(trees, strict_json_digest(&owner->trees[i]));
        }
        (void)json_object_set_new(json, "state", strict_json_digest(&owner->state));
        (void)json_object_set_new(json, "trees", trees);
    }
    return json;
}

enum status round_record_write(struct round_record *record, const char *folder, struct error *error)
{
    json_t *owners = json_array();
    char path[FILE_PATH_MAX];

    for (uint32_t i = 0; i < record->owner_count; i++) {
        (void)json_array_append_new(owners, round_owner_json(&record->owners[i], record->names[i]));
    }
    if (rounds_path(path, folder, record->number, ROUND_RECORD_FILE, error) != STATUS_OK) {
        json_decref(owners);
        return error->status;
    }
    return rounds_json_write(
        &record->sha256,
        json_pack(
            "{s:s, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "format", ROUND_RECORD_FORMAT,
            "rounds", strict_json_digest(&record->rounds), "round", (int)record->number, "previous",
            strict_json_digest(&record->previous), "start", strict_json_digest(&record->start),
            "owners", owners, "mean_job", strict_json_digest(&record->mean_job), "mean_state",
            strict_json_digest(&record->mean_state), "next", strict_json_digest(&record->next)),
        path, error);
}

/* ---- reading -------------------------------------------------------------- */

static enum status read_tries(struct round_owner *owner, const json_t *json, struct error *error)
{
    static const char *const known[] = {"key", "salt", "end"};
    const json_t *tries;

    TRY(strict_json_array(json, error, &tries, "tries", ROUND_TRIES_MAX));
    owner->try_count = (uint32_t)json_array_size(tries);
    for (uint32_t i = 0; i < owner->try_count; i++) {
        const json_t *one = json_array_get(tries, i);
        struct round_try *to = &owner->tries[i];
        const char *word;

        TRY(strict_json_only(one, error, known, 3));
        TRY(strict_json_hex(one, error, to->key.bytes, DIGEST_SIZE, "key"));
        TRY(strict_json_number(one, error, &to->salt, "salt", INT64_MAX));
        TRY(strict_json_text(one, error, &word, "end"));
        TRY(find_end(&to->end, word, error));
    }
    return STATUS_OK;
}

static enum status read_trees(struct round_owner *owner, const json_t *json, struct error *error)
{
    const json_t *trees;

    TRY(strict_json_hex(json, error, owner->state.bytes, DIGEST_SIZE, "state"));
    TRY(strict_json_array(json, error, &trees, "trees", ROUND_TREES_MAX));
    owner->trees = calloc(json_array_size(trees) + 1, sizeof(*owner->trees));
    if (owner->trees == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the trees of a state");
    }
    owner->tree_count = (uint32_t)json_array_size(trees);
    for (uint32_t i = 0; i < owner->tree_count; i++) {
        const json_t *one = json_array_get(trees, i);

        if (!json_is_string(one) ||
            hex_decode(owner->trees[i].bytes, DIGEST_SIZE, json_string_value(one),
                       json_string_length(one)) != STATUS_OK) {
            return error_set(error, STATUS_BAD_FORMAT, "'trees': number %u is no root", i + 1);
        }
    }
    owner->has_state = true;
    return STATUS_OK;
}

enum status round_owner_read(struct round_owner *owner, char name[ROUNDS_NAME_MAX + 1],
                             const json_t *json, struct error *error)
{
    static const char *const known[] = {"name", "job", "tries", "state", "trees"};
    const char *text;

    TRY(strict_json_only(json, error, known, sizeof(known) / sizeof(known[0])));
    TRY(strict_json_text(json, error, &text, "name"));
    if (strlen(text) > ROUNDS_NAME_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "the name of an owner is too long");
    }
    memcpy(name, text, strlen(text) + 1);
    TRY(strict_json_hex(json, error, owner->job.bytes, DIGEST_SIZE, "job"));
    TRY(read_tries(owner, json, error));
    return json_object_get(json, "state") == NULL && json_object_get(json, "trees") == NULL
               ? STATUS_OK
               : read_trees(owner, json, error);
}

static enum status read_record(struct round_record *record, const json_t *json, struct error *error)
{
    static const char *const known[] = {"format", "rounds", "round",    "previous",  "start",
                                        "owners", "next",   "mean_job", "mean_state"};
    struct digest *const roots[] = {&record->rounds,   &record->previous,   &record->start,
                                    &record->mean_job, &record->mean_state, &record->next};
    static const char *const names[] = {"rounds",   "previous",   "start",
                                        "mean_job", "mean_state", "next"};
    const json_t *owners;
    const char *format;
    uint64_t number;

    TRY(strict_json_only(json, error, known, sizeof(known) / sizeof(known[0])));
    TRY(strict_json_text(json, error, &format, "format"));
    if (strcmp(format, ROUND_RECORD_FORMAT) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "its format is not " ROUND_RECORD_FORMAT);
    }
    TRY(strict_json_number(json, error, &number, "round", ROUNDS_MAX));
    record->number = (uint32_t)number;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        TRY(strict_json_hex(json, error, roots[i]->bytes, DIGEST_SIZE, names[i]));
    }
    TRY(strict_json_array(json, error, &owners, "owners", ROUNDS_OWNERS_MAX));
    for (size_t i = 0; i < json_array_size(owners); i++) {
        record->owner_count++;
        TRY(round_owner_read(&record->owners[i], record->names[i], json_array_get(owners, i),
                             error));
    }
    return STATUS_OK;
}

enum status round_record_parse(struct round_record *record, const void *bytes, size_t size,
                               struct error *error)
{
    json_t *json = NULL;
    enum status status;

    *record = (struct round_record){0};
    TRY(rounds_json_parse(&json, &record->sha256, bytes, size, ROUND_RECORD_SIZE_MAX, error));
    status = read_record(record, json, error);
    json_decref(json);
    return status;
}

enum status round_record_read(struct round_record *record, const char *folder, uint32_t round,
                              struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status;

    *record = (struct round_record){0};
    TRY(rounds_path(path, folder, round, ROUND_RECORD_FILE, error));
    TRY(file_read(&bytes, error, path, ROUND_RECORD_SIZE_MAX));
    status = round_record_parse(record, bytes.data, bytes.size, error);
    file_bytes_release(&bytes);
    if (status != STATUS_OK) {
        (void)error_wrap(error, "%s", path);
    }
    return status;
}

void round_owner_release(struct round_owner *owner)
{
    free(owner->trees);
    *owner = (struct round_owner){0};
}

void round_record_release(struct round_record *record)
{
    for (uint32_t i = 0; i < record->owner_count; i++) {
        round_owner_release(&record->owners[i]);
    }
    record->owner_count = 0;
}
