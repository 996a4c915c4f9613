/*
 * unicode.h - the class of a code point, as Unicode 14.0 has it.
 *
 * Splitters of published tokenizers ask for letters, numbers, marks and white space. A code point
 * that 14.0 does not name is OTHER. Nothing here depends on a library or a locale.
 */
#ifndef DATA_TEXT_UNICODE_H
#define DATA_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#define UNICODE_VERSION     "14.0.0"
#define UNICODE_CODE_POINTS 0x110000u

/* scripts/unicode_tables.py numbers them in this order. */
enum unicode_class {
    UNICODE_OTHER = 0,
    UNICODE_UPPER,  /* Lu, Lt */
    UNICODE_LOWER,  /* Ll */
    UNICODE_LETTER, /* Lm, Lo */
    UNICODE_MARK,   /* Mn, Mc, Me */
    UNICODE_NUMBER, /* Nd, Nl, No */
    UNICODE_SPACE,  /* White_Space */
};

enum unicode_class unicode_class(uint32_t code);

static inline bool unicode_is_letter(enum unicode_class class)
{
    return class >= UNICODE_UPPER && class <= UNICODE_LETTER;
}

#endif /* DATA_TEXT_UNICODE_H */
