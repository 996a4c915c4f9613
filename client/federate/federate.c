/* federate.c - see federate.h. */
#include "client/federate/federate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/secret.h"
#include "chain/commands/commands.h"
#include "chain/commands/job_source.h"
#include "chain/view/ledger_end.h"
#include "client/federate/federation.h"
#include "proofs/bundle/model_export.h"
#include "proofs/job/job_file.h"
#include "proofs/run/run.h"

const struct option_spec federate_options[FEDERATE_OPTIONS] = {
    {.name = "out",
     .required = true,
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "where agreement, jobs, states and records go; the same command goes on there"},
    {.name = "hf",
     .heading = "result",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "at the end also make a new folder of Hugging Face with the model, or its adapters"},
    {.name = "base",
     .heading = "model",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .help = "with --hf: the folder that the jobs began with"},
    {.name = "merge",
     .heading = "result",
     .kind = OPTION_FLAG,
     .help = "with --hf: add adapters to the weights"},
    {.name = "rounds",
     .heading = "rounds",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .fallback = "1",
     .minimum = 1,
     .maximum = ROUNDS_MAX,
     .help = "how often the owners train and their states are averaged",
     .command_line_only = true},
    {.name = "quorum",
     .heading = "rounds",
     .often = true,
     .kind = OPTION_INTEGER,
     .value = "N",
     .minimum = 1,
     .maximum = ROUNDS_OWNERS_MAX,
     .help = "a round may leave out owners whose solver was convicted or late, where so many "
             "others gave a state (default: all owners, nobody is left out)",
     .command_line_only = true},
    {.name = "outer",
     .heading = "rounds",
     .kind = OPTION_TEXT,
     .value = "RATE:MOMENTUM",
     .help = "step from the start of a round towards the mean with Nesterov's momentum, such as "
             "0.7:0.9 (default: the mean itself)",
     .command_line_only = true},
    {.name = "keep-moments",
     .heading = "rounds",
     .kind = OPTION_FLAG,
     .help = "average the moments of the optimizer too (default: they begin each round as zeros)",
     .command_line_only = true},
    {.name = "offline",
     .heading = "ledger",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "no ledger: train all jobs here, one after the other, to try a plan",
     .command_line_only = true},
    {.name = "serve",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "ADDRESS:PORT",
     .help = "also serve jobs, rows and first states to solvers and verifiers there, as 'job "
             "serve' does"},
    {.name = "contact",
     .heading = "serving",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "URL",
     .help = "where solvers and verifiers find them; it stands on the ledger (default: what "
             "--serve listens on)"},
    {.name = "threads",
     .heading = "machine",
     .kind = OPTION_INTEGER,
     .maximum = MACHINE_THREADS_MAX,
     .value = "N",
     .help = "threads of each training and of the mean (default: all cores)"},
    {.name = "yes",
     .heading = "account",
     .often = true,
     .kind = OPTION_FLAG,
     .help = "open the jobs without a prompt",
     .command_line_only = true},
    CHAIN_POLL_OPTION("how often to look at the ledger"),
    {.name = "timeout",
     .heading = "ledger",
     .kind = OPTION_DURATION,
     .fallback = "10m",
     .minimum = 1,
     .value = "TIME",
     .help = "how long to wait for the ledger"},
    CHAIN_LEDGER_OPTIONS,
    CHAIN_KEY_OPTIONS,
    CHAIN_ACCOUNT_OPTION,
    JOB_SOURCE_OPTIONS,
};

/* ---- the agreement -------------------------------------------------------- */

static enum status take_outer(struct rounds *rounds, const char *text, struct error *error)
{
    const char *colon = text == NULL ? NULL : strchr(text, ':');
    const size_t before = colon == NULL ? 0 : (size_t)(colon - text);

