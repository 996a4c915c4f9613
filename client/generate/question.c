/* question.c - see question.h. */
#include "client/generate/question.h"

#include <stdlib.h>
#include <string.h>

#include "data/text/utf8.h"

enum status question_init(struct question *question, struct error *error,
                          const struct tokenizer *tokenizer, const struct chat_layout *layout,
                          const char *date)
{
    *question = (struct question){
        .tokenizer = tokenizer, .layout = layout, .date = date, .end_of_turn = VOCABULARY_NONE};
    if (layout != NULL) {
        TRY(chat_layout_check(layout, error, tokenizer));
    }
    TRY(encoder_init(&question->encoder, error, tokenizer));
    parts_init(&question->parts);
    buffer_init(&question->learned, PARTS_MAX * 64u);
    return STATUS_OK;
}

void question_release(struct question *question)
{
    for (size_t i = 0; i < question->count; i++) {
        free((void *)(uintptr_t)question->messages[i].text);
    }
    parts_release(&question->parts);
    buffer_release(&question->learned);
    encoder_release(&question->encoder);
    *question = (struct question){0};
}

static enum status check_text(const char *text, size_t size, struct error *error)
{
    if (size > ENCODE_SIZE_MAX) {
        return error_set(error, STATUS_OVER_LIMIT, "a text of more than %u MiB",
                         ENCODE_SIZE_MAX >> 20);
    }
    if (utf8_valid((const uint8_t *)text, size) != size) {
        return error_set(error, STATUS_BAD_FORMAT, "the text is no UTF-8 from byte %zu on",
                         utf8_valid((const uint8_t *)text, size));
    }
    return STATUS_OK;
}

static enum status encode_parts(struct question *question, struct error *error)
{
    TRY(parts_check(&question->parts, error));
    TRY(parts_encode(&question->parts, error, &question->encoder, &question->learned, 0));
    if (question->encoder.count == 0) {
        (void)error_set(error, STATUS_USAGE, "the prompt has no token");
        error_advise(error, "say something with --prompt TEXT");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

enum status question_of_text(struct question *question, struct error *error, const char *text,
                             size_t size)
{
    const struct tokenizer *tokenizer = question->tokenizer;

    TRY(check_text(text, size, error));
    parts_clear(&question->parts);
    for (size_t i = 0; i < tokenizer->before_count; i++) {
        parts_add_id(&question->parts, tokenizer->before[i], false);
    }
    parts_add_text(&question->parts, text, size, false);
    return encode_parts(question, error);
}

enum status question_add(struct question *question, struct error *error, enum chat_role role,
                         const char *text, size_t size)
{
    char *copy;

    TRY(check_text(text, size, error));
    if (question->count + 1 >= QUESTION_MESSAGES_MAX) { /* one more stands for the answer */
        return error_set(error, STATUS_OVER_LIMIT, "a conversation of more than %d messages",
                         QUESTION_MESSAGES_MAX - 1);
    }
    copy = malloc(size + 1);
    if (copy == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a message");
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    question->messages[question->count++] =
        (struct chat_message){.role = role, .text = copy, .size = size};
    return STATUS_OK;
}

/* Leaves away what is learned, and what stands behind it. */
static void cut_answer(struct question *question)
{
    struct parts *parts = &question->parts;
    size_t kept = 0;

    while (kept < parts->count && !parts->list[kept].learned) {
        kept++;
    }
    for (size_t i = kept; i < parts->count; i++) {
        if (parts->list[i].learned && parts->list[i].id != VOCABULARY_NONE) {
            question->end_of_turn = parts->list[i].id; /* the last one ends the turn */
        }
    }
    parts->count = kept;
}

enum status question_lay_out(struct question *question, struct error *error)
{
    struct chat_message *answer = &question->messages[question->count];

    *answer =
        (struct chat_message){.role = CHAT_ASSISTANT, .text = "x", .size = 1, .learned = true};
    parts_clear(&question->parts);
    TRY(chat_lay_out(&question->parts, error, question->layout, question->tokenizer, question->date,
                     question->messages, question->count + 1));
    TRY(parts_check(&question->parts, error));
    cut_answer(question);
    return encode_parts(question, error);
}
