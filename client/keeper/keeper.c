/* keeper.c - see keeper.h. */
#include "client/keeper/keeper.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/steady.h"
#include "chain/codec/hex_data.h"
#include "chain/commands/commands.h"
#include "chain/commands/job_source.h"
#include "chain/game/ledger_retry.h"
#include "chain/job/job_states.h"
#include "chain/keys/passphrase.h"
#include "client/keeper/keep_hand.h"
#include "client/keeper/keep_moves.h"
#include "client/keeper/keep_owners.h"
#include "client/keeper/keep_plan.h"
#include "client/keeper/keep_replay.h"

enum {
    MIRROR_MS = 5000, /* how often the own mirror is asked, */
    MISSES_MAX = 3,   /* and how often in a row it may be silent */
    RETRY_MS = 2000,  /* the first pause after something failed, */
    RETRY_MS_MAX = 120000,
    TELL_SHARE = 40, /* of the seal period: a vouch is handed over again until the ledger has it */
    TELL_MS_MIN = 2000,
    TROUBLE_MAX = 300,
    KEY_DIGITS = 16, /* of a job, in the name of its folder */
};

/* Something that is tried again after a pause. */
struct retry {
    uint32_t failures;
    uint64_t next_ms;
};

/* A covered segment that is not final. */
struct keeper_slot {
    uint32_t index;
    struct hash32 hash;
    struct job_states_place start; /* of step 0: nothing to fetch */
    struct job_states_place end;
    struct keep_known known;
    bool told; /* the solver or the ledger has the vouch */
    bool announced;
    struct retry telling;
    struct retry bringing;
    struct retry replaying;
};

struct keeper {
    struct keeper_options options;
    struct signer *signer;
    struct job_source source;
    struct watch_keep *keep;
    struct keep_replay replay;
    char folder[FILE_PATH_MAX]; /* of the states */
    struct keep_policy policy;
    struct keeper_counts counts;
    struct ledger_clock clock;
    char contact[GAME_CONTACT_MAX + 1];
    bool contact_told;
    struct retry contacting;
    struct retry refusing;
    struct keeper_slot slots[GAME_OPEN_MAX];
    uint32_t slot_count;
    uint64_t told_read; /* how far the ledger was read when states were asked for */
    uint64_t asked_ms;  /* the own mirror */
    uint32_t misses;    /* in a row; it had no chance yet: MISSES_MAX */
    uint64_t well_s;
    char trouble[TROUBLE_MAX]; /* of this round; empty: none */
    char logged[TROUBLE_MAX];
};

static const struct log *log_of(const struct keeper *keeper)
{
    return keeper->options.context->log;
}

/* ---- trouble ---------------------------------------------------------------------- */

/* The first one of a round is shown; what is new is logged. */
static void note_trouble(struct keeper *keeper, const char *what, const char *why)
{
    char text[TROUBLE_MAX];

    (void)snprintf(text, sizeof(text), "%.90s: %.200s", what, why);
    if (keeper->trouble[0] == '\0') {
        memcpy(keeper->trouble, text, sizeof(text));
    }
    if (strcmp(keeper->logged, text) != 0) {
        memcpy(keeper->logged, text, sizeof(text));
        log_warn(log_of(keeper), "keeper", "%s", text);
    }
}

static bool is_time(const struct retry *retry)
{
    return steady_ms() >= retry->next_ms;
}

static void fail(struct keeper *keeper, struct retry *retry, const char *what, const char *why)
{
    note_trouble(keeper, what, why);
    retry->next_ms = steady_ms() + backoff_pause(RETRY_MS, RETRY_MS_MAX, retry->failures++);
}

static void succeed(struct retry *retry, uint64_t again_ms)
{
    retry->failures = 0;
    retry->next_ms = steady_ms() + again_ms;
}

static void name_segment(char text[64], const struct keeper_slot *slot)
{
    (void)snprintf(text, 64, "segment %" PRIu32, slot->index);
}

/* ---- what stands ------------------------------------------------------------------ */

