/* simulation_players.c - see simulation.h: client, solvers, lying seats, slanderers, anybody. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chain/game/allow_list.h"
#include "chain/job/due_submit.h"
#include "tests/support/game/made_states.h"
#include "tests/support/node/simulation.h"
#include "tests/support/test.h"

enum {
    LIES_FROM =
        VIRTUAL_NOT_FINITE, /* beside the true state; a lie goes on there, and stays finite */
    SEAT_ENTRIES = 2,
    DENIED_PANEL = 3, /* at least: one entry that denies, and two rights outweigh it */
    SEAL_S = 400,
    REVEAL_S = 400,
    CLAIM_S = 400,
    CLOCK_S = 900,
    SEGMENT_S = 4000,
    DEADLINE_S = 16000,
    SALT = 0x51,
};

static const struct game_bytes no_contact;
static const struct game_hashes no_path;

static bool chance(struct simulation *simulation, uint32_t percent)
{
    return simulation_chance(&simulation->players_random, percent);
}

static uint64_t below(struct simulation *simulation, uint64_t limit)
{
    return test_random_below(&simulation->players_random, limit);
}

static struct ledger *ledger_of(struct simulation *simulation, enum simulation_player player)
{
    return &simulation->players[player].ledger;
}

static uint64_t now_s(const struct simulation *simulation)
{
    return simulation->now_ms / 1000;
}

/* A player whose move is refused tries another in its next turn. */
static void forgive(enum status status)
{
    (void)!status;
}

static bool is(const struct simulation *simulation, enum simulation_player player,
               const struct address *account)
{
    return address_equal(&simulation->accounts[player], account);
}

/* ---- states -------------------------------------------------------------------- */

const struct simulation_list *simulation_find_list(const struct simulation *simulation,
                                                   const struct digest *root)
{
    for (uint32_t i = 0; i < simulation->list_count; i++) {
        if (digest_equal(&simulation->lists[i].root, root)) {
            return &simulation->lists[i];
        }
    }
    return NULL;
}

static struct game_hashes hashes_of(const struct simulation_list *list)
{
    return (struct game_hashes){list->states, list->steps};
}

/* The next number behind one; is_lie: the first that is false. */
static uint32_t number_after(uint32_t number, bool is_lie)
{
    return number + 1 + (is_lie && number <= LIES_FROM ? LIES_FROM : 0);
}

/* The next segment of a job, and whether it is said to end it. */
static const struct simulation_list *make_list(struct simulation *simulation, bool *diverged,
                                               const struct simulation_job *job, uint32_t index,
                                               bool cheats)
{
    const struct game_terms *terms = &job->terms;
    const uint32_t first = index * terms->segment_steps;
    struct simulation_list *list = &simulation->lists[simulation->list_count];
    const struct simulation_list *known;
    struct game_hashes hashes;
    uint32_t number = job->first;
    uint32_t steps;

    assert(simulation->list_count < SIMULATION_LISTS);
    if (index > 0) {
        known = simulation_find_list(simulation, &job->record.segments[index - 1].committed.root);
        assert(known != NULL);
        number = known->numbers[known->steps - 1];
    }
    memset(list, 0, sizeof(*list));
    list->before = number;
    steps = (uint32_t)(terms->steps - first < terms->segment_steps ? terms->steps - first
                                                                   : terms->segment_steps);
    *diverged = false;
    for (uint32_t i = 0; i < steps && !*diverged; i++) {
        bool lies = cheats && first + i == job->lie;

        number = number_after(number, lies && job->fraud == FRAUD_STATE);
        list->numbers[i] = number;
        list->states[i] = made_state_root(number);
        list->steps++;
        *diverged = (lies && job->fraud == FRAUD_DIVERGED) ||
                    (number == VIRTUAL_NOT_FINITE && !(cheats && job->fraud == FRAUD_WENT_ON));
    }
    hashes = hashes_of(list);
    list->root = game_segment_root(&hashes, first);
    known = simulation_find_list(simulation, &list->root);
    if (known == list || known == NULL) {
        simulation->list_count++;
        return list;
    }
    return known;
}

/* ---- claims of what is false or true ---------------------------------------------- */

