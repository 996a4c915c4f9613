/* federate_plan.c - see federate_plan.h. */
#include "client/federate/federate_plan.h"

#include <string.h>

#include "base/io/strict_json.h"
#include "proofs/job/job_file.h"
#include "proofs/rounds/round_job.h"

enum { PLAN_DEPTH = 6 };

/* ---- terms ---------------------------------------------------------------- */

/* What the command itself says to `job open`. */
static bool is_ours(const char *name)
{
    static const char *const ours[] = {
        "salt",          "yes",     "contact", "ledger",          "registry",
        "first-block",   "depth",   "wallet",  "passphrase-file", "ledger-state",
        "gas-price-max", "account", "timeout"};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (strcmp(ours[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* An option of `job open`, which is the command beside ours. */
static const struct option_spec *find_option(const struct command_group *group, const char *name)
{
    for (size_t i = 0; i < group->command_count; i++) {
        const struct command *command = &group->commands[i];

        for (size_t at = 0; at < command->option_count && strcmp(command->name, "open") == 0;
             at++) {
            if (strcmp(command->options[at].name, name) == 0 && !is_ours(name)) {
                return &command->options[at];
            }
        }
    }
    return NULL;
}

static enum status read_term(struct federate_term *term, const char *name, const json_t *value,
                             const struct command_group *group, struct error *error)
{
    const struct option_spec *option = find_option(group, name);
    const bool flag = option != NULL && option->kind == OPTION_FLAG;

    if (option == NULL) {
        (void)error_set(error, STATUS_USAGE, "'terms' has no word '%.60s'", name);
        error_advise(error, "%s",
                     strcmp(name, "salt") == 0 ? "leave it out: each try of a round has its own"
                     : is_ours(name)           ? "name it on the command line, for all owners"
                                     : "terms are options of 'job open', without hyphens before "
                                       "them");
        return STATUS_USAGE;
    }
    if (flag ? !json_is_true(value) : !json_is_string(value)) {
        return error_set(error, STATUS_USAGE, "'terms': '%s' is %s", name,
                         flag ? "true, or not there" : "a text, such as \"0.5eth\"");
    }
    *term = (struct federate_term){.name = option->name,
                                   .value = flag ? NULL : json_string_value(value)};
    return STATUS_OK;
}

static enum status read_terms(struct federate_owner *owner, json_t *json,
                              const struct command_group *group, struct error *error)
{
    json_t *terms = json_object_get(json, "terms");
    json_t *value;
    const char *name;

    if (terms == NULL) {
        return STATUS_OK;
    }
    if (!json_is_object(terms) || json_object_size(terms) > FEDERATE_TERMS_MAX) {
        return error_set(error, STATUS_USAGE, "'terms' is an object of at most %d options",
                         FEDERATE_TERMS_MAX);
    }
    json_object_foreach(terms, name, value)
    {
        TRY(read_term(&owner->terms[owner->term_count++], name, value, group, error));
    }
    return STATUS_OK;
}

/* ---- an owner ------------------------------------------------------------- */

static enum status read_owner(struct federate_owner *owner, json_t *json,
                              const struct command_group *group, struct error *error)
{
    static const char *const known[] = {"name", "job", "data", "terms"};
    const json_t *data;

    TRY(strict_json_only(json, error, known, sizeof(known) / sizeof(known[0])));
    TRY(strict_json_text(json, error, &owner->name, "name"));
    TRY(strict_json_text(json, error, &owner->job_path, "job"));
    TRY(strict_json_array(json, error, &data, "data", ROUNDS_OWNERS_MAX));
    for (size_t i = 0; i < json_array_size(data); i++) {
        const json_t *one = json_array_get(data, i);

        if (!json_is_string(one)) {
            return error_set(error, STATUS_USAGE, "'data' is a list of files");
        }
        owner->data[owner->data_count++] = json_string_value(one);
    }
    TRY(read_terms(owner, json, group, error));
    return job_read(&owner->job, owner->job_path, error);
}

static enum status read_owners(struct federate_plan *plan, const struct command_group *group,
                               struct error *error)
{
    json_t *owners = json_object_get(plan->json, "owners");
    const size_t count = json_array_size(owners);

    if (!json_is_array(owners) || count < 1 || count > ROUNDS_OWNERS_MAX) {
        return error_set(error, STATUS_USAGE, "'owners' is a list of 1 to %d", ROUNDS_OWNERS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        struct federate_owner *owner = &plan->owners[plan->owner_count++];

        if (read_owner(owner, json_array_get(owners, i), group, error) != STATUS_OK) {
            return error_wrap(error, "owner %zu", i + 1);
        }
    }
    return STATUS_OK;
}

static enum status check_jobs(const struct federate_plan *plan, bool moments, struct error *error)
{
    const struct federate_owner *first = &plan->owners[0];

    TRY(round_job_check(first->job, first->name, moments, error));
    for (uint32_t i = 1; i < plan->owner_count; i++) {
        const struct federate_owner *owner = &plan->owners[i];

        TRY(round_job_check_alike(first->job, first->name, owner->job, owner->name, error));
    }
    return STATUS_OK;
}

enum status federate_plan_read(struct federate_plan *plan, const char *path, bool moments,
                               const struct command_group *group, struct error *error)
{
    static const char *const known[] = {"owners", "first_state"};

    *plan = (struct federate_plan){0};
    TRY(strict_json_read(&plan->json, error, path, ROUNDS_SIZE_MAX, PLAN_DEPTH));
    if (strict_json_only(plan->json, error, known, sizeof(known) / sizeof(known[0])) != STATUS_OK ||
        (json_object_get(plan->json, "first_state") != NULL &&
         strict_json_text(plan->json, error, &plan->first_state, "first_state") != STATUS_OK) ||
        read_owners(plan, group, error) != STATUS_OK) {
        return error_wrap(error, "%s", path);
    }
    return check_jobs(plan, moments, error);
}

void federate_plan_release(struct federate_plan *plan)
{
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        job_free(plan->owners[i].job);
    }
    json_decref(plan->json);
    *plan = (struct federate_plan){0};
}
