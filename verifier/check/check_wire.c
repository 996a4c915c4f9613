/* check_wire.c - see check_wire.h. */
#include "verifier/check/check_wire.h"

#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "base/hex.h"
#include "base/io/strict_json.h"
#include "proofs/job/job.h"

enum {
    DEPTH_MAX = 4,
};

/* JSON holds no larger number; as a limit it means none. */
#define NUMBER_MAX ((uint64_t)INT64_MAX)

static json_t *number_json(uint64_t number)
{
    return json_integer((json_int_t)(number > NUMBER_MAX ? NUMBER_MAX : number));
}

#define BYTES_MAX    ((size_t)GAME_STATES_MAX * DIGEST_SIZE) /* in a row, of any field */
#define FIGURES_SIZE 16
_Static_assert(CHECK_FIGURES_MAX *FIGURES_SIZE <= BYTES_MAX, "they go in one row");

/* ---- tables: one row for each plain field ------------------------------- */

enum field_kind {
    FIELD_U32,
    FIELD_U64,
    FIELD_FLAG,
    FIELD_DIGEST,
};

struct wire_field {
    const char *key;
    enum field_kind kind;
    size_t offset;
    uint64_t maximum;
};

#define REQUEST(name, kind, maximum)                                                               \
    {                                                                                              \
#name, kind, offsetof(struct check_request, name), maximum                                 \
    }
#define RESULT(name, kind, maximum)                                                                \
    {                                                                                              \
#name, kind, offsetof(struct check_result, name), maximum                                  \
    }

static const struct wire_field request_fields[] = {
    REQUEST(job_id, FIELD_DIGEST, 0),
    REQUEST(steps, FIELD_U64, NUMBER_MAX),
    REQUEST(segment_steps, FIELD_U32, GAME_PERIOD_MAX),
    REQUEST(index, FIELD_U32, GAME_SEGMENTS_MAX),
    REQUEST(reach, FIELD_U32, CHECK_REACH_MAX),
    REQUEST(diverged, FIELD_FLAG, 0),
    REQUEST(journal, FIELD_FLAG, 0),
    REQUEST(first_step, FIELD_U64, JOB_STEPS_MAX),
    REQUEST(first_root, FIELD_DIGEST, 0),
    REQUEST(open_end, FIELD_FLAG, 0),
    REQUEST(figure_count, FIELD_U32, CHECK_FIGURES_MAX),
    REQUEST(seed, FIELD_DIGEST, 0),
    REQUEST(proven, FIELD_U32, GAME_LEAVES),
    REQUEST(memory_max, FIELD_U64, NUMBER_MAX),
    REQUEST(file_max, FIELD_U64, NUMBER_MAX),
    REQUEST(bandwidth_max, FIELD_U64, NUMBER_MAX),
    REQUEST(keep_max, FIELD_U64, NUMBER_MAX),
    REQUEST(mirror_timeout_s, FIELD_U32, UINT32_MAX),
    REQUEST(mirrors_tired, FIELD_U32, CHECK_MIRRORS_MAX),
    REQUEST(strangers, FIELD_U32, UINT32_MAX),
    REQUEST(contact_reach, FIELD_U32, HTTP_REACH_ANY),
    REQUEST(processor_s, FIELD_U32, UINT32_MAX),
    REQUEST(resume_ms, FIELD_U32, UINT32_MAX),
    REQUEST(threads, FIELD_U32, 1024),
    REQUEST(device_memory, FIELD_U64, NUMBER_MAX),
    REQUEST(other, FIELD_FLAG, 0),
    REQUEST(disagree, FIELD_FLAG, 0),
    REQUEST(states, FIELD_FLAG, 0),
    REQUEST(trial, FIELD_FLAG, 0),
    REQUEST(disputed, FIELD_FLAG, 0),
    REQUEST(disputed_step, FIELD_U32, GAME_PERIOD_MAX),
};

