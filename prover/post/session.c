/* session.c - see session.h. */
#include "prover/post/session.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/progress.h"
#include "base/steady.h"
#include "chain/codec/hex_data.h"
#include "chain/codec/typed_data.h"
#include "chain/game/terms.h"
#include "chain/job/vouch_box.h"
#include "proofs/bundle/stop_rule.h"

#define NOTE_URL         "ledger"
#define NOTE_ALONE       "ledger.none"
#define NOTE_FIRST_BLOCK "ledger.first-block"

/* Between two rounds of the thread, and two looks at it. */
#define ROUND_SECONDS_LOCAL 0.3
#define LOOK_SECONDS        0.05

/* ---- notes of the bundle ------------------------------------------------------------ */

/* text is "" where there is no such note. */
static enum status read_note(char text[FILE_PATH_MAX], struct bundle *bundle, const char *name,
                             struct error *error)
{
    enum status status = bundle == NULL ? STATUS_NOT_FOUND : bundle_note(text, bundle, name, error);

    if (status == STATUS_NOT_FOUND) {
        text[0] = '\0';
        status = STATUS_OK;
    }
    return status;
}

/* A run notes its ledger before its first step. */
static bool is_alone(struct bundle *bundle)
{
    char note[FILE_PATH_MAX] = "";
    uint64_t steps = 0;

    return bundle != NULL && read_note(note, bundle, NOTE_ALONE, NULL) == STATUS_OK &&
           (note[0] != '\0' || (bundle_step_count(&steps, bundle, NULL) == STATUS_OK && steps > 0));
}

bool session_wanted(const struct command_context *context, struct bundle *bundle)
{
    char url[FILE_PATH_MAX] = "";

    if (read_note(url, bundle, NOTE_URL, NULL) == STATUS_OK && url[0] != '\0') {
        return true;
    }
    /* A config file that names a ledger does not take a run there that began without one. */
    return is_alone(bundle) ? options_flagged(context->options, "ledger")
                            : options_text(context->options, "ledger") != NULL;
}

enum status session_forgo(struct bundle *bundle, struct error *error)
{
    return bundle_set_note(bundle, NOTE_ALONE, "true", error);
}

static bool is_stopping(void *context)
{
    return atomic_load((atomic_bool *)context);
}

static enum status read_place(struct session *session, struct chain_ledger_place *place,
                              struct bundle *bundle, struct error *error)
{
    char number[FILE_PATH_MAX];
    char chain[FILE_PATH_MAX];
    char key[FILE_PATH_MAX];

    TRY(read_note(session->url, bundle, NOTE_URL, error));
    TRY(read_note(session->registry, bundle, BUNDLE_NOTE_REGISTRY, error));
    TRY(read_note(number, bundle, NOTE_FIRST_BLOCK, error));
    TRY(read_note(chain, bundle, BUNDLE_NOTE_CHAIN, error));
    TRY(read_note(key, bundle, BUNDLE_NOTE_JOB, error));
    session->has_job = hex_data_read_exactly(session->job.bytes, HASH32_SIZE, key) == STATUS_OK &&
                       uint256_parse_quantity(&session->chain, chain) == STATUS_OK;
    place->first_height = strtoull(number, NULL, 10);
    place->url = session->url[0] == '\0' ? NULL : session->url;
    place->registry = session->registry;
    return STATUS_OK;
}

/* A run that may end early cannot do what was ordered. */
static enum status refuse_rule(const struct bundle *bundle, struct error *error)
{
    struct stop_rule rule = STOP_RULE_NONE;

    if (bundle != NULL) {
        TRY(stop_rule_read(&rule, bundle, error));
    }
    return stop_rule_is_none(&rule) ? STATUS_OK : stop_rule_refuse_ledger(error);
}

enum status session_open(struct session *session, const struct command_context *context,
                         struct bundle *bundle, bool with_key, struct error *error)
{
    struct chain_ledger_place place = {0};
    char account[FILE_PATH_MAX];

    memset(session, 0, sizeof(*session));
    session->bundle = bundle;
    TRY(with_key ? refuse_rule(bundle, error) : STATUS_OK);
    TRY(read_place(session, &place, bundle, error));
    TRY(read_note(account, bundle, BUNDLE_NOTE_ACCOUNT, error));
    if (with_key) {
        TRY(chain_unlock_by(&session->signer, context, "passphrase-file",
                            account[0] == '\0' ? NULL : account, error));
    }
    TRY(chain_ledger_options_at(&session->ledger, session->state_dir, context, session->signer,
                                &place, error));
    if (with_key) {
        session->poll_s = ledger_is_embedded(session->ledger.url)
                              ? ROUND_SECONDS_LOCAL
                              : (double)options_number(context->options, "poll");
    }
    session->ledger.stopped = is_stopping;
    session->ledger.context = &session->stopping;
    if ((bundle != NULL && options_text(context->options, "job-key") != NULL) ||
        (place.url != NULL && strcmp(place.url, session->ledger.url) != 0)) {
        session->has_job = false; /* another job, or the same one elsewhere */
    }
    return STATUS_OK;
}