static struct keeper_slot *find_slot(struct keeper *keeper, const struct hash32 *hash)
{
    for (uint32_t i = 0; i < keeper->slot_count; i++) {
        if (hash32_equal(&keeper->slots[i].hash, hash)) {
            return &keeper->slots[i];
        }
    }
    return NULL;
}

static struct keeper_slot new_slot(const struct job_record *record, uint32_t index,
                                   const struct hash32 *hash)
{
    struct job_segment segment = job_record_segment(record, index);

    return (struct keeper_slot){
        .index = index, .hash = *hash, .known.first_end_s = job_segment_reveal_end(&segment)};
}

/* One for each covered segment that is not final, the earliest first. */
static void find_slots(struct keeper *keeper)
{
    const struct job_record *record = &keeper->source.record;
    struct keeper_slot slots[GAME_OPEN_MAX];
    uint32_t count = 0;

    for (uint32_t i = record->state.finalized; i < record->state.committed && count < GAME_OPEN_MAX;
         i++) {
        const struct job_record_segment *segment = &record->segments[i];
        struct hash32 hash = game_segment_hash(&record->key, &segment->committed);
        const struct keeper_slot *before = find_slot(keeper, &hash);

        if (segment->draw.covered && i < record->state.drawn) {
            slots[count++] = before != NULL ? *before : new_slot(record, i, &hash);
        }
    }
    memcpy(keeper->slots, slots, count * sizeof(slots[0]));
    keeper->slot_count = count;
}

/* ---- states ----------------------------------------------------------------------- */

/* States in the order in which they matter, each once. */
struct wanted {
    struct job_states_place places[WATCH_KEEP_STATES_MAX];
    uint32_t count;
};

static void want(struct wanted *wanted, const struct job_states_place *place)
{
    for (uint32_t i = 0; i < wanted->count; i++) {
        if (wanted->places[i].step == place->step) {
            return;
        }
    }
    if (place->step != 0 && wanted->count < WATCH_KEEP_STATES_MAX) {
        wanted->places[wanted->count++] = *place;
    }
}

static void set_places(struct keeper *keeper, const struct job_states_place *ends, uint32_t count)
{
    static const struct job_states_place none;
    uint32_t committed = keeper->source.record.state.committed;

    for (uint32_t i = 0; i < keeper->slot_count; i++) {
        struct keeper_slot *slot = &keeper->slots[i];
        uint32_t back = committed - 1 - slot->index;

        slot->end = back < count ? ends[back] : none;
        /* The state before step 0 is the client's own: its job has it, or 'job serve' does. */
        slot->start = slot->index > 0 && back + 1 < count ? ends[back + 1] : none;
    }
}

/* What a covered segment needs comes first, of those that nobody vouched for before the others;
 * then the last ends, for a solver that goes on from there. */
static enum status ask_for_states(struct keeper *keeper, struct error *error)
{
    const struct job_record *record = &keeper->source.record;
    struct job_states_place ends[WATCH_KEEP_STATES_MAX];
    uint32_t count = record->state.committed < WATCH_KEEP_STATES_MAX ? record->state.committed
                                                                     : WATCH_KEEP_STATES_MAX;
    struct wanted wanted = {.count = 0};

    if (keeper->told_read == record->read) {
        return STATUS_OK;
    }
    TRY(job_source_add_contacts(&keeper->source, error));
    TRY(job_states_last_ends(ends, count, keeper->source.ledger, record, error));
    set_places(keeper, ends, count);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < keeper->slot_count; i++) {
            const struct keeper_slot *slot = &keeper->slots[i];

            if (record->segments[slot->index].draw.vouched == (pass == 1)) {
                want(&wanted, &slot->start);
                want(&wanted, &slot->end);
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        want(&wanted, &ends[i]);
    }
    watch_keep_tell(keeper->keep, wanted.places, wanted.count, &keeper->source.mirrors);
    keeper->told_read = record->read;
    return STATUS_OK;
}

/* The first state is in the job, or its client serves it. */
static bool has_start(struct keeper *keeper, const struct keeper_slot *slot)
{
    return slot->index == 0 ||
           (slot->start.step != 0 && watch_keep_has(keeper->keep, &slot->start));
}

