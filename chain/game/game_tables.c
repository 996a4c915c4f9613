/*
 * game_tables.c - see game_tables.h.
 *
 * The order of the rows is the order of the arguments in chain/contracts/IRegistry.sol and
 * IReferee.sol; the third column marks the topics of an event, which come first.
 */
#include "chain/game/game_tables.h"

#define FIELDS(fields) (fields), sizeof(fields) / sizeof((fields)[0])

#define TERMS_TYPE                                                                                 \
    "(bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint256,uint256,uint256,uint256,uint256,"    \
    "uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256)"
#define SEGMENT_TYPE "(uint256,uint256,bytes32,uint256,uint256,uint256,address)"
#define CASE_TYPE                                                                                  \
    "(address,uint256,bytes32[7]," SEGMENT_TYPE "," SEGMENT_TYPE ",uint256,bytes32,bytes32)"

static const struct field open_fields[] = {
    {offsetof(struct game_move, terms.job_id), FIELD_BYTES32, 0},
    {offsetof(struct game_move, terms.program_root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, terms.data_root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, terms.first_state_root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, terms.salt), FIELD_U64, 0},
    {offsetof(struct game_move, terms.steps), FIELD_U64, 0},
    {offsetof(struct game_move, terms.segment_steps), FIELD_U32, 0},
    {offsetof(struct game_move, terms.segment_reward), FIELD_WEI, 0},
    {offsetof(struct game_move, terms.attest_fee), FIELD_WEI, 0},
    {offsetof(struct game_move, terms.stake), FIELD_WEI, 0},
    {offsetof(struct game_move, terms.claim_bond), FIELD_WEI, 0},
    {offsetof(struct game_move, terms.attest_bond), FIELD_WEI, 0},
    {offsetof(struct game_move, terms.attestors), FIELD_U32, 0},
    {offsetof(struct game_move, terms.coverage_ppm), FIELD_U32, 0},
    {offsetof(struct game_move, terms.segment_period_s), FIELD_U32, 0},
    {offsetof(struct game_move, terms.attest_period_s), FIELD_U32, 0},
    {offsetof(struct game_move, terms.reveal_period_s), FIELD_U32, 0},
    {offsetof(struct game_move, terms.claim_period_s), FIELD_U32, 0},
    {offsetof(struct game_move, terms.response_period_s), FIELD_U32, 0},
    {offsetof(struct game_move, terms.deadline_s), FIELD_U64, 0},
};

static const struct field cancel_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
};

static const struct field accept_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
};

static const struct field commit_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, index), FIELD_U32, 0},
    {offsetof(struct game_move, root), FIELD_BYTES32, 0},
};

static const struct field commit_diverged_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, index), FIELD_U32, 0},
    {offsetof(struct game_move, root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, steps), FIELD_U32, 0},
};

static const struct field answer_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, root), FIELD_BYTES32, 0},
};

static const struct field draw_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, segment.solver), FIELD_ADDRESS, 0},
};

static const struct field attest_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, segment.solver), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, seal), FIELD_BYTES32, 0},
};

static const struct field reveal_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, segment.solver), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, root), FIELD_BYTES32, 0},
};

static const struct field seal_claim_fields[] = {
    {offsetof(struct game_move, seal), FIELD_BYTES32, 0},
};

static const struct field claim_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, segment.solver), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, steps), FIELD_U32, 0},
    {offsetof(struct game_move, pre_state), FIELD_BYTES32, 0},
    {offsetof(struct game_move, post_state), FIELD_BYTES32, 0},
    {offsetof(struct game_move, salt), FIELD_BYTES32, 0},
};

static const struct field accuse_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, segment.solver), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, account), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, salt), FIELD_BYTES32, 0},
};

static const struct field pass_turn_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, turn), FIELD_U32, 0},
};

static const struct field rule_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, upheld), FIELD_BOOL, 0},
};

static const struct field timeout_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
};

static const struct field lapse_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
};

static const struct field renew_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, segment.solver), FIELD_ADDRESS, 0},
};

static const struct field finalize_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, segment.solver), FIELD_ADDRESS, 0},
};

static const struct field settle_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, segment.solver), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, account), FIELD_ADDRESS, 0},
};

static const struct field release_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
};

static const struct field expire_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
};

static const struct field withdraw_fields[] = {
    {offsetof(struct game_move, account), FIELD_ADDRESS, 0},
};

