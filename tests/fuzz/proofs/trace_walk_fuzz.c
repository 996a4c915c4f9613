/*
 * trace_walk_fuzz.c - a walk to a wrong element in which every reply, and the saved walk in
 * between, comes whole or with edits, as the bytes say. The walk takes only the true reply; a saved
 * walk is read back as it was, or not at all.
 *
 * The bytes: for each reply, and then for the saved walk, how many edits (modulo 4), and of each:
 * place (2), other bits (1; 0: cut off there).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "proofs/dispute/trace_walk.h"
#include "tests/support/dispute/liar.h"
#include "tests/support/numeric/small_model.h"

#define SAMPLES 16
#define PIXELS  144

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same step on two machines; one gives a wrong element. */
struct stage {
    struct small_model small;
    struct liar liar;
    struct trace_server own;
    struct trace_server accused;
};

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "trace walk fuzz: %s\n", what);
        abort();
    }
}

/* A next value of numbers, of many leaves. */
static uint32_t item_to_lie_about(const struct trace_server *own)
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
    insist(trace_server_open(&stage->own, small_machine_open(&stage->small, ISA_SCALAR, 1, true),
                             NULL) == STATUS_OK,
           "a step");
    lie.item = item_to_lie_about(&stage->own);
    lie.element = 700;
    liar_open(&stage->liar, small_machine_open(&stage->small, ISA_SCALAR, 1, true), &lie);
    insist(trace_server_open(&stage->accused, &stage->liar.machine, NULL) == STATUS_OK, "a liar");
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

/* False: the walk did not take the reply. */
static bool take_reply(struct trace_walk *walk, struct stage *stage, struct reader *reader)
{
    static uint8_t truth[TRACE_REPLY_BYTES_MAX];
    static uint8_t reply[TRACE_REPLY_BYTES_MAX];
    struct digest known;
    struct trace_query query;
    size_t size = 0;
    size_t edited;
    bool same;
    enum status status;

    insist(trace_walk_next(&query, &known, walk), "no ask, and no end");
    insist(trace_server_answer(truth, &size, &stage->accused, &query, NULL) == STATUS_OK,
           "the server has no reply");
    memcpy(reply, truth, size);
    edited = size;
    edit(reply, &edited, reader);
    same = edited == size && memcmp(reply, truth, size) == 0;
    status = trace_walk_take(walk, reply, edited, NULL);
    insist(same == (status == STATUS_OK), "a false reply is taken, or a true one refused");
    return status == STATUS_OK;
}

static void load_edited(struct stage *stage, const struct trace_walk *walk, struct reader *reader)
{
    struct buffer saved;
    struct buffer again;
    struct trace_walk loaded;
    size_t size;

    buffer_init(&saved, TRACE_WALK_BYTES_MAX);
    buffer_init(&again, TRACE_WALK_BYTES_MAX);
    insist(trace_walk_save(&saved, walk, NULL) == STATUS_OK, "a walk that is not saved");
    size = saved.size;
    edit(saved.data, &size, reader);
    if (trace_walk_load(&loaded, &stage->own, saved.data, size, NULL) == STATUS_OK) {
        insist(trace_walk_save(&again, &loaded, NULL) == STATUS_OK && again.size == size &&
                   memcmp(again.data, saved.data, size) == 0,
               "another walk");
        trace_walk_close(&loaded);
    }
    buffer_release(&saved);
    buffer_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stage *stage = the_stage();
    const struct trace_walk_case accused = {.trace_root = stage->accused.trace.root,
                                            .state_root = stage->accused.trace.state_root,
                                            .next_root = stage->accused.trace.next_root};
    struct reader reader;
    struct trace_walk walk;

    reader_init(&reader, data, size);
    insist(trace_walk_open(&walk, &stage->own, &accused, NULL) == STATUS_OK, "no walk");
    while (walk.end == TRACE_WALK_GOES_ON && take_reply(&walk, stage, &reader)) {
    }
    insist(walk.end == TRACE_WALK_GOES_ON || walk.end == TRACE_WALK_ELEMENT, "another end");
    load_edited(stage, &walk, &reader);
    trace_walk_close(&walk);
    return 0;
}
