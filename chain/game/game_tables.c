/*
 * game_tables.c - see game_tables.h.
 *
 * The order of the rows is the order of the arguments in chain/contracts/IRegistry.sol,
 * IReferee.sol and ISeeds.sol; the topics of an event come first.
 */
#include "chain/game/game_tables.h"

/* ---- structs ------------------------------------------------------------------- */

#define TERM(member, type)    FIELD(game_terms, member, type)
#define SEGMENT(member, type) FIELD(game_segment, member, type)
#define CASE(member, type)    FIELD(game_case, member, type)
#define SUBJECT(member, type) FIELD(game_subject, member, type)

#define TERMS_TYPE                                                                                 \
    "(bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint256,uint256,uint256,uint256,uint256,"    \
    "uint256,uint256,uint256,uint256,bytes32,bytes32,address,uint256,uint256,uint256,uint256,"     \
    "uint256,uint256)"
#define SEGMENT_TYPE "(uint256,uint256,bytes32,uint256,uint256,uint256,address,uint256,bool)"
#define CASE_TYPE                                                                                  \
    "(address,uint256,bytes32[7]," SEGMENT_TYPE "," SEGMENT_TYPE                                   \
    ",uint256,bytes32,bytes32,bytes32[],bytes32[])"
#define SUBJECT_TYPE "(address,uint256,bytes32[7],uint256,bytes32,bytes32)"

static const struct field terms_rows[] = {
    TERM(job_id, BYTES32),
    TERM(program_root, BYTES32),
    TERM(data_root, BYTES32),
    TERM(first_state_root, BYTES32),
    TERM(salt, U64),
    TERM(steps, U64),
    TERM(segment_steps, U32),
    TERM(reward, WEI),
    TERM(fee, WEI),
    TERM(stake, WEI),
    TERM(bond, WEI),
    TERM(query_fee, WEI),
    TERM(seats, U32),
    TERM(coverage_ppm, U32),
    TERM(panel_least, U32),
    TERM(solvers, BYTES32),
    TERM(verifiers, BYTES32),
    TERM(keeper, ADDRESS),
    TERM(segment_period_s, U32),
    TERM(seal_period_s, U32),
    TERM(reveal_period_s, U32),
    TERM(claim_period_s, U32),
    TERM(clock_s, U32),
    TERM(deadline_s, U64),
};

static const struct field segment_rows[] = {
    SEGMENT(index, U32),      SEGMENT(generation, U32), SEGMENT(root, BYTES32),
    SEGMENT(steps, U32),      SEGMENT(time_s, U64),     SEGMENT(height, U64),
    SEGMENT(solver, ADDRESS), SEGMENT(panel, U32),      SEGMENT(diverged, BOOL),
};

const struct fields game_terms_fields = FIELDS(terms_rows);
static const struct fields segment_fields = FIELDS(segment_rows);

static const struct field case_rows[] = {
    CASE(client, ADDRESS),
    CASE(salt, U64),
    CASE(job_header, JOB_HEADER),
    {offsetof(struct game_case, segment), FIELD_TUPLE, 0, 0, &segment_fields},
    {offsetof(struct game_case, previous), FIELD_TUPLE, 0, 0, &segment_fields},
    CASE(step, U32),
    CASE(pre_state, BYTES32),
    CASE(post_state, BYTES32),
    CASE(pre_path, PATH),
    CASE(post_path, PATH),
};

static const struct field subject_rows[] = {
    SUBJECT(client, ADDRESS), SUBJECT(salt, U64),          SUBJECT(job_header, JOB_HEADER),
    SUBJECT(step, U32),       SUBJECT(pre_state, BYTES32), SUBJECT(post_state, BYTES32),
};

static const struct fields case_fields = FIELDS(case_rows);
static const struct fields subject_fields = FIELDS(subject_rows);

/* ---- moves ---------------------------------------------------------------------- */

#define MOVE(member, type) FIELD(game_move, member, type)
#define MOVE_TUPLE(member, parts)                                                                  \
    {                                                                                              \
        offsetof(struct game_move, member), FIELD_TUPLE, 0, 0, &(parts)                            \
    }

