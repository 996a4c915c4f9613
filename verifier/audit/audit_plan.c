/* audit_plan.c - see audit_plan.h. */
#include "verifier/audit/audit_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/philox.h"

/* The stream of the auditor's draws; no step of a job has so high a number. */
#define SAMPLE_STREAM UINT32_MAX

#define QUICK_NS UINT64_C(2000000000) /* a check that took less is followed by a longer one */

enum {
    PLACES_MAX = CHECK_REACH_MAX + 1,
    GROWTH = 4,
};

/* ---- which segments ----------------------------------------------------- */

static uint64_t length_of(const struct audit_plan *plan)
{
    return bundle_job(plan->bundle)->segment_length;
}

static uint64_t segment_end(const struct audit_plan *plan, uint64_t segment)
{
    uint64_t end = job_segment_end(bundle_job(plan->bundle), segment);

    return end < plan->journaled ? end : plan->journaled;
}

static int by_number(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* A partial shuffle, so that every set is equally likely; then in order. */
static void choose_sample(uint64_t *order, uint64_t count, uint64_t wanted, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint64_t i = 0; i < wanted && wanted < count; i++) {
        struct philox_block block = philox_draw(i, SAMPLE_STREAM, SAMPLE_STREAM, seed);
        uint64_t other = i + philox_below(&block, count - i);
        uint64_t picked = order[other];

        order[other] = order[i];
        order[i] = picked;
    }
    qsort(order, wanted, sizeof(*order), by_number);
}

static enum status find_checkpoints(struct audit_plan *plan, struct error *error)
{
    enum status status = STATUS_OK;
    struct error none;
    uint64_t room = 0;
    uint64_t step = 0;

    while (!bundle_is_locked(plan->bundle)) {
        error_init(&none);
        status = bundle_checkpoint_find(&step, plan->bundle, step, &none);
        if (status != STATUS_OK) {
            *error = status == STATUS_NOT_FOUND ? *error : none;
            return status == STATUS_NOT_FOUND ? STATUS_OK : status;
        }
        if (plan->checkpoint_count == room) {
            uint64_t *more = realloc(plan->checkpoints, (2 * room + 16) * sizeof(*more));

            if (more == NULL) {
                return error_set(error, STATUS_NO_MEMORY, "no memory for a list of checkpoints");
            }
            plan->checkpoints = more;
            room = 2 * room + 16;
        }
        plan->checkpoints[plan->checkpoint_count++] = step++;
    }
    return STATUS_OK;
}

static enum status look_at_journal(struct audit_plan *plan, struct error *error)
{
    TRY(bundle_step_count(&plan->journaled, plan->bundle, error));
    TRY(bundle_diverged(&plan->diverged, plan->bundle, error));
    if (plan->journaled > bundle_job(plan->bundle)->steps) {
        return error_set(error, STATUS_BAD_FORMAT, "the journal has more steps than the job");
    }
    if (plan->journaled == 0) {
        return error_set(error, STATUS_NOT_FOUND, "the journal holds no step: nothing to check");
    }
    return STATUS_OK;
}

enum status audit_plan_open(struct audit_plan *plan, struct bundle *bundle, uint64_t sample,
                            uint64_t sample_seed, struct error *error)
{
    uint64_t count;

    *plan = (struct audit_plan){.bundle = bundle};
    TRY(look_at_journal(plan, error));
    count = (plan->journaled + length_of(plan) - 1) / length_of(plan);
    plan->segment_count = sample == 0 || sample > count ? count : sample;
    plan->segments = malloc((count + 1) * sizeof(*plan->segments));
    if (plan->segments == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for %" PRIu64 " segments", count);
    }
    choose_sample(plan->segments, count, plan->segment_count, sample_seed);
    for (uint64_t i = 0; i < plan->segment_count; i++) {
        plan->steps += segment_end(plan, plan->segments[i]) - plan->segments[i] * length_of(plan);
    }
    return find_checkpoints(plan, error);
}

void audit_plan_close(struct audit_plan *plan)
{
    free(plan->segments);
    free(plan->checkpoints);
    *plan = (struct audit_plan){0};
}

bool audit_plan_has(const struct audit_plan *plan, uint64_t from, uint64_t end)
{
    for (uint64_t i = 0; i < plan->segment_count && from < end; i++) {
        if (plan->segments[i] == from / length_of(plan)) {
            from = segment_end(plan, plan->segments[i]);
        }
    }
    return from >= end;
}

/* ---- lanes ---------------------------------------------------------------- */

struct audit_lane audit_plan_lane(const struct audit_plan *plan, uint32_t index, uint32_t count)
{
    uint64_t each = plan->segment_count / count;
    uint64_t more = plan->segment_count % count; /* so many lanes have one more */
    struct audit_lane lane = {
        .segments = plan->segments + each * index + (index < more ? index : more),
        .segment_count = each + (index < more),
        .at = UINT64_MAX,
        .budget = length_of(plan) < CHECK_FIGURES_MAX ? length_of(plan) : CHECK_FIGURES_MAX};

    lane.next = lane.segment_count > 0 ? lane.segments[0] * length_of(plan) : 0;
    return lane;
}

bool audit_lane_is_done(const struct audit_lane *lane)
{
    return lane->segment == lane->segment_count;
}

