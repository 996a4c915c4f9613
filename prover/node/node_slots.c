/* node_slots.c - see node_slots.h. */
#include "prover/node/node_slots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/io/strict_json.h"
#include "base/steady.h"
#include "chain/codec/hex_data.h"
#include "chain/game/terms.h"
#include "prover/node/node_offers.h"
#include "prover/train/nvml.h"

#define STOP_MS        5000
#define PUT_OFF_MS     60000
#define UNFIT_MS       3600000
#define PROBE_SIZE_MAX (1u << 20)
/* Others use a device: more than that of it. */
#define BUSY_LOAD      0.25
#define BUSY_PERCENT   10

struct held_job *node_slots_find(const struct solver_node *node, const struct hash32 *key)
{
    for (uint32_t i = 0; i < node->held_count; i++) {
        if (hash32_equal(&node->held[i]->key, key)) {
            return node->held[i];
        }
    }
    return NULL;
}

enum status node_slots_hold(struct solver_node *node, const struct hash32 *key,
                            const struct policy_pace *pace, struct error *error)
{
    struct held_job *job = malloc(sizeof(*job));
    enum status status;

    if (job == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for one more job");
    }
    status = held_job_open(job, &node->options.terms, key, pace, error);
    if (status != STATUS_OK) {
        held_job_close(job);
        free(job);
        return status;
    }
    node->held[node->held_count++] = job;
    node->serves_all = false;
    return STATUS_OK;
}

static void set_free(struct node_slot *slot)
{
    device_lock_drop(&slot->lock);
    slot->task = SLOT_IDLE;
    slot->why[0] = '\0';
    slot->holds_up = false;
}

/* ---- children ----------------------------------------------------------------------- */

static void add_machine(struct child_words *words, const struct solver_node_options *options,
                        uint32_t number)
{
    child_words_option(words, "device", options->devices[number]);
    child_words_option(words, "threads", options->threads);
    child_words_option(words, "memory-max", options->memory);
    child_words_option(words, "device-memory", options->device_memory);
}

/* Words about a job that is fetched by its key. */
struct fetched {
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char prefix[FILE_PATH_MAX]; /* of the names of its files */
    char state[FILE_PATH_MAX];  /* what the child keeps of a chain */
    char registry[ADDRESS_TEXT_SIZE];
    char first[24];
    char depth[24];
};

static enum status name_fetched(struct fetched *fetched, const struct solver_node *node,
                                const struct job_record *job, struct error *error)
{
    const struct ledger_options *ledger = &node->options.terms.account->ledger;
    char name[HEX_DATA_SIZE(HASH32_SIZE)];

    hex_write(fetched->key, job->key.bytes, HASH32_SIZE, true);
    hex_write(name, job->key.bytes, HASH32_SIZE, false);
    address_print(fetched->registry, &ledger->registry);
    (void)snprintf(fetched->first, sizeof(fetched->first), "%" PRIu64, ledger->first_height);
    (void)snprintf(fetched->depth, sizeof(fetched->depth), "%u", ledger->depth);
    TRY(file_path_join(fetched->state, FILE_PATH_MAX, error, node->options.folder, "reader"));
    return file_path_join(fetched->prefix, FILE_PATH_MAX, error, node->options.fetched, name);
}

/* The files of a job that is here, else its key and where it can be fetched. */
static void add_files(struct child_words *words, const struct solver_node *node,
                      const struct job_record *job, const struct fetched *fetched)
{
    const struct shelf_item *item = shelf_find(&node->options.shelf, &job->terms.job_id);
    const struct ledger_options *ledger = &node->options.terms.account->ledger;

    bool complete = item != NULL && shelf_is_complete(item);

    child_words_add(words, complete ? item->path : fetched->key);
    for (uint32_t i = 0; item != NULL && item->has_data && i < item->data.count; i++) {
        if (i == 0 || strcmp(item->data.of[i], item->data.of[i - 1]) != 0) {
            child_words_option(words, "data", item->data.of[i]);
        }
    }
    if (complete) {
        child_words_option(words, "bundle", node->options.folder);
        return;
    }
    child_words_option(words, "bundle", fetched->prefix);
    child_words_option(words, "fetch-max", node->options.fetch_most);
    child_words_option(words, "ledger", ledger->url);
    child_words_option(words, "ledger-state", fetched->state);
    child_words_option(words, "depth", fetched->depth);
    child_words_option(words, "first-block", fetched->first);
    if (!address_is_zero(&ledger->registry)) {
        child_words_option(words, "registry", fetched->registry);
    }
    for (size_t i = 0; i < node->options.mirror_count; i++) {
        child_words_option(words, "mirror", node->options.mirrors[i]);
    }
    if (node->options.private_contacts) {
        child_words_flag(words, "private-contacts");
    }
}

