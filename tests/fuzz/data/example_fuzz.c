/*
 * example_fuzz.c - any bytes as a line of .jsonl, under each chat layout: what is taken has parts
 * that lie inside its text, and a canonical form that is JSON and says the same again.
 */
#include <stdlib.h>
#include <string.h>

#include "data/source/example.h"
#include "data/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parts(const struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->list[i].start + parts->list[i].size > parts->text.size) {
            abort();
        }
    }
}

/* The canonical form of a canonical form is itself. */
static void check_again(const struct example_rules *rules, const struct example *example)
{
    struct example again;
    struct error error;

    error_init(&error);
    example_init(&again);
    if (example_of_json(&again, &error, rules, example->canonical.data, example->canonical.size) !=
            STATUS_OK ||
        again.canonical.size != example->canonical.size ||
        memcmp(again.canonical.data, example->canonical.data, again.canonical.size) != 0) {
        abort();
    }
    example_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tokenizer tokenizer;
    struct example example;
    struct error error;

    if (utf8_valid(data, size) != size) {
        return 0;
    }
    error_init(&error);
    if (tokenizer_open(&tokenizer, &error, TOKENIZER_BYTES) != STATUS_OK) {
        return 0;
    }
    example_init(&example);
    for (size_t i = 0;; i++) {
        const struct example_rules rules = {.tokenizer = &tokenizer,
                                            .layout = chat_layout_at(i),
                                            .layout_trouble = "no layout",
                                            .learn = (enum example_learn)(i % 3),
                                            .system = i % 2 == 0 ? "Be brief." : NULL,
                                            .put_before = true,
                                            .put_behind = true,
                                            .put_eos = true};

        if (example_of_json(&example, &error, &rules, data, size) == STATUS_OK) {
            check_parts(&example.rows[0]);
            check_parts(&example.rows[1]);
            check_again(&rules, &example);
        }
        if (rules.layout == NULL) {
            break;
        }
    }
    example_release(&example);
    tokenizer_release(&tokenizer);
    return 0;
}
