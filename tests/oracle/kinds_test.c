/*
 * kinds_test.c - single kinds and their gradients, for PyTorch to take again in float64.
 *
 * Each case is a small tape: y of some inputs, the mean of y times weights, and its gradients. The
 * test runs every case; "kinds_test dump FOLDER" writes what went in and came out, and
 * torch_kinds.py compares (kinds_torch_test.sh).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/plan/backend.h"
#include "tests/support/numeric/gradient_check.h"
#include "tests/support/test.h"

/* ---- the cases ----------------------------------------------------------- */

static uint32_t write_rotary(struct net *net)
{
    uint64_t dims[2] = {5, 6};
    uint32_t table = build_tensor(net->builder, "table", DTYPE_F32, ROLE_CONSTANT, 2, dims);

    return build_rotary(net->builder, net_cube(net, 2, 5, 18), table, 5, 3, true);
}

static uint32_t write_softmax_reach(struct net *net)
{
    return build_softmax(net->builder, net_parameter(net, 4, 2, 3, 6, 6), 1.5f, 6,
                         net_index(net, 12, 4));
}

static uint32_t write_cross_entropy_masked(struct net *net)
{
    uint64_t rows = 9;
    uint32_t mask = net_index(net, rows, 2);
    uint32_t targets = build_tensor(net->builder, "targets", DTYPE_U32, ROLE_CONSTANT, 1, &rows);

    return build_cross_entropy_masked(net->builder, net_matrix(net, rows, 11), targets, mask,
                                      build_share(net->builder, mask));
}

/* Windows of 3 by 2, strides 2 and 1, padding 2 0 1 1 (top left bottom right), dilations 2, 3. */
static uint32_t write_windows(struct net *net, enum op_kind kind, bool counts_padding)
{
    int64_t image[MEAN_POOL_ATTRIBUTES] = {2, 6, 5, 3, 3, 2, 2, 1, 2, 0, 1, 1, 2, 3};

    image[MEAN_POOL_COUNTS_PADDING] = counts_padding;
    return build_image_op(net->builder, kind, net_parameter(net, 4, 2, 6, 5, 3), image);
}

static uint32_t write_im2col(struct net *net)
{
    return write_windows(net, OP_IM2COL, false);
}

static uint32_t write_max_pool(struct net *net)
{
    return write_windows(net, OP_MAX_POOL, false);
}

static uint32_t write_mean_pool(struct net *net)
{
    return write_windows(net, OP_MEAN_POOL, false);
}

static uint32_t write_mean_pool_counting(struct net *net)
{
    return write_windows(net, OP_MEAN_POOL, true);
}

static uint32_t write_maximum(struct net *net)
{
    return build_extreme(net->builder, REDUCE_MAX, net_matrix(net, 3, 1300), NULL);
}

static uint32_t write_minimum(struct net *net)
{
    return build_extreme(net->builder, REDUCE_MIN, net_matrix(net, 3, 1300), NULL);
}

static uint32_t write_gather_elements(struct net *net)
{
    return build_gather_elements(net->builder, net_matrix(net, 9, 5), net_index(net, 9, 5));
}

static uint32_t write_batch_norm(struct net *net)
{
    uint32_t x = net_cube(net, 4, 6, 10);
    uint32_t gain = net_vector(net, 6);

    return build_batch_norm(net->builder, x, gain, net_vector(net, 6), 10, 1e-3f, NULL);
}

static uint32_t write_group_norm(struct net *net)
{
    uint32_t x = net_cube(net, 4, 6, 10);
    uint32_t gain = net_vector(net, 6);

    return build_group_norm(net->builder, x, gain, net_vector(net, 6), 10, 2, 1e-3f);
}

static uint32_t write_instance_norm(struct net *net)
{
    uint32_t x = net_cube(net, 4, 6, 10);
    uint32_t gain = net_vector(net, 6);

    return build_group_norm(net->builder, x, gain, net_vector(net, 6), 10, 6, 1e-3f);
}

static uint32_t write_gather(struct net *net)
{
    return build_gather(net->builder, net_matrix(net, 7, 5), net_index(net, 12, 7));
}