static const struct wire_field result_fields[] = {
    RESULT(permanent, FIELD_FLAG, 0),         RESULT(unavailable, FIELD_FLAG, 0),
    RESULT(no_start, FIELD_FLAG, 0),          RESULT(index, FIELD_U32, GAME_SEGMENTS_MAX),
    RESULT(step, FIELD_U32, GAME_PERIOD_MAX), RESULT(before, FIELD_DIGEST, 0),
    RESULT(pre_state, FIELD_DIGEST, 0),       RESULT(post_state, FIELD_DIGEST, 0),
    RESULT(true_state, FIELD_DIGEST, 0),      RESULT(other_state, FIELD_DIGEST, 0),
    RESULT(steps_run, FIELD_U64, NUMBER_MAX), RESULT(compute_ns, FIELD_U64, NUMBER_MAX),
    RESULT(line_works, FIELD_FLAG, 0),        RESULT(wanted_bytes, FIELD_U64, NUMBER_MAX),
    RESULT(fetch_ns, FIELD_U64, NUMBER_MAX),
};

/* Of results where something was to be kept. */
static const struct wire_field keep_fields[] = {RESULT(kept, FIELD_FLAG, 0),
                                                RESULT(kept_start, FIELD_FLAG, 0)};

static const struct wire_field loss_fields[] = {RESULT(loss_bits, FIELD_U32, UINT32_MAX)};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void write_fields(json_t *object, const void *from, const struct wire_field *fields,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const void *at = (const uint8_t *)from + fields[i].offset;
        json_t *value = NULL;

        switch (fields[i].kind) {
        case FIELD_U32:
            value = number_json(*(const uint32_t *)at);
            break;
        case FIELD_U64:
            value = number_json(*(const uint64_t *)at);
            break;
        case FIELD_FLAG:
            value = json_boolean(*(const bool *)at);
            break;
        case FIELD_DIGEST:
            value = strict_json_digest(at);
            break;
        }
        (void)json_object_set_new(object, fields[i].key, value);
    }
}

static enum status read_fields(void *to, const json_t *object, const struct wire_field *fields,
                               size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        void *at = (uint8_t *)to + fields[i].offset;
        uint64_t number = 0;

        switch (fields[i].kind) {
        case FIELD_U32:
            TRY(strict_json_number(object, error, &number, fields[i].key, fields[i].maximum));
            *(uint32_t *)at = (uint32_t)number;
            break;
        case FIELD_U64:
            TRY(strict_json_number(object, error, &number, fields[i].key, fields[i].maximum));
            *(uint64_t *)at = number;
            break;
        case FIELD_FLAG:
            TRY(strict_json_flag(object, error, at, fields[i].key));
            break;
        case FIELD_DIGEST:
            TRY(strict_json_hex(object, error, at, DIGEST_SIZE, fields[i].key));
            break;
        }
    }
    return STATUS_OK;
}

/* ---- names ---- */

const char *check_outcome_name(enum check_outcome outcome)
{
    static const char *const names[] = {"cannot-tell", "proven", "refuted", "fault"};

    return names[outcome];
}

const char *check_flaw_name(enum check_flaw flaw)
{
    static const char *const names[] = {"none", "state", "went-on", "not-diverged"};

    return names[flaw];
}

const char *check_flaw_words(enum check_flaw flaw)
{
    static const char *const words[] = {
        "is true", "does not give what the journal says",
        "gives a state with a NaN or an infinity, and the run went on",
        "is said to end in a NaN or an infinity, and does not"};

    return words[flaw];
}

/* ---- requests ----------------------------------------------------------- */

static json_t *texts_json(const char (*texts)[FILE_PATH_MAX], uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        (void)json_array_append_new(array, json_string(texts[i]));
    }
    return array;
}

json_t *check_request_json(const struct check_request *request)
{
    json_t *object = json_object();
    json_t *segments = json_array();

    write_fields(object, request, request_fields, COUNT(request_fields));
    for (uint32_t i = 0; i < request->segment_count; i++) {
        const struct check_segment *segment = &request->segments[i];

        (void)json_array_append_new(
            segments, json_pack("{s:I, s:o, s:o}", "steps", (json_int_t)segment->steps, "root",
                                strict_json_digest(&segment->root), "states",
                                strict_json_bytes(segment->states[0].bytes,
                                                  segment->steps * (size_t)DIGEST_SIZE)));
    }
    (void)json_object_set_new(object, "segments", segments);
    (void)json_object_set_new(object, "cache", json_string(request->cache));
    (void)json_object_set_new(object, "folder", json_string(request->folder));
    (void)json_object_set_new(object, "device", json_string(request->device));
    (void)json_object_set_new(object, "ask", json_string(request->ask));
    (void)json_object_set_new(object, "mirrors",
                              texts_json(request->mirrors, request->mirror_count));
    (void)json_object_set_new(object, "data", texts_json(request->data, request->data_count));
    return object;
}

