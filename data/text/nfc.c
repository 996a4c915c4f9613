/* nfc.c - see nfc.h. */
#include "data/text/nfc.h"

#include <stdbool.h>
#include <stdlib.h>

#include "data/text/nfc_table.h"
#include "data/text/utf8.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
    /* Below it no code point composes with one before, or decomposes and stays so. */
    FIRST_THAT_MATTERS = 0x300,
    DECOMPOSED_MAX = 8, /* of one code point; four at most in 14.0 */
    MARKS_MAX = 1024,   /* in a row: they are sorted one by one */
};

/* Hangul syllables are composed by a rule (Unicode, section 3.12). */
enum {
    HANGUL_LEAD = 0x1100,
    HANGUL_VOWEL = 0x1161,
    HANGUL_TAIL = 0x11a7,
    HANGUL_SYLLABLE = 0xac00,
    HANGUL_LEADS = 19,
    HANGUL_VOWELS = 21,
    HANGUL_TAILS = 28,
};

struct points {
    uint32_t *codes;
    uint8_t *classes;
    size_t count;
    size_t capacity;
    size_t marks; /* in a row at the end */
};

static uint8_t combining_class(uint32_t code)
{
    size_t low = 0;
    size_t high = COUNT(nfc_classes);

    if (code < FIRST_THAT_MATTERS) {
        return 0;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (nfc_classes[middle] >> 8 <= code) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint8_t)nfc_classes[low];
}

static uint32_t first_of(uint64_t pair)
{
    return (uint32_t)(pair >> 21) & 0x1fffff;
}

static uint32_t second_of(uint64_t pair)
{
    return (uint32_t)pair & 0x1fffff;
}