/* What casts to 16 bits and back leaves, whose gradient passes straight through. */
static uint32_t write_cast_to(struct net *net, enum dtype dtype)
{
    return build_cast(net->builder, build_cast(net->builder, net_matrix(net, 9, 11), dtype),
                      DTYPE_F32);
}

static uint32_t write_cast_f16(struct net *net)
{
    return write_cast_to(net, DTYPE_F16);
}

static uint32_t write_cast_bf16(struct net *net)
{
    return write_cast_to(net, DTYPE_BF16);
}

static uint32_t write_split(struct net *net)
{
    uint32_t x = net_matrix(net, 6, 12);
    uint32_t parts[3];

    build_split(net->builder, parts, 3, x);
    return build_mul(net->builder, parts[2], build_add(net->builder, parts[0], parts[2], 1), 1);
}

static uint32_t write_expand(struct net *net)
{
    static const uint64_t dims[3] = {3, 5, 4};

    return build_expand(net->builder, net_vector(net, 5), 4, 3, dims);
}

static uint32_t write_relu(struct net *net)
{
    return build_map(net->builder, MAP_RELU, net_matrix(net, 9, 11));
}

static uint32_t write_gelu(struct net *net)
{
    return build_map(net->builder, MAP_GELU, net_matrix(net, 9, 11));
}

static uint32_t write_silu(struct net *net)
{
    return build_map(net->builder, MAP_SILU, net_matrix(net, 9, 11));
}

static uint32_t write_layer_norm(struct net *net)
{
    uint32_t x = net_matrix(net, 4, 1100);
    uint32_t gain = net_vector(net, 1100);

    return build_layer_norm(net->builder, x, gain, net_vector(net, 1100), 1e-3f);
}

static uint32_t write_rms_norm(struct net *net)
{
    uint32_t x = net_matrix(net, 4, 1100);

    return build_rms_norm(net->builder, x, net_vector(net, 1100), 1e-3f);
}

static uint32_t write_softmax_causal(struct net *net)
{
    return build_softmax(net->builder, net_parameter(net, 4, 2, 3, 6, 6), 1.5f, 6, TENSOR_NONE);
}

static uint32_t write_cross_entropy(struct net *net)
{
    return build_cross_entropy(net->builder, net_matrix(net, 9, 11), net_index(net, 9, 11));
}

static uint32_t write_linear(struct net *net)
{
    uint32_t x = net_matrix(net, 9, 130);

    return build_linear(net->builder, x, net_matrix(net, 7, 130));
}

/* Sums over the middle axis, which are exact contractions with ones. */
static uint32_t write_sums(struct net *net)
{
    return build_reduce(net->builder, net_cube(net, 3, 5, 4), 4, 5);
}

static uint32_t write_rotary_neighbours(struct net *net)
{
    uint64_t dims[2] = {5, 6};
    uint32_t table = build_tensor(net->builder, "table", DTYPE_F32, ROLE_CONSTANT, 2, dims);

    return build_rotary(net->builder, net_cube(net, 2, 5, 18), table, 5, 3, false);
}

/* Of 2 pictures of 6 by 5 with 3 channels, by windows as in write_windows(). */
static uint32_t write_col2im(struct net *net)
{
    static const int64_t image[IMAGE_ATTRIBUTES] = {2, 6, 5, 3, 3, 2, 2, 1, 2, 0, 1, 1, 2, 3};

    return build_image_op(net->builder, OP_COL2IM, net_matrix(net, 18, 18), image);
}

static const struct kind_case {
    const char *name;
    write_case *write;
} cases[] = {
    {"rotary", write_rotary},
    {"softmax-reach", write_softmax_reach},
    {"cross-entropy-masked", write_cross_entropy_masked},
    {"im2col", write_im2col},
    {"max-pool", write_max_pool},
    {"mean-pool", write_mean_pool},
    {"mean-pool-counting", write_mean_pool_counting},
    {"reduce-max", write_maximum},
    {"reduce-min", write_minimum},
    {"gather-elements", write_gather_elements},
    {"batch-norm", write_batch_norm},
    {"group-norm", write_group_norm},
    {"instance-norm", write_instance_norm},
    {"gather", write_gather},
    {"cast-f16", write_cast_f16},
    {"cast-bf16", write_cast_bf16},
    {"split", write_split},
    {"expand", write_expand},
    {"relu", write_relu},
    {"gelu", write_gelu},
    {"silu", write_silu},
    {"layer-norm", write_layer_norm},
    {"rms-norm", write_rms_norm},
    {"softmax-causal", write_softmax_causal},
    {"cross-entropy", write_cross_entropy},
    {"linear", write_linear},
    {"sums", write_sums},
    {"rotary-neighbours", write_rotary_neighbours},
    {"col2im", write_col2im},
};
#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

