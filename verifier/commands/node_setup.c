/* node_setup.c - see node_setup.h. */
#include "verifier/commands/node_setup.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/host.h"
#include "chain/commands/commands.h"
#include "engine/plan/backend.h"

/* ---- where the node's files are ------------------------------------------- */

static const char *const node_files[] = {"node.db", "verdicts.db", "cache", "self-test", "kept"};

enum status node_setup_folder(char path[FILE_PATH_MAX], const struct options *given,
                              struct error *error)
{
    const char *named = options_text(given, "state");

    if (named == NULL) {
        return file_place(path, FILE_PATH_MAX, error, FILE_PLACE_STATE, "verifier");
    }
    if (strlen(named) >= FILE_PATH_MAX) {
        return error_set(error, STATUS_USAGE, "the path of the node's state is too long");
    }
    memcpy(path, named, strlen(named) + 1);
    return STATUS_OK;
}

enum status node_setup_path(char path[FILE_PATH_MAX], const struct options *given,
                            enum node_file which, struct error *error)
{
    char folder[FILE_PATH_MAX];
    enum status status = node_setup_folder(folder, given, error);

    return status == STATUS_OK
               ? file_path_join(path, FILE_PATH_MAX, error, folder, node_files[which])
               : status;
}

static enum status read_device(struct node_options *options, const struct command_context *context,
                               struct error *error)
{
    const struct options *given = context->options;
    struct machine_options machine;

    TRY(machine_options_default(&machine, error));
    options->device = options_text(given, "device");
    options->device_memory = options_number(given, "device-memory");
    if (strlen(options->device) >= CHECK_DEVICE_MAX) {
        return error_set(error, STATUS_USAGE, "--device names too many devices");
    }
    if (options_text(given, "launch") != NULL) {
        return plan_launch_device(options->device, error);
    }
    TRY(machine_options_device(&machine, options->device, context->log, error));
    if (machine.backend == &backend_cpu) {
        options->device = "cpu";
    }
    return STATUS_OK;
}

enum status node_setup_limits(struct node_options *options, const struct command_context *context,
                              struct error *error)
{
    const struct options *given = context->options;
    struct host host;

    host_look(&host);
    options->threads = (uint32_t)options_number(given, "threads");
    if (options->threads == 0 && options_text(given, "launch") == NULL) {
        options->threads = host.cores / options->checks_max;
        options->threads = options->threads == 0 ? 1 : options->threads;
    }
    options->memory_max = options_number(given, "memory-max");
    if (options->memory_max == 0) {
        options->memory_max =
            host.memory_bytes / 4 * 3 / (options->checks_max + NODE_PLACES_BESIDE);
    }
    options->disk_max = options_number(given, "disk-max");
    options->bandwidth_max = options_number(given, "bandwidth-max");
    if (options->bandwidth_max > 0 &&
        options->bandwidth_max < options->checks_max + NODE_PLACES_BESIDE) {
        return error_set(error, STATUS_USAGE,
                         "--bandwidth-max %llu: %u children share it, and each needs a byte a "
                         "second",
                         (unsigned long long)options->bandwidth_max,
                         options->checks_max + NODE_PLACES_BESIDE);
    }
    options->mirror_timeout_s = (uint32_t)options_number(given, "mirror-timeout");
    options->check_time_s = (uint32_t)options_number(given, "check-time");
    options->reach = (uint32_t)options_number(given, "reach");
    return read_device(options, context, error);
}

static enum status read_options(struct node_setup *setup, struct error *error)
{
    const struct options *given = setup->context->options;
    struct node_options *options = &setup->options;
    const char *files[OPTION_LIST_MAX];

    TRY(node_setup_limits(options, setup->context, error));
    for (size_t i = 0; i < options_list_count(given, "mirror"); i++) {
        setup->mirrors[options->mirror_count++] = options_list_item(given, "mirror", i);
    }
    TRY(data_paths_spread(&setup->data, files, options_list(files, given, "data"), error));
    if (setup->data.count > CHECK_DATA_MAX) {
        return error_set(error, STATUS_USAGE, "--data names %u files in all; a node takes %d",
                         setup->data.count, CHECK_DATA_MAX);
    }
    options->data_count = setup->data.count;
    options->mirrors = setup->mirrors;
    options->data = (const char *const *)setup->data.of;
    options->cache = setup->cache;
    return node_setup_path(setup->cache, given, NODE_FILE_CACHE, error);
}

/* While the node waits for its ledger, the store shows that it lives and what it waits for. */
static enum status try_ledger(struct node_setup *setup, const struct ledger_options *options,
                              struct error *error)
{
    enum status status = ledger_open(&setup->ledger, options, error);
    struct error ignored;

    error_init(&ignored);
    if (status == STATUS_UNREACHABLE) {
        (void)!store_set_text(&setup->store, "ledger_trouble", error->text, &ignored);
        (void)!store_set_number(&setup->store, "alive_ms", (int64_t)node_setup_now_ms(NULL),
                                &ignored);
    }
    return status;
}

