/* solver.c - see solver.h. */
#include "prover/post/solver.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/allow_file.h"
#include "chain/game/terms.h"
#include "chain/job/due_submit.h"
#include "chain/job/vouch_box.h"
#include "prover/post/solver_claims.h"
#include "prover/post/stake_ready.h"

enum {
    NAME_SIZE = LEDGER_NAME_MAX + 1,
};

struct trained {
    struct digest root;
    struct digest *states; /* owned */
    uint32_t steps;
    bool diverged;
};

struct solver {
    struct solver_options options;
    struct ledger *ledger; /* NULL: not opened yet */
    struct job_record record;
    struct solver_view view;
    struct ledger_clock clock;
    struct solver_claims claims;
    pthread_mutex_t lock; /* guards the members below */
    struct trained *trained;
    uint32_t trained_count;
    uint32_t trained_room;
    uint64_t segments;
    uint32_t swept;  /* final segments whose vouches are dropped */
    bool held;       /* the job was ours at some time */
    bool was_unseen; /* a verifier could not get a segment's states */
    bool given_up;   /* and nothing more is trained for it */
};

/* ---- making and adding ------------------------------------------------------------ */

enum status solver_new(struct solver **solver, const struct solver_options *options,
                       uint64_t segments, struct error *error)
{
    struct solver *made = calloc(1, sizeof(*made));

    *solver = NULL;
    if (made == NULL || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the solver of a job");
    }
    made->options = *options;
    made->segments = segments;
    made->ledger = made->claims.ledger = options->shared;
    job_record_init(&made->record, &options->job, &options->account);
    made->claims.account = &made->options.account;
    made->claims.record = &made->record;
    made->claims.clock = &made->clock;
    made->claims.view = &made->view;
    made->claims.respond = options->respond;
    made->claims.segment_steps = options->segment_steps;
    *solver = made;
    return STATUS_OK;
}

void solver_free(struct solver *solver)
{
    if (solver != NULL) {
        if (solver->options.shared == NULL) {
            ledger_close(solver->ledger);
        }
        job_record_free(&solver->record);
        (void)pthread_mutex_destroy(&solver->lock);
        for (uint32_t i = 0; i < solver->trained_count; i++) {
            free(solver->trained[i].states);
        }
        free(solver->trained);
        free(solver);
    }
}

static enum status make_room(struct solver *solver, struct error *error)
{
    uint32_t room = solver->trained_room == 0 ? 64 : 2 * solver->trained_room;
    void *larger;

    if (solver->trained_count < solver->trained_room) {
        return STATUS_OK;
    }
    larger = realloc(solver->trained, room * sizeof(*solver->trained));
    if (larger == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for the states of segments");
    }
    solver->trained = larger;
    solver->trained_room = room;
    return STATUS_OK;
}

enum status solver_add(struct solver *solver, const struct game_hashes *states, bool diverged,
                       struct error *error)
{
    struct trained next = {.steps = states->count, .diverged = diverged};
    enum status status;

    (void)pthread_mutex_lock(&solver->lock);
    TRY_OUT(make_room(solver, error));
    next.states = malloc(states->count * sizeof(*next.states));
    if (next.states == NULL) {
        TRY_OUT(error_set(error, STATUS_NO_MEMORY, "no memory for the states of a segment"));
    }
    memcpy(next.states, states->hashes, states->count * sizeof(*next.states));
    next.root =
        game_segment_root(states, (uint64_t)solver->trained_count * solver->options.segment_steps);
    solver->trained[solver->trained_count++] = next;
out:
    (void)pthread_mutex_unlock(&solver->lock);
    return status;
}

/* Borrows the states, which stay while the solver is there. False: it is not trained yet. */
static bool trained_at(struct solver *solver, struct trained *trained, uint32_t index)
{
    bool found;

    (void)pthread_mutex_lock(&solver->lock);
    found = index < solver->trained_count;
    if (found) {
        *trained = solver->trained[index];
    }
    solver->view.trained = solver->trained_count;
    (void)pthread_mutex_unlock(&solver->lock);
    return found;
}

