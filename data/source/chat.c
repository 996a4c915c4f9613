/*
 * chat.c - see chat.h. What each layout does is what the published template does with the same
 * messages, without tools and without a turn that is to be answered; tests hold it to the template.
 */
#include "data/source/chat.h"

#include <string.h>

#include "base/hex.h"
#include "data/text/unicode.h"
#include "data/text/utf8.h"
#include "proofs/hash/sha256.h"

#define TEMPLATES_MAX 2
#define NEEDS_MAX     4
#define OWN_DATE      "26 Jul 2024" /* Llama 3.1's and 3.2's, where nobody gives one */

/* What a layout is written into. */
struct laying {
    struct parts *parts;
    struct error *error;
    const struct tokenizer *tokenizer;
    const char *date;
    const struct chat_message *messages;
    size_t count;
};

struct chat_layout {
    const char *name;
    const char *templates[TEMPLATES_MAX]; /* SHA-256 of each */
    const char *needs[NEEDS_MAX];         /* tokens that it writes */
    enum status (*lay_out)(const struct laying *laying);
};

/* ---- pieces of text ---- */

struct chat_piece {
    const char *text;
    size_t size;
};

static bool is_blank(const struct chat_piece *piece, size_t at)
{
    uint32_t code = utf8_next((const uint8_t *)piece->text, &at);

    return unicode_class(code) == UNICODE_SPACE || (code >= 0x1c && code <= 0x1f);
}

/* Jinja's trim and Python's strip: white space, and the four separators of ASCII. */
static struct chat_piece strip_blanks(struct chat_piece piece)
{
    while (piece.size > 0 && is_blank(&piece, 0)) {
        size_t next = 0;

        (void)utf8_next((const uint8_t *)piece.text, &next);
        piece.text += next;
        piece.size -= next;
    }
    while (piece.size > 0) {
        size_t last = piece.size - 1;

        while (last > 0 && ((uint8_t)piece.text[last] & 0xc0) == 0x80) {
            last--;
        }
        if (!is_blank(&piece, last)) {
            break;
        }
        piece.size = last;
    }
    return piece;
}

static struct chat_piece strip_lines(struct chat_piece piece, bool left, bool right)
{
    while (left && piece.size > 0 && piece.text[0] == '\n') {
        piece.text++;
        piece.size--;
    }
    while (right && piece.size > 0 && piece.text[piece.size - 1] == '\n') {
        piece.size--;
    }
    return piece;
}

static struct chat_piece text_of(const struct chat_message *message)
{
    return (struct chat_piece){message->text, message->size};
}

static void add_piece(const struct laying *laying, struct chat_piece piece, bool learned)
{
    parts_add_text(laying->parts, piece.text, piece.size, learned);
}

static void add_layout(const struct laying *laying, const char *text, bool learned)
{
    parts_add_layout(laying->parts, laying->tokenizer, text, learned);
}

/* A token of the tokenizer's config; nothing where it names none. */
static void add_token(const struct laying *laying, uint32_t id, bool learned)
{
    if (id != VOCABULARY_NONE) {
        parts_add_id(laying->parts, id, learned);
    }
}

/* user, assistant, user, ... from a message on. */
static enum status check_turns(const struct laying *laying, size_t from)
{
    for (size_t i = from; i < laying->count; i++) {
        if (laying->messages[i].role != ((i - from) % 2 == 0 ? CHAT_USER : CHAT_ASSISTANT)) {
            return error_set(laying->error, STATUS_REFUSED,
                             "message %zu: this layout takes turns, user first", i + 1);
        }
    }
    return STATUS_OK;
}

/* Is the first message the system's? */
static bool has_system(const struct laying *laying)
{
    return laying->count > 0 && laying->messages[0].role == CHAT_SYSTEM;
}

/* ---- Llama 2 ---- */

/* The system's text and the first question are stripped as one, which begins with "<". */
static enum status add_llama2_system(const struct laying *laying, const struct chat_piece *text,
                                     struct chat_piece *stripped)
{
    if (stripped->size == 0) {
        return error_set(laying->error, STATUS_REFUSED, "message 2: it is blank");
    }
    add_layout(laying, "<<SYS>>\n", false);
    add_piece(laying, text_of(&laying->messages[0]), false);
    add_layout(laying, "\n<</SYS>>\n\n", false);
    stripped->size += (size_t)(stripped->text - text->text);
    stripped->text = text->text;
    return STATUS_OK;
}

static enum status lay_out_llama2(const struct laying *laying)
{
    const size_t from = has_system(laying) ? 1 : 0;

