/* game.c - refusals and keys of game.h. */
#include "chain/game/game.h"

#include <assert.h>
#include <string.h>

#include "chain/codec/abi.h"

enum {
    SEGMENT_WORDS = 8, /* with the job's key before it */
    JOB_KEY_WORDS = 5,
    KEY_WORDS = 4,
};

/* ---- refusals --------------------------------------------------------------- */

enum refusal_argument {
    ARGUMENT_NONE,
    ARGUMENT_NUMBER,
    ARGUMENT_ADDRESS,
};

static const struct {
    const char *signature;
    enum refusal_argument argument;
    const char *text;
} refusals[GAME_REFUSAL_KINDS] = {
    [GAME_REFUSED_NOT] = {"", ARGUMENT_NONE,
                          "the transaction failed for a reason outside the game"},
    [GAME_BAD_TERMS] = {"BadTerms(uint256)", ARGUMENT_NUMBER, "a term of the job is out of range"},
    [GAME_WRONG_VALUE] = {"WrongValue(uint256)", ARGUMENT_NUMBER,
                          "another amount must be sent along"},
    [GAME_JOB_EXISTS] = {"JobExists()", ARGUMENT_NONE,
                         "this client has opened this job before; another salt makes another job"},
    [GAME_WRONG_PHASE] = {"WrongPhase(uint256)", ARGUMENT_NUMBER,
                          "the job or claim is not in a phase that has this move"},
    [GAME_NOT_YOURS] = {"NotYours(address)", ARGUMENT_ADDRESS, "this is another account's move"},
    [GAME_WRONG_INDEX] = {"WrongIndex(uint256)", ARGUMENT_NUMBER, "it is another segment's turn"},
    [GAME_WRONG_SEGMENT] = {"WrongSegment()", ARGUMENT_NONE, "no such segment stands in this job"},
    [GAME_WRONG_STEPS] = {"WrongSteps(uint256)", ARGUMENT_NUMBER,
                          "the segment has not so many steps"},
    [GAME_ZERO_ROOT] = {"ZeroRoot()", ARGUMENT_NONE, "a root is never zero"},
    [GAME_ZERO_ADDRESS] = {"ZeroAddress()", ARGUMENT_NONE, "the zero address is nobody's"},
    [GAME_TOO_EARLY] = {"TooEarly(uint256)", ARGUMENT_NUMBER,
                        "the time for this move has not come"},
    [GAME_TOO_LATE] = {"TooLate(uint256)", ARGUMENT_NUMBER, "the time for this move is over"},
    [GAME_SELF_DEALING] = {"SelfDealing()", ARGUMENT_NONE,
                           "nobody attests or accuses their own work"},
    [GAME_FULL] = {"Full()", ARGUMENT_NONE, "the segment has all the attestors it can pay"},
    [GAME_ALREADY_ATTESTED] = {"AlreadyAttested()", ARGUMENT_NONE,
                               "this account has attested this segment before"},
    [GAME_NOT_SEALED] = {"NotSealed()", ARGUMENT_NONE, "there is no such seal"},
    [GAME_NOT_REVEALED] = {"NotRevealed()", ARGUMENT_NONE, "the attestor has revealed nothing"},
    [GAME_WRONG_REVEAL] = {"WrongReveal()", ARGUMENT_NONE, "this is not what was sealed"},
    [GAME_COVERAGE_MISSING] = {"CoverageMissing(uint256)", ARGUMENT_NUMBER,
                               "too few attestors have revealed"},
    [GAME_NOT_NEEDED] = {"NotNeeded()", ARGUMENT_NONE, "the segment needs no further attestors"},
    [GAME_CLAIMS_OPEN] = {"ClaimsOpen(uint256)", ARGUMENT_NUMBER, "a claim is still open"},
    [GAME_CLAIM_EXISTS] = {"ClaimExists()", ARGUMENT_NONE, "this claim or seal was made before"},
    [GAME_NOT_LAPSED] = {"NotLapsed()", ARGUMENT_NONE, "the accused of this claim is still there"},
    [GAME_OUT_OF_TURNS] = {"OutOfTurns()", ARGUMENT_NONE, "the dispute has had all its turns"},
    [GAME_NOTHING_OWED] = {"NothingOwed()", ARGUMENT_NONE, "this account is owed nothing"},
    [GAME_WITHDRAW_FAILED] = {"WithdrawFailed()", ARGUMENT_NONE, "the target refused the money"},
    [GAME_WRONG_TURN] = {"WrongTurn(uint256)", ARGUMENT_NUMBER,
                         "it is the other party's turn in this dispute"},
    [GAME_WRONG_CASE] = {"WrongCase(uint256)", ARGUMENT_NUMBER,
                         "what is shown of the claim is not what was committed"},
    [GAME_BAD_QUERY] = {"BadQuery()", ARGUMENT_NONE,
                        "the query is about nothing that was committed"},
    [GAME_NOT_QUERIED] = {"NotQueried()", ARGUMENT_NONE, "something else was queried"},
    [GAME_BAD_REPLY] = {"BadReply()", ARGUMENT_NONE, "this is not what was queried"},
    [GAME_BAD_EVIDENCE] = {"BadEvidence()", ARGUMENT_NONE,
                           "the evidence is malformed or does not prove what it says"},
    [GAME_NOT_GUILTY] = {"NotGuilty()", ARGUMENT_NONE, "the evidence shows what the rules give"},
};