    if (text == NULL) {
        return STATUS_OK;
    }
    if (colon == NULL || before > ROUNDS_FACTOR_MAX || strlen(colon + 1) > ROUNDS_FACTOR_MAX) {
        return error_set(error, STATUS_USAGE, "--outer: a rate and a momentum, such as 0.7:0.9");
    }
    (void)snprintf(rounds->outer_rate, sizeof(rounds->outer_rate), "%.*s", (int)before, text);
    (void)snprintf(rounds->outer_momentum, sizeof(rounds->outer_momentum), "%s", colon + 1);
    return STATUS_OK;
}

/* What plan and options ask for. */
static enum status wanted_agreement(struct rounds *wanted, const struct federation *federation,
                                    struct error *error)
{
    const struct options *options = federation->options;
    const struct federate_plan *plan = &federation->plan;

    *wanted = (struct rounds){.owner_count = plan->owner_count,
                              .count = (uint32_t)options_number(options, "rounds"),
                              .quorum = options_given(options, "quorum")
                                            ? (uint32_t)options_number(options, "quorum")
                                            : plan->owner_count,
                              .keep_moments = options_flag(options, "keep-moments")};
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        if (strlen(plan->owners[i].name) > ROUNDS_NAME_MAX) {
            return error_set(error, STATUS_USAGE, "owner %u: its name is longer than %d bytes",
                             i + 1, ROUNDS_NAME_MAX);
        }
        memcpy(wanted->owners[i].name, plan->owners[i].name, strlen(plan->owners[i].name) + 1);
        wanted->owners[i].job = plan->owners[i].job->id;
    }
    TRY(take_outer(wanted, options_text(options, "outer"), error));
    if (federation->ledger != NULL) {
        ledger_end_place(wanted->place, federation->ledger);
    }
    return rounds_check(wanted, error);
}

/* The word of the plan or the options that differs; NULL: none does. */
static const char *differing_word(const struct rounds *there, const struct rounds *wanted)
{
    if (there->owner_count != wanted->owner_count) {
        return "owners";
    }
    for (uint32_t i = 0; i < there->owner_count; i++) {
        if (strcmp(there->owners[i].name, wanted->owners[i].name) != 0 ||
            !digest_equal(&there->owners[i].job, &wanted->owners[i].job)) {
            return "owners, or jobs of them";
        }
    }
    return there->count != wanted->count                 ? "--rounds"
           : there->quorum != wanted->quorum             ? "--quorum"
           : there->keep_moments != wanted->keep_moments ? "--keep-moments"
           : strcmp(there->outer_rate, wanted->outer_rate) != 0 ||
                   strcmp(there->outer_momentum, wanted->outer_momentum) != 0
               ? "--outer"
           : strcmp(there->place, wanted->place) != 0 ? "ledger"
                                                      : NULL;
}

static enum status go_on(struct federation *federation, const struct rounds *wanted,
                         struct error *error)
{
    const char *other;

    TRY(rounds_read(&federation->rounds, federation->folder, error));
    other = differing_word(&federation->rounds, wanted);
    if (other == NULL) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED, "%s has rounds with another agreement: other %s",
                    federation->folder, other);
    error_advise(error, "name another --out, or the plan and the options that it was begun with");
    return STATUS_REFUSED;
}

/* A copy of each job as it was given: a checker makes the jobs of all rounds of it. */
static enum status write_jobs(const struct federation *federation, struct error *error)
{
    for (uint32_t i = 0; i < federation->plan.owner_count; i++) {
        char path[FILE_PATH_MAX];

        TRY(rounds_owner_path(path, federation->folder, 0, i, "job", error));
        if (file_exists(path)) { /* a kill left it; the agreement comes last */
            struct job *there = NULL;
            bool same;

            TRY(job_read(&there, path, error));
            same = digest_equal(&there->id, &federation->plan.owners[i].job->id);
            job_free(there);
            if (!same) {
                return error_set(error, STATUS_REFUSED, "%s is another job", path);
            }
        } else {
            TRY(job_write(federation->plan.owners[i].job, path, error));
        }
    }
    return STATUS_OK;
}