/* Is the move of that name final, or unknown here? The caller has seen its effect on the ledger,
 * so a refused one was made before by another program with this key. */
static bool is_settled(struct solver *solver, const char *name)
{
    struct ledger_outcome outcome;
    struct error error;
    enum status status;

    error_init(&error);
    status = ledger_look(solver->ledger, &outcome, name, &error);
    return status == STATUS_NOT_FOUND ||
           (status == STATUS_OK &&
            (outcome.state == LEDGER_MOVE_FINAL || outcome.state == LEDGER_MOVE_REFUSED));
}

/* ---- names ------------------------------------------------------------------------ */

static void name_of_job(char name[NAME_SIZE], const struct solver *solver, const char *move,
                        uint32_t number)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(key, solver->record.key.bytes, HASH32_SIZE, true);
    (void)snprintf(name, NAME_SIZE, "job %s %s %u", key, move, number);
}

static void name_of_commit(char name[NAME_SIZE], const struct solver *solver, uint32_t index,
                           uint32_t generation)
{
    char key[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(key, solver->record.key.bytes, HASH32_SIZE, true);
    (void)snprintf(name, NAME_SIZE, "job %s commit %u generation %u", key, index, generation);
}

/* ---- moves that anybody may make ------------------------------------------------------ */

static void submit_move(struct solver *solver, const struct due_move *move)
{
    char name[NAME_SIZE];
    char what[64];
    struct error error;
    enum status status;

    error_init(&error);
    status = due_submit(name, solver->ledger, &solver->record, move, &error);
    (void)snprintf(what, sizeof(what), "%s of segment %u", due_move_name(move->kind), move->index);
    solver_view_follow(&solver->view, solver->ledger, what, name, status, &error);
}

/* What was handed over is kept in files; the record brings it to a settle. */
static void take_vouches(struct solver *solver)
{
    struct job_record *record = &solver->record;

    for (uint32_t i = record->state.finalized;
         i < record->state.committed && solver->options.vouches != NULL; i++) {
        const struct job_record_segment *shown = &record->segments[i];
        struct hash32 hash = game_segment_hash(&record->key, &shown->committed);
        struct vouch vouch;
        struct error error;

        error_init(&error);
        if (shown->draw.covered && !shown->draw.vouched && !shown->has_vouch &&
            vouch_box_get(&vouch, solver->options.vouches, &hash, &error) == STATUS_OK) {
            (void)!job_record_add_vouch(record, solver->ledger, &vouch, &error);
        }
    }
}

static void drop_vouches(struct solver *solver)
{
    const struct job_record *record = &solver->record;

    for (; solver->swept < record->state.finalized && solver->options.vouches != NULL;
         solver->swept++) {
        struct hash32 hash =
            game_segment_hash(&record->key, &record->segments[solver->swept].committed);

        vouch_box_drop(solver->options.vouches, &hash);
    }
}

/* A solver makes nothing of its own void: others do it. But what was refused can only become void
 * when its time is over, and until then the rest of the stake is locked. */
static bool is_void(const struct solver *solver, const struct due_move *move)
{
    return move->kind == DUE_MOVE_SETTLE && move->because == JOB_SEGMENT_LOST &&
           solver->record.state.refused_until_s == 0;
}

static void move_segments(struct solver *solver)
{
    const struct job_record *record = &solver->record;

    take_vouches(solver);
    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        struct due_move move;

        if (due_move_at(&move, record, i, &solver->clock) && !is_void(solver, &move)) {
            submit_move(solver, &move);
        }
    }
}

