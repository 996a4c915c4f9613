/*
 * step.h - what a tokenizer does to text before it merges: normalizers, which change it, and
 * pre-tokenizers, which cut it and may put something before it.
 */
#ifndef DATA_TOKEN_STEP_H
#define DATA_TOKEN_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "data/text/splitter.h"

#define STEPS_MAX      8
#define STEP_BYTES_MAX 64 /* of what a step looks for or puts into the text */

enum step_kind {
    /* normalizers */
    STEP_NFC = 0,
    STEP_REPLACE, /* `from` by `to` */
    STEP_PREPEND, /* `to`, before a text that is not empty */
    /* pre-tokenizers */
    STEP_SPLITTER,   /* cut as a published expression does */
    STEP_CUT,        /* cut at `from` */
    STEP_DIGITS,     /* cut numbers from other text; each alone, if `alone` */
    STEP_METASPACE,  /* blanks become `to`, one is put before, and each begins a piece if `alone` */
    STEP_BYTE_PREFIX /* a blank before a text that does not begin with one */
};

/* What becomes of the text at which STEP_CUT cuts. */
enum step_cut {
    CUT_ISOLATED = 0, /* a piece of its own */
    CUT_REMOVED,
    CUT_WITH_PREVIOUS, /* the end of the piece before */
    CUT_WITH_NEXT,
    CUT_CONTIGUOUS, /* as isolated, but those that touch are one piece */
};

enum step_put {
    PUT_NEVER = 0,
    PUT_FIRST, /* only at the very beginning of the text */
    PUT_ALWAYS,
};

struct step {
    enum step_kind kind;
    enum splitter splitter;
    enum step_cut cut;
    enum step_put put;
    bool alone;
    size_t from_size;
    size_t to_size;
    uint8_t from[STEP_BYTES_MAX];
    uint8_t to[STEP_BYTES_MAX];
};

/* Text that lies in a buffer of another or of these. */
struct step_text {
    const uint8_t *bytes;
    size_t size;
};

/* Runs the normalizers, one after the other; the result lies in one of the buffers or is the text
 * itself. continued: text stands before, so nothing is put before this one. */
MUST_CHECK enum status step_normalize(const struct step *steps, size_t count,
                                      struct buffer buffers[2], struct step_text *text,
                                      bool continued, struct error *error);

/* The place of the next `from` at or behind `at`, or size. */
size_t step_find(const struct step *step, const uint8_t *text, size_t size, size_t at);

/* Appends text with each `from` as `to`. */
void step_replace(const struct step *step, struct buffer *out, const uint8_t *text, size_t size);

#endif /* DATA_TOKEN_STEP_H */