static bool make_case(struct simulation *simulation, const struct simulation_job *job,
                      struct game_case *shown, uint32_t index, uint32_t step)
{
    const struct job_record_segment *segment = &job->record.segments[index];
    const struct simulation_list *list = simulation_find_list(simulation, &segment->committed.root);
    const struct simulation_list *last =
        index == 0 ? NULL : simulation_find_list(simulation, &segment[-1].committed.root);
    struct game_hashes states = hashes_of(list);
    struct game_hashes before = {0};
    uint8_t header[GAME_JOB_HEADER_SIZE];
    struct digest id;

    if (last != NULL) {
        before = hashes_of(last);
    }
    made_job(header, &id, job->first);
    made_states_case(shown, header, &segment->committed, &states,
                     index == 0 ? NULL : &segment[-1].committed, &before, step);
    shown->client = simulation->accounts[PLAYER_CLIENT];
    shown->salt = job->terms.salt;
    return virtual_is_false(&shown->pre_state, &shown->post_state,
                            shown->segment.diverged && step + 1 == shown->segment.steps);
}

/* Where this player leads a claim, which is false: queries, evidence that convicts nobody, or
 * silence until its clock has run out. */
static void lead_claims(struct simulation *simulation, struct simulation_job *job,
                        enum simulation_player player)
{
    for (uint32_t i = 0; i < job->record.claim_count && job->queries; i++) {
        const struct job_record_claim *claim = &job->record.claims[i];
        struct virtual_evidence evidence = {'q', (uint8_t)claim->state.turns};
        struct game_subject subject = {.client = simulation->accounts[PLAYER_CLIENT],
                                       .salt = job->terms.salt,
                                       .step = claim->step,
                                       .pre_state = claim->pre_state,
                                       .post_state = claim->post_state};
        struct digest id;
        struct error error;
        char name[LEDGER_NAME_MAX];

        if (!job_record_claim_is_open(claim) || claim->state.phase != GAME_CLAIM_TRIED ||
            claim->state.turn != GAME_TURN_CLAIMANT ||
            !is(simulation, player, &claim->state.lead)) {
            continue;
        }
        error_init(&error);
        made_job(subject.job_header, &id, job->first);
        (void)snprintf(name, sizeof(name), "lead/%02x%02x/%u", claim->key.bytes[0],
                       claim->key.bytes[1], claim->state.turns);
        if (claim->state.turns % 3 == 2) {
            evidence.kind = 'c';
            forgive(ledger_convict(ledger_of(simulation, player), name, &claim->key, &subject,
                                   &evidence, sizeof(evidence), &error));
        } else {
            forgive(ledger_query(ledger_of(simulation, player), name, &claim->key, &subject,
                                 &evidence, sizeof(evidence), job->terms.query_fee, &error));
        }
    }
}

/* Seals a claim about a random step of what stands, and makes it later. */
static void slander(struct simulation *simulation, struct simulation_job *job)
{
    struct ledger *ledger = ledger_of(simulation, PLAYER_SLANDERER);
    const struct job_record *record = &job->record;
    struct hash32 salt = {{SALT}};
    struct game_case shown;
    struct hash32 segment;
    struct hash32 subject;
    struct error error;
    char name[LEDGER_NAME_MAX];
    uint32_t index;

    if (!job->slandered || record->state.phase != GAME_PHASE_RUNNING ||
        record->state.committed == record->state.finalized || !chance(simulation, 30)) {
        return;
    }
    error_init(&error);
    index = record->state.finalized;
    if (make_case(simulation, job, &shown, index, record->segments[index].committed.steps - 1)) {
        return; /* that would be true */
    }
    segment = game_segment_hash(&record->key, &shown.segment);
    subject = game_subject_hash(&segment, shown.step, &shown.pre_state, &shown.post_state);
    (void)snprintf(name, sizeof(name), "slander-seal/%02x%02x%02x", subject.bytes[0],
                   subject.bytes[1], subject.bytes[2]);
    forgive(ledger_seal_claim(ledger, name, &subject, &salt, &error));
    (void)snprintf(name, sizeof(name), "slander/%02x%02x%02x", subject.bytes[0], subject.bytes[1],
                   subject.bytes[2]);
    forgive(ledger_claim(ledger, name, &record->key, &shown, &salt, game_claim_bond(&job->terms, 0),
                         &error));
}

/* ---- a lying seat ------------------------------------------------------------------- */