static enum status read_short_text(char *text, size_t size, const json_t *value,
                                   struct error *error)
{
    if (!json_is_string(value) || json_string_length(value) >= size) {
        return error_set(error, STATUS_BAD_FORMAT, "a text is missing or too long");
    }
    memcpy(text, json_string_value(value), json_string_length(value) + 1);
    return STATUS_OK;
}

static enum status read_text(char text[FILE_PATH_MAX], const json_t *value, struct error *error)
{
    return read_short_text(text, FILE_PATH_MAX, value, error);
}

static enum status read_texts(char (*texts)[FILE_PATH_MAX], uint32_t *count, const json_t *object,
                              const char *key, size_t count_max, struct error *error)
{
    const json_t *array = NULL;

    *count = 0;
    TRY(strict_json_array(object, error, &array, key, count_max));
    for (size_t i = 0; i < json_array_size(array); i++) {
        TRY(read_text(texts[i], json_array_get(array, i), error));
        (*count)++;
    }
    return STATUS_OK;
}

static enum status read_segments(struct check_request *request, const json_t *object,
                                 struct error *error)
{
    const json_t *array = NULL;

    TRY(strict_json_array(object, error, &array, "segments", CHECK_REACH_MAX + 1));
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *segment = json_array_get(array, i);
        struct check_segment *read = &request->segments[i];
        uint64_t steps = 0;

        TRY(strict_json_number(segment, error, &steps, "steps", GAME_STATES_MAX));
        TRY(strict_json_hex(segment, error, read->root.bytes, DIGEST_SIZE, "root"));
        TRY(strict_json_hex(segment, error, read->states[0].bytes, steps * DIGEST_SIZE, "states"));
        read->steps = (uint32_t)steps;
        request->segment_count = (uint32_t)i + 1;
    }
    if (request->segment_count == 0 || request->segment_count > request->index + 1) {
        return error_set(error, STATUS_BAD_FORMAT, "the number of segments makes no sense");
    }
    return STATUS_OK;
}

enum status check_request_parse(struct check_request *request, const void *bytes, size_t size,
                                struct error *error)
{
    const char *cache = NULL;
    json_t *object = NULL;
    enum status status;

    memset(request, 0, sizeof(*request));
    TRY_OUT(
        strict_json_parse(&object, error, "the request", bytes, size, CHECK_WIRE_MAX, DEPTH_MAX));
    TRY_OUT(read_fields(request, object, request_fields, COUNT(request_fields), error));
    TRY_OUT(read_segments(request, object, error));
    TRY_OUT(strict_json_text(object, error, &cache, "cache"));
    TRY_OUT(read_text(request->cache, json_object_get(object, "cache"), error));
    TRY_OUT(read_text(request->folder, json_object_get(object, "folder"), error));
    TRY_OUT(read_short_text(request->device, sizeof(request->device),
                            json_object_get(object, "device"), error));
    TRY_OUT(
        read_short_text(request->ask, sizeof(request->ask), json_object_get(object, "ask"), error));
    TRY_OUT(read_texts(request->mirrors, &request->mirror_count, object, "mirrors",
                       CHECK_MIRRORS_MAX, error));
    TRY_OUT(read_texts(request->data, &request->data_count, object, "data", CHECK_DATA_MAX, error));
out:
    json_decref(object);
    return status;
}

/* ---- leaves ---- */

static json_t *rights_json(const struct check_result *result)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        const struct game_right *right = &result->rights[i];

        (void)json_array_append_new(
            array, json_pack("{s:I, s:I, s:o, s:o}", "step", (json_int_t)right->step, "tensor",
                             (json_int_t)right->tensor, "leaf", number_json(right->leaf), "bytes",
                             strict_json_bytes(result->leaves[i], MERKLE_LEAF_SIZE)));
    }
    return array;
}

