/* accuser.c - see accuser.h. */
#include "tests/support/dispute/accuser.h"

#include <string.h>

#include "proofs/dispute/ledger_query.h"
#include "tests/support/test.h"

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

static struct merkle_path path_of(const struct accuser *accuser, uint64_t first, uint32_t step)
{
    struct digest hashes[DEFENDANT_SEGMENT];
    struct merkle_leaves leaves;
    struct merkle_path path;
    struct digest root;
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < DEFENDANT_SEGMENT; i++) {
        check(bundle_state_root(&root, accuser->own->bundle, first + i + 1, &error), &error);
        merkle_leaf_hash(&hashes[i], root.bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, DEFENDANT_SEGMENT);
    merkle_path_build(&path, &leaves, step);
    return path;
}

void accuser_open(struct accuser *accuser, struct defendant *own, enum market_player attestor)
{
    struct market *market = own->market;
    struct game_case *shown = &accuser->shown;
    uint64_t step = own->lie.step;
    uint32_t index = (uint32_t)(step / DEFENDANT_SEGMENT);
    struct error error;

    error_init(&error);
    memset(accuser, 0, sizeof(*accuser));
    accuser->own = own;
    accuser->attestor = *signer_address(market->signers[attestor]);
    shown->client = *signer_address(market->signers[MARKET_CLIENT]);
    shown->salt = market->salt;
    memcpy(shown->job_header, bundle_job(own->bundle)->header, sizeof(shown->job_header));
    shown->segment = market_segment(market, &own->job, index);
    shown->step = (uint32_t)(step % DEFENDANT_SEGMENT);
    check(bundle_state_root(&shown->pre_state, own->bundle, step, &error), &error);
    check(bundle_state_root(&shown->post_state, own->bundle, step + 1, &error), &error);
    if (shown->step == 0 && index > 0) {
        shown->previous = market_segment(market, &own->job, index - 1);
    }
    if (step > 0) {
        shown->pre_path = path_of(accuser, (step - 1) / DEFENDANT_SEGMENT * DEFENDANT_SEGMENT,
                                  (uint32_t)((step - 1) % DEFENDANT_SEGMENT));
    }
    shown->post_path = path_of(accuser, step - shown->step, shown->step);
}

void accuser_accuse(struct accuser *accuser)
{
    struct market *market = accuser->own->market;
    struct ledger *ledger = market->ledgers[accuser->own->player];
    struct game_terms terms = market_job(market, &accuser->own->job).terms;
    const struct ledger_accusation accusation = {.job = accuser->own->job,
                                                 .segment = accuser->shown.segment,
                                                 .attestor = accuser->attestor,
                                                 .salt.bytes = {9}};
    struct error error;

    error_init(&error);
    check(ledger_seal_accusation(ledger, "false seal", &accuser->claim, &accusation, &error),
          &error);
    market_pass_time(market, 1);
    check(ledger_accuse(ledger, "false accusation", &terms, &accusation, &error), &error);
}

void accuser_query(struct accuser *accuser)
{
    struct trace_server *own = &accuser->own->server;
    struct trace_walk_case other = {.trace_root = own->trace.root,
                                    .state_root = accuser->shown.pre_state,
                                    .next_root = accuser->shown.post_state,
                                    .is_attestor = true};
    struct trace_walk walk = {0};
    struct buffer question;
    struct error error;

    error_init(&error);
    other.trace_root.bytes[3] ^= 1;
    buffer_init(&question, LEDGER_QUERY_SIZE_MAX);
    check(trace_walk_open(&walk, own, &other, &error), &error);
    check(ledger_query_write(&question, &walk, &error), &error);
    check(ledger_query(accuser->own->market->ledgers[accuser->own->player], "false ask",
                       &accuser->claim, &accuser->shown, question.data, question.size, &error),
          &error);
    trace_walk_close(&walk);
    buffer_release(&question);
}