static bool has_end(struct keeper *keeper, const struct keeper_slot *slot)
{
    return slot->end.step != 0 && watch_keep_has(keeper->keep, &slot->end);
}

/* A keeper that was restarted takes what it finds then for late: it replays rather than trusts. */
static void note_states(struct keeper *keeper, struct keeper_slot *slot)
{
    struct keep_known *known = &slot->known;

    if (!known->has_states) {
        known->late = keeper->clock.time_s > known->first_end_s;
    }
    known->has_states = known->has_start && has_end(keeper, slot);
}

/* ---- what is known ---------------------------------------------------------------- */

static bool is_known_right(const struct keeper *keeper, const struct keeper_slot *slot)
{
    const struct job_record *record = &keeper->source.record;

    for (uint32_t i = 0; i < record->seat_count; i++) {
        const struct job_record_seat *seat = &record->seats[i];

        if (seat->index == slot->index && seat->state.phase == GAME_SEAT_REVEALED &&
            seat->state.verdict == GAME_VERDICT_RIGHT &&
            keep_owners_has(keeper->options.context->options, &seat->owner)) {
            return true;
        }
    }
    return false;
}

/* Does our own mirror answer? A keeper that cannot be reached itself has no reason to blame
 * others. */
static void ask_mirror(struct keeper *keeper)
{
    uint64_t size = watch_keep_job_size(keeper->keep);

    if (keeper->asked_ms != 0 && steady_ms() < keeper->asked_ms + MIRROR_MS) {
        return;
    }
    keeper->asked_ms = steady_ms();
    if (size != 0 && keeper->contact[0] != '\0' &&
        keep_hand_answers(keeper->contact, &keeper->source.record.terms.job_id, size)) {
        keeper->misses = 0;
    } else if (keeper->misses < MISSES_MAX) {
        keeper->misses++;
    }
    if (keeper->misses == MISSES_MAX) {
        keeper->asked_ms = 0; /* the next round asks again */
        note_trouble(keeper, "our own mirror",
                     size == 0 ? "nobody gave the job file yet; --mirror names who has it"
                               : "it does not answer at the address that others know");
    }
}

/* ---- what is done ----------------------------------------------------------------- */

static enum status make_move(struct keeper *keeper, const struct keep_move *move,
                             struct error *error)
{
    return keep_moves_make(keeper->options.context, keeper->signer, &keeper->source.record, move,
                           error);
}

/* Where the solver says that it is found; false: nowhere. */
static bool solver_contact(struct keeper *keeper, char contact[GAME_CONTACT_MAX + 1])
{
    struct job_states_hosts hosts;
    struct error none;

    error_init(&none);
    if (job_states_find_hosts(&hosts, keeper->source.ledger, &keeper->source.record, &none) !=
        STATUS_OK) {
        return false;
    }
    for (uint32_t i = 0; i < hosts.count; i++) {
        if (address_equal(&hosts.hosts[i].owner, &keeper->source.record.state.solver)) {
            memcpy(contact, hosts.hosts[i].text, sizeof(hosts.hosts[i].text));
            return http_reach_is_url(contact) && http_reach_bad_url(contact) == NULL;
        }
    }
    return false;
}

/* To the solver by HTTP; where it does not take it, to everybody by the ledger, once. */
static void tell_vouch(struct keeper *keeper, struct keeper_slot *slot, const struct vouch *vouch)
{
    uint64_t again_ms = UINT64_C(1000) * keeper->source.record.terms.seal_period_s / TELL_SHARE;
    const struct keep_move move = {.kind = KEEP_MOVE_VOUCH, .vouch = vouch};
    char contact[GAME_CONTACT_MAX + 1];
    char what[64];
    struct error why;

    error_init(&why);
    name_segment(what, slot);
    if (!solver_contact(keeper, contact)) {
        (void)error_set(&why, STATUS_NOT_FOUND, "the solver says no address");
    } else if (keep_hand_put(contact, keeper->source.reach, vouch, &why) == STATUS_OK) {
        keeper->counts.handed += !slot->told;
        if (!slot->told) {
            log_info(log_of(keeper), "keeper", "%s: vouched, handed to the solver", what);
        }
        slot->told = true;
        succeed(&slot->telling, again_ms < TELL_MS_MIN ? TELL_MS_MIN : again_ms);
        return;
    }
    if (slot->announced || make_move(keeper, &move, &why) == STATUS_OK) {
        if (!slot->announced) {
            log_info(log_of(keeper), "keeper", "%s: vouched, announced on the ledger", what);
        }
        keeper->counts.announced += !slot->announced;
        slot->announced = slot->told = true;
        succeed(&slot->telling, RETRY_MS_MAX);
        return;
    }
    fail(keeper, &slot->telling, what, why.text);
}