void game_refusal_encode(uint8_t *bytes, size_t *size, const struct game_refusal *refusal)
{
    struct uint256 number = wei_to_uint256(refusal->number);
    struct abi_writer writer;

    assert(refusal->kind != GAME_REFUSED_NOT);
    abi_writer_init(&writer, bytes, GAME_REVERT_SIZE);
    abi_put_selector(&writer, refusals[refusal->kind].signature);
    switch (refusals[refusal->kind].argument) {
    case ARGUMENT_NONE:
        break;
    case ARGUMENT_NUMBER:
        abi_put_uint256(&writer, &number);
        break;
    case ARGUMENT_ADDRESS:
        abi_put_address(&writer, &refusal->account);
        break;
    }
    assert(!writer.overflowed);
    *size = writer.used;
}

static bool read_argument(struct game_refusal *refusal, const uint8_t *bytes, size_t size,
                          enum refusal_argument argument)
{
    struct abi_reader reader;
    struct uint256 number;

    abi_reader_init(&reader, bytes, size);
    switch (argument) {
    case ARGUMENT_NONE:
        break;
    case ARGUMENT_NUMBER:
        if (abi_get_uint256(&reader, &number) != STATUS_OK ||
            !wei_from_uint256(&refusal->number, &number)) {
            return false;
        }
        break;
    case ARGUMENT_ADDRESS:
        if (abi_get_address(&reader, &refusal->account) != STATUS_OK) {
            return false;
        }
        break;
    }
    return reader.at == size;
}

void game_refusal_decode(struct game_refusal *refusal, const uint8_t *bytes, size_t size)
{
    memset(refusal, 0, sizeof(*refusal));
    if (size < ABI_SELECTOR_SIZE) {
        return;
    }
    for (int kind = 1; kind < GAME_REFUSAL_KINDS; kind++) {
        struct hash32 hash = keccak256(refusals[kind].signature, strlen(refusals[kind].signature));

        if (memcmp(hash.bytes, bytes, ABI_SELECTOR_SIZE) == 0 &&
            read_argument(refusal, bytes + ABI_SELECTOR_SIZE, size - ABI_SELECTOR_SIZE,
                          refusals[kind].argument)) {
            refusal->kind = (enum game_refusal_kind)kind;
        }
    }
}

const char *game_refusal_text(enum game_refusal_kind kind)
{
    return refusals[kind].text;
}

/* ---- keys: each is keccak256(abi.encode(...)) as in Registry.sol -------------- */

struct hash32 game_job_key(const struct game_place *place, const struct address *client,
                           const struct digest *job_id, uint64_t salt)
{
    uint8_t bytes[JOB_KEY_WORDS * ABI_WORD_SIZE];
    struct abi_writer writer;
    struct hash32 id;

    memcpy(id.bytes, job_id->bytes, HASH32_SIZE);
    abi_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_uint256(&writer, &place->chain);
    abi_put_address(&writer, &place->registry);
    abi_put_address(&writer, client);
    abi_put_hash(&writer, &id);
    abi_put_u64(&writer, salt);
    assert(!writer.overflowed);
    return keccak256(bytes, writer.used);
}

