/*
 * probe_commands.c - `lockstep prover probe`: what this machine is, which jobs it can take, and
 * what it would earn.
 *
 * Stakes and sends nothing, and writes but the pace that it measured. Reports what it measured and
 * guesses nothing; the speed of a job without its data is an upper bound.
 */
#include "prover/commands/probe_commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/io/file.h"
#include "base/io/strict_json.h"
#include "base/sandbox/sandbox.h"
#include "base/text.h"
#include "chain/codec/wei.h"
#include "chain/commands/commands.h"
#include "chain/commands/job_source.h"
#include "engine/cuda/device/loader.h"
#include "engine/cuda/selftest/variants.h"
#include "engine/machine/machine_rewrite.h"
#include "engine/machine/machine_split.h"
#include "proofs/job/job_file.h"
#include "proofs/run/data_paths.h"
#include "proofs/run/known_pace.h"
#include "proofs/run/step_memory.h"
#include "proofs/run/step_time.h"
#include "prover/commands/access.h"
#include "prover/commands/run_by_key.h"
#include "prover/post/session.h"
#include "prover/train/nvml.h"
#include "prover/train/requirements.h"

#define GPUS_MAX 16
#define GIB      1073741824.0

const struct option_spec probe_commands_options[PROBE_COMMANDS_OPTIONS] = {
    ACCESS_RUN_OPTIONS,
    {.name = "bundle",
     .heading = "keeping",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .fallback = ".",
     .help = "where the run would be kept: its disk is measured"},
    {.name = "measure",
     .heading = "machine",
     .kind = OPTION_REAL,
     .value = "SECONDS",
     .fallback = "3",
     .help = "for how long to time steps of the job"},
    {.name = "reward",
     .heading = "terms",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "AMOUNT",
     .help = "the reward of the whole job, as in 'job open', such as 0.5eth"},
    {.name = "price",
     .heading = "policy",
     .often = true,
     .kind = OPTION_TEXT,
     .value = "AMOUNT",
     .help = "what an hour of this machine costs"},
    {.name = "devices",
     .heading = "machine",
     .kind = OPTION_TEXT,
     .value = "N..M",
     .help = "with JOB: what a split over so many GPUs takes of each, by the plan; needs no GPU",
     .command_line_only = true},
    {.name = "link",
     .heading = "machine",
     .kind = OPTION_REAL,
     .value = "GB/S",
     .fallback = "12",
     .help = "with --devices: bytes from one GPU to another, 10^9 a second"},
    {.name = "fetch-max",
     .heading = "policy",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .fallback = "20G",
     .help = "with the KEY of a job on a ledger: refuse one whose data and first state are more"},
    SESSION_LEDGER_OPTIONS,
    JOB_SOURCE_OPTIONS,
};

struct gpu {
    char name[NVML_NAME_MAX];
    uint64_t memory;
    int32_t capability;
    bool has_use;
    uint32_t use;
    bool has_energy;
    char ways[VARIANTS_TEXT_MAX]; /* how it contracts; empty where no plugin opened it */
};

struct probe {
    struct host host;
    struct machine_options machine;
    char device[BUNDLE_DEVICE_MAX];
    struct product_rate rate;
    struct gpu gpus[GPUS_MAX];
    uint32_t gpu_count;
    bool by_plugin;         /* the GPUs are those that the plugin opened */
    struct error no_plugin; /* why no GPU can train here */
    struct error no_nvml;
    /* Of a job: */
    struct job *job;
    struct requirements found;
    struct step_memory memory;
    bool fits;
    struct error why_not;
    struct step_time time;
    bool measured;        /* else time.seconds is a lower bound */
    uint32_t split_first; /* --devices: rows from here, by number of devices; 0: none */
    uint32_t split_count;
    struct machine_split_cost splits[MACHINE_DEVICES_MAX];
    uint64_t split_memory; /* of one device; 0: not known */
    double link;           /* bytes a second */
    bool has_money;
    struct currency currency; /* of the ledger that is named; else the coin */
    bool has_price;           /* else what an hour costs, and so the profit, is not known */
    double reward;            /* of the job, in wei */
    double price;             /* of an hour */
};