/* QUERY and CONVICT: the claim, the case, the paths, the payload. */
static const struct field shown_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, shown.client), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, shown.salt), FIELD_U64, 0},
    {offsetof(struct game_move, shown.job_header), FIELD_JOB_HEADER, 0},
    {offsetof(struct game_move, shown.segment.index), FIELD_U32, 0},
    {offsetof(struct game_move, shown.segment.generation), FIELD_U32, 0},
    {offsetof(struct game_move, shown.segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, shown.segment.steps), FIELD_U32, 0},
    {offsetof(struct game_move, shown.segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, shown.segment.height), FIELD_U64, 0},
    {offsetof(struct game_move, shown.segment.solver), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, shown.previous.index), FIELD_U32, 0},
    {offsetof(struct game_move, shown.previous.generation), FIELD_U32, 0},
    {offsetof(struct game_move, shown.previous.root), FIELD_BYTES32, 0},
    {offsetof(struct game_move, shown.previous.steps), FIELD_U32, 0},
    {offsetof(struct game_move, shown.previous.time_s), FIELD_U64, 0},
    {offsetof(struct game_move, shown.previous.height), FIELD_U64, 0},
    {offsetof(struct game_move, shown.previous.solver), FIELD_ADDRESS, 0},
    {offsetof(struct game_move, shown.step), FIELD_U32, 0},
    {offsetof(struct game_move, shown.pre_state), FIELD_BYTES32, 0},
    {offsetof(struct game_move, shown.post_state), FIELD_BYTES32, 0},
    {offsetof(struct game_move, shown.pre_path), FIELD_PATH, 0},
    {offsetof(struct game_move, shown.post_path), FIELD_PATH, 0},
    {offsetof(struct game_move, payload), FIELD_BYTES, 0},
};

static const struct field reply_fields[] = {
    {offsetof(struct game_move, key), FIELD_BYTES32, 0},
    {offsetof(struct game_move, queried), FIELD_BYTES, 0},
    {offsetof(struct game_move, payload), FIELD_BYTES, 0},
};

const struct codec game_move_codecs[GAME_MOVE_KINDS] = {
    [GAME_OPEN] = {"open", "open(" TERMS_TYPE ")", FIELDS(open_fields)},
    [GAME_CANCEL] = {"cancel", "cancel(bytes32)", FIELDS(cancel_fields)},
    [GAME_ACCEPT] = {"accept", "accept(bytes32)", FIELDS(accept_fields)},
    [GAME_COMMIT] = {"commit", "commit(bytes32,uint256,bytes32)", FIELDS(commit_fields)},
    [GAME_COMMIT_DIVERGED] = {"commit diverged", "commitDiverged(bytes32,uint256,bytes32,uint256)",
                              FIELDS(commit_diverged_fields)},
    [GAME_ANSWER] = {"answer", "answer(bytes32,bytes32)", FIELDS(answer_fields)},
    [GAME_DRAW] = {"draw", "draw(bytes32," SEGMENT_TYPE ")", FIELDS(draw_fields)},
    [GAME_ATTEST] = {"attest", "attest(bytes32," SEGMENT_TYPE ",bytes32)", FIELDS(attest_fields)},
    [GAME_REVEAL] = {"reveal", "reveal(bytes32," SEGMENT_TYPE ",bytes32)", FIELDS(reveal_fields)},
    [GAME_SEAL_CLAIM] = {"seal claim", "sealClaim(bytes32)", FIELDS(seal_claim_fields)},
    [GAME_CLAIM] = {"claim", "claim(bytes32," SEGMENT_TYPE ",uint256,bytes32,bytes32,bytes32)",
                    FIELDS(claim_fields)},
    [GAME_ACCUSE] = {"accuse", "accuse(bytes32," SEGMENT_TYPE ",address,bytes32)",
                     FIELDS(accuse_fields)},
    [GAME_PASS_TURN] = {"pass turn", "passTurn(bytes32,uint8)", FIELDS(pass_turn_fields)},
    [GAME_RULE] = {"rule", "rule(bytes32,bool)", FIELDS(rule_fields)},
    [GAME_TIMEOUT] = {"timeout", "timeout(bytes32)", FIELDS(timeout_fields)},
    [GAME_LAPSE] = {"lapse", "lapse(bytes32)", FIELDS(lapse_fields)},
    [GAME_RENEW] = {"renew", "renew(bytes32," SEGMENT_TYPE ")", FIELDS(renew_fields)},
    [GAME_FINALIZE] = {"finalize", "finalize(bytes32," SEGMENT_TYPE ")", FIELDS(finalize_fields)},
    [GAME_SETTLE] = {"settle", "settle(bytes32," SEGMENT_TYPE ",address)", FIELDS(settle_fields)},
    [GAME_RELEASE] = {"release", "release(bytes32)", FIELDS(release_fields)},
    [GAME_EXPIRE] = {"expire", "expire(bytes32)", FIELDS(expire_fields)},
    [GAME_WITHDRAW] = {"withdraw", "withdraw(address)", FIELDS(withdraw_fields)},
    [GAME_QUERY] = {"query", "query(bytes32," CASE_TYPE ",bytes32[],bytes32[],bytes)",
                    FIELDS(shown_fields)},
    [GAME_REPLY] = {"reply", "reply(bytes32,bytes,bytes)", FIELDS(reply_fields)},
    [GAME_CONVICT] = {"convict", "convict(bytes32," CASE_TYPE ",bytes32[],bytes32[],bytes)",
                      FIELDS(shown_fields)},
};