static struct ledger_verdict verdict_of(const struct simulation *simulation,
                                        const struct simulation_job *job,
                                        const struct job_record_seat *seat)
{
    const struct game_segment *segment = &job->record.segments[seat->index].committed;
    const struct simulation_list *list = simulation_find_list(simulation, &segment->root);
    struct ledger_verdict verdict = {.job = job->record.key,
                                     .segment = *segment,
                                     .place = seat->place,
                                     .salt = {{SALT, (uint8_t)seat->place}}};

    switch (job->manner) {
    case MANNER_MADE_UP:
        verdict.verdict = GAME_VERDICT_RIGHT;
        verdict.leaves.tags[0][0] = 1;
        break;
    case MANNER_FALSE_ALARM:
        verdict.verdict = GAME_VERDICT_FALSE;
        verdict.step = list->steps - 1;
        break;
    case MANNER_ABSENT:
    case MANNER_UNSEEN:
    case SIMULATION_MANNERS:
        break;
    }
    return verdict;
}

static void say(struct simulation *simulation, const struct simulation_job *job,
                const struct job_record_seat *seat, uint64_t start_s)
{
    struct ledger *ledger = ledger_of(simulation, PLAYER_SEAT);
    struct ledger_verdict verdict = verdict_of(simulation, job, seat);
    const struct hash32 hash = seat->segment;
    bool sealing = now_s(simulation) <= start_s + SEAL_S;
    struct game_case shown;
    struct error error;
    char name[LEDGER_NAME_MAX];

    error_init(&error);
    (void)snprintf(name, sizeof(name), "%s/%02x%02x%02x/%u", sealing ? "seal" : "reveal",
                   hash.bytes[0], hash.bytes[1], hash.bytes[2], seat->place);
    if (sealing && seat->state.phase == GAME_SEAT_NONE && job->manner == MANNER_UNSEEN) {
        forgive(
            ledger_unseen(ledger, name, &job->record.key, &verdict.segment, seat->place, &error));
    } else if (sealing && seat->state.phase == GAME_SEAT_NONE) {
        forgive(ledger_seal(ledger, name, &verdict, &error));
    } else if (!sealing && seat->state.phase == GAME_SEAT_SEALED) {
        if (verdict.verdict == GAME_VERDICT_FALSE) {
            (void)make_case(simulation, job, &shown, seat->index, verdict.step);
            forgive(ledger_alarm(ledger, name, &verdict, &shown, &error));
        } else {
            forgive(ledger_reveal(ledger, name, &verdict, &error));
        }
    }
}

/* Does what it says count against states that nodes find right? */
static bool denies(const struct simulation_job *job)
{
    return (job->manner == MANNER_UNSEEN || job->manner == MANNER_MADE_UP) &&
           hash32_is_zero(&job->terms.verifiers);
}

static void play_seats(struct simulation *simulation, struct simulation_job *job)
{
    const struct job_record *record = &job->record;
    struct error error;
    char name[LEDGER_NAME_MAX];

    error_init(&error);
    if (record->state.phase == GAME_PHASE_OPEN && record->accepts == 0) {
        (void)snprintf(name, sizeof(name), "enlist/%" PRIu64, job->terms.salt);
        forgive(ledger_enlist(ledger_of(simulation, PLAYER_SEAT), name, &record->key, &job->terms,
                              denies(job) ? 1 : SEAT_ENTRIES, &no_path, &no_contact, &error));
    }
    for (uint32_t i = 0; i < record->seat_count && job->manner != MANNER_ABSENT; i++) {
        const struct job_record_seat *seat = &record->seats[i];

        if (seat->index < record->state.committed && is(simulation, PLAYER_SEAT, &seat->owner) &&
            seat->round == record->segments[seat->index].draw.round) {
            say(simulation, job, seat, record->segments[seat->index].draw.start_s);
        }
    }
    lead_claims(simulation, job, PLAYER_SEAT);
}

/* ---- solvers -------------------------------------------------------------------------- */

static void answer(struct simulation *simulation, enum simulation_player player,
                   const struct job_record_claim *claim)
{
    struct ledger *ledger = ledger_of(simulation, player);
    const uint8_t reply[2] = {0, claim->queried_size > 1 ? claim->queried[1] : 255};
    const struct game_bytes queried = {claim->queried, claim->queried_size};
    struct digest root = {{(uint8_t)player, claim->key.bytes[3], claim->key.bytes[4]}};
    struct error error;
    char name[LEDGER_NAME_MAX];

    error_init(&error);
    (void)snprintf(name, sizeof(name), "answer/%02x%02x%02x/%u", claim->key.bytes[0],
                   claim->key.bytes[1], claim->key.bytes[2], claim->state.turns);
    if (claim->state.phase == GAME_CLAIM_CALLED) {
        forgive(ledger_answer(ledger, name, &claim->key, &root, &error));
    } else if (claim->state.phase == GAME_CLAIM_TRIED && claim->queried_size > 0) {
        forgive(ledger_reply(ledger, name, &claim->key, &queried, reply, sizeof(reply), &error));
    }
}