void session_share(struct session *session, const struct session *account, struct ledger *ledger,
                   const struct hash32 *job)
{
    memset(session, 0, sizeof(*session));
    session->ledger = account->ledger;
    session->signer = account->signer;
    session->poll_s = account->poll_s;
    session->shared = ledger;
    session->job = *job;
    session->chain = ledger_get_game(ledger)->chain;
    session->has_job = true;
}

enum status session_round(struct session *session, struct error *error)
{
    return solver_round(session->solver, &session->view, error);
}

void session_close(struct session *session)
{
    poster_stop(session->poster);
    solver_free(session->solver);
    respond_close(session->respond);
    if (session->shared == NULL) {
        signer_free(session->signer);
    }
    memset(session, 0, sizeof(*session));
}

static enum status find_job(struct session *session, struct game_terms *found,
                            const struct ledger_options *options, const char *named,
                            const struct job *job, struct error *error)
{
    struct ledger *ledger;
    enum status status;

    TRY(ledger_open(&ledger, options, error));
    /* A key names the job. terms_check() reports where it is not the job of the file. */
    TRY_OUT(
        terms_find(&session->job, found, ledger, named, named == NULL ? &job->id : NULL, error));
    TRY_OUT(terms_check(found, job, error));
    session->chain = ledger_get_game(ledger)->chain;
    session->stake = found->stake;
out:
    ledger_close(ledger);
    return status;
}

enum status session_check_purse(struct session *session, bool accepts, struct error *error)
{
    struct ledger *ledger = NULL;
    struct ledger_job job = {0};
    enum status status;

    if (ledger_open(&ledger, &session->ledger, error) != STATUS_OK ||
        ledger_get_job(ledger, &job, &session->job, error) != STATUS_OK) {
        ledger_close(ledger);
        error_init(error); /* the posting thread says what is wrong, and tries again */
        return STATUS_OK;
    }
    status = accepts && job.phase == GAME_PHASE_OPEN
                 ? ledger_afford(ledger, GAME_ACCEPT, session->stake, error)
                 : ledger_afford(ledger, GAME_WITHDRAW, 0, error);
    ledger_close(ledger);
    return status;
}

static bool stop_was_requested(void *context)
{
    return stop_requested(context);
}

enum status session_find_job(struct session *session, struct game_terms *terms,
                             const struct command_context *context, const struct job *job,
                             struct ledger_retry *retry, struct error *error)
{
    struct ledger_options options = session->ledger;
    struct game_terms found;
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    const char *named;
    enum status status;

    options.signer = NULL; /* only reading: the outbox stays free for the thread */
    if (retry != NULL) {
        options.stopped = stop_was_requested;
        options.context = retry->stop;
    }
    hex_write(key, session->job.bytes, HASH32_SIZE, true);
    named = options_text(context->options, "job-key");
    do {
        status = STATUS_NOT_FOUND;
        if (session->has_job || (named == NULL && !hash32_is_zero(&session->job))) {
            status = find_job(session, &found, &options, key, job, error);
        }
        if (!session->has_job && status != STATUS_OK && status != STATUS_UNREACHABLE) {
            error_init(error);
            status = find_job(session, &found, &options, named, job, error);
        }
    } while (retry != NULL && ledger_retry_again(retry, &status, error));
    session->has_job = status == STATUS_OK;
    if (terms != NULL && status == STATUS_OK) {
        *terms = found;
    }
    return status;
}

struct ledger_retry session_retry(const struct command_context *context, struct stop *stop,
                                  struct notify *notify)
{
    uint64_t limit_s = options_given(context->options, "timeout")
                           ? options_number(context->options, "timeout")
                           : 0;

    return (struct ledger_retry){.stop = stop,
                                 .notify = notify,
                                 .log = context->log,
                                 .area = "ledger",
                                 .terminal = stderr,
                                 .limit_s = limit_s};
}

/* Makes the path of an embedded ledger absolute: the bundle may be used from another folder. */
static enum status whole_url(char url[FILE_PATH_MAX], const char *given, struct error *error)
{
    char whole[PATH_MAX];
    int size;

