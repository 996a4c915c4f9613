/* small_model.c - see small_model.h. */
#include "tests/support/numeric/small_model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proofs/hash/sha256.h"
#include "tests/support/numeric/model_state.h"

#define FILE_MAX      (1 << 22)
#define PIXELS        256
#define NPY_HEAD_SIZE 10 /* magic, version, and the length of the header that follows */

#define HELD_OUT_SHARE 4 /* the last quarter of the data */
#define DATA_TENSORS   4 /* that a small model may have */

__attribute__((format(printf, 1, 2), noreturn)) static void give_up(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    exit(1);
}

static void insist(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        give_up("small model: %s", error->text);
    }
}

/* ---- options ------------------------------------------------------------ */

void small_model_options(struct model_options *options, enum model_kind kind)
{
    model_options_default(options, kind);
    options->seed = 0x5eed00000000002a;
    options->warmup = 4;
    options->steps = 40; /* the schedule's last row then holds for the rest */
    switch (kind) {
    case MODEL_MLP:
        options->batch = 4;
        options->hidden = 12;
        options->dropout = 0.1;
        options->optimizer = OPTIMIZER_SGD;
        options->schedule = SCHEDULE_CONSTANT;
        options->rate = 0.05;
        options->decay = 1e-3;
        options->clip = 0.0;
        return;
    case MODEL_CONVNET:
        options->precision = (struct precision){15, 32};
        options->batch = 3;
        options->hidden = 3;
        return;
    case MODEL_GPT2:
        options->precision = (struct precision){14, 16};
        options->batch = 2;
        options->length = 12;
        options->positions = 20;
        options->vocabulary = 128;
        options->layers = 2;
        options->heads = 2;
        options->width = 20;
        options->dropout = 0.1;
        options->schedule = SCHEDULE_COSINE;
        return;
    case MODEL_LLAMA:
        options->precision = (struct precision){22, 0};
        options->batch = 2;
        options->length = 12;
        options->vocabulary = 128;
        options->layers = 1;
        options->heads = 4;
        options->kv_heads = 2;
        options->width = 24;
        options->hidden = 32;
        options->optimizer = OPTIMIZER_SGD;
        options->rate = 0.1;
        options->rate_min = 0.01;
        return;
    case MODEL_COUNT:
        break;
    }
    give_up("small model: no such kind");
}

/* ---- fixtures ----------------------------------------------------------- */

/* The bytes after the header of an .npy file. */
static uint8_t *load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(FILE_MAX);
    size_t length;
    size_t skip = 0;

    if (file == NULL || bytes == NULL) {
        give_up("cannot open '%s': tests run from the root of the repository", path);
    }
    length = fread(bytes, 1, FILE_MAX, file);
    (void)fclose(file);
    if (length > NPY_HEAD_SIZE && memcmp(bytes, "\x93NUMPY\x01", 7) == 0) {
        skip = NPY_HEAD_SIZE + ((size_t)bytes[8] | (size_t)bytes[9] << 8);
    }
    if (length <= skip) {
        give_up("'%s' is empty", path);
    }
    *size = length - skip;
    memmove(bytes, bytes + skip, *size);
    return bytes;
}

void small_model_open(struct small_model *small, const struct model_options *wanted)
{
    bool language = wanted->kind == MODEL_GPT2 || wanted->kind == MODEL_LLAMA;
    struct model_options options = *wanted;
    struct error error;
    size_t size;

    memset(small, 0, sizeof(*small));
    error_init(&error);
    options.data_dtype = options.held_out.dtype = DTYPE_U8;
    if (language) {
        small->data = load("fixtures/text/village.u8", &size);
        options.data_count = size;
    } else {
        small->data = load("fixtures/images/shapes.npy", &size);
        options.data_count = size / PIXELS;
        small->labels = load("fixtures/images/shapes-labels.npy", &size);
    }
    options.held_out.count = options.data_count / HELD_OUT_SHARE;
    insist(model_build(&small->model, &options, &error), &error);
}

const void *small_model_data(const struct small_model *small, uint32_t id)
{
    const struct model *model = &small->model;
    const struct tensor *data = &model->tape->tensors[model->data];
    const uint64_t from = data->dims[0] - data->dims[0] / HELD_OUT_SHARE;

    if (id == model->held_out) {
        return small->data + from * (data->count / data->dims[0]);
    }
    if (id == model->held_out_labels) {
        return small->labels + from;
    }
    return id == model->data ? small->data : small->labels;
}

