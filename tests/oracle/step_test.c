/*
 * step_test.c - a whole step of each model agrees with the same step in double precision.
 *
 * The engine takes two steps first, so that moments are not zero. Its third step and that of the
 * reference start from the engine's bits. Loss, moments and parameters must agree as far as the
 * bits of the contractions allow.
 *
 * "step_test dump FOLDER" writes the third step of every case for torch_test.sh: FOLDER/CASE/ holds
 * options.txt, the batch, the loss, and each state before and after, as raw little-endian arrays.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/numeric/model_state.h"
#include "tests/support/numeric/small_model.h"
#include "tests/support/test.h"

#define FIRST_STEPS 2

struct step_case {
    const char *name;
    enum model_kind kind;
    enum optimizer optimizer;
    struct precision precision;
    double loss_within;   /* relative */
    double moment_within; /* distance relative to the length of a moment, or of SGD's velocity */
    double update_within; /* of the parameters' distance, relative to how far they move */
};

/*
 * At 22 bits the error of an update is mostly the rounding of the parameter itself, which is large
 * compared with a small move. AdamW divides by the root of the second moment, so elements whose
 * gradients are mere rounding move as far as others: updates agree less well than moments.
 */
static const struct step_case cases[] = {
    {"mlp-sgd-14", MODEL_MLP, OPTIMIZER_SGD, {14, 128}, 1e-3, 2e-3, 2e-3},
    {"mlp-adamw-22", MODEL_MLP, OPTIMIZER_ADAMW, {22, 0}, 1e-6, 1e-5, 1e-3},
    {"convnet-sgd-22", MODEL_CONVNET, OPTIMIZER_SGD, {22, 0}, 1e-6, 1e-5, 1e-4},
    {"convnet-adamw-14", MODEL_CONVNET, OPTIMIZER_ADAMW, {14, 128}, 1e-3, 2e-3, 5e-2},
    {"gpt2-sgd-14", MODEL_GPT2, OPTIMIZER_SGD, {14, 128}, 1e-3, 2e-3, 2e-3},
    {"gpt2-sgd-22", MODEL_GPT2, OPTIMIZER_SGD, {22, 0}, 1e-6, 1e-5, 1e-4},
    {"gpt2-adamw-22", MODEL_GPT2, OPTIMIZER_ADAMW, {22, 0}, 1e-6, 1e-5, 1e-3},
    {"llama-sgd-22", MODEL_LLAMA, OPTIMIZER_SGD, {22, 0}, 1e-6, 1e-5, 1e-4},
    {"llama-adamw-14", MODEL_LLAMA, OPTIMIZER_ADAMW, {14, 128}, 1e-3, 2e-3, 5e-2},
};
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

static void case_options(struct model_options *options, const struct step_case *one)
{
    small_model_options(options, one->kind);
    options->precision = one->precision;
    options->optimizer = one->optimizer;
    options->dropout = 0.0; /* a mask that another implementation would have to draw */
    options->clip = one->kind == MODEL_MLP ? 0.0 : 0.25; /* below the norm: it takes part */
    options->rate = 0.01;
}

static void case_open(struct small_model *small, struct machine **machine,
                      const struct step_case *one)
{
    struct model_options options;

    case_options(&options, one);
    small_model_open(small, &options);
    *machine = small_machine_open(small, isa_best(), 2, true);
    small_machine_steps(*machine, FIRST_STEPS);
}

/* ---- against the reference ---------------------------------------------- */

static double distance(const float *values, const double *exact, const double *origin,
                       uint64_t count)
{
    double apart = 0.0;
    double length = 0.0;

    for (uint64_t i = 0; i < count; i++) {
        double far = exact[i] - (origin == NULL ? 0.0 : origin[i]);

        apart += (values[i] - exact[i]) * (values[i] - exact[i]);
        length += far * far;
    }
    return length == 0.0 ? sqrt(apart) : sqrt(apart / length);
}

static bool is_moment(const char *name)
{
    return strncmp(name, "m.", 2) == 0 || strncmp(name, "v.", 2) == 0;
}

/* Parameters are compared together, since a bias alone may hardly move. */
static void compare_states(const struct step_case *one, struct machine *machine,
                           const struct reference *reference)
{
    const struct tape *tape = machine->tape;
    double apart = 0.0;
    double moved = 0.0;

    for (uint32_t i = 0; i < tape->state_count; i++) {
        const struct state_pair *pair = &tape->states[i];
        const struct tensor *tensor = &tape->tensors[pair->before];
        const double *after = reference_values(reference, pair->after);
        const double *before = reference_values(reference, pair->before);
        const float *values = backend_cpu.peek(machine, pair->before);

        if (tensor->dtype != DTYPE_F32) {
            continue;
        }
        if (is_moment(tensor->name)) {
            double far = distance(values, after, NULL, tensor->count);

            if (!(far < one->moment_within)) {
                fail_msg("%s: '%s' is %.3g away, allowed %.3g", one->name, tensor->name, far,
                         one->moment_within);
            }
            continue;
        }
        for (uint64_t k = 0; k < tensor->count; k++) {
            apart += (values[k] - after[k]) * (values[k] - after[k]);
            moved += (after[k] - before[k]) * (after[k] - before[k]);
        }
    }
    if (!(sqrt(apart / moved) < one->update_within)) {
        fail_msg("%s: the parameters are %.3g of their way apart, allowed %.3g", one->name,
                 sqrt(apart / moved), one->update_within);
    }
}

