/* gpu_check.c - see gpu_check.h: what the sections of gpu_ladder.c share. */
#include "tests/gpu/gpu_check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cuda/device/loader.h"
#include "engine/ops/assumptions.h"
#include "engine/tape/builder_core.h"
#include "tests/support/numeric/model_state.h"
#include "tests/support/numeric/random_tape.h"

/* Of this process, for gpu_check_must(): a section cannot hand its check through everything. */
static struct gpu_tally *tally_of_section;

/* ---- a section's process ------------------------------------------------------------- */

/* What the engine opens by itself is to be without the barred variants too. */
static void bar_by_name(uint32_t barred)
{
    char names[VARIANTS_TEXT_MAX] = "";
    size_t used = 0;

    for (uint32_t variant = 0; variant < VARIANT_COUNT; variant++) {
        if (variant != VARIANT_PLAIN && (barred >> variant & 1) != 0) {
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                     used == 0 ? "" : ",", selftest_name(variant));
        }
    }
    (void)setenv("LOCKSTEP_CUDA_WITHOUT", names, 1);
    (void)setenv("LOCKSTEP_CUDA_PROOFS", "off", 1); /* the ladder is one */
}

void gpu_check_begin(struct gpu_check *check)
{
    struct error error;

    tally_of_section = check->tally;
    error_init(&error);
    bar_by_name(check->tally->barred);
    gpu_check_must(assumptions_check(&error), &error);
    gpu_check_must(loader_open(&check->calls, &error), &error);
}

/* ---- reports ----------------------------------------------------------------------- */

static void write_row(struct gpu_check *check, const char *name, double value, const char *unit,
                      const char *goal)
{
    printf("  %-52s %12.4g %s%s%s\n", name, value, unit, goal[0] != '\0' ? "   " : "", goal);
    (void)fflush(stdout);
    if (check->json != NULL) {
        fprintf(check->json, ",\n  {\"name\": \"%s\", \"value\": %.9g, \"unit\": \"%s\"%s%s%s}",
                name, value, unit, goal[0] != '\0' ? ", \"goal\": \"" : "", goal,
                goal[0] != '\0' ? "\"" : "");
        (void)fflush(check->json);
    }
    if (check->table != NULL) {
        fprintf(check->table, "| %s | %.4g | %s | %s |\n", name, value, unit, goal);
        (void)fflush(check->table);
    }
}

void gpu_check_number(struct gpu_check *check, const char *name, double value, const char *unit)
{
    write_row(check, name, value, unit, "");
}

void gpu_check_goal(struct gpu_check *check, const char *name, double value, const char *unit,
                    double goal, bool at_least)
{
    char text[64];
    const bool met = at_least ? value >= goal : value <= goal;

    (void)snprintf(text, sizeof(text), "%s: at %s %g", met ? "met" : "MISSED",
                   at_least ? "least" : "most", goal);
    write_row(check, name, value, unit, text);
}

void gpu_check_must(enum status status, const struct error *error)
{
    if (status == STATUS_OK) {
        return;
    }
    if (tally_of_section != NULL) {
        (void)snprintf(tally_of_section->reason, sizeof(tally_of_section->reason), "%s%s%s%s",
                       error->text, error->advice[0] != '\0' ? " (" : "", error->advice,
                       error->advice[0] != '\0' ? ")" : "");
    }
    (void)fflush(NULL);
    _exit(GPU_CHECK_NO_DEVICE);
}

void gpu_check_call(const struct gpu_check *check, enum device_result result)
{
    struct error error;

    error_init(&error);
    if (result != DEVICE_OK) {
        gpu_check_must(error_set(&error, STATUS_DEVICE, "%s", check->calls->trouble()), &error);
    }
}

void gpu_check_differs(struct gpu_check *check, const char *what)
{
    if (check->tally->first[0] == '\0') {
        (void)snprintf(check->tally->first, sizeof(check->tally->first), "%s", what);
    }
    check->tally->failures++;
    if (check->tally->failures <= 60) {
        printf("  DIFFERS: %s\n", what);
        (void)fflush(stdout);
    }
}

/* ---- machines ------------------------------------------------------------------------ */

struct tape *gpu_check_linear(int64_t m, int64_t n, int64_t k, struct precision precision)
{
    const uint64_t a_dims[2] = {(uint64_t)m, (uint64_t)k};
    const uint64_t b_dims[2] = {(uint64_t)n, (uint64_t)k};
    struct builder *builder = builder_new(precision);
    struct tape *tape = NULL;
    struct error error;
    uint32_t a;
    uint32_t b;