    if (!ledger_is_embedded(given)) {
        size = snprintf(url, FILE_PATH_MAX, "%s", given);
    } else if (realpath(given + 6, whole) == NULL) {
        return error_set_errno(error, "cannot find the ledger %s", given);
    } else {
        size = snprintf(url, FILE_PATH_MAX, "local:%s", whole);
    }
    return size < FILE_PATH_MAX
               ? STATUS_OK
               : error_set(error, STATUS_OVER_LIMIT, "the URL of the ledger is too long");
}

enum status session_remember(struct session *session, struct bundle *bundle, struct error *error)
{
    char url[FILE_PATH_MAX];
    char text[HEX_DATA_SIZE(HASH32_SIZE)];

    static_assert(sizeof(text) >= UINT256_HEX_SIZE, "room for the number of a chain");
    session->bundle = bundle;
    TRY(whole_url(url, session->ledger.url, error));
    TRY(bundle_set_note(bundle, NOTE_URL, url, error));
    if (!address_is_zero(&session->ledger.registry)) {
        address_print(text, &session->ledger.registry);
        TRY(bundle_set_note(bundle, BUNDLE_NOTE_REGISTRY, text, error));
    }
    (void)snprintf(text, sizeof(text), "%" PRIu64, session->ledger.first_height);
    TRY(bundle_set_note(bundle, NOTE_FIRST_BLOCK, text, error));
    uint256_print_quantity(text, &session->chain);
    TRY(bundle_set_note(bundle, BUNDLE_NOTE_CHAIN, text, error));
    hex_write(text, session->job.bytes, HASH32_SIZE, true);
    TRY(bundle_set_note(bundle, BUNDLE_NOTE_JOB, text, error));
    if (session->signer != NULL) {
        address_print(text, signer_address(session->signer));
        TRY(bundle_set_note(bundle, BUNDLE_NOTE_ACCOUNT, text, error));
    }
    return STATUS_OK;
}

/* ---- segments ------------------------------------------------------------------------ */

/* EIP-712. The domain and the key of the job each cover the chain and the registry. */
static struct hash32 segment_message(const struct session *session, uint64_t segment,
                                     uint64_t steps, const struct digest *root)
{
    struct hash32 domain =
        typed_domain("Lockstep", "1", &session->chain, &session->ledger.registry);
    struct typed_struct typed;
    struct hash32 hash;

    memcpy(hash.bytes, root->bytes, HASH32_SIZE);
    typed_struct_begin(&typed, "Segment(bytes32 job,uint256 index,uint256 steps,bytes32 root)");
    typed_struct_add_hash(&typed, &session->job);
    typed_struct_add_u64(&typed, segment);
    typed_struct_add_u64(&typed, steps);
    typed_struct_add_hash(&typed, &hash);
    hash = typed_struct_hash(&typed);
    return typed_message_hash(&domain, &hash);
}

/* A segment has one signature: that of the ledger it was posted to last. */
static enum status sign_segment(struct session *session, uint64_t segment, uint64_t steps,
                                const struct digest *root, struct error *error)
{
    struct hash32 message = segment_message(session, segment, steps, root);
    uint8_t found[BUNDLE_SIGNATURE_MAX];
    uint8_t bytes[SIGNATURE_SIZE];
    size_t size = 0;
    struct digest signed_root;
    struct signature signature;
    enum status status =
        bundle_segment_signature(&signed_root, found, &size, session->bundle, segment, error);

    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        return status;
    }
    TRY(signer_sign(session->signer, &signature, &message, error)); /* twice gives the same bytes */
    signature_to_bytes(bytes, &signature);
    if (status == STATUS_OK && digest_equal(&signed_root, root) && size == sizeof(bytes) &&
        memcmp(found, bytes, size) == 0) {
        return STATUS_OK;
    }
    if (session->keep != NULL) {
        session->keep(session->keep_context, segment, bytes, SIGNATURE_SIZE);
        return STATUS_OK;
    }
    return bundle_segment_sign(session->bundle, segment, bytes, SIGNATURE_SIZE, error);
}

/* *count: segments of the journal. *diverged_steps: the length of the last one where the run
 * diverged in it, else 0. */
static enum status count_segments(uint64_t *count, uint64_t *diverged_steps, struct bundle *bundle,
                                  struct error *error)
{
    const struct job *job = bundle_job(bundle);
    uint64_t steps = 0;
    uint64_t diverged = UINT64_MAX;

