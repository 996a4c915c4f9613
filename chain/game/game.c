/* game.c - refusals and keys of game.h. */
#include "chain/game/game.h"

#include <assert.h>
#include <string.h>

#include "base/endian.h"
#include "chain/codec/abi.h"
#include "chain/codec/typed_data.h"
#include "proofs/commit/commit.h"

enum {
    SEGMENT_WORDS = 10, /* with the job's key before it */
    KEY_WORDS = 6,
    DRAW_STEP = 0, /* of the random number of a right, where each part begins, in 64 bits */
    DRAW_TENSOR = 1,
    DRAW_LEAF = 2,
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
    [GAME_WRONG_PHASE] =
        {"WrongPhase(uint256)", ARGUMENT_NUMBER,
         "job or claim has gone on, or is not there yet: this move belongs to another "
         "phase"},
    [GAME_NOT_YOURS] = {"NotYours(address)", ARGUMENT_ADDRESS, "this is another account's move"},
    [GAME_NOT_ALLOWED] = {"NotAllowed()", ARGUMENT_NONE,
                          "this account is not on the job's allow-list"},
    [GAME_WRONG_INDEX] = {"WrongIndex(uint256)", ARGUMENT_NUMBER, "it is another segment's turn"},
    [GAME_WRONG_SEGMENT] = {"WrongSegment()", ARGUMENT_NONE, "no such segment stands in this job"},
    [GAME_WRONG_STEPS] = {"WrongSteps(uint256)", ARGUMENT_NUMBER,
                          "the segment has not so many steps"},
    [GAME_ZERO_ROOT] = {"ZeroRoot()", ARGUMENT_NONE, "a root is never zero"},
    [GAME_ZERO_ADDRESS] = {"ZeroAddress()", ARGUMENT_NONE, "the zero address is nobody's"},
    [GAME_TOO_EARLY] = {"TooEarly(uint256)", ARGUMENT_NUMBER,
                        "the time for this move has not come"},
    [GAME_TOO_LATE] = {"TooLate(uint256)", ARGUMENT_NUMBER, "the time for this move is over"},
    [GAME_TOO_LONG] = {"TooLong(uint256)", ARGUMENT_NUMBER,
                       "a contact or a vouch has too many bytes"},
    [GAME_SELF_DEALING] = {"SelfDealing()", ARGUMENT_NONE,
                           "nobody checks, claims against or verifies their own work"},
    [GAME_FULL] = {"Full(uint256)", ARGUMENT_NUMBER, "there are as many of these as may be"},
    [GAME_PANEL_SHORT] = {"PanelShort(uint256)", ARGUMENT_NUMBER,
                          "the panel of the job has too few entries"},
    [GAME_WRONG_HEADER] = {"WrongHeader(uint256)", ARGUMENT_NUMBER,
                           "this is not the header of the block that the seed comes from"},
    [GAME_NOT_DRAWN] = {"NotDrawn()", ARGUMENT_NONE, "the seats of the segment are not drawn yet"},
    [GAME_ALREADY_DRAWN] = {"AlreadyDrawn()", ARGUMENT_NONE,
                            "the seats of the segment are drawn already"},
    [GAME_WRONG_PLACE] = {"WrongPlace()", ARGUMENT_NONE, "no seat has this place in this round"},
    [GAME_ALREADY_SEALED] = {"AlreadySealed()", ARGUMENT_NONE,
                             "the seat has sealed its verdict before"},
    [GAME_NOT_SEALED] = {"NotSealed()", ARGUMENT_NONE, "there is no such seal"},
    [GAME_WRONG_REVEAL] = {"WrongReveal()", ARGUMENT_NONE, "this is not what was sealed"},
    [GAME_NOT_NEEDED] = {"NotNeeded()", ARGUMENT_NONE, "there is nothing to do here"},
    [GAME_ENGAGED] = {"Engaged(uint256)", ARGUMENT_NUMBER,
                      "an entry may sit in the segments of a solver at work, or a round is closed "
                      "and waits for its draw"},
    [GAME_CLAIMS_OPEN] = {"ClaimsOpen(uint256)", ARGUMENT_NUMBER, "a claim is still open"},
    [GAME_BARRED] = {"Barred()", ARGUMENT_NONE,
                     "a void burned a part of the price: the client has to put it back first"},
    [GAME_STANDS_REFUSED] = {"StandsRefused(uint256)", ARGUMENT_NUMBER,
                             "client or keeper refused what is not final"},
    [GAME_WRONG_VOUCH] = {"WrongVouch()", ARGUMENT_NONE,
                          "the keeper of the job did not sign this vouch"},
    [GAME_WRONG_TOKEN] = {"WrongToken()", ARGUMENT_NONE,
                          "the token did not move the amount: it is short, not approved, or unfit"},
    [GAME_NOTHING_OWED] = {"NothingOwed()", ARGUMENT_NONE, "this account is owed nothing"},
    [GAME_WITHDRAW_FAILED] = {"WithdrawFailed()", ARGUMENT_NONE, "the target refused the money"},
    [GAME_WRONG_TURN] = {"WrongTurn(uint256)", ARGUMENT_NUMBER,
                         "it is the other party's turn in this dispute"},
    [GAME_WRONG_CASE] = {"WrongCase(uint256)", ARGUMENT_NUMBER,
                         "what is shown of the claim is not what was committed"},
    [GAME_SEAL_EXISTS] = {"SealExists()", ARGUMENT_NONE, "this seal was made before and lives"},
    [GAME_CLAIM_EXISTS] = {"ClaimExists()", ARGUMENT_NONE,
                           "this account is a claimant of this dispute already"},
    [GAME_NOT_LAPSED] = {"NotLapsed()", ARGUMENT_NONE,
                         "no conviction with a lower rank has overtaken this claim"},
    [GAME_NOT_PAID] = {"NotPaid(uint256)", ARGUMENT_NUMBER,
                       "disputes are open that may still take the stake"},
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
    struct byte_writer writer;

