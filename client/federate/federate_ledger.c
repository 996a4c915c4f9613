/*
 * federate_ledger.c - the jobs of a round on a ledger; see federation.h.
 *
 * This process only looks. Children with the account's key make the moves, one command each, and
 * every one of them may be made again: a job is opened once per salt, a due move is made once, a
 * state is fetched to its end. The salts follow from the agreement's id, so no other federation of
 * the same client finds its jobs taken.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/listen.h"
#include "base/io/strict_json.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/job/due_moves.h"
#include "chain/job/job_states.h"
#include "chain/view/ledger_end.h"
#include "client/federate/federation.h"
#include "proofs/rounds/round_trees.h"

#define SERVE_LOOKS_MAX 600
#define SERVE_LOOK_S    0.1
#define FETCHED         "fetched"
#define PLACE_TEXT_MAX  (LISTEN_URL_MAX + LISTEN_NAMES_MAX)

/* ---- the ledger ----------------------------------------------------------- */

enum status federate_ledger_open(struct federation *federation, struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];

    TRY(chain_account_address(&federation->account, federation->context, error));
    TRY(chain_ledger_options(&options, state_dir, federation->context, NULL, error));
    return ledger_open(&federation->ledger, &options, error);
}

static struct round_try *last_try(struct round_owner *owner)
{
    assert(owner->try_count > 0);
    return &owner->tries[owner->try_count - 1];
}

static void write_key(char text[HEX_DATA_SIZE(DIGEST_SIZE)], const struct round_try *one)
{
    hex_write(text, one->key.bytes, DIGEST_SIZE, true);
}

/* ---- serving -------------------------------------------------------------- */

/* --serve; of port 0 the one that was free for the first server: jobs on the ledger name it. */
static enum status find_place(char text[PLACE_TEXT_MAX], const struct federation *federation,
                              const char *serve, struct error *error)
{
    struct listen_place place;
    char url[LISTEN_URL_MAX];

    TRY(listen_place_read(&place, serve, error));
    place.port = place.port == 0 ? federation->port : place.port;
    listen_place_url(url, &place, false);
    (void)snprintf(text, PLACE_TEXT_MAX, "%s%s%s", url + strlen("http://"),
                   place.names[0] == '\0' ? "" : ",", place.names);
    return STATUS_OK;
}

/* Keeps where it serves, and on which port. */
static void note_place(struct federation *federation, const char *serving)
{
    const char *port = strrchr(serving, ':');

    (void)snprintf(federation->contact, sizeof(federation->contact), "%s", serving);
    federation->port = port == NULL ? 0 : (uint16_t)strtoul(port + 1, NULL, 10);
}

static enum status wait_for_server(struct federation *federation, struct error *error)
{
    int code = 0;

    for (int look = 0; look < SERVE_LOOKS_MAX; look++) {
        json_t *said = federate_child_said(&federation->server);
        const char *serving = json_string_value(json_object_get(said, "serving"));

        if (federation->server.process == 0 || federate_child_ended(&federation->server, &code)) {
            enum status status = federate_child_why(said, code, "job serve", error);

            json_decref(said);
            return status;
        }
        if (serving != NULL) {
            note_place(federation, serving);
            json_decref(said);
            return STATUS_OK;
        }
        json_decref(said);
        if (stop_wait(&federation->stop, SERVE_LOOK_S)) {
            return error_set(error, STATUS_STOPPED, "stopped: the same command goes on from here");
        }
    }
    return error_set(error, STATUS_UNREACHABLE, "'job serve' did not begin to serve");
}

/* All files that owners named, once each: the server finds data by its root. */
static void add_all_data(struct child_words *words, const struct federate_plan *plan)
{
    const char *added[OPTION_LIST_MAX];
    size_t count = 0;

    for (uint32_t i = 0; i < plan->owner_count; i++) {
        for (size_t at = 0; at < plan->owners[i].data_count; at++) {
            const char *path = plan->owners[i].data[at];
            size_t found = 0;

            while (found < count && strcmp(added[found], path) != 0) {
                found++;
            }
            if (found == count && count < OPTION_LIST_MAX) {
                added[count++] = path;
                child_words_option(words, "data", path);
            }
        }
    }
}

