/* fused_case.c - see fused_case.h. */
#include "tests/support/device/fused_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/launch/launch.h"
#include "engine/cuda/machine/machine.h"
#include "engine/ops/real.h"
#include "tests/support/device/fake_device.h"
#include "tests/support/test.h"

struct machine *fused_open(const struct tape *tape, uint32_t disabled)
{
    struct machine_options options = {.trace = false};
    struct cuda_config config = {.calls = fake_device_calls(), .disabled = disabled};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    if (machine_cuda_open(&machine, tape, &options, &config, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    return machine;
}

struct machine *fused_rules(const struct tape *tape)
{
    struct machine_options options = {.isa = ISA_SCALAR, .thread_count = 2};
    struct machine *machine = NULL;
    struct error error;

    error_init(&error);
    assert_int_equal(backend_cpu.open(&machine, tape, &options, &error), STATUS_OK);
    return machine;
}

static uint32_t draw(uint64_t *random, enum sort sort)
{
    static const uint32_t nasty[] = {0x7f800000, 0xff800000, FLOAT_NAN_BITS, 0x7f7fffff,
                                     0x00000001, 0x80000000, 0x807fffff,     0};
    const uint64_t word = test_random(random);
    const float value = (float)((double)(int64_t)word * 0x1p-63);

    switch (sort) {
    case SORT_SUBNORMAL:
        return (uint32_t)word & UINT32_C(0x80ffffff); /* and the smallest that are normal */
    case SORT_NASTY:
        return word % 97 == 0 ? nasty[(word >> 32) % 8] : real_to_bits(value * 3.0f);
    case SORT_ZEROS:
        return word % 5 == 0 ? real_to_bits(value) : (uint32_t)word & UINT32_C(0x80000000);
    case SORT_PLAIN:
    case SORTS:
        break;
    }
    return real_to_bits(ldexpf(value, (int)(word % 23) - 14));
}

void fused_give(struct machine *machine, const struct tape *tape, enum sort sort)
{
    struct error error;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const struct tensor *tensor = &tape->tensors[id];
        uint64_t random = 77 + id;

        if (role_is_made(tensor->role)) {
            continue;
        }
        uint32_t *words = malloc(tensor->count * sizeof(*words));

        assert_non_null(words);
        for (uint64_t i = 0; i < tensor->count; i++) {
            words[i] = tensor->dtype == DTYPE_U32 ? (uint32_t)test_random_below(&random, 8)
                                                  : draw(&random, sort);
        }
        assert_int_equal(machine->backend->write(machine, id, words, &error), STATUS_OK);
        free(words);
    }
}

void fused_compare(struct machine *rules, struct machine *fused, const char *what)
{
    const struct tape *tape = rules->tape;
    struct error error;

    error_init(&error);
    for (uint32_t id = 0; id < tape->tensor_count; id++) {
        const void *expected = rules->backend->peek(rules, id);
        const uint64_t size = tape->tensors[id].count * dtype_size(tape->tensors[id].dtype);
        uint8_t *got;

        if (expected == NULL) {
            continue;
        }
        got = malloc(size);
        assert_non_null(got);
        assert_int_equal(fused->backend->read(fused, id, got, &error), STATUS_OK);
        if (memcmp(got, expected, size) != 0) {
            fail_msg("%s: tensor %u '%s' differs", what, id, tape->tensors[id].name);
        }
        free(got);
    }
}

uint32_t fused_disabled_but(uint32_t variant)
{
    return variant == VARIANT_COUNT ? 0
                                    : ~(1u << variant | 1u << VARIANT_PLAIN | 1u << VARIANT_MMA);
}

uint32_t fused_disabled_but_halves(uint32_t variant)
{
    return (fused_disabled_but(variant) | 1u << VARIANT_WGMMA | 1u << VARIANT_MMA) &
           ~(1u << VARIANT_HALF);
}

struct tape *fused_finish(struct builder *builder)
{
    struct tape *tape = NULL;
    struct error error;

    error_init(&error);
    if (builder_finish(&tape, builder, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    builder_free(builder);
    return tape;
}
