/* keep_moves.c - see keep_moves.h. */
#include "client/keeper/keep_moves.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"

enum {
    WAIT_MS = 60000,
};

static void name_move(char name[LEDGER_NAME_MAX], const struct job_record *record,
                      const struct keep_move *move)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char segment[HEX_DATA_SIZE(HASH32_SIZE)] = "";

    hex_write(key, record->key.bytes, HASH32_SIZE, true);
    if (move->vouch != NULL) {
        hex_write(segment, move->vouch->segment.bytes, HASH32_SIZE, true);
    }
    switch (move->kind) {
    case KEEP_MOVE_CONTACT: /* the same address may be told again after another */
        (void)snprintf(name, LEDGER_NAME_MAX, "keep contact %s %" PRIu64, key, record->read);
        break;
    case KEEP_MOVE_VOUCH:
        (void)snprintf(name, LEDGER_NAME_MAX, "keep vouch %s", segment);
        break;
    case KEEP_MOVE_BRING:
        (void)snprintf(name, LEDGER_NAME_MAX, "keep settle %s %" PRIu32, segment, move->round);
        break;
    case KEEP_MOVE_REFUSE:
        (void)snprintf(name, LEDGER_NAME_MAX, "keep refuse %s %" PRIu32, key,
                       record->state.generation);
        break;
    }
}

static enum status submit_move(struct ledger *ledger, const char *name,
                               const struct job_record *record, const struct keep_move *move,
                               struct error *error)
{
    uint8_t bytes[VOUCH_SIZE_MAX];
    struct game_bytes given;

    switch (move->kind) {
    case KEEP_MOVE_CONTACT:
        given = (struct game_bytes){(const uint8_t *)move->contact, strlen(move->contact)};
        return ledger_announce(ledger, name, &record->key, &given, error);
    case KEEP_MOVE_VOUCH:
        given = (struct game_bytes){bytes, vouch_write(bytes, move->vouch)};
        return ledger_announce(ledger, name, &record->key, &given, error);
    case KEEP_MOVE_BRING:
        given = (struct game_bytes){move->vouch->signature, move->vouch->size};
        return ledger_settle(ledger, name, &record->key, move->segment, &given, error);
    case KEEP_MOVE_REFUSE:
        break;
    }
    return ledger_refuse(ledger, name, &record->key, error);
}

enum status keep_moves_make(const struct command_context *context, const struct signer *signer,
                            const struct job_record *record, const struct keep_move *move,
                            struct error *error)
{
    struct ledger_options options;
    struct ledger_outcome outcome;
    struct ledger *ledger = NULL;
    char state_dir[FILE_PATH_MAX];
    char name[LEDGER_NAME_MAX];
    enum status status;

    TRY(chain_ledger_options(&options, state_dir, context, signer, error));
    options.check_purse = true; /* what it cannot pay now it says, and tries again */
    TRY(ledger_open(&ledger, &options, error));
    name_move(name, record, move);
    TRY_OUT(submit_move(ledger, name, record, move, error));
    TRY_OUT(ledger_wait(ledger, &outcome, name, false, WAIT_MS, error));
    if (outcome.state == LEDGER_MOVE_REFUSED) {
        status = error_set(error, STATUS_REFUSED, "%s", game_refusal_text(outcome.refusal.kind));
    }
out:
    ledger_close(ledger);
    return status;
}