static const struct field open_rows[] = {
    MOVE_TUPLE(terms, game_terms_fields),
    MOVE(contact, BYTES),
};
static const struct field key_rows[] = {MOVE(key, BYTES32)};
static const struct field settle_rows[] = {
    MOVE(key, BYTES32),
    MOVE_TUPLE(segment, segment_fields),
    MOVE(vouch, BYTES),
};
static const struct field accept_rows[] = {
    MOVE(key, BYTES32),
    MOVE(path, HASHES),
    MOVE(contact, BYTES),
};
static const struct field commit_rows[] = {
    MOVE(key, BYTES32),
    MOVE(index, U32),
    MOVE(states, HASHES),
    MOVE(diverged, BOOL),
};
static const struct field enlist_rows[] = {
    MOVE(key, BYTES32),
    MOVE(count, U32),
    MOVE(path, HASHES),
    MOVE(contact, BYTES),
};
static const struct field depart_rows[] = {
    MOVE(key, BYTES32),
    MOVE(generation, U32),
    MOVE(entry, U32),
};
static const struct field announce_rows[] = {MOVE(key, BYTES32), MOVE(contact, BYTES)};
static const struct field draw_rows[] = {
    MOVE(key, BYTES32),
    MOVE_TUPLE(segment, segment_fields),
    MOVE(proof, BYTES),
};
static const struct field seal_rows[] = {
    MOVE(key, BYTES32), MOVE(index, U32),    MOVE(about, BYTES32),
    MOVE(place, U32),   MOVE(seal, BYTES32),
};
static const struct field reveal_rows[] = {
    MOVE(key, BYTES32), MOVE(index, U32),     MOVE(about, BYTES32),
    MOVE(place, U32),   MOVE(leaves, LEAVES), MOVE(salt, BYTES32),
};
static const struct field unseen_rows[] = {
    MOVE(key, BYTES32),
    MOVE(index, U32),
    MOVE(about, BYTES32),
    MOVE(place, U32),
};
static const struct field withdraw_rows[] = {MOVE(account, ADDRESS)};
static const struct field seal_claim_rows[] = {MOVE(seal, BYTES32)};
static const struct field claim_rows[] = {
    MOVE(key, BYTES32),
    MOVE_TUPLE(shown, case_fields),
    MOVE(salt, BYTES32),
};
static const struct field alarm_rows[] = {
    MOVE(key, BYTES32),
    MOVE_TUPLE(shown, case_fields),
    MOVE(place, U32),
    MOVE(salt, BYTES32),
};
static const struct field answer_rows[] = {MOVE(key, BYTES32), MOVE(root, BYTES32)};
static const struct field subject_move_rows[] = {
    MOVE(key, BYTES32),
    MOVE_TUPLE(subject, subject_fields),
    MOVE(payload, BYTES),
};
static const struct field reply_rows[] = {
    MOVE(key, BYTES32),
    MOVE(queried, BYTES),
    MOVE(payload, BYTES),
};
static const struct field pay_rows[] = {MOVE(key, BYTES32), MOVE(generation, U32)};
static const struct field challenge_rows[] = {
    MOVE(key, BYTES32),   MOVE_TUPLE(segment, segment_fields),
    MOVE(place, U32),     MOVE(leaves, LEAVES),
    MOVE(salt, BYTES32),  MOVE(index, U32),
    MOVE(payload, BYTES), MOVE(seal_salt, BYTES32),
};

static const struct field fix_rows[] = {MOVE(segment.height, U64), MOVE(segment.time_s, U64)};

