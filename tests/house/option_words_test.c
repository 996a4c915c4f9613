/*
 * Goal: what a person types has one name for one thing. Every option of every command has the form
 * and the heading that tests/house/option_words.txt gives its name, and no old or banned spelling
 * comes back.
 * Method: walks the option tables of all commands, and the table of words against them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/program.h"
#include "base/cli/renamed.h"
#include "chain/commands/commands.h"
#include "client/base/base_commands.h"
#include "client/commands.h"
#include "client/generate/generate.h"
#include "client/generate/model_commands.h"
#include "data/commands/data_commands.h"
#include "prover/commands/commands.h"
#include "tests/support/test.h"
#include "verifier/commands/commands.h"

enum {
    WORDS_MAX = 400,
    WORD_SIZE = 64,
    SHORT_MAX = 12,  /* options that need no shorter list */
    OFTEN_LEAST = 5, /* what --help shows of more */
    OFTEN_MOST = 15,
};

static const struct command_group *const groups[] = {
    &program_commands,  &data_commands,  &job_commands,      &prover_commands, &bundle_commands,
    &trace_commands,    &audit_commands, &generate_commands, &model_commands,  &base_commands,
    &verifier_commands, &watch_commands, &wallet_commands,   &ledger_commands,
};

struct word {
    char name[WORD_SIZE];
    char form[WORD_SIZE];    /* "FILE", "flag" */
    char heading[WORD_SIZE]; /* "-": none */
    bool used;
};

static struct word words[WORDS_MAX];
static size_t word_count;

static void read_words(void)
{
    FILE *file = fopen("tests/house/option_words.txt", "re");
    char line[256];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        struct word *word = &words[word_count];

        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        assert_true(word_count < WORDS_MAX);
        assert_int_equal(sscanf(line, "%63s %63s %63s", word->name, word->form, word->heading), 3);
        word_count++;
    }
    (void)fclose(file);
}

static struct word *find_word(const char *name)
{
    for (size_t i = 0; i < word_count; i++) {
        if (strcmp(words[i].name, name) == 0) {
            return &words[i];
        }
    }
    return NULL;
}

static const char *form_of(const struct option_spec *spec)
{
    return spec->kind == OPTION_FLAG ? "flag" : spec->value == NULL ? "VALUE" : spec->value;
}

/* Is one of the words of list, with | between, this one? */
static bool is_among(const char *list, const char *one)
{
    const size_t length = strlen(one);

    while (*list != '\0') {
        size_t next = strcspn(list, "|");

        if (next == length && memcmp(list, one, length) == 0) {
            return true;
        }
        list += next + (list[next] == '|');
    }
    return false;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    const size_t size = strlen(end);

    return length >= size && strcmp(name + length - size, end) == 0;
}

/* Of one command, in words. */
static void name_of(char name[128], const struct command_group *group,
                    const struct command *command)
{
    (void)snprintf(name, 128, "%s%s%s", group->name == NULL ? "" : group->name,
                   group->name == NULL ? "" : " ", command->name);
}

static bool is_known(const char *command, const struct option_spec *spec)
{
    struct word *word = find_word(spec->name);

    if (word == NULL) {
        print_message("%s: --%s is not in tests/house/option_words.txt\n", command, spec->name);
        return false;
    }
    word->used = true;
    if (!is_among(word->form, form_of(spec))) {
        print_message("%s: --%s %s, and everywhere it is --%s %s\n", command, spec->name,
                      form_of(spec), word->name, word->form);
        return false;
    }
    if (strcmp(word->heading, spec->heading == NULL ? "-" : spec->heading) != 0) {
        print_message("%s: --%s stands under '%s', and everywhere under '%s'\n", command,
                      spec->name, spec->heading == NULL ? "-" : spec->heading, word->heading);
        return false;
    }
    return true;
}

/* Spellings that do not come back, and texts that lean on the option before them. */
static bool is_banned(const char *command, const struct option_spec *spec)
{
    static const char *const ends[] = {"-most", "-least", "-bytes", "-dir"};
    static const char *const forms[] = {"DIR", "SIZE", "PORT", "VALUE"};
    static const char *const texts[] = {"the same for", "such a "};
    static const char *const starts[] = {"its ", "of ", "and ", "them ", "those "};
    bool banned = false;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        banned |= ends_with(spec->name, ends[i]);
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        banned |= strcmp(form_of(spec), forms[i]) == 0;
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        banned |= strstr(spec->help, texts[i]) != NULL;
    }
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        banned |= strncmp(spec->help, starts[i], strlen(starts[i])) == 0;
    }
    if (banned) {
        print_message("%s: --%s %s: %s\n", command, spec->name, form_of(spec), spec->help);
    }
    return banned;
}

static void test_every_option_has_the_words_of_the_table(void **state)
{
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (size_t j = 0; j < groups[i]->command_count; j++) {
            const struct command *command = &groups[i]->commands[j];
            char name[128];

            name_of(name, groups[i], command);
            for (size_t k = 0; k < command->option_count; k++) {
                wrong += !is_known(name, &command->options[k]);
                wrong += is_banned(name, &command->options[k]);
            }
        }
    }
    for (size_t i = 0; i < word_count; i++) {
        if (!words[i].used) {
            print_message("--%s is in the table of words, and no command has it\n", words[i].name);
            wrong++;
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(words[i].name, words[j].name) == 0) {
                print_message("--%s is twice in the table of words\n", words[i].name);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

static void test_help_of_a_large_command_shows_some_ten_options(void **state)
{
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (size_t j = 0; j < groups[i]->command_count; j++) {
            const struct command *command = &groups[i]->commands[j];
            size_t often = 0;
            char name[128];

            for (size_t k = 0; k < command->option_count; k++) {
                often += command->options[k].often;
            }
            if (command->option_count > SHORT_MAX && (often < OFTEN_LEAST || often > OFTEN_MOST)) {
                name_of(name, groups[i], command);
                print_message("%s: --help shows %zu of %zu options\n", name, often,
                              command->option_count);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

/* Some options of the tables have an old name of another: "keep" a number, "tape" a file. */
static void test_old_names_lead_to_words_of_the_table(void **state)
{
    static const char *const living[] = {"evidence",        "from",   "keep",
                                         "passphrase-file", "rounds", "seed",
                                         "segment",         "state",  "tape"};

    (void)state;
    for (size_t i = 0; i < RENAMED_OPTION_COUNT; i++) {
        const struct renamed *row = &renamed_options[i];
        bool lives = false;

        assert_non_null(find_word(row->now));
        for (size_t j = 0; j < sizeof(living) / sizeof(living[0]); j++) {
            lives |= strcmp(row->was, living[j]) == 0;
        }
        if ((find_word(row->was) != NULL) != lives) {
            print_message("--%s, an old name of --%s\n", row->was, row->now);
        }
        assert_true((find_word(row->was) != NULL) == lives);
    }
}

static int set_up(void **state)
{
    (void)state;
    read_words();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_has_the_words_of_the_table),
        cmocka_unit_test(test_help_of_a_large_command_shows_some_ten_options),
        cmocka_unit_test(test_old_names_lead_to_words_of_the_table),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