static void bring_vouch(struct keeper *keeper, struct keeper_slot *slot, const struct vouch *vouch)
{
    const struct job_record_segment *segment = &keeper->source.record.segments[slot->index];
    const struct keep_move move = {.kind = KEEP_MOVE_BRING,
                                   .segment = &segment->committed,
                                   .round = segment->draw.round,
                                   .vouch = vouch};
    char what[64];
    struct error why;

    error_init(&why);
    name_segment(what, slot);
    if (make_move(keeper, &move, &why) == STATUS_OK) {
        keeper->counts.brought++;
        log_info(log_of(keeper), "keeper", "%s: the vouch is on the ledger by our own settle",
                 what);
        succeed(&slot->bringing, RETRY_MS);
    } else {
        fail(keeper, &slot->bringing, what, why.text);
    }
}

static void start_replay(struct keeper *keeper, struct keeper_slot *slot)
{
    char what[64];
    struct error why;

    error_init(&why);
    name_segment(what, slot);
    if (keep_replay_start(&keeper->replay, keeper->options.context, &keeper->source.record.key,
                          &slot->hash, slot->index, keeper->folder, &why) == STATUS_OK) {
        log_info(log_of(keeper), "keeper", "%s: %s; replaying it", what,
                 slot->known.has_states ? "the panel leaves a question"
                                        : "nobody gives the state that it ends in");
    } else {
        fail(keeper, &slot->replaying, what, why.text);
    }
}

static void refuse(struct keeper *keeper, const struct keeper_slot *slot)
{
    const struct keep_move move = {.kind = KEEP_MOVE_REFUSE};
    char what[64];
    struct error why;

    error_init(&why);
    name_segment(what, slot);
    if (make_move(keeper, &move, &why) == STATUS_OK) {
        keeper->counts.refused++;
        log_error(log_of(keeper), "keeper",
                  "%s: its states could not be fetched; REFUSED, what nobody vouched for burns",
                  what);
        succeed(&keeper->refusing, RETRY_MS);
    } else {
        fail(keeper, &keeper->refusing, what, why.text);
    }
}

static void act(struct keeper *keeper, struct keeper_slot *slot, const struct keep_needs *needs)
{
    const struct job_record *record = &keeper->source.record;
    struct vouch vouch;
    struct error why;

    error_init(&why);
    if (needs->vouch) {
        if (vouch_sign(&vouch, &record->place, &record->key, &slot->hash, keeper->signer, &why) !=
            STATUS_OK) {
            note_trouble(keeper, "signing", why.text);
            return;
        }
        if (is_time(&slot->telling)) {
            tell_vouch(keeper, slot, &vouch);
        }
        if (needs->bring && is_time(&slot->bringing)) {
            bring_vouch(keeper, slot, &vouch);
        }
    }
    if (needs->replay && keeper->replay.process == 0 && is_time(&slot->replaying)) {
        start_replay(keeper, slot);
    }
    if (needs->refuse && is_time(&keeper->refusing)) {
        refuse(keeper, slot);
    }
}