static enum status measure(struct solver_node *node, uint32_t number, const struct job_record *job,
                           struct error *error)
{
    struct node_slot *slot = &node->slots[number];
    struct child_words words;
    struct child_options options = {.yields = node->options.when_idle};
    struct fetched fetched;
    char out[FILE_PATH_MAX];
    char log[FILE_PATH_MAX];
    char name[32];

    (void)snprintf(name, sizeof(name), "measured.%u", number);
    TRY(name_fetched(&fetched, node, job, error));
    TRY(file_path_join(out, sizeof(out), error, node->options.folder, name));
    TRY(file_path_join(log, sizeof(log), error, node->options.folder, "measure.log"));
    options.out = out;
    options.log = log;
    child_words_init(&words, "prover", "probe");
    add_files(&words, node, job, &fetched);
    child_words_flag(&words, "json");
    child_words_option(&words, "measure", node->options.measure);
    add_machine(&words, &node->options, number);
    TRY(child_start(&slot->child, &words, &options, error));
    slot->task = SLOT_MEASURING;
    slot->job = job->key;
    log_info(node->log, "solver", "measures job %.14s on %s", fetched.key,
             node->options.devices[number]);
    return STATUS_OK;
}

static enum status train(struct solver_node *node, uint32_t number, const struct held_job *job,
                         struct error *error)
{
    struct node_slot *slot = &node->slots[number];
    struct child_words words;
    const struct child_options options = {.log = job->log, .yields = node->options.when_idle};

    child_words_init(&words, "prover", "resume");
    child_words_add(&words, job->run);
    child_words_flag(&words, "offline");
    child_words_option(&words, "keep", node->options.keep);
    add_machine(&words, &node->options, number);
    TRY(child_start(&slot->child, &words, &options, error));
    slot->task = SLOT_TRAINING;
    slot->job = job->key;
    return STATUS_OK;
}

/* ---- what ended ------------------------------------------------------------------------ */

/* Why the measurement says that this machine cannot take the job. */
static void read_why_not(char why[POLICY_TEXT_MAX], const struct solver_node *node, uint32_t number)
{
    char path[FILE_PATH_MAX];
    char name[32];
    const char *text = NULL;
    json_t *root = NULL;
    struct error none;

    error_init(&none);
    (void)snprintf(name, sizeof(name), "measured.%u", number);
    (void)snprintf(why, POLICY_TEXT_MAX, "this machine cannot take it");
    if (file_path_join(path, sizeof(path), &none, node->options.folder, name) == STATUS_OK &&
        strict_json_read(&root, &none, path, PROBE_SIZE_MAX, STRICT_JSON_DEPTH_MAX) == STATUS_OK &&
        (strict_json_text(json_object_get(root, "job"), &none, &text, "why_not") == STATUS_OK ||
         strict_json_text(json_object_get(root, "error"), &none, &text, "message") == STATUS_OK)) {
        (void)snprintf(why, POLICY_TEXT_MAX, "%.*s", POLICY_TEXT_MAX - 1, text);
    }
    json_decref(root);
}

static enum status end_measuring(struct solver_node *node, uint32_t number, int code,
                                 struct error *failure)
{
    struct node_slot *slot = &node->slots[number];
    const struct job_record *job = board_find(&node->board, &slot->job);
    char why[POLICY_TEXT_MAX];
    struct error error;

