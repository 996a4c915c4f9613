/* audit.c - see audit.h. */
#include "verifier/audit/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hex.h"
#include "engine/ops/real.h"
#include "verifier/audit/accused.h"
#include "verifier/audit/audit_plan.h"
#include "verifier/check/check.h"
#include "verifier/check/check_keep.h"
#include "verifier/check/workers.h"

#define PAUSE_NS 2000000

const char *audit_answer_name(enum audit_answer answer)
{
    static const char *const names[] = {"cannot-tell", "refuted", "proven"};

    return names[answer];
}

/* A lane of the plan, and what became of it. */
struct auditor_lane {
    struct audit_lane lane;
    struct audit_stretch stretch; /* that is checked now */
    char kept[FILE_PATH_MAX];     /* the state that the last check left; "": none */
    bool busy;
    bool ended;
    enum audit_answer answer;
    uint64_t steps_checked;
    /* What ended it, if it is not PROVEN: */
    enum check_flaw flaw;
    uint64_t wrong_step;
    struct digest true_root;
    struct error reason;
};

struct auditor {
    struct audit_result *result;
    struct bundle *bundle;
    const struct audit_options *options;
    const char *const *paths;
    size_t path_count;
    struct audit_plan plan;
    struct workers *workers;
    struct check_port port;
    struct accused_cache cache;
    struct check_request *request;
    struct check_result *answer;
    uint32_t lane_count;
    struct auditor_lane lanes[AUDIT_WORKERS_MAX];
};

/* ---- requests ------------------------------------------------------------- */

/* A file may hold several of the tensors. */
static enum status name_data(struct check_request *request, const struct auditor *auditor,
                             struct error *error)
{
    for (size_t i = 0; i < auditor->path_count; i++) {
        const char *path = auditor->paths[i];
        uint32_t at = 0;

        while (at < request->data_count && strcmp(request->data[at], path) != 0) {
            at++;
        }
        if (at == CHECK_DATA_MAX) {
            return error_set(error, STATUS_OVER_LIMIT, "a job can have at most %d data files here",
                             CHECK_DATA_MAX);
        }
        if (at == request->data_count) {
            (void)snprintf(request->data[request->data_count++], FILE_PATH_MAX, "%s", path);
        }
    }
    return STATUS_OK;
}

/* All but the places: what replays, and where everything lies. */
static enum status describe_request(struct check_request *request, const struct auditor *auditor,
                                    struct error *error)
{
    const struct audit_options *options = auditor->options;

    memset(request, 0, sizeof(*request));
    (void)snprintf(request->cache, sizeof(request->cache), "%s", auditor->cache.path);
    (void)snprintf(request->mirrors[0], FILE_PATH_MAX, "%s", bundle_path(auditor->bundle));
    request->mirror_count = 1;
    request->memory_max =
        options->memory_max == 0 ? INT64_MAX : options->memory_max + CHECK_MEMORY_BESIDE;
    request->file_max = INT64_MAX;
    request->processor_s = UINT32_MAX;
    request->threads = options->threads;
    request->device_memory = options->device_memory;
    (void)snprintf(request->device, sizeof(request->device), "%s",
                   options->device == NULL ? "" : options->device);
    return name_data(request, auditor, error);
}

static enum status begin_check(struct auditor *auditor, uint32_t index, struct error *error)
{
    struct auditor_lane *lane = &auditor->lanes[index];
    struct check_request *request = auditor->request;

    lane->stretch = audit_plan_next(&auditor->plan, &lane->lane);
    TRY(describe_request(request, auditor, error));
    TRY(audit_plan_request(request, &auditor->plan, &lane->stretch, error));
    request->keep_max = lane->stretch.keeps ? INT64_MAX : 0;
    TRY(auditor->port.start(auditor->port.context, index, request, error));
    lane->busy = true;
    return STATUS_OK;
}

/* ---- results ---------------------------------------------------------------- */