    TRY(bundle_step_count(&steps, bundle, error));
    TRY(bundle_diverged(&diverged, bundle, error));
    *count = steps >= job->steps ? job_segments(job) : steps / job->segment_length;
    *diverged_steps = 0;
    if (diverged != UINT64_MAX) {
        *count = diverged / job->segment_length + 1;
        *diverged_steps = diverged % job->segment_length + 1;
    }
    return STATUS_OK;
}

static enum status add_segment(struct session *session, uint64_t segment, uint64_t steps,
                               bool diverged, struct error *error)
{
    uint64_t first = segment * bundle_job(session->bundle)->segment_length;
    struct digest states[GAME_STATES_MAX];
    struct game_hashes list = {states, (uint32_t)steps};

    if (steps > GAME_STATES_MAX) {
        return error_set(
            error, STATUS_REFUSED,
            "a ledger takes segments of at most %d steps, and this job's have %" PRIu64,
            GAME_STATES_MAX, steps);
    }
    for (uint32_t i = 0; i < steps; i++) {
        struct bundle_step step;

        TRY(bundle_step_read(&step, session->bundle, first + i, error));
        states[i] = step.root;
    }
    return solver_add(session->solver, &list, diverged, error);
}

void session_give_up(struct session *session)
{
    solver_give_up(session->solver);
}

static enum status ledger_is_gone(const struct solver_view *view, struct error *error)
{
    (void)error_set(error, STATUS_GONE, "%s", view->trouble);
    error_advise(error, "put the ledger's file back to its place, then 'lockstep prover resume'");
    return STATUS_GONE;
}

/* What the journal has of segments. */
struct journaled {
    uint64_t count;
    uint64_t diverged_steps;
};

/* How many steps a segment has; *cut: the run diverged in it. */
static uint64_t steps_of(bool *cut, const struct session *session,
                         const struct journaled *journaled, uint64_t segment)
{
    const struct job *job = bundle_job(session->bundle);

    *cut = segment + 1 == journaled->count && journaled->diverged_steps != 0;
    return *cut ? journaled->diverged_steps
                : job_segment_end(job, segment) - segment * job->segment_length;
}

static enum status sign_root(struct session *session, uint64_t segment, uint64_t steps,
                             struct error *error)
{
    struct digest root;

    TRY(bundle_segment_root(&root, session->bundle, segment, error));
    return session->signing ? sign_segment(session, segment, steps, &root, error) : STATUS_OK;
}

enum status session_sign(struct session *session, struct error *error)
{
    struct journaled journaled;

    TRY(count_segments(&journaled.count, &journaled.diverged_steps, session->bundle, error));
    for (uint64_t i = 0; i < session->added && i < journaled.count; i++) {
        bool cut;

        TRY(sign_root(session, i, steps_of(&cut, session, &journaled, i), error));
    }
    return STATUS_OK;
}

enum status session_add(struct session *session, struct error *error)
{
    struct solver_view view;
    struct journaled journaled;
    double spent;

    view = session->view;
    if (session->poster != NULL) {
        poster_look(session->poster, &view, &spent);
    }
    if (view.gone) {
        return ledger_is_gone(&view, error);
    }
    TRY(count_segments(&journaled.count, &journaled.diverged_steps, session->bundle, error));
    if (session->signing && session->keep == NULL) {
        TRY(bundle_flush(session->bundle, error)); /* on disk before it is posted */
    }
    for (; session->added < journaled.count; session->added++) {
        bool cut;
        uint64_t steps = steps_of(&cut, session, &journaled, session->added);

        TRY(sign_root(session, session->added, steps, error));
        TRY(add_segment(session, session->added, steps, cut, error));
    }
    if (session->poster != NULL) {
        poster_wake(session->poster);
    }
    return STATUS_OK;
}

enum status session_accept_options(struct session_plan *plan, const struct options *options,
                                   struct error *error)
{
    plan->allow_list = options_text(options, "allow-list");
    plan->known = options_text(options, "known");
    plan->ahead = (uint32_t)options_number(options, "ahead");
    return chain_contact(&plan->contact, options, error);
}

enum status session_check_readable(bool encrypted, struct error *error)
{
    if (!encrypted) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED,
                    "nothing was staked: verifiers cannot read an encrypted bundle, and nobody "
                    "could check its segments");
    error_advise(error, "run without --encrypt on a ledger, or with --offline for yourself");
    return STATUS_REFUSED;
}

