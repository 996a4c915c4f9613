/* solver_policy.c - see solver_policy.h. */
#include "prover/post/solver_policy.h"

enum {
    STEPS_AVERAGED = 32,
};

static void set_pace(struct solver_policy *policy, const struct job *job, uint64_t step_ns,
                     uint64_t done)
{
    const uint64_t ns_per_ms = 1000000;
    uint64_t most = UINT64_MAX / (step_ns == 0 ? 1 : step_ns);
    uint64_t left = job->steps > done ? job->steps - done : 0;
    uint64_t length = job->segment_length;

    policy->pace.segment_ms = (length > most ? UINT64_MAX : length * step_ns) / ns_per_ms;
    policy->pace.left_ms = (left > most ? UINT64_MAX : left * step_ns) / ns_per_ms;
}

enum status solver_policy_read_pace(struct solver_policy *policy, struct bundle *bundle,
                                    struct error *error)
{
    uint64_t count = 0;
    uint64_t sum_ns = 0;
    uint64_t first;

    TRY(bundle_step_count(&count, bundle, error));
    first = count > STEPS_AVERAGED ? count - STEPS_AVERAGED : 0;
    for (uint64_t i = first; i < count; i++) {
        struct bundle_step step;

        TRY(bundle_step_read(&step, bundle, i, error));
        sum_ns += step.nanoseconds + step.nanoseconds_committing;
    }
    set_pace(policy, bundle_job(bundle), count == 0 ? 0 : sum_ns / (count - first), count);
    return STATUS_OK;
}

void solver_policy_set_pace(struct solver_policy *policy, const struct job *job, uint64_t step_ns)
{
    if (step_ns > 0) {
        set_pace(policy, job, step_ns, 0);
    }
}

/* The last eighth of the period: a commit takes a few blocks. */
static bool is_due(const struct job_record *record, uint64_t now_s)
{
    return record->state.due_s != 0 &&
           now_s + record->terms.segment_period_s / 8 + 1 >= record->state.due_s;
}

bool solver_policy_has_room(const struct job_record *record, uint32_t ahead, uint64_t now_s)
{
    if (record->state.committed - record->state.finalized >= GAME_OPEN_MAX ||
        record->state.refused_until_s != 0) {
        return false;
    }
    return ahead == 0 || is_due(record, now_s) ||
           job_record_unvouched(record) < policy_ahead(&record->terms, ahead);
}

enum status solver_policy_check(const struct solver_policy *policy, struct ledger *ledger,
                                const struct job_record *record, struct error *error)
{
    struct policy limits = policy->limits;
    struct policy_refusal refusal;
    struct ledger_clock clock;
    wei purse = 0;
    wei owed = 0;

    TRY(ledger_get_account(ledger, &purse, &owed, ledger_get_own(ledger), error));
    TRY(ledger_get_clock(ledger, &clock, error));
    limits.currency = *ledger_get_currency(ledger);
    if (policy_solve(&refusal, &limits, &record->terms, purse, &policy->pace, clock.time_s)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_REFUSED, "nothing was staked: %s", refusal.text);
}