const struct codec game_move_codecs[GAME_MOVE_KINDS] = {
    [GAME_OPEN] = {"open", "open(" TERMS_TYPE ",bytes)", FIELDS(open_rows)},
    [GAME_CLOSE] = {"close", "close(bytes32)", FIELDS(key_rows)},
    [GAME_RESUME] = {"resume", "resume(bytes32)", FIELDS(key_rows)},
    [GAME_STOP] = {"stop", "stop(bytes32)", FIELDS(key_rows)},
    [GAME_REFUSE] = {"refuse", "refuse(bytes32)", FIELDS(key_rows)},
    [GAME_ACCEPT] = {"accept", "accept(bytes32,bytes32[],bytes)", FIELDS(accept_rows)},
    [GAME_COMMIT] = {"commit", "commit(bytes32,uint256,bytes32[],bool)", FIELDS(commit_rows)},
    [GAME_ENLIST] = {"enlist", "enlist(bytes32,uint256,bytes32[],bytes)", FIELDS(enlist_rows)},
    [GAME_DEPART] = {"depart", "depart(bytes32,uint256,uint256)", FIELDS(depart_rows)},
    [GAME_ANNOUNCE] = {"announce", "announce(bytes32,bytes)", FIELDS(announce_rows)},
    [GAME_DRAW] = {"draw", "draw(bytes32," SEGMENT_TYPE ",bytes)", FIELDS(draw_rows)},
    [GAME_SEAL] = {"seal", "seal(bytes32,uint256,bytes32,uint256,bytes32)", FIELDS(seal_rows)},
    [GAME_REVEAL] = {"reveal", "reveal(bytes32,uint256,bytes32,uint256,bytes16,bytes32)",
                     FIELDS(reveal_rows)},
    [GAME_UNSEEN] = {"unseen", "unseen(bytes32,uint256,bytes32,uint256)", FIELDS(unseen_rows)},
    [GAME_SETTLE] = {"settle", "settle(bytes32," SEGMENT_TYPE ",bytes)", FIELDS(settle_rows)},
    [GAME_RELEASE] = {"release", "release(bytes32)", FIELDS(key_rows)},
    [GAME_WITHDRAW] = {"withdraw", "withdraw(address)", FIELDS(withdraw_rows)},
    [GAME_SEAL_CLAIM] = {"seal claim", "sealClaim(bytes32)", FIELDS(seal_claim_rows)},
    [GAME_CLAIM] = {"claim", "claim(bytes32," CASE_TYPE ",bytes32)", FIELDS(claim_rows)},
    [GAME_ALARM] = {"alarm", "alarm(bytes32," CASE_TYPE ",uint256,bytes32)", FIELDS(alarm_rows)},
    [GAME_ANSWER] = {"answer", "answer(bytes32,bytes32)", FIELDS(answer_rows)},
    [GAME_QUERY] = {"query", "query(bytes32," SUBJECT_TYPE ",bytes)", FIELDS(subject_move_rows)},
    [GAME_REPLY] = {"reply", "reply(bytes32,bytes,bytes)", FIELDS(reply_rows)},
    [GAME_CONVICT] = {"convict", "convict(bytes32," SUBJECT_TYPE ",bytes)",
                      FIELDS(subject_move_rows)},
    [GAME_TIMEOUT] = {"timeout", "timeout(bytes32)", FIELDS(key_rows)},
    [GAME_LAPSE] = {"lapse", "lapse(bytes32)", FIELDS(key_rows)},
    [GAME_PAY] = {"pay", "pay(bytes32,uint256)", FIELDS(pay_rows)},
    [GAME_CHALLENGE] = {"challenge",
                        "challenge(bytes32," SEGMENT_TYPE
                        ",uint256,bytes16,bytes32,uint256,bytes,bytes32)",
                        FIELDS(challenge_rows)},
    [GAME_FIX] = {"fix", "fix(uint256,uint256)", FIELDS(fix_rows)},
};

/* ---- events ---------------------------------------------------------------------- */

#define TOPIC(member, type)                                                                        \
    {                                                                                              \
        offsetof(struct game_event, member), FIELD_##type, 1, 0, NULL                              \
    }
#define DATA(member, type) FIELD(game_event, member, type)
#define DATA_UP_TO(member, most)                                                                   \
    {                                                                                              \
        offsetof(struct game_event, member), FIELD_U32, 0, (most), NULL                            \
    }
#define DATA_TUPLE(member, parts)                                                                  \
    {                                                                                              \
        offsetof(struct game_event, member), FIELD_TUPLE, 0, 0, &(parts)                           \
    }

