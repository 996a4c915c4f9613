/*
 * gpu_check.c - everything that only a GPU can show, in one program: the same bits as the rules,
 * then how fast. Links nothing but the engine, the hashes and the C library, so that it can be
 * built on a bare machine with gcc and nvcc: see mk/cuda.mk.
 *
 *     gpu-check [FILE.json]     exit 0: all bits equal; 1: some differ; 2: no device, cannot tell
 *     GPU_CHECK_ONLY=bits|speed one half alone
 */
#include "tests/gpu/gpu_check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/assumptions.h"
#include "engine/builder_core.h"
#include "engine/cuda/loader.h"
#include "tests/support/random_tape.h"

void gpu_check_number(struct gpu_check *check, const char *name, double value, const char *unit)
{
    printf("  %-48s %12.4g %s\n", name, value, unit);
    (void)fflush(stdout);
    if (check->json != NULL) {
        fprintf(check->json, ",\n  {\"name\": \"%s\", \"value\": %.9g, \"unit\": \"%s\"}", name,
                value, unit);
        (void)fflush(check->json);
    }
}

void gpu_check_must(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        printf("gpu-check: %s\n", error->text);
        if (error->advice[0] != '\0') {
            printf("  try: %s\n", error->advice);
        }
        exit(GPU_CHECK_NO_DEVICE);
    }
}

struct tape *gpu_check_product(uint64_t m, uint64_t n, uint64_t k, struct precision precision)
{
    struct builder *builder = builder_new(precision);
    struct tape *tape = NULL;
    struct error error;
    uint32_t a;
    uint32_t b;

    error_init(&error);
    a = build_tensor(builder, "a", DTYPE_F32, ROLE_INPUT, 2, (const uint64_t[]){m, k});
    b = build_tensor(builder, "b", DTYPE_F32, ROLE_INPUT, 2, (const uint64_t[]){n, k});
    build_output(builder, "out", build_linear(builder, a, b));
    gpu_check_must(builder_finish(&tape, builder, &error), &error);
    builder_free(builder);
    return tape;
}

static struct machine *open_way(const struct machine_way *way, const struct tape *tape, bool trace)
{
    struct machine_options options = {.trace = trace};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    gpu_check_must(machine_cuda_open(&machine, tape, &options, way, &error), &error);
    return machine;
}

struct machine *gpu_check_open_path(const struct gpu_check *check, const struct tape *tape,
                                    enum contract_path path)
{
    const struct machine_way way = {.calls = check->calls, .barred = ~(1u << path)};

    return open_way(&way, tape, false);
}

struct machine *gpu_check_open(const struct gpu_check *check, const struct tape *tape, bool trace,
                               bool rules_only)
{
    const struct machine_way way = {
        .calls = check->calls, .rules_only = rules_only, .barred = paths_barred(&check->paths)};

    return open_way(&way, tape, trace);
}

/* A value of its own for each given tensor; of models the first state and the constants. */
static void *given_value(const struct model *model, const struct tape *tape, uint32_t id,
                         uint64_t seed)
{
    const struct tensor *tensor = &tape->tensors[id];
    uint8_t *bytes;

    for (uint32_t i = 0; model != NULL && i < model->constant_count; i++) {
        if (model->constants[i].tensor == id) {
            bytes = malloc(tensor->count * dtype_size(tensor->dtype));
            if (bytes != NULL) {
                memcpy(bytes, model->constants[i].bytes, tensor->count * dtype_size(tensor->dtype));
            }
            return bytes;
        }
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

/* Each way to contract is tried before any of them is used. */
static void look_at_paths(struct gpu_check *check)
{
    char text[PATHS_TEXT_MAX];
    struct error error;

    error_init(&error);
    gpu_check_must(machine_cuda_paths(&check->paths, check->calls, 0, &error), &error);
    paths_text(text, &check->paths);
    printf("gpu-check: contracts by %s\n", text);
    for (int path = 0; path < CONTRACT_PATHS; path++) {
        if (check->paths.wrong >> path & 1) {
            check->failures++;
            printf("  DIFFERS: contraction by %s, on the small problems of its proof\n",
                   path_name((enum contract_path)path));
        }
    }
}

/* Opens and closes a device, for its facts or the reason why there is none. */
static void look(struct gpu_check *check)
{
    struct tape *tape = random_tape(1, 3);
    struct machine *machine;

    machine = gpu_check_open(check, tape, false, false);
    check->facts = *machine_cuda_facts(machine);
    machine->backend->close(machine);
    tape_free(tape);
    printf("gpu-check: %s, compute capability %d.%d, %.0f MiB, driver for CUDA %d.%d, plugin for "
           "%d.%d\n",
           check->facts.name, check->facts.capability / 10, check->facts.capability % 10,
           (double)check->facts.memory / 1048576.0, check->facts.driver / 1000,
           check->facts.driver % 1000 / 10, check->facts.runtime / 1000,
           check->facts.runtime % 1000 / 10);
    look_at_paths(check);
}

int main(int argc, char **argv)
{
    const char *only = getenv("GPU_CHECK_ONLY");
    struct gpu_check check = {.json = NULL};
    struct error error;

    error_init(&error);
    gpu_check_must(assumptions_check(&error), &error);
    gpu_check_must(loader_open(&check.calls, &error), &error);
    look(&check);
    if (argc > 1) {
        check.json = fopen(argv[1], "w");
        if (check.json == NULL) {
            perror(argv[1]);
            return GPU_CHECK_NO_DEVICE;
        }
        fprintf(check.json,
                "[\n  {\"name\": \"device\", \"value\": \"%s\", \"driver\": %d, "
                "\"capability\": %d}",
                check.facts.name, check.facts.driver, check.facts.capability);
    }
    if (only == NULL || strcmp(only, "bits") == 0) {
        gpu_check_bits(&check);
    }
    if (only == NULL || strcmp(only, "speed") == 0) {
        gpu_check_speed(&check);
    }
    if (check.json != NULL) {
        fprintf(check.json, "\n]\n");
        (void)fclose(check.json);
    }
    printf("gpu-check: %llu comparisons, %llu differ\n", (unsigned long long)check.comparisons,
           (unsigned long long)check.failures);
    return check.failures == 0 ? GPU_CHECK_OK : GPU_CHECK_REFUTED;
}