static void commit(struct simulation *simulation, struct simulation_job *job,
                   enum simulation_player player)
{
    const struct job_record *record = &job->record;
    const uint32_t index = record->state.committed;
    const struct simulation_list *list;
    struct game_hashes states;
    struct error error;
    char name[LEDGER_NAME_MAX];
    bool diverged;

    if (index == record->state.segments || record->state.ended ||
        record->state.refused_until_s != 0 || now_s(simulation) > record->state.due_s ||
        (player == PLAYER_CHEAT && index >= job->vanishes)) {
        return;
    }
    list = make_list(simulation, &diverged, job, index, player == PLAYER_CHEAT);
    states = hashes_of(list);
    error_init(&error);
    (void)snprintf(name, sizeof(name), "commit/%" PRIu64 "/%u/%u/%02x/%d", job->terms.salt,
                   record->state.generation, index, list->root.bytes[0], diverged);
    forgive(ledger_commit(ledger_of(simulation, player), name, &record->key, index, &states,
                          diverged, &error));
}

static void play_solver(struct simulation *simulation, struct simulation_job *job,
                        enum simulation_player player)
{
    const struct job_record *record = &job->record;
    const bool wants = (player == PLAYER_CHEAT) == (job->is_cheated && record->accepts == 0);
    struct error error;
    char name[LEDGER_NAME_MAX];

    error_init(&error);
    if (record->state.phase == GAME_PHASE_OPEN && wants && !record->state.barred &&
        now_s(simulation) + SEGMENT_S < job->terms.deadline_s &&
        now_s(simulation) > record->state.opened_s + SEAL_S &&
        record->state.entries >= job->terms.panel_least &&
        record->state.entries >= job->terms.seats) {
        (void)snprintf(name, sizeof(name), "accept/%" PRIu64 "/%u", job->terms.salt,
                       record->accepts);
        forgive(ledger_accept(ledger_of(simulation, player), name, &record->key, &job->terms,
                              &no_path, &no_contact, &error));
    }
    if (record->state.phase == GAME_PHASE_RUNNING &&
        is(simulation, player, &record->state.solver)) {
        commit(simulation, job, player);
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        const struct job_record_claim *claim = &record->claims[i];

        if (job_record_claim_is_open(claim) && claim->state.turn == GAME_TURN_ACCUSED &&
            claim->state.deadline_s > 0 && is(simulation, player, &claim->solver) &&
            (player == PLAYER_HONEST || job->answers)) {
            answer(simulation, player, claim);
        }
    }
}

/* ---- the client, and anybody --------------------------------------------------------- */

static void play_client(struct simulation *simulation, struct simulation_job *job)
{
    struct ledger *ledger = ledger_of(simulation, PLAYER_CLIENT);
    const struct job_record *record = &job->record;
    struct hash32 key;
    struct error error;
    char name[LEDGER_NAME_MAX];

    error_init(&error);
    if (record->state.phase == GAME_PHASE_NONE && simulation->now_ms >= job->opens_ms) {
        (void)snprintf(name, sizeof(name), "open/%" PRIu64, job->terms.salt);
        if (job->terms.deadline_s == 0) {
            job->terms.deadline_s = now_s(simulation) + DEADLINE_S;
        }
        forgive(ledger_open_job(ledger, name, &key, &job->terms, &no_contact, &error));
    }
    if (record->state.phase == GAME_PHASE_OPEN && record->state.barred) {
        (void)snprintf(name, sizeof(name), "resume/%" PRIu64 "/%u", job->terms.salt,
                       record->state.generation);
        forgive(ledger_resume(ledger, name, &record->key,
                              record->state.missing_escrow + record->state.missing_pool, &error));
    }
    if (record->state.phase == GAME_PHASE_OPEN && job->closes && record->accepts > 0) {
        (void)snprintf(name, sizeof(name), "close/%" PRIu64, job->terms.salt);
        forgive(ledger_close_job(ledger, name, &record->key, &error));
    }
    if (record->state.phase == GAME_PHASE_RUNNING && job->stops && record->state.committed == 1) {
        (void)snprintf(name, sizeof(name), "stop/%" PRIu64 "/%u", job->terms.salt,
                       record->state.generation);
        forgive(ledger_stop(ledger, name, &record->key, &error));
    }
    if (record->state.phase == GAME_PHASE_RUNNING && job->refuses &&
        record->state.generation == 0 && record->state.committed > record->state.finalized) {
        (void)snprintf(name, sizeof(name), "refuse/%" PRIu64, job->terms.salt);
        forgive(ledger_refuse(ledger, name, &record->key, &error));
    }
}