    TRY(check_turns(laying, from));
    for (size_t i = from; i < laying->count; i++) {
        const struct chat_message *message = &laying->messages[i];
        const struct chat_piece text = text_of(message);
        struct chat_piece stripped = strip_blanks(text);

        if (message->role == CHAT_ASSISTANT) {
            add_layout(laying, " ", message->learned);
            add_piece(laying, stripped, message->learned);
            add_layout(laying, " ", message->learned);
            add_token(laying, laying->tokenizer->eos, message->learned);
            continue;
        }
        add_token(laying, laying->tokenizer->bos, false);
        add_layout(laying, "[INST] ", false);
        if (i == from && from > 0) {
            TRY(add_llama2_system(laying, &text, &stripped));
        }
        add_piece(laying, stripped, false);
        add_layout(laying, " [/INST]", false);
    }
    return STATUS_OK;
}

/* ---- Mistral ---- */

static enum status lay_out_mistral(const struct laying *laying, const char *behind)
{
    if (has_system(laying)) {
        return error_set(laying->error, STATUS_REFUSED,
                         "message 1: this layout has no place for a system message");
    }
    TRY(check_turns(laying, 0));
    add_token(laying, laying->tokenizer->bos, false);
    for (size_t i = 0; i < laying->count; i++) {
        const struct chat_message *message = &laying->messages[i];

        if (message->role == CHAT_USER) {
            add_layout(laying, "[INST] ", false);
            add_piece(laying, text_of(message), false);
            add_layout(laying, " [/INST]", false);
        } else {
            add_piece(laying, text_of(message), message->learned);
            add_token(laying, laying->tokenizer->eos, message->learned);
            add_layout(laying, behind, false);
        }
    }
    return STATUS_OK;
}

static enum status lay_out_mistral_v1(const struct laying *laying)
{
    return lay_out_mistral(laying, " ");
}

static enum status lay_out_mistral_v3(const struct laying *laying)
{
    return lay_out_mistral(laying, "");
}

/* ---- Llama 3 ---- */

static void add_llama3_turn(const struct laying *laying, const struct chat_message *message)
{
    static const char *const names[] = {"system", "user", "assistant"};
    bool learned = message->role == CHAT_ASSISTANT && message->learned;

    add_layout(laying, "<|start_header_id|>", false);
    add_layout(laying, names[message->role], false);
    add_layout(laying, "<|end_header_id|>", false);
    add_layout(laying, "\n\n", false);
    add_piece(laying, strip_blanks(text_of(message)), learned);
    add_layout(laying, "<|eot_id|>", learned);
}

static enum status lay_out_llama3(const struct laying *laying)
{
    add_token(laying, laying->tokenizer->bos, false);
    for (size_t i = 0; i < laying->count; i++) {
        add_llama3_turn(laying, &laying->messages[i]);
    }
    return STATUS_OK;
}

/* There is always a system's turn, with two dates. */
static enum status lay_out_llama31(const struct laying *laying)
{
    add_token(laying, laying->tokenizer->bos, false);
    add_layout(laying, "<|start_header_id|>system<|end_header_id|>\n\n", false);
    add_layout(laying, "Cutting Knowledge Date: December 2023\nToday Date: ", false);
    add_piece(laying,
              (struct chat_piece){laying->date == NULL ? OWN_DATE : laying->date,
                                  strlen(laying->date == NULL ? OWN_DATE : laying->date)},
              false);
    add_layout(laying, "\n\n", false);
    if (has_system(laying)) {
        add_piece(laying, strip_blanks(text_of(&laying->messages[0])), false);
    }
    add_layout(laying, "<|eot_id|>", false);
    for (size_t i = has_system(laying) ? 1 : 0; i < laying->count; i++) {
        add_llama3_turn(laying, &laying->messages[i]);
    }
    return STATUS_OK;
}

/* ---- Gemma 3 ---- */

static enum status lay_out_gemma3(const struct laying *laying)
{
    const size_t from = has_system(laying) ? 1 : 0;

    TRY(check_turns(laying, from));
    add_token(laying, laying->tokenizer->bos, false);
    for (size_t i = from; i < laying->count; i++) {
        const struct chat_message *message = &laying->messages[i];
        bool answers = message->role == CHAT_ASSISTANT;
        bool learned = answers && message->learned;

        add_layout(laying, "<start_of_turn>", false);
        add_layout(laying, answers ? "model\n" : "user\n", false);
        if (i == from && from > 0) {
            add_piece(laying, text_of(&laying->messages[0]), false);
            add_layout(laying, "\n\n", false);
        }
        add_piece(laying, strip_blanks(text_of(message)), learned);
        add_layout(laying, "<end_of_turn>", learned);
        add_layout(laying, "\n", false);
    }
    return STATUS_OK;
}

