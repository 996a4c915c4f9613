/*
 * splitter.c - see splitter.h.
 *
 * Alternatives are tried in the expression's order, each as long as it can be. Where an expression
 * would step back, the place at which it ends is computed; comments say why.
 */
#include "data/text/splitter.h"

#include <stdbool.h>
#include <string.h>

#include "data/text/unicode.h"
#include "data/text/utf8.h"

/* Text in front of the cut. */
struct split_view {
    const uint8_t *text;
    size_t size;
};

/* The class of the character at `at`, and where the next begins. */
static enum unicode_class class_at(const struct split_view *view, size_t at, size_t *next)
{
    uint32_t code = utf8_next(view->text, &at);

    *next = at;
    return unicode_class(code);
}

static bool is_line_end(uint8_t byte)
{
    return byte == '\r' || byte == '\n';
}

/* ---- runs: where they end ---- */

static size_t end_of_letters(const struct split_view *view, size_t at)
{
    size_t next = at;

    while (at < view->size && unicode_is_letter(class_at(view, at, &next))) {
        at = next;
    }
    return at;
}

static size_t end_of_numbers(const struct split_view *view, size_t at, size_t most)
{
    size_t next = at;

    while (most > 0 && at < view->size && class_at(view, at, &next) == UNICODE_NUMBER) {
        at = next;
        most--;
    }
    return at;
}

/* [^\s\p{L}\p{N}]+ */
static size_t end_of_others(const struct split_view *view, size_t at)
{
    size_t next = at;

    while (at < view->size) {
        enum unicode_class class = class_at(view, at, &next);

        if (class != UNICODE_OTHER && class != UNICODE_MARK) {
            break;
        }
        at = next;
    }
    return at;
}

/* [\r\n]*, and with slashes [\r\n/]* */
static size_t line_ends(const struct split_view *view, size_t at, bool slashes)
{
    while (at < view->size && (is_line_end(view->text[at]) || (slashes && view->text[at] == '/'))) {
        at++;
    }
    return at;
}

/*
 * \s+(?!\S)|\s+, and with lines \s*[\r\n]+ before them: a run with an end of a line goes up to the
 * last of them; a run before a word leaves its last character to the word, if it has two.
 */
static size_t end_of_spaces(const struct split_view *view, size_t at, bool lines)
{
    size_t last_line = at;
    size_t before_last = at;
    size_t end = at;
    size_t next = at;

    while (end < view->size && class_at(view, end, &next) == UNICODE_SPACE) {
        before_last = end;
        last_line = is_line_end(view->text[end]) ? next : last_line;
        end = next;
    }
    if (lines && last_line > at) {
        return last_line;
    }
    return end < view->size && before_last > at ? before_last : end;
}

/* ---- 's|'t|'re|'ve|'m|'ll|'d ---- */

static bool is_byte(const struct split_view *view, size_t at, char byte, bool any_case)
{
    return at < view->size && (view->text[at] == (uint8_t)byte ||
                               (any_case && view->text[at] == (uint8_t)(byte - 'a' + 'A')));
}

/* The end of one that begins at `at`, or `at`. */
static size_t end_of_contraction(const struct split_view *view, size_t at, bool any_case)
{
    static const char two[][2] = {{'r', 'e'}, {'v', 'e'}, {'l', 'l'}};
    static const char one[] = {'s', 't', 'm', 'd'};

    if (at >= view->size || view->text[at] != '\'') {
        return at;
    }
    for (size_t i = 0; i < sizeof(one); i++) {
        if (is_byte(view, at + 1, one[i], any_case)) {
            return at + 2;
        }
    }
    /* U+017F, the long s, is an s in another case. */
    if (any_case && view->size - at > 2 && view->text[at + 1] == 0xc5 &&
        view->text[at + 2] == 0xbf) {
        return at + 3;
    }
    for (size_t i = 0; i < sizeof(two) / sizeof(two[0]); i++) {
        if (is_byte(view, at + 1, two[i][0], any_case) &&
            is_byte(view, at + 2, two[i][1], any_case)) {
            return at + 3;
        }
    }
    return at;
}

/* ---- the expressions ---- */

static size_t next_gpt2(const struct split_view *view, size_t at)
{
    size_t end = end_of_contraction(view, at, false);
    size_t start = at + (view->text[at] == ' ');

    if (end > at) {
        return end;
    }
    end = end_of_letters(view, start);
    end = end > start ? end : end_of_numbers(view, start, SIZE_MAX);
    end = end > start ? end : end_of_others(view, start);
    return end > start ? end : end_of_spaces(view, at, false);
}

/* Behind one character that may stand before a word: not an end of a line, letter or number. */
static size_t behind_prefix(const struct split_view *view, size_t at)
{
    size_t next = at;
    enum unicode_class class = class_at(view, at, &next);

    return is_line_end(view->text[at]) || unicode_is_letter(class) || class == UNICODE_NUMBER
               ? at
               : next;
}