/* The jobs of the round, their data and their first state. */
static enum status begin_serving(struct federate_round *round, struct error *error)
{
    struct federation *federation = round->federation;
    const char *contact = options_text(federation->options, "contact");
    const char *serve = options_text(federation->options, "serve");
    struct child_words words;
    char jobs[FILE_PATH_MAX];
    char start[FILE_PATH_MAX];
    char served[FILE_PATH_MAX];
    char place[PLACE_TEXT_MAX];
    enum status status;

    federate_child_stop(&federation->server);
    if (serve != NULL) {
        TRY(find_place(place, federation, serve, error));
        TRY(rounds_path(jobs, federation->folder, round->number, "", error));
        TRY(rounds_path(start, federation->folder, round->number, ROUND_START_FILE, error));
        TRY(rounds_path(served, federation->folder, 0, "served", error));
        child_words_init(&words, "job", "serve");
        child_words_add(&words, jobs);
        child_words_option(&words, "serve", place);
        child_words_option(&words, "folder", served);
        if (round->jobs[0]->first_state_given) {
            child_words_option(&words, "first-state", start);
        }
        add_all_data(&words, &federation->plan);
        child_words_flag(&words, "json");
        TRY(federate_child_start(&federation->server, &words, error));
        status = wait_for_server(federation, error);
        if (status != STATUS_OK) {
            federate_child_stop(&federation->server);
            return status;
        }
    }
    if (contact != NULL) {
        (void)snprintf(federation->contact, sizeof(federation->contact), "%s", contact);
    }
    return STATUS_OK;
}

/* ---- deaths of children ---------------------------------------------------- */

/* What children and solvers brought about: it is another number after each step of that. */
static uint64_t measure_progress(const struct federate_round *round)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        const struct job_record *look = &round->looks[i];

        sum += round->record.owners[i].try_count + round->record.owners[i].has_state +
               look->accepts + look->state.committed + look->state.finalized;
    }
    return sum;
}

/* Too many of them: memory that is short for one will be short for the next. */
static bool is_given_up(const struct federate_round *round, uint32_t owner)
{
    return round->deaths[owner] >= FEDERATION_DEATHS_MAX;
}

static void note_death(uint32_t *deaths, struct federate_round *round, const struct error *why)
{
    round->last_death = *why;
    if (++*deaths == FEDERATION_DEATHS_MAX) {
        log_warn(round->federation->context->log, "job",
                 "%s; that was death %u in a row, and no more is begun", why->text, *deaths);
    }
}

/* Why there is no server, or STATUS_OK: there is one, or none is wanted. */
static enum status look_at_server(struct federation *federation, struct error *error)
{
    struct federate_child *server = &federation->server;
    enum status status;
    json_t *said;
    int code = 0;

    if (options_text(federation->options, "serve") == NULL) {
        return STATUS_OK;
    }
    if (server->process == 0) {
        return error_set(error, STATUS_UNREACHABLE, "'job serve' did not begin to serve");
    }
    if (!federate_child_ended(server, &code)) {
        return STATUS_OK;
    }
    said = federate_child_said(server);
    status = federate_child_why(said, code, "job serve", error);
    json_decref(said);
    return status;
}

/* A server that died is begun again: without it no solver finds the rows. Deaths between which the
 * round went on are not in a row: a round may take weeks. */
static enum status keep_serving(struct federate_round *round, struct error *error)
{
    const uint64_t progress = measure_progress(round);

    if (look_at_server(round->federation, error) == STATUS_OK) {
        return STATUS_OK;
    }
    round->server_deaths = progress == round->server_progress ? round->server_deaths : 0;
    round->server_progress = progress;
    note_death(&round->server_deaths, round, error);
    if (round->server_deaths >= FEDERATION_DEATHS_MAX) {
        return STATUS_UNREACHABLE;
    }
    log_warn(round->federation->context->log, "job", "%s; it is begun again", error->text);
    error_init(error);
    return begin_serving(round, error);
}

