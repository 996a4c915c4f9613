/* job_card.c - see job_card.h. */
#include "chain/job/job_card.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "proofs/job/job_facts.h"

_Static_assert(JOB_CARD_TEXT_MAX == JOB_TITLE_MAX, "titles fit");

enum {
    FIELD_MAX = 3 * JOB_CARD_TEXT_MAX + 1, /* of a text as the contact has it */
    NUMBERS_MAX = 160,
};

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                            "-_.~!$'()*,;:@/? ";

#define NUMBER_MOST UINT64_C(999999999999999999)

void job_card_of(struct job_card *card, const struct job *job)
{
    struct job_facts facts;

    job_facts(&facts, job);
    *card = (struct job_card){.parameters = facts.parameters,
                              .tokens = facts.tokens,
                              .samples = facts.samples,
                              .data_bytes = tape_footprint(job->tape).data,
                              .checkpoint_bytes = job_checkpoint_bytes(job)};
    (void)snprintf(card->title, sizeof(card->title), "%s", job->title);
    (void)snprintf(card->model, sizeof(card->model), "%s", job->model);
}

/* ---- writing ------------------------------------------------------------------- */

/* As much of the text as takes at most `room` bytes. */
static void write_text(char *field, size_t room, const char *text)
{
    (void)text_escape(field, room, text, plain);
    for (char *at = field; *at != '\0'; at++) {
        *at = *at == ' ' ? '+' : *at;
    }
}

static void add_number(char *numbers, const char *name, uint64_t number)
{
    size_t used = strlen(numbers);

    if (number != 0) {
        (void)snprintf(numbers + used, NUMBERS_MAX - used, "&%s=%" PRIu64, name, number);
    }
}

bool job_card_write(char contact[GAME_CONTACT_MAX + 1], const char *address,
                    const struct job_card *card)
{
    const char *place = address == NULL ? "" : address;
    char numbers[NUMBERS_MAX] = "";
    char model[FIELD_MAX + 1] = "";
    char title[FIELD_MAX + 1] = "";
    size_t room = GAME_CONTACT_MAX;
    size_t fixed = strlen("#title=&model=");

    if (strlen(place) > room || strchr(place, '#') != NULL) {
        return false;
    }
    add_number(numbers, "parameters", card->parameters);
    add_number(numbers, "tokens", card->tokens);
    add_number(numbers, "samples", card->samples);
    add_number(numbers, "data", card->data_bytes);
    add_number(numbers, "state", card->checkpoint_bytes);
    room -= strlen(place);
    if (room < fixed + strlen(numbers)) {
        (void)snprintf(contact, GAME_CONTACT_MAX + 1, "%s", place);
        return true;
    }
    room -= fixed + strlen(numbers);
    write_text(model, room / 2, card->model);
    write_text(title, room - strlen(model), card->title);
    (void)snprintf(contact, GAME_CONTACT_MAX + 1, "%s#title=%s&model=%s%s", place, title, model,
                   numbers);
    return true;
}

/* ---- reading -------------------------------------------------------------------- */

static void read_text(char text[JOB_CARD_TEXT_MAX + 1], const char *field, size_t size)
{
    char escaped[FIELD_MAX + 1];

    (void)snprintf(escaped, sizeof(escaped), "%.*s", (int)(size < FIELD_MAX ? size : FIELD_MAX),
                   field);
    for (char *at = escaped; *at != '\0'; at++) {
        *at = *at == '+' ? ' ' : *at;
    }
    (void)text_unescape(escaped);
    (void)snprintf(text, JOB_CARD_TEXT_MAX + 1, "%.*s", JOB_CARD_TEXT_MAX, escaped);
    for (char *at = text; *at != '\0'; at++) {
        *at = (char)(*at >= ' ' && *at <= '~' ? *at : '?');
    }
}

static uint64_t read_number(const char *field, size_t size)
{
    char text[24];
    uint64_t number;

    (void)snprintf(text, sizeof(text), "%.*s", (int)(size < sizeof(text) ? size : sizeof(text)),
                   field);
    return size < sizeof(text) && text_is_number(&number, text, NUMBER_MOST) ? number : 0;
}

