/* example.c - see example.h. */
#include "data/source/example.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/strict_json.h"
#include "proofs/hash/sha256.h"

/* An escape of a byte takes six characters. */
#define CANONICAL_MAX (6 * EXAMPLE_SIZE_MAX)

void example_init(struct example *example)
{
    *example = (struct example){0};
    parts_init(&example->rows[0]);
    parts_init(&example->rows[1]);
    buffer_init(&example->canonical, CANONICAL_MAX);
}

void example_release(struct example *example)
{
    parts_release(&example->rows[0]);
    parts_release(&example->rows[1]);
    buffer_release(&example->canonical);
    free(example->messages);
    *example = (struct example){0};
}

/* ---- canonical JSON: sorted keys, no blanks, escapes only where JSON needs them (RFC 8785)
 * ---- */

static void write_text(struct buffer *out, const char *text, size_t size)
{
    static const char named[] = "\b\t\n\f\r\"\\";
    static const char names[] = "btnfr\"\\";
    size_t kept = 0; /* up to here it is written */

    buffer_add_u8(out, '"');
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)text[i];
        const char *found = byte == 0 ? NULL : strchr(named, byte);

        if (byte >= 0x20 && found == NULL) {
            continue;
        }
        buffer_add(out, text + kept, i - kept);
        kept = i + 1;
        if (found != NULL) {
            buffer_add_format(out, "\\%c", names[found - named]);
        } else {
            buffer_add_format(out, "\\u%04x", byte);
        }
    }
    buffer_add(out, text + kept, size - kept);
    buffer_add_u8(out, '"');
}

static void write_json(struct buffer *out, const json_t *value);

static int compare_keys(const void *one, const void *two)
{
    return strcmp(*(const char *const *)one, *(const char *const *)two);
}

/* Keys of ours, so few and of ASCII. */
static void write_object(struct buffer *out, const json_t *object)
{
    const char *keys[16];
    size_t count = 0;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        if (count < sizeof(keys) / sizeof(keys[0])) {
            keys[count++] = key;
        }
    }
    qsort(keys, count, sizeof(keys[0]), compare_keys);
    buffer_add_u8(out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            buffer_add_u8(out, ',');
        }
        write_text(out, keys[i], strlen(keys[i]));
        buffer_add_u8(out, ':');
        write_json(out, json_object_get(object, keys[i]));
    }
    buffer_add_u8(out, '}');
}

/* NOLINTNEXTLINE(misc-no-recursion): four levels at most, since only what is known is written. */
static void write_json(struct buffer *out, const json_t *value)
{
    size_t i;
    json_t *part;

    if (json_is_object(value)) {
        write_object(out, value);
    } else if (json_is_array(value)) {
        buffer_add_u8(out, '[');
        json_array_foreach(value, i, part)
        {
            if (i > 0) {
                buffer_add_u8(out, ',');
            }
            write_json(out, part);
        }
        buffer_add_u8(out, ']');
    } else if (json_is_string(value)) {
        write_text(out, json_string_value(value), json_string_length(value));
    } else {
        buffer_add_text(out, json_is_true(value) ? "true" : "false");
    }
}

bool example_is_held_out(const struct example *example, uint64_t below)
{
    struct digest digest;
    uint64_t first = 0;

    sha256(&digest, example->canonical.data, example->canonical.size);
    for (size_t i = 0; i < sizeof(first); i++) {
        first = first << 8 | digest.bytes[i];
    }
    return first < below;
}

/* ---- text, prompt and completion ---- */

static void add_before(struct parts *parts, const struct example_rules *rules)
{
    for (size_t i = 0; rules->put_before && i < rules->tokenizer->before_count; i++) {
        parts_add_id(parts, rules->tokenizer->before[i], false);
    }
}

static void add_behind(struct parts *parts, const struct example_rules *rules)
{
    const struct tokenizer *tokenizer = rules->tokenizer;

    for (size_t i = 0; rules->put_behind && i < tokenizer->behind_count; i++) {
        parts_add_id(parts, tokenizer->behind[i], true);
    }
    if (rules->put_eos && tokenizer->eos != VOCABULARY_NONE &&
        !(rules->put_behind && tokenizer->behind_count > 0)) {
        parts_add_id(parts, tokenizer->eos, true);
    }
}