static const struct field opened_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(account, ADDRESS),
    DATA_TUPLE(terms, game_terms_fields),
    DATA(contact, BYTES),
};
static const struct field closed_rows[] = {TOPIC(job, BYTES32), DATA(index, U32)};
static const struct field accepted_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(account, ADDRESS),
    DATA(time_s, U64),
    DATA(contact, BYTES),
};
static const struct field resumed_rows[] = {
    TOPIC(job, BYTES32),
    DATA(escrow, WEI),
    DATA(pool, WEI),
};
static const struct field stopped_rows[] = {TOPIC(job, BYTES32), DATA(count, U32)};
static const struct field refused_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(account, ADDRESS),
    DATA(time_s, U64),
};
static const struct field committed_rows[] = {
    TOPIC(job, BYTES32),
    DATA_TUPLE(segment, segment_fields),
    DATA(states, HASHES),
};
static const struct field enlisted_rows[] = {
    TOPIC(job, BYTES32), TOPIC(account, ADDRESS), DATA(generation, U32),
    DATA(entry, U32),    DATA(count, U32),        DATA(contact, BYTES),
};
static const struct field moved_rows[] = {
    TOPIC(job, BYTES32),
    DATA(generation, U32),
    DATA(entry, U32),
    DATA(to, U32),
};
static const struct field gone_rows[] = {
    TOPIC(job, BYTES32),    DATA(generation, U32), DATA(entry, U32),
    DATA(account, ADDRESS), DATA(amount, WEI),
};
static const struct field announced_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(account, ADDRESS),
    DATA(contact, BYTES),
};
static const struct field drawn_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(index, U32),
    DATA(seal, BYTES32),
    DATA(flag, BOOL),
};
static const struct field round_rows[] = {
    TOPIC(job, BYTES32), TOPIC(index, U32), DATA(round, U32),    DATA(from, U32),
    DATA(to, U32),       DATA(time_s, U64), DATA(seal, BYTES32),
};
static const struct field round_over_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(index, U32),
    DATA(height, U64),
    DATA(time_s, U64),
};
static const struct field sealed_verdict_rows[] = {
    TOPIC(job, BYTES32),    TOPIC(index, U32),   DATA(place, U32),
    DATA(account, ADDRESS), DATA(seal, BYTES32),
};
static const struct field revealed_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(index, U32),
    DATA(place, U32),
    DATA(account, ADDRESS),
    DATA_UP_TO(verdict, GAME_VERDICT_FALSE),
    DATA(leaves, LEAVES),
    DATA(seal, BYTES32),
};
static const struct field unseen_said_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(index, U32),
    DATA(place, U32),
    DATA(account, ADDRESS),
};
static const struct field vouched_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(index, U32),
    DATA(seal, BYTES32),
};
static const struct field fee_paid_rows[] = {
    TOPIC(job, BYTES32),    TOPIC(index, U32), DATA(place, U32),
    DATA(account, ADDRESS), DATA(amount, WEI),
};
static const struct field disproved_rows[] = {
    TOPIC(job, BYTES32), TOPIC(index, U32), DATA(seal, BYTES32),
    DATA(place, U32),    DATA(entry, U32),  DATA(account, ADDRESS),
};
static const struct field finalized_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(index, U32),
    DATA(count, U32),
    DATA(amount, WEI),
};
static const struct field voided_rows[] = {
    TOPIC(job, BYTES32), TOPIC(account, ADDRESS), DATA(index, U32), DATA(count, U32),
    DATA(amount, WEI),   DATA(escrow, WEI),       DATA(pool, WEI),
};
static const struct field released_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(account, ADDRESS),
    DATA(index, U32),
    DATA(amount, WEI),
};
static const struct field convicted_rows[] = {
    TOPIC(job, BYTES32),
    TOPIC(account, ADDRESS),
    DATA(index, U32),
};
static const struct field withdrawn_rows[] = {
    TOPIC(account, ADDRESS),
    TOPIC(other, ADDRESS),
    DATA(amount, WEI),
};
static const struct field sealed_rows[] = {TOPIC(seal, BYTES32)};
static const struct field claimed_rows[] = {
    TOPIC(job, BYTES32),       TOPIC(claim, BYTES32), TOPIC(account, ADDRESS),
    DATA(index, U32),          DATA(step, U32),       DATA(pre_state, BYTES32),
    DATA(post_state, BYTES32), DATA(rank, U64),       DATA(amount, WEI),
};
static const struct field turn_passed_rows[] = {
    TOPIC(claim, BYTES32),
    DATA_UP_TO(phase, GAME_CLAIM_CLOSED),
    DATA_UP_TO(turn, GAME_TURN_ACCUSED),
    DATA(account, ADDRESS),
    DATA(time_s, U64),
};
static const struct field answered_rows[] = {TOPIC(claim, BYTES32), DATA(root, BYTES32)};
static const struct field defaulted_rows[] = {TOPIC(claim, BYTES32), TOPIC(account, ADDRESS)};
static const struct field ruled_rows[] = {
    TOPIC(claim, BYTES32),
    DATA_UP_TO(outcome, GAME_LAPSED),
};
static const struct field paid_rows[] = {
    TOPIC(job, BYTES32),
    DATA(generation, U32),
    DATA(account, ADDRESS),
    DATA(amount, WEI),
};
static const struct field payload_rows[] = {TOPIC(claim, BYTES32), DATA(payload, BYTES)};
static const struct field fixed_rows[] = {
    TOPIC(height, U64),
    TOPIC(time_s, U64),
    DATA(source, U64),
};