static void read_field(struct job_card *card, const char *field, size_t size)
{
    const struct {
        const char *name;
        char *text;
        uint64_t *number;
    } fields[] = {{"title=", card->title, NULL},
                  {"model=", card->model, NULL},
                  {"parameters=", NULL, &card->parameters},
                  {"tokens=", NULL, &card->tokens},
                  {"samples=", NULL, &card->samples},
                  {"data=", NULL, &card->data_bytes},
                  {"state=", NULL, &card->checkpoint_bytes}};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        size_t length = strlen(fields[i].name);

        if (size < length || memcmp(field, fields[i].name, length) != 0) {
            continue;
        }
        if (fields[i].text != NULL) {
            read_text(fields[i].text, field + length, size - length);
        } else {
            *fields[i].number = read_number(field + length, size - length);
        }
    }
}

/* Where the card begins, or the size of the contact. */
static size_t address_size(const struct game_bytes *contact)
{
    const void *mark = contact->size == 0 ? NULL : memchr(contact->bytes, '#', contact->size);

    return mark == NULL ? contact->size : (size_t)((const uint8_t *)mark - contact->bytes);
}

void job_card_read(struct job_card *card, const struct game_bytes *contact)
{
    const char *text = (const char *)contact->bytes;
    size_t at = address_size(contact);

    *card = (struct job_card){.title = ""};
    while (at < contact->size) { /* at stands on "#" or "&" */
        const char *field = text + ++at;
        const char *end = memchr(field, '&', contact->size - at);
        size_t size = end == NULL ? contact->size - at : (size_t)(end - field);

        read_field(card, field, size);
        at += size;
    }
}

void job_card_address(char address[GAME_CONTACT_MAX + 1], const struct game_bytes *contact)
{
    size_t size = address_size(contact);

    size = size > GAME_CONTACT_MAX ? 0 : size;
    if (size > 0) {
        memcpy(address, contact->bytes, size);
    }
    address[size] = '\0';
}

/* ---- for people ---------------------------------------------------------------------- */

#define NUMBER_MAX 32

/* "170560", "124.4 million", "1.24 billion" */
static void print_number(char text[NUMBER_MAX], uint64_t number)
{
    if (number < 10000000) {
        (void)snprintf(text, NUMBER_MAX, "%" PRIu64, number);
    } else {
        (void)snprintf(text, NUMBER_MAX, "%.4g %s", (double)number / (number < 1e9 ? 1e6 : 1e9),
                       number < 1e9 ? "million" : "billion");
    }
}

static void print_size(char text[NUMBER_MAX], uint64_t bytes)
{
    double size = (double)bytes / 1048576;

    (void)snprintf(text, NUMBER_MAX, "%.2f %s", size < 1024 ? size : size / 1024,
                   size < 1024 ? "MiB" : "GiB");
}

bool job_card_trains(const struct job_card *card)
{
    return card->parameters > 0 || card->checkpoint_bytes == 0;
}

void job_card_words(char words[JOB_CARD_WORDS_MAX], const struct job_card *card)
{
    uint64_t learned = card->tokens + card->samples;
    char number[NUMBER_MAX];
    char checkpoint[NUMBER_MAX];
    size_t size = 0;

    words[0] = '\0';
    if (card->model[0] != '\0') {
        print_number(number, card->parameters);
        size += (size_t)snprintf(words, JOB_CARD_WORDS_MAX, "%.80s; %s%s", card->model,
                                 job_card_trains(card) ? number : "states, and no loss",
                                 job_card_trains(card) ? " parameters" : "");
    }
    if (learned > 0) {
        print_number(number, learned);
        size +=
            (size_t)snprintf(words + size, JOB_CARD_WORDS_MAX - size, "%s%s %s %s",
                             size == 0 ? "" : "; ", job_card_trains(card) ? "learns from" : "reads",
                             number, card->tokens > 0 ? "tokens" : "samples");
        print_size(number, card->data_bytes);
        print_size(checkpoint, card->checkpoint_bytes);
        (void)snprintf(words + size, JOB_CARD_WORDS_MAX - size, "; %s of data, checkpoints of %s",
                       number, checkpoint);
    }
}
