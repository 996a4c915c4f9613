/*
 * Goal: one table gives every option its flag, variable and key, in the documented precedence,
 * and each wrong word gives one line that names it.
 * Method: a table with every kind; each source alone, all pairs of sources, each kind of mistake.
 */
#include "base/cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "tests/support/test.h"

static const struct option_spec specs[] = {
    {.name = "help", .kind = OPTION_FLAG, .help = "help", .command_line_only = true},
    {.name = "config", .kind = OPTION_TEXT, .value = "PATH", .help = "file"},
    {.name = "fast", .kind = OPTION_FLAG, .help = "be fast"},
    {.name = "name", .kind = OPTION_TEXT, .value = "NAME", .fallback = "nobody", .help = "who"},
    {.name = "steps",
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "7",
     .minimum = 1,
     .maximum = 1000,
     .help = "how many"},
    {.name = "share", .kind = OPTION_REAL, .value = "X", .help = "how much"},
    {.name = "room", .kind = OPTION_SIZE, .value = "BYTES", .help = "how large"},
    {.name = "wait-time", .kind = OPTION_DURATION, .value = "TIME", .help = "how long"},
    {.name = "color", .kind = OPTION_CHOICE, .choices = "red|green", .help = "which"},
    {.name = "peer", .kind = OPTION_LIST, .value = "URL", .help = "whom"},
};

static const struct option_table table = {specs, sizeof(specs) / sizeof(specs[0])};

/* What the test's environment holds: pairs of name and value. */
static const char *variables[8];

static const char *environment(const char *name)
{
    for (size_t i = 0; i < 8 && variables[i] != NULL; i += 2) {
        if (strcmp(variables[i], name) == 0) {
            return variables[i + 1];
        }
    }
    return NULL;
}

static void set_environment(const char *name, const char *value)
{
    variables[0] = name;
    variables[1] = value;
    variables[2] = NULL;
}

static const char *config_file(const char *text)
{
    static char path[FILE_PATH_MAX];

    assert_int_equal(file_path_join(path, sizeof(path), NULL, test_temp_dir(), "c"), STATUS_OK);
    assert_int_equal(file_write(path, NULL, text, strlen(text), 0600), STATUS_OK);
    return path;
}

/* line is cut at its blanks, as a shell would. */
static enum status parse(struct options *options, struct error *error, const char *line,
                         const char *config_path, const char *arguments)
{
    static char text[8192];
    const char *words[32];
    struct option_sources sources = {
        .words = words, .environment = environment, .config_path = config_path};

    snprintf(text, sizeof(text), "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        words[sources.word_count++] = word;
    }
    error_init(error);
    return options_parse(options, error, &table, 1, arguments, &sources);
}

static void assert_refused(const char *line, const char *wanted)
{
    struct options options;
    struct error error;

    assert_int_equal(parse(&options, &error, line, NULL, NULL), STATUS_USAGE);
    assert_string_equal(error.text, wanted);
    assert_string_equal(error.advice, ""); /* one line, no wall */
}

static void test_every_kind_is_read_from_flags(void **state)
{
    struct options options;
    struct error error;

    (void)state;
    set_environment(NULL, NULL);
    assert_int_equal(parse(&options, &error,
                           "--fast --name=a=b --steps 12 --share 0.25 --room 64k --wait-time 15m "
                           "--color green --peer x --peer=y,z one -- --two",
                           NULL, "ONE..."),
                     STATUS_OK);
    assert_true(options_flag(&options, "fast"));
    assert_string_equal(options_text(&options, "name"), "a=b");
    assert_int_equal(options_number(&options, "steps"), 12);
    assert_true(options_real(&options, "share") == 0.25);
    assert_int_equal(options_number(&options, "room"), 65536);
    assert_int_equal(options_number(&options, "wait-time"), 900);
    assert_string_equal(options_text(&options, "color"), "green");
    assert_int_equal(options_list_count(&options, "peer"), 2);
    assert_string_equal(options_list_item(&options, "peer", 0), "x");
    assert_string_equal(options_list_item(&options, "peer", 1), "y,z");
    assert_int_equal(options.argument_count, 2);
    assert_string_equal(options.arguments[0], "one");
    assert_string_equal(options.arguments[1], "--two");
    options_release(&options);
}