static enum status open_ledger(struct node_setup *setup, bool needs_key, struct error *error)
{
    struct ledger_options options;
    char state_dir[FILE_PATH_MAX];
    enum status status;

    if (needs_key) {
        TRY(chain_unlock(&setup->signer, setup->context, error));
    }
    TRY(chain_ledger_options(&options, state_dir, setup->context, setup->signer, error));
    /* A stop must not wait for an endpoint. */
    options.stopped = stop_called_back;
    options.context = &setup->stop;
    do {
        status = try_ledger(setup, &options, error);
    } while (setup->retry != NULL && ledger_retry_again(setup->retry, &status, error));
    return status;
}

/* A database belongs to one account on one ledger: mixing two would send moves of one to the
 * other. */
static enum status check_owner(struct node_setup *setup, struct error *error)
{
    const struct ledger_place *place = ledger_get_place(setup->ledger);
    char registry[ADDRESS_TEXT_SIZE];
    char account[ADDRESS_TEXT_SIZE];
    char owner[STORE_REASON_MAX];
    char before[STORE_REASON_MAX];

    TRY(store_text(&setup->store, before, "owner", error));
    address_print(registry, &place->registry);
    address_print(account, ledger_get_own(setup->ledger));
    (void)snprintf(owner, sizeof(owner), "%s at %s, %s", account, place->chain, registry);
    if (before[0] != '\0' && strcmp(before, owner) != 0) {
        (void)error_set(error, STATUS_REFUSED, "this state is that of the node of %s", before);
        error_advise(error, "name another folder with --state");
        return STATUS_REFUSED;
    }
    TRY(store_set_text(&setup->store, "owner", owner, error));
    return store_set_event_log(&setup->store, ledger_get_event_log(setup->ledger), error);
}

static void log_damage(const struct node_setup *setup, const char *text)
{
    if (text[0] != '\0') {
        log_error(setup->context->log, "verifier", "%s", text);
    }
}

static enum status open_files(struct node_setup *setup, struct error *error)
{
    const struct options *given = setup->context->options;
    char path[FILE_PATH_MAX];

    TRY(node_setup_folder(setup->folder, given, error));
    TRY(file_private_folder(setup->folder, error));
    TRY(node_setup_path(path, given, NODE_FILE_VERDICTS, error));
    TRY(verdict_db_open(&setup->verdicts, path, error));
    log_damage(setup, verdict_db_damage(setup->verdicts));
    TRY(node_setup_path(path, given, NODE_FILE_STORE, error));
    TRY(store_open(&setup->store, path, STORE_WRITE, error));
    log_damage(setup, setup->store.damage);
    return STATUS_OK;
}

enum status node_setup_prepare(struct node_setup *setup, struct error *error)
{
    TRY(read_options(setup, error));
    return open_files(setup, error);
}

enum status node_setup_open(struct node_setup *setup, bool needs_key, bool forget_fault,
                            struct error *error)
{
    struct node_ports ports = {
        .store = &setup->store, .now_ms = node_setup_now_ms, .log = setup->context->log};

    TRY(open_ledger(setup, needs_key, error));
    TRY(check_owner(setup, error));
    setup->options.contact_reach = chain_contact_reach(setup->context->options, setup->ledger);
    if (forget_fault) {
        TRY(node_forget_fault(&setup->store, setup->verdicts, error));
    }
    TRY(workers_open(&setup->workers, setup->options.checks_max + NODE_PLACES_BESIDE,
                     setup->options.check_time_s, options_text(setup->context->options, "launch"),
                     error));
    ports.ledger = setup->ledger;
    ports.signer = setup->signer;
    ports.verdicts = setup->verdicts;
    ports.checks = workers_port(setup->workers);
    ports.keep = &setup->keep;
    return node_open(&setup->node, &setup->options, &ports, error);
}

void node_setup_close(struct node_setup *setup)
{
    node_close(&setup->node);
    workers_close(setup->workers);
    ledger_close(setup->ledger);
    keep_close(&setup->keep);
    store_close(&setup->store);
    verdict_db_close(setup->verdicts);
    signer_free(setup->signer);
    data_paths_close(&setup->data);
}

void node_setup_wait(struct node_setup *setup, int wait_ms)
{
    struct pollfd polled[WORKERS_MAX + 1] = {{.fd = setup->stop.descriptor, .events = POLLIN}};
    int descriptors[WORKERS_MAX];
    uint32_t count = workers_descriptors(setup->workers, descriptors, WORKERS_MAX);

    for (uint32_t i = 0; i < count; i++) {
        polled[i + 1] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
    }
    (void)poll(polled, count + 1, wait_ms);
}

uint64_t node_setup_now_ms(void *context)
{
    struct timespec now;

    (void)context;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
