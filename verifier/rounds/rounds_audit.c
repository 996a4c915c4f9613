/* rounds_audit.c - see rounds_audit.h. */
#include "verifier/rounds/rounds_audit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain/view/ledger_end.h"
#include "proofs/job/job_file.h"
#include "proofs/rounds/round_job.h"
#include "proofs/rounds/round_trees.h"
#include "verifier/rounds/rounds_parts.h"

/* ---- the given jobs ------------------------------------------------------- */

static enum status read_given(bool *holds, struct rounds_check *check, struct error *error)
{
    const struct rounds *rounds = &check->result->rounds;
    struct error why;

    assert(rounds->owner_count > 0); /* rounds_read() refuses others */
    *holds = true;
    for (uint32_t i = 0; i < rounds->owner_count; i++) {
        char path[FILE_PATH_MAX];

        error_init(&why);
        TRY(rounds_owner_path(path, check->result->folder, 0, i, "job", error));
        if (job_read(&check->given[i], path, &why) != STATUS_OK ||
            round_job_check_alike(check->given[0], rounds->owners[0].name, check->given[i],
                                  rounds->owners[i].name, &why) != STATUS_OK) {
            rounds_parts_blame(check, &why);
            *holds = false;
            return STATUS_OK;
        }
        if (!digest_equal(&check->given[i]->id, &rounds->owners[i].job)) {
            rounds_parts_say(check, FINDING_REFUTED, "%s is another job than the agreement names",
                             path);
            *holds = false;
            return STATUS_OK;
        }
    }
    check->begins = check->given[0]->first_state_root;
    check->previous = rounds->id;
    return STATUS_OK;
}

static enum status take_memory(struct rounds_check *check, struct error *error)
{
    struct digest **const all[] = {&check->start, &check->velocity, &check->next,
                                   &check->next_velocity};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        *all[i] = calloc((size_t)check->given[0]->tape->state_count + 1, sizeof(**all[i]));
        if (*all[i] == NULL) {
            return error_set(error, STATUS_NO_MEMORY, "no memory for the trees of a state");
        }
    }
    return STATUS_OK;
}

/* Of the first round; each later one begins with trees of the mean before. */
static enum status read_start(bool *holds, struct rounds_check *check, struct error *error)
{
    const struct tape *tape = check->given[0]->tape;
    char path[FILE_PATH_MAX];
    struct digest root;
    struct error why;

    error_init(&why);
    TRY(rounds_path(path, check->result->folder, 1, ROUND_START_FILE, error));
    if (round_trees_read(check->start, path, tape, UINT32_MAX, &why) != STATUS_OK) {
        rounds_parts_blame(check, &why);
        *holds = false;
        return STATUS_OK;
    }
    TRY(round_trees_root(&root, check->start, tape, error));
    if (!digest_equal(&root, &check->begins)) {
        rounds_parts_say(check, FINDING_REFUTED, "%s is not the first state of the jobs", path);
        *holds = false;
    }
    return STATUS_OK;
}

/* ---- the rounds ----------------------------------------------------------- */

/* Goes on from a round that holds. */
static void step_on(struct rounds_check *check)
{
    struct digest *start = check->start;
    struct digest *velocity = check->velocity;

    check->previous = check->record.sha256;
    check->begins = check->record.next;
    check->start = check->next;
    check->next = start;
    check->velocity = check->next_velocity;
    check->next_velocity = velocity;
    check->result->done++;
}

static enum status check_round(bool *holds, struct rounds_check *check, struct error *error)
{
    struct error why;
    enum status status;

    error_init(&why);
    *holds = false;
    status = round_record_read(&check->record, check->result->folder, check->number, &why);
    if (status == STATUS_NOT_FOUND) {
        rounds_parts_say(check, FINDING_NOT_TOLD, "it has no record: the rounds end before it");
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        rounds_parts_blame(check, &why);
        return STATUS_OK;
    }
    TRY(rounds_record_check(holds, check, error));
    if (!*holds) {
        return STATUS_OK;
    }
    TRY(rounds_states_check(check, error));
    TRY(rounds_mean_check(holds, check, error));
    if (*holds) {
        step_on(check);
    }
    return STATUS_OK;
}

/* Another ledger knows nothing of these rounds, and would refute them. */
static enum status check_place(const struct rounds_check *check, struct error *error)
{
    char place[ROUNDS_PLACE_MAX + 1];

    if (check->ledger == NULL) {
        return STATUS_OK;
    }
    ledger_end_place(place, check->ledger);
    return strcmp(place, check->result->rounds.place) == 0
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "these rounds have %s%s, and --transactions asks %s",
                           check->result->rounds.place[0] == '\0' ? "no ledger" : "the ledger ",
                           check->result->rounds.place, place);
}

static enum status check_rounds(struct rounds_check *check, struct error *error)
{
    bool holds = false;

    TRY(check_place(check, error));
    TRY(read_given(&holds, check, error));
    if (!holds) {
        return STATUS_OK;
    }
    TRY(take_memory(check, error));
    TRY(read_start(&holds, check, error));
    for (uint32_t i = 1; holds && i <= check->result->rounds.count; i++) {
        check->number = i;
        round_record_release(&check->record);
        TRY(check_round(&holds, check, error));
    }
    check->number = 0;
    if (holds) {
        rounds_parts_say(check, FINDING_PROVEN,
                         "each round begins with the mean of the round before it");
        rounds_parts_say(check, FINDING_TRUSTED,
                         "that the rows of all owners are fit to learn from: an honest training on "
                         "rows that mislead is proven like any other");
    }
    return STATUS_OK;
}

static void release_check(struct rounds_check *check)
{
    for (uint32_t i = 0; i < ROUNDS_OWNERS_MAX; i++) {
        job_free(check->given[i]);
    }
    round_record_release(&check->record);
    free(check->start);
    free(check->velocity);
    free(check->next);
    free(check->next_velocity);
    free(check);
}

enum status rounds_audit_run(struct rounds_result *result, const char *folder,
                             const struct audit_options *options, struct ledger *ledger,
                             struct error *error)
{
    struct rounds_check *check = calloc(1, sizeof(*check));
    struct error why;
    enum status status;

    *result = (struct rounds_result){.folder = folder};
    if (check == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for an audit");
    }
    TRY_OUT(findings_init(&result->findings, error));
    check->result = result;
    check->options = options;
    check->ledger = ledger;
    error_init(&why);
    if (rounds_read(&result->rounds, folder, &why) != STATUS_OK) {
        rounds_parts_blame(check, &why);
        status = STATUS_OK;
    } else {
        status = check_rounds(check, error);
    }
out:
    release_check(check);
    return status;
}