static bool figure_differs(struct audit_figure *figure, uint64_t step, const char *name,
                           uint32_t journal_bits, uint32_t true_bits)
{
    if (journal_bits == true_bits) {
        return false;
    }
    *figure = (struct audit_figure){name, step, journal_bits, true_bits};
    return true;
}

/* Notes the earliest figure that is not what the replay gives. */
static void compare_figures(struct audit_result *result, const struct bundle_step *entry,
                            const struct check_figures *true_ones)
{
    struct audit_figure *first = &result->figure;

    if (entry->hidden || (first->name != NULL && first->step <= entry->step)) {
        return;
    }
    (void)(figure_differs(first, entry->step, "loss", entry->loss_bits, true_ones->loss_bits) ||
           (true_ones->evaluated != 0 && entry->evaluated &&
            (figure_differs(first, entry->step, "held-out loss", entry->held_out_bits,
                            true_ones->held_out_bits) ||
             figure_differs(first, entry->step, "held-out share right", entry->accuracy_bits,
                            true_ones->accuracy_bits))));
}

static enum status tell_step(struct auditor *auditor, uint64_t step,
                             const struct check_figures *figures, struct error *error)
{
    const struct audit_options *options = auditor->options;
    const struct check_result *answer = auditor->answer;
    struct bundle_step entry;
    const struct audit_step told = {
        &entry, figures, answer->steps_run == 0 ? 0 : answer->compute_ns / answer->steps_run};

    TRY(bundle_step_read(&entry, auditor->bundle, step, error));
    if (figures != NULL) {
        compare_figures(auditor->result, &entry, figures);
    }
    if (figures != NULL && step + 1 == auditor->plan.journaled) {
        auditor->result->final_loss_known = true;
        auditor->result->final_loss_bits = figures->loss_bits;
    }
    if (options->on_step != NULL) {
        options->on_step(options->step_context, &told);
    }
    return STATUS_OK;
}

static uint64_t total_checked(const struct auditor *auditor, uint32_t lane_count)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < lane_count; i++) {
        total += auditor->lanes[i].steps_checked;
    }
    return total;
}

/* The wanted steps before true_end are true. */
static enum status count_steps(struct auditor *auditor, struct auditor_lane *lane,
                               uint64_t true_end, struct error *error)
{
    const struct audit_options *options = auditor->options;
    uint64_t first = lane->stretch.counted;
    uint64_t counted = true_end > first ? true_end - first : 0;

    if (counted > auditor->answer->figure_count) {
        return error_set(error, STATUS_BAD_FORMAT, "a check gave fewer figures than steps");
    }
    for (uint64_t i = 0; i < counted; i++) {
        TRY(tell_step(auditor, first + i, &auditor->answer->figures[i], error));
    }
    lane->steps_checked += counted;
    if (options->progress != NULL) {
        options->progress(options->progress_context, total_checked(auditor, auditor->lane_count),
                          auditor->plan.steps);
    }
    return STATUS_OK;
}

/* Puts the state that a check left where the next check looks for it, in place of the last one. */
static enum status move_kept(struct auditor *auditor, struct auditor_lane *lane,
                             struct error *error)
{
    static const enum kept_part beside[] = {KEPT_JOB, KEPT_PIECES};
    char text[HEX_SIZE(DIGEST_SIZE)];
    char path[FILE_PATH_MAX];
    struct digest root;

    (void)unlink(lane->kept);
    TRY(bundle_state_root(&root, auditor->bundle, lane->stretch.end, error));
    hex_encode(text, root.bytes, DIGEST_SIZE);
    for (size_t i = 0; i < 2; i++) {
        TRY(check_keep_path(path, auditor->cache.path, &root, beside[i], error));
        (void)unlink(path);
    }
    TRY(check_keep_path(path, auditor->cache.path, &root, KEPT_STATE, error));
    TRY(file_path_join(lane->kept, sizeof(lane->kept), error, auditor->cache.path, text));
    return rename(path, lane->kept) == 0
               ? STATUS_OK
               : error_set_errno(error, "cannot keep a state in %s", auditor->cache.path);
}

