/* simulation_judge.c - what must hold: see simulation.h. */
#include <assert.h>
#include <string.h>

#include "tests/support/node/simulation.h"
#include "tests/support/test.h"
#include "verifier/status/node_views.h"

/* Seconds of calm within which the node keeps its promises. */
enum {
    CLAIM_ROOM_S = 300,  /* from a commit to a claim */
    ATTEST_ROOM_S = 140, /* and to an attestation: less than the shortest time to attest */
    REVEAL_ROOM_S = 110, /* from the end of attesting to a reveal */
    TURN_ROOM_S = 120,   /* from the other's move, or the end of its time, to ours */
    SETTLE_ROOM_S = 150,
};

static const struct address *own(const struct simulation *simulation)
{
    return &simulation->accounts[SIMULATION_NODE];
}

/* ---- times ---------------------------------------------------------------------- */

static uint64_t attest_end(const struct simulation *simulation,
                           const struct simulation_segment *segment)
{
    return segment->round_s + simulation->jobs[segment->job].terms.attest_period_s;
}

/* ---- what the node says --------------------------------------------------------- */

/* Any segment that was ever committed with this hash: content and job are part of it. */
static const struct simulation_segment *segment_of(const struct simulation *simulation,
                                                   const struct hash32 *hash)
{
    for (uint32_t i = 0; i < simulation->view.segment_count; i++) {
        if (hash32_equal(&simulation->view.segments[i].hash, hash)) {
            return &simulation->view.segments[i];
        }
    }
    return NULL;
}

static void keep_statement(struct simulation *simulation, const char *name,
                           const struct game_move *move, const struct hash32 *about,
                           const struct verdict_db_entry *entry)
{
    struct simulation_statement *kept;

    for (uint32_t i = 0; i < simulation->statement_count; i++) {
        kept = &simulation->statements[i];
        /* A reorganization may draw another step of the same segment, which is attested, too. */
        if (kept->kind == move->kind && hash32_equal(&kept->about, about) &&
            (kept->entry.step == entry->step || simulation->chain->forks == 0)) {
            if (strcmp(kept->name, name) != 0) {
                simulation_wrong(simulation, "%s is said twice: %s", kept->name, name);
            }
            return;
        }
    }
    assert(simulation->statement_count < SIMULATION_STATEMENTS_MAX);
    kept = &simulation->statements[simulation->statement_count++];
    (void)snprintf(kept->name, sizeof(kept->name), "%s", name);
    kept->kind = move->kind;
    kept->about = *about;
    kept->entry = *entry;
}

static void judge_entry(struct simulation *simulation, const struct verdict_db_entry *entry,
                        const char *name)
{
    struct verdict_db_entry found = *entry;
    struct error error;

    error_init(&error);
    if (simulation->fate.dead) {
        return; /* nobody can read the book of the dead */
    }
    if (verdict_db_find(&found, simulation->verdicts, &error) != STATUS_OK ||
        found.verdict != entry->verdict || !digest_equal(&found.trace_root, &entry->trace_root) ||
        !digest_equal(&found.pre_state, &entry->pre_state) ||
        !digest_equal(&found.post_state, &entry->post_state)) {
        simulation_wrong(simulation, "%s is not in the book: %s", name, error.text);
    }
}

void simulation_judge_book(struct simulation *simulation)
{
    for (uint32_t i = 0; i < simulation->statement_count; i++) {
        judge_entry(simulation, &simulation->statements[i].entry, simulation->statements[i].name);
    }
}

static struct verdict_db_entry entry_of(const struct simulation *simulation,
                                        const struct hash32 *job,
                                        const struct virtual_segment *truth)
{
    struct verdict_db_entry entry;

    memset(&entry, 0, sizeof(entry));
    entry.place = simulation->ledger.ledger.place;
    entry.job = *job;
    entry.segment = truth->index;
    entry.before = truth->before;
    entry.root = truth->root;
    return entry;
}

static const struct virtual_segment *truth_of(const struct simulation *simulation,
                                              const struct game_move *move)
{
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        if (hash32_equal(&simulation->jobs[i].key, &move->key)) {
            return virtual_checks_find(&simulation->checks, &simulation->jobs[i].terms.job_id,
                                       &move->segment.root);
        }
    }
    return NULL;
}

