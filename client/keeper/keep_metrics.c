/* keep_metrics.c - see keep_metrics.h. */
#include "client/keeper/keep_metrics.h"

#include <inttypes.h>

static void add_metric(struct buffer *text, const char *name, const char *kind, const char *help,
                       uint64_t value)
{
    buffer_add_format(text,
                      "# HELP lockstep_keeper_%s %s\n# TYPE lockstep_keeper_%s %s\n"
                      "lockstep_keeper_%s %" PRIu64 "\n",
                      name, help, name, kind, name, value);
}

static void add_how(struct buffer *text, const char *how, uint64_t value)
{
    buffer_add_format(text, "lockstep_keeper_vouches_total{how=\"%s\"} %" PRIu64 "\n", how, value);
}

static void add_replay(struct buffer *text, const char *outcome, uint64_t value)
{
    buffer_add_format(text, "lockstep_keeper_replays_total{outcome=\"%s\"} %" PRIu64 "\n", outcome,
                      value);
}

void keep_metrics_write(struct buffer *text, const struct keeper_counts *counts,
                        const struct job_view *view)
{
    add_metric(text, "healthy", "gauge", "0 while something keeps it from its work.",
               view->trouble[0] == '\0');
    add_metric(text, "looked_time_seconds", "gauge",
               "The ledger's time at the last look that worked, in seconds since 1970.",
               counts->looked_s);
    add_metric(text, "covered_segments", "gauge", "Covered segments that are not final.",
               counts->pending);
    add_metric(text, "held_segments", "gauge", "Of them, those whose states are here.",
               counts->held);
    add_metric(text, "vouched_segments", "gauge",
               "Of them, those that the ledger knows to be vouched for.", counts->noted);
    add_metric(text, "refusals_total", "counter", "Refusals that it made.", counts->refused);
    /* One metric with a label: its help stands once, before the first of its values. */
    buffer_add_text(text, "# HELP lockstep_keeper_vouches_total Vouches, by the way that they went."
                          "\n# TYPE lockstep_keeper_vouches_total counter\n");
    add_how(text, "handed", counts->handed);
    add_how(text, "announced", counts->announced);
    add_how(text, "brought", counts->brought);
    buffer_add_text(text, "# HELP lockstep_keeper_replays_total Replays, by what they found.\n"
                          "# TYPE lockstep_keeper_replays_total counter\n");
    add_replay(text, "right", counts->right);
    add_replay(text, "false", counts->wrong);
    add_replay(text, "failed", counts->failed);
}