static enum status take_proven(struct auditor *auditor, struct auditor_lane *lane,
                               struct error *error)
{
    const struct check_result *answer = auditor->answer;

    TRY(count_steps(auditor, lane, lane->stretch.end, error));
    if (answer->kept) {
        TRY(move_kept(auditor, lane, error));
    } else if (lane->stretch.counted == lane->stretch.end) {
        return error_set(error, STATUS_IO, "the replay cannot go on from step %" PRIu64 ": %s",
                         lane->stretch.end,
                         answer->keep_trouble[0] == '\0' ? "no state is there"
                                                         : answer->keep_trouble);
    }
    audit_plan_done(&auditor->plan, &lane->lane, &lane->stretch, answer->kept, answer->compute_ns);
    if (audit_lane_is_done(&lane->lane)) {
        lane->ended = true;
        lane->answer = AUDIT_PROVEN;
    }
    return STATUS_OK;
}

static enum status take_refuted(struct auditor *auditor, struct auditor_lane *lane,
                                struct error *error)
{
    const struct check_result *answer = auditor->answer;

    TRY(describe_request(auditor->request, auditor, error));
    TRY(audit_plan_request(auditor->request, &auditor->plan, &lane->stretch, error));
    if (answer->index >= auditor->request->segment_count ||
        answer->step >= auditor->request->segments[answer->index].steps) {
        return error_set(error, STATUS_BAD_FORMAT, "a check refutes a step that it was not given");
    }
    lane->wrong_step = lane->stretch.from + answer->step;
    for (uint32_t i = 0; i < answer->index; i++) {
        lane->wrong_step += auditor->request->segments[i].steps;
    }
    lane->flaw = answer->flaw;
    lane->true_root = answer->true_state;
    lane->answer = AUDIT_REFUTED;
    lane->ended = true;
    TRY(count_steps(auditor, lane, lane->wrong_step, error));
    return tell_step(auditor, lane->wrong_step, NULL, error);
}

static enum status take_result(struct auditor *auditor, struct auditor_lane *lane,
                               struct error *error)
{
    const struct check_result *answer = auditor->answer;

    lane->busy = false;
    switch (answer->outcome) {
    case CHECK_PROVEN:
        return take_proven(auditor, lane, error);
    case CHECK_REFUTED:
        return take_refuted(auditor, lane, error);
    case CHECK_CANNOT_TELL:
        if (answer->no_start && audit_plan_go_back(&auditor->plan, &lane->lane, &lane->stretch)) {
            return STATUS_OK;
        }
        break;
    case CHECK_FAULT:
        break;
    }
    (void)error_set(error, answer->outcome == CHECK_FAULT ? STATUS_DEVICE : STATUS_REFUSED, "%s",
                    answer->reason);
    if (answer->advice[0] != '\0') {
        error_advise(error, "%s", answer->advice);
    }
    return error->status;
}

/* ---- all lanes ---------------------------------------------------------------- */

static void end_lane(struct auditor_lane *lane, enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        lane->busy = false;
        lane->ended = true;
        lane->answer = AUDIT_CANNOT_TELL;
        lane->reason = *error;
    }
}

/* The lanes decide in the order of the steps: what is behind one that is not proven does not
 * matter. */
static bool all_decided(const struct auditor *auditor, uint32_t *decides)
{
    for (*decides = 0; *decides + 1 < auditor->lane_count; (*decides)++) {
        if (!auditor->lanes[*decides].ended || auditor->lanes[*decides].answer != AUDIT_PROVEN) {
            break;
        }
    }
    return auditor->lanes[*decides].ended;
}