/* Told at once: a solver that is refused can look what is wrong while others still can vouch. */
static void note_refusal(struct solver *solver)
{
    const struct job_record *record = &solver->record;
    struct solver_view *view = &solver->view;
    char time[TERMS_TIME_SIZE];
    uint32_t first = UINT32_MAX;

    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        struct job_segment segment = job_record_segment(record, i);

        if ((!segment.drawn || segment.covered) && job_segment_is_held(&segment)) {
            first = first == UINT32_MAX ? i : first;
            view->held++;
        }
    }
    terms_time(time, record->state.refused_until_s);
    if (view->held == 0) {
        solver_view_note(view, "the %s refuses: it holds nothing, and no more is committed",
                         address_equal(&record->refuser, &record->client) ? "client" : "keeper");
        return;
    }
    solver_view_note(
        view,
        "the %s refuses: it holds %u segments, from %u on, and those that are covered are "
        "void after %s unless the keeper vouches for them",
        address_equal(&record->refuser, &record->client) ? "client" : "keeper", view->held, first,
        time);
}

/* ---- moves about the job ------------------------------------------------------------ */

static void move_job(struct solver *solver, const char *move,
                     enum status (*call)(struct ledger *ledger, const char *name,
                                         const struct hash32 *job, struct error *error))
{
    char name[NAME_SIZE];
    struct error error;
    enum status status;

    error_init(&error);
    name_of_job(name, solver, move, solver->record.accepts);
    status = call(solver->ledger, name, &solver->record.key, &error);
    solver_view_follow(&solver->view, solver->ledger, move, name, status, &error);
}

/* What accept_job() shows. STATUS_REFUSED: we are not admitted, or our policy does. */
struct acceptance {
    struct digest siblings[GAME_ALLOW_MAX];
    struct game_hashes path;
    struct game_bytes contact;
};

static enum status agree_terms(struct acceptance *terms, struct solver *solver, struct error *error)
{
    const struct job_record *record = &solver->record;
    const char *contact = solver->options.contact;

    terms->contact =
        (struct game_bytes){(const uint8_t *)contact, contact == NULL ? 0 : strlen(contact)};
    terms->path = (struct game_hashes){.hashes = terms->siblings};
    if (contact == NULL && record->terms.seats > 0) {
        (void)error_set(error, STATUS_REFUSED,
                        "nothing was staked: verifiers could not fetch what is committed, and it "
                        "would be void");
        error_advise(error, "name a place with --serve ADDRESS:PORT, or with --contact URL where "
                            "'lockstep prover serve' or 'publish' shows it");
        return STATUS_REFUSED;
    }
    TRY(allow_file_path(terms->siblings, &terms->path.count, &record->terms.solvers,
                        &solver->options.account, solver->options.allow_list, error));
    return solver_policy_check(&solver->options.policy, solver->ledger, record, error);
}

/* What keeps us from the job although it is open; false: nothing. */
static bool stays_away(struct solver *solver)
{
    const struct job_record *record = &solver->record;
    bool had = address_equal(&record->last_accepted, &solver->options.account);

    if (!solver->options.accept || (had && !solver->options.again)) {
        solver->view.lost = true;
        solver_view_note(&solver->view, "%s",
                         !had                ? "the job is open, and nobody has accepted it"
                         : record->convicted ? "we were convicted, and the job is open again"
                         : record->state.barred && solver->was_unseen
                             ? "our segments are void, since verifiers could not get their states "
                               "where the ledger says that we serve them; the job waits for its "
                               "client"
                         : record->state.barred
                             ? "our segments are void, and the job waits for its client"
                             : "we gave it up, and the job is open again");
        return true;
    }
    if (solver->view.trained < record->state.finalized) {
        solver->view.behind = true;
        solver_view_note(&solver->view,
                         "%u segments are final, and we stake when we have trained them too: %u "
                         "so far",
                         record->state.finalized, solver->view.trained);
        return true;
    }
    return false;
}

