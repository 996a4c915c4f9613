/* job_source.c - see job_source.h. */
#include "chain/commands/job_source.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/io/file.h"
#include "base/steady.h"
#include "chain/commands/commands.h"
#include "chain/game/terms.h"
#include "chain/job/due_moves.h"
#include "chain/job/job_states.h"
#include "chain/job/job_wait.h"
#include "proofs/commit/commit.h"
#include "proofs/job/job_file.h"
#include "proofs/mirror/piece_fetch.h"
#include "proofs/run/run.h"

enum {
    DATA_HEADER_MAX = 65536, /* of a .npy */
    LOOK_S = 2,              /* at a job that is waited for */
    KEY_BYTES = 4,           /* of its key, which each command takes */
};

#define DUE_TOLD_S 6.0
#define DUE_END_S  600.0

enum status job_source_add_contacts(struct job_source *source, struct error *error)
{
    struct job_states_hosts hosts;

    TRY(job_states_find_hosts(&hosts, source->ledger, &source->record, error));
    for (uint32_t i = 0; i < hosts.count; i++) {
        mirror_set_add_contact(&source->mirrors, hosts.hosts[i].text, source->reach);
    }
    return STATUS_OK;
}

static enum status add_mirrors(struct job_source *source, const struct options *options,
                               struct error *error)
{
    source->mirrors.timeout_s = (uint32_t)options_number(options, "mirror-timeout");
    source->reach = chain_contact_reach(options, source->ledger);
    for (size_t i = 0; i < options_list_count(options, "mirror"); i++) {
        TRY(mirror_set_add(&source->mirrors, options_list_item(options, "mirror", i), error));
    }
    return job_source_add_contacts(source, error);
}

enum status job_source_open(struct job_source *source, const char *key,
                            const struct command_context *context, const struct signer *signer,
                            struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];
    struct hash32 job = {{0}};

    *source = (struct job_source){0};
    job_record_init(&source->record, &job, NULL);
    TRY(chain_ledger_options(&options, state_dir, context, signer, error));
    options.check_purse = signer != NULL;
    TRY(ledger_open(&source->ledger, &options, error));
    TRY(ledger_catch_up(source->ledger, error));
    TRY(terms_find(&job, NULL, source->ledger, key, NULL, error));
    job_record_init(&source->record, &job, signer == NULL ? NULL : signer_address(signer));
    TRY(job_record_follow(&source->record, source->ledger, error));
    return add_mirrors(source, context->options, error);
}

/* Nobody who only waits brings it on: what is final now is all that there is. */
static enum status refuse_wait(const struct job_source *source, const struct job_wait *wait,
                               struct error *error)
{
    (void)error_set(error, STATUS_REFUSED, "this wait does not end by itself: the job waits for %s",
                    wait->text);
    if (source->record.state.finalized > 0) {
        error_advise(error,
                     "without --wait the state at the end of segment %u comes, the last one"
                     " that is final",
                     source->record.state.finalized - 1);
    } else {
        error_advise(error, "no segment of it is final: there is nothing to fetch but what"
                            " --segment N names, which nobody vouches for");
    }
    return STATUS_REFUSED;
}

/* What was told of a wait. */
struct waiting {
    struct job_wait told;
    struct due_move due; /* of anybody's */
    double due_since_s;  /* 0: none is due */
    bool due_told;
};

/* Where anybody makes the moves that are due, each is made within seconds. */
static enum status tell_due(struct waiting *waiting, const struct job_source *source,
                            const struct ledger_clock *clock, const struct log *log,
                            struct error *error)
{
    const struct address nobody = {{0}};
    const double now_s = steady_seconds();
    char key[HEX_SIZE(KEY_BYTES)];
    struct due_move due;