enum status session_start(struct session *session, struct bundle *bundle,
                          const struct session_plan *plan, const struct log *log,
                          struct error *error)
{
    struct solver_options options = {.ledger = session->ledger,
                                     .shared = session->shared,
                                     .job = session->job,
                                     .account = *signer_address(session->signer),
                                     .accept = plan->accept,
                                     .again = plan->again,
                                     .collect = plan->collect,
                                     .collect_now = plan->collect_now,
                                     .respond = plan->respond,
                                     .policy = plan->policy,
                                     .allow_list = plan->allow_list,
                                     .contact = plan->contact,
                                     .vouches = session->vouches,
                                     .known = plan->known,
                                     .ahead = plan->ahead,
                                     .segment_steps = (uint32_t)bundle_job(bundle)->segment_length};

    session->respond = plan->respond;
    session->bundle = bundle;
    session->signing = plan->sign;
    session->keep = plan->keep;
    session->keep_context = plan->keep_context;
    TRY(file_path_join(session->vouches, sizeof(session->vouches), error, bundle_path(bundle),
                       VOUCH_BOX_NAME));
    TRY(solver_new(&session->solver, &options, job_segments(bundle_job(bundle)), error));
    if (session->shared == NULL) {
        TRY(poster_start(&session->poster, session->solver, &session->job, &session->stopping, log,
                         session->poll_s, error));
    }
    return session_add(session, error);
}

/* ---- waiting ------------------------------------------------------------------------- */

bool session_is_begun(const struct solver_view *view)
{
    if (view->read && view->behind) {
        return true; /* it trains what is final before it stakes */
    }
    return view->read && view->ours &&
           (view->phase == GAME_PHASE_RUNNING || view->phase == GAME_PHASE_CLOSED);
}

bool session_is_committed(const struct solver_view *view)
{
    return view->read && (view->committed_for_good || view->phase == GAME_PHASE_CLOSED);
}

bool session_is_collected(const struct solver_view *view)
{
    return view->read && view->collected;
}

bool session_is_idle(const struct solver_view *view)
{
    return view->read && view->pending == 0;
}

bool session_is_defended(const struct solver_view *view)
{
    return view->read && view->pending == 0 && view->disputed == 0;
}

bool session_is_closed(const struct solver_view *view)
{
    return view->read && view->phase == GAME_PHASE_CLOSED;
}

static void note_of(char note[PROGRESS_NOTE_MAX], const struct solver_view *view)
{
    char time[TERMS_TIME_SIZE];

    if (view->trouble[0] != '\0') {
        (void)snprintf(note, PROGRESS_NOTE_MAX, "%.90s", view->trouble);
    } else if (view->collected) {
        (void)snprintf(note, PROGRESS_NOTE_MAX, "all is paid");
    } else {
        terms_time(time, view->now_s);
        (void)snprintf(note, PROGRESS_NOTE_MAX, "committed %u, open claims %u, ledger's time %s",
                       view->committed, view->disputed, time);
    }
}

enum status session_wait(struct session *session, struct solver_view *view,
                         bool (*done)(const struct solver_view *view), struct stop *stop,
                         uint64_t timeout_s, FILE *stream, struct error *error)
{
    double end_s = steady_seconds() + (double)timeout_s;
    struct progress progress;
    char note[PROGRESS_NOTE_MAX];
    enum status status = STATUS_OK;
    double spent;

    poster_look(session->poster, view, &spent);
    progress_init(&progress, stream, "final", "segments", view->finalized,
                  job_segments(bundle_job(session->bundle)), steady_seconds());
    /* A view from before the last segment was added does not count. */
    while (status == STATUS_OK && (view->trained < session->added || !done(view))) {
        if (session->notify != NULL) {
            notify_alive(session->notify);
        }
        if (view->gone) {
            status = ledger_is_gone(view, error);
        } else if (view->read && (view->lost_for_good || view->contradicted) &&
                   view->pending == 0) {
            status = error_set(error, STATUS_REFUSED, "%s", view->trouble);
        } else if (timeout_s != 0 && steady_seconds() > end_s &&
                   !(session->outlasts_outages && (view->unreachable || view->early))) {
            status = error_set(error, STATUS_UNREACHABLE, "the ledger took too long%s%s",
                               view->trouble[0] == '\0' ? "" : ": ", view->trouble);
        } else if (stop_wait(stop, LOOK_SECONDS)) {
            status = error_set(error, STATUS_STOPPED, "stopped while waiting for the ledger");
        } else {
            poster_look(session->poster, view, &spent);
            note_of(note, view);
            progress_update(&progress, view->finalized, note, steady_seconds());
        }
    }
    if (stream != NULL) {
        note_of(note, view);
        progress_finish(&progress, view->finalized, note, steady_seconds());
    }
    return status;
}