/* Where the four numbers of a step stand in its FIGURES_SIZE bytes. */
enum { FIGURES_LOSS = 0, FIGURES_EVALUATED = 4, FIGURES_HELD_OUT = 8, FIGURES_ACCURACY = 12 };

/* Four numbers a step, each as eight hex digits. */
static json_t *figures_json(const struct check_result *result)
{
    uint8_t bytes[CHECK_FIGURES_MAX * FIGURES_SIZE];

    for (uint32_t i = 0; i < result->figure_count; i++) {
        const struct check_figures *figures = &result->figures[i];
        uint8_t *at = &bytes[i * FIGURES_SIZE];

        endian_store_be32(at + FIGURES_LOSS, figures->loss_bits);
        endian_store_be32(at + FIGURES_EVALUATED, figures->evaluated);
        endian_store_be32(at + FIGURES_HELD_OUT, figures->held_out_bits);
        endian_store_be32(at + FIGURES_ACCURACY, figures->accuracy_bits);
    }
    return strict_json_bytes(bytes, result->figure_count * (size_t)FIGURES_SIZE);
}

static enum status read_figures(struct check_result *result, const json_t *object,
                                struct error *error)
{
    uint8_t bytes[CHECK_FIGURES_MAX * FIGURES_SIZE];
    const char *text = NULL;
    size_t count;

    TRY(strict_json_text(object, error, &text, "figures"));
    count = strlen(text) / 2 / FIGURES_SIZE;
    if (count > CHECK_FIGURES_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "a result has more figures than it can have");
    }
    TRY(strict_json_hex(object, error, bytes, count * FIGURES_SIZE, "figures"));
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = &bytes[i * FIGURES_SIZE];

        result->figures[i] = (struct check_figures){
            endian_load_be32(at + FIGURES_LOSS), endian_load_be32(at + FIGURES_EVALUATED),
            endian_load_be32(at + FIGURES_HELD_OUT), endian_load_be32(at + FIGURES_ACCURACY)};
    }
    result->figure_count = (uint32_t)count;
    return STATUS_OK;
}

static void write_bytes(json_t *object, const struct check_result *result)
{
    if (result->figure_count > 0) {
        (void)json_object_set_new(object, "figures", figures_json(result));
    }
    if (result->has_header) {
        (void)json_object_set_new(object, "header",
                                  strict_json_bytes(result->header, sizeof(result->header)));
    }
    if (result->has_leaves) {
        (void)json_object_set_new(object, "rights", rights_json(result));
    }
    if (result->proof_size > 0) {
        (void)json_object_set_new(object, "proof",
                                  strict_json_bytes(result->proof, result->proof_size));
    }
}

static enum status read_rights(struct check_result *result, const json_t *object,
                               struct error *error)
{
    const json_t *array = NULL;

    TRY(strict_json_array(object, error, &array, "rights", GAME_LEAVES));
    if (json_array_size(array) != GAME_LEAVES) {
        return error_set(error, STATUS_BAD_FORMAT, "a result has all leaves or none");
    }
    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        const json_t *item = json_array_get(array, i);
        struct game_right *right = &result->rights[i];
        uint64_t step = 0;
        uint64_t tensor = 0;

        TRY(strict_json_number(item, error, &step, "step", GAME_STATES_MAX));
        TRY(strict_json_number(item, error, &tensor, "tensor", UINT32_MAX));
        TRY(strict_json_number(item, error, &right->leaf, "leaf", NUMBER_MAX));
        TRY(strict_json_hex(item, error, result->leaves[i], MERKLE_LEAF_SIZE, "bytes"));
        right->step = (uint32_t)step;
        right->tensor = (uint32_t)tensor;
    }
    result->has_leaves = true;
    return STATUS_OK;
}

static enum status read_bytes(struct check_result *result, const json_t *object,
                              struct error *error)
{
    const char *proof = NULL;