/* The data tensors that the model has; how many. */
static int data_of(uint32_t ids[DATA_TENSORS], const struct model *model)
{
    const uint32_t all[DATA_TENSORS] = {model->data, model->labels, model->held_out,
                                        model->held_out_labels};
    int count = 0;

    for (int i = 0; i < DATA_TENSORS; i++) {
        if (all[i] != TENSOR_NONE) {
            ids[count++] = all[i];
        }
    }
    return count;
}

void small_model_close(struct small_model *small)
{
    model_release(&small->model);
    free(small->data);
    free(small->labels);
}

/* ---- machines ----------------------------------------------------------- */

static void *first_state(const struct small_model *small, uint32_t id)
{
    const struct tensor *tensor = &small->model.tape->tensors[id];
    void *bytes = malloc(tensor->count * dtype_size(tensor->dtype));

    if (bytes == NULL) {
        give_up("no memory for '%s'", tensor->name);
    }
    model_first_state(bytes, &small->model, id);
    return bytes;
}

void small_machine_give(struct machine *machine, const struct small_model *small)
{
    const struct model *model = &small->model;
    uint32_t data[DATA_TENSORS];
    const int data_count = data_of(data, model);
    struct error error;

    error_init(&error);
    for (int i = 0; i < data_count; i++) {
        const void *bytes = small_model_data(small, data[i]);

        insist(machine->backend->bind(machine, data[i], bytes, &error), &error);
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        insist(machine->backend->write(machine, model->constants[i].tensor,
                                       model->constants[i].bytes, &error),
               &error);
    }
    for (uint32_t i = 0; i < model->tape->state_count; i++) {
        uint32_t id = model->tape->states[i].before;
        void *bytes = first_state(small, id);

        insist(machine->backend->write(machine, id, bytes, &error), &error);
        free(bytes);
    }
}

struct machine *small_machine_open(const struct small_model *small, enum isa isa, int thread_count,
                                   bool trace)
{
    struct machine_options options = {.isa = isa, .thread_count = thread_count, .trace = trace};
    const struct model *model = &small->model;
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    insist(backend_cpu.open(&machine, model->tape, &options, &error), &error);
    small_machine_give(machine, small);
    return machine;
}

struct reference *small_reference_open(const struct small_model *small, enum reference_mode mode)
{
    const struct model *model = &small->model;
    struct reference *reference = reference_new(model->tape, mode);
    uint32_t data[DATA_TENSORS];
    const int data_count = data_of(data, model);

    for (int i = 0; i < data_count; i++) {
        const void *bytes = small_model_data(small, data[i]);

        reference_bind(reference, data[i], bytes);
    }
    for (uint32_t i = 0; i < model->constant_count; i++) {
        reference_write(reference, model->constants[i].tensor, model->constants[i].bytes);
    }
    for (uint32_t i = 0; i < model->tape->state_count; i++) {
        void *bytes = first_state(small, model->tape->states[i].before);

        reference_write(reference, model->tape->states[i].before, bytes);
        free(bytes);
    }
    return reference;
}

void small_machine_steps(struct machine *machine, uint32_t count)
{
    struct error error;

    error_init(&error);
    for (uint32_t i = 0; i < count; i++) {
        insist(machine->backend->step(machine, NULL, &error), &error);
    }
}

bool small_machine_diverged(struct machine *machine)
{
    bool diverged = false;
    struct error error;

    error_init(&error);
    insist(machine->backend->diverged(machine, &diverged, &error), &error);
    return diverged;
}

float small_machine_loss(struct machine *machine)
{
    return *(const float *)machine->backend->peek(machine, machine->tape->loss);
}

void small_machine_digest(char *text, struct machine *machine)
{
    struct sha256 hash;
    struct digest digest;
    struct error error;

    error_init(&error);
    sha256_init(&hash, SHA256_ISA_SCALAR);
    for (uint32_t i = 0; i < machine->tape->state_count; i++) {
        uint32_t id = machine->tape->states[i].before;
        const struct tensor *tensor = &machine->tape->tensors[id];
        size_t size = tensor->count * dtype_size(tensor->dtype);
        void *bytes = malloc(size);

        if (bytes == NULL) {
            give_up("no memory for '%s'", tensor->name);
        }
        insist(machine->backend->read(machine, id, bytes, &error), &error);
        sha256_add(&hash, bytes, size);
        free(bytes);
    }
    sha256_end(&hash, &digest);
    for (int i = 0; i < (SMALL_DIGEST_TEXT - 1) / 2; i++) {
        (void)snprintf(text + (ptrdiff_t)2 * i, 3, "%02x", digest.bytes[i]);
    }
}