static void start_lanes(struct auditor *auditor)
{
    bool goes_on = true;

    for (uint32_t i = 0; i < auditor->lane_count && goes_on; i++) {
        struct auditor_lane *lane = &auditor->lanes[i];
        struct error error;

        goes_on = !lane->ended || lane->answer == AUDIT_PROVEN;
        if (!lane->ended && !lane->busy) {
            error_init(&error);
            end_lane(lane, begin_check(auditor, i, &error), &error);
        }
    }
}

static enum status replay_all(struct auditor *auditor, uint32_t *decides, struct error *error)
{
    const struct timespec pause = {0, PAUSE_NS};

    while (!all_decided(auditor, decides)) {
        uint64_t number = 0;
        enum status status;
        struct error why;

        if (auditor->options->stop != NULL && stop_requested(auditor->options->stop)) {
            return error_set(error, STATUS_STOPPED, "stopped before step %" PRIu64,
                             auditor->lanes[*decides].lane.next);
        }
        start_lanes(auditor);
        error_init(&why);
        status = auditor->port.take(auditor->port.context, &number, auditor->answer, &why);
        if (status == STATUS_NOT_FOUND) {
            (void)nanosleep(&pause, NULL);
            continue;
        }
        if (status != STATUS_OK || number >= auditor->lane_count) {
            *error = why;
            return status == STATUS_OK ? STATUS_BAD_FORMAT : status;
        }
        end_lane(&auditor->lanes[number], take_result(auditor, &auditor->lanes[number], &why),
                 &why);
    }
    return STATUS_OK;
}

/* ---- a refutation ----------------------------------------------------------------- */

void audit_distrust_journal(struct audit_result *result, const char *whose)
{
    result->answer = AUDIT_CANNOT_TELL;
    (void)error_set(&result->reason, STATUS_BAD_FORMAT,
                    "step %" PRIu64 " of the journal is false, but the journal's segment %" PRIu64
                    " is not the one that %s: nobody is refuted",
                    result->wrong_step, result->wrong_segment, whose);
    error_advise(&result->reason,
                 "the journal is damaged or was changed; get the bundle again from its solver");
}

/* What is refuted is what the solver put a name to. */
static enum status find_signature(struct auditor *auditor, struct error *error)
{
    struct audit_result *result = auditor->result;
    uint64_t length = bundle_job(auditor->bundle)->segment_length;
    struct digest signed_root;
    struct error none;
    enum status status;

    result->wrong_segment = result->wrong_step / length;
    error_init(&none);
    status =
        bundle_segment_root(&result->segment_root, auditor->bundle, result->wrong_segment, &none);
    if (status == STATUS_OK) {
        status = bundle_segment_signature(&signed_root, result->signature, &result->signature_size,
                                          auditor->bundle, result->wrong_segment, &none);
    }
    if (status == STATUS_NOT_FOUND) { /* the segment has no end, or no signature */
        result->signature_size = 0;
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        *error = none;
        return status;
    }
    if (!digest_equal(&signed_root, &result->segment_root)) {
        audit_distrust_journal(result, "its solver signed");
    }
    return STATUS_OK;
}

static void locate_fault(struct auditor *auditor)
{
    const struct audit_options *options = auditor->options;
    struct audit_result *result = auditor->result;
    struct machine_options machine;
    struct fault_location_request request = {.step = result->wrong_step,
                                             .went_on = result->flaw == CHECK_FLAW_WENT_ON,
                                             .after = result->wrong_root,
                                             .paths = auditor->paths,
                                             .path_count = auditor->path_count,
                                             .machine = &machine,
                                             .cache = auditor->cache.path,
                                             .sources = options->sources,
                                             .source_count = options->source_count,
                                             .stop = options->stop};
    struct error none;

    error_init(&none);
    if (options->seek && result->flaw != CHECK_FLAW_NOT_DIVERGED &&
        describe_request(auditor->request, auditor, &none) == STATUS_OK) {
        if (options->launch != NULL) { /* this is done here, where no such device may be */
            auditor->request->device[0] = '\0';
        }
    } else {
        return;
    }
    if (check_machine(&machine, auditor->request, false, &none) == STATUS_OK) {
        fault_location_make(&result->location, auditor->bundle, &request);
    }
}