static void judge_attest(struct simulation *simulation, const char *name,
                         const struct game_move *move)
{
    const struct virtual_segment *truth = truth_of(simulation, move);
    struct hash32 hash = game_segment_hash(&move->key, &move->segment);
    struct verdict_db_entry entry;

    if (truth == NULL) {
        simulation_wrong(simulation, "%s is about nothing that was committed", name);
        return;
    }
    entry = entry_of(simulation, &move->key, truth);
    entry.verdict = VERDICT_DB_PROVEN;
    for (entry.step = 0; entry.step < truth->steps; entry.step++) {
        struct hash32 seal;

        entry.trace_root =
            virtual_trace_root(&truth->job_id, virtual_state_before(truth, entry.step));
        seal = game_attest_seal(own(simulation), &hash, &entry.trace_root);
        if (hash32_equal(&seal, &move->seal)) {
            break;
        }
    }
    if (entry.step == truth->steps || truth->lie != VIRTUAL_TRUE) {
        simulation_wrong(simulation, "%s is false", name);
        return;
    }
    judge_entry(simulation, &entry, name);
    keep_statement(simulation, name, move, &hash, &entry);
}

/* What is revealed is true of the step that the chain has drawn, not of any step. */
static void judge_reveal(struct simulation *simulation, const char *name,
                         const struct game_move *move)
{
    struct hash32 hash = game_segment_hash(&move->key, &move->segment);
    const struct ledger_backend *backend = simulation->ledger.ledger.backend;
    const struct simulation_segment *segment;
    struct digest root;
    struct error error;
    bool behind = false;

    if (backend->behind(&simulation->ledger, &behind, &error) != STATUS_OK || behind) {
        return; /* it cannot know yet what the chain has drawn */
    }
    simulation_look(simulation);
    segment = segment_of(simulation, &hash);
    if (segment == NULL || segment->mine == STORE_MINE_NOT) {
        return; /* a reorganization took it away: the rules refuse it */
    }
    root = virtual_trace_root(&segment->truth->job_id,
                              virtual_state_before(segment->truth, segment->mine_step));
    if (!digest_equal(&root, &move->root)) {
        simulation_wrong(simulation, "%s is false of the step that was drawn", name);
    }
    if (segment->stands && !segment->mine_lost &&
        virtual_chain_time(simulation->chain) <= attest_end(simulation, segment)) {
        simulation_wrong(simulation, "%s lets others attest who did not replay", name);
    }
}

static void judge_claim(struct simulation *simulation, const char *name,
                        const struct game_move *move)
{
    const struct virtual_segment *truth = truth_of(simulation, move);
    struct hash32 hash = game_segment_hash(&move->key, &move->segment);
    struct verdict_db_entry entry;
    struct hash32 key;

    if (truth == NULL || move->steps != truth->lie ||
        !digest_equal(&move->pre_state, virtual_state_before(truth, truth->lie)) ||
        !digest_equal(&move->post_state, &truth->states[truth->lie])) {
        simulation_wrong(simulation, "%s is false", name);
        return;
    }
    entry = entry_of(simulation, &move->key, truth);
    entry.verdict = VERDICT_DB_REFUTED;
    entry.step = truth->lie;
    entry.pre_state = move->pre_state;
    entry.post_state = move->post_state;
    key = game_claim_key(own(simulation), &hash, move->steps, &move->pre_state, &move->post_state);
    judge_entry(simulation, &entry, name);
    keep_statement(simulation, name, move, &key, &entry);
}

/* The reveal that an accusation is about, if it is false. */
static const struct simulation_reveal *false_reveal(const struct simulation *simulation,
                                                    const struct hash32 *accusation)
{
    for (uint32_t i = 0; i < simulation->view.reveal_count; i++) {
        const struct simulation_reveal *reveal = &simulation->view.reveals[i];
        struct hash32 key = game_accusation_key(
            own(simulation), &simulation->view.segments[reveal->segment].hash, &reveal->attestor);

        if (reveal->false_one && hash32_equal(&key, accusation)) {
            return reveal;
        }
    }
    return NULL;
}