static void clear_example(struct example *example)
{
    parts_clear(&example->rows[0]);
    parts_clear(&example->rows[1]);
    buffer_clear(&example->canonical);
    example->row_count = 1;
}

/* A text of nothing has no tokens, not even those around it. */
static void add_texts(struct parts *parts, const struct example_rules *rules, const json_t *prompt,
                      const void *text, size_t size)
{
    add_before(parts, rules);
    if (prompt != NULL) {
        parts_add_text(parts, json_string_value(prompt), json_string_length(prompt),
                       rules->learn == LEARN_ALL);
    }
    parts_add_text(parts, text, size, true);
    add_behind(parts, rules);
}

enum status example_of_text(struct example *example, struct error *error,
                            const struct example_rules *rules, const void *text, size_t size)
{
    clear_example(example);
    if (size > 0) {
        add_texts(&example->rows[0], rules, NULL, text, size);
    }
    buffer_add_text(&example->canonical, "{\"text\":");
    write_text(&example->canonical, text, size);
    buffer_add_text(&example->canonical, "}");
    TRY(parts_check(&example->rows[0], error));
    return buffer_check(&example->canonical, error, "example");
}

/* ---- messages ---- */

static enum status take_role(struct chat_message *message, const json_t *json, struct error *error)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    const char *text;

    TRY(strict_json_text(json, error, &text, "role"));
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strcmp(text, roles[i]) == 0) {
            message->role = (enum chat_role)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_REFUSED,
                     "the role '%.40s'; we lay out system, user and assistant", text);
}

/* Keys that would be lost are refused: tool calls are part of a conversation. */
static enum status check_keys(const json_t *json, struct error *error)
{
    static const char *const known[] = {"role", "content", "reasoning_content", "learn", "name"};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)json, key, value)
    {
        bool found = json_is_null(value);

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            found = found || strcmp(key, known[i]) == 0;
        }
        if (!found) {
            return error_set(error, STATUS_REFUSED, "the key '%.40s', which we do not lay out",
                             key);
        }
    }
    return STATUS_OK;
}

static enum status take_message(struct chat_message *message, const struct example_rules *rules,
                                const json_t *json, json_t *canonical, struct error *error)
{
    const json_t *content = json_object_get(json, "content");
    const json_t *thinking = json_object_get(json, "reasoning_content");
    const json_t *learn = json_object_get(json, "learn");
    json_t *kept;

    *message = (struct chat_message){0};
    if (!json_is_object(json)) {
        return error_set(error, STATUS_BAD_FORMAT, "it is no object");
    }
    TRY(check_keys(json, error));
    TRY(take_role(message, json, error));
    if (!json_is_string(content) || (json_is_string(thinking) && message->role != CHAT_ASSISTANT)) {
        return error_set(error, STATUS_REFUSED,
                         json_is_string(content) ? "'reasoning_content' is the assistant's"
                                                 : "its 'content' is not a text");
    }
    message->text = json_string_value(content);
    message->size = json_string_length(content);
    if (json_is_string(thinking)) {
        message->thinking = json_string_value(thinking);
        message->thinking_size = json_string_length(thinking);
    }
    /* With LEARN_LAST the last answer is marked when the whole list is read. */
    message->learned = message->role == CHAT_ASSISTANT && rules->learn != LEARN_LAST;
    /* The canonical form holds the keys that were used and no others: it decides what is held
     * out. */
    kept = json_pack("{s:O, s:O}", "role", json_object_get(json, "role"), "content", content);
    if (json_is_string(thinking)) {
        (void)json_object_set(kept, "reasoning_content", (json_t *)thinking);
    }
    if (json_is_boolean(learn)) {
        message->learned = json_is_true(learn);
        (void)json_object_set(kept, "learn", (json_t *)learn);
    }
    if (message->learned && message->role != CHAT_ASSISTANT) {
        json_decref(kept);
        return error_set(error, STATUS_REFUSED, "only what the assistant says can be learned");
    }
    return json_array_append_new(canonical, kept) == 0
               ? STATUS_OK
               : error_set(error, STATUS_NO_MEMORY, "out of memory for a conversation");
}

static enum status make_room(struct example *example, size_t count, struct error *error)
{
    struct chat_message *messages;