    assert(refusal->kind != GAME_REFUSED_NOT);
    byte_writer_init(&writer, bytes, GAME_REVERT_SIZE);
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

static void put_digest(struct byte_writer *writer, const struct digest *digest)
{
    struct hash32 hash;

    memcpy(hash.bytes, digest->bytes, HASH32_SIZE);
    abi_put_hash(writer, &hash);
}

struct hash32 game_job_key(const struct game_place *place, const struct address *client,
                           const struct digest *job_id, uint64_t salt)
{
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_uint256(&writer, &place->chain);
    abi_put_address(&writer, &place->registry);
    abi_put_address(&writer, client);
    put_digest(&writer, job_id);
    abi_put_u64(&writer, salt);
    assert(!writer.overflowed);
    return keccak256(bytes, writer.used);
}

struct hash32 game_segment_hash(const struct hash32 *job, const struct game_segment *segment)
{
    uint8_t bytes[SEGMENT_WORDS * ABI_WORD_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_hash(&writer, job);
    abi_put_u64(&writer, segment->index);
    abi_put_u64(&writer, segment->generation);
    put_digest(&writer, &segment->root);
    abi_put_u64(&writer, segment->steps);
    abi_put_u64(&writer, segment->time_s);
    abi_put_u64(&writer, segment->height);
    abi_put_address(&writer, &segment->solver);
    abi_put_u64(&writer, segment->panel);
    abi_put_bool(&writer, segment->diverged);
    assert(!writer.overflowed);
    return keccak256(bytes, writer.used);
}

struct hash32 game_vouch_digest(const struct game_place *place, const struct hash32 *job,
                                const struct hash32 *segment_hash)
{
    struct hash32 domain = typed_domain("Lockstep", "3", &place->chain, &place->registry);
    struct typed_struct typed;
    struct hash32 hash;

    typed_struct_begin(&typed, "Vouch(bytes32 job,bytes32 segment)");
    typed_struct_add_hash(&typed, job);
    typed_struct_add_hash(&typed, segment_hash);
    hash = typed_struct_hash(&typed);
    return typed_message_hash(&domain, &hash);
}

uint32_t game_wanted_rights(const struct game_terms *terms, const struct game_segment *segment,
                            uint32_t segments)
{
    bool ends = segment->diverged || segment->index + 1 == segments;

    return ends && terms->seats > 0 && terms->seats < GAME_LAST_RIGHTS ? GAME_LAST_RIGHTS
                                                                       : terms->seats;
}

struct digest game_segment_root(const struct game_hashes *states, uint64_t first)
{
    struct digest root;

