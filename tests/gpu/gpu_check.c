/*
 * gpu_check.c - everything that only a GPU can show, in one program: the same bits as the rules,
 * then how fast. Links nothing but the engine, the hashes and the C library, so that it can be
 * built on a bare machine with gcc and nvcc: see mk/cuda.mk.
 *
 *     gpu-check [FOLDER [NOTE]]            exit 0: all bits equal; 1: some differ; 2: no device, or
 *                                          a part of it could not tell. Results go to files of
 *                                          their own in FOLDER (gpu_results.h); NOTE is made to
 *                                          hold their path without its ending
 *     GPU_CHECK_ONLY=bits|speed|NAME       one half alone, or the sections with NAME in theirs
 *     GPU_CHECK_QUICK=1                    small sizes, to see that everything runs
 *
 * It never stops at the first failure: sections are processes, and a section that cannot go on says
 * so at its end. One run on a machine that was borrowed for an hour shows all there is to see.
 */
#include "tests/gpu/gpu_results.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/cuda/device/loader.h"
#include "engine/ops/assumptions.h"
#include "engine/tape/builder_core.h"
#include "tests/support/numeric/model_state.h"
#include "tests/support/numeric/random_tape.h"

/* After so long a section is given up. */
#define SECTION_S 1500

/* Of this process, for gpu_check_must(): a section cannot hand its check through everything. */
static struct gpu_tally *tally_of_section;

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

struct machine *gpu_check_open_variant(const struct gpu_check *check, const struct tape *tape,
                                       enum kernel_variant variant)
{
    const struct cuda_config config = {.calls = check->calls, .disabled = ~(1u << variant)};

    return open_way(&config, tape, false);
}