    if (json_object_get(object, "header") != NULL) {
        TRY(strict_json_hex(object, error, result->header, sizeof(result->header), "header"));
        result->has_header = true;
    }
    if (json_object_get(object, "rights") != NULL) {
        TRY(read_rights(result, object, error));
    }
    if (json_object_get(object, "figures") != NULL) {
        TRY(read_figures(result, object, error));
    }
    if (json_object_get(object, "proof") != NULL) {
        TRY(strict_json_text(object, error, &proof, "proof"));
        if (strlen(proof) / 2 > sizeof(result->proof)) {
            return error_set(error, STATUS_BAD_FORMAT, "a proof is longer than it can be");
        }
        result->proof_size = (uint32_t)(strlen(proof) / 2);
        TRY(strict_json_hex(object, error, result->proof, result->proof_size, "proof"));
    }
    return STATUS_OK;
}

void check_result_rights(struct game_leaves *leaves, const struct check_result *result,
                         const struct address *owner, const struct hash32 *seed,
                         const struct hash32 *segment_hash)
{
    for (uint32_t i = 0; i < GAME_LEAVES; i++) {
        struct game_right right = result->rights[i];
        struct hash32 hash;

        right.bytes = result->leaves[i];
        hash = game_right_hash(owner, seed, segment_hash, &right);
        game_leaves_set(leaves, i, &hash);
    }
}

/* ---- results ------------------------------------------------------------ */

/* A reason may quote a stranger's bytes: the pipe takes ASCII only. */
static json_t *plain_json(const char *text)
{
    char plain[ERROR_TEXT_MAX];
    size_t used = 0;

    for (const char *at = text; *at != '\0' && used + 1 < sizeof(plain); at++) {
        plain[used++] = (char)(*at >= ' ' && *at <= '~' ? *at : '?');
    }
    return json_stringn(plain, used);
}

json_t *check_result_json(const struct check_result *result)
{
    json_t *object = json_object();
    json_t *mirrors = json_array();

    write_fields(object, result, result_fields, COUNT(result_fields));
    for (uint32_t i = 0; i < result->mirror_count; i++) {
        const struct mirror_note *note = &result->mirrors[i];

        (void)json_array_append_new(
            mirrors, json_pack("{s:I, s:I, s:I, s:i, s:o, s:o}", "good", (json_int_t)note->good,
                               "bad", (json_int_t)note->bad, "silent", (json_int_t)note->silent,
                               "refused", (int)note->refused, "bytes", number_json(note->bytes),
                               "trouble", plain_json(note->trouble)));
    }
    (void)json_object_set_new(object, "outcome", json_string(check_outcome_name(result->outcome)));
    if (result->kept || result->kept_start || result->keep_trouble[0] != '\0') {
        write_fields(object, result, keep_fields, COUNT(keep_fields));
        (void)json_object_set_new(object, "keep_trouble", plain_json(result->keep_trouble));
    }
    if (result->loss_known) {
        (void)json_object_set_new(object, "loss_bits", number_json(result->loss_bits));
    }
    write_bytes(object, result);
    (void)json_object_set_new(object, "flaw", json_string(check_flaw_name(result->flaw)));
    (void)json_object_set_new(object, "reason", plain_json(result->reason));
    (void)json_object_set_new(object, "advice", plain_json(result->advice));
    (void)json_object_set_new(object, "note", plain_json(result->note));
    (void)json_object_set_new(object, "mirrors", mirrors);
    return object;
}

static enum status read_notes(struct check_result *result, const json_t *object,
                              struct error *error)
{
    const json_t *array = NULL;

    TRY(strict_json_array(object, error, &array, "mirrors", CHECK_MIRRORS_MAX));
    for (size_t i = 0; i < json_array_size(array); i++) {
        struct mirror_note *note = &result->mirrors[i];
        const json_t *item = json_array_get(array, i);
        const char *trouble = "";
        uint64_t good = 0;
        uint64_t bad = 0;
        uint64_t silent = 0;
        uint64_t refused = 0;

        TRY(strict_json_number(item, error, &good, "good", UINT32_MAX));
        TRY(strict_json_number(item, error, &bad, "bad", UINT32_MAX));
        TRY(strict_json_number(item, error, &silent, "silent", UINT32_MAX));
        TRY(strict_json_number(item, error, &refused, "refused", 1));
        TRY(strict_json_number(item, error, &note->bytes, "bytes", NUMBER_MAX));
        TRY(strict_json_text(item, error, &trouble, "trouble"));
        note->good = (uint32_t)good;
        note->bad = (uint32_t)bad;
        note->silent = (uint32_t)silent;
        note->refused = refused != 0;
        (void)snprintf(note->trouble, sizeof(note->trouble), "%.*s", MIRROR_SET_TROUBLE_MAX - 1,
                       trouble);
        result->mirror_count = (uint32_t)i + 1;
    }
    return STATUS_OK;
}