/* ---- running and writing -------------------------------------------------- */

static void put(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[1024];
    FILE *file;

    if (folder == NULL) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/%s.bin", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Random values, which are written too. */
static void give(struct machine *machine, const struct net *net, uint32_t id, const char *folder)
{
    const struct tensor *tensor = &net->tape->tensors[id];
    uint32_t *words = calloc(tensor->count, sizeof(*words));
    uint64_t random = 100 + id;
    struct error error;

    error_init(&error);
    assert_non_null(words);
    for (uint64_t i = 0; i < tensor->count; i++) {
        float value = (float)test_random_below(&random, 2000001) / 1000000.0f - 1.0f;

        memcpy(&words[i], &value, sizeof(value));
        if (tensor->dtype == DTYPE_U32) {
            words[i] =
                (uint32_t)test_random_below(&random, id == net->indexes ? net->index_below : 11);
        }
    }
    assert_int_equal(backend_cpu.write(machine, id, words, &error), STATUS_OK);
    put(folder, tensor->name, words, tensor->count * sizeof(*words));
    free(words);
}

static void take(struct machine *machine, const struct net *net, uint32_t id, const char *name,
                 const char *folder)
{
    uint64_t count = net->tape->tensors[id].count;
    float *values = calloc(count, sizeof(*values));
    struct error error;

    error_init(&error);
    assert_non_null(values);
    assert_int_equal(backend_cpu.read(machine, id, values, &error), STATUS_OK);
    put(folder, name, values, count * sizeof(*values));
    free(values);
}

static void run_case(const struct kind_case *one, const char *folder)
{
    const struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 1};
    struct net net = {.indexes = TENSOR_NONE, .builder = builder_new((struct precision){22, 0})};
    uint32_t y = one->write(&net);
    const struct tensor shape = *builder_tensor(net.builder, y);
    uint32_t weights =
        build_tensor(net.builder, "weights", DTYPE_F32, ROLE_CONSTANT, shape.rank, shape.dims);
    uint32_t loss = build_mean(net.builder, build_mul(net.builder, y, weights, 1));
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    build_output(net.builder, "y", y);
    build_gradients(net.builder, net.gradients, loss, net.parameters, net.parameter_count);
    for (uint32_t i = 0; i < net.parameter_count; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "g%u", i);
        build_output(net.builder, name, net.gradients[i]);
    }
    assert_int_equal(builder_finish(&net.tape, net.builder, &error), STATUS_OK);
    builder_free(net.builder);
    assert_int_equal(backend_cpu.open(&machine, net.tape, &options, &error), STATUS_OK);
    for (uint32_t id = 0; id < net.tape->tensor_count; id++) {
        enum role role = net.tape->tensors[id].role;

        if (role == ROLE_STATE || role == ROLE_CONSTANT) {
            give(machine, &net, id, folder);
        }
    }
    assert_int_equal(backend_cpu.step(machine, NULL, &error), STATUS_OK);
    take(machine, &net, y, "y", folder);
    for (uint32_t i = 0; i < net.parameter_count; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "g%u", i);
        take(machine, &net, net.gradients[i], name, folder);
    }
    backend_cpu.close(machine);
    tape_free(net.tape);
}

static void test_every_case_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        run_case(&cases[i], NULL);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_case_runs),
    };

    for (size_t i = 0; argc == 3 && strcmp(argv[1], "dump") == 0 && i < CASE_COUNT; i++) {
        char path[512];

        (void)snprintf(path, sizeof(path), "%s/%s", argv[2], cases[i].name);
        if (mkdir(path, 0777) != 0) {
            fprintf(stderr, "kinds_test: cannot make '%s'\n", path);
            return 1;
        }
        run_case(&cases[i], path);
    }
    return argc == 3 ? 0 : cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