/* Who is called a liar must be one, and the book must hold what is true of its step. */
static void judge_accusation(struct simulation *simulation, const char *name,
                             const struct simulation_reveal *reveal)
{
    const struct simulation_segment *segment = &simulation->view.segments[reveal->segment];
    struct verdict_db_entry entry =
        entry_of(simulation, &simulation->jobs[segment->job].key, segment->truth);

    entry.verdict = VERDICT_DB_PROVEN;
    entry.step = game_sampled_step(&segment->seed, &reveal->attestor, segment->committed.steps);
    entry.trace_root = virtual_trace_root(&segment->truth->job_id,
                                          virtual_state_before(segment->truth, entry.step));
    judge_entry(simulation, &entry, name);
}

static void judge_accuse(struct simulation *simulation, const char *name,
                         const struct game_move *move)
{
    struct hash32 hash = game_segment_hash(&move->key, &move->segment);
    struct hash32 key = game_accusation_key(own(simulation), &hash, &move->account);
    const struct simulation_reveal *reveal;

    simulation_look(simulation);
    reveal = false_reveal(simulation, &key);
    if (reveal != NULL) {
        judge_accusation(simulation, name, reveal);
    } else if (simulation->view.forks == 0) {
        simulation_wrong(simulation, "%s accuses who told the truth", name);
    }
}

static bool seals_an_accusation(struct simulation *simulation, const char *name)
{
    for (uint32_t i = 0; i < simulation->view.reveal_count; i++) {
        const struct simulation_reveal *reveal = &simulation->view.reveals[i];
        char expected[LEDGER_NAME_MAX + 1];
        struct hash32 key = game_accusation_key(
            own(simulation), &simulation->view.segments[reveal->segment].hash, &reveal->attestor);

        action_name(expected, ACTION_SEAL, &key);
        if (reveal->false_one && strcmp(name, expected) == 0) {
            judge_accusation(simulation, name, reveal);
            return true;
        }
    }
    return false;
}

/* A seal says nothing, but whose key stands in its name must be true, and in the book. */
static void judge_seal(struct simulation *simulation, const char *name)
{
    simulation_look(simulation);
    if (seals_an_accusation(simulation, name)) {
        return;
    }
    for (uint32_t i = 0; i < simulation->view.segment_count; i++) {
        const struct simulation_segment *segment = &simulation->view.segments[i];
        const struct virtual_segment *truth = segment->truth;
        char expected[LEDGER_NAME_MAX + 1];
        struct hash32 key;

        if (truth->lie == VIRTUAL_TRUE) {
            continue;
        }
        key = game_claim_key(own(simulation), &segment->hash, truth->lie,
                             virtual_state_before(truth, truth->lie), &truth->states[truth->lie]);
        action_name(expected, ACTION_SEAL, &key);
        if (strcmp(name, expected) == 0) {
            struct verdict_db_entry entry =
                entry_of(simulation, &simulation->jobs[segment->job].key, truth);

            entry.verdict = VERDICT_DB_REFUTED;
            entry.step = truth->lie;
            entry.pre_state = *virtual_state_before(truth, truth->lie);
            entry.post_state = truth->states[truth->lie];
            judge_entry(simulation, &entry, name);
            return;
        }
    }
    if (simulation->view.forks == 0) {
        simulation_wrong(simulation, "%s seals a claim of nothing that is false", name);
    }
}

static bool is_statement(enum game_move_kind kind)
{
    return kind == GAME_ATTEST || kind == GAME_SEAL_CLAIM || kind == GAME_CLAIM ||
           kind == GAME_ACCUSE;
}

/* In a storm the node may not have heard of it yet. */
static void judge_settle(struct simulation *simulation, const char *name,
                         const struct game_move *move)
{
    struct hash32 hash = game_segment_hash(&move->key, &move->segment);
    const struct simulation_segment *segment = segment_of(simulation, &hash);

    if (segment != NULL && segment->mine == STORE_MINE_SETTLED && !simulation->storm) {
        simulation_wrong(simulation, "%s, though nothing is left of it", name);
    }
}

/* It does its work again, though all that happened in the storm before. */
static void count_recovery(struct simulation *simulation, enum game_move_kind kind)
{
    for (int i = 0; i < SIMULATION_TROUBLES; i++) {
        simulation->result->recovered[i] +=
            !simulation->storm && is_statement(kind) && simulation->troubles[i];
    }
}