/* ---- Qwen3 ---- */

static struct chat_piece behind_of(struct chat_piece whole, struct chat_piece from)
{
    return (struct chat_piece){from.text, (size_t)(whole.text + whole.size - from.text)};
}

/* Where a tag stands, first or last; its text is NULL where it stands nowhere. */
static struct chat_piece find_tag(struct chat_piece piece, const char *tag, bool last)
{
    const size_t size = strlen(tag);
    struct chat_piece found = {NULL, size};

    for (size_t at = 0; at + size <= piece.size && (last || found.text == NULL); at++) {
        if (memcmp(piece.text + at, tag, size) == 0) {
            found.text = piece.text + at;
            at += size - 1;
        }
    }
    return found;
}

/* Thoughts may be given apart, or stand between tags in the text. */
static void split_thoughts(struct chat_piece *text, struct chat_piece *thoughts,
                           const struct chat_message *message)
{
    const struct chat_piece whole = text_of(message);
    struct chat_piece first = find_tag(whole, "</think>", false);
    struct chat_piece last = find_tag(whole, "</think>", true);
    struct chat_piece opened;

    *text = whole;
    *thoughts = (struct chat_piece){message->thinking, message->thinking_size};
    if (message->thinking != NULL || first.text == NULL) {
        return;
    }
    *thoughts = strip_lines((struct chat_piece){whole.text, (size_t)(first.text - whole.text)},
                            false, true);
    opened = find_tag(*thoughts, "<think>", true);
    if (opened.text != NULL) {
        opened.text += opened.size;
        *thoughts = behind_of(*thoughts, opened);
    }
    *thoughts = strip_lines(*thoughts, true, false);
    last.text += last.size;
    *text = strip_lines(behind_of(whole, last), true, false);
}

/* Answers to the last question keep their thoughts, those before lose them. */
static void add_qwen3_answer(const struct laying *laying, size_t at, size_t last_question)
{
    const struct chat_message *message = &laying->messages[at];
    const bool learned = message->learned;
    struct chat_piece thoughts;
    struct chat_piece text;

    split_thoughts(&text, &thoughts, message);
    if (at > last_question && (at + 1 == laying->count || thoughts.size > 0)) {
        add_layout(laying, "<think>", learned);
        add_layout(laying, "\n", learned);
        add_piece(laying, strip_lines(thoughts, true, true), learned);
        add_layout(laying, "\n</think>\n\n", learned);
        text = strip_lines(text, true, false);
    }
    add_piece(laying, text, learned);
    add_layout(laying, "<|im_end|>", learned);
    add_layout(laying, "\n", false);
}

static bool is_reply_of_tool(const struct chat_message *message)
{
    static const char begin[] = "<tool_response>";
    static const char end[] = "</tool_response>";

    return message->size >= strlen(begin) && message->size >= strlen(end) &&
           memcmp(message->text, begin, strlen(begin)) == 0 &&
           memcmp(message->text + message->size - strlen(end), end, strlen(end)) == 0;
}

static enum status lay_out_qwen3(const struct laying *laying)
{
    size_t last_question = laying->count == 0 ? 0 : laying->count - 1;

    for (size_t i = laying->count; i-- > 0;) {
        if (laying->messages[i].role == CHAT_USER && !is_reply_of_tool(&laying->messages[i])) {
            last_question = i;
            break;
        }
    }
    for (size_t i = 0; i < laying->count; i++) {
        const struct chat_message *message = &laying->messages[i];

        add_layout(laying, "<|im_start|>", false);
        if (message->role == CHAT_ASSISTANT) {
            add_layout(laying, "assistant\n", false);
            add_qwen3_answer(laying, i, last_question);
            continue;
        }
        add_layout(laying, message->role == CHAT_USER ? "user\n" : "system\n", false);
        add_piece(laying, text_of(message), false);
        add_layout(laying, "<|im_end|>", false);
        add_layout(laying, "\n", false);
    }
    return STATUS_OK;
}

/* ---- the table ---- */