    error_init(&error);
    a = build_tensor(builder, "a", DTYPE_F32, ROLE_INPUT, 2, a_dims);
    b = build_tensor(builder, "b", DTYPE_F32, ROLE_INPUT, 2, b_dims);
    build_output(builder, "out", build_linear(builder, a, b));
    gpu_check_must(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

static struct machine *open_way(const struct cuda_config *config, const struct tape *tape,
                                bool trace)
{
    struct machine_options options = {.trace = trace};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    gpu_check_must(machine_cuda_open(&machine, tape, &options, config, &error), &error);
    return machine;
}

struct machine *gpu_check_open_barred(const struct gpu_check *check, const struct tape *tape,
                                      uint32_t disabled)
{
    const struct cuda_config config = {.calls = check->calls, .disabled = disabled};

    return open_way(&config, tape, false);
}

struct machine *gpu_check_open(const struct gpu_check *check, const struct tape *tape, bool trace,
                               bool rules_only)
{
    const struct cuda_config config = {.calls = check->calls,
                                       .rules_only = rules_only,
                                       .disabled = check->tally->barred,
                                       .quicker = check->tally->quicker};

    return open_way(&config, tape, trace);
}

struct machine *gpu_check_open_as(const struct tape *tape, const struct machine_options *options)
{
    struct machine_options own = *options;
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    own.backend = &backend_cuda;
    own.isa = isa_best();
    gpu_check_must(machine_open(&machine, tape, &own, &error), &error);
    return machine;
}

struct machine *gpu_check_cpu(const struct tape *tape, bool scalar, bool trace)
{
    struct machine_options options;
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    gpu_check_must(machine_options_default(&options, &error), &error);
    options.isa = scalar ? ISA_SCALAR : options.isa;
    options.trace = trace;
    gpu_check_must(backend_cpu.open(&machine, tape, &options, &error), &error);
    return machine;
}

void gpu_check_gpt2(struct model *model, const struct gpu_check *check, uint32_t batch,
                    uint32_t length, bool inference)
{
    struct model_options options;
    struct error error;

    error_init(&error);
    model_options_default(&options, MODEL_GPT2);
    options.batch = check->quick ? 1 : batch;
    options.length = check->quick && length > 16 ? 16 : length;
    options.positions = check->quick ? 16 : 1024;
    options.vocabulary = check->quick ? 50 : 50257;
    options.layers = check->quick ? 2 : 12;
    options.heads = check->quick ? 2 : 12;
    options.width = check->quick ? 16 : 768;
    options.hidden = 4 * options.width;
    options.dropout = 0.0;
    options.inference = inference;
    options.steps = 100;
    options.warmup = 10;
    options.data_count = inference ? 0 : check->quick ? 1000 : 1000000;
    options.data_dtype = DTYPE_U16;
    gpu_check_must(model_build(model, &options, &error), &error);
}

/* ---- values ---------------------------------------------------------------------------- */

static void *copy_of(const void *bytes, uint64_t size)
{
    void *copy = malloc(size);

    if (copy != NULL) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

/* Words of a vocabulary, each as likely as another. */
static void *tokens(const struct tensor *tensor, uint32_t vocabulary, uint64_t seed)
{
    const size_t size = dtype_size(tensor->dtype);
    uint8_t *bytes = malloc(tensor->count * size);
    uint64_t random = seed;

    for (uint64_t i = 0; bytes != NULL && i < tensor->count; i++) {
        uint32_t word;

        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        word = (uint32_t)(random >> 33) % vocabulary;
        for (size_t at = 0; at < size; at++) {
            bytes[i * size + at] = (uint8_t)(word >> 8 * at);
        }
    }
    return bytes;
}

/* A value of its own for each given tensor; of models the first state and the constants. */
static void *given_value(const struct model *model, const struct tape *tape, uint32_t id,
                         uint64_t seed)
{
    const struct tensor *tensor = &tape->tensors[id];
    uint8_t *bytes;

    for (uint32_t i = 0; model != NULL && i < model->constant_count; i++) {
        if (model->constants[i].tensor == id) {
            return copy_of(model->constants[i].bytes, tensor->count * dtype_size(tensor->dtype));
        }
    }
    if (model != NULL && model->options.vocabulary != 0 &&
        (id == model->data || id == model->input)) {
        return tokens(tensor, model->options.vocabulary, seed);
    }
    if (model != NULL && tensor->role == ROLE_STATE) {
        bytes = calloc(tensor->count, dtype_size(tensor->dtype));
        if (bytes != NULL) {
            model_first_state(bytes, model, id);
        }
        return bytes;
    }
    return random_tape_value(tape, id, seed);
}

/* Data stays with the processor's machine until it is closed: it is never freed. */
void gpu_check_give(struct machine *const *machines, uint32_t machine_count,
                    const struct model *model, const struct tape *tape, uint64_t seed)
{
    struct error error;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const bool data = tape->tensors[id].role == ROLE_DATA;
        void *bytes;

        if (role_is_made(tape->tensors[id].role)) {
            continue;
        }
        bytes = given_value(model, tape, id, seed);
        if (bytes == NULL) {
            (void)error_set(&error, STATUS_NO_MEMORY, "no memory for tensor %u", id);
            gpu_check_must(STATUS_NO_MEMORY, &error);
        }
        for (uint32_t i = 0; i < machine_count; i++) {
            const struct backend *backend = machines[i]->backend;

            gpu_check_must((data ? backend->bind : backend->write)(machines[i], id, bytes, &error),
                           &error);
        }
        if (!data) {
            free(bytes);
        }
    }
}
