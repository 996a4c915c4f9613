/*
 * Goal: a config.json is the same program on every day and in every family.
 *
 * Method: the configs of fixtures/corpus/base_config, built as small models; their program roots
 * are pinned. The table of families in docs/FINETUNE.md is held to the code's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "engine/models/layouts.h"
#include "proofs/commit/descriptor.h"
#include "proofs/format/base_config.h"
#include "tests/support/test.h"

static void read_config(struct base_config *config, const char *name)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    struct error error;

    error_init(&error);
    (void)snprintf(path, sizeof(path), "fixtures/corpus/base_config/%s.json", name);
    assert_int_equal(file_read(&bytes, &error, path, BASE_CONFIG_SIZE_MAX), STATUS_OK);
    if (base_config_parse(config, bytes.data, bytes.size, path, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    file_bytes_release(&bytes);
}

/* Of the whole training, since its roots must stay. */
static void program_of(char hex[HEX_SIZE(DIGEST_SIZE)], const char *name)
{
    struct base_config config;
    struct digest root;
    struct error error;
    struct model model;

    error_init(&error);
    read_config(&config, name);
    config.model.length = 8;
    config.model.batch = 2;
    config.model.data_count = 100;
    if (model_build(&model, &config.model, &error) != STATUS_OK) {
        fail_msg("%s: %s", name, error.text);
    }
    assert_int_equal(descriptor_program_root(&root, model.tape, &error), STATUS_OK);
    hex_encode(hex, root.bytes, DIGEST_SIZE);
    model_release(&model);
}

/* A root changes only with the rules: a changed one is another network for every old job. */
static void test_programs_of_families_are_pinned(void **state)
{
    static const struct {
        const char *name;
        const char *root; /* its beginning */
    } pinned[] = {
        {"gpt2", "abd45d5a7e80e805"},       {"llama2", "bdf703bf7993ba65"},
        {"llama3", "e9a9fefe5bf77ad1"},     {"mistral", "4924c6f750e3af54"},
        {"qwen2", "937c69b39421e8bb"},      {"qwen3", "8d2c297cd4142f07"},
        {"smollm", "40fae37b79d0c269"},     {"biased", "b8d6be1dc2e38874"},
        {"gemma", "2faea6ab66b8c578"},      {"gemma2", "5f6a08b77ba17fea"},
        {"gemma3", "e065718427d14c87"},     {"olmo2", "668992ec1761c144"},
        {"granite", "1118836b3830b521"},    {"smollm3", "b61b22c81f41d82a"},
        {"yarn", "cc9c6e3d5edcda01"},       {"phi3", "42ae3ab4761995ed"},
        {"phi35", "9733f1a0f6d77994"},      {"phi35long", "9733f1a0f6d77994"},
        {"phi4mini", "027441c28e843d5a"},   {"glm", "496caf32651c9e50"},
        {"glm4", "a13d36928f85cccd"},       {"pythia", "b1f614185df39307"},
        {"neox", "9bab56d991c30728"},       {"stablelm", "8d602a35b0f2ccb1"},
        {"starcoder2", "6a2c066963c95199"}, {"phi2", "f45b90f152f86cab"},
        {"opt", "43c764ca79fff7e5"},        {"pictures", "e065718427d14c87"},
    };
    bool same = true;

    (void)state;
    for (size_t i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++) {
        char hex[HEX_SIZE(DIGEST_SIZE)];

        program_of(hex, pinned[i].name);
        if (strncmp(hex, pinned[i].root, 16) != 0) {
            print_message("%s: %.16s, and not %s\n", pinned[i].name, hex, pinned[i].root);
            same = false;
        }
    }
    assert_true(same);
}

static void test_every_family_has_a_layout(void **state)
{
    (void)state;
    for (size_t i = 0; family_at(i) != NULL; i++) {
        const struct family_row *row = family_at(i);

        assert_non_null(layout_find(row->layout == NULL ? row->model_type : row->layout));
        assert_ptr_equal(family_find(row->model_type), row); /* no model_type twice */
        assert_true(row->sliding != SLIDING_PATTERN || row->pattern != 0);
    }
    for (size_t i = 0; family_wrapper_at(i) != NULL; i++) {
        assert_non_null(family_find(family_wrapper_at(i)->text));
    }
}

/* ---- the document --------------------------------------------------------- */

static size_t add_rows(char *text, size_t room)
{
    size_t size = 0;

    for (size_t i = 0; family_at(i) != NULL; i++) {
        const struct family_row *row = family_at(i);

        size += (size_t)snprintf(text + size, room - size, "| %s | `%s` | %s |\n", row->title,
                                 row->model_type, row->refused == NULL ? "-" : row->refused);
    }
    for (size_t i = 0; family_wrapper_at(i) != NULL; i++) {
        const struct family_wrapper *wrapper = family_wrapper_at(i);

        size += (size_t)snprintf(text + size, room - size, "| the text of %s | `%s` | pictures |\n",
                                 wrapper->title, wrapper->model_type);
    }
    return size;
}

static void test_the_table_of_the_document_is_that_of_the_code(void **state)
{
    struct file_bytes bytes = {0};
    char *text = calloc(1, 65536);
    struct error error;

    (void)state;
    error_init(&error);
    assert_non_null(text);
    assert_true(add_rows(text, 65536) < 65536);
    assert_int_equal(file_read(&bytes, &error, "docs/FINETUNE.md", 1 << 20), STATUS_OK);
    if (memmem(bytes.data, bytes.size, text, strlen(text)) == NULL) {
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            print_message("%s\n", line);
        }
        fail_msg("docs/FINETUNE.md lacks these lines, one after the other");
    }
    file_bytes_release(&bytes);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_of_families_are_pinned),
        cmocka_unit_test(test_every_family_has_a_layout),
        cmocka_unit_test(test_the_table_of_the_document_is_that_of_the_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