static void check_case(const struct step_case *one)
{
    struct small_model small;
    struct machine *machine;
    struct reference *reference;
    double loss;

    case_open(&small, &machine, one);
    reference = small_reference_open(&small, REFERENCE_DOUBLE);
    for (uint32_t i = 0; i < small.model.tape->state_count; i++) {
        uint32_t id = small.model.tape->states[i].before;

        reference_write(reference, id, backend_cpu.peek(machine, id));
    }
    reference_run(reference, small.model.tape->op_count);
    small_machine_steps(machine, 1);
    loss = reference_values(reference, small.model.tape->loss)[0];
    if (!(fabs(small_machine_loss(machine) - loss) < one->loss_within * loss)) {
        fail_msg("%s: loss %.9g, in double %.9g", one->name, (double)small_machine_loss(machine),
                 loss);
    }
    compare_states(one, machine, reference);
    reference_free(reference);
    backend_cpu.close(machine);
    small_model_close(&small);
}

static void test_step_of_every_model_is_the_double_step_within_its_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        check_case(&cases[i]);
    }
}

/* ---- for PyTorch -------------------------------------------------------- */

struct dump {
    const char *folder;
    const struct tape *tape;
};

static void dump_bytes(const struct dump *dump, const char *name, const char *suffix,
                       const void *bytes, size_t size)
{
    char path[1024];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s%s", dump->folder, name, suffix);
    file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        fprintf(stderr, "step_test: cannot write '%s'\n", path);
        exit(1);
    }
}

static void dump_states(const struct dump *dump, struct machine *machine, const char *suffix)
{
    for (uint32_t i = 0; i < dump->tape->state_count; i++) {
        uint32_t id = dump->tape->states[i].before;
        const struct tensor *tensor = &dump->tape->tensors[id];

        dump_bytes(dump, tensor->name, suffix, backend_cpu.peek(machine, id),
                   tensor->count * dtype_size(tensor->dtype));
    }
}

/* Writes the batch, which the first operation after the step number makes. */
static enum status dump_made(void *context, struct op_turn maker, uint32_t output,
                             const void *bytes, uint64_t size, struct error *error)
{
    const struct dump *dump = context;
    enum op_kind kind = dump->tape->ops[maker.op].kind;

    (void)error;
    if (kind == OP_BATCH_TOKENS || kind == OP_BATCH_SAMPLES) {
        dump_bytes(dump, output == 0 ? "batch" : "targets", ".bin", bytes, size);
    }
    return STATUS_OK;
}

/* The learning rate of the dumped step, from the schedule's table. */
static double dumped_rate(const struct small_model *small)
{
    uint32_t columns = small->model.options.optimizer == OPTIMIZER_SGD ? 1 : 3;
    uint32_t id = model_find(&small->model, "schedule");

    for (uint32_t i = 0; i < small->model.constant_count; i++) {
        if (small->model.constants[i].tensor == id) {
            const float *table = small->model.constants[i].bytes;

            return (double)table[(size_t)FIRST_STEPS * columns];
        }
    }
    abort();
}

static void dump_options(const struct dump *dump, const struct small_model *small,
                         const struct step_case *one)
{
    const struct model_options *options = &small->model.options;
    char text[2048];
    int length = snprintf(
        text, sizeof(text),
        "kind=%s\noptimizer=%s\nstep=%d\nbatch=%u\nlength=%u\nvocabulary=%u\nlayers=%u\nheads=%u\n"
        "kv_heads=%u\nwidth=%u\nhidden=%u\nside=%u\nclasses=%u\nrate=%.9g\nmomentum=%.9g\n"
        "beta1=%.9g\nbeta2=%.9g\nepsilon=%.9g\ndecay=%.9g\nclip=%.9g\nloss_within=%g\n"
        "moment_within=%g\nupdate_within=%g\n",
        model_kind_name(options->kind), one->optimizer == OPTIMIZER_SGD ? "sgd" : "adamw",
        FIRST_STEPS, options->batch, options->length, options->vocabulary, options->layers,
        options->heads, options->kv_heads, options->width, options->hidden, options->image_height,
        options->classes, dumped_rate(small), options->momentum, options->beta1, options->beta2,
        options->epsilon, options->decay, options->clip, one->loss_within, one->moment_within,
        one->update_within);
    dump_bytes(dump, "options", ".txt", text, (size_t)length);
}

static int dump_cases(const char *folder)
{
    for (size_t i = 0; i < CASE_COUNT; i++) {
        char path[512];
        struct small_model small;
        struct machine *machine;
        struct dump dump = {.folder = path};
        struct observer observer = {.made = dump_made, .context = &dump};
        struct error error;
        float loss;

        error_init(&error);
        (void)snprintf(path, sizeof(path), "%s/%s", folder, cases[i].name);
        if (mkdir(path, 0777) != 0) {
            fprintf(stderr, "step_test: cannot make '%s'\n", path);
            return 1;
        }
        case_open(&small, &machine, &cases[i]);
        dump.tape = small.model.tape;
        dump_options(&dump, &small, &cases[i]);
        dump_states(&dump, machine, ".before");
        if (backend_cpu.step(machine, &observer, &error) != STATUS_OK) {
            fprintf(stderr, "step_test: %s\n", error.text);
            return 1;
        }
        dump_states(&dump, machine, ".after");
        loss = small_machine_loss(machine);
        dump_bytes(&dump, "loss", ".bin", &loss, sizeof(loss));
        backend_cpu.close(machine);
        small_model_close(&small);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_of_every_model_is_the_double_step_within_its_bits),
    };

    if (argc == 3 && strcmp(argv[1], "dump") == 0) {
        return dump_cases(argv[2]);
    }
    return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