static void play_anybody(struct simulation *simulation, struct simulation_job *job)
{
    struct ledger *ledger = ledger_of(simulation, PLAYER_SEAT);
    struct ledger_clock clock;
    struct due_move move;
    struct error error;
    char name[LEDGER_NAME_MAX];

    error_init(&error);
    if (ledger_get_clock(ledger, &clock, &error) == STATUS_OK &&
        due_move_next(&move, &job->record, &clock, &simulation->accounts[PLAYER_SEAT])) {
        simulation_show(simulation, "job %" PRIu64 ": anybody makes the move %s", job->terms.salt,
                        due_move_name(move.kind));
        forgive(due_submit(name, ledger, &job->record, &move, &error));
    }
}

/* Nobody but the nodes looks after time in a life that is forsaken, until it is long over. What is
 * the seats' own is collected in any. */
static bool makes_moves(struct simulation *simulation, const struct simulation_job *job)
{
    return job->record.state.phase == GAME_PHASE_CLOSED ||
           (job->terms.deadline_s > 0 && now_s(simulation) > job->terms.deadline_s) ||
           (!simulation->forsaken && chance(simulation, 40));
}

static void follow(struct simulation *simulation, struct simulation_job *job)
{
    struct error error;

    error_init(&error);
    if (job_record_follow(&job->record, ledger_of(simulation, PLAYER_SEAT), &error) != STATUS_OK) {
        simulation_wrong(simulation, "the record of a job: %s", error.text);
    }
}

static bool is_withheld(const struct simulation *simulation)
{
    const struct simulation_job *job = &simulation->jobs[0];

    return job->withholds && job->record.state.phase == GAME_PHASE_RUNNING &&
           is(simulation, PLAYER_CHEAT, &job->record.state.solver);
}

void simulation_play(struct simulation *simulation)
{
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < SIMULATION_PLAYERS; i++) {
        forgive(ledger_work(&simulation->players[i].ledger, &error));
    }
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        struct simulation_job *job = &simulation->jobs[i];

        follow(simulation, job);
        play_client(simulation, job);
        play_solver(simulation, job, PLAYER_HONEST);
        play_solver(simulation, job, PLAYER_CHEAT);
        play_seats(simulation, job);
        slander(simulation, job);
        lead_claims(simulation, job, PLAYER_SLANDERER);
        if (makes_moves(simulation, job)) {
            play_anybody(simulation, job);
        }
    }
    simulation->withheld = is_withheld(simulation);
}

static bool job_waits_for(char what[SIMULATION_WAIT_MAX], const struct job_record *record)
{
    for (uint32_t i = 0; i < record->state.entries; i++) {
        if (!record->entries[i].gone) {
            (void)snprintf(what, SIMULATION_WAIT_MAX, "entry %u of %02x%02x is not gone", i,
                           record->entries[i].owner.bytes[0], record->entries[i].owner.bytes[1]);
            return true;
        }
    }
    for (uint32_t i = 0; i < record->claim_count; i++) {
        if (job_record_claim_is_open(&record->claims[i])) {
            (void)snprintf(what, SIMULATION_WAIT_MAX, "claim %u is open", i);
            return true;
        }
    }
    (void)snprintf(what, SIMULATION_WAIT_MAX, "%s",
                   record->state.phase != GAME_PHASE_CLOSED ? "it is not closed"
                                                            : "a pot is not paid");
    return record->state.phase != GAME_PHASE_CLOSED || record->state.unpaid != UINT32_MAX;
}

bool simulation_waits_for(char what[SIMULATION_WAIT_MAX], const struct simulation *simulation)
{
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        if (job_waits_for(what, &simulation->jobs[i].record)) {
            return true;
        }
    }
    (void)snprintf(what, SIMULATION_WAIT_MAX, "the ledger holds money for somebody");
    return simulation_held(simulation) > 0; /* bonds of before */
}