    commit_list_root(&root, COMMIT_SEGMENT, first, states->hashes, states->count);
    return root;
}

struct hash32 game_subject_hash(const struct hash32 *segment_hash, uint32_t step,
                                const struct digest *pre_state, const struct digest *post_state)
{
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_hash(&writer, segment_hash);
    abi_put_u64(&writer, step);
    put_digest(&writer, pre_state);
    put_digest(&writer, post_state);
    return keccak256(bytes, writer.used);
}

struct hash32 game_claim_key(const struct hash32 *subject_hash, uint32_t round)
{
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_hash(&writer, subject_hash);
    abi_put_u64(&writer, round);
    return keccak256(bytes, writer.used);
}

struct hash32 game_claim_seal(const struct address *claimant, const struct hash32 *subject_hash,
                              const struct hash32 *salt)
{
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_address(&writer, claimant);
    abi_put_hash(&writer, subject_hash);
    abi_put_hash(&writer, salt);
    return keccak256(bytes, writer.used);
}

struct hash32 game_challenge_hash(const struct hash32 *segment_hash, uint32_t place, uint32_t which)
{
    const struct hash32 word = {"challenge"};
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_hash(&writer, &word);
    abi_put_hash(&writer, segment_hash);
    abi_put_u64(&writer, place);
    abi_put_u64(&writer, which);
    return keccak256(bytes, writer.used);
}

struct game_subject game_subject_of(const struct game_case *shown)
{
    struct game_subject subject = {.client = shown->client,
                                   .salt = shown->salt,
                                   .step = shown->step,
                                   .pre_state = shown->pre_state,
                                   .post_state = shown->post_state};

    memcpy(subject.job_header, shown->job_header, sizeof(subject.job_header));
    return subject;
}

/* ---- the panel -------------------------------------------------------------- */

struct hash32 game_seed(const struct hash32 *random, const struct hash32 *segment_hash)
{
    uint8_t bytes[2 * HASH32_SIZE];
    struct hash32 seed;