/* ---- moves ---------------------------------------------------------------- */

/* Runs a command about the owner's last try; a failure is told with the owner's name. */
static enum status run_about(json_t **answer, struct federate_round *round, uint32_t owner,
                             struct child_words *words, struct error *error)
{
    struct federation *federation = round->federation;
    int code = 0;

    child_words_flag(words, "json");
    TRY(federate_child_run(answer, &code, words, &federation->stop, error));
    if (code == COMMAND_OK) {
        round->deaths[owner] = 0;
        return STATUS_OK;
    }
    (void)federate_child_why(*answer, code, round->record.names[owner], error);
    if (federate_child_died(*answer, code)) {
        note_death(&round->deaths[owner], round, error);
    }
    return error->status;
}

/* Of a command that makes a move with our key. */
static void add_account(struct child_words *words, const struct options *given)
{
    chain_child_ledger(words, given);
    child_words_given(words, "timeout", given);
    child_words_given(words, "wallet", given);
    child_words_given(words, "passphrase-file", given);
    child_words_given(words, "account", given);
}

/* One try is opened with one salt, as often as this is done. */
static enum status open_try(struct federate_round *round, uint32_t owner, struct error *error)
{
    struct federation *federation = round->federation;
    const struct federate_owner *planned = &federation->plan.owners[owner];
    struct round_owner *to = &round->record.owners[owner];
    struct round_try *one = &to->tries[to->try_count];
    char path[FILE_PATH_MAX];
    struct child_words words;
    json_t *answer = NULL;
    enum status status;

    if (to->try_count == ROUND_TRIES_MAX) {
        return error_set(error, STATUS_REFUSED,
                         "the job of '%s' was opened %d times in round %u, "
                         "and no state of it became final",
                         planned->name, ROUND_TRIES_MAX, round->number);
    }
    TRY(rounds_owner_path(path, federation->folder, round->number, owner, "job", error));
    *one = (struct round_try){.salt = rounds_salt(&federation->rounds, to->try_count)};
    child_words_init(&words, "job", "open");
    child_words_add(&words, path);
    add_account(&words, federation->options);
    child_words_number(&words, "salt", one->salt);
    if (federation->contact[0] != '\0') {
        child_words_option(&words, "contact", federation->contact);
    }
    for (size_t i = 0; i < planned->term_count; i++) {
        child_words_flag(&words, planned->terms[i].name);
        if (planned->terms[i].value != NULL) {
            child_words_add(&words, planned->terms[i].value);
        }
    }
    child_words_flag(&words, "yes");
    TRY_OUT(run_about(&answer, round, owner, &words, error));
    TRY_OUT(strict_json_hex(answer, error, one->key.bytes, DIGEST_SIZE, "job"));
    to->try_count++;
    command_tell(federation->context, "round %u: the job of %s is open, as %.14s...\n",
                 round->number, planned->name, json_string_value(json_object_get(answer, "job")));
    status = federate_round_keep(round, owner, error);
out:
    json_decref(answer);
    return status;
}

static enum status collect_try(struct federate_round *round, uint32_t owner, struct error *error)
{
    char key[HEX_DATA_SIZE(DIGEST_SIZE)];
    struct child_words words;
    json_t *answer = NULL;
    enum status status;

    write_key(key, last_try(&round->record.owners[owner]));
    child_words_init(&words, "job", "collect");
    child_words_add(&words, key);
    add_account(&words, round->federation->options);
    status = run_about(&answer, round, owner, &words, error);
    json_decref(answer);
    return status;
}