void simulation_submitted(void *context, const char *name, const struct game_move *move, bool again)
{
    struct simulation *simulation = context;
    bool attests = move->kind == GAME_ATTEST || move->kind == GAME_REVEAL;

    simulation_show(simulation, "node: %s%s", name, again ? " (again)" : "");
    if (simulation->options.mode == NODE_OBSERVE ||
        (attests && simulation->options.mode == NODE_DEFEND)) {
        simulation_wrong(simulation, "%s is not for this mode", name);
    }
    if (is_statement(move->kind) && simulation->fault) {
        simulation_wrong(simulation, "%s after a fault of the machine", name);
    }
    simulation->result->queried += game_move_is_of_referee(move->kind);
    simulation->result->tended += move->kind == GAME_FINALIZE || move->kind == GAME_EXPIRE;
    count_recovery(simulation, move->kind);
    switch ((int)move->kind) {
    case GAME_ATTEST:
        judge_attest(simulation, name, move);
        break;
    case GAME_REVEAL:
        judge_reveal(simulation, name, move);
        break;
    case GAME_SEAL_CLAIM:
        judge_seal(simulation, name);
        break;
    case GAME_CLAIM:
        judge_claim(simulation, name, move);
        break;
    case GAME_ACCUSE:
        judge_accuse(simulation, name, move);
        break;
    case GAME_SETTLE:
        judge_settle(simulation, name, move);
        break;
    default:
        break;
    }
}

void simulation_contradicted(void *context, const char *name)
{
    struct simulation *simulation = context;

    if (!simulation->verdict_db_was_lost) {
        simulation_wrong(simulation, "%s is submitted with another content", name);
    }
}

bool simulation_guilty(void *context, const struct game_case *shown,
                       const struct local_claim *claim)
{
    const struct simulation *simulation = context;
    const struct game_move move = {.key = claim->job, .segment = shown->segment};
    const struct virtual_segment *truth = truth_of(simulation, &move);
    struct local_attestation attestation;
    struct digest root;

    if (truth == NULL || shown->step >= truth->steps ||
        !digest_equal(&shown->pre_state, virtual_state_before(truth, shown->step)) ||
        !digest_equal(&shown->post_state, &truth->states[shown->step])) {
        return false;
    }
    if (address_is_zero(&claim->attestor)) {
        return shown->step == truth->lie;
    }
    if (local_get_attestation(&simulation->chain->store, &attestation, &claim->segment,
                              &claim->attestor) != STATUS_OK) {
        return false;
    }
    root = virtual_trace_root(&truth->job_id, virtual_state_before(truth, shown->step));
    return memcmp(attestation.value.bytes, root.bytes, DIGEST_SIZE) != 0;
}

/* Whichever of the two files was lost: what disagreed is told by the other, and then by both. */
static void judge_evidence(struct simulation *simulation)
{
    char in_store[STORE_REASON_MAX] = "";
    char in_book[VERDICT_DB_FAULT_MAX] = "";
    struct error error;

    error_init(&error);
    if (store_text(&simulation->store, in_store, "fault", &error) != STATUS_OK ||
        verdict_db_fault(simulation->verdicts, in_book, &error) != STATUS_OK) {
        simulation_wrong(simulation, "the evidence of a fault cannot be read: %s", error.text);
    } else if (strstr(in_store, "two replays disagree") == NULL ||
               strstr(in_book, "two replays disagree") == NULL) {
        simulation_wrong(simulation, "the evidence of a fault is lost: '%s', '%s'", in_store,
                         in_book);
    }
}

void simulation_judge_fault(struct simulation *simulation)
{
    bool stands = simulation->node.fault;

    if (!stands && (simulation->fault_in_store || simulation->fault_in_book)) {
        simulation_wrong(simulation, "the fault of the machine is forgotten");
    }
    if (stands && simulation->result->faults == 0) {
        simulation_wrong(simulation, "a fault of the machine that no child told of");
    }
    if (stands) {
        judge_evidence(simulation);
    }
    simulation->fault = stands;
}

/* ---- what the node must do ---------------------------------------------------------- */

static uint64_t reveal_end(const struct simulation *simulation,
                           const struct simulation_segment *segment)
{
    return attest_end(simulation, segment) + simulation->jobs[segment->job].terms.reveal_period_s;
}