const struct codec game_event_codecs[GAME_EVENT_KINDS] = {
    [GAME_OPENED] = {"opened", "Opened(bytes32,address," TERMS_TYPE ",bytes)", FIELDS(opened_rows)},
    [GAME_RESUMED] = {"resumed", "Resumed(bytes32,uint256,uint256)", FIELDS(resumed_rows)},
    [GAME_STOPPED] = {"stopped", "Stopped(bytes32,uint256)", FIELDS(stopped_rows)},
    [GAME_REFUSED] = {"refused", "Refused(bytes32,address,uint256)", FIELDS(refused_rows)},
    [GAME_ACCEPTED] = {"accepted", "Accepted(bytes32,address,uint256,bytes)",
                       FIELDS(accepted_rows)},
    [GAME_COMMITTED] = {"committed", "Committed(bytes32," SEGMENT_TYPE ",bytes32[])",
                        FIELDS(committed_rows)},
    [GAME_ENLISTED] = {"enlisted", "Enlisted(bytes32,address,uint256,uint256,uint256,bytes)",
                       FIELDS(enlisted_rows)},
    [GAME_MOVED] = {"moved", "Moved(bytes32,uint256,uint256,uint256)", FIELDS(moved_rows)},
    [GAME_GONE] = {"gone", "Gone(bytes32,uint256,uint256,address,uint256)", FIELDS(gone_rows)},
    [GAME_ANNOUNCED] = {"announced", "Announced(bytes32,address,bytes)", FIELDS(announced_rows)},
    [GAME_DRAWN] = {"drawn", "Drawn(bytes32,uint256,bytes32,bool)", FIELDS(drawn_rows)},
    [GAME_ROUND_OVER] = {"round over", "RoundOver(bytes32,uint256,uint256,uint256)",
                         FIELDS(round_over_rows)},
    [GAME_ROUND] = {"round", "Round(bytes32,uint256,uint256,uint256,uint256,uint256,bytes32)",
                    FIELDS(round_rows)},
    [GAME_SEALED_VERDICT] = {"sealed a verdict",
                             "SealedVerdict(bytes32,uint256,uint256,address,bytes32)",
                             FIELDS(sealed_verdict_rows)},
    [GAME_REVEALED] = {"revealed",
                       "Revealed(bytes32,uint256,uint256,address,uint8,bytes16,bytes32)",
                       FIELDS(revealed_rows)},
    [GAME_SAID_UNSEEN] = {"said unseen", "Unseen(bytes32,uint256,uint256,address)",
                          FIELDS(unseen_said_rows)},
    [GAME_VOUCHED] = {"vouched", "Vouched(bytes32,uint256,bytes32)", FIELDS(vouched_rows)},
    [GAME_FEE_PAID] = {"paid a fee", "FeePaid(bytes32,uint256,uint256,address,uint256)",
                       FIELDS(fee_paid_rows)},
    [GAME_DISPROVED] = {"disproved", "Disproved(bytes32,uint256,bytes32,uint256,uint256,address)",
                        FIELDS(disproved_rows)},
    [GAME_FINALIZED] = {"finalized", "Finalized(bytes32,uint256,uint256,uint256)",
                        FIELDS(finalized_rows)},
    [GAME_VOIDED] = {"voided", "Voided(bytes32,address,uint256,uint256,uint256,uint256,uint256)",
                     FIELDS(voided_rows)},
    [GAME_CONVICTED] = {"convicted", "Convicted(bytes32,address,uint256)", FIELDS(convicted_rows)},
    [GAME_RELEASED] = {"released", "Released(bytes32,address,uint256,uint256)",
                       FIELDS(released_rows)},
    [GAME_CLOSED] = {"closed", "Closed(bytes32,uint256)", FIELDS(closed_rows)},
    [GAME_WITHDRAWN] = {"withdrawn", "Withdrawn(address,address,uint256)", FIELDS(withdrawn_rows)},
    [GAME_SEALED] = {"sealed", "Sealed(bytes32)", FIELDS(sealed_rows)},
    [GAME_CLAIMED] = {"claimed",
                      "Claimed(bytes32,bytes32,address,uint256,uint256,bytes32,bytes32,uint256,"
                      "uint256)",
                      FIELDS(claimed_rows)},
    [GAME_TURN_PASSED] = {"turn passed", "TurnPassed(bytes32,uint8,uint8,address,uint256)",
                          FIELDS(turn_passed_rows)},
    [GAME_ANSWERED] = {"answered", "Answered(bytes32,bytes32)", FIELDS(answered_rows)},
    [GAME_DEFAULTED] = {"defaulted", "Defaulted(bytes32,address)", FIELDS(defaulted_rows)},
    [GAME_RULED] = {"ruled", "Ruled(bytes32,uint8)", FIELDS(ruled_rows)},
    [GAME_PAID] = {"paid", "Paid(bytes32,uint256,address,uint256)", FIELDS(paid_rows)},
    [GAME_QUERIED] = {"queried", "Queried(bytes32,bytes)", FIELDS(payload_rows)},
    [GAME_REPLIED] = {"replied", "Replied(bytes32,bytes)", FIELDS(payload_rows)},
    [GAME_FIXED] = {"fixed", "Fixed(uint256,uint256,uint256)", FIELDS(fixed_rows)},
};