static void take_answer(struct keeper *keeper)
{
    struct hash32 hash = keeper->replay.segment;
    char words[KEEP_REPLAY_WORDS_MAX] = "";
    enum keep_answer answer = keep_replay_look(&keeper->replay, words);
    struct keeper_slot *slot = find_slot(keeper, &hash);
    char what[64];

    if (answer == KEEP_ANSWER_NONE) {
        return;
    }
    keeper->counts.right += answer == KEEP_ANSWER_RIGHT;
    keeper->counts.wrong += answer == KEEP_ANSWER_FALSE;
    keeper->counts.failed += answer == KEEP_ANSWER_TROUBLE;
    (void)snprintf(what, sizeof(what), "what was replayed"); /* it is final or void meanwhile */
    if (slot != NULL) {
        name_segment(what, slot);
        slot->known.replayed = answer != KEEP_ANSWER_TROUBLE;
        slot->known.is_false = answer == KEEP_ANSWER_FALSE;
    }
    if (answer == KEEP_ANSWER_TROUBLE) {
        fail(keeper, slot == NULL ? &(struct retry){0} : &slot->replaying, what, words);
    } else if (answer == KEEP_ANSWER_FALSE) {
        log_error(log_of(keeper), "keeper", "%s is FALSE, and nothing is vouched: %s", what, words);
    } else {
        log_info(log_of(keeper), "keeper", "%s is right, by a replay", what);
    }
}

/* Tells once where it serves, so that seats find the states here. */
static void tell_contact(struct keeper *keeper)
{
    const struct keep_move move = {.kind = KEEP_MOVE_CONTACT, .contact = keeper->contact};
    struct job_states_hosts hosts;
    struct error why;

    if (keeper->contact_told || keeper->contact[0] == '\0' || !is_time(&keeper->contacting)) {
        return;
    }
    error_init(&why);
    if (job_states_find_hosts(&hosts, keeper->source.ledger, &keeper->source.record, &why) ==
        STATUS_OK) {
        for (uint32_t i = 0; i < hosts.count && !keeper->contact_told; i++) {
            keeper->contact_told = strcmp(hosts.hosts[i].text, keeper->contact) == 0;
        }
    }
    if (keeper->contact_told || make_move(keeper, &move, &why) == STATUS_OK) {
        keeper->contact_told = true;
    } else {
        fail(keeper, &keeper->contacting, "announcing where this keeper serves", why.text);
    }
}

/* ---- the round -------------------------------------------------------------------- */

static enum status look(struct keeper *keeper, struct error *error)
{
    struct job_source *source = &keeper->source;

    TRY(ledger_catch_up(source->ledger, error));
    TRY(job_record_follow(&source->record, source->ledger, error));
    TRY(ledger_get_clock(source->ledger, &keeper->clock, error));
    if (ledger_is_stale(&keeper->clock) &&
        !ledger_is_embedded(options_text(keeper->options.context->options, "ledger"))) {
        return error_set(error, STATUS_UNREACHABLE, "its newest block is old");
    }
    find_slots(keeper);
    return ask_for_states(keeper, error);
}

static void show(struct keeper *keeper)
{
    struct watch_sight *sight = keeper->options.sight;

    (void)pthread_mutex_lock(&sight->lock);
    job_standing_take(&sight->view.standing, &keeper->source.record, keeper->clock.time_s);
    ledger_ill_endpoints(keeper->source.ledger, sight->view.standing.endpoints,
                         sizeof(sight->view.standing.endpoints));
    sight->view.card = keeper->source.record.card;
    (void)snprintf(sight->view.trouble, sizeof(sight->view.trouble), "%s", keeper->trouble);
    (void)pthread_mutex_unlock(&sight->lock);
}

static void work(struct keeper *keeper)
{
    struct keeper_counts *counts = &keeper->counts;

    ask_mirror(keeper);
    if (keeper->misses == MISSES_MAX) {
        keeper->well_s = 0;
    } else if (keeper->well_s == 0) {
        keeper->well_s = keeper->clock.time_s;
    }
    tell_contact(keeper);
    take_answer(keeper);
    counts->pending = keeper->slot_count;
    counts->held = counts->noted = 0;
    for (uint32_t i = 0; i < keeper->slot_count; i++) {
        struct keeper_slot *slot = &keeper->slots[i];
        struct job_segment segment = job_record_segment(&keeper->source.record, slot->index);
        struct keep_needs needs;

        slot->known.has_start = has_start(keeper, slot);
        slot->known.start_comes = i > 0 && slot[-1].index + 1 == slot->index &&
                                  (slot[-1].known.has_start || slot[-1].known.start_comes);
        note_states(keeper, slot);
        slot->known.known_right = is_known_right(keeper, slot);
        slot->known.well_s = keeper->well_s;
        needs = keep_plan(&segment, &slot->known, &keeper->policy, keeper->clock.time_s);
        counts->held += slot->known.has_states;
        counts->noted += segment.noted;
        act(keeper, slot, &needs);
    }
    counts->looked_s = keeper->clock.time_s;
}

