/*
 * keep_replay.h - a child that replays one segment and claims what is false in it: `lockstep
 * verifier claim KEY --segment N`, with the keeper's account and its own folder of states.
 *
 * The replay computes on bytes of strangers, so it is a process of its own; a dispute may take
 * hours, which the keeper does not wait for.
 */
#ifndef CLIENT_KEEPER_KEEP_REPLAY_H
#define CLIENT_KEEPER_KEEP_REPLAY_H

#include <sys/types.h>

#include "base/cli/command.h"
#include "base/io/file.h"
#include "chain/codec/keccak.h"

#define KEEP_REPLAY_WORDS_MAX 200

struct keep_replay {
    pid_t process; /* 0: none runs */
    struct hash32 segment;
    char folder[FILE_PATH_MAX]; /* of the child's state, and its answer */
    char *secret;               /* the passphrase of the environment, for the child; NULL: none */
};

/* Before the account is unlocked, which wipes the environment. No child gets a passphrase that is
 * typed; the keeper says so. */
MUST_CHECK enum status keep_replay_remember(struct keep_replay *replay, struct error *error);
void keep_replay_forget(struct keep_replay *replay);

enum keep_answer {
    KEEP_ANSWER_NONE,  /* it still runs */
    KEEP_ANSWER_RIGHT, /* each step is what the job gives */
    KEEP_ANSWER_FALSE, /* and the claim was upheld, or could not be made */
    KEEP_ANSWER_TROUBLE,
};

/* folder: of its state. kept: of states, which it looks into first, and
 * where it leaves the one that a right segment ends in. job, account: as the options
 * say them. */
MUST_CHECK enum status keep_replay_start(struct keep_replay *replay,
                                         const struct command_context *context,
                                         const struct hash32 *job, const struct hash32 *segment,
                                         uint32_t index, const char *kept, struct error *error);

/* Has it ended? words: what it said; where it found a lie and could not claim it, why not. */
enum keep_answer keep_replay_look(struct keep_replay *replay, char words[KEEP_REPLAY_WORDS_MAX]);

/* Ends it; a claim that it made goes on with the next one. */
void keep_replay_stop(struct keep_replay *replay);

#endif /* CLIENT_KEEPER_KEEP_REPLAY_H */