/* Takes back what of a try is left. *over: it is closed; false: a solver was faster. */
static enum status close_try(bool *over, struct federate_round *round, uint32_t owner,
                             struct error *error)
{
    struct federation *federation = round->federation;
    char key[HEX_DATA_SIZE(DIGEST_SIZE)];
    struct child_words words;
    struct ledger_job there;
    struct hash32 hash;
    json_t *answer = NULL;
    enum status status;

    *over = round->looks[owner].state.phase == GAME_PHASE_CLOSED;
    if (*over) {
        return STATUS_OK;
    }
    write_key(key, last_try(&round->record.owners[owner]));
    child_words_init(&words, "job", "close");
    child_words_add(&words, key);
    add_account(&words, federation->options);
    status = run_about(&answer, round, owner, &words, error);
    json_decref(answer);
    if (status == STATUS_STOPPED) {
        return status;
    }
    memcpy(hash.bytes, last_try(&round->record.owners[owner])->key.bytes, DIGEST_SIZE);
    TRY(ledger_catch_up(federation->ledger, error));
    TRY(ledger_get_job(federation->ledger, &there, &hash, error));
    *over = there.phase == GAME_PHASE_CLOSED;
    return *over || there.phase == GAME_PHASE_RUNNING ? STATUS_OK : status;
}

/* ---- what an owner gives -------------------------------------------------- */

/* Where the last state of an owner's job is fetched to. */
static enum status fetched_path(char path[FILE_PATH_MAX], char folder[FILE_PATH_MAX],
                                const struct federate_round *round, uint32_t owner,
                                struct error *error)
{
    char name[40];

    TRY(rounds_owner_path(folder, round->federation->folder, round->number, owner, FETCHED, error));
    (void)snprintf(name, sizeof(name), "%012" PRIu64 ".safetensors", round->jobs[owner]->steps);
    return file_path_join(path, FILE_PATH_MAX, error, folder, name);
}

static enum status fetch_last(struct federate_round *round, uint32_t owner, struct error *error)
{
    struct federation *federation = round->federation;
    char key[HEX_DATA_SIZE(DIGEST_SIZE)];
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    struct child_words words;
    json_t *answer = NULL;
    enum status status;

    TRY(fetched_path(path, folder, round, owner, error));
    write_key(key, last_try(&round->record.owners[owner]));
    child_words_init(&words, "job", "fetch");
    child_words_add(&words, key);
    chain_child_ledger(&words, federation->options);
    child_words_option(&words, "out", folder);
    child_words_number(&words, "segment", round->looks[owner].state.segments - 1);
    child_words_flag(&words, "with-optimizer");
    child_words_given(&words, "mirror", federation->options);
    child_words_given(&words, "mirror-timeout", federation->options);
    child_words_given(&words, "private-contacts", federation->options);
    status = run_about(&answer, round, owner, &words, error);
    json_decref(answer);
    return status;
}

/* Is that state there already? One of a solver that was convicted is another. */
static bool is_fetched(struct federate_round *round, uint32_t owner, const char *path,
                       const struct digest *root)
{
    const struct tape *tape = round->jobs[owner]->tape;
    struct digest *trees;
    struct error none;
    bool found;

    error_init(&none);
    if (!file_exists(path)) {
        return false;
    }
    if (digest_equal(&round->fetched[owner], root)) {
        return true;
    }
    trees = calloc((size_t)tape->state_count + 1, sizeof(*trees));
    found = trees != NULL && round_trees_read(trees, path, tape, UINT32_MAX, &none) == STATUS_OK &&
            round_trees_root(&round->fetched[owner], trees, tape, &none) == STATUS_OK &&
            digest_equal(&round->fetched[owner], root);
    free(trees);
    return found;
}

/* A solver may go as soon as it is paid: its last state is fetched when it is committed, and counts
 * when it is final. No mirror is no failure yet. */
static enum status fetch_early(struct federate_round *round, uint32_t owner, struct error *error)
{
    const struct job_record *look = &round->looks[owner];
    const uint32_t deaths = round->deaths[owner];
    struct job_states_place place;
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    struct error why;