/* What cl100k and its kin say behind their words. */
static size_t next_rest(const struct split_view *view, size_t at, size_t numbers_most, bool slashes)
{
    size_t start = at + (view->text[at] == ' ');
    size_t end = end_of_numbers(view, at, numbers_most);

    if (end > at) {
        return end;
    }
    end = end_of_others(view, start);
    return end > start ? line_ends(view, end, slashes) : end_of_spaces(view, at, true);
}

static size_t next_cl100k(const struct split_view *view, size_t at, size_t numbers_most)
{
    size_t end = end_of_contraction(view, at, true);
    size_t start;

    if (end > at) {
        return end;
    }
    start = behind_prefix(view, at);
    end = end_of_letters(view, start);
    return end > start ? end : next_rest(view, at, numbers_most, false);
}

static bool is_upper(enum unicode_class class)
{
    return class == UNICODE_UPPER || class == UNICODE_LETTER || class == UNICODE_MARK;
}

static bool is_lower(enum unicode_class class)
{
    return class == UNICODE_LOWER || class == UNICODE_LETTER || class == UNICODE_MARK;
}

/*
 * UPPER*LOWER+ where letters without case and marks are both. UPPER* takes all it can; where no
 * lower letter follows it gives back up to the last that is both. Returns start where there is
 * none.
 */
static size_t word_to_lower(const struct split_view *view, size_t start)
{
    size_t at = start;
    size_t both = start;
    size_t next = start;

    while (at < view->size) {
        enum unicode_class class = class_at(view, at, &next);

        if (!is_upper(class)) {
            break;
        }
        both = is_lower(class) ? next : both;
        at = next;
    }
    if (at >= view->size || !is_lower(class_at(view, at, &next))) {
        return both;
    }
    while (at < view->size && is_lower(class_at(view, at, &next))) {
        at = next;
    }
    return at;
}

/* UPPER+LOWER* */
static size_t word_from_upper(const struct split_view *view, size_t start)
{
    size_t at = start;
    size_t next = start;

    while (at < view->size && is_upper(class_at(view, at, &next))) {
        at = next;
    }
    while (at > start && at < view->size && is_lower(class_at(view, at, &next))) {
        at = next;
    }
    return at;
}

static size_t next_o200k(const struct split_view *view, size_t at, size_t numbers_most,
                         bool contracted)
{
    static size_t (*const words[])(const struct split_view *view, size_t start) = {word_to_lower,
                                                                                   word_from_upper};
    const size_t behind = behind_prefix(view, at);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t start = behind;
        size_t end = words[i](view, start);

        if (end == start) { /* a mark may be prefix or word */
            start = at;
            end = words[i](view, start);
        }
        if (end > start) {
            return contracted ? end_of_contraction(view, end, true) : end;
        }
    }
    return next_rest(view, at, numbers_most, true);
}

size_t splitter_next(enum splitter splitter, const uint8_t *text, size_t size, size_t at)
{
    const struct split_view view = {text, size};

    switch (splitter) {
    case SPLITTER_NONE:
        break;
    case SPLITTER_GPT2:
        return next_gpt2(&view, at);
    case SPLITTER_CL100K:
        return next_cl100k(&view, at, 3);
    case SPLITTER_QWEN:
        return next_cl100k(&view, at, 1);
    case SPLITTER_O200K:
        return next_o200k(&view, at, 3, true);
    case SPLITTER_TEKKEN:
        return next_o200k(&view, at, 1, false);
    }
    return size;
}

/* ---- which expression means which ---- */

#define WORD_TO_LOWER                                                                              \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"                                  \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
#define WORD_FROM_UPPER                                                                            \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"                                  \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
#define SHORT_WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define REST_SLASH  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    enum splitter splitter;
    const char *expression;
} expressions[] = {
    {SPLITTER_GPT2, "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                    "\\s+(?!\\S)|\\s+"},
    {SPLITTER_CL100K, SHORT_WORDS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" REST},
    /* The same cuts, as later releases write them. */
    {SPLITTER_CL100K, "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}|"
                      " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
    {SPLITTER_QWEN, SHORT_WORDS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" REST},
    {SPLITTER_O200K,
     WORD_TO_LOWER SHORT_WORDS "?|" WORD_FROM_UPPER SHORT_WORDS "?|\\p{N}{1,3}|" REST_SLASH},
    {SPLITTER_TEKKEN, WORD_TO_LOWER "|" WORD_FROM_UPPER "|\\p{N}|" REST_SLASH},
};

const char *splitter_expression(size_t index, enum splitter *splitter)
{
    if (index >= sizeof(expressions) / sizeof(expressions[0])) {
        return NULL;
    }
    *splitter = expressions[index].splitter;
    return expressions[index].expression;
}

enum splitter splitter_of(const char *expression)
{
    for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
        if (strcmp(expression, expressions[i].expression) == 0) {
            return expressions[i].splitter;
        }
    }
    return SPLITTER_NONE;
}

const char *splitter_name(enum splitter splitter)
{
    static const char *const names[] = {"none", "gpt2", "cl100k", "qwen", "o200k", "tekken"};

    return names[splitter];
}
