/*
 * traffic_bench.c - the bytes that one GPT-2 124M step moves on a GPU, kind by kind, beside the
 * least that the same operations could do with (tests/support/device/traffic.h). It counts what
 * the machine would launch, on a device that does nothing: no GPU takes part, no time is measured.
 *
 *     TRAFFIC_BATCH=4          sequences of 1,024 tokens
 *     TRAFFIC_DISABLED=BITS      kernel variants that are disabled, by their bits: launcher.h
 *     TRAFFIC_CAPABILITY=90    of the device
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/support/bench.h"
#include "engine/models/model.h"
#include "tests/support/device/traffic.h"

#define BYTES_PER_S 4.8e12 /* an H200's memory, as its maker gives it */
#define PROCESSORS  132
#define SHARED_MAX  232448

static uint32_t wish(const char *name, uint32_t usual)
{
    const char *text = getenv(name);

    return text == NULL ? usual : (uint32_t)strtoul(text, NULL, 0);
}

/* ---- a device that does nothing ------------------------------------------------- */

static enum device_result idle_open(struct device **device, struct device_facts *facts, int ordinal)
{
    (void)ordinal;
    *facts = (struct device_facts){.name = "nothing",
                                   .capability = (int32_t)wish("TRAFFIC_CAPABILITY", 90),
                                   .multiprocessors = PROCESSORS,
                                   .shared_max = SHARED_MAX};
    *device = (struct device *)facts;
    return DEVICE_OK;
}

static void idle_close(struct device *device)
{
    (void)device;
}

/* Addresses that nobody looks at. */
static enum device_result idle_allocate(struct device *device, void **memory, uint64_t size)
{
    (void)device;
    (void)size;
    *memory = (void *)(uintptr_t)4096;
    return DEVICE_OK;
}

static void idle_release(struct device *device, void *memory)
{
    (void)device;
    (void)memory;
}

static enum device_result idle_upload(struct device *device, void *to, const void *from,
                                      uint64_t size)
{
    (void)device;
    (void)to;
    (void)from;
    (void)size;
    return DEVICE_OK;
}

static enum device_result idle_fill(struct device *device, void *to, int byte, uint64_t size)
{
    (void)device;
    (void)to;
    (void)byte;
    (void)size;
    return DEVICE_OK;
}

static enum device_result idle_wait(struct device *device)
{
    (void)device;
    return DEVICE_OK;
}

static void idle_forget(struct device *device, struct device_graph *graph)
{
    (void)device;
    (void)graph;
}

static const struct device_calls idle = {
    .open = idle_open,
    .close = idle_close,
    .allocate = idle_allocate,
    .release = idle_release,
    .upload = idle_upload,
    .fill = idle_fill,
    .wait = idle_wait,
    .forget = idle_forget,
};

/* ---- the table -------------------------------------------------------------------- */

static void must(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "traffic: %s\n", error->text);
        exit(2);
    }
}

/* Is a quantization along rows of memory, or across them? The two are different kernels. */
static bool is_across(const struct op *op)
{
    const int64_t *dims = &op->attributes[QUANTIZE_DIMS];
    const int64_t *strides = &op->attributes[QUANTIZE_STRIDES];
    const int64_t step = dims[5] > 1 ? strides[5] : dims[4] > 1 ? strides[4] : 1;

    return op->kind == OP_QUANTIZE && step != 1;
}

#define ROW_COUNT (OP_KIND_COUNT + 1)

static void write_row(struct bench *bench, const char *name, const struct traffic *traffic)
{
    const double moved = (double)traffic->read + (double)traffic->written;
    const double least = (double)traffic->least;

    printf("| %s | %llu | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", name,
           (unsigned long long)traffic->launches, 1e-9 * (double)traffic->read,
           1e-9 * (double)traffic->again, 1e-9 * (double)traffic->written, 1e-9 * least,
           1e3 * moved / BYTES_PER_S, 1e3 * least / BYTES_PER_S);
    bench_record(bench, name, "GB", 1e-9 * moved, 1e-9 * least, 0);
}

static void add(struct traffic *sum, const struct traffic *more)
{
    sum->launches += more->launches;
    sum->read += more->read;
    sum->again += more->again;
    sum->written += more->written;
    sum->least += more->least;
}

static void write_table(struct bench *bench, const struct machine *machine,
                        const struct traffic *counts)
{
    struct traffic rows[ROW_COUNT] = {{0}};
    struct traffic all = {0};

    for (uint32_t at = 0; at < machine->tape->op_count; at++) {
        const struct op *op = traffic_op(machine, at);

        add(&rows[is_across(op) ? OP_KIND_COUNT : (int)op->kind], &counts[at]);
        add(&all, &counts[at]);
    }
    printf(
        "| operations | launches | GB read | GB again | GB written | GB at least | ms at 4.8 TB/s "
        "| ms at least |\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int row = 0; row < ROW_COUNT; row++) {
        if (rows[row].launches > 0) {
            write_row(bench,
                      row == OP_KIND_COUNT ? "quantize, across" : op_kind_name((enum op_kind)row),
                      &rows[row]);
        }
    }
    write_row(bench, "all", &all);
}

int main(int argc, char **argv)
{
    const struct cuda_config config = {.calls = &idle, .disabled = wish("TRAFFIC_DISABLED", 0)};
    const struct machine_options nothing = {.trace = false};
    struct model_options options;
    struct machine *machine = NULL;
    struct traffic *counts;
    struct model model;
    struct bench bench;
    struct error error;

    bench_init(&bench, "bytes of a GPT-2 124M step", "each once", argc, argv);
    error_init(&error);
    model_options_default(&options, MODEL_GPT2);
    options.batch = wish("TRAFFIC_BATCH", 4);
    options.length = 1024;
    options.positions = 1024;
    options.vocabulary = 50257;
    options.layers = 12;
    options.heads = 12;
    options.width = 768;
    options.hidden = 3072;
    options.dropout = 0.0;
    options.steps = 100;
    options.warmup = 10;
    options.data_count = 1000000;
    options.data_dtype = DTYPE_U16;
    must(model_build(&model, &options, &error), &error);
    must(machine_cuda_open(&machine, model.tape, &nothing, &config, &error), &error);
    counts = calloc(model.tape->op_count, sizeof(*counts));
    if (counts == NULL) {
        must(error_set(&error, STATUS_NO_MEMORY, "no memory to count"), &error);
        return 2;
    }
    traffic_count(counts, machine);
    write_table(&bench, machine, counts);
    free(counts);
    machine->backend->close(machine);
    model_release(&model);
    return bench_finish(&bench);
}