/* The pair that the code point stands for; 0: it stands for itself. */
static uint64_t pair_of(uint32_t code)
{
    size_t low = 0;
    size_t high = COUNT(nfc_pairs);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t found = (uint32_t)(nfc_pairs[middle] >> 42);

        if (found == code) {
            return nfc_pairs[middle];
        }
        if (found < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

/* The code point that two make; 0: none. */
static uint32_t compose_pair(uint32_t one, uint32_t two)
{
    const uint64_t wanted = (uint64_t)one << 21 | two;
    size_t low = 0;
    size_t high = COUNT(nfc_composed);

    /* A syllable of Hangul follows from its parts by arithmetic (Unicode 3.12): the tables leave it
     * out. */
    if (one - HANGUL_LEAD < HANGUL_LEADS && two - HANGUL_VOWEL < HANGUL_VOWELS) {
        return HANGUL_SYLLABLE +
               ((one - HANGUL_LEAD) * HANGUL_VOWELS + two - HANGUL_VOWEL) * HANGUL_TAILS;
    }
    if (one - HANGUL_SYLLABLE < HANGUL_LEADS * HANGUL_VOWELS * HANGUL_TAILS &&
        (one - HANGUL_SYLLABLE) % HANGUL_TAILS == 0 && two > HANGUL_TAIL &&
        two < HANGUL_TAIL + HANGUL_TAILS) {
        return one + two - HANGUL_TAIL;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        /* A pair is 64 bits: what is composed above its two parts, of 21 bits each. */
        uint64_t pair = nfc_pairs[nfc_composed[middle]];
        uint64_t found = pair & ((UINT64_C(1) << 42) - 1);

        if (found == wanted) {
            return (uint32_t)(pair >> 42);
        }
        if (found < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

/* The full canonical decomposition of one code point; returns how many there are. */
static size_t decompose_code(uint32_t out[DECOMPOSED_MAX], uint32_t code)
{
    const uint32_t syllable = code - HANGUL_SYLLABLE;
    size_t count = 0;
    uint64_t pair;

    if (syllable < HANGUL_LEADS * HANGUL_VOWELS * HANGUL_TAILS) {
        out[0] = HANGUL_LEAD + syllable / (HANGUL_VOWELS * HANGUL_TAILS);
        out[1] = HANGUL_VOWEL + syllable / HANGUL_TAILS % HANGUL_VOWELS;
        out[2] = HANGUL_TAIL + syllable % HANGUL_TAILS;
        return out[2] == HANGUL_TAIL ? 2 : 3;
    }
    /* Only the first of a pair can stand for another pair. Seconds come out last first. */
    while ((pair = pair_of(code)) != 0 && count < DECOMPOSED_MAX - 1) {
        if (second_of(pair) != 0) {
            out[count++] = second_of(pair);
        }
        code = first_of(pair);
    }
    out[count++] = code;
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t kept = out[i];

        out[i] = out[count - 1 - i];
        out[count - 1 - i] = kept;
    }
    return count;
}

static enum status make_room(struct points *points)
{
    size_t capacity = points->capacity == 0 ? 256 : 2 * points->capacity;
    uint32_t *codes = realloc(points->codes, capacity * sizeof(*codes));
    uint8_t *classes;

    if (codes == NULL) {
        return STATUS_NO_MEMORY;
    }
    points->codes = codes;
    classes = realloc(points->classes, capacity);
    if (classes == NULL) {
        return STATUS_NO_MEMORY;
    }
    points->classes = classes;
    points->capacity = capacity;
    return STATUS_OK;
}

/* Appends a code point in its place by combining class: marks are sorted, stably. */
static enum status add_point(struct points *points, uint32_t code)
{
    uint8_t class = combining_class(code);
    size_t at = points->count;

    if (points->count == points->capacity) {
        TRY(make_room(points));
    }
    points->marks = class == 0 ? 0 : points->marks + 1;
    if (points->marks > MARKS_MAX) {
        return STATUS_OVER_LIMIT;
    }
    while (class != 0 && at > 0 && points->classes[at - 1] > class) {
        points->codes[at] = points->codes[at - 1];
        points->classes[at] = points->classes[at - 1];
        at--;
    }
    points->codes[at] = code;
    points->classes[at] = class;
    points->count++;
    return STATUS_OK;
}

/* Composes in place; returns how many are left. */
static size_t compose_all(const struct points *points)
{
    size_t starter = SIZE_MAX;
    uint8_t last = 0; /* class of the last that stayed behind the starter */
    size_t kept = 0;

    for (size_t i = 0; i < points->count; i++) {
        uint32_t code = points->codes[i];
        uint8_t class = points->classes[i];
        bool blocked = starter != SIZE_MAX && kept - starter > 1 && last >= class;
        uint32_t made =
            starter == SIZE_MAX || blocked ? 0 : compose_pair(points->codes[starter], code);

        if (made != 0) {
            points->codes[starter] = made;
            continue;
        }
        if (class == 0) {
            starter = kept;
        }
        last = class;
        points->codes[kept] = code;
        points->classes[kept++] = class;
    }
    return kept;
}

static enum status add_decomposed(struct points *points, uint32_t code)
{
    uint32_t parts[DECOMPOSED_MAX];
    size_t count = decompose_code(parts, code);

    for (size_t i = 0; i < count; i++) {
        TRY(add_point(points, parts[i]));
    }
    return STATUS_OK;
}

/* From a starter that matters to the next that does not: `at` moves behind it. */
static enum status take_stretch(struct points *points, const uint8_t *text, size_t size, size_t *at)
{
    points->count = 0;
    points->marks = 0;
    while (*at < size) {
        size_t next = *at;
        uint32_t code = utf8_next(text, &next);
        size_t ahead = next;

        /* The one before what matters may compose with it. */
        if (code < FIRST_THAT_MATTERS && points->count > 0 &&
            (ahead >= size || utf8_next(text, &ahead) < FIRST_THAT_MATTERS)) {
            return STATUS_OK;
        }
        TRY(add_decomposed(points, code));
        *at = next;
    }
    return STATUS_OK;
}

enum status nfc_add(struct buffer *out, const uint8_t *text, size_t size)
{
    struct points points = {0};
    size_t copied = 0;
    size_t before = 0; /* the start of the character before `at` */
    size_t at = 0;
    enum status status = STATUS_OK;

    while (at < size && status == STATUS_OK) {
        size_t next = at;

        if (utf8_next(text, &next) < FIRST_THAT_MATTERS) {
            before = at;
            at = next;
            continue;
        }
        buffer_add(out, text + copied, before - copied);
        at = before;
        status = take_stretch(&points, text, size, &at);
        for (size_t i = 0, count = compose_all(&points); points.codes != NULL && i < count; i++) {
            uint8_t bytes[UTF8_BYTES_MAX];

            buffer_add(out, bytes, utf8_write(bytes, points.codes[i]));
        }
        copied = at;
        before = at;
    }
    buffer_add(out, text + copied, size - copied);
    free(points.codes);
    free(points.classes);
    return status;
}