/* ---- measuring -------------------------------------------------------------------------- */

/* Each way to contract is tried; what failed is said in its place. */
static void look_at_ways(struct gpu *gpu, const struct device_calls *calls, int ordinal)
{
    struct variants variants;
    struct error error;

    error_init(&error);
    if (variants_of_device(&variants, calls, ordinal, &error) == STATUS_OK) {
        variants_text(gpu->ways, &variants);
    } else {
        (void)snprintf(gpu->ways, sizeof(gpu->ways), "%.100s", error.text);
    }
}

/* The plugin decides which GPUs can train. */
static void look_by_plugin(struct probe *probe)
{
    const struct device_calls *calls = NULL;

    error_init(&probe->no_plugin);
    if (loader_open(&calls, &probe->no_plugin) != STATUS_OK) {
        return;
    }
    for (int i = 0; i < GPUS_MAX; i++) {
        struct device_facts facts = {.capability = 0};
        struct device *device = NULL;
        struct gpu *gpu = &probe->gpus[i];

        look_at_ways(gpu, calls, i); /* before this process opens the device */
        if (calls->open(&device, &facts, i) != DEVICE_OK) {
            gpu->ways[0] = '\0';
            break;
        }
        calls->close(device);
        (void)snprintf(gpu->name, sizeof(gpu->name), "%.*s", NVML_NAME_MAX - 1, facts.name);
        gpu->memory = facts.memory;
        gpu->capability = facts.capability;
        probe->gpu_count++;
    }
    probe->by_plugin = probe->gpu_count > 0;
    if (!probe->by_plugin) {
        struct machine_options unused = probe->machine;

        /* Reports the driver's own words. */
        if (machine_options_device(&unused, "cuda", NULL, &probe->no_plugin) == STATUS_OK) {
            (void)error_set(&probe->no_plugin, STATUS_DEVICE,
                            "no GPU started when it was looked at");
        }
    }
}

static void look_by_nvml(struct probe *probe)
{
    struct nvml *nvml = NULL;

    error_init(&probe->no_nvml);
    if (nvml_open(&nvml, &probe->no_nvml) != STATUS_OK) {
        return;
    }
    if (!probe->by_plugin) {
        probe->gpu_count = nvml_count(nvml) < GPUS_MAX ? nvml_count(nvml) : GPUS_MAX;
    }
    for (uint32_t i = 0; i < probe->gpu_count; i++) {
        struct gpu *gpu = &probe->gpus[i];
        struct nvml_device device;
        struct nvml_reading reading;
        uint32_t number = i;

        if (probe->by_plugin && !nvml_number_of(&number, nvml, i)) {
            continue;
        }
        if (!probe->by_plugin && nvml_describe(&device, nvml, number, NULL) == STATUS_OK) {
            memcpy(gpu->name, device.name, sizeof(gpu->name));
            gpu->memory = device.memory;
            gpu->capability = device.capability;
        }
        nvml_read(&reading, nvml, number);
        gpu->has_use = reading.has_use;
        gpu->use = reading.use;
        gpu->has_energy = reading.has_energy;
    }
    nvml_close(nvml);
}

static enum status take_amount(double *value, const struct options *given, const char *name,
                               struct error *error)
{
    wei exact = 0;

    TRY(chain_amount(&exact, given, name, error));
    *value = (double)exact;
    return STATUS_OK;
}

/* For 'job list --per-hour', and for the next time that a node looks at the job. */
static enum status remember_pace(const struct probe *probe, const char *device, struct error *error)
{
    const struct known_pace pace = {
        .step_ns = (uint64_t)((probe->time.seconds + probe->time.hashing) * 1e9),
        .tokens = step_time_tokens(probe->job->tape)};