/* The position of a word in a row of names; the count when it is none of them. */
static uint32_t find_word(const char *word, const char *(*name)(uint32_t), uint32_t count)
{
    uint32_t i = 0;

    while (i < count && strcmp(word, name(i)) != 0) {
        i++;
    }
    return i;
}

static const char *outcome_of(uint32_t number)
{
    return check_outcome_name((enum check_outcome)number);
}

static const char *flaw_of(uint32_t number)
{
    return check_flaw_name((enum check_flaw)number);
}

static enum status read_words(struct check_result *result, const json_t *object,
                              struct error *error)
{
    const char *outcome = "";
    const char *flaw = "";
    const char *reason = "";
    const char *advice = "";
    const char *note = "";
    uint32_t number;

    TRY(strict_json_text(object, error, &outcome, "outcome"));
    TRY(strict_json_text(object, error, &flaw, "flaw"));
    TRY(strict_json_text(object, error, &reason, "reason"));
    TRY(strict_json_text(object, error, &advice, "advice"));
    TRY(strict_json_text(object, error, &note, "note"));

    number = find_word(outcome, outcome_of, CHECK_FAULT + 1);
    result->outcome = (enum check_outcome)(number <= CHECK_FAULT ? number : 0);
    result->flaw = (enum check_flaw)find_word(flaw, flaw_of, CHECK_FLAW_NOT_DIVERGED + 1);
    (void)snprintf(result->reason, sizeof(result->reason), "%.*s", ERROR_TEXT_MAX - 1, reason);
    (void)snprintf(result->advice, sizeof(result->advice), "%.*s", ERROR_ADVICE_MAX - 1, advice);
    (void)snprintf(result->note, sizeof(result->note), "%.*s", CHECK_NOTE_MAX - 1, note);
    return number <= CHECK_FAULT && result->flaw <= CHECK_FLAW_NOT_DIVERGED &&
                   (result->outcome == CHECK_REFUTED) == (result->flaw != CHECK_FLAW_NONE)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "the outcome makes no sense");
}

static enum status read_keep(struct check_result *result, const json_t *object, struct error *error)
{
    const char *trouble = "";

    if (json_object_get(object, "kept") == NULL) {
        return STATUS_OK;
    }
    TRY(read_fields(result, object, keep_fields, COUNT(keep_fields), error));
    TRY(strict_json_text(object, error, &trouble, "keep_trouble"));
    (void)snprintf(result->keep_trouble, sizeof(result->keep_trouble), "%.*s", CHECK_NOTE_MAX - 1,
                   trouble);
    return STATUS_OK;
}

enum status check_result_parse(struct check_result *result, const void *bytes, size_t size,
                               struct error *error)
{
    json_t *object = NULL;
    enum status status;

    memset(result, 0, sizeof(*result));
    TRY_OUT(strict_json_parse(&object, error, "the result of a check", bytes, size, CHECK_WIRE_MAX,
                              DEPTH_MAX));
    TRY_OUT(read_fields(result, object, result_fields, COUNT(result_fields), error));
    TRY_OUT(read_notes(result, object, error));
    if (json_object_get(object, "loss_bits") != NULL) {
        result->loss_known = true;
        TRY_OUT(read_fields(result, object, loss_fields, COUNT(loss_fields), error));
    }
    TRY_OUT(read_bytes(result, object, error));
    TRY_OUT(read_keep(result, object, error));
    TRY_OUT(read_words(result, object, error));
out:
    json_decref(object);
    if (status != STATUS_OK) {
        memset(result, 0, sizeof(*result));
    }
    return status;
}