static enum status refute_step(struct auditor *auditor, const struct auditor_lane *lane,
                               struct error *error)
{
    struct audit_result *result = auditor->result;
    struct bundle_step entry;

    TRY(bundle_step_read(&entry, auditor->bundle, lane->wrong_step, error));
    result->answer = AUDIT_REFUTED;
    result->flaw = lane->flaw;
    result->wrong_step = lane->wrong_step;
    result->wrong_root = entry.root;
    result->true_root = lane->true_root;
    TRY(find_signature(auditor, error));
    if (result->answer == AUDIT_REFUTED) {
        locate_fault(auditor);
    }
    return STATUS_OK;
}

/* ---- all of it ---------------------------------------------------------------------- */

static enum status make_ready(struct auditor *auditor, struct error *error)
{
    const struct audit_options *options = auditor->options;
    uint64_t lanes = options->workers == 0 ? 1 : options->workers;

    TRY(audit_plan_open(&auditor->plan, auditor->bundle, options->sample, options->sample_seed,
                        error));
    auditor->result->steps_journaled = auditor->plan.journaled;
    auditor->result->steps_wanted = auditor->plan.steps;
    lanes = lanes < auditor->plan.segment_count ? lanes : auditor->plan.segment_count;
    auditor->lane_count = (uint32_t)(lanes < AUDIT_WORKERS_MAX ? lanes : AUDIT_WORKERS_MAX);
    for (uint32_t i = 0; i < auditor->lane_count; i++) {
        auditor->lanes[i].lane = audit_plan_lane(&auditor->plan, i, auditor->lane_count);
    }
    auditor->request = calloc(1, sizeof(*auditor->request));
    auditor->answer = calloc(1, sizeof(*auditor->answer));
    if (auditor->request == NULL || auditor->answer == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an audit");
    }
    TRY(accused_cache_open(&auditor->cache, error));
    TRY(workers_open(&auditor->workers, auditor->lane_count, UINT32_MAX, auditor->options->launch,
                     error));
    auditor->port = workers_port(auditor->workers);
    return STATUS_OK;
}

static enum status audit_all(struct auditor *auditor, struct error *error)
{
    struct audit_result *result = auditor->result;
    uint32_t decides = 0;
    const struct auditor_lane *lane;
    enum status status;

    TRY(make_ready(auditor, error));
    status = replay_all(auditor, &decides, error);
    if (status != STATUS_OK) { /* stopped, say: what was run again so far is true */
        result->steps_checked = total_checked(auditor, auditor->lane_count);
        return status;
    }
    workers_close(auditor->workers); /* what else runs does not matter */
    auditor->workers = NULL;
    lane = &auditor->lanes[decides];
    result->steps_checked = total_checked(auditor, decides + 1);
    if (lane->answer == AUDIT_CANNOT_TELL) {
        *error = lane->reason;
        return error->status;
    }
    if (lane->answer == AUDIT_REFUTED) {
        TRY(refute_step(auditor, lane, error));
    } else {
        result->answer = AUDIT_PROVEN;
    }
    return checkpoint_audit_run(&result->checkpoints, auditor->bundle,
                                result->steps_journaled == result->steps_of_job &&
                                    auditor->plan.diverged == UINT64_MAX,
                                auditor->options->stop, error);
}

