/* job_policy.c - see job_policy.h. */
#include "client/job_policy.h"

static const struct policy_pace unknown;

enum status job_policy_read(struct job_policy *policy, const struct options *options,
                            const struct currency *currency, struct error *error)
{
    TRY(policy_options_node(&policy->node, options, error));
    TRY(policy_options_solver(&policy->solver, options, error));
    policy->node.currency = *currency;
    policy->solver.currency = *currency;
    return STATUS_OK;
}

static bool ask_solver(struct policy_refusal *refusal, const struct job_policy *policy,
                       const struct game_terms *terms, uint64_t now_s)
{
    return policy_solve(refusal, &policy->solver, terms, WEI_MAX, &unknown, now_s);
}

static bool ask_node(struct policy_refusal *refusal, const struct job_policy *policy,
                     const struct game_terms *terms, uint64_t now_s)
{
    return (terms->seats == 0 || policy_enlist(refusal, &policy->node, terms, NULL, NULL, now_s)) &&
           policy_claim(refusal, &policy->node, terms, terms->bond, NULL, &unknown);
}

const char *job_policy_word(const struct job_policy *policy, const struct game_terms *terms,
                            uint64_t now_s)
{
    struct policy_refusal refusal;

    return ask_solver(&refusal, policy, terms, now_s) && ask_node(&refusal, policy, terms, now_s)
               ? "ok"
               : policy_term_word(refusal.term);
}

static json_t *refusal_json(bool agreed, const struct policy_refusal *refusal)
{
    return agreed ? json_null()
                  : json_pack("{s:s, s:s}", "term", policy_term_word(refusal->term), "text",
                              refusal->text);
}

json_t *job_policy_json(const struct job_policy *policy, const struct game_terms *terms,
                        uint64_t now_s)
{
    struct policy_refusal refusals[2];
    bool solver = ask_solver(&refusals[0], policy, terms, now_s);
    bool node = ask_node(&refusals[1], policy, terms, now_s);

    return json_pack("{s:o, s:o}", "solver", refusal_json(solver, &refusals[0]), "node",
                     refusal_json(node, &refusals[1]));
}

enum status job_policy_check(const struct game_terms *terms, const struct currency *currency,
                             bool quick, uint64_t now_s, struct error *error)
{
    struct policy policy = quick ? policy_quick() : policy_default();
    struct policy_refusal refusal;

    policy.currency = *currency;
    if (policy_open(&refusal, &policy, terms, now_s)) {
        return STATUS_OK;
    }
    (void)error_set(error, STATUS_REFUSED, "no node or no solver %s takes these terms: %s",
                    quick ? "with --terms quick" : "at its defaults", refusal.text);
    error_advise(error,
                 "change %s, or open the job with --any-terms for parties who take them by the "
                 "option that is named",
                 policy_term_option(refusal.term));
    return STATUS_REFUSED;
}
