/* made_case.c - see made_case.h. */
#include "tests/support/chain/made_case.h"

#include <string.h>

#include "base/endian.h"
#include "proofs/commit/commit.h"

enum {
    FIRST_STATE_AT = 184,
};

void made_case_header(uint8_t header[GAME_JOB_HEADER_SIZE], struct digest *job_id,
                      const struct digest *first_state)
{
    memset(header, 0, GAME_JOB_HEADER_SIZE);
    memcpy(header + FIRST_STATE_AT, first_state->bytes, DIGEST_SIZE);
    commit_job_id(job_id, header, GAME_JOB_HEADER_SIZE);
}

struct digest made_case_state(uint64_t step)
{
    struct digest state = {{0x5a}};

    endian_store_be64(state.bytes + 1, step);
    return state;
}

struct game_hashes made_case_states(struct digest *states, uint64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        states[i] = made_case_state(first + i);
    }
    return (struct game_hashes){states, count};
}

/* The path of the state after a step of a segment. */
static void find_path(struct merkle_path *path, uint64_t first, uint32_t steps, uint32_t step)
{
    struct digest hashes[GAME_STATES_MAX];
    struct merkle_leaves leaves;

    for (uint32_t i = 0; i < steps; i++) {
        struct digest state = made_case_state(first + i);

        merkle_leaf_hash(&hashes[i], state.bytes, DIGEST_SIZE);
    }
    merkle_leaves_init_hashes(&leaves, hashes, steps);
    merkle_path_build(path, &leaves, step);
}

void made_case(struct game_case *made, const struct game_terms *terms, const struct address *client,
               const struct game_segment *segment, const struct game_segment *previous,
               uint32_t step, const struct digest *first_state)
{
    uint64_t first = (uint64_t)segment->index * terms->segment_steps;
    struct digest job_id;

    memset(made, 0, sizeof(*made));
    made->client = *client;
    made->salt = terms->salt;
    made_case_header(made->job_header, &job_id, first_state);
    made->segment = *segment;
    made->step = step;
    made->post_state = made_case_state(first + step);
    find_path(&made->post_path, first, segment->steps, step);
    if (step > 0) {
        made->pre_state = made_case_state(first + step - 1);
        find_path(&made->pre_path, first, segment->steps, step - 1);
    } else if (previous != NULL) {
        made->previous = *previous;
        made->pre_state = made_case_state(first - 1);
        find_path(&made->pre_path, first - previous->steps, previous->steps, previous->steps - 1);
    } else {
        made->pre_state = *first_state;
    }
}