    if (count > CHAT_MESSAGES_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "%zu messages; at most %u", count,
                         CHAT_MESSAGES_MAX);
    }
    if (count <= example->message_capacity) {
        return STATUS_OK;
    }
    messages = realloc(example->messages, count * sizeof(*messages));
    if (messages == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a conversation");
    }
    example->messages = messages;
    example->message_capacity = count;
    return STATUS_OK;
}

/* Messages of a list behind `*count` others. */
static enum status take_messages(struct example *example, size_t *count,
                                 const struct example_rules *rules, const json_t *list,
                                 json_t *canonical, struct error *error)
{
    size_t i;
    json_t *json;

    TRY(make_room(example, *count + json_array_size(list), error));
    json_array_foreach(list, i, json)
    {
        if (take_message(&example->messages[*count], rules, json, canonical, error) != STATUS_OK) {
            return error_wrap(error, "message %zu", *count + 1);
        }
        (*count)++;
    }
    return STATUS_OK;
}

/* Of LEARN_LAST the last, unless messages say themselves what is learned. */
static void learn_last(struct example *example, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        if (example->messages[i].role == CHAT_ASSISTANT) {
            example->messages[i].learned = true;
            return;
        }
    }
}

static bool says_learn(const json_t *list)
{
    size_t i;
    json_t *message;

    json_array_foreach(list, i, message)
    {
        if (json_object_get(message, "learn") != NULL) {
            return true;
        }
    }
    return false;
}

/* A conversation: --system before it, if it has no system message of its own. */
static enum status lay_out(struct example *example, struct parts *parts,
                           const struct example_rules *rules, size_t count, struct error *error)
{
    const struct chat_message *messages =
        example->messages + 1; /* the first place is the system's */

    if (rules->layout == NULL) {
        return error_set(error, STATUS_REFUSED, "%s", rules->layout_trouble);
    }
    if (count > 0 && rules->system != NULL && messages[0].role != CHAT_SYSTEM) {
        example->messages[0] = (struct chat_message){
            CHAT_SYSTEM, rules->system, strlen(rules->system), NULL, 0, false};
        messages--;
        count++;
    }
    return chat_lay_out(parts, error, rules->layout, rules->tokenizer, rules->date, messages,
                        count);
}

/* prompt (or NULL) and list are lists of messages; only what list says is learned of both. */
static enum status of_messages(struct example *example, struct parts *parts,
                               const struct example_rules *rules, const json_t *prompt,
                               const json_t *list, json_t *canonical[2], struct error *error)
{
    size_t count = 1;
    size_t prompts;

    TRY(make_room(example, 1, error));
    TRY(take_messages(example, &count, rules, prompt, canonical[0], error));
    prompts = count;
    for (size_t i = 1; i < prompts; i++) {
        example->messages[i].learned = false;
    }
    TRY(take_messages(example, &count, rules, list, canonical[1], error));
    if (rules->learn == LEARN_LAST && !says_learn(list)) {
        learn_last(example, count);
    }
    return lay_out(example, parts, rules, count - 1, error);
}

/* ---- a line ---- */

/* A question and its answer, as texts: a conversation, where there is a layout. */
static enum status of_question(struct example *example, struct parts *parts,
                               const struct example_rules *rules, const json_t *prompt,
                               const json_t *answer, struct error *error)
{
    if (!json_is_string(answer) || (prompt != NULL && !json_is_string(prompt))) {
        return error_set(error, STATUS_REFUSED,
                         "prompt and answer must be both texts, or both lists of messages");
    }
    if (rules->layout == NULL || prompt == NULL) {
        add_texts(parts, rules, prompt, json_string_value(answer), json_string_length(answer));
        return STATUS_OK;
    }
    TRY(make_room(example, 3, error));
    example->messages[1] = (struct chat_message){
        CHAT_USER, json_string_value(prompt), json_string_length(prompt), NULL, 0, false};
    example->messages[2] = (struct chat_message){
        CHAT_ASSISTANT, json_string_value(answer), json_string_length(answer), NULL, 0, true};
    return lay_out(example, parts, rules, 2, error);
}

/* One row, of a prompt that may be NULL and of what follows it. What is used goes into canonical
 * under these keys. */