    memcpy(bytes, random->bytes, HASH32_SIZE);
    memcpy(bytes + HASH32_SIZE, segment_hash->bytes, HASH32_SIZE);
    seed = keccak256(bytes, sizeof(bytes));
    memset(seed.bytes, 0, HASH32_SIZE - GAME_SEED_SIZE);
    return seed;
}

/* The rest of (hash >> 64 * limbs) by the divisor. */
static uint64_t rest_of(const struct hash32 *hash, uint32_t limbs, uint64_t divisor)
{
    struct uint256 number = uint256_from_bytes(hash->bytes);
    struct uint256 quotient;

    for (uint32_t i = 0; i < 4; i++) {
        number.limbs[i] = i + limbs < 4 ? number.limbs[i + limbs] : 0;
    }
    return uint256_divide(&quotient, &number, divisor);
}

bool game_seed_covers(const struct hash32 *seed, uint32_t coverage_ppm)
{
    return rest_of(seed, 0, GAME_PPM) < coverage_ppm;
}

static struct hash32 number_of_seed(const struct hash32 *seed, uint32_t which)
{
    uint8_t bytes[2 * ABI_WORD_SIZE];
    struct byte_writer writer;

    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_hash(&writer, seed);
    abi_put_u64(&writer, which);
    return keccak256(bytes, sizeof(bytes));
}

uint32_t game_place_entry(const struct hash32 *seed, uint32_t place, uint32_t panel)
{
    struct hash32 number = number_of_seed(seed, place);

    assert(panel > 0);
    return (uint32_t)rest_of(&number, 0, panel);
}

uint32_t game_right_step(const struct hash32 *seed, uint32_t which, uint32_t steps)
{
    struct hash32 number = number_of_seed(seed, which);

    assert(steps > 0);
    if (which == GAME_LEAVES - 1) {
        return steps < 2 ? 0 : steps - 2;
    }
    return (uint32_t)rest_of(&number, DRAW_STEP, steps);
}

uint32_t game_right_tensor(const struct hash32 *seed, uint32_t which, uint32_t tensors)
{
    struct hash32 number = number_of_seed(seed, which);

    assert(tensors > 0);
    return (uint32_t)rest_of(&number, DRAW_TENSOR, tensors);
}

uint64_t game_right_leaf(const struct hash32 *seed, uint32_t which, uint64_t leaves)
{
    struct hash32 number = number_of_seed(seed, which);

    assert(leaves > 0);
    return rest_of(&number, DRAW_LEAF, leaves);
}

/* Packed: 20 + 32 + 32 + 8 + 4 + 8 + 1,024 bytes. */
struct hash32 game_right_hash(const struct address *owner, const struct hash32 *seed,
                              const struct hash32 *segment_hash, const struct game_right *right)
{
    uint8_t numbers[20];
    struct keccak keccak;

    endian_store_be64(numbers, right->step);
    endian_store_be32(numbers + 8, right->tensor);
    endian_store_be64(numbers + 12, right->leaf);
    keccak_init(&keccak);
    keccak_add(&keccak, owner->bytes, ADDRESS_SIZE);
    keccak_add(&keccak, seed->bytes, HASH32_SIZE);
    keccak_add(&keccak, segment_hash->bytes, HASH32_SIZE);
    keccak_add(&keccak, numbers, sizeof(numbers));
    keccak_add(&keccak, right->bytes, MERKLE_LEAF_SIZE);
    return keccak_end(&keccak);
}

void game_leaves_set(struct game_leaves *leaves, uint32_t which, const struct hash32 *hash)
{
    memcpy(leaves->tags[which], hash->bytes, GAME_TAG_SIZE);
}

bool game_leaves_have(const struct game_leaves *leaves, uint32_t which, const struct hash32 *hash)
{
    return memcmp(leaves->tags[which], hash->bytes, GAME_TAG_SIZE) == 0;
}

struct hash32 game_verdict_seal(const struct address *owner, const struct hash32 *segment_hash,
                                enum game_verdict verdict, uint32_t step,
                                const struct game_leaves *leaves, const struct hash32 *salt)
{
    uint8_t bytes[KEY_WORDS * ABI_WORD_SIZE];
    struct hash32 word = {{0}};
    struct byte_writer writer;

    if (leaves != NULL) {
        memcpy(word.bytes, leaves, sizeof(*leaves));
    }
    byte_writer_init(&writer, bytes, sizeof(bytes));
    abi_put_address(&writer, owner);
    abi_put_hash(&writer, segment_hash);
    abi_put_u64(&writer, verdict);
    abi_put_u64(&writer, step);
    abi_put_hash(&writer, &word);
    abi_put_hash(&writer, salt);
    assert(!writer.overflowed);
    return keccak256(bytes, writer.used);
}

/* ---- amounts ---------------------------------------------------------------- */

uint32_t game_segment_count(const struct game_terms *terms)
{
    uint64_t count;

    if (terms->steps == 0 || terms->steps > GAME_STEPS_MAX || terms->segment_steps == 0 ||
        terms->segment_steps > GAME_STATES_MAX) {
        return 0;
    }
    count = (terms->steps + terms->segment_steps - 1) / terms->segment_steps;
    return count > GAME_SEGMENTS_MAX ? 0 : (uint32_t)count;
}

wei game_segment_fees(const struct game_terms *terms)
{
    return 3 * (wei)terms->seats * terms->fee;
}

wei game_fees(const struct game_terms *terms, uint32_t segments)
{
    uint64_t covered = 3 + (uint64_t)segments * terms->coverage_ppm * 3 / (2 * GAME_PPM);

    return (covered < segments ? covered : segments) * game_segment_fees(terms);
}

wei game_void_price(const struct game_terms *terms, uint32_t open)
{
    wei price = ((wei)open + 1) * terms->reward;

    return price < terms->stake ? price : terms->stake;
}

wei game_price(const struct game_terms *terms, uint32_t segments)
{
    return segments * terms->reward + game_fees(terms, segments);
}

wei game_escrow(const struct game_terms *terms)
{
    return game_price(terms, game_segment_count(terms));
}

wei game_query_fee_max(const struct game_terms *terms)
{
    const wei of_reward = terms->reward / GAME_QUERY_REWARDS;
    const wei of_stake = terms->stake / GAME_QUERY_STAKES;

    return of_reward < of_stake ? of_reward : of_stake;
}

wei game_claim_bond(const struct game_terms *terms, uint32_t outsiders)
{
    return terms->bond * (4 + outsiders) / 4;
}