enum status keeper_round(struct keeper *keeper, struct error *error)
{
    struct error why;
    enum status status;

    error_init(&why);
    keeper->trouble[0] = '\0';
    status = look(keeper, &why);
    if (status == STATUS_OK) {
        work(keeper);
    } else if (status == STATUS_UNREACHABLE) {
        keeper->well_s = 0;
        note_trouble(keeper, "the ledger", why.text);
    } else {
        *error = why;
        return status;
    }
    if (keeper->trouble[0] == '\0') {
        keeper->logged[0] = '\0';
    }
    show(keeper);
    return STATUS_OK;
}

bool keeper_is_done(const struct keeper *keeper)
{
    return keeper->source.record.state.phase == GAME_PHASE_CLOSED;
}

struct keeper_counts keeper_counts(const struct keeper *keeper)
{
    return keeper->counts;
}

const struct job_record *keeper_record(const struct keeper *keeper)
{
    return &keeper->source.record;
}

const char *keeper_contact(const struct keeper *keeper)
{
    return keeper->contact;
}

/* ---- opening and closing ----------------------------------------------------------- */

static enum status check_key(const struct keeper *keeper, struct error *error)
{
    const struct address *wanted = &keeper->source.record.terms.keeper;
    char theirs[ADDRESS_TEXT_SIZE];
    char ours[ADDRESS_TEXT_SIZE];

    if (address_is_zero(wanted)) {
        (void)error_set(error, STATUS_REFUSED, "this job has no keeper");
        error_advise(error, "'job open --keeper ADDRESS' names one");
        return STATUS_REFUSED;
    }
    if (address_equal(wanted, signer_address(keeper->signer))) {
        return STATUS_OK;
    }
    address_print(theirs, wanted);
    address_print(ours, signer_address(keeper->signer));
    (void)error_set(error, STATUS_REFUSED, "the keeper of this job is %s, and this key is %s",
                    theirs, ours);
    error_advise(error, "name its key with --account");
    return STATUS_REFUSED;
}

/* What it can do with the money that it has. */
static enum status say_purse(const struct keeper *keeper, struct error *error)
{
    wei bond = game_claim_bond(&keeper->source.record.terms, 0);
    bool embedded = ledger_is_embedded(options_text(keeper->options.context->options, "ledger"));
    char wanted[WEI_TEXT_SIZE];
    char has[WEI_TEXT_SIZE];
    wei purse = 0;
    wei owed = 0;

    log_info(log_of(keeper), "keeper",
             "anybody with this key can give the escrow of this job away, and nothing else");
    TRY(ledger_get_account(keeper->source.ledger, &purse, &owed, signer_address(keeper->signer),
                           error));
    currency_print(wanted, ledger_get_currency(keeper->source.ledger), bond);
    currency_print(has, ledger_get_currency(keeper->source.ledger), purse + owed);
    if (keeper->policy.replays && keeper->replay.secret == NULL &&
        options_text(keeper->options.context->options, "passphrase-file") == NULL) {
        log_warn(
            log_of(keeper), "keeper",
            "no replay gets a passphrase that was typed here, so nothing false is claimed: give "
            "--passphrase-file FILE, or set " PASSPHRASE_VARIABLE);
    }
    if (keeper->policy.replays) {
        log_write(log_of(keeper), purse + owed < bond ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "keeper",
                  "to claim what a replay finds false it wants a bond of %s%s%s; the account has "
                  "%s. Without them it protects only against withholding",
                  wanted, embedded ? "" : " and gas: at most ",
                  embedded ? "" : "8 million of it in a dispute", has);
    }
    return STATUS_OK;
}

/* The folder of the keeper's state, and those below it. However the user says the job, it is the
 * same one. */