static enum status of_row(struct example *example, struct parts *parts,
                          const struct example_rules *rules, const json_t *prompt, const char *key,
                          const json_t *answer, json_t *canonical, struct error *error)
{
    json_t *lists[2] = {json_array(), json_array()};
    enum status status;

    if (!json_is_array(answer)) {
        status = of_question(example, parts, rules, prompt, answer, error);
        (void)json_object_set(canonical, key, (json_t *)answer);
        if (prompt != NULL) {
            (void)json_object_set(canonical, "prompt", (json_t *)prompt);
        }
        json_decref(lists[0]);
        json_decref(lists[1]);
        return status;
    }
    if (prompt != NULL && !json_is_array(prompt)) {
        status = error_set(error, STATUS_REFUSED,
                           "prompt and answer must be both texts, or both lists of messages");
    } else {
        status = of_messages(example, parts, rules, prompt, answer, lists, error);
    }
    (void)json_object_set_new(canonical, key, lists[1]);
    if (prompt != NULL) {
        (void)json_object_set(canonical, "prompt", lists[0]);
    }
    json_decref(lists[0]);
    return status;
}

/* Which of the known shapes a line has; NULL: none, or two. */
static const char *shape_of(const json_t *line, struct error *error)
{
    static const char *const keys[] = {"text", "completion", "messages", "chosen"};
    const char *found = NULL;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (json_object_get(line, keys[i]) == NULL) {
            continue;
        }
        if (found != NULL) {
            (void)error_set(error, STATUS_REFUSED, "'%s' and '%s' in one line: which is meant?",
                            found, keys[i]);
            return NULL;
        }
        found = keys[i];
    }
    if (found == NULL) {
        (void)error_set(error, STATUS_REFUSED,
                        "none of 'text', 'prompt' with 'completion', "
                        "'messages', 'chosen' with 'rejected'");
    }
    return found;
}

static enum status of_line(struct example *example, const struct example_rules *rules,
                           const json_t *line, json_t *canonical, struct error *error)
{
    const json_t *prompt = json_object_get(line, "prompt");
    const char *shape = json_is_object(line) ? shape_of(line, error) : NULL;
    const json_t *answer = shape == NULL ? NULL : json_object_get(line, shape);

    if (shape == NULL) {
        return json_is_object(line) ? STATUS_REFUSED
                                    : error_set(error, STATUS_BAD_FORMAT, "no object");
    }
    if (strcmp(shape, "text") == 0) {
        if (!json_is_string(answer)) {
            return error_set(error, STATUS_BAD_FORMAT, "'text' is not a text");
        }
        return example_of_text(example, error, rules, json_string_value(answer),
                               json_string_length(answer));
    }
    if (strcmp(shape, "messages") == 0) {
        if (!json_is_array(answer)) {
            return error_set(error, STATUS_BAD_FORMAT, "'messages' is not a list");
        }
        /* A conversation has its prompt inside. */
        prompt = NULL;
    }
    if (strcmp(shape, "completion") == 0 && prompt == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "'completion' without 'prompt'");
    }
    TRY(of_row(example, &example->rows[0], rules, prompt, shape, answer, canonical, error));
    if (strcmp(shape, "chosen") == 0) {
        if (json_object_get(line, "rejected") == NULL) {
            return error_set(error, STATUS_BAD_FORMAT, "'chosen' without 'rejected'");
        }
        /* The pair is one example with two rows, and one hash: both fall on the same side. */
        example->row_count = 2;
        TRY(of_row(example, &example->rows[1], rules, prompt, "rejected",
                   json_object_get(line, "rejected"), canonical, error));
    }
    write_json(&example->canonical, canonical);
    return STATUS_OK;
}

enum status example_of_json(struct example *example, struct error *error,
                            const struct example_rules *rules, const void *line, size_t size)
{
    json_t *canonical = NULL;
    json_t *root = NULL;
    enum status status;

    clear_example(example);
    TRY_OUT(strict_json_parse_escaped_nul(&root, error, "line", line, size, EXAMPLE_SIZE_MAX,
                                          EXAMPLE_DEPTH_MAX));
    canonical = json_object();
    TRY_OUT(of_line(example, rules, root, canonical, error));
    TRY_OUT(parts_check(&example->rows[0], error));
    TRY_OUT(parts_check(&example->rows[1], error));
    status = buffer_check(&example->canonical, error, "example");
out:
    json_decref(canonical);
    json_decref(root);
    return status;
}
