/*
 * general_test.c - the kernels of MAP, BINARY and SELECT give the bits of their rules.
 *
 * Method: every function on ordinary and special numbers, for every length up to 70 and some around
 * the edges of vectors and threads; every way in which axes repeat or change places, with inner
 * axes of one, of a few and of many elements (float_case.h).
 */
#include <math.h>

#include "tests/support/numeric/float_case.h"
#include "tests/support/test.h"

static const uint64_t lengths[] = {1023, 1024, 1030, 2049, 20011};

#define LENGTHS    (sizeof(lengths) / sizeof(lengths[0]))
#define LENGTH_RUN 70

static uint64_t length_at(uint64_t i)
{
    return i < LENGTH_RUN ? i + 1 : lengths[i - LENGTH_RUN];
}

static void test_every_function_of_one_element_has_the_rules_bits(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (int64_t function = 0; function < MAP_FUNCTION_COUNT; function++) {
        for (uint64_t i = 0; i < LENGTH_RUN + LENGTHS; i++) {
            struct float_case one;
            uint64_t count = length_at(i);

            float_case_init(&one, OP_MAP, MAP_ATTRIBUTES, (int64_t[]){function, 0});
            float_case_fill(&seed, float_case_input(&one, count), count,
                            i % 3 == 0 ? FLOAT_PLAIN : FLOAT_NASTY);
            float_case_output(&one, count);
            float_case_check(&one);
            float_case_release(&one);
        }
    }
}

/* Numbers where functions change their steps: both signs, and the neighbours of each. */
static void test_functions_have_the_rules_bits_where_they_change(void **state)
{
    static const float places[] = {0.0f,    0.5f,    0.625f,  1.0f,      4.0f,      9.0f,   16.0f,
                                   80.0f,   86.0f,   88.722f, 89.0f,     103.28f,   104.0f, 0x1p17f,
                                   0x1p23f, 0x1p24f, 13.2f,   0x1p-126f, 1.570796f, 0.333f};
    enum { PLACES = sizeof(places) / sizeof(places[0]), NEAR = 9 };

    (void)state;
    for (int64_t function = 0; function < MAP_FUNCTION_COUNT; function++) {
        struct float_case one;

        float_case_init(&one, OP_MAP, MAP_ATTRIBUTES, (int64_t[]){function, 0});
        float *x = float_case_input(&one, 2 * PLACES * NEAR);

        for (int i = 0; i < PLACES * NEAR; i++) {
            uint32_t bits = (float_bits(places[i / NEAR]) + (uint32_t)(i % NEAR) - NEAR / 2) &
                            UINT32_C(0x7fffffff);

            x[2 * i] = float_of(bits);
            x[2 * i + 1] = float_of(bits | UINT32_C(0x80000000));
        }
        float_case_output(&one, 2 * PLACES * NEAR);
        float_case_check(&one);
        float_case_release(&one);
    }
}

/* ---- views -------------------------------------------------------------- */

/* Appends the strides of an operand: axes in `repeated` repeat, the others are rotated by turn. */
static uint64_t add_strides(int64_t *attributes, const int64_t dims[VIEW_AXES], uint32_t repeated,
                            uint32_t turn)
{
    int64_t stride = 1;

    for (uint32_t i = VIEW_AXES; i > 0; i--) {
        uint32_t axis = (i - 1 + turn) % VIEW_AXES;

        attributes[axis] = (repeated >> axis & 1) != 0 ? 0 : stride;
        stride *= (repeated >> axis & 1) != 0 ? 1 : dims[axis];
    }
    return (uint64_t)stride;
}

static void check_view(enum op_kind kind, int64_t function, const int64_t dims[VIEW_AXES],
                       uint32_t repeated, uint32_t turn)
{
    uint32_t inputs = kind == OP_SELECT ? 3 : 2;
    uint32_t at = kind == OP_SELECT ? 0 : 1;
    int64_t attributes[OP_ATTRIBUTES_MAX] = {function};
    uint64_t counts[3] = {0};
    uint64_t seed = repeated * 8 + turn + (uint64_t)function;
    struct float_case one;

    for (uint32_t axis = 0; axis < VIEW_AXES; axis++) {
        attributes[at + axis] = dims[axis];
    }
    for (uint32_t i = 0; i < inputs; i++) {
        uint32_t own = i == 1 ? 0 : i == 0 ? repeated : ~repeated & 15;

        counts[i] = add_strides(&attributes[at + VIEW_AXES * (i + 1)], dims, own, i * turn % 4);
    }
    float_case_init(&one, kind, at + VIEW_AXES * (inputs + 1), attributes);
    for (uint32_t i = 0; i < inputs; i++) {
        if (kind == OP_SELECT && i == 0 && turn % 2 == 0) {
            uint8_t *c = float_case_input_u8(&one, counts[0]);

            for (uint64_t k = 0; k < counts[0]; k++) {
                c[k] = (uint8_t)test_random_below(&seed, 3);
            }
        } else {
            float_case_fill(&seed, float_case_input(&one, counts[i]), counts[i], FLOAT_NASTY);
        }
    }
    float_case_output(&one, (uint64_t)(dims[0] * dims[1] * dims[2] * dims[3]));
    float_case_check(&one);
    float_case_release(&one);
}

static const int64_t shapes[][VIEW_AXES] = {{1, 1, 1, 1},  {2, 3, 4, 5}, {3, 1, 2, 37},
                                            {1, 1, 7, 70}, {5, 2, 1, 1}, {2, 1, 40, 257}};

static void test_binary_has_the_rules_bits_in_every_view(void **state)
{
    (void)state;
    for (int64_t function = 0; function < BINARY_FUNCTION_COUNT; function++) {
        for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++) {
            for (uint32_t pattern = 0; pattern < 16; pattern++) {
                check_view(OP_BINARY, function, shapes[shape], pattern, 0);
                check_view(OP_BINARY, function, shapes[shape], pattern,
                           1 + (uint32_t)((pattern + (uint64_t)function) % 3));
            }
        }
    }
}

static void test_select_has_the_rules_bits_in_every_view(void **state)
{
    (void)state;
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++) {
        for (uint32_t pattern = 0; pattern < 16; pattern++) {
            for (uint32_t turn = 0; turn < 4; turn++) {
                check_view(OP_SELECT, 0, shapes[shape], pattern, turn);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function_of_one_element_has_the_rules_bits),
        cmocka_unit_test(test_functions_have_the_rules_bits_where_they_change),
        cmocka_unit_test(test_binary_has_the_rules_bits_in_every_view),
        cmocka_unit_test(test_select_has_the_rules_bits_in_every_view),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