static void test_fallbacks_fill_what_is_unset(void **state)
{
    struct options options;
    struct error error;

    (void)state;
    set_environment("LOCKSTEP_NAME", ""); /* empty counts as unset */
    assert_int_equal(parse(&options, &error, "", "/nowhere/config", NULL), STATUS_OK);
    assert_string_equal(options_text(&options, "name"), "nobody");
    assert_int_equal(options_number(&options, "steps"), 7);
    assert_null(options_text(&options, "color"));
    assert_false(options_given(&options, "steps"));
    assert_false(options_flag(&options, "fast"));
    assert_int_equal(options_list_count(&options, "peer"), 0);
    options_release(&options);
}

static void test_precedence_is_flag_environment_file_fallback(void **state)
{
    static const char *const wanted[] = {"7", "3", "2", "2", "1", "1", "1", "1"};

    (void)state;
    for (unsigned sources = 0; sources < 8; sources++) {
        struct options options;
        struct error error;

        set_environment("LOCKSTEP_STEPS", (sources & 2) != 0 ? "2" : NULL);
        assert_int_equal(parse(&options, &error, (sources & 4) != 0 ? "--steps 1" : "",
                               (sources & 1) != 0 ? config_file("steps=3\n") : NULL, NULL),
                         STATUS_OK);
        assert_string_equal(options_text(&options, "steps"), wanted[sources]);
        assert_int_equal(options_given(&options, "steps"), sources != 0);
        options_release(&options);
    }
}

static void test_lists_come_from_one_source_only(void **state)
{
    const char *path = config_file("peer=c1\npeer=c2\npeer=c3\n");
    struct options options;
    struct error error;

    (void)state;
    set_environment("LOCKSTEP_PEER", "e1,e2");
    assert_int_equal(parse(&options, &error, "", path, NULL), STATUS_OK);
    assert_int_equal(options_list_count(&options, "peer"), 2);
    assert_string_equal(options_list_item(&options, "peer", 1), "e2");
    options_release(&options);
    assert_int_equal(parse(&options, &error, "--peer f", path, NULL), STATUS_OK);
    assert_int_equal(options_list_count(&options, "peer"), 1);
    options_release(&options);
    set_environment(NULL, NULL);
    assert_int_equal(parse(&options, &error, "", path, NULL), STATUS_OK);
    assert_int_equal(options_list_count(&options, "peer"), 3);
    options_release(&options);
}

static void test_flags_can_be_turned_off(void **state)
{
    struct options options;
    struct error error;

    (void)state;
    set_environment("LOCKSTEP_FAST", "true");
    assert_int_equal(parse(&options, &error, "--no-fast", NULL, NULL), STATUS_OK);
    assert_false(options_flag(&options, "fast"));
    options_release(&options);
    assert_int_equal(parse(&options, &error, "", NULL, NULL), STATUS_OK);
    assert_true(options_flag(&options, "fast"));
    options_release(&options);
    set_environment("LOCKSTEP_FAST", "maybe");
    assert_refused("", "LOCKSTEP_FAST: 'maybe' is not true or false");
    set_environment(NULL, NULL);
    assert_refused("--no-name", "unknown option --no-name");
}

static void test_mistyped_options_get_the_nearest(void **state)
{
    (void)state;
    set_environment(NULL, NULL);
    assert_refused("--setps 3", "unknown option --setps (did you mean --steps?)");
    assert_refused("--fsat=1", "unknown option --fsat (did you mean --fast?)");
    assert_refused("--zzzzzzzz", "unknown option --zzzzzzzz");
    assert_refused("--=x", "unknown option --");
    assert_refused("-x", "unknown option -x");
}

