/*
 * job_tokens.h - what the tokens of a new job are: a wrong file is seen before it is paid for.
 *
 * Bytes read as the ids of a published model train without a word. So `job new` says the largest
 * token, and shows the first ones as text where the model's folder has its tokenizer.
 */
#ifndef CLIENT_TOKENS_JOB_TOKENS_H
#define CLIENT_TOKENS_JOB_TOKENS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "engine/ops/tensor.h"

struct job_tokens {
    uint32_t largest;
    bool masked;         /* a mask says which of them count: */
    double counted;      /* this share */
    struct buffer first; /* the first tokens as text; empty: there is no tokenizer */
    struct error
        unread; /* why the folder's tokenizer was not read; STATUS_OK: it was, or is none */
};

/* Looks at a file of tokens. folder is the model's; NULL: it has none. The caller releases. */
MUST_CHECK enum status job_tokens_look(struct job_tokens *tokens, struct error *error,
                                       const char *path, enum dtype dtype, uint64_t vocabulary,
                                       const char *folder, uint64_t length);
void job_tokens_release(struct job_tokens *tokens);

/* The share of the elements of a mask that count. */
MUST_CHECK enum status job_tokens_count_mask(struct job_tokens *tokens, const char *path,
                                             struct error *error);

/* Refuses a mask that is not a byte for each of `count` tokens, or that counts none of them. */
MUST_CHECK enum status job_tokens_check_mask(const char *path, uint64_t count, struct error *error);

/* Refuses a flat file of a published model's tokens without --data-type (given). */
MUST_CHECK enum status job_tokens_check_type(const char *path, bool given, struct error *error);

#endif /* CLIENT_TOKENS_JOB_TOKENS_H */