    return known_pace_note(&pace, &probe->job->id, device, error);
}

static enum status time_job(struct probe *probe, const struct options *given, struct error *error)
{
    const char *files[OPTION_LIST_MAX];
    size_t count = options_list(files, given, "data");

    if (count > 0) {
        struct data_paths paths = {0};
        enum status status = data_paths_of_files(&paths, probe->job->tape, files, count, error);

        if (status == STATUS_OK) {
            probe->measured = true;
            status = step_time_measure(&probe->time, probe->job, (const char *const *)paths.of,
                                       paths.count, &probe->machine, options_real(given, "measure"),
                                       error);
        }
        data_paths_close(&paths);
        return status == STATUS_OK ? remember_pace(probe, options_text(given, "device"), error)
                                   : status;
    }
    probe->time.seconds = step_time_products(probe->job->tape) / (probe->rate.middle * 1e9);
    return STATUS_OK;
}

/* "4" or "1..12" */
static enum status read_range(uint32_t *first, uint32_t *last, const char *text,
                              struct error *error)
{
    const char *at = text;
    uint64_t from = 0;
    uint64_t to = 0;
    bool taken = text_take_number(&from, &at, MACHINE_DEVICES_MAX);

    to = from;
    if (taken && text_take_word(&at, "..")) {
        taken = text_take_number(&to, &at, MACHINE_DEVICES_MAX);
    }
    *first = (uint32_t)from;
    *last = (uint32_t)to;
    return taken && *at == '\0' && from >= 1 && from <= to
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--devices is N or N..M, from 1 to %d",
                           MACHINE_DEVICES_MAX);
}

/* What machine_open() would divide. A tape that cannot be cut so often ends the rows. */
static enum status plan_counts(struct probe *probe, uint32_t last, struct machine_options *wanted,
                               struct error *error)
{
    const struct tape *tape = probe->job->tape;
    struct tape *rewrite = NULL;
    enum status status = STATUS_OK;

    TRY(machine_rewrite(&rewrite, tape, wanted, error));
    for (wanted->device_count = probe->split_first; wanted->device_count <= last;
         wanted->device_count++) {
        status = machine_split_cost(&probe->splits[probe->split_count],
                                    rewrite != NULL ? rewrite : tape, wanted, error);
        if (status == STATUS_USAGE && probe->split_count > 0) {
            error_init(error);
            status = STATUS_OK;
            goto out;
        }
        TRY_OUT(status);
        probe->split_count++;
    }
out:
    tape_free(rewrite);
    return status;
}

/* By the plan alone. */
static enum status plan_splits(struct probe *probe, const struct options *given,
                               struct error *error)
{
    const char *range = options_text(given, "devices");
    struct machine_options wanted = {.backend = &backend_cuda};
    uint32_t last = 0;

    if (range == NULL) {
        return STATUS_OK;
    }
    TRY(read_range(&probe->split_first, &last, range, error));
    probe->link = options_real(given, "link") * 1e9;
    if (!(probe->link > 0.0)) {
        return error_set(error, STATUS_USAGE, "--link is above 0");
    }
    probe->split_memory = options_number(given, "device-memory");
    for (uint32_t i = 0; i < probe->gpu_count && probe->split_memory == 0; i++) {
        probe->split_memory = probe->gpus[i].memory;
    }
    return plan_counts(probe, last, &wanted, error);
}

/* A job that this machine cannot take is a result, not a failure. */
static enum status look_at_job(struct probe *probe, const struct options *given,
                               struct error *error)
{
    enum status status;

    TRY(job_read(&probe->job, given->arguments[0], error));
    TRY(step_memory_plan(&probe->memory, probe->job->tape, error));
    TRY(plan_splits(probe, given, error));
    error_init(&probe->why_not);
    status = requirements_check(&probe->found, probe->job, &probe->machine,
                                options_text(given, "bundle"), 0, 0, false, &probe->why_not);
    probe->fits = status == STATUS_OK;
    if (status == STATUS_OVER_LIMIT || status == STATUS_REFUSED) {
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        *error = probe->why_not;
        return status;
    }
    return time_job(probe, given, error);
}

