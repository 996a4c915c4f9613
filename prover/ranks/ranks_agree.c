/* ranks_agree.c - see ranks_agree.h. */
#include "prover/ranks/ranks_agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/version.h"

static void write_word(struct ranks_word *word, const struct digest *job, enum status status,
                       const struct error *error)
{
    *word = (struct ranks_word){
        .byte_order = RANKS_BYTE_ORDER, .status = (uint32_t)status, .job = *job};
    (void)snprintf(word->version, sizeof(word->version), "%s", LOCKSTEP_VERSION);
    if (status != STATUS_OK) {
        (void)snprintf(word->text, sizeof(word->text), "%s", error->text);
        (void)snprintf(word->advice, sizeof(word->advice), "%s", error->advice);
    }
}

static void end_texts(struct ranks_word *word)
{
    word->version[sizeof(word->version) - 1] = '\0';
    word->text[sizeof(word->text) - 1] = '\0';
    word->advice[sizeof(word->advice) - 1] = '\0';
}

static enum status status_of(const struct ranks_word *word)
{
    return word->status <= (uint32_t)STATUS_RANK_LOST ? (enum status)word->status : STATUS_IO;
}

/* What rank 0 finds in the word of another one. */
static enum status compare_word(const struct ranks_team *team, uint32_t rank,
                                const struct digest *job, struct ranks_word *word,
                                struct error *error)
{
    const char *host = team->peers[rank].host;
    char theirs[HEX_SIZE(DIGEST_SIZE)];
    char own[HEX_SIZE(DIGEST_SIZE)];

    end_texts(word);
    if (word->byte_order != RANKS_BYTE_ORDER) {
        return error_set(error, STATUS_REFUSED,
                         "rank %u (%s) is a machine of another byte order than rank 0", rank, host);
    }
    if (strcmp(word->version, LOCKSTEP_VERSION) != 0) {
        return error_set(error, STATUS_REFUSED, "rank %u (%s) runs version %s, and rank 0 runs %s",
                         rank, host, word->version, LOCKSTEP_VERSION);
    }
    if (status_of(word) != STATUS_OK) {
        (void)error_set(error, status_of(word), "rank %u (%s): %s", rank, host, word->text);
        if (word->advice[0] != '\0') {
            error_advise(error, "%s", word->advice);
        }
        return status_of(word);
    }
    if (!digest_equal(&word->job, job)) {
        hex_encode(theirs, word->job.bytes, DIGEST_SIZE);
        hex_encode(own, job->bytes, DIGEST_SIZE);
        return error_set(error, STATUS_REFUSED,
                         "rank %u (%s) has another job: %.16s..., and rank 0 has %.16s...", rank,
                         host, theirs, own);
    }
    return STATUS_OK;
}

static enum status hear_all(struct ranks_team *team, const struct digest *job, enum status own,
                            struct error *error)
{
    const uint32_t ranks = team->link.rank_count;
    struct ranks_word *words = calloc(ranks, sizeof(*words));
    enum status status = STATUS_OK;

    if (words == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %u ranks", ranks);
    }
    /* One by one: each may still be reading its data. */
    for (uint32_t rank = 1; rank < ranks; rank++) {
        const struct ranks_transfer heard = {.peer = rank,
                                             .tag = RANKS_TAG_HAVE,
                                             .idle = true,
                                             .bytes = &words[rank],
                                             .size = sizeof(words[rank])};

        TRY_OUT(team->link.exchange(team->link.context, &heard, 1, error));
    }
    for (uint32_t rank = 1; rank < ranks && status == STATUS_OK && own == STATUS_OK; rank++) {
        status = compare_word(team, rank, job, &words[rank], error);
    }
    own = own != STATUS_OK ? own : status;
    write_word(&words[0], job, own, error);
    for (uint32_t rank = 1; rank < ranks; rank++) {
        const struct ranks_transfer said = {.peer = rank,
                                            .tag = RANKS_TAG_VERDICT,
                                            .sends = true,
                                            .bytes = &words[0],
                                            .size = sizeof(words[0])};
        struct error gone;

        error_init(&gone);
        (void)!team->link.exchange(team->link.context, &said, 1, &gone);
    }
    status = own;
out:
    free(words);
    return status;
}

static enum status say_own(struct ranks_team *team, const struct digest *job, enum status own,
                           struct error *error)
{
    struct ranks_word words[2];
    const struct ranks_transfer transfers[] = {
        {.tag = RANKS_TAG_HAVE, .sends = true, .bytes = &words[0], .size = sizeof(words[0])},
        {.tag = RANKS_TAG_VERDICT, .idle = true, .bytes = &words[1], .size = sizeof(words[1])}};
    struct error heard;

    error_init(&heard);
    write_word(&words[0], job, own, error);
    if (own != STATUS_OK) { /* our own reason stands */
        (void)!team->link.exchange(team->link.context, transfers, 2, &heard);
        return own;
    }
    TRY(team->link.exchange(team->link.context, transfers, 2, error));
    end_texts(&words[1]);
    if (status_of(&words[1]) != STATUS_OK) {
        (void)error_set(error, status_of(&words[1]), "%s", words[1].text);
        if (words[1].advice[0] != '\0') {
            error_advise(error, "%s", words[1].advice);
        }
    }
    return status_of(&words[1]);
}

enum status ranks_agree(struct ranks_team *team, const struct digest *job, enum status own,
                        struct error *error)
{
    team->agreed = true;
    TRY(team->link.rank == 0 ? hear_all(team, job, own, error) : say_own(team, job, own, error));
    team->job = *job;
    return STATUS_OK;
}
