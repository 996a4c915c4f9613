/* ledger_backend.h - what an implementation of a ledger provides. Used by ledger*.c only. */
#ifndef CHAIN_GAME_LEDGER_BACKEND_H
#define CHAIN_GAME_LEDGER_BACKEND_H

#include "chain/game/ledger.h"

struct ledger_backend {
    void (*close)(void *self);
    enum status (*submit)(void *self, const char *name, const struct game_move *move,
                          struct error *error);
    enum status (*look)(void *self, struct ledger_outcome *outcome, const char *name,
                        struct error *error);
    enum status (*work)(void *self, struct error *error);
    /* Are there blocks whose events are not told yet, as far as the last round saw? */
    enum status (*behind)(void *self, bool *behind, struct error *error);
    /* topic: of the events that are wanted; NULL: all entries */
    enum status (*next)(void *self, struct ledger_entry *entry, uint64_t after, uint32_t depth,
                        const struct hash32 *topic, struct error *error);
    enum status (*get_job)(void *self, struct ledger_job *job, const struct hash32 *key,
                           struct error *error);
    enum status (*get_claim)(void *self, struct ledger_claim *claim, const struct hash32 *key,
                             struct error *error);
    enum status (*get_account)(void *self, wei *purse, wei *owed, const struct address *account,
                               struct error *error);
    /* NULL: moves cost nothing. */
    enum status (*each_gas)(void *self, const struct address *account,
                            void (*take)(void *context, wei amount, uint64_t time_s), void *context,
                            struct error *error);
    /* NULL: every move can be paid. */
    enum status (*afford)(void *self, enum game_move_kind kind, wei value, struct error *error);
    /* NULL: moves cost nothing. */
    enum status (*get_gas_price)(void *self, wei *price, struct error *error);
    enum status (*get_clock)(void *self, struct ledger_clock *clock, struct error *error);
    enum status (*get_fixed)(void *self, uint64_t *source, uint64_t height, uint64_t time_s,
                             struct error *error);
    /* NULL: there are no contracts. */
    enum status (*get_signed)(void *self, const struct address *contract, const struct hash32 *hash,
                              const struct game_bytes *signature, struct error *error);
    /* NULL: there are no contracts. */
    enum status (*ask_vouch)(void *self, const struct ledger_vouch *vouch, struct error *error);
    /* NULL: none ever. */
    enum status (*reopened)(void *self, uint64_t *count, struct error *error);
    /* NULL: there are none. */
    size_t (*endpoints)(const void *self, struct ledger_endpoint list[LEDGER_ENDPOINTS_MAX]);
};

struct ledger {
    const struct ledger_backend *backend;
    void *self;
    struct address account; /* of the signer; zero without one */
    struct ledger_place place;
    struct game_place game;
    struct address token;
    struct currency currency;
    bool may_write;
    const char *event_log; /* the file that has it, until the ledger is closed; NULL: none has */
};

enum status ledger_local_attach(struct ledger *ledger, const struct ledger_options *options,
                                struct error *error);
enum status ledger_evm_attach(struct ledger *ledger, const struct ledger_options *options,
                              struct error *error);

#endif /* CHAIN_GAME_LEDGER_BACKEND_H */
