/*
 * rounds.h - the agreement of a training by rounds of many owners, and where its files lie.
 *
 *     FOLDER/rounds.json                   the agreement; its SHA-256 is the id of the rounds
 *     FOLDER/owner-01.job                  the job of each owner, as it was given
 *     FOLDER/round-001/start.safetensors   the state that the jobs of the round begin with
 *     FOLDER/round-001/owner-01.job        the job of the owner in this round (round_job.h)
 *     FOLDER/round-001/owner-01.run        its bundle, where the rounds have no ledger
 *     FOLDER/round-001/owner-01.safetensors  of its last state, what is averaged (round_trees.h)
 *     FOLDER/round-001/mean.run            the bundle of the mean (round_mean.h)
 *     FOLDER/round-001/round.json          the record of the round (round_record.h)
 *
 * Both JSON files are canonical: compact, with sorted keys, and a line feed. A nonce gives
 * each agreement its own id, so no record of other rounds passes here.
 */
#ifndef PROOFS_ROUNDS_ROUNDS_H
#define PROOFS_ROUNDS_ROUNDS_H

#include <jansson.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/io/file.h"

#define ROUNDS_OWNERS_MAX 64
#define ROUNDS_MAX        999
#define ROUNDS_NAME_MAX   40
#define ROUNDS_FACTOR_MAX 24 /* bytes of the text of a factor */
#define ROUNDS_PLACE_MAX  128
#define ROUNDS_FILE       "rounds.json"
#define ROUNDS_FORMAT     "lockstep.rounds.v1"
#define ROUNDS_SIZE_MAX   (1u << 20)

struct rounds_owner {
    char name[ROUNDS_NAME_MAX + 1]; /* letters, digits, - and _ */
    struct digest job;              /* the id of the job that was given */
};

struct rounds {
    struct rounds_owner owners[ROUNDS_OWNERS_MAX];
    uint32_t owner_count;
    uint32_t count;  /* of rounds */
    uint32_t quorum; /* a round needs the states of so many owners */
    bool keep_moments;
    /* Nesterov's outer step; texts, for one spelling in the file: "" and "": the plain mean. */
    char outer_rate[ROUNDS_FACTOR_MAX + 1];
    char outer_momentum[ROUNDS_FACTOR_MAX + 1];
    char place[ROUNDS_PLACE_MAX + 1]; /* the ledger's chain and registry; "": there is none */
    struct digest nonce;
    struct digest id; /* of the file; rounds_write() and rounds_read() set it */
};

/* Is there an outer step? */
bool rounds_has_outer(const struct rounds *rounds);
/* The factors as binary32. */
float rounds_outer_rate(const struct rounds *rounds);
float rounds_outer_momentum(const struct rounds *rounds);

/* Of an owner's try with that number, on a ledger. It follows from the agreement, so a client can
 * not open one more job and tell of that alone. */
uint64_t rounds_salt(const struct rounds *rounds, uint32_t at);

/* Checks bounds, names and factors: an agreement that is read or written satisfies it. */
MUST_CHECK enum status rounds_check(const struct rounds *rounds, struct error *error);

/* STATUS_REFUSED: the folder has one already. */
MUST_CHECK enum status rounds_write(struct rounds *rounds, const char *folder, struct error *error);
MUST_CHECK enum status rounds_read(struct rounds *rounds, const char *folder, struct error *error);
/* The same of bytes. */
MUST_CHECK enum status rounds_parse(struct rounds *rounds, const void *bytes, size_t size,
                                    struct error *error);
bool rounds_is_folder(const char *path);

/* The number of the owner of that name; owner_count: nobody. */
uint32_t rounds_find(const struct rounds *rounds, const char *name);

/* Paths have room for FILE_PATH_MAX bytes. Owners count from 0 here and from 1 in names. round 0:
 * what lies directly in the folder. */
MUST_CHECK enum status rounds_path(char *path, const char *folder, uint32_t round, const char *name,
                                   struct error *error);
MUST_CHECK enum status rounds_owner_path(char *path, const char *folder, uint32_t round,
                                         uint32_t owner, const char *ending, struct error *error);

/* ---- canonical JSON ---- */

/* Takes json, also after a failure. The file is whole or not there, and never replaced. */
MUST_CHECK enum status rounds_json_write(struct digest *sha256, json_t *json, const char *path,
                                         struct error *error);
/* STATUS_BAD_FORMAT: it is not canonical, too. The caller drops the reference. */
MUST_CHECK enum status rounds_json_parse(json_t **json, struct digest *sha256, const void *bytes,
                                         size_t size, size_t size_max, struct error *error);

#endif /* PROOFS_ROUNDS_ROUNDS_H */