static void test_wrong_values_are_named(void **state)
{
    (void)state;
    set_environment(NULL, NULL);
    assert_refused("--steps", "--steps needs a value: --steps N");
    assert_refused("--steps --fast", "--steps needs a value: --steps N");
    assert_refused("--steps=", "--steps: '' is not a whole number");
    assert_refused("--steps -3", "--steps: '-3' is not a whole number");
    assert_refused("--steps 3x", "--steps: '3x' is not a whole number");
    assert_refused("--steps 0", "--steps: 0 is less than 1");
    assert_refused("--steps 1001", "--steps: 1001 is more than 1000");
    assert_refused("--steps 99999999999999999999",
                   "--steps: '99999999999999999999' is not a whole number");
    assert_refused("--share nan", "--share: 'nan' is not a number such as 0.25");
    assert_refused("--share 1e999", "--share: '1e999' is not a number such as 0.25");
    assert_refused("--share 0x1", "--share: '0x1' is not a number such as 0.25");
    assert_refused("--room 5kk", "--room: '5kk' is not a size such as 64k or 2G");
    assert_refused("--room 99999999999T", "--room: '99999999999T' is not a size such as 64k or 2G");
    assert_refused("--wait-time 5y", "--wait-time: '5y' is not a duration such as 90s, 15m or 24h");
    assert_refused("--color blue", "--color: 'blue' is not one of red|green");
    assert_refused("--color red|green", "--color: 'red|green' is not one of red|green");
    assert_refused("--color=", "--color: '' is not one of red|green");
    assert_refused("--name=a\x1b[2J", "--name: 'a\x1b[2J' is not text without control characters");
}

static void assert_file_refused(const char *text, const char *ending)
{
    const char *path = config_file(text);
    struct options options;
    struct error error;
    char wanted[FILE_PATH_MAX + 256];

    snprintf(wanted, sizeof(wanted), "%s%s", path, ending);
    assert_int_equal(parse(&options, &error, "", path, NULL), STATUS_USAGE);
    assert_string_equal(error.text, wanted);
}

static void test_bad_config_lines_are_named(void **state)
{
    (void)state;
    set_environment(NULL, NULL);
    assert_file_refused("fast=true\nsteps=x\n", ":2: steps: 'x' is not a whole number");
    assert_file_refused("stepz=1\n", ":1: unknown key 'stepz' (did you mean 'steps'?)");
    assert_file_refused("qqqqqqqq=1\n", ":1: unknown key 'qqqqqqqq'");
    assert_file_refused("help=true\n", ":1: unknown key 'help'");
    assert_file_refused("steps=1\n\nsteps=2\n", ":3: 'steps' is set already on line 1");
    assert_file_refused("rubbish\n", ":1: not a line of key=value: 'rubbish'");
}

static bool knows_other(const void *context, const char *key)
{
    return strcmp(context, key) == 0;
}

static void test_keys_of_other_commands_pass(void **state)
{
    const struct option_dictionary dictionary = {.knows = knows_other, .context = "rpc"};
    struct option_sources sources = {.config_path = config_file("rpc=x\n"),
                                     .dictionary = &dictionary};
    struct options options;
    struct error error;

    (void)state;
    assert_int_equal(options_parse(&options, &error, &table, 1, NULL, &sources), STATUS_OK);
    options_release(&options);
    sources.config_path = config_file("rpd=x\n");
    assert_int_equal(options_parse(&options, &error, &table, 1, NULL, &sources), STATUS_USAGE);
}