static uint64_t claim_end(const struct simulation *simulation,
                          const struct simulation_segment *segment)
{
    return reveal_end(simulation, segment) + simulation->jobs[segment->job].terms.claim_period_s;
}

/* Is it younger than the book? Of what was committed before a book was lost the node may have said
 * what it does not know any more, and to say nothing more about it is all that it can do. */
static bool is_remembered(const struct simulation *simulation,
                          const struct simulation_segment *segment)
{
    return !simulation->verdict_db_was_lost ||
           segment->committed.time_s > simulation->verdict_db_lost_s;
}

/* Was there calm, with data, for that long since a moment? */
static bool had_room(const struct simulation *simulation, const struct simulation_segment *segment,
                     uint64_t since_s, uint64_t room_s)
{
    const struct simulation_job *job = &simulation->jobs[segment->job];
    uint64_t begin_s = since_s;

    begin_s = simulation->calm_since_s > begin_s ? simulation->calm_since_s : begin_s;
    begin_s = job->data_since_s > begin_s ? job->data_since_s : begin_s;
    return !simulation->storm && !job->withheld && !job->poisoned && !job->unknown &&
           is_remembered(simulation, segment) &&
           virtual_chain_time(simulation->chain) >= begin_s + room_s;
}

static int64_t number_of(struct simulation *simulation, const char *query,
                         const struct simulation_segment *segment)
{
    int64_t number = 0;
    struct error error;

    error_init(&error);
    if (database_number(
            &simulation->store.sql, &number, 0, &error, query, "bib",
            &(struct database_blob){simulation->jobs[segment->job].key.bytes, HASH32_SIZE},
            (int64_t)segment->committed.index,
            &(struct database_blob){segment->committed.root.bytes, DIGEST_SIZE}) != STATUS_OK) {
        simulation_wrong(simulation, "the store cannot be read: %s", error.text);
    }
    return number;
}

static bool is_sampled(struct simulation *simulation, const struct simulation_segment *segment)
{
    return simulation->options.extra >= 1 ||
           number_of(simulation,
                     "SELECT count(*) FROM segments WHERE job = ? AND idx = ? AND root = ? AND"
                     " NOT void AND choice IN (1, 2, 4)",
                     segment) > 0;
}

/* Also by a claim that was lost in a storm: the ledger takes none a second time. */
static bool job_is_claimed(const struct simulation *simulation, uint32_t job, uint32_t generation)
{
    for (uint32_t i = 0; i < simulation->view.claim_count; i++) {
        const struct simulation_claim *claim = &simulation->view.claims[i];
        const struct simulation_segment *segment = &simulation->view.segments[claim->segment];

        if (claim->ours && address_is_zero(&claim->attestor) && segment->job == job &&
            segment->generation == generation) {
            return true;
        }
    }
    return false;
}

/* Every sample is checked, whatever other jobs do; what is false is claimed. */
static void judge_sample(struct simulation *simulation, const struct simulation_segment *segment)
{
    uint64_t now_s = virtual_chain_time(simulation->chain);

    /* What was attested was checked, though the node may have forgotten it. */
    if (!segment->stands || segment->final || segment->mine != STORE_MINE_NOT ||
        now_s > claim_end(simulation, segment) ||
        !had_room(simulation, segment, segment->round_s, CLAIM_ROOM_S) ||
        job_is_claimed(simulation, segment->job, segment->generation) ||
        !is_sampled(simulation, segment)) {
        return;
    }
    simulation->result->promises++;
    if (number_of(simulation,
                  "SELECT count(*) FROM tasks WHERE job = ? AND idx = ? AND root = ? AND"
                  " outcome IN (1, 2)",
                  segment) == 0) {
        simulation_wrong(simulation, "segment %u of job %u is not checked",
                         segment->committed.index, segment->job);
    } else if (segment->truth->lie != VIRTUAL_TRUE && simulation->options.mode != NODE_OBSERVE) {
        simulation_wrong(simulation, "the lie in segment %u of job %u is not claimed",
                         segment->committed.index, segment->job);
    }
}