    if (!due_move_next(&due, &source->record, clock, &nobody)) {
        waiting->due_since_s = 0;
        return STATUS_OK;
    }
    if (waiting->due_since_s == 0 || due.kind != waiting->due.kind ||
        due.index != waiting->due.index) {
        waiting->due = due;
        waiting->due_since_s = now_s;
        waiting->due_told = false;
    }
    hex_encode(key, source->record.key.bytes, KEY_BYTES);
    if (now_s - waiting->due_since_s > DUE_END_S) {
        (void)error_set(error, STATUS_REFUSED,
                        "this wait does not end by itself: the move '%s' has been due for ten "
                        "minutes, and nobody makes it",
                        due_move_name(due.kind));
        error_advise(error, "anybody may make it: 'lockstep job collect 0x%s'", key);
        return STATUS_REFUSED;
    }
    if (now_s - waiting->due_since_s > DUE_TOLD_S && !waiting->due_told) {
        log_warn(log, "job", "'%s' is due, and nobody makes it: 'lockstep job collect 0x%s' does",
                 due_move_name(due.kind), key);
        waiting->due_told = true;
    }
    return STATUS_OK;
}

/* Says what the job waits for, when that is another thing than the last time. */
static enum status tell_wait(struct waiting *waiting, struct job_source *source,
                             const struct log *log, struct error *error)
{
    struct job_wait *told = &waiting->told;
    struct ledger_clock clock;
    struct job_wait wait;

    TRY(ledger_get_clock(source->ledger, &clock, error));
    TRY(tell_due(waiting, source, &clock, log, error));
    if (job_wait_describe(&wait, &source->record, clock.time_s) &&
        (told->word == NULL || strcmp(wait.word, told->word) != 0 ||
         wait.segment != told->segment)) {
        log_info(log, "job", "waits for %s", wait.text);
        *told = wait;
    }
    return strcmp(wait.word, "client") == 0 || strcmp(wait.word, "close") == 0
               ? refuse_wait(source, &wait, error)
               : STATUS_OK;
}

enum status job_source_wait(struct job_source *source, const struct command_context *context,
                            struct stop *stop, struct error *error)
{
    struct waiting waiting = {.due_since_s = 0};

    while (source->record.state.phase != GAME_PHASE_CLOSED) {
        TRY(tell_wait(&waiting, source, context->log, error));
        if (stop_wait(stop, LOOK_S)) {
            return error_set(error, STATUS_STOPPED, "stopped while waiting for the job");
        }
        TRY(ledger_catch_up(source->ledger, error));
        TRY(job_record_follow(&source->record, source->ledger, error));
    }
    source->mirrors.count = 0;
    return add_mirrors(source, context->options, error);
}

void job_source_close(struct job_source *source)
{
    job_record_free(&source->record);
    ledger_close(source->ledger);
    job_free(source->job);
    *source = (struct job_source){0};
}

/* ---- the job file ------------------------------------------------------------ */

static enum status take_job(void *context, const char *path, struct error *error)
{
    struct job_source *source = context;
    struct job *job = NULL;
    enum status status;

    TRY(job_read(&job, path, error));
    status = terms_check(&source->record.terms, job, error);
    if (status != STATUS_OK) {
        job_free(job);
        return status;
    }
    job_free(source->job);
    source->job = job;
    return STATUS_OK;
}

enum status job_source_get(struct job_source *source, const char *path, struct error *error)
{
    const struct mirror_wanted wanted = {.kind = MIRROR_JOB,
                                         .root = source->record.terms.job_id,
                                         .job = source->record.terms.job_id,
                                         .size_max = JOB_FILE_SIZE_MAX,
                                         .check = take_job,
                                         .context = source};
    char file[FILE_PATH_MAX];

    if (source->mirrors.count == 0 && !file_exists(path)) {
        (void)error_set(error, STATUS_NOT_FOUND,
                        "the client has not said on the ledger where job file and data are, and "
                        "%s",
                        source->record.state.committed == 0 ? "no solver has committed anything yet"
                                                            : "no solver says so either");
        error_advise(error, "ask the client for an address, and name it with --mirror URL");
        return STATUS_NOT_FOUND;
    }
    if (snprintf(file, sizeof(file), "%s", path) >= (int)sizeof(file)) {
        return error_set(error, STATUS_USAGE, "the path %.80s... is too long", path);
    }
    return mirror_set_get(file, &source->mirrors, &wanted, error);
}

/* ---- the data ---------------------------------------------------------------- */

struct source_data {
    const struct tensor *tensor;
    const struct digest *root;
};

static enum status take_data(void *context, const char *path, struct error *error)
{
    const struct source_data *wanted = context;
    struct dataset dataset;
    struct digest root;

