/* stop_rule.c - see stop_rule.h. */
#include "proofs/bundle/stop_rule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/endian.h"
#include "engine/ops/real.h"
#include "proofs/bundle/bundle_parts.h"
#include "proofs/job/held_out.h"

static const uint8_t magic[8] = {'L', 'S', 'S', 'T', 'O', 'P', 0, 1};

/* ---- the rule ------------------------------------------------------------- */

bool stop_rule_is_none(const struct stop_rule *rule)
{
    return rule->above_bits == FLOAT_NAN_BITS && rule->patience == 0;
}

void stop_rule_text(char text[STOP_RULE_TEXT], const struct stop_rule *rule)
{
    size_t size = 0;

    text[0] = '\0';
    if (rule->above_bits != FLOAT_NAN_BITS) {
        size = (size_t)snprintf(text, STOP_RULE_TEXT, "--stop-above %.9g",
                                (double)real_from_bits(rule->above_bits));
    }
    if (rule->patience != 0) {
        (void)snprintf(text + size, STOP_RULE_TEXT - size, "%s--patience %u", size == 0 ? "" : " ",
                       rule->patience);
    }
}

static enum status check_rule(const struct stop_rule *rule, struct error *error)
{
    const float above = real_from_bits(rule->above_bits);

    if ((rule->above_bits != FLOAT_NAN_BITS && !(isfinite(above) && above > 0.0f)) ||
        rule->patience > STOP_PATIENCE_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "a rule that ends a run above a loss of %g, or after %u looks",
                         (double)above, rule->patience);
    }
    return STATUS_OK;
}

enum status stop_rule_parse(struct stop_rule *rule, const uint8_t *bytes, size_t size,
                            struct error *error)
{
    *rule = STOP_RULE_NONE;
    if (size != STOP_RULE_SIZE || memcmp(bytes, magic, sizeof(magic)) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s is no rule that ends a run", STOP_RULE_FILE);
    }
    rule->above_bits = endian_load_be32(bytes + 8);
    rule->patience = endian_load_be32(bytes + 12);
    return check_rule(rule, error);
}

enum status stop_rule_refuse_job(struct error *error)
{
    (void)error_set(error, STATUS_USAGE,
                    "--stop-above and --patience go by held-out figures, and the job has none");
    error_advise(error, "make it with 'job new --eval FILE'");
    return STATUS_USAGE;
}

enum status stop_rule_refuse_ledger(struct error *error)
{
    (void)error_set(error, STATUS_USAGE,
                    "--stop-above and --patience end a local run: on a ledger every segment is "
                    "ordered and paid");
    error_advise(error, "train without them there, or here with --offline");
    return STATUS_USAGE;
}

enum status stop_rule_write(struct bundle *bundle, const struct stop_rule *rule,
                            struct error *error)
{
    uint8_t bytes[STOP_RULE_SIZE];
    char path[FILE_PATH_MAX];
    struct held_out held_out;

    TRY(check_rule(rule, error));
    held_out_of(&held_out, bundle_job(bundle));
    if (held_out.loss == TENSOR_NONE) {
        return stop_rule_refuse_job(error);
    }
    memcpy(bytes, magic, sizeof(magic));
    endian_store_be32(bytes + 8, rule->above_bits);
    endian_store_be32(bytes + 12, rule->patience);
    TRY(bundle_file(path, bundle, STOP_RULE_FILE, error));
    return file_write_new(path, error, bytes, sizeof(bytes), 0644);
}

enum status stop_rule_read(struct stop_rule *rule, const struct bundle *bundle, struct error *error)
{
    struct file_bytes bytes = {0};
    char path[FILE_PATH_MAX];
    enum status status;

    *rule = STOP_RULE_NONE;
    TRY(bundle_file(path, bundle, STOP_RULE_FILE, error));
    if (!file_exists(path)) {
        return STATUS_OK;
    }
    TRY(file_read(&bytes, error, path, STOP_RULE_SIZE));
    status = stop_rule_parse(rule, bytes.data, bytes.size, error);
    file_bytes_release(&bytes);
    return status;
}

/* ---- what it makes of figures --------------------------------------------- */

void stop_watch_init(struct stop_watch *watch, const struct stop_rule *rule)
{
    *watch = (struct stop_watch){.rule = *rule, .fired_after = UINT64_MAX, .fired_by = ""};
}

void stop_watch_add(struct stop_watch *watch, uint64_t after_steps, uint32_t loss_bits)
{
    const struct stop_rule *rule = &watch->rule;
    const float loss = real_from_bits(loss_bits);
    const char *by = NULL;

    if (!watch->looked || loss < watch->least) {
        watch->looked = true;
        watch->least = loss;
        watch->least_after = after_steps;
        watch->worse = 0;
    } else {
        watch->worse++;
    }
    if (rule->above_bits != FLOAT_NAN_BITS && loss > real_from_bits(rule->above_bits)) {
        by = "--stop-above";
    } else if (rule->patience != 0 && watch->worse >= rule->patience) {
        by = "--patience";
    }
    if (by != NULL && watch->fired_after == UINT64_MAX) {
        watch->fired_after = after_steps;
        watch->fired_by = by;
    }
}

enum status stop_watch_follow(struct stop_watch *watch, struct bundle *bundle, uint64_t steps,
                              struct error *error)
{
    struct held_out held_out;

    held_out_of(&held_out, bundle_job(bundle));
    if (bundle_is_locked(bundle)) {
        return error_set(error, STATUS_REFUSED, "%s is encrypted: its figures are hidden",
                         bundle_path(bundle));
    }
    for (; watch->followed < steps; watch->followed++) {
        const uint64_t step = watch->followed;
        struct bundle_step entry;

        if (!held_out_is_due(&held_out, step)) {
            continue;
        }
        TRY(bundle_step_read(&entry, bundle, step, error));
        if (entry.evaluated) {
            stop_watch_add(watch, step + 1, entry.held_out_bits);
        }
    }
    return STATUS_OK;
}

uint64_t stop_watch_end(const struct stop_watch *watch, const struct job *job)
{
    const uint64_t segment = job->segment_length;
    uint64_t end;

    if (watch->fired_after == UINT64_MAX) {
        return UINT64_MAX;
    }
    end = (watch->fired_after + segment - 1) / segment * segment;
    return end < job->steps ? end : job->steps;
}

enum status stop_rule_sentence(char text[STOP_SENTENCE], struct bundle *bundle, struct error *error)
{
    char words[STOP_RULE_TEXT];
    struct stop_watch watch;
    struct stop_rule rule;
    uint64_t steps;

    text[0] = '\0';
    TRY(stop_rule_read(&rule, bundle, error));
    if (stop_rule_is_none(&rule) || bundle_is_locked(bundle)) {
        return STATUS_OK;
    }
    stop_watch_init(&watch, &rule);
    TRY(bundle_step_count(&steps, bundle, error));
    TRY(stop_watch_follow(&watch, bundle, steps, error));
    if (stop_watch_end(&watch, bundle_job(bundle)) == steps) {
        stop_rule_text(words, &rule);
        (void)snprintf(text, STOP_SENTENCE,
                       "ended after step %" PRIu64 " by %s (of %s): the least held-out loss is "
                       "%.6f, after step %" PRIu64,
                       steps, watch.fired_by, words, (double)watch.least, watch.least_after);
    }
    return STATUS_OK;
}