static enum status find_folders(struct keeper *keeper, struct error *error)
{
    const struct keeper_options *options = &keeper->options;
    char place[FILE_PATH_MAX];
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char name[64];

    if (options->state != NULL) {
        (void)snprintf(place, sizeof(place), "%s", options->state);
    } else {
        hex_write(key, keeper->source.record.key.bytes, HASH32_SIZE, true);
        (void)snprintf(name, sizeof(name), "keeper/%.*s", KEY_DIGITS, key);
        TRY(file_place(place, sizeof(place), error, FILE_PLACE_STATE, name));
    }
    TRY(file_private_folder(place, error));
    TRY(file_path_join(keeper->replay.folder, FILE_PATH_MAX, error, place, "replay"));
    if (options->folder != NULL) {
        (void)snprintf(keeper->folder, sizeof(keeper->folder), "%s", options->folder);
        return STATUS_OK;
    }
    return file_path_join(keeper->folder, FILE_PATH_MAX, error, place, "kept");
}

static enum status open_keep(struct keeper *keeper, struct error *error)
{
    const struct keeper_options *options = &keeper->options;
    const struct watch_keep_options keep = {
        .sight = options->sight,
        .stop = options->stop,
        .log = log_of(keeper),
        .area = "keeper",
        .terms = &keeper->source.record.terms,
        .folder = keeper->folder,
        .place = options->place,
        .bytes_max = options_number(options->context->options, "keep-max")};
    const char *contact = options->contact;

    TRY(watch_keep_open(&keeper->keep, &keep, error));
    if (contact == NULL && watch_keep_can_be_called(keeper->keep)) {
        contact = watch_keep_url(keeper->keep);
    }
    if (contact == NULL) {
        log_warn(log_of(keeper), "keeper",
                 "nobody can call this keeper: name this machine with --contact");
        return STATUS_OK;
    }
    return snprintf(keeper->contact, sizeof(keeper->contact), "%s", contact) <=
                   (int)GAME_CONTACT_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--contact: more than %d bytes", GAME_CONTACT_MAX);
}

/* A ledger that cannot be reached now is waited for: who ends would let the job down. */
static enum status open_source(struct keeper *keeper, struct error *error)
{
    const struct keeper_options *options = &keeper->options;
    struct ledger_retry retry = {.stop = options->stop,
                                 .notify = options->notify,
                                 .log = log_of(keeper),
                                 .area = "keeper",
                                 .terminal = stderr};
    enum status status;

    do {
        job_source_close(&keeper->source);
        status = job_source_open(&keeper->source, options->key, options->context, NULL, error);
    } while (ledger_retry_again(&retry, &status, error));
    return status;
}

enum status keeper_open(struct keeper **keeper, const struct keeper_options *options,
                        struct error *error)
{
    const struct options *given = options->context->options;
    struct keeper *made = calloc(1, sizeof(*made));
    enum status status;

    *keeper = made;
    if (made == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a keeper");
    }
    made->options = *options;
    made->policy.refuses = !options_flag(given, "no-refuse");
    made->policy.replays = !options_flag(given, "no-replay");
    made->told_read = UINT64_MAX;
    made->misses = MISSES_MAX;
    TRY_OUT(keep_owners_check(given, error));
    TRY_OUT(keep_replay_remember(&made->replay, error));
    TRY_OUT(chain_unlock(&made->signer, options->context, error));
    TRY_OUT(open_source(made, error));
    made->source.mirrors.stop = options->stop;
    TRY_OUT(check_key(made, error));
    TRY_OUT(find_folders(made, error));
    TRY_OUT(say_purse(made, error));
    TRY_OUT(open_keep(made, error));
out:
    if (status != STATUS_OK) {
        keeper_close(made);
        *keeper = NULL;
    }
    return status;
}

void keeper_close(struct keeper *keeper)
{
    if (keeper == NULL) {
        return;
    }
    keep_replay_stop(&keeper->replay);
    keep_replay_forget(&keeper->replay);
    watch_keep_close(keeper->keep);
    job_source_close(&keeper->source);
    signer_free(keeper->signer);
    free(keeper);
}
