/*
 * packing.h - sources into rows: read, laid out, encoded, packed. Where the rows go is the
 * caller's.
 *
 * The same options over the same bytes make the same rows, on every machine.
 */
#ifndef DATA_ROWS_PACKING_H
#define DATA_ROWS_PACKING_H

#include "base/io/progress.h"
#include "base/io/stop.h"
#include "data/rows/row_files.h"
#include "data/source/example.h"
#include "data/source/source.h"

#define PACKING_SOURCES_MAX 65536u
#define PACKING_SIDES       2 /* what is trained on, and what is held out */

enum packing_long {
    LONG_CUT = 0, /* the first N tokens of an example stay */
    LONG_SPLIT,   /* it becomes several, of N tokens at most */
    LONG_LEAVE,   /* it is left out */
};

enum packing_split {
    SPLIT_FILE = 0, /* a .txt is one example */
    SPLIT_LINE,
    SPLIT_BLANK, /* blank lines are between them */
};

struct pack_options {
    const char *tokenizer; /* a folder, or TOKENIZER_BYTES */
    const char *const *sources;
    size_t source_count;
    uint32_t length;
    enum packing_long too_long;
    enum packing_split split;
    const char *chat; /* "auto", "none", or a layout's name */
    enum example_learn learn;
    const char *system;   /* NULL: none */
    const char *date;     /* NULL: the layout's own */
    bool bos;             /* what the tokenizer's template puts around a text is put */
    const char *eos;      /* "always", "tokenizer", "never" */
    bool special;         /* special tokens in texts are such */
    bool replace;         /* what is no UTF-8 becomes U+FFFD */
    const char *held_out; /* the share, as it was typed */
};

struct packing_counts {
    uint64_t examples; /* that were read */
    uint64_t held_out; /* of them */
    uint64_t empty;    /* without a token; left out */
    uint64_t too_long; /* cut, split or left out */
    uint64_t dropped;  /* tokens that cutting lost */
    uint64_t replaced; /* U+FFFD that stand for bytes */
    uint64_t pairs;
};
#define PACKING_COUNTS (sizeof(struct packing_counts) / sizeof(uint64_t))

/* A source that is done. */
struct packing_source {
    struct digest sha256;
    uint64_t size;
};

struct packing {
    const struct pack_options *options;
    struct tokenizer tokenizer;
    struct encoder encoder;
    struct example_rules rules;
    struct error layout_trouble;
    struct example example;
    struct row_shape shape;
    struct row_packer packers[PACKING_SIDES];
    struct packing_counts counts;
    struct packing_source *done; /* one of each source */
    size_t source;               /* which one is read, or all of them */
    uint64_t source_examples;    /* how many of it were packed */
    struct sha256 given;         /* of the texts of these */
    struct buffer line;
    struct buffer text;
    struct buffer learned;
    uint64_t held_out_below;
    uint64_t bytes_before; /* of the sources that are done */
    /* What may be NULL: */
    struct progress *progress;
    struct stop *stop;
    /* Called between examples now and then: to keep what is done. */
    enum status (*pause)(void *context, struct error *error);
    void *context;
};

/* Reads the tokenizer. Borrows options. On failure there is nothing to release. */
MUST_CHECK enum status packing_open(struct packing *packing, struct error *error,
                                    const struct pack_options *options);
void packing_release(struct packing *packing);

/* After the packers were given sinks: all sources, from the one and the example that are next. */
MUST_CHECK enum status packing_run(struct packing *packing, struct error *error);

/* Bytes of all sources, for progress. */
MUST_CHECK enum status packing_bytes(uint64_t *bytes, struct error *error,
                                     const struct pack_options *options);

/* floor(share * 2^64) of a share from 0 to below 1. */
MUST_CHECK enum status packing_share(uint64_t *below, struct error *error, const char *share);

#endif /* DATA_ROWS_PACKING_H */
