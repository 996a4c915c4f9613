/* policy_options.c - see policy_options.h. */
#include "chain/commands/policy_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/doctor.h"
#include "chain/commands/commands.h"

/* ---- reading ------------------------------------------------------------------- */

static bool is_quick(const struct options *options)
{
    return strcmp(options_text(options, "terms"), POLICY_QUICK) == 0;
}

static struct policy policy_of(const struct options *options)
{
    return is_quick(options) ? policy_quick() : policy_default();
}

/* Of quick terms the fallbacks of the options do not hold. */
static bool holds_usual(const struct options *options, const char *name)
{
    return options_given(options, name) || !is_quick(options);
}

static void read_period(uint32_t *period_s, const struct options *options, const char *name)
{
    if (holds_usual(options, name)) {
        *period_s = (uint32_t)options_number(options, name);
    }
}

enum status chain_amount(wei *amount, const struct options *options, const char *name,
                         struct error *error)
{
    const char *text = options_text(options, name);

    if (text == NULL || wei_parse(amount, text) == STATUS_OK) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_USAGE, "--%s: '%.60s' is not an amount such as 0.5eth or 10gwei",
                     name, text);
}

/* "2%", "0.5 %", or an amount. */
static enum status read_cap(struct policy_cap *cap, const struct options *options, const char *name,
                            struct error *error)
{
    const char *text = options_text(options, name);
    char *end = NULL;
    double percent;

    if (!holds_usual(options, name)) {
        return STATUS_OK;
    }
    *cap = (struct policy_cap){.set = text != NULL};
    if (text == NULL) {
        return STATUS_OK;
    }
    percent = strtod(text, &end);
    end += strspn(end, " ");
    if (strcmp(end, "%") != 0) {
        return chain_amount(&cap->amount, options, name, error);
    }
    if (!(percent >= 0.0 && percent <= 100.0)) {
        return error_set(error, STATUS_USAGE, "--%s: '%.60s' is not a share from 0%% to 100%%",
                         name, text);
    }
    cap->is_share = true;
    cap->share_ppm = (uint32_t)(percent * (POLICY_WHOLE_PPM / 100.0) + 0.5);
    return STATUS_OK;
}

static enum status read_multiple(uint32_t *thousandths, const struct options *options,
                                 const char *name, struct error *error)
{
    double multiple = options_real(options, name);

    if (!holds_usual(options, name)) {
        return STATUS_OK;
    }
    if (!(multiple <= 1000000.0)) {
        return error_set(error, STATUS_USAGE, "--%s: more than a million", name);
    }
    *thousandths = (uint32_t)(multiple * POLICY_ONE + 0.5);
    return STATUS_OK;
}

static enum status read_common(struct policy *policy, const struct options *options,
                               struct error *error)
{
    read_period(&policy->lock_time_max_s, options, "lock-time-max");
    read_period(&policy->clock_least_s, options, "clock-min");
    TRY(read_multiple(&policy->clock_factor, options, "clock-factor", error));
    TRY(read_multiple(&policy->cost_cover, options, "cost-cover", error));
    return chain_amount(&policy->price, options, "price", error);
}

enum status policy_options_node(struct policy *policy, const struct options *options,
                                struct error *error)
{
    *policy = policy_of(options);
    TRY(read_common(policy, options, error));
    policy->bond_fees_max = (uint32_t)options_number(options, "bond-fees-max");
    read_period(&policy->seal_least_s, options, "seal-period-min");
    read_period(&policy->segment_most_s, options, "segment-period-max");
    TRY(chain_amount(&policy->token_price, options, "token-price", error));
    read_period(&policy->reveal_least_s, options, "reveal-period-min");
    TRY(chain_amount(&policy->fee_least, options, "fee-min", error));
    TRY(read_cap(&policy->lock_all, options, "lock-max", error));
    TRY(read_cap(&policy->lock_job, options, "lock-job-max", error));
    return read_cap(&policy->lock_party, options, "lock-party-max", error);
}

enum status policy_options_solver(struct policy *policy, const struct options *options,
                                  struct error *error)
{
    *policy = policy_of(options);
    TRY(read_common(policy, options, error));
    TRY(read_multiple(&policy->stake_rewards_max, options, "stake-rewards-max", error));
    TRY(read_multiple(&policy->time_spare, options, "time-spare", error));
    TRY(chain_amount(&policy->reward_least, options, "reward-min", error));
    TRY(chain_amount(&policy->hour_least, options, "hour-min", error));
    return read_cap(&policy->stake_max, options, "stake-max", error);
}

/* ---- doctor ---------------------------------------------------------------------- */

static const struct option_spec node_options[] = {POLICY_OPTIONS, POLICY_NODE_OPTIONS};
static const struct option_spec solver_options[] = {POLICY_OPTIONS, POLICY_SOLVER_OPTIONS};

/* As a command without a command line would have it. */
static enum status read_defaults(
    struct policy *policy, const struct command_context *context, const struct option_table *table,
    enum status (*read)(struct policy *policy, const struct options *options, struct error *error),
    struct error *error)
{
    struct options options;
    enum status status;

    TRY(doctor_options(&options, context, table, error));
    status = read(policy, &options, error);
    options_release(&options);
    return status;
}

static void tell_finding(struct doctor_finding *finding, enum status status,
                         const struct error *error)
{
    finding->grade = status == STATUS_OK ? DOCTOR_GOOD : DOCTOR_BROKEN;
    if (status != STATUS_OK) {
        (void)snprintf(finding->text, sizeof(finding->text), "%.400s", error->text);
        (void)snprintf(finding->advice, sizeof(finding->advice),
                       "correct it in the config file or the environment");
    }
}

static void look_at_node(struct doctor_finding *finding, const struct command_context *context)
{
    const struct option_table table = {node_options,
                                       sizeof(node_options) / sizeof(node_options[0])};
    struct policy policy;
    struct error error;
    enum status status;

    error_init(&error);
    status = read_defaults(&policy, context, &table, policy_options_node, &error);
    tell_finding(finding, status, &error);
    if (status == STATUS_OK) {
        policy_describe_node(finding->text, &policy);
    }
}

static void look_at_solver(struct doctor_finding *finding, const struct command_context *context)
{
    const struct option_table table = {solver_options,
                                       sizeof(solver_options) / sizeof(solver_options[0])};
    struct policy policy;
    struct error error;
    enum status status;

    error_init(&error);
    status = read_defaults(&policy, context, &table, policy_options_solver, &error);
    tell_finding(finding, status, &error);
    if (status == STATUS_OK) {
        policy_describe_solver(finding->text, &policy);
    }
}

const struct doctor_check policy_options_checks[POLICY_OPTIONS_CHECK_COUNT] = {
    {"verifying", look_at_node},
    {"solving", look_at_solver},
};
