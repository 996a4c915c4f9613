/* rank_places.c - see rank_places.h. */
#include "engine/ranks/rank_places.h"

#include <stdlib.h>
#include <string.h>

#include "engine/plan/slice.h"
#include "engine/ranks/rank_families.h"

/* ---- what is read in parts -------------------------------------------------------------- */

uint64_t rank_places_first(const struct rank_places *places, uint32_t tensor, uint32_t rank)
{
    const struct rank_family *family = &places->family[places->families[tensor]];
    const uint64_t count = places->whole->tensors[tensor].count;

    if (family->whole) {
        return family->bounds[rank] == 0 ? 0 : count;
    }
    /* Bounds are whole units of every tensor: below 2^40 elements each, so of 80 bits. */
    return (uint64_t)((unsigned __int128)family->bounds[rank] * count / family->count);
}

static bool is_cut_input(const struct rank_places *places, uint32_t op, uint32_t input)
{
    struct slice_view views[SLICE_TENSORS_MAX];
    struct slice whole;
    struct slice part;

    slice_whole(&whole, places->whole, op);
    slice_take(&part, views, &whole, places->ops[op].axis, 0, 1);
    return part.tensors[input].count != whole.tensors[input].count;
}

bool rank_places_reads_part(const struct rank_places *places, uint32_t op, uint32_t input)
{
    const struct rank_op *place = &places->ops[op];
    const uint32_t family = places->families[places->whole->ops[op].inputs[input]];

    if (place->where == RANK_CUT) {
        return family == place->family && is_cut_input(places, op, input);
    }
    /* What is whole on the operation's own rank is read there. */
    return place->where == RANK_ONE && family != TENSOR_NONE && places->family[family].whole &&
           places->family[family].owner == places->family[place->family].owner;
}

/* ---- states ----------------------------------------------------------------------------- */

/* Marks the tensors that an operation behind the body reads whole. */
static void mark_read_whole(bool *read_whole, const struct rank_places *places)
{
    const struct tape *whole = places->whole;

    for (uint32_t at = 0; at < whole->op_count; at++) {
        for (uint32_t i = 0; places->ops[at].where != RANK_BODY && i < whole->ops[at].input_count;
             i++) {
            if (!rank_places_reads_part(places, at, i)) {
                read_whole[whole->ops[at].inputs[i]] = true;
            }
        }
    }
}

/* A state that nothing reads is cut as its next value is. */
static enum status find_states(struct rank_places *places, struct error *error)
{
    const struct tape *whole = places->whole;
    bool *read_whole = calloc((size_t)whole->tensor_count + 1, sizeof(*read_whole));

    if (read_whole == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory to look at %u states",
                         whole->state_count);
    }
    mark_read_whole(read_whole, places);
    for (uint32_t i = 0; i < whole->state_count; i++) {
        const uint32_t before = whole->states[i].before;
        const uint32_t after = whole->states[i].after;
        const bool is_alike = places->families[before] == TENSOR_NONE ||
                              places->families[before] == places->families[after];

        if (!places->cut[after]) {
            places->states[i] = RANK_STATE_ALL;
        } else if (is_alike && !read_whole[before] && !places->in_body[before]) {
            places->states[i] = RANK_STATE_CUT;
            places->families[before] = places->families[after];
            places->cut[before] = true;
        } else {
            places->states[i] = RANK_STATE_GATHERED;
        }
    }
    free(read_whole);
    return STATUS_OK;
}

/* ---- stages and arrivals ---------------------------------------------------------------- */

/* The stage before which a tensor can arrive that is made in parts. */
static uint32_t arrival_stage(const uint32_t *stages, uint32_t tensor)
{
    return stages[tensor] + 1;
}

/* stages: per tensor that of its maker; 0 for what is there before. */
static uint32_t stage_of(const struct rank_places *places, const uint32_t *stages, uint32_t at)
{
    const struct op *op = &places->whole->ops[at];
    uint32_t stage = 1;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const uint32_t id = op->inputs[i];
        const bool whole = places->cut[id] && !rank_places_reads_part(places, at, i);
        const uint32_t least = whole ? arrival_stage(stages, id) : stages[id];

        stage = least > stage ? least : stage;
    }
    return stage;
}

static enum status add_arrival(struct rank_places *places, uint32_t tensor, uint32_t stage,
                               uint32_t state, struct error *error)
{
    struct rank_arrival *grown;

    for (uint32_t i = 0; i < places->arrival_count; i++) {
        if (places->arrivals[i].tensor == tensor) {
            places->arrivals[i].state = state != TENSOR_NONE ? state : places->arrivals[i].state;
            return STATUS_OK;
        }
    }
    grown = realloc(places->arrivals, (places->arrival_count + (size_t)1) * sizeof(*grown));
    if (grown == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for what ranks send each other");
    }
    places->arrivals = grown;
    grown[places->arrival_count++] = (struct rank_arrival){tensor, stage, state};
    return STATUS_OK;
}

static enum status set_stages(struct rank_places *places, uint32_t *stages, struct error *error)
{
    const struct tape *whole = places->whole;

    places->stage_count = 1;
    for (uint32_t at = 0; at < whole->op_count; at++) {
        struct rank_op *op = &places->ops[at];

        if (op->where == RANK_BODY) {
            continue;
        }
        op->stage = stage_of(places, stages, at);
        if (op->stage >= RANK_STAGES_MAX) {
            return error_set(error, STATUS_REFUSED,
                             "what stands behind the micro-batches goes back and forth between "
                             "ranks more than %d times: ranks cannot share it",
                             RANK_STAGES_MAX);
        }
        places->stage_count =
            op->stage + 1 > places->stage_count ? op->stage + 1 : places->stage_count;
        for (uint32_t i = 0; i < whole->ops[at].output_count; i++) {
            stages[whole->ops[at].outputs[i]] = op->stage;
        }
    }
    return STATUS_OK;
}