static void tell_agreement(const struct federation *federation)
{
    const struct rounds *rounds = &federation->rounds;

    command_tell(federation->context,
                 "%u owners, %u rounds; a round needs %u states; %s%s%s%s%s\n"
                 "The rows of each owner are public to those who check its job.\n",
                 rounds->owner_count, rounds->count, rounds->quorum,
                 rounds_has_outer(rounds) ? "outer step " : "the mean is next", rounds->outer_rate,
                 rounds_has_outer(rounds) ? ", momentum " : "", rounds->outer_momentum,
                 rounds->keep_moments ? "; moments are averaged" : "");
}

static enum status begin_agreement(struct federation *federation, struct rounds *wanted,
                                   struct error *error)
{
    federation->rounds = *wanted;
    tell_agreement(federation);
    if (federation->ledger != NULL) {
        TRY(command_confirm(federation->context, "Open these jobs, round by round?", error));
    }
    TRY(write_jobs(federation, error));
    TRY(secret_random(federation->rounds.nonce.bytes, DIGEST_SIZE, error));
    return rounds_write(&federation->rounds, federation->folder, error);
}

static enum status open_federation(struct federation *federation, struct error *error)
{
    const struct options *options = federation->options;
    char path[FILE_PATH_MAX];
    struct rounds *wanted = calloc(1, sizeof(*wanted));
    enum status status;

    TRY_OUT(wanted == NULL ? error_set(error, STATUS_NO_MEMORY, "no memory for a federation")
                           : STATUS_OK);
    TRY_OUT(federate_plan_read(&federation->plan, options->arguments[0],
                               options_flag(options, "keep-moments"), federation->context->group,
                               error));
    if (!options_flag(options, "offline")) {
        TRY_OUT(federate_ledger_open(federation, error));
    }
    TRY_OUT(wanted_agreement(wanted, federation, error));
    TRY_OUT(file_make_folder(federation->folder, error, 0755));
    TRY_OUT(rounds_path(path, federation->folder, 0, "lock", error));
    TRY_OUT(file_lock_open(&federation->lock, error, path, "name another --out"));
    status = rounds_is_folder(federation->folder) ? go_on(federation, wanted, error)
                                                  : begin_agreement(federation, wanted, error);
out:
    free(wanted);
    return status;
}

/* ---- the rounds ----------------------------------------------------------- */

static enum status run_rounds(struct federation *federation, struct error *error)
{
    for (uint32_t number = 1; number <= federation->rounds.count; number++) {
        char path[FILE_PATH_MAX];

        TRY(rounds_path(path, federation->folder, number, ROUND_RECORD_FILE, error));
        if (!file_exists(path)) {
            TRY(federate_round_run(federation, number, error));
        }
    }
    return STATUS_OK;
}

/* The last mean as other programs read it. A folder that is there already is refused. */
static enum status export_mean(const struct federation *federation, struct error *error)
{
    const struct options *options = federation->options;
    const uint32_t last = federation->rounds.count;
    char id[HEX_SIZE(DIGEST_SIZE)];
    char path[FILE_PATH_MAX];
    struct model_export wanted = {.folder = options_text(options, "hf"),
                                  .base = options_text(options, "base"),
                                  .merge = options_flag(options, "merge"),
                                  .job = federation->plan.owners[0].job,
                                  .rounds = id,
                                  .round = last};
    struct round_record record;
    struct safetensors state;
    enum status status;

    if (wanted.folder == NULL) {
        return STATUS_OK;
    }
    hex_encode(id, federation->rounds.id.bytes, DIGEST_SIZE);
    TRY_OUT(round_record_read(&record, federation->folder, last, error));
    wanted.root = record.mean_state;
    TRY_OUT(rounds_path(path, federation->folder, last + 1, ROUND_START_FILE, error));
    TRY_OUT(safetensors_open(&state, error, path));
    wanted.state = &state;
    status = model_export(&wanted, error);
    safetensors_close(&state);
out:
    round_record_release(&record);
    return status;
}