    error_init(&error);
    if (job == NULL) { /* a reorganization took it away */
        set_free(slot);
        return shelf_look_again(&node->options.shelf, failure);
    }
    if (code == COMMAND_REFUSED) {
        read_why_not(why, node, number);
        node_offers_put_off_all(node, &job->terms.job_id, UNFIT_MS, why);
    } else if (code != COMMAND_OK ||
               node_offers_read_pace(node, number, &job->terms.job_id, &error) != STATUS_OK) {
        read_why_not(why, node, number);
        node_offers_put_off(node, &slot->job, PUT_OFF_MS, why);
    }
    set_free(slot);
    return shelf_look_again(&node->options.shelf, failure); /* there may be what was fetched */
}

static enum status end_training(struct solver_node *node, struct node_slot *slot,
                                struct held_job *job, int code, struct error *error)
{
    TRY(held_job_round(job, error)); /* reads the last of its steps */
    if (job->state == HELD_TRAINING) {
        held_job_failed(job, code, steady_ms(), node->log);
    }
    set_free(slot);
    return STATUS_OK;
}

static enum status look_at(struct solver_node *node, uint32_t number, struct error *error)
{
    struct node_slot *slot = &node->slots[number];
    struct held_job *job = node_slots_find(node, &slot->job);
    int how;

    if (slot->task == SLOT_MEASURING) {
        return spawn_ended(&slot->child, &how) ? end_measuring(node, number, spawn_code(how), error)
                                               : STATUS_OK;
    }
    if (slot->task == SLOT_IDLE) {
        return STATUS_OK;
    }
    if (job == NULL) { /* lost */
        (void)spawn_end(&slot->child, SIGTERM, STOP_MS);
        set_free(slot);
    } else if (slot->task == SLOT_TRAINING) {
        return spawn_ended(&slot->child, &how)
                   ? end_training(node, slot, job, spawn_code(how), error)
                   : STATUS_OK;
    } else if (job->state == HELD_TRAINING) {
        return train(node, number, job, error);
    } else if (job->state != HELD_TAKING) {
        set_free(slot);
    }
    return STATUS_OK;
}

/* ---- work for a free slot ----------------------------------------------------------------- */

/* NULL: nobody else uses it. Where nobody can tell, others may. */
static const char *gpu_is_busy(uint32_t device)
{
    struct nvml_reading reading = {.has_use = false};
    struct nvml *nvml = NULL;
    uint32_t number = 0;
    struct error none;

    error_init(&none);
    if (nvml_open(&nvml, &none) != STATUS_OK) {
        return "nobody can tell whether others use it: --when-idle needs NVIDIA's NVML";
    }
    if (nvml_number_of(&number, nvml, device)) {
        nvml_read(&reading, nvml, number);
    }
    nvml_close(nvml);
    return !reading.has_use ? "nobody can tell whether others use it: where there are several, "
                              "--when-idle needs "
                              "CUDA_DEVICE_ORDER=PCI_BUS_ID"
           : reading.use > BUSY_PERCENT ? "others use it (--when-idle)"
                                        : NULL;
}

static const char *is_busy(const struct machine_options *machine)
{
    struct host host;
    double load = 0.0;

    if (machine->backend == &backend_cuda) {
        return gpu_is_busy(machine->device);
    }
    host_look(&host);
    return getloadavg(&load, 1) == 1 && load > BUSY_LOAD * host.cores
               ? "others use it (--when-idle)"
               : NULL;
}

static struct held_job *find_waiting(const struct solver_node *node)
{
    for (uint32_t i = 0; i < node->held_count; i++) {
        struct held_job *job = node->held[i];
        bool has_slot = false;

        for (uint32_t k = 0; k < node->options.slot_count; k++) {
            has_slot = has_slot || (node->slots[k].task >= SLOT_TAKING &&
                                    hash32_equal(&node->slots[k].job, &job->key));
        }
        if (!has_slot && !job->given_up && job->state <= HELD_TRAINING &&
            steady_ms() >= job->again_ms) {
            return job;
        }
    }
    return NULL;
}

static enum status take(struct solver_node *node, uint32_t number, uint32_t which,
                        struct error *error)
{
    const struct job_record *wanted = &node->board.jobs[which];
    const struct shelf_item *item = shelf_find(&node->options.shelf, &wanted->terms.job_id);
    const struct offer *offer = &node->offers[which];
    struct node_slot *slot = &node->slots[number];
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char hour[WEI_TEXT_SIZE];

