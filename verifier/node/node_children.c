/* node_children.c - see node_children.h. */
#include "verifier/node/node_children.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/http/http_reach.h"
#include "verifier/store/mirrors.h"

#define TRIAL_BESIDE_S 60 /* processor time of a trial beside its steps: it reads and hashes */

/* ---- requests ----------------------------------------------------------------- */

/* As many children fetch at once as there are places. 0 would be no limit. */
static uint64_t share_of_bandwidth(const struct node_options *options)
{
    uint64_t share = options->bandwidth_max / (options->checks_max + NODE_PLACES_BESIDE);

    return options->bandwidth_max > 0 && share == 0 ? 1 : share;
}

static void fill_limits(struct check_request *request, const struct node_options *options)
{
    (void)snprintf(request->cache, sizeof(request->cache), "%s", options->cache);
    for (size_t i = 0; i < options->data_count && i < CHECK_DATA_MAX; i++) {
        (void)snprintf(request->data[request->data_count++], FILE_PATH_MAX, "%s", options->data[i]);
    }
    request->memory_max = options->memory_max;
    request->file_max = options->disk_max;
    request->bandwidth_max = share_of_bandwidth(options);
    request->mirror_timeout_s = options->mirror_timeout_s;
    request->threads = options->threads;
    (void)snprintf(request->device, sizeof(request->device), "%s",
                   options->device == NULL ? "cpu" : options->device);
    request->device_memory = options->device_memory;
    request->processor_s =
        options->check_time_s * (options->threads == 0 ? 1 : options->threads) + 1;
}

/* The segment to check is the last of the request. Before it stand the segments within reach. */
static enum status fill_segments(struct node *node, struct check_request *request,
                                 const struct store_segment *segment, struct error *error)
{
    uint32_t reach = node->options.reach < CHECK_REACH_MAX ? node->options.reach : CHECK_REACH_MAX;
    uint32_t first;

    /* One more than the reach: the segment before holds the state that the first begins with. */
    reach = reach + 1 > CHECK_REACH_MAX ? CHECK_REACH_MAX : reach + 1;
    first = segment->committed.index > reach ? segment->committed.index - reach : 0;
    for (uint32_t index = first; index <= segment->committed.index; index++) {
        struct check_segment *next = &request->segments[request->segment_count];
        struct store_segment found = *segment;
        enum status status =
            index == segment->committed.index
                ? STATUS_OK
                : store_segment_before(node->ports.store, &found, segment, index, error);

        if (status == STATUS_NOT_FOUND) {
            request->segment_count = 0;
            continue;
        }
        TRY(status);
        next->steps = found.committed.steps;
        next->root = found.committed.root;
        TRY(store_states(node->ports.store, next->states, &found, error));
        request->segment_count++;
    }
    return STATUS_OK;
}

/* What stands there is a stranger's: it goes to logs and terminals. */
static enum status refuse_contact(struct node *node, const char *url, const char *bad,
                                  struct error *error)
{
    char shown[GAME_CONTACT_MAX + 1];
    char why[CHECK_NOTE_MAX];
    size_t size = 0;

    for (; url[size] != '\0' && size < sizeof(shown) - 1; size++) {
        shown[size] = (char)(url[size] >= '!' && url[size] <= '~' ? url[size] : '?');
    }
    shown[size] = '\0';
    (void)snprintf(why, sizeof(why), "it %s, and a stranger named it", bad);
    return mirrors_refused(node->ports.store, shown, why, node->ports.log, error);
}

/* The configured mirrors, and where the parties of the job say that they are found. Their word is
 * taken for addresses only: no folder of this machine is read for a stranger. */
static enum status fill_mirrors(struct node *node, struct check_request *request,
                                const struct hash32 *job, struct error *error)
{
    const char *names[CHECK_MIRRORS_MAX];
    struct store_contacts *contacts = calloc(1, sizeof(*contacts));
    size_t count = 0;
    enum status status;

    if (contacts == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for addresses");
    }
    for (; count < node->options.mirror_count && count < CHECK_MIRRORS_MAX; count++) {
        names[count] = node->options.mirrors[count];
    }
    TRY_OUT(store_contacts(node->ports.store, contacts, job, error));
    for (uint32_t i = 0; i < contacts->count && count < CHECK_MIRRORS_MAX; i++) {
        const char *bad = http_reach_bad_url(contacts->urls[i]);

        if (bad == NULL) {
            names[count++] = contacts->urls[i];
        } else {
            TRY_OUT(refuse_contact(node, contacts->urls[i], bad, error));
        }
    }
    request->contact_reach = node->options.contact_reach;
    status = mirrors_choose(node->ports.store, request, names, count, node->options.mirror_count,
                            node->now_ms, error);
out:
    free(contacts);
    return status;
}