    TRY(job_states_end(&place, round->federation->ledger, look, look->state.segments - 1, error));
    TRY(fetched_path(path, folder, round, owner, error));
    if (is_fetched(round, owner, path, &place.root)) {
        return STATUS_OK;
    }
    error_init(&why);
    (void)unlink(path);
    if (fetch_last(round, owner, &why) == STATUS_STOPPED || round->deaths[owner] > deaths) {
        *error = why;
        return why.status;
    }
    return STATUS_OK;
}

static enum status take_final(struct federate_round *round, uint32_t owner, struct error *error)
{
    const struct job_record *look = &round->looks[owner];
    struct round_try *one = last_try(&round->record.owners[owner]);
    struct job_states_place place;
    char folder[FILE_PATH_MAX];
    char path[FILE_PATH_MAX];
    enum status status;

    TRY(job_states_end(&place, round->federation->ledger, look, look->state.segments - 1, error));
    TRY(fetched_path(path, folder, round, owner, error));
    if (!is_fetched(round, owner, path, &place.root)) {
        (void)unlink(path);
        TRY(fetch_last(round, owner, error));
    }
    one->end = ROUND_END_FINAL;
    status = federate_round_take(round, owner, path, &place.root, error);
    if (status != STATUS_OK) {
        one->end = ROUND_END_NONE;
        return status;
    }
    file_remove_folder(folder); /* what is averaged of it is kept */
    return STATUS_OK;
}

/* ---- looking -------------------------------------------------------------- */

static void tell_trouble(const struct federate_round *round, uint32_t owner)
{
    command_tell(round->federation->context, "round %u: the job of %s: %s\n", round->number,
                 round->record.names[owner], round_end_word(round->troubles[owner]));
}

/* Reads what the ledger says of the last try, and makes what is due. */
static enum status look_at(struct federate_round *round, uint32_t owner, struct error *error)
{
    struct federation *federation = round->federation;
    struct job_record *look = &round->looks[owner];
    const enum round_end before = round->troubles[owner];
    struct ledger_clock clock;
    struct due_move due;
    struct hash32 key;

    memcpy(key.bytes, last_try(&round->record.owners[owner])->key.bytes, DIGEST_SIZE);
    if (!hash32_equal(&look->key, &key)) {
        job_record_free(look);
        job_record_init(look, &key, &federation->account);
    }
    TRY(job_record_follow(look, federation->ledger, error));
    TRY(ledger_get_clock(federation->ledger, &clock, error));
    if (due_move_next(&due, look, &clock, &federation->account)) {
        TRY(collect_try(round, owner, error));
        TRY(ledger_catch_up(federation->ledger, error));
        TRY(job_record_follow(look, federation->ledger, error));
    }
    round->troubles[owner] = ledger_end_trouble(look);
    if (round->troubles[owner] != before && round->troubles[owner] != ROUND_END_NONE) {
        tell_trouble(round, owner);
    }
    return STATUS_OK;
}

/* ---- an owner that is in trouble ------------------------------------------- */

/* Ends the last try, whose escrow comes back. An owner whose last try ended, and that has no other,
 * is left out. */
static enum status end_try(struct federate_round *round, uint32_t owner, struct error *error)
{
    struct round_try *one = last_try(&round->record.owners[owner]);
    bool over = false;

    TRY(close_try(&over, round, owner, error));
    if (!over) {
        return STATUS_OK; /* another solver has it now */
    }
    one->end = round->troubles[owner];
    return federate_round_keep(round, owner, error);
}

static bool is_settled(const struct round_owner *owner)
{
    return owner->has_state ||
           (owner->try_count > 0 && owner->tries[owner->try_count - 1].end != ROUND_END_NONE);
}

struct count_of_owners {
    uint32_t states; /* that gave one */
    uint32_t well;   /* that will, as far as the ledger says */
};

static struct count_of_owners count_owners(const struct federate_round *round)
{
    struct count_of_owners count = {0};

    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        const struct round_owner *owner = &round->record.owners[i];