static const struct field opened_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, terms.job_id), FIELD_BYTES32, 0},
    {offsetof(struct game_event, terms.program_root), FIELD_BYTES32, 0},
    {offsetof(struct game_event, terms.data_root), FIELD_BYTES32, 0},
    {offsetof(struct game_event, terms.first_state_root), FIELD_BYTES32, 0},
    {offsetof(struct game_event, terms.salt), FIELD_U64, 0},
    {offsetof(struct game_event, terms.steps), FIELD_U64, 0},
    {offsetof(struct game_event, terms.segment_steps), FIELD_U32, 0},
    {offsetof(struct game_event, terms.segment_reward), FIELD_WEI, 0},
    {offsetof(struct game_event, terms.attest_fee), FIELD_WEI, 0},
    {offsetof(struct game_event, terms.stake), FIELD_WEI, 0},
    {offsetof(struct game_event, terms.claim_bond), FIELD_WEI, 0},
    {offsetof(struct game_event, terms.attest_bond), FIELD_WEI, 0},
    {offsetof(struct game_event, terms.attestors), FIELD_U32, 0},
    {offsetof(struct game_event, terms.coverage_ppm), FIELD_U32, 0},
    {offsetof(struct game_event, terms.segment_period_s), FIELD_U32, 0},
    {offsetof(struct game_event, terms.attest_period_s), FIELD_U32, 0},
    {offsetof(struct game_event, terms.reveal_period_s), FIELD_U32, 0},
    {offsetof(struct game_event, terms.claim_period_s), FIELD_U32, 0},
    {offsetof(struct game_event, terms.response_period_s), FIELD_U32, 0},
    {offsetof(struct game_event, terms.deadline_s), FIELD_U64, 0},
};

static const struct field cancelled_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
};

static const struct field accepted_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, time_s), FIELD_U64, 0},
};

static const struct field committed_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, segment.index), FIELD_U32, 1},
    {offsetof(struct game_event, segment.generation), FIELD_U32, 0},
    {offsetof(struct game_event, segment.root), FIELD_BYTES32, 0},
    {offsetof(struct game_event, segment.steps), FIELD_U32, 0},
    {offsetof(struct game_event, segment.time_s), FIELD_U64, 0},
    {offsetof(struct game_event, segment.solver), FIELD_ADDRESS, 0},
    {offsetof(struct game_event, flag), FIELD_BOOL, 0},
};

static const struct field drawn_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 1},
    {offsetof(struct game_event, seal), FIELD_BYTES32, 0},
    {offsetof(struct game_event, flag), FIELD_BOOL, 0},
};

static const struct field attested_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, step), FIELD_U32, 0},
    {offsetof(struct game_event, seal), FIELD_BYTES32, 0},
};

static const struct field revealed_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, root), FIELD_BYTES32, 0},
};

static const struct field renewed_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 1},
    {offsetof(struct game_event, time_s), FIELD_U64, 0},
};

static const struct field settled_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, other), FIELD_ADDRESS, 0},
    {offsetof(struct game_event, amount), FIELD_WEI, 0},
};

static const struct field sealed_fields[] = {
    {offsetof(struct game_event, seal), FIELD_BYTES32, 1},
};

static const struct field claimed_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 1},
    {offsetof(struct game_event, claim), FIELD_BYTES32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 0},
    {offsetof(struct game_event, step), FIELD_U32, 0},
    {offsetof(struct game_event, pre_state), FIELD_BYTES32, 0},
    {offsetof(struct game_event, post_state), FIELD_BYTES32, 0},
    {offsetof(struct game_event, time_s), FIELD_U64, 0},
};

static const struct field accused_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 1},
    {offsetof(struct game_event, claim), FIELD_BYTES32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 0},
    {offsetof(struct game_event, other), FIELD_ADDRESS, 0},
    {offsetof(struct game_event, time_s), FIELD_U64, 0},
};

static const struct field answered_fields[] = {
    {offsetof(struct game_event, claim), FIELD_BYTES32, 1},
    {offsetof(struct game_event, root), FIELD_BYTES32, 0},
    {offsetof(struct game_event, time_s), FIELD_U64, 0},
};

static const struct field turn_passed_fields[] = {
    {offsetof(struct game_event, claim), FIELD_BYTES32, 1},
    {offsetof(struct game_event, turn), FIELD_U32, 0},
    {offsetof(struct game_event, time_s), FIELD_U64, 0},
};