    TRY(run_data_open(&dataset, &root, wanted->tensor, path, error));
    dataset_close(&dataset);
    return digest_equal(&root, wanted->root)
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "it has another root");
}

static const struct tensor *data_tensor(const struct tape *tape, uint32_t at)
{
    const struct tensor *tensor = tape->tensors;

    while (tensor->role != ROLE_DATA || at-- > 0) {
        tensor++;
    }
    return tensor;
}

bool job_source_name(char path[FILE_PATH_MAX], const char *prefix, const struct digest *root,
                     const char *ending)
{
    char text[HEX_SIZE(DIGEST_SIZE)];

    hex_encode(text, root->bytes, DIGEST_SIZE);
    return snprintf(path, FILE_PATH_MAX, "%s.%.16s%s", prefix, text, ending) < FILE_PATH_MAX;
}

static uint64_t add_size(uint64_t size, const struct tensor *tensor)
{
    uint64_t more = commit_tensor_size(tensor);

    return more > UINT64_MAX - size ? UINT64_MAX : size + more;
}

uint64_t job_source_data_size(const struct job *job)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < job->tape->tensor_count; i++) {
        const struct tensor *tensor = &job->tape->tensors[i];

        size = tensor->role == ROLE_DATA ? add_size(size, tensor) : size;
    }
    return size;
}

uint64_t job_source_first_state_size(const struct job *job)
{
    const struct tape *tape = job->tape;
    uint64_t size = 0;

    for (uint32_t i = 0; job->first_state_given && i < tape->state_count; i++) {
        size = add_size(size, &tape->tensors[tape->states[i].before]);
    }
    return size;
}

enum status job_source_get_data(char *path, struct job_source *source, uint32_t at,
                                const char *prefix, struct error *error)
{
    const struct job *job = source->job;
    struct source_data data = {.tensor = data_tensor(job->tape, at), .root = &job->data_roots[at]};
    const struct mirror_wanted wanted = {.kind = MIRROR_DATA,
                                         .root = *data.root,
                                         .job = job->id,
                                         .size_max =
                                             commit_tensor_size(data.tensor) + DATA_HEADER_MAX,
                                         .check = take_data,
                                         .context = &data};

    if (!job_source_name(path, prefix, data.root, "")) {
        return error_set(error, STATUS_USAGE, "the path %.80s... is too long", prefix);
    }
    return mirror_set_get(path, &source->mirrors, &wanted, error);
}

/* ---- the first state --------------------------------------------------------- */

enum status job_source_get_first_state(char *path, struct job_source *source, const char *prefix,
                                       struct error *error)
{
    struct piece_fetch fetch = {.mirrors = &source->mirrors,
                                .job = source->job,
                                .step = 0,
                                .root = source->job->first_state_root,
                                .whole = true};

    if (!job_source_name(path, prefix, &fetch.root, ".safetensors")) {
        return error_set(error, STATUS_USAGE, "the path %.80s... is too long", prefix);
    }
    return piece_fetch_run(&fetch, path, error);
}

/* ---- what was found of the mirrors ------------------------------------------- */

/* What a line said begins with its address, which stands in front already. */
static const char *without_address(const char *trouble, const char *url)
{
    const size_t size = strlen(url);

    return strncmp(trouble, url, size) == 0 && strncmp(trouble + size, ": ", 2) == 0
               ? trouble + size + 2
               : trouble;
}

void job_source_report(const struct job_source *source, json_t *json)
{
    json_t *list = json == NULL ? NULL : json_array();

    for (uint32_t i = 0; i < source->mirrors.count; i++) {
        const struct mirror *mirror = &source->mirrors.mirrors[i];

        if (list != NULL) {
            (void)json_array_append_new(list, json_pack("{s:s, s:I, s:b, s:s}", "url", mirror->url,
                                                        "bytes", (json_int_t)mirror->note.bytes,
                                                        "dropped", (int)mirror->dropped, "trouble",
                                                        mirror->note.trouble));
        } else if (mirror->note.trouble[0] != '\0') {
            fprintf(stderr, "mirror %s%s: %s\n", mirror->url, mirror->dropped ? " (dropped)" : "",
                    without_address(mirror->note.trouble, mirror->url));
        }
    }
    if (list != NULL) {
        (void)json_object_set_new(json, "mirrors", list);
    }
}