static void accept_job(struct solver *solver)
{
    const struct job_record *record = &solver->record;
    struct acceptance terms;
    char text[STAKE_READY_TEXT];
    char name[NAME_SIZE];
    struct error error;
    enum status status;

    if (stays_away(solver)) {
        return;
    }
    error_init(&error);
    status = agree_terms(&terms, solver, &error);
    if (status != STATUS_OK) {
        solver->view.lost = status == STATUS_REFUSED;
        solver_view_note(&solver->view, "%s", error.text);
        return;
    }
    if (!stake_ready(text, record, solver->clock.time_s, solver->options.known)) {
        solver->view.early = true;
        solver_view_note(&solver->view, "nothing is staked yet: %s", text);
        return;
    }
    name_of_job(name, solver, "accept", record->accepts);
    status = ledger_accept(solver->ledger, name, &record->key, &record->terms, &terms.path,
                           &terms.contact, &error);
    solver_view_follow(&solver->view, solver->ledger, "accept", name, status, &error);
}

/* False: the ledger has another root for a segment, and nothing more may be posted. */
static bool roots_agree(struct solver *solver)
{
    const struct job_record *record = &solver->record;

    for (uint32_t i = 0; i < record->state.committed; i++) {
        struct trained ours;
        char root[HEX_SIZE(DIGEST_SIZE)];

        if (!trained_at(solver, &ours, i)) {
            break;
        }
        if (digest_equal(&ours.root, &record->segments[i].committed.root)) {
            continue;
        }
        hex_encode(root, record->segments[i].committed.root.bytes, DIGEST_SIZE);
        solver->view.contradicted = true;
        solver_view_note(&solver->view,
                         "segment %u is %s on the ledger with the root %.16s..., and this run has "
                         "another root",
                         i, i < record->state.finalized ? "final" : "committed", root);
        return false;
    }
    return true;
}

static bool is_late(const struct solver *solver)
{
    return solver->record.state.due_s != 0 && solver->clock.time_s > solver->record.state.due_s;
}

static void commit_segment(struct solver *solver)
{
    const struct job_record *record = &solver->record;
    uint32_t index = record->state.committed;
    struct game_hashes states;
    struct trained next;
    char name[NAME_SIZE];
    char what[64];
    struct error error;
    enum status status;

    if (record->state.ended || index >= record->state.segments ||
        !solver_policy_has_room(record, solver->options.ahead, solver->clock.time_s)) {
        return;
    }
    if (is_late(solver)) {
        solver->view.late = true;
        solver_view_note(&solver->view, "segment %u is overdue: the ledger takes no more", index);
        return;
    }
    if (!trained_at(solver, &next, index)) {
        return;
    }
    error_init(&error);
    name_of_commit(name, solver, index, record->state.generation);
    (void)snprintf(what, sizeof(what), "commit segment %u", index);
    states = (struct game_hashes){next.states, next.steps};
    status =
        ledger_commit(solver->ledger, name, &record->key, index, &states, next.diverged, &error);
    solver_view_follow(&solver->view, solver->ledger, what, name, status, &error);
}

/* After the deadline the stake comes back whole, and where a refusal found nothing to hold. Before,
 * a late solver that goes on pays 1/8. */
static void take_back_stake(struct solver *solver)
{
    const struct job_record *record = &solver->record;
    uint32_t open = record->state.committed - record->state.finalized;
    bool free_now =
        solver->clock.time_s > record->terms.deadline_s || record->state.refused_until_s != 0;

    if (record->state.drawn != record->state.committed ||
        record->state.leg_start != record->state.finalized || solver->view.disputed > 0) {
        return;
    }
    if (record->state.refused_until_s != 0
            ? open == 0 && solver->clock.time_s > record->state.refused_until_s
            : is_late(solver) && open < GAME_OPEN_MAX &&
                  (free_now || solver->options.again || solver->given_up)) {
        move_job(solver, "release", ledger_release);
    }
}

/* ---- money ------------------------------------------------------------------------ */

static void name_of_withdrawal(char name[NAME_SIZE], const struct solver *solver, uint64_t number)
{
    char address[ADDRESS_TEXT_SIZE];

    address_print(address, &solver->options.account);
    (void)snprintf(name, NAME_SIZE, "withdraw %s %" PRIu64, address, number);
}