static const struct field ruled_fields[] = {
    {offsetof(struct game_event, claim), FIELD_BYTES32, 1},
    {offsetof(struct game_event, flag), FIELD_BOOL, 0},
};

static const struct field lapsed_fields[] = {
    {offsetof(struct game_event, claim), FIELD_BYTES32, 1},
};

static const struct field convicted_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, index), FIELD_U32, 0},
};

static const struct field finalized_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 1},
};

static const struct field released_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, account), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, amount), FIELD_WEI, 0},
};

static const struct field closed_fields[] = {
    {offsetof(struct game_event, job), FIELD_BYTES32, 1},
    {offsetof(struct game_event, index), FIELD_U32, 0},
};

static const struct field withdrawn_fields[] = {
    {offsetof(struct game_event, account), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, other), FIELD_ADDRESS, 1},
    {offsetof(struct game_event, amount), FIELD_WEI, 0},
};

static const struct field queried_fields[] = {
    {offsetof(struct game_event, claim), FIELD_BYTES32, 1},
    {offsetof(struct game_event, payload), FIELD_BYTES, 0},
};

static const struct field replied_fields[] = {
    {offsetof(struct game_event, claim), FIELD_BYTES32, 1},
    {offsetof(struct game_event, payload), FIELD_BYTES, 0},
};

const struct codec game_event_codecs[GAME_EVENT_KINDS] = {
    [GAME_OPENED] = {"opened", "Opened(bytes32,address," TERMS_TYPE ")", FIELDS(opened_fields)},
    [GAME_CANCELLED] = {"cancelled", "Cancelled(bytes32)", FIELDS(cancelled_fields)},
    [GAME_ACCEPTED] = {"accepted", "Accepted(bytes32,address,uint256)", FIELDS(accepted_fields)},
    [GAME_COMMITTED] = {"committed",
                        "Committed(bytes32,uint256,uint256,bytes32,uint256,uint256,address,bool)",
                        FIELDS(committed_fields)},
    [GAME_DRAWN] = {"drawn", "Drawn(bytes32,uint256,bytes32,bool)", FIELDS(drawn_fields)},
    [GAME_ATTESTED] = {"attested", "Attested(bytes32,uint256,address,uint256,bytes32)",
                       FIELDS(attested_fields)},
    [GAME_REVEALED] = {"revealed", "Revealed(bytes32,uint256,address,bytes32)",
                       FIELDS(revealed_fields)},
    [GAME_RENEWED] = {"renewed", "Renewed(bytes32,uint256,uint256)", FIELDS(renewed_fields)},
    [GAME_SETTLED] = {"settled", "Settled(bytes32,uint256,address,address,uint256)",
                      FIELDS(settled_fields)},
    [GAME_SEALED] = {"sealed", "Sealed(bytes32)", FIELDS(sealed_fields)},
    [GAME_CLAIMED] = {"claimed",
                      "Claimed(bytes32,uint256,bytes32,address,uint256,bytes32,bytes32,uint256)",
                      FIELDS(claimed_fields)},
    [GAME_ACCUSED] = {"accused", "Accused(bytes32,uint256,bytes32,address,address,uint256)",
                      FIELDS(accused_fields)},
    [GAME_ANSWERED] = {"answered", "Answered(bytes32,bytes32,uint256)", FIELDS(answered_fields)},
    [GAME_TURN_PASSED] = {"turn passed", "TurnPassed(bytes32,uint8,uint256)",
                          FIELDS(turn_passed_fields)},
    [GAME_RULED] = {"ruled", "Ruled(bytes32,bool)", FIELDS(ruled_fields)},
    [GAME_LAPSED] = {"lapsed", "Lapsed(bytes32)", FIELDS(lapsed_fields)},
    [GAME_CONVICTED] = {"convicted", "Convicted(bytes32,address,uint256)",
                        FIELDS(convicted_fields)},
    [GAME_FINALIZED] = {"finalized", "Finalized(bytes32,uint256)", FIELDS(finalized_fields)},
    [GAME_RELEASED] = {"released", "Released(bytes32,address,uint256)", FIELDS(released_fields)},
    [GAME_CLOSED] = {"closed", "Closed(bytes32,uint256)", FIELDS(closed_fields)},
    [GAME_WITHDRAWN] = {"withdrawn", "Withdrawn(address,address,uint256)",
                        FIELDS(withdrawn_fields)},
    [GAME_QUERIED] = {"queried", "Queried(bytes32,bytes)", FIELDS(queried_fields)},
    [GAME_REPLIED] = {"replied", "Replied(bytes32,bytes)", FIELDS(replied_fields)},
};