    TRY(held_job_make(&node->options.terms, &wanted->key, &wanted->terms, item, error));
    TRY(node_slots_hold(node, &wanted->key, &offer->pace[number], error));
    hex_write(key, wanted->key.bytes, HASH32_SIZE, true);
    currency_print_about(hour, ledger_get_currency(node->ledger), offer->hour);
    log_info(node->log, "solver", "takes job %.14s on %s, for %s an hour", key,
             node->options.devices[number], hour);
    slot->task = SLOT_TAKING;
    slot->job = wanted->key;
    return STATUS_OK;
}

/* A failure that is about one job must not keep the node from the others. */
static void try_offer(struct solver_node *node, uint32_t number, uint32_t which, bool measuring)
{
    const struct hash32 key = node->board.jobs[which].key;
    struct node_slot *slot = &node->slots[number];
    struct error error;

    error_init(&error);
    if ((measuring ? measure(node, number, &node->board.jobs[which], &error)
                   : take(node, number, which, &error)) != STATUS_OK) {
        log_warn(node->log, "solver", "%s", error.text);
        node_offers_put_off(node, &key, PUT_OFF_MS, error.text);
        set_free(slot);
    }
}

/* A stake is lost where its job stands still, and any user can hold a lock. So a job that is begun
 * waits for the processes of this user alone. */
static bool lock_device(struct solver_node *node, uint32_t number, const struct held_job *begun)
{
    struct node_slot *slot = &node->slots[number];
    const char *what = begun == NULL ? "" : "; a job that is begun waits for it";
    char why[sizeof(slot->why)];
    bool goes_on = true;
    struct error error;

    error_init(&error);
    slot->holds_up = false;
    why[0] = '\0';
    if (device_lock_take(&slot->lock, &node->options.machines[number], &error) != STATUS_OK) {
        goes_on = begun != NULL && slot->lock.foreign;
        slot->holds_up = begun != NULL && !goes_on;
        what = goes_on ? "; a job that is begun trains beside it" : what;
        (void)snprintf(why, sizeof(why), "%.200s%s", error.text, what);
    }
    if (begun != NULL && why[0] != '\0' && strcmp(why, slot->why) != 0) {
        log_warn(node->log, "device", "%s", why);
    }
    memcpy(slot->why, why, sizeof(why));
    return goes_on;
}

static enum status give_work(struct solver_node *node, uint32_t number, struct error *error)
{
    struct node_slot *slot = &node->slots[number];
    struct held_job *waiting = find_waiting(node);
    uint32_t which = 0;
    bool measuring = false;
    const char *busy;

    TRY(node_offers_weigh(node, number, error));
    if (waiting == NULL && (node->held_count >= node->options.held_max ||
                            !node_offers_choose(node, number, &which, &measuring))) {
        slot->why[0] = '\0';
        slot->holds_up = false;
        return STATUS_OK;
    }
    busy = waiting == NULL && node->options.when_idle ? is_busy(&node->options.machines[number])
                                                      : NULL;
    if (busy != NULL) {
        (void)snprintf(slot->why, sizeof(slot->why), "%s", busy);
        return STATUS_OK;
    }
    if (!lock_device(node, number, waiting)) {
        return STATUS_OK;
    }
    if (waiting != NULL) {
        slot->task = SLOT_TAKING; /* and trained as soon as it is seen to be ours */
        slot->job = waiting->key;
        return look_at(node, number, error);
    }
    try_offer(node, number, which, measuring);
    return STATUS_OK;
}

enum status node_slots_round(struct solver_node *node, struct error *error)
{
    for (uint32_t i = 0; i < node->options.slot_count; i++) {
        TRY(look_at(node, i, error));
        if (node->slots[i].task == SLOT_IDLE && node->trouble[0] == '\0') {
            TRY(give_work(node, i, error));
        }
    }
    return STATUS_OK;
}

void node_slots_stop(struct solver_node *node)
{
    for (uint32_t i = 0; i < node->options.slot_count; i++) {
        (void)spawn_end(&node->slots[i].child, SIGTERM, STOP_MS);
        device_lock_drop(&node->slots[i].lock);
    }
    (void)spawn_end(&node->server, SIGTERM, STOP_MS);
}