static void withdraw_owed(struct solver *solver)
{
    const struct job_record *record = &solver->record;
    bool closed = record->state.phase == GAME_PHASE_CLOSED;
    char name[NAME_SIZE];
    struct error error;
    wei purse;

    if (!solver->options.collect_now && !(solver->options.collect && closed)) {
        return;
    }
    error_init(&error);
    if (ledger_get_account(solver->ledger, &purse, &solver->view.owed, &solver->options.account,
                           &error) != STATUS_OK) {
        solver->view.pending++;
        solver_view_note(&solver->view, "what is owed: %.300s", error.text);
        return;
    }
    if (solver->view.owed > 0) {
        name_of_withdrawal(name, solver, record->withdrawals);
        solver_view_follow(&solver->view, solver->ledger, "withdraw", name,
                           ledger_withdraw(solver->ledger, name, &solver->options.account, &error),
                           &error);
        return;
    }
    if (record->withdrawals > 0) {
        name_of_withdrawal(name, solver, record->withdrawals - 1);
        solver->view.pending += !is_settled(solver, name);
    }
    solver->view.collected = closed && solver->view.pending == 0;
}

/* ---- a round ------------------------------------------------------------------------ */

/* Of a closed job: was it when it last had a solver? */
static bool is_ours(const struct solver *solver)
{
    const struct job_record *record = &solver->record;
    bool last = record->state.phase == GAME_PHASE_CLOSED && !record->convicted &&
                address_equal(&record->last_accepted, &solver->options.account);

    return last || address_equal(&record->state.solver, &solver->options.account);
}

/* Open segments that a seat could not see, and nobody has vouched for. */
static uint32_t count_unseen(const struct job_record *record)
{
    uint32_t count = 0;

    for (uint32_t i = record->state.finalized; i < record->state.committed; i++) {
        const struct job_reduced_segment *draw = &record->segments[i].draw;

        count += draw->unseen > 0 && !draw->vouched;
    }
    return count;
}

static void note_unseen(struct solver *solver)
{
    const char *contact = solver->options.contact;

    solver_view_note(&solver->view,
                     "verifiers could not get the states of %u segments, which end void if that "
                     "stays so: does %.200s serve them?",
                     solver->view.unseen, contact == NULL ? "anybody" : contact);
}

static void look_at_job(struct solver *solver)
{
    const struct job_record *record = &solver->record;
    struct solver_view *view = &solver->view;
    struct trained last;
    char name[NAME_SIZE];

    *view = (struct solver_view){.read = true,
                                 .phase = record->state.phase,
                                 .segments = record->state.segments,
                                 .committed = record->state.committed,
                                 .finalized = record->state.finalized,
                                 .disputed = job_record_open_claims(record),
                                 .hopeless = view->hopeless,
                                 .now_s = solver->clock.time_s,
                                 .due_s = record->state.due_s,
                                 .refused_until_s = record->state.refused_until_s,
                                 .reward = record->terms.reward,
                                 .stake = record->terms.stake};
    view->ours = is_ours(solver);
    view->unseen = count_unseen(record);
    solver->was_unseen |= view->ours && view->unseen > 0;
    (void)trained_at(solver, &last, UINT32_MAX);
    if (view->ours && record->state.committed >= view->trained) {
        view->committed_for_good = true;
        if (record->state.committed > record->state.finalized) {
            name_of_commit(name, solver, record->state.committed - 1, record->state.generation);
            view->committed_for_good = is_settled(solver, name);
        }
    }
}

static bool is_embedded(const struct solver *solver)
{
    return ledger_is_embedded(solver->options.ledger.url);
}

/* A reorganization can undo a conviction; then the claim must be answered. */
static void judge_loss(struct solver *solver)
{
    const struct job_record *record = &solver->record;
    const struct ledger_options *ledger = &solver->options.ledger;
    struct solver_view *view = &solver->view;
    size_t length = strlen(view->trouble);

    solver->held |= view->ours || address_equal(&record->last_accepted, &solver->options.account);
    view->lost_for_good =
        view->lost && (!solver->held || is_embedded(solver) ||
                       solver->clock.height >= record->changed_height + ledger->depth);
    if (view->lost && !view->lost_for_good) {
        (void)snprintf(view->trouble + length, sizeof(view->trouble) - length,
                       ", which is not final yet");
    }
}