static const struct chat_layout layouts[] = {
    {"llama2",
     {"e8d5b5a546d3f19df16a5320c614fab05bdc4edd50e850f1afd947b503ea41cf"},
     {NULL},
     lay_out_llama2},
    {"llama3",
     {"b48c47f6443892716176eb200bf4ef108f64e06ca26ed0fa8ebc0a4b3992fcb2"},
     {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
     lay_out_llama3},
    {"llama3.1", /* and 3.2, 3.3, which ask for today's date */
     {"e10ca381b1ccc5cf9db52e371f3b6651576caee0a630b452e2816b2d404d4b65",
      "5816fce10444e03c2e9ee1ef8a4a1ea61ae7e69e438613f3b17b69d0426223a4"},
     {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
     lay_out_llama31},
    {"qwen3",
     {"87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5"},
     {"<|im_start|>", "<|im_end|>", "<think>", "</think>"},
     lay_out_qwen3},
    {"gemma3",
     {"7de1c58e208eda46e9c7f86397df37ec49883aeece39fb961e0a6b24088dd3c4"},
     {"<start_of_turn>", "<end_of_turn>"},
     lay_out_gemma3},
    {"mistral-v1",
     {"7e995b379ec01747807246483647cd99030abf331653f1119e16d7ac041a3495"},
     {NULL},
     lay_out_mistral_v1},
    {"mistral-v3",
     {"26a59556925c987317ce5291811ba3b7f32ec4c647c400c6cc7e3a9993007ba7"},
     {NULL},
     lay_out_mistral_v3},
};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

const struct chat_layout *chat_layout_at(size_t index)
{
    return index < LAYOUTS ? &layouts[index] : NULL;
}

const char *chat_layout_name(const struct chat_layout *layout)
{
    return layout->name;
}

const struct chat_layout *chat_layout_named(const char *name)
{
    for (size_t i = 0; i < LAYOUTS; i++) {
        if (strcmp(layouts[i].name, name) == 0) {
            return &layouts[i];
        }
    }
    return NULL;
}

enum status chat_layout_of(const struct chat_layout **layout, struct error *error,
                           const struct tokenizer *tokenizer)
{
    struct digest digest;
    char hash[HEX_SIZE(DIGEST_SIZE)];

    *layout = NULL;
    if (tokenizer->chat_template == NULL) {
        (void)error_set(error, STATUS_REFUSED, "the tokenizer publishes no chat template");
        error_advise(error, "--chat NAME says how conversations are laid out; --help lists them");
        return STATUS_REFUSED;
    }
    /* By the hash of its text: a template is a program, and one that is nearly the same may lay out
     * otherwise. */
    sha256(&digest, tokenizer->chat_template, strlen(tokenizer->chat_template));
    hex_encode(hash, digest.bytes, DIGEST_SIZE);
    for (size_t i = 0; i < LAYOUTS; i++) {
        for (size_t j = 0; j < TEMPLATES_MAX && layouts[i].templates[j] != NULL; j++) {
            if (strcmp(layouts[i].templates[j], hash) == 0) {
                *layout = &layouts[i];
                return STATUS_OK;
            }
        }
    }
    (void)error_set(error, STATUS_REFUSED,
                    "the tokenizer's chat template (SHA-256 %s) is not one "
                    "that we know",
                    hash);
    error_advise(error, "if it is one of ours with another spelling, say so: --chat NAME");
    return STATUS_REFUSED;
}

enum status chat_layout_check(const struct chat_layout *layout, struct error *error,
                              const struct tokenizer *tokenizer)
{
    for (size_t i = 0; i < NEEDS_MAX && layout->needs[i] != NULL; i++) {
        if (added_of_text(&tokenizer->added, layout->needs[i], strlen(layout->needs[i])) == NULL) {
            return error_set(error, STATUS_REFUSED,
                             "the layout %s writes %s, and the tokenizer has no such token",
                             layout->name, layout->needs[i]);
        }
    }
    if (strncmp(layout->name, "llama2", 6) == 0 || strncmp(layout->name, "mistral", 7) == 0) {
        if (tokenizer->bos == VOCABULARY_NONE || tokenizer->eos == VOCABULARY_NONE) {
            return error_set(error, STATUS_REFUSED,
                             "the layout %s needs a BOS and an EOS, and tokenizer_config.json does "
                             "not name both",
                             layout->name);
        }
    }
    return STATUS_OK;
}

enum status chat_lay_out(struct parts *parts, struct error *error, const struct chat_layout *layout,
                         const struct tokenizer *tokenizer, const char *date,
                         const struct chat_message *messages, size_t count)
{
    const struct laying laying = {parts, error, tokenizer, date, messages, count};

    for (size_t i = 1; i < count; i++) {
        if (messages[i].role == CHAT_SYSTEM && layout->lay_out != lay_out_qwen3 &&
            layout->lay_out != lay_out_llama3 && layout->lay_out != lay_out_llama31) {
            return error_set(error, STATUS_REFUSED,
                             "message %zu: a system message stands first, or nowhere", i + 1);
        }
    }
    return layout->lay_out(&laying);
}