static bool is_listed(const struct audit_plan *plan, uint64_t step)
{
    return plan->checkpoint_count > 0 && bsearch(&step, plan->checkpoints, plan->checkpoint_count,
                                                 sizeof(step), by_number) != NULL;
}

/* The newest state at or before the step that may be at hand; 0: the first one. */
static uint64_t newest_state(const struct audit_plan *plan, const struct audit_lane *lane)
{
    uint64_t found = lane->at <= lane->next ? lane->at : 0;

    for (uint64_t i = 0; i < plan->checkpoint_count && plan->checkpoints[i] <= lane->next; i++) {
        found = plan->checkpoints[i] > found ? plan->checkpoints[i] : found;
    }
    return found;
}

/* How far a place reaches: to the end of its segment, and no further than a request allows. The
 * step that diverged ends one, no matter what the journal has behind it. */
static uint64_t place_end(const struct audit_plan *plan, uint64_t step, uint64_t most)
{
    uint64_t end = segment_end(plan, step / length_of(plan));

    end = end < step + GAME_STATES_MAX ? end : step + GAME_STATES_MAX;
    end = plan->diverged >= step && plan->diverged < end ? plan->diverged + 1 : end;
    return end < most ? end : most;
}

struct audit_stretch audit_plan_next(const struct audit_plan *plan, const struct audit_lane *lane)
{
    struct audit_stretch stretch = {.from = newest_state(plan, lane), .counted = lane->next};
    uint64_t segment = lane->segment;
    uint64_t places = 0;
    uint64_t boundary = 0; /* the last end of a segment: checkpoints lie there */

    stretch.end = stretch.from;
    while (stretch.end < lane->next && places < PLACES_MAX) {
        stretch.end = place_end(plan, stretch.end, lane->next);
        places = plan->diverged == stretch.end - 1 ? PLACES_MAX : places + 1;
    }
    while (places < PLACES_MAX && stretch.end < lane->next + lane->budget) {
        stretch.end = place_end(plan, stretch.end, lane->next + lane->budget);
        places = plan->diverged == stretch.end - 1 ? PLACES_MAX : places + 1;
        if (stretch.end == segment_end(plan, lane->segments[segment])) {
            boundary = stretch.end;
            if (++segment == lane->segment_count ||
                lane->segments[segment] * length_of(plan) != boundary) {
                break;
            }
        }
    }
    if (boundary > lane->next && plan->diverged != stretch.end - 1) {
        stretch.end = boundary;
    }
    stretch.counted = stretch.counted < stretch.end ? stretch.counted : stretch.end;
    stretch.keeps = !is_listed(plan, stretch.end) && stretch.end < plan->journaled;
    return stretch;
}

enum status audit_plan_request(struct check_request *request, const struct audit_plan *plan,
                               const struct audit_stretch *stretch, struct error *error)
{
    const struct job *job = bundle_job(plan->bundle);

    request->job_id = job->id;
    request->steps = job->steps;
    request->journal = true;
    request->first_step = stretch->from;
    TRY(bundle_state_root(&request->first_root, plan->bundle, stretch->from, error));
    for (uint64_t step = stretch->from; step < stretch->end;) {
        uint64_t end =
            place_end(plan, step, step < stretch->counted ? stretch->counted : stretch->end);
        struct check_segment *place = &request->segments[request->segment_count++];

        for (; step < end; step++) {
            struct bundle_step entry;

            TRY(bundle_step_read(&entry, plan->bundle, step, error));
            place->states[place->steps++] = entry.root;
        }
    }
    request->index = request->segment_count - 1;
    request->diverged = stretch->end - 1 == plan->diverged;
    request->open_end = stretch->end == plan->journaled;
    request->figure_count = (uint32_t)(stretch->end - stretch->counted);
    return STATUS_OK;
}

void audit_plan_done(const struct audit_plan *plan, struct audit_lane *lane,
                     const struct audit_stretch *stretch, bool kept, uint64_t nanoseconds)
{
    lane->at = kept ? stretch->end : UINT64_MAX;
    if (stretch->end > lane->next) {
        lane->next = stretch->end;
        while (lane->segment < lane->segment_count &&
               segment_end(plan, lane->segments[lane->segment]) <= lane->next) {
            lane->segment++;
        }
        if (lane->segment < lane->segment_count &&
            lane->segments[lane->segment] * length_of(plan) > lane->next) {
            lane->next = lane->segments[lane->segment] * length_of(plan);
        }
    }
    if (nanoseconds < QUICK_NS) {
        lane->budget =
            lane->budget * GROWTH < CHECK_FIGURES_MAX ? lane->budget * GROWTH : CHECK_FIGURES_MAX;
    }
}

bool audit_plan_go_back(struct audit_plan *plan, struct audit_lane *lane,
                        const struct audit_stretch *stretch)
{
    uint64_t kept = 0;

    if (stretch->from == 0) {
        return false;
    }
    if (lane->at == stretch->from) {
        lane->at = UINT64_MAX;
    }
    for (uint64_t i = 0; i < plan->checkpoint_count; i++) {
        if (plan->checkpoints[i] != stretch->from) {
            plan->checkpoints[kept++] = plan->checkpoints[i];
        }
    }
    plan->checkpoint_count = kept;
    return true;
}