/* ---- jobs ------------------------------------------------------------------------------ */

/* No node is on the panel: a node that looks at everything finds the lie, and claims as an
 * outsider. */
static bool is_captured(const struct simulation *simulation, uint32_t number)
{
    return simulation->captured && number == 0;
}

/* A lie that all can see, told to the end. */
static void make_sure_of_lie(struct simulation *simulation, struct simulation_job *job)
{
    job->is_cheated = job->answers = job->closes = true;
    job->lie = (uint32_t)below(simulation, job->terms.segment_steps);
    job->fraud = FRAUD_STATE;
    job->vanishes = SIMULATION_SEGMENTS;
}

static void invent_terms(struct simulation *simulation, struct simulation_job *job, uint32_t number)
{
    const uint32_t length = 1 + (uint32_t)below(simulation, SIMULATION_STEPS);

    job->terms = (struct game_terms){
        .salt = number + 1,
        .steps = (uint64_t)length * SIMULATION_SEGMENTS - below(simulation, length),
        .segment_steps = length,
        .reward = WEI_PER_ETHER,
        .fee = WEI_PER_ETHER / 10,
        .stake = 20 * WEI_PER_ETHER,
        .bond = WEI_PER_ETHER,
        .query_fee = WEI_PER_ETHER / 1000,
        .seats = 1 + (uint32_t)below(simulation, 2),
        .coverage_ppm = chance(simulation, 60) ? GAME_PPM : GAME_PPM / 2,
        .panel_least = 2,
        .segment_period_s = SEGMENT_S,
        .seal_period_s = SEAL_S,
        .reveal_period_s = REVEAL_S,
        .claim_period_s = CLAIM_S,
        .clock_s = CLOCK_S,
    };
    if (chance(simulation, 40)) { /* it diverges, in one of its steps */
        job->first = VIRTUAL_NOT_FINITE - 1 - (uint32_t)below(simulation, job->terms.steps);
    }
    made_job_terms(&job->terms, job->first);
    if (is_captured(simulation, number)) {
        allow_list_root(&job->terms.verifiers, &simulation->accounts[PLAYER_SEAT], 1);
    } else if (simulation->hidden) {
        job->terms.coverage_ppm = GAME_PPM;
    } else if (chance(simulation, 20)) { /* nobody is drawn */
        job->terms.seats = job->terms.coverage_ppm = job->terms.panel_least = 0;
    }
}

void simulation_invent_jobs(struct simulation *simulation)
{
    simulation->job_count =
        simulation->hidden ? 1 : 1 + (uint32_t)below(simulation, SIMULATION_JOBS);
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        struct simulation_job *job = &simulation->jobs[i];
        struct digest id;
        uint8_t header[GAME_JOB_HEADER_SIZE];
        struct hash32 key;

        invent_terms(simulation, job, i);
        made_job(header, &id, job->first);
        key = game_job_key(&virtual_place, &simulation->accounts[PLAYER_CLIENT], &id,
                           job->terms.salt);
        job_record_init(&job->record, &key, &simulation->accounts[PLAYER_SEAT]);
        job->opens_ms = simulation->now_ms + below(simulation, 600000);
        job->is_cheated = simulation->hidden || chance(simulation, 60);
        job->lie =
            chance(simulation, 85) ? (uint32_t)below(simulation, job->terms.steps) : UINT32_MAX;
        job->fraud = (enum simulation_fraud)below(simulation, SIMULATION_FRAUDS);
        job->vanishes = simulation->hidden || chance(simulation, 75)
                            ? SIMULATION_SEGMENTS
                            : (uint32_t)below(simulation, SIMULATION_SEGMENTS);
        job->answers = chance(simulation, 60);
        job->withholds = simulation->hidden;
        job->stops = chance(simulation, 20);
        job->refuses = !simulation->hidden && chance(simulation, 15);
        job->manner = (enum simulation_manner)below(simulation, SIMULATION_MANNERS);
        job->slandered = chance(simulation, 50);
        job->queries = chance(simulation, 50);
        if (is_captured(simulation, i)) {
            make_sure_of_lie(simulation, job);
        }
        if (denies(job) && job->terms.seats > 0) {
            job->terms.panel_least = DENIED_PANEL;
        }
    }
}