static json_t *owner_view(const struct round_record *record, uint32_t at)
{
    const struct round_owner *owner = &record->owners[at];
    char state[HEX_SIZE(DIGEST_SIZE)] = "";
    const enum round_end end =
        owner->try_count == 0 ? ROUND_END_NONE : owner->tries[owner->try_count - 1].end;

    if (owner->has_state) {
        hex_encode(state, owner->state.bytes, DIGEST_SIZE);
    }
    return json_pack("{s:s, s:s, s:i, s:s*}", "name", record->names[at], "end", round_end_word(end),
                     "tries", (int)owner->try_count, "state", owner->has_state ? state : NULL);
}

static enum status add_round(json_t *list, struct sheet *sheet, const char *folder, uint32_t number,
                             struct error *error)
{
    struct round_record record;
    json_t *owners = json_array();
    char mean[HEX_SIZE(DIGEST_SIZE)];
    char next[HEX_SIZE(DIGEST_SIZE)];
    enum status status = round_record_read(&record, folder, number, error);

    if (status == STATUS_OK) {
        hex_encode(mean, record.mean_state.bytes, DIGEST_SIZE);
        hex_encode(next, record.next.bytes, DIGEST_SIZE);
        for (uint32_t i = 0; i < record.owner_count; i++) {
            (void)json_array_append_new(owners, owner_view(&record, i));
        }
        (void)json_array_append_new(list,
                                    json_pack("{s:i, s:O, s:s, s:s}", "round", (int)number,
                                              "owners", owners, "mean_state", mean, "next", next));
        sheet_print(sheet, "round %-3u    %u of %u states, mean %s\n", number,
                    round_mean_count(&record), record.owner_count, mean);
    }
    json_decref(owners);
    round_record_release(&record);
    return status;
}

static int report_rounds(struct command_context *context, const struct federation *federation)
{
    char id[HEX_SIZE(DIGEST_SIZE)];
    char model[FILE_PATH_MAX] = "";
    json_t *list = json_array();
    struct sheet sheet;
    struct error error;
    enum status status = STATUS_OK;

    error_init(&error);
    sheet_init(&sheet);
    hex_encode(id, federation->rounds.id.bytes, DIGEST_SIZE);
    for (uint32_t i = 1; i <= federation->rounds.count && status == STATUS_OK; i++) {
        status = add_round(list, &sheet, federation->folder, i, &error);
    }
    if (status == STATUS_OK) {
        status = rounds_path(model, federation->folder, federation->rounds.count + 1,
                             ROUND_START_FILE, &error);
    }
    if (status != STATUS_OK) {
        json_decref(list);
        sheet_release(&sheet);
        return command_fail(context, &error);
    }
    sheet_print(&sheet, "rounds       %s\nstate        %s\n", id, model);
    sheet_print(&sheet, "check it     lockstep audit %s\n", federation->folder);
    sheet_merge(&sheet, json_pack("{s:s, s:s, s:s, s:o}", "id", id, "folder", federation->folder,
                                  "state", model, "rounds", list));
    return command_show(context, &sheet);
}

/* ---- the command ---------------------------------------------------------- */

int federate_run(struct command_context *context)
{
    struct federation *federation = calloc(1, sizeof(*federation));
    struct error error;
    enum status status;
    int code;

    error_init(&error);
    if (federation == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory for a federation");
        return command_fail(context, &error);
    }
    *federation = (struct federation){.context = context,
                                      .options = context->options,
                                      .folder = options_text(context->options, "out"),
                                      .stop = {.descriptor = -1},
                                      .lock = {.descriptor = -1}};
    TRY_OUT(stop_open(&federation->stop, &error));
    TRY_OUT(open_federation(federation, &error));
    TRY_OUT(run_rounds(federation, &error));
    TRY_OUT(export_mean(federation, &error));
out:
    federate_child_stop(&federation->server);
    code = status == STATUS_OK ? report_rounds(context, federation) : command_fail(context, &error);
    file_lock_close(&federation->lock);
    ledger_close(federation->ledger);
    federate_plan_release(&federation->plan);
    stop_close(&federation->stop);
    free(federation);
    return code;
}