struct hash32 game_segment_hash(const struct hash32 *job, const struct game_segment *segment)
{
    uint8_t bytes[SEGMENT_WORDS * ABI_WORD_SIZE];
    struct abi_writer writer;
    struct hash32 root;

    memcpy(root.bytes, segment->root.bytes, HASH32_SIZE);
    abi_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_hash(&writer, job);
    abi_put_u64(&writer, segment->index);
    abi_put_u64(&writer, segment->generation);
    abi_put_hash(&writer, &root);
    abi_put_u64(&writer, segment->steps);
    abi_put_u64(&writer, segment->time_s);
    abi_put_u64(&writer, segment->height);
    abi_put_address(&writer, &segment->solver);
    assert(!writer.overflowed);
    return keccak256(bytes, writer.used);
}

struct hash32 game_attest_seal(const struct address *attestor, const struct hash32 *segment_hash,
                               const struct digest *trace_root)
{
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct abi_writer writer;
    struct hash32 root;

    memcpy(root.bytes, trace_root->bytes, HASH32_SIZE);
    abi_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_address(&writer, attestor);
    abi_put_hash(&writer, segment_hash);
    abi_put_hash(&writer, &root);
    return keccak256(bytes, writer.used);
}

static struct hash32 claim_key(const struct address *claimant, const struct hash32 *segment_hash,
                               const struct address *attestor, const struct hash32 *subject)
{
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct abi_writer writer;

    abi_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_address(&writer, claimant);
    abi_put_hash(&writer, segment_hash);
    abi_put_address(&writer, attestor);
    abi_put_hash(&writer, subject);
    return keccak256(bytes, writer.used);
}

struct hash32 game_claim_key(const struct address *claimant, const struct hash32 *segment_hash,
                             uint32_t step, const struct digest *pre_state,
                             const struct digest *post_state)
{
    static const struct address nobody;
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct abi_writer writer;
    struct hash32 state;
    struct hash32 subject;

    abi_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_u64(&writer, step);
    memcpy(state.bytes, pre_state->bytes, HASH32_SIZE);
    abi_put_hash(&writer, &state);
    memcpy(state.bytes, post_state->bytes, HASH32_SIZE);
    abi_put_hash(&writer, &state);
    subject = keccak256(bytes, writer.used);
    return claim_key(claimant, segment_hash, &nobody, &subject);
}

struct hash32 game_accusation_key(const struct address *claimant, const struct hash32 *segment_hash,
                                  const struct address *attestor)
{
    static const struct hash32 nothing;

    return claim_key(claimant, segment_hash, attestor, &nothing);
}

struct hash32 game_claim_seal(const struct hash32 *claim_key_of, const struct hash32 *salt)
{
    uint8_t bytes[2 * HASH32_SIZE];

    memcpy(bytes, claim_key_of->bytes, HASH32_SIZE);
    memcpy(bytes + HASH32_SIZE, salt->bytes, HASH32_SIZE);
    return keccak256(bytes, sizeof(bytes));
}

uint32_t game_sampled_step(const struct hash32 *seed, const struct address *attestor,
                           uint32_t steps)
{
    uint8_t bytes[2 * ABI_WORD_SIZE];
    struct abi_writer writer;
    struct hash32 hash;
    struct uint256 number;
    struct uint256 quotient;

    assert(steps > 0);
    abi_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_hash(&writer, seed);
    abi_put_address(&writer, attestor);
    hash = keccak256(bytes, writer.used);
    number = uint256_from_bytes(hash.bytes);
    return (uint32_t)uint256_divide(&quotient, &number, steps);
}

uint32_t game_segment_count(const struct game_terms *terms)
{
    uint64_t count;

    if (terms->steps == 0 || terms->steps > GAME_TIME_MAX || terms->segment_steps == 0 ||
        terms->segment_steps > GAME_PERIOD_MAX) {
        return 0;
    }
    count = (terms->steps + terms->segment_steps - 1) / terms->segment_steps;
    return count > GAME_SEGMENTS_MAX ? 0 : (uint32_t)count;
}

wei game_escrow(const struct game_terms *terms)
{
    return game_segment_count(terms) *
           (terms->segment_reward + (wei)terms->attestors * terms->attest_fee);
}