        count.states += owner->has_state;
        count.well += !is_settled(owner) && round->troubles[i] == ROUND_END_NONE;
    }
    return count;
}

/* Does a try need another one? A convicted or late solver leaves its job open for the next: the try
 * goes on, unless its deadline passed. A void one burned what must be put back. */
static bool needs_another(const struct federate_round *round, uint32_t owner)
{
    return round->troubles[owner] == ROUND_END_VOID ||
           round->looks[owner].state.phase == GAME_PHASE_CLOSED;
}

static enum status mend_owner(struct federate_round *round, uint32_t owner, bool leave_out,
                              struct error *error)
{
    const char *name = round->record.names[owner];

    if (leave_out) {
        command_tell(round->federation->context, "round %u: %s is left out: %s\n", round->number,
                     name, round_end_word(round->troubles[owner]));
        return end_try(round, owner, error);
    }
    if (round->troubles[owner] == ROUND_END_DIVERGED) {
        (void)error_set(error, STATUS_REFUSED,
                        "the training of '%s' diverged in round %u, and would again", name,
                        round->number);
        error_advise(error, "make its job with a smaller --rate, in another federation; or allow "
                            "rounds without it: --quorum");
        return STATUS_REFUSED;
    }
    if (!needs_another(round, owner)) {
        return STATUS_OK;
    }
    TRY(end_try(round, owner, error));
    if (last_try(&round->record.owners[owner])->end == ROUND_END_NONE) {
        return STATUS_OK;
    }
    round->troubles[owner] = ROUND_END_NONE;
    return open_try(round, owner, error);
}

/* What fails about one owner holds up no other; the first such failure is told at the end. */
struct held_up {
    bool any;
    struct error first;
};

static enum status go_past(struct held_up *held, enum status status, struct error *error)
{
    if (status != STATUS_UNREACHABLE) {
        return status;
    }
    held->first = held->any ? held->first : *error;
    held->any = true;
    error_init(error);
    return STATUS_OK;
}

/* An owner in trouble is left out where the states of the others are there and reach the quorum.
 * While they may still come it waits; where they can not be enough it is opened again. */
static enum status mend_all(struct federate_round *round, struct held_up *held, struct error *error)
{
    const struct count_of_owners count = count_owners(round);
    const uint32_t quorum = round->federation->rounds.quorum;
    const bool leave_out = count.well == 0 && count.states >= quorum;

    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        if (is_settled(&round->record.owners[i]) || round->troubles[i] == ROUND_END_NONE ||
            is_given_up(round, i) || (!leave_out && count.states + count.well >= quorum)) {
            continue;
        }
        TRY(go_past(held, mend_owner(round, i, leave_out, error), error));
    }
    return STATUS_OK;
}

/* ---- the round ------------------------------------------------------------ */

/* Did its last try end without a state, where the round needs one? A kill, or a ledger that was
 * away, came between the end of a try and the next one. */
static bool is_reopened(const struct federate_round *round, uint32_t i)
{
    const struct round_owner *owner = &round->record.owners[i];

    return round_mean_count(&round->record) < round->federation->rounds.quorum &&
           is_settled(owner) && !owner->has_state &&
           owner->tries[owner->try_count - 1].end != ROUND_END_DIVERGED;
}

static bool is_any_reopened(const struct federate_round *round)
{
    bool found = false;

    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        found = found || is_reopened(round, i);
    }
    return found;
}

/* Opens jobs that have no try, or need another. */
static enum status open_tries(struct federate_round *round, struct held_up *held,
                              struct error *error)
{
    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        if (!is_given_up(round, i) &&
            (round->record.owners[i].try_count == 0 || is_reopened(round, i))) {
            TRY(go_past(held, open_try(round, i, error), error));
        }
    }
    return STATUS_OK;
}

/* No state counts while another owner's job may be open and unknown here, since a child died as it
 * opened it: that owner might be left out then, with a job open. It is fetched nevertheless. */
