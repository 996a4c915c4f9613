/*
 * hunt_fuzz.c - a walk to a lie of which every answer, and the memory in between, comes as the
 * bytes say: whole, or with edits. No answer is taken but the true one, and a hunt that was kept is
 * taken up as it was or not at all.
 *
 * The bytes: for each answer, and then for the saved hunt, how many edits (modulo 4), and of each:
 * place (2), other bits (1; 0: the end is cut off there).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "proofs/hunt.h"
#include "tests/support/liar.h"
#include "tests/support/small_model.h"

#define SAMPLES 16
#define PIXELS  144

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same step on two machines, of which one lies. */
struct stage {
    struct small_model small;
    struct liar liar;
    struct teller own;
    struct teller accused;
};

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "hunt fuzz: %s\n", what);
        abort();
    }
}

/* A next value of numbers, of many leaves. */
static uint32_t item_to_lie_about(const struct teller *own)
{
    uint32_t state = 0;

    while (own->next_items[state] < own->tape->state_count ||
           own->tape->tensors[own->tape->states[state].before].count < 2000) {
        insist(++state < own->tape->state_count, "no state that changes");
    }
    return own->next_items[state];
}

static void build(struct stage *stage)
{
    struct lie lie = {.kind = LIE_ULP};
    struct model_options options;

    small_model_options(&options, MODEL_MLP);
    options.data_count = SAMPLES;
    options.data_dtype = DTYPE_U8;
    options.hidden = 64;
    stage->small.data = calloc(SAMPLES, (size_t)PIXELS * 16);
    stage->small.labels = calloc(SAMPLES, 16);
    insist(stage->small.data != NULL && stage->small.labels != NULL, "memory");
    insist(model_build(&stage->small.model, &options, NULL) == STATUS_OK, "a model");
    insist(teller_open(&stage->own, small_machine_open(&stage->small, ISA_SCALAR, 1, true), NULL) ==
               STATUS_OK,
           "a step");
    lie.item = item_to_lie_about(&stage->own);
    lie.element = 700;
    liar_open(&stage->liar, small_machine_open(&stage->small, ISA_SCALAR, 1, true), &lie);
    insist(teller_open(&stage->accused, &stage->liar.machine, NULL) == STATUS_OK, "a liar");
}

static struct stage *the_stage(void)
{
    static struct stage stage;

    if (stage.own.machine == NULL) {
        build(&stage);
    }
    return &stage;
}

static void edit(uint8_t *bytes, size_t *size, struct reader *reader)
{
    uint32_t edits = reader_u8(reader) % 4;

    for (uint32_t i = 0; i<edits && * size> 0; i++) {
        size_t at = reader_u16(reader) % *size;
        uint8_t bits = reader_u8(reader);

        if (bits == 0) {
            *size = at;
        } else {
            bytes[at] ^= bits;
        }
    }
}

/* False: the answer was not taken. */
static bool answer(struct hunt *hunt, struct stage *stage, struct reader *reader)
{
    static uint8_t truth[TELL_BYTES_MAX];
    static uint8_t told[TELL_BYTES_MAX];
    struct digest known;
    struct ask ask;
    size_t size = 0;
    size_t edited;
    bool same;
    enum status status;

    insist(hunt_ask(&ask, &known, hunt), "no ask, and no end");
    insist(teller_answer(truth, &size, &stage->accused, &ask, NULL) == STATUS_OK, "no answer");
    memcpy(told, truth, size);
    edited = size;
    edit(told, &edited, reader);
    same = edited == size && memcmp(told, truth, size) == 0;
    status = hunt_take(hunt, told, edited, NULL);
    insist(same == (status == STATUS_OK), "an answer is taken that is none, or not taken");
    return status == STATUS_OK;
}

static void load_edited(struct stage *stage, const struct hunt *hunt, struct reader *reader)
{
    struct buffer saved;
    struct buffer again;
    struct hunt loaded;
    size_t size;

    buffer_init(&saved, HUNT_BYTES_MAX);
    buffer_init(&again, HUNT_BYTES_MAX);
    insist(hunt_save(&saved, hunt, NULL) == STATUS_OK, "a hunt that is not saved");
    size = saved.size;
    edit(saved.data, &size, reader);
    if (hunt_load(&loaded, &stage->own, saved.data, size, NULL) == STATUS_OK) {
        insist(hunt_save(&again, &loaded, NULL) == STATUS_OK && again.size == size &&
                   memcmp(again.data, saved.data, size) == 0,
               "another hunt");
        hunt_close(&loaded);
    }
    buffer_release(&saved);
    buffer_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stage *stage = the_stage();
    const struct hunt_case accused = {.trace_root = stage->accused.trace.root,
                                      .state_root = stage->accused.trace.state_root,
                                      .next_root = stage->accused.trace.next_root};
    struct reader reader;
    struct hunt hunt;

    reader_init(&reader, data, size);
    insist(hunt_open(&hunt, &stage->own, &accused, NULL) == STATUS_OK, "no hunt");
    while (hunt.end == HUNT_GOES_ON && answer(&hunt, stage, &reader)) {
    }
    insist(hunt.end == HUNT_GOES_ON || hunt.end == HUNT_ELEMENT, "another end");
    load_edited(stage, &hunt, &reader);
    hunt_close(&hunt);
    return 0;
}