static enum status list_arrivals(struct rank_places *places, const uint32_t *stages,
                                 struct error *error)
{
    const struct tape *whole = places->whole;

    for (uint32_t at = 0; at < whole->op_count; at++) {
        for (uint32_t i = 0; i < whole->ops[at].input_count; i++) {
            const uint32_t id = whole->ops[at].inputs[i];

            if (places->ops[at].where != RANK_BODY && places->cut[id] &&
                !rank_places_reads_part(places, at, i)) {
                TRY(add_arrival(places, id, arrival_stage(stages, id), TENSOR_NONE, error));
            }
        }
    }
    for (uint32_t i = 0; i < whole->state_count; i++) {
        if (places->states[i] == RANK_STATE_GATHERED) {
            const uint32_t after = whole->states[i].after;

            TRY(add_arrival(places, after, arrival_stage(stages, after), i, error));
        }
    }
    if (whole->loss != TENSOR_NONE && places->cut[whole->loss]) {
        TRY(add_arrival(places, whole->loss, arrival_stage(stages, whole->loss), TENSOR_NONE,
                        error));
    }
    return STATUS_OK;
}

/* ---- all of it -------------------------------------------------------------------------- */

enum status rank_places_build(struct rank_places *places, const struct tape *whole, uint32_t ranks,
                              struct error *error)
{
    const size_t tensors = (size_t)whole->tensor_count + 1;
    uint32_t *stages = calloc(tensors, sizeof(*stages));
    enum status status;

    *places = (struct rank_places){.whole = whole, .ranks = ranks};
    for (uint32_t k = 0; k < whole->brief->repeat.carry_count; k++) {
        places->sum_count += whole->brief->repeat.carries[k].joined;
    }
    places->ops = calloc((size_t)whole->op_count + 1, sizeof(*places->ops));
    places->families = malloc(tensors * sizeof(*places->families));
    places->cut = calloc(tensors, sizeof(*places->cut));
    places->in_body = calloc(tensors, sizeof(*places->in_body));
    places->states = calloc((size_t)whole->state_count + 1, sizeof(*places->states));
    places->sums = calloc((size_t)places->sum_count + 1, sizeof(*places->sums));
    if (stages == NULL || places->ops == NULL || places->families == NULL || places->cut == NULL ||
        places->in_body == NULL || places->states == NULL || places->sums == NULL) {
        TRY_OUT(
            error_set(error, STATUS_NO_MEMORY, "no memory for the places of %zu tensors", tensors));
    }
    rank_families_in_body(places->in_body, whole);
    TRY_OUT(rank_families_build(places, error));
    TRY_OUT(find_states(places, error));
    TRY_OUT(set_stages(places, stages, error));
    TRY_OUT(list_arrivals(places, stages, error));
out:
    free(stages);
    if (status != STATUS_OK) {
        rank_places_release(places);
    }
    return status;
}

void rank_places_release(struct rank_places *places)
{
    free(places->ops);
    free(places->families);
    free(places->cut);
    free(places->in_body);
    free(places->states);
    free(places->family);
    free(places->bounds);
    free(places->arrivals);
    free(places->sums);
    *places = (struct rank_places){.whole = NULL};
}

/* ---- shards ----------------------------------------------------------------------------- */

static enum status begin_shards(struct ranks_shards *shards, const struct rank_places *places,
                                uint32_t count, struct error *error)
{
    *shards = (struct ranks_shards){.rank_count = places->ranks, .tensor_count = count};
    shards->bounds = malloc(((size_t)count * (places->ranks + (size_t)1) + 1) * sizeof(uint64_t));
    return shards->bounds != NULL ? STATUS_OK
                                  : error_set(error, STATUS_NO_MEMORY,
                                              "no memory for the shards of %u tensors", count);
}

static void set_shard(struct ranks_shards *shards, uint32_t number,
                      const struct rank_places *places, uint32_t tensor, uint64_t element_size)
{
    for (uint32_t rank = 0; rank <= places->ranks; rank++) {
        shards->bounds[(size_t)number * (places->ranks + 1) + rank] =
            rank_places_first(places, tensor, rank) * element_size;
    }
}

enum status rank_places_sums(struct ranks_shards *shards, const struct rank_places *places,
                             struct error *error)
{
    TRY(begin_shards(shards, places, places->sum_count, error));
    for (uint32_t k = 0; k < places->sum_count; k++) {
        set_shard(shards, k, places, places->sums[k], 1);
    }
    return STATUS_OK;
}

enum status rank_places_arrivals(struct ranks_shards *shards, const struct rank_places *places,
                                 uint32_t stage, struct error *error)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < places->arrival_count; i++) {
        count += places->arrivals[i].stage == stage;
    }
    TRY(begin_shards(shards, places, count, error));
    count = 0;
    for (uint32_t i = 0; i < places->arrival_count; i++) {
        const uint32_t tensor = places->arrivals[i].tensor;

        if (places->arrivals[i].stage == stage) {
            set_shard(shards, count++, places, tensor,
                      dtype_size(places->whole->tensors[tensor].dtype));
        }
    }
    return STATUS_OK;
}