static enum status look_owner(struct federate_round *round, uint32_t i, struct error *error)
{
    TRY(look_at(round, i, error));
    if (ledger_end_is_final(&round->looks[i]) && !is_any_reopened(round)) {
        return take_final(round, i, error);
    }
    return round->looks[i].state.committed == round->looks[i].state.segments
               ? fetch_early(round, i, error)
               : STATUS_OK;
}

static bool is_looked_at(const struct federate_round *round, uint32_t owner)
{
    return round->record.owners[owner].try_count > 0 && !is_settled(&round->record.owners[owner]) &&
           !is_given_up(round, owner);
}

static enum status look_round(struct federate_round *round, struct error *error)
{
    struct held_up held = {.any = false};

    TRY(ledger_catch_up(round->federation->ledger, error));
    TRY(open_tries(round, &held, error));
    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        if (is_looked_at(round, i)) {
            TRY(go_past(&held, look_owner(round, i, error), error));
        }
    }
    TRY(mend_all(round, &held, error));
    if (held.any) {
        *error = held.first;
    }
    return held.any ? STATUS_UNREACHABLE : STATUS_OK;
}

/* May an owner still give a state, or another reason, while others are given up? */
static bool goes_on(const struct federate_round *round, uint32_t owner)
{
    const bool waits = ledger_end_is_final(&round->looks[owner]) && is_any_reopened(round);

    return !is_given_up(round, owner) &&
           (is_reopened(round, owner) || (!is_settled(&round->record.owners[owner]) &&
                                          round->troubles[owner] == ROUND_END_NONE && !waits));
}

/* Are too many children dead, and can nothing else go on? Nobody can where nothing is served. */
static bool is_stuck(const struct federate_round *round)
{
    bool given_up = false;
    bool any = false;

    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        given_up = given_up || is_given_up(round, i);
        any = any || goes_on(round, i);
    }
    return round->server_deaths >= FEDERATION_DEATHS_MAX || (given_up && !any);
}

static enum status give_up(const struct federate_round *round, struct error *error)
{
    char why[ERROR_TEXT_MAX];

    (void)snprintf(why, sizeof(why), "%s", round->last_death.text);
    (void)error_set(error, STATUS_UNREACHABLE,
                    "round %u: children of this command died %d times one after another, without "
                    "a step of progress: %.700s",
                    round->number, FEDERATION_DEATHS_MAX, why);
    error_advise(error, "%s",
                 round->last_death.advice[0] != '\0'
                     ? round->last_death.advice
                     : "find in the system's log what ended them; the same command goes on from "
                       "here");
    return STATUS_UNREACHABLE;
}

static bool is_round_over(const struct federate_round *round)
{
    bool settled = round_mean_count(&round->record) >= round->federation->rounds.quorum;

    for (uint32_t i = 0; i < round->record.owner_count; i++) {
        settled = settled && is_settled(&round->record.owners[i]);
    }
    return settled;
}

enum status federate_ledger_run(struct federate_round *round, struct error *error)
{
    struct federation *federation = round->federation;
    const double poll_s = (double)options_number(federation->options, "poll");

    if (is_round_over(round)) {
        return STATUS_OK;
    }
    TRY(begin_serving(round, error));
    while (!is_round_over(round)) {
        enum status status = keep_serving(round, error);

        status = status == STATUS_OK ? look_round(round, error) : status;
        if ((status == STATUS_OK || status == STATUS_UNREACHABLE) && is_stuck(round)) {
            return give_up(round, error);
        }
        if (status == STATUS_UNREACHABLE) { /* the ledger, or a mirror: it may come back */
            log_warn(federation->context->log, "job", "%s", error->text);
            error_init(error);
        } else if (status != STATUS_OK) {
            return status;
        }
        if (!is_round_over(round) && stop_wait(&federation->stop, poll_s)) {
            return error_set(error, STATUS_STOPPED, "stopped: the same command goes on from here");
        }
    }
    federate_child_stop(&federation->server);
    return STATUS_OK;
}