/* Before there are threads: a stranger's program runs in this process, and needs no more than its
 * files. The drivers of a GPU want more. */
static enum status confine_process(const struct probe *probe, const struct options *given,
                                   struct error *error)
{
    struct sandbox_plan plan = {.network = false};
    const char *files[OPTION_LIST_MAX];
    size_t count = options_list(files, given, "data");
    char paces[FILE_PATH_MAX];

    if (given->argument_count == 0 || probe->machine.backend != &backend_cpu) {
        return STATUS_OK;
    }
    TRY(file_place(paces, sizeof(paces), error, FILE_PLACE_STATE, "paces"));
    TRY(file_make_folder(paces, error, 0700));
    sandbox_add_read(&plan, given->arguments[0]);
    for (size_t i = 0; i < count; i++) {
        sandbox_add_read(&plan, files[i]);
    }
    sandbox_add_write(&plan, paces);
    sandbox_begin(&plan);
    return STATUS_OK;
}

/* What the amounts are in; asked before the process is confined. */
static void find_currency(struct probe *probe, const struct command_context *context)
{
    struct ledger_options options;
    struct ledger *ledger = NULL;
    char state_dir[FILE_PATH_MAX];
    struct error error;

    error_init(&error);
    if (!probe->has_money || options_text(context->options, "ledger") == NULL) {
        return;
    }
    if (chain_ledger_options(&options, state_dir, context, NULL, &error) != STATUS_OK ||
        ledger_open(&ledger, &options, &error) != STATUS_OK) {
        log_warn(context->log, "ledger", "amounts are shown in eth: %s", error.text);
        return;
    }
    probe->currency = *ledger_get_currency(ledger);
    ledger_close(ledger);
}

static enum status look_at_machine(struct probe *probe, const struct command_context *context,
                                   struct error *error)
{
    const struct options *given = context->options;
    struct machine_options unlimited; /* --memory-max limits jobs, not the measurement */

    TRY(take_amount(&probe->reward, given, "reward", error));
    TRY(take_amount(&probe->price, given, "price", error));
    TRY(access_machine(&probe->machine, context, error));
    unlimited = probe->machine;
    unlimited.memory_max = 0;
    probe->has_money = probe->reward > 0.0;
    find_currency(probe, context);
    probe->has_price = options_given(given, "price");
    host_look(&probe->host);
    run_describe(probe->device, sizeof(probe->device), &probe->machine);
    look_by_plugin(probe);
    look_by_nvml(probe);
    TRY(confine_process(probe, given, error));
    TRY(requirements_measure(&probe->rate, &unlimited, error));
    if (given->argument_count == 0 && options_text(given, "devices") != NULL) {
        return error_set(error, STATUS_USAGE, "--devices: what job is split?");
    }
    if (given->argument_count > 0) {
        TRY(look_at_job(probe, given, error));
    }
    return STATUS_OK;
}

/* ---- computing --------------------------------------------------------------------------- */

static double step_seconds(const struct probe *probe)
{
    return probe->time.seconds + probe->time.hashing;
}

/* 0: the job reads none. */
static double tokens_per_second(const struct probe *probe)
{
    const double tokens = (double)step_time_tokens(probe->job->tape);

    return tokens > 0.0 ? tokens / step_seconds(probe) : 0.0;
}

/* The reward is spread evenly over the steps. */
static double income_per_hour(const struct probe *probe)
{
    return probe->reward / (double)probe->job->steps / step_seconds(probe) * 3600.0;
}

/* The highest --compute-capability of a job that this machine can take; 0: none. */
static int32_t capability_of(const struct probe *probe)
{
    bool trains = probe->by_plugin && probe->machine.backend == &backend_cuda &&
                  probe->machine.device < probe->gpu_count;

    return trains ? probe->gpus[probe->machine.device].capability : 0;
}