enum status node_request(struct node *node, struct check_request **made,
                         const struct store_segment *segment, struct error *error)
{
    struct check_request *request = calloc(1, sizeof(*request));

    *made = request;
    if (request == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a request");
    }
    request->job_id = segment->job_id;
    request->steps = segment->terms.steps;
    request->segment_steps = segment->terms.segment_steps;
    request->index = segment->committed.index;
    request->reach = node->options.reach;
    request->diverged = segment->committed.diverged;
    fill_limits(request, &node->options);
    TRY(fill_segments(node, request, segment, error));
    return fill_mirrors(node, request, &segment->job, error);
}

/* One step of the job's first segment: it fetches what any step needs. A step that would be too
 * slow for the seal period is not waited for. */
enum status node_trial_request(struct node *node, struct check_request **made,
                               const struct store_job *job, struct error *error)
{
    struct check_request *request = calloc(1, sizeof(*request));
    const uint64_t step_s = job->terms.seal_period_s / job->terms.segment_steps + 1;
    uint64_t most_s;

    *made = request;
    if (request == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a request");
    }
    request->job_id = job->terms.job_id;
    request->steps = job->terms.steps;
    request->segment_steps = job->terms.segment_steps;
    request->segment_count = 1;
    request->segments[0].steps = 1;
    request->trial = true;
    fill_limits(request, &node->options);
    most_s = (TRIAL_BESIDE_S + step_s) * (request->threads == 0 ? 1 : request->threads);
    request->processor_s = most_s < request->processor_s ? (uint32_t)most_s : request->processor_s;
    return fill_mirrors(node, request, &job->key, error);
}

/* ---- children ------------------------------------------------------------------ */

static struct node_running *free_place(struct node *node)
{
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        if (node->running[i].number == 0) {
            return &node->running[i];
        }
    }
    return NULL;
}

enum status node_start(struct node *node, int64_t number, const struct hash32 *claim,
                       struct check_request *request, struct error *error)
{
    struct node_running *place = free_place(node);
    uint32_t most = node->options.checks_max + (claim != NULL     ? NODE_PLACES_BESIDE
                                                : request->states ? NODE_PLACES_BESIDE - 1
                                                                  : 0);
    enum status status = STATUS_NOT_FOUND;

    if (place != NULL && node->running_count < most) {
        status =
            node->ports.checks.start(node->ports.checks.context, (uint64_t)number, request, error);
        if (status != STATUS_OK) { /* no process, no memory: the node sends its moves meanwhile */
            log_warn(node->ports.log, "verifier", "no child can be started: %s", error->text);
            status = STATUS_NOT_FOUND;
        }
    }
    if (status != STATUS_OK) {
        free(request);
        return status;
    }
    *place = (struct node_running){.number = number, .request = request};
    if (claim != NULL) {
        place->disputing = true;
        place->claim = *claim;
    }
    node->running_count++;
    return STATUS_OK;
}

static struct node_running *place_of(struct node *node, uint64_t number)
{
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        struct node_running *place = &node->running[i];

        if (place->number == (int64_t)number && place->number != 0 && place->result == NULL) {
            return place;
        }
    }
    return NULL;
}

enum status node_collect(struct node *node, struct error *error)
{
    enum status status = STATUS_OK;

    while (status == STATUS_OK) {
        struct check_result *result = malloc(sizeof(*result));
        struct node_running *place;
        uint64_t number = 0;

        if (result == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for a result");
        }
        status = node->ports.checks.take(node->ports.checks.context, &number, result, error);
        place = status == STATUS_OK ? place_of(node, number) : NULL;
        if (place != NULL) {
            place->result = result;
        } else {
            free(result);
        }
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
