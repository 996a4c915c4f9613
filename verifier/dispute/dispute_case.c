/* dispute_case.c - see dispute_case.h. */
#include "verifier/dispute/dispute_case.h"

#include <string.h>

/* The state after a step of the segment, and its path. */
static enum status show_state(struct digest *state, struct merkle_path *path, struct store *store,
                              const struct store_segment *segment, uint32_t step,
                              struct error *error)
{
    struct digest states[GAME_STATES_MAX];
    struct digest hashes[GAME_STATES_MAX];
    struct merkle_leaves leaves;

    if (step >= segment->committed.steps) {
        return error_set(error, STATUS_USAGE, "the segment has no such step");
    }
    TRY(store_states(store, states, segment, error));
    *state = states[step];
    for (uint32_t i = 0; i < segment->committed.steps; i++) {
        merkle_leaf_hash(&hashes[i], states[i].bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, segment->committed.steps);
    merkle_path_build(path, &leaves, step);
    return STATUS_OK;
}

static enum status show_pre_state(struct game_case *shown, struct store *store,
                                  const struct store_segment *segment, uint32_t step,
                                  struct error *error)
{
    struct store_segment previous;

    if (step > 0) {
        return show_state(&shown->pre_state, &shown->pre_path, store, segment, step - 1, error);
    }
    if (segment->committed.index == 0) {
        shown->pre_state = segment->terms.first_state_root;
        return STATUS_OK;
    }
    TRY(store_segment_before(store, &previous, segment, segment->committed.index - 1, error));
    shown->previous = previous.committed;
    return show_state(&shown->pre_state, &shown->pre_path, store, &previous,
                      previous.committed.steps - 1, error);
}

enum status dispute_case(struct game_case *shown, struct store *store,
                         const struct store_segment *segment, uint32_t step, struct error *error)
{
    struct store_job job;

    memset(shown, 0, sizeof(*shown));
    TRY(store_job(store, &job, &segment->job, error));
    if (!job.has_header) {
        return error_set(error, STATUS_NOT_FOUND, "no check has found the job's header yet");
    }
    shown->client = job.client;
    shown->salt = job.terms.salt;
    memcpy(shown->job_header, job.header, sizeof(shown->job_header));
    shown->segment = segment->committed;
    shown->step = step;
    TRY(show_state(&shown->post_state, &shown->post_path, store, segment, step, error));
    return show_pre_state(shown, store, segment, step, error);
}