static void test_named_config_must_exist(void **state)
{
    struct options options;
    struct error error;

    (void)state;
    set_environment(NULL, NULL);
    assert_refused("--config /nowhere/c", "/nowhere/c: No such file or directory");
    set_environment("LOCKSTEP_CONFIG", "/nowhere/d");
    assert_refused("", "/nowhere/d: No such file or directory");
    set_environment("LOCKSTEP_CONFIG", config_file("steps=9"));
    assert_int_equal(parse(&options, &error, "", "/nowhere/e", NULL), STATUS_OK);
    assert_int_equal(options_number(&options, "steps"), 9);
    options_release(&options);
}

static void test_argument_counts_follow_the_usage_text(void **state)
{
    size_t least;
    size_t most;
    struct options options;
    struct error error;

    (void)state;
    set_environment(NULL, NULL);
    options_count_arguments(&least, &most, "KEY [FILE]");
    assert_int_equal(least, 1);
    assert_int_equal(most, 2);
    options_count_arguments(&least, &most, "BUNDLE...");
    assert_int_equal(least, 1);
    assert_int_equal(most, OPTION_ARGUMENTS_MAX);
    options_count_arguments(&least, &most, NULL);
    assert_int_equal(most, 0);
    assert_refused("stray", "does not know what to do with 'stray'");
    assert_int_equal(parse(&options, &error, "", NULL, "KEY [FILE]"), STATUS_USAGE);
    assert_string_equal(error.text, "needs more arguments: KEY [FILE]");
    assert_int_equal(parse(&options, &error, "a b c", NULL, "KEY [FILE]"), STATUS_USAGE);
    assert_int_equal(parse(&options, &error, "--help", NULL, "KEY [FILE]"), STATUS_OK);
    options_release(&options);
}

static void test_required_options_are_asked_for(void **state)
{
    static const struct option_spec needed[] = {
        {.name = "job", .kind = OPTION_TEXT, .value = "ID", .help = "which", .required = true}};
    const struct option_table needs = {needed, 1};
    const char *words[] = {"--job", "7"};
    struct option_sources sources = {.words = words, .word_count = 0};
    struct options options;
    struct error error;

    (void)state;
    assert_int_equal(options_parse(&options, &error, &needs, 1, NULL, &sources), STATUS_USAGE);
    assert_string_equal(error.text, "needs --job ID");
    sources.word_count = 2;
    assert_int_equal(options_parse(&options, &error, &needs, 1, NULL, &sources), STATUS_OK);
    options_release(&options);
}

static void test_overlong_values_are_refused(void **state)
{
    char *line = calloc(OPTION_VALUE_MAX + 32, 1);

    (void)state;
    set_environment(NULL, NULL);
    assert_non_null(line);
    memcpy(line, "--name=", 7);
    memset(line + 7, 'x', OPTION_VALUE_MAX + 1);
    assert_refused(line, "--name: longer than 4096 bytes");
    free(line);
}

static void test_environment_names_are_derived(void **state)
{
    char name[OPTION_NAME_MAX + 16];

    (void)state;
    options_environment_name(name, sizeof(name), "data-root-2");
    assert_string_equal(name, "LOCKSTEP_DATA_ROOT_2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_is_read_from_flags),
        cmocka_unit_test(test_fallbacks_fill_what_is_unset),
        cmocka_unit_test(test_precedence_is_flag_environment_file_fallback),
        cmocka_unit_test(test_lists_come_from_one_source_only),
        cmocka_unit_test(test_flags_can_be_turned_off),
        cmocka_unit_test(test_mistyped_options_get_the_nearest),
        cmocka_unit_test(test_wrong_values_are_named),
        cmocka_unit_test(test_bad_config_lines_are_named),
        cmocka_unit_test(test_keys_of_other_commands_pass),
        cmocka_unit_test(test_named_config_must_exist),
        cmocka_unit_test(test_argument_counts_follow_the_usage_text),
        cmocka_unit_test(test_required_options_are_asked_for),
        cmocka_unit_test(test_overlong_values_are_refused),
        cmocka_unit_test(test_environment_names_are_derived),
    };

    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