static void judge_attesting(struct simulation *simulation, const struct simulation_segment *segment)
{
    uint64_t now_s = virtual_chain_time(simulation->chain);
    const struct simulation_job *job = &simulation->jobs[segment->job];
    uint64_t begin_s = segment->round_s;

    if (simulation->options.mode != NODE_ACT || simulation->options.share < 1 || !segment->stands ||
        segment->final || segment->mine != STORE_MINE_NOT || segment->truth->lie != VIRTUAL_TRUE ||
        segment->attested + segment->revealed >= job->terms.attestors ||
        now_s > attest_end(simulation, segment) ||
        !had_room(simulation, segment, begin_s, ATTEST_ROOM_S) ||
        job_is_claimed(simulation, segment->job, segment->generation)) {
        return;
    }
    simulation->result->promises++;
    simulation_wrong(simulation, "segment %u of job %u is not attested", segment->committed.index,
                     segment->job);
}

/* Of the step that the chain has drawn: a seal of another one, drawn before a reorganization, may
 * have come first, and can be revealed no more. */
static bool can_be_revealed(const struct simulation *simulation,
                            const struct simulation_segment *segment)
{
    struct digest root = virtual_trace_root(
        &segment->truth->job_id, virtual_state_before(segment->truth, segment->mine_step));
    struct hash32 seal = game_attest_seal(own(simulation), &segment->hash, &root);

    return segment->mine == STORE_MINE_SEALED && !segment->mine_lost &&
           hash32_equal(&seal, &segment->mine_seal);
}

static void judge_seals(struct simulation *simulation, const struct simulation_segment *segment)
{
    uint64_t now_s = virtual_chain_time(simulation->chain);

    if (segment->stands && can_be_revealed(simulation, segment) &&
        now_s > attest_end(simulation, segment) && now_s <= reveal_end(simulation, segment) &&
        simulation->options.mode == NODE_ACT &&
        had_room(simulation, segment, attest_end(simulation, segment), REVEAL_ROOM_S)) {
        simulation_wrong(simulation, "the seal of segment %u of job %u is not revealed",
                         segment->committed.index, segment->job);
    }
    if (segment->ended_s != 0 && simulation->options.mode != NODE_OBSERVE &&
        (segment->mine == STORE_MINE_REVEALED ||
         (segment->mine == STORE_MINE_SEALED && !segment->stands)) &&
        had_room(simulation, segment, segment->ended_s, SETTLE_ROOM_S)) {
        simulation_wrong(simulation, "the attestation of segment %u of job %u is not settled",
                         segment->committed.index, segment->job);
    }
}

static void judge_claims(struct simulation *simulation, const struct simulation_claim *claim)
{
    const struct simulation_segment *segment = &simulation->view.segments[claim->segment];
    enum game_turn our_turn = claim->ours ? GAME_TURN_CLAIMANT : GAME_TURN_ACCUSED;
    uint64_t now_s = virtual_chain_time(simulation->chain);
    uint64_t since_s = claim->turned_s;

    if ((!claim->ours && !claim->against_us) || claim->phase == GAME_CLAIM_CLOSED) {
        return;
    }
    if (!segment->stands) {
        if (claim->against_us) {
            return; /* the claimant's bond lies there, not ours */
        }
        since_s = segment->ended_s;
    } else if (claim->turn != our_turn) {
        since_s = claim->deadline_s;
    } else if (now_s > claim->deadline_s || simulation->checks.barren) {
        return; /* too late for us: it was judged before, if there was room */
    }
    if (now_s >= since_s && had_room(simulation, segment, since_s, TURN_ROOM_S)) {
        simulation_wrong(simulation, "a claim on segment %u of job %u is left lying%s",
                         segment->committed.index, segment->job,
                         !segment->stands          ? ", though it is void"
                         : claim->turn != our_turn ? ", though the other is late"
                                                   : " in the node's turn");
    }
}

static bool is_accused(const struct simulation *simulation, const struct simulation_reveal *reveal)
{
    for (uint32_t i = 0; i < simulation->view.claim_count; i++) {
        const struct simulation_claim *claim = &simulation->view.claims[i];

        if (claim->ours && claim->segment == reveal->segment &&
            address_equal(&claim->attestor, &reveal->attestor)) {
            return true;
        }
    }
    return false;
}