/* True steps do not make up for what else a bundle says falsely. */
static void conclude_audit(struct audit_result *result)
{
    const struct broken_checkpoint *last = &result->checkpoints.last;
    const struct audit_figure *figure = &result->figure;

    if (result->answer == AUDIT_PROVEN && last->name[0] != '\0') {
        result->answer = AUDIT_CANNOT_TELL;
        (void)error_set(&result->reason, STATUS_BAD_FORMAT,
                        "the steps are true, but the last checkpoint, %s, is not there whole: %s",
                        last->name, last->why);
        error_advise(&result->reason, "get the bundle again from its solver");
    }
    if (result->answer == AUDIT_PROVEN && figure->name != NULL) {
        result->answer = AUDIT_CANNOT_TELL;
        (void)error_set(&result->reason, STATUS_BAD_FORMAT,
                        "the states are true, but the journal's %s of step %" PRIu64
                        " is %.9g (0x%08x), and the step gives %.9g (0x%08x): no root covers it, "
                        "so nobody is refuted",
                        figure->name, figure->step, (double)real_from_bits(figure->journal_bits),
                        figure->journal_bits, (double)real_from_bits(figure->true_bits),
                        figure->true_bits);
        error_advise(&result->reason, "do not cite the journal's figures; the report shows those "
                                      "of the replay");
    }
}

/* The rule of the bundle, on the figures of the journal: where does it end the run? */
static enum status follow_rule(struct audit_result *result, struct bundle *bundle,
                               struct error *error)
{
    struct stop_watch watch;
    struct stop_rule rule;

    TRY(stop_rule_read(&rule, bundle, error));
    if (stop_rule_is_none(&rule) || bundle_is_locked(bundle)) {
        return STATUS_OK;
    }
    stop_watch_init(&watch, &rule);
    TRY(stop_watch_follow(&watch, bundle, result->steps_journaled, error));
    const uint64_t end = stop_watch_end(&watch, bundle_job(bundle));

    if (end < result->steps_journaled) {
        return error_set(
            error, STATUS_BAD_FORMAT,
            "the steps are true, but the bundle's rule ends the run after step %" PRIu64
            " by %s, and the journal has %" PRIu64 " steps",
            end, watch.fired_by, result->steps_journaled);
    }
    return stop_rule_sentence(result->ended, bundle, error);
}

void audit_result_release(struct audit_result *result)
{
    fault_location_release(&result->location);
}

bool audit_ran(const struct audit_result *result, struct bundle *bundle, uint64_t from,
               uint64_t end)
{
    struct audit_plan plan;
    bool ran = result->answer == AUDIT_PROVEN && end <= result->steps_journaled;

    if (!ran || result->sample == 0 || from >= end) {
        return ran;
    }
    ran = audit_plan_open(&plan, bundle, result->sample, result->sample_seed, NULL) == STATUS_OK &&
          audit_plan_has(&plan, from, end);
    audit_plan_close(&plan);
    return ran;
}

void audit(struct audit_result *result, struct bundle *bundle, const char *const *paths,
           size_t path_count, const struct audit_options *options)
{
    struct auditor *auditor = calloc(1, sizeof(*auditor));
    enum status status = STATUS_NO_MEMORY;

    memset(result, 0, sizeof(*result));
    error_init(&result->reason);
    result->job_id = bundle_job(bundle)->id;
    result->steps_of_job = bundle_job(bundle)->steps;
    result->sample = options->sample;
    result->sample_seed = options->sample_seed;
    if (auditor != NULL) {
        *auditor = (struct auditor){.result = result,
                                    .bundle = bundle,
                                    .options = options,
                                    .paths = paths,
                                    .path_count = path_count};
        status = audit_all(auditor, &result->reason);
        workers_close(auditor->workers);
        audit_plan_close(&auditor->plan);
        accused_cache_close(&auditor->cache);
        free(auditor->request);
        free(auditor->answer);
        free(auditor);
    } else {
        (void)error_set(&result->reason, status, "no memory for an audit");
    }
    if (status == STATUS_OK && result->answer == AUDIT_PROVEN) {
        status = follow_rule(result, bundle, &result->reason);
    }
    if (status != STATUS_OK && result->answer == AUDIT_PROVEN) {
        result->answer = AUDIT_CANNOT_TELL;
    }
    conclude_audit(result);
}