/* ---- reporting ---------------------------------------------------------------------------- */

static json_t *gpus_json(const struct probe *probe)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < probe->gpu_count && list != NULL; i++) {
        const struct gpu *gpu = &probe->gpus[i];

        if (json_array_append_new(
                list, json_pack("{s:s, s:I, s:i, s:s, s:b, s:o, s:b}", "name", gpu->name, "memory",
                                (json_int_t)gpu->memory, "compute_capability", (int)gpu->capability,
                                "contracts_by", gpu->ways, "can_train", probe->by_plugin,
                                "use_percent", gpu->has_use ? json_integer(gpu->use) : json_null(),
                                "energy_known", gpu->has_energy)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* What the most loaded device needs. */
static uint64_t most_memory(const struct machine_split_cost *cost)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < MACHINE_DEVICES_MAX; i++) {
        most = cost->memory[i] > most ? cost->memory[i] : most;
    }
    return most;
}

/* 0: not so few as were asked about, or the memory of a device is not known. */
static uint32_t devices_needed(const struct probe *probe)
{
    for (uint32_t i = 0; i < probe->split_count; i++) {
        if (most_memory(&probe->splits[i]) <= probe->split_memory) {
            return probe->split_first + i;
        }
    }
    return 0;
}

/* Devices compute one after the other, so what moves is added to the step. */
static double move_ms(const struct probe *probe, const struct machine_split_cost *cost)
{
    return (double)cost->moved / probe->link * 1e3;
}

static json_t *splits_json(const struct probe *probe)
{
    json_t *rows = json_array();

    for (uint32_t i = 0; i < probe->split_count; i++) {
        const struct machine_split_cost *cost = &probe->splits[i];
        json_t *memory = json_array();

        for (uint32_t device = 0; device < probe->split_first + i; device++) {
            (void)json_array_append_new(memory, json_integer((json_int_t)cost->memory[device]));
        }
        (void)json_array_append_new(
            rows, json_pack("{s:i, s:o, s:I, s:i, s:f}", "devices", (int)(probe->split_first + i),
                            "memory", memory, "moved_bytes", (json_int_t)cost->moved, "moves",
                            (int)cost->moves, "moving_ms", move_ms(probe, cost)));
    }
    return json_pack(
        "{s:o, s:I, s:o}", "rows", rows, "device_memory", (json_int_t)probe->split_memory, "needed",
        devices_needed(probe) == 0 ? json_null() : json_integer(devices_needed(probe)));
}

static json_t *job_json_of(const struct probe *probe)
{
    bool timed = probe->fits;
    bool paid = probe->fits && probe->has_money;

    return json_pack(
        "{s:o, s:o, s:b, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "step_memory",
        step_memory_json(&probe->memory), "split",
        probe->split_count > 0 ? splits_json(probe) : json_null(), "fits", probe->fits, "why_not",
        probe->fits ? json_null() : json_string(probe->why_not.text), "seconds_per_step",
        timed ? strict_json_real(step_seconds(probe)) : json_null(), "measured", probe->measured,
        "tokens_per_second", timed ? strict_json_real(tokens_per_second(probe)) : json_null(),
        "seconds_of_job",
        timed ? strict_json_real(step_seconds(probe) * (double)probe->job->steps) : json_null(),
        "income_per_hour", paid ? strict_json_real(income_per_hour(probe)) : json_null(),
        "profit_per_hour",
        paid && probe->has_price ? strict_json_real(income_per_hour(probe) - probe->price)
                                 : json_null());
}

static json_t *probe_json(const struct probe *probe)
{
    return json_pack("{s:s, s:i, s:I, s:I, s:s, s:f, s:[f, f], s:o, s:o, s:{s:I, s:i, s:I}, s:o}",
                     "cpu", probe->host.cpu, "cores", (int)probe->host.cores, "memory",
                     (json_int_t)probe->host.memory_bytes, "memory_free",
                     (json_int_t)probe->host.memory_free_bytes, "device", probe->device,
                     "contraction_rate", probe->rate.middle, "contraction_rate_spread",
                     probe->rate.least, probe->rate.most, "gpus", gpus_json(probe), "no_gpu",
                     probe->gpu_count > 0 ? json_null() : json_string(probe->no_plugin.text),
                     "meets", "memory", (json_int_t)probe->machine.memory_max, "compute_capability",
                     (int)capability_of(probe), "contraction_rate", (json_int_t)probe->rate.least,
                     "job", probe->job == NULL ? json_null() : job_json_of(probe));
}

static void show_gpus(struct sheet *sheet, const struct probe *probe)
{
    for (uint32_t i = 0; i < probe->gpu_count; i++) {
        const struct gpu *gpu = &probe->gpus[i];

        sheet_print(sheet, "%-20s %s, %.1f GiB, compute capability %d.%d", "GPU", gpu->name,
                    (double)gpu->memory / GIB, gpu->capability / 10, gpu->capability % 10);
        if (gpu->has_use) {
            sheet_print(sheet, ", busy %u %%", gpu->use);
        }
        sheet_print(sheet, "%s\n", gpu->has_energy ? ", reports its energy" : "");
        if (gpu->ways[0] != '\0') {
            sheet_print(sheet, "%-20s %s\n", "  contracts by", gpu->ways);
        }
    }
    if (probe->gpu_count == 0) {
        sheet_print(sheet, "%-20s none\n", "GPU");
    }
    if (!probe->by_plugin) {
        sheet_print(sheet, "%-20s %s\n", "no training on GPUs", probe->no_plugin.text);
    }
}

static void show_memory(struct sheet *sheet, const struct probe *probe)
{
    char text[STEP_MEMORY_TEXT];

    step_memory_text(text, probe->memory.cpu);
    sheet_print(sheet, "\n%-20s %s\n", "memory on a CPU", text);
    sheet_print(sheet, "%-20s %.2f MiB stay in their files, with --hoist %.2f MiB\n",
                "  and of the data", (double)probe->memory.data / 1048576.0,
                (double)probe->memory.data_hoist / 1048576.0);
    step_memory_text(text, probe->memory.gpu);
    sheet_print(sheet, "%-20s %s\n", "memory on a GPU", text);
}

static void show_income(struct sheet *sheet, const struct probe *probe)
{
    const char *name = currency_name(&probe->currency);
    const int places = probe->currency.is_token ? (int)probe->currency.places : WEI_ETHER_PLACES;
    const double whole = pow(10.0, places);

    if (probe->has_money && !probe->has_price) {
        sheet_print(sheet, "%-20s %s%.4g %s; what is left of it is not known: give --price\n",
                    "an hour earns", probe->measured ? "" : "at most ",
                    income_per_hour(probe) / whole, name);
    } else if (probe->has_money) {
        sheet_print(sheet, "%-20s %s%.4g %s, less %.4g %s for the machine: %+.4g %s\n",
                    "an hour earns", probe->measured ? "" : "at most ",
                    income_per_hour(probe) / whole, name, probe->price / whole, name,
                    (income_per_hour(probe) - probe->price) / whole, name);
    }
}

static void show_job(struct sheet *sheet, const struct probe *probe)
{
    show_memory(sheet, probe);
    if (!probe->fits) {
        sheet_print(sheet, "\n%-20s no: %s\n", "takes the job", probe->why_not.text);
        return;
    }
    sheet_print(sheet, "\n%-20s yes\n%-20s %s%.4g s%s\n", "takes the job", "a step",
                probe->measured ? "" : "at least ", step_seconds(probe),
                probe->measured ? ", with hashing" : " (its products alone; --data measures)");
    if (step_time_tokens(probe->job->tape) > 0) {
        sheet_print(sheet, "%-20s %s%.4g\n", "tokens a second", probe->measured ? "" : "at most ",
                    tokens_per_second(probe));
    }
    sheet_print(sheet, "%-20s %.3g hours\n", "the whole job",
                step_seconds(probe) * (double)probe->job->steps / 3600.0);
    show_income(sheet, probe);
}

static void show_splits(struct sheet *sheet, const struct probe *probe)
{
    uint32_t needed = devices_needed(probe);

    sheet_print(sheet, "\nSplit over GPUs, by the plan; %.3g GB/s from one to another\n",
                probe->link / 1e9);
    sheet_print(sheet, "  %7s  %16s  %16s  %10s\n", "devices", "memory of each", "moved in a step",
                "adds");
    for (uint32_t i = 0; i < probe->split_count; i++) {
        const struct machine_split_cost *cost = &probe->splits[i];

        sheet_print(sheet, "  %7u  %12.2f MiB  %12.2f MiB  %7.2f ms\n", probe->split_first + i,
                    (double)most_memory(cost) / 1048576.0, (double)cost->moved / 1048576.0,
                    move_ms(probe, cost));
    }
    if (probe->split_memory == 0) {
        sheet_print(sheet, "  --device-memory BYTES says how many are needed\n");
    } else if (needed == 0) {
        sheet_print(sheet, "  none of these fits GPUs of %.2f GiB\n",
                    (double)probe->split_memory / GIB);
    } else {
        sheet_print(sheet, "  needed: %u, with %.2f GiB each\n", needed,
                    (double)probe->split_memory / GIB);
    }
}

static void show_probe(struct sheet *sheet, const struct probe *probe)
{
    sheet_print(sheet, "%-20s %s, %u cores\n", "processor", probe->host.cpu, probe->host.cores);
    sheet_print(sheet, "%-20s %.1f GiB, %.1f GiB free\n", "memory",
                (double)probe->host.memory_bytes / GIB,
                (double)probe->host.memory_free_bytes / GIB);
    show_gpus(sheet, probe);
    sheet_print(sheet,
                "%-20s %.1f * 10^9 multiply-adds a second at 14 bits, on %s\n"
                "%-20s (the middle of three measurements, %.1f to %.1f)\n",
                "exact products", probe->rate.middle, probe->device, "", probe->rate.least,
                probe->rate.most);
    sheet_print(sheet, "\nThis machine meets at most\n");
    sheet_print(sheet, "  --memory %" PRIu64 "M --contraction-rate %" PRIu64,
                probe->machine.memory_max >> 20, (uint64_t)probe->rate.least);
    if (capability_of(probe) > 0) {
        sheet_print(sheet, " --compute-capability %d", capability_of(probe));
    }
    sheet_print(sheet, "\n");
    if (probe->job != NULL) {
        show_job(sheet, probe);
    }
    if (probe->split_count > 0) {
        show_splits(sheet, probe);
    }
}

static int report_probe(struct command_context *context, const struct probe *probe)
{
    struct sheet sheet;
    int code;

    sheet_init(&sheet);
    sheet_merge(&sheet, probe_json(probe));
    show_probe(&sheet, probe);
    code = command_show(context, &sheet);
    return code == COMMAND_OK && probe->job != NULL && !probe->fits ? COMMAND_REFUSED : code;
}

static int probe_files(struct command_context *context)
{
    struct probe *probe = calloc(1, sizeof(*probe));
    struct error error;
    int code;

    error_init(&error);
    if (probe == NULL) {
        (void)error_set(&error, STATUS_NO_MEMORY, "no memory to probe");
        return command_fail(context, &error);
    }
    code = look_at_machine(probe, context, &error) == STATUS_OK ? report_probe(context, probe)
                                                                : command_fail(context, &error);
    job_free(probe->job);
    free(probe);
    return code;
}

int probe_commands_probe(struct command_context *context)
{
    bool by_key = context->options->argument_count > 0 && run_by_key_wanted(context);

    return by_key ? run_by_key(context, probe_files, options_number(context->options, "fetch-max"),
                               false)
                  : probe_files(context);
}