/* A false attestation of a segment that is not false itself. */
static void judge_reveals(struct simulation *simulation, const struct simulation_reveal *reveal)
{
    const struct simulation_segment *segment = &simulation->view.segments[reveal->segment];

    if (simulation->options.mode == NODE_OBSERVE || simulation->options.audit_share < 1 ||
        simulation->checks.barren || !reveal->false_one || !reveal->stands || !segment->stands ||
        segment->final || segment->truth->lie != VIRTUAL_TRUE ||
        virtual_chain_time(simulation->chain) > claim_end(simulation, segment) ||
        job_is_claimed(simulation, segment->job, segment->generation) ||
        is_accused(simulation, reveal) ||
        !had_room(simulation, segment, reveal->time_s, CLAIM_ROOM_S)) {
        return;
    }
    simulation_wrong(simulation, "a false attestation of segment %u of job %u is not accused",
                     segment->committed.index, segment->job);
}

void simulation_judge(struct simulation *simulation)
{
    simulation_look(simulation);
    if (!simulation->up || simulation->storm) {
        return;
    }
    /* Without children nothing can be found out; what is known is said all the same. */
    for (uint32_t i = 0; i < simulation->view.segment_count; i++) {
        const struct simulation_segment *segment = &simulation->view.segments[i];

        if (!simulation->fault && !simulation->checks.barren) {
            judge_sample(simulation, segment);
            judge_attesting(simulation, segment);
        }
        judge_seals(simulation, segment);
    }
    for (uint32_t i = 0; i < simulation->job_count; i++) {
        simulation_judge_waiting(simulation, i);
    }
    for (uint32_t i = 0; i < simulation->view.claim_count; i++) {
        judge_claims(simulation, &simulation->view.claims[i]);
    }
    for (uint32_t i = 0; i < simulation->view.reveal_count && !simulation->fault; i++) {
        judge_reveals(simulation, &simulation->view.reveals[i]);
    }
}

/* ---- in the end ----------------------------------------------------------------------- */

static wei sum_of(const json_t *sums, const char *kind)
{
    const char *text = json_string_value(json_object_get(sums, kind));
    wei sum = 0;

    if (text != NULL && wei_parse(&sum, text) != STATUS_OK) {
        sum = 0;
    }
    return sum;
}

/* What the node says that it got is what the ledger has credited it with. */
static void judge_money(struct simulation *simulation)
{
    struct local_account account;
    struct error error;
    json_t *view = NULL;
    wei earned;
    wei withdrawn;

    error_init(&error);
    if (node_status_view(&view, &simulation->store, &error) != STATUS_OK ||
        local_get_account(&simulation->chain->store, &account, own(simulation)) != STATUS_OK) {
        simulation_wrong(simulation, "the status cannot be told: %s", error.text);
        json_decref(view);
        return;
    }
    earned = sum_of(json_object_get(view, "earned_wei"), "attestation") +
             sum_of(json_object_get(view, "earned_wei"), "claim");
    withdrawn = sum_of(json_object_get(view, "earned_wei"), "withdrawal");
    if (earned != account.owed + simulation->view.received ||
        withdrawn != simulation->view.received) {
        char reply[WEI_TEXT_SIZE];
        char true_sum[WEI_TEXT_SIZE];

        wei_print(reply, earned);
        wei_print(true_sum, account.owed + simulation->view.received);
        simulation_wrong(simulation, "the status tells of %s, the ledger of %s", reply, true_sum);
    }
    json_decref(view);
}

/* Nothing that is due lies where no round comes to it: what is tried and fails is due later. */
static void judge_leftovers(struct simulation *simulation)
{
    int64_t now_s = (int64_t)virtual_chain_time(simulation->chain);
    int64_t left = 0;
    struct error error;

    error_init(&error);
    if (simulation->options.mode == NODE_OBSERVE || simulation->fault) {
        return;
    }
    if (database_number(
            &simulation->store.sql, &left, 0, &error,
            "SELECT count(*) FROM actions WHERE state = 0 AND after = '' AND late_s > ? AND"
            " due_s < ? AND due_height < ?",
            "iii", now_s, now_s - SETTLE_ROOM_S, (int64_t)simulation->chain->height) != STATUS_OK) {
        simulation_wrong(simulation, "the store cannot be read: %s", error.text);
    } else if (left > 0) {
        simulation_wrong(simulation, "%lld moves are due and not tried", (long long)left);
    }
}

void simulation_judge_end(struct simulation *simulation)
{
    judge_money(simulation);
    judge_leftovers(simulation);
}