struct machine *gpu_check_open(const struct gpu_check *check, const struct tape *tape, bool trace,
                               bool rules_only)
{
    struct cuda_config config = {.calls = check->calls, .rules_only = rules_only};
    struct variants variants;
    struct error error;

    error_init(&error);
    gpu_check_must(variants_of_device(&variants, check->calls, 0, &error), &error);
    config.disabled = variants_disabled(&variants);
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

/* ---- sections ----------------------------------------------------------------------------- */

/* Opens and closes devices, for the facts of the first or the reason why there is none. */
static void look(struct gpu_check *check, int kind)
{
    struct tape *tape = random_tape(1, 3);
    struct machine *machine = gpu_check_open(check, tape, false, false);
    const struct device_facts *facts = &check->tally->facts;
    struct device *device = NULL;
    struct device_facts ignored;

    (void)kind;
    check->tally->facts = *gpu_machine_facts(machine);
    machine->backend->close(machine);
    tape_free(tape);
    check->tally->devices = 1;
    if (check->calls->open(&device, &ignored, 1) == DEVICE_OK) {
        check->calls->close(device);
        check->tally->devices = 2;
    }
    printf("gpu-check: %s%s, compute capability %d.%d, %.0f MiB, driver for CUDA %d.%d, plugin for "
           "%d.%d\n",
           facts->name, check->tally->devices > 1 ? " and another" : "", facts->capability / 10,
           facts->capability % 10, (double)facts->memory / 1048576.0, facts->driver / 1000,
           facts->driver % 1000 / 10, facts->runtime / 1000, facts->runtime % 1000 / 10);
}

static _Noreturn void run_here(struct gpu_check *check, const struct gpu_section *section)
{
    struct error error;

    (void)alarm(SECTION_S);
    tally_of_section = check->tally;
    error_init(&error);
    gpu_check_must(assumptions_check(&error), &error);
    gpu_check_must(loader_open(&check->calls, &error), &error);
    section->run(check, section->kind);
    (void)fflush(NULL);
    _exit(GPU_CHECK_OK);
}

/* Did it come to its end? Otherwise the tally holds the reason. */
static bool run_section(struct gpu_check *check, const struct gpu_section *section)
{
    struct gpu_tally *tally = check->tally;
    int status = 0;
    pid_t child;

    tally->reason[0] = '\0';
    (void)fflush(NULL);
    child = fork();
    if (child == 0) {
        run_here(check, section);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        (void)snprintf(tally->reason, sizeof(tally->reason), "it could not be started");
        return false;
    }
    if (WIFSIGNALED(status)) {
        (void)snprintf(tally->reason, sizeof(tally->reason), "it ended by signal %d%s",
                       WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": it took too long" : "");
        return false;
    }
    if (WEXITSTATUS(status) != GPU_CHECK_OK && tally->reason[0] == '\0') {
        (void)snprintf(tally->reason, sizeof(tally->reason), "it ended with code %d: see above",
                       WEXITSTATUS(status));
    }
    return WEXITSTATUS(status) == GPU_CHECK_OK;
}

static const struct gpu_section sections[] = {
    {"self-tests of kernel variants", gpu_check_selftest, 0, false},
    {"contraction by pairs", gpu_check_variant, VARIANT_PAIRS, false},
    {"contraction by wgmma", gpu_check_variant, VARIANT_WGMMA, false},
    {"contraction by mma", gpu_check_variant, VARIANT_MMA, false},
    {"contraction without tensor cores", gpu_check_variant, VARIANT_PLAIN, false},
    {"sums of rows without tiles", gpu_check_fused, VARIANT_DOTS, false},
    {"parameters in lists", gpu_check_fused, VARIANT_LISTS, false},
    {"columns in one look", gpu_check_fused, VARIANT_COLUMNS, false},
    {"rows that are held", gpu_check_fused, VARIANT_HELD, false},
    {"rows of attention", gpu_check_fused, VARIANT_ATTENTION, false},
    {"losses and their gradient", gpu_check_fused, VARIANT_ENTROPY, false},
    {"parts of rows in place", gpu_check_fused, VARIANT_VIEWS, false},
    {"functions of nasty numbers", gpu_check_functions, 0, false},
    {"mlp", gpu_check_model, MODEL_MLP, false},
    {"convnet", gpu_check_model, MODEL_CONVNET, false},
    {"gpt2", gpu_check_model, MODEL_GPT2, false},
    {"llama", gpu_check_model, MODEL_LLAMA, false},
    {"pinned states of mlp", gpu_check_pinned, MODEL_MLP, false},
    {"pinned states of convnet", gpu_check_pinned, MODEL_CONVNET, false},
    {"pinned states of gpt2", gpu_check_pinned, MODEL_GPT2, false},
    {"pinned states of llama", gpu_check_pinned, MODEL_LLAMA, false},
    {"random tapes", gpu_check_tapes, 0, false},
    {"roots of tensors", gpu_check_hashes, 0, false},
    {"steps by ranges and slices", gpu_check_slices, 0, false},
    {"steps split over devices", gpu_check_split, 0, false},
    {"12 tokens on one and two devices", gpu_check_tokens, 12, false},
    {"52 tokens on one and two devices", gpu_check_tokens, 52, false},
    {"512 tokens on one and two devices", gpu_check_tokens, 512, false},
    {"hashing", gpu_check_hashing, 0, true},
    {"speed of contraction by pairs", gpu_check_variant_speed, VARIANT_PAIRS, true},
    {"speed of contraction by wgmma", gpu_check_variant_speed, VARIANT_WGMMA, true},
    {"speed of contraction by mma", gpu_check_variant_speed, VARIANT_MMA, true},
    {"product 0", gpu_check_product, 0, true},
    {"product 1", gpu_check_product, 1, true},
    {"product 2", gpu_check_product, 2, true},
    {"product 3", gpu_check_product, 3, true},
    {"product 4", gpu_check_product, 4, true},
    {"product 5", gpu_check_product, 5, true},
    {"product 6", gpu_check_product, 6, true},
    {"product 7", gpu_check_product, 7, true},
    {"product 8", gpu_check_product, 8, true},
    {"steps without variants that spare passes", gpu_check_fused_speed, 4, true},
    {"steps of 4 x 1024", gpu_check_step, 4, true},
    {"steps of 16 x 1024", gpu_check_step, 16, true},
    {"gpt2 124M within 1 GiB", gpu_check_small_memory, 4, true},
};

/* For whoever goes on with the files. */
static bool leave_note(int argc, char **argv, const struct gpu_results *results)
{
    FILE *note = argc > 2 ? fopen(argv[2], "w") : NULL;

    if (argc > 2 &&
        (note == NULL || fprintf(note, "%s\n", results->path) < 0 || fclose(note) != 0)) {
        perror(argv[2]);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct gpu_section first = {"device", look, 0, false};
    const char *only = getenv("GPU_CHECK_ONLY");
    struct gpu_check check = {.quick = getenv("GPU_CHECK_QUICK") != NULL};
    struct gpu_results results = {.path = ""};
    uint32_t untold = 0;
    bool unkept = false;

    check.tally =
        mmap(NULL, sizeof(*check.tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (check.tally == MAP_FAILED) {
        perror("gpu-check");
        return GPU_CHECK_NO_DEVICE;
    }
    if (!run_section(&check, &first)) {
        printf("gpu-check: %s\n", check.tally->reason);
        return GPU_CHECK_NO_DEVICE;
    }
    if (argc > 1 && !gpu_results_begin(&results, &check, argv[1], only)) {
        return GPU_CHECK_NO_DEVICE;
    }
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        const struct gpu_section *section = &sections[i];
        const uint64_t before = check.tally->comparisons;
        const uint64_t differed = check.tally->failures;

        if (only != NULL && strcmp(only, section->speed ? "speed" : "bits") != 0 &&
            strstr(section->name, only) == NULL) {
            continue;
        }
        if (!run_section(&check, section)) {
            untold++;
            printf("  CANNOT TELL: %s: %s\n", section->name, check.tally->reason);
            gpu_results_section(&check, section->name, "cannot tell", 0, check.tally->reason);
        } else if (!section->speed) {
            const char *verdict = check.tally->failures == differed ? "equal" : "DIFFERS";
            const uint64_t count = check.tally->comparisons - before;

            printf("  %-8s %-52s %llu comparisons\n", verdict, section->name,
                   (unsigned long long)count);
            gpu_results_section(&check, section->name, verdict, count, "");
        }
        (void)fflush(stdout);
    }
    if (argc > 1 &&
        !(gpu_results_end(&results, &check, untold) && leave_note(argc, argv, &results))) {
        unkept = true;
    }
    printf("gpu-check: %llu comparisons, %llu differ; %u sections could not tell\n",
           (unsigned long long)check.tally->comparisons, (unsigned long long)check.tally->failures,
           untold);
    return check.tally->failures != 0 ? GPU_CHECK_REFUTED
           : untold != 0 || unkept    ? GPU_CHECK_NO_DEVICE
                                      : GPU_CHECK_OK;
}