static void act_on_job(struct solver *solver)
{
    const struct job_record *record = &solver->record;

    look_at_job(solver);
    drop_vouches(solver);
    solver_claims_act(&solver->claims); /* also when it has lost the job: others may still win */
    switch (record->state.phase) {
    case GAME_PHASE_NONE:
        solver_view_note(&solver->view, "the ledger knows no such job");
        break;
    case GAME_PHASE_OPEN:
        if (solver->clock.time_s > record->terms.deadline_s) {
            move_job(solver, "close", ledger_close_job);
        } else if (roots_agree(solver)) {
            accept_job(solver);
        }
        break;
    case GAME_PHASE_RUNNING:
        if (!solver->view.ours) {
            solver->view.lost = true;
            solver_view_note(&solver->view, "another solver has the job");
            break;
        }
        if (record->state.refused_until_s != 0) {
            note_refusal(solver);
        }
        if (solver->view.unseen > 0) {
            note_unseen(solver);
        }
        if (roots_agree(solver)) {
            commit_segment(solver);
        }
        move_segments(solver);
        take_back_stake(solver);
        break;
    case GAME_PHASE_CLOSED:
        if (!solver->view.ours) {
            solver->view.lost = true;
            solver_view_note(&solver->view, "the job is closed");
        }
        break;
    }
    judge_loss(solver);
    withdraw_owed(solver);
}

static enum status read_ledger(struct solver *solver, struct error *error)
{
    TRY(ledger_catch_up(solver->ledger, error));
    TRY(job_record_follow(&solver->record, solver->ledger, error));
    return ledger_get_clock(solver->ledger, &solver->clock, error);
}

static enum status go_round(struct solver *solver, struct error *error)
{
    bool acted = false;

    if (solver->ledger == NULL) {
        TRY(ledger_open(&solver->ledger, &solver->options.ledger, error));
        solver->claims.ledger = solver->ledger;
    }
    /* A move on an embedded ledger has happened when it returns: go on until nothing changes. */
    do {
        uint64_t read = solver->record.read;

        TRY(read_ledger(solver, error));
        if (acted && solver->record.read == read) {
            return STATUS_OK;
        }
        act_on_job(solver);
        acted = true;
    } while (solver->view.pending > 0);
    return STATUS_OK;
}

void solver_give_up(struct solver *solver)
{
    solver->given_up = true;
}

enum status solver_round(struct solver *solver, struct solver_view *view, struct error *error)
{
    enum status status;

    solver->view.pending = 0;
    solver->view.hopeless = 0;
    status = go_round(solver, error);
    solver->view.endpoints[0] = '\0';
    if (solver->ledger != NULL) {
        ledger_ill_endpoints(solver->ledger, solver->view.endpoints,
                             sizeof(solver->view.endpoints));
    }
    solver->view.unreachable = status == STATUS_UNREACHABLE;
    solver->view.gone |= status == STATUS_GONE || (status == STATUS_NOT_FOUND &&
                                                   solver->ledger == NULL && is_embedded(solver));
    if (status != STATUS_OK && status != STATUS_NO_MEMORY) {
        solver->view.trouble[0] = '\0';
        solver->view.collected = false;
        solver->view.committed_for_good = false;
        solver_view_note(&solver->view, "%.390s", error->text);
        status = STATUS_OK;
    }
    *view = solver->view;
    return status;
}

void solver_show(struct job_standing *standing, struct solver *solver)
{
    if (solver->record.state.phase == GAME_PHASE_NONE) {
        return; /* the ledger was not read yet */
    }
    job_standing_take(standing, &solver->record, solver->clock.time_s);
    memcpy(standing->endpoints, solver->view.endpoints, sizeof(standing->endpoints));
    (void)pthread_mutex_lock(&solver->lock);
    job_standing_mark_trained(standing, solver->trained_count);
    (void)pthread_mutex_unlock(&solver->lock);
}
