/* keep_metrics.c - see keep_metrics.h. */
#include "client/keeper/keep_metrics.h"

#include <inttypes.h>

static void add_metric(struct sheet *sheet, const char *name, const char *kind, const char *help,
                       uint64_t value)
{
    sheet_metric(sheet, name, kind, help);
    sheet_sample(sheet, "%" PRIu64, value);
}

static void add_labelled(struct sheet *sheet, const char *label, const char *word, uint64_t value)
{
    sheet_sample(sheet, "%" PRIu64, value);
    sheet_sample_label(sheet, label, word);
}

void keep_metrics_show(struct sheet *sheet, const struct keeper_counts *counts,
                       const struct job_view *view)
{
    add_metric(sheet, "lockstep_keeper_healthy", "gauge",
               "0 while something keeps it from its work.", view->trouble[0] == '\0');
    add_metric(sheet, "lockstep_keeper_looked_time_seconds", "gauge",
               "The ledger's time at the last look that worked, in seconds since 1970.",
               counts->looked_s);
    add_metric(sheet, "lockstep_keeper_covered_segments", "gauge",
               "Covered segments that are not final.", counts->pending);
    add_metric(sheet, "lockstep_keeper_held_segments", "gauge",
               "Of them, those whose states are here.", counts->held);
    add_metric(sheet, "lockstep_keeper_vouched_segments", "gauge",
               "Of them, those that the ledger knows to be vouched for.", counts->noted);
    add_metric(sheet, "lockstep_keeper_refusals_total", "counter", "Refusals that it made.",
               counts->refused);
    sheet_metric(sheet, "lockstep_keeper_vouches_total", "counter",
                 "Vouches, by the way that they went.");
    add_labelled(sheet, "how", "handed", counts->handed);
    add_labelled(sheet, "how", "announced", counts->announced);
    add_labelled(sheet, "how", "brought", counts->brought);
    sheet_metric(sheet, "lockstep_keeper_replays_total", "counter", "Replays, by what they found.");
    add_labelled(sheet, "outcome", "right", counts->right);
    add_labelled(sheet, "outcome", "false", counts->wrong);
    add_labelled(sheet, "outcome", "failed", counts->failed);
}
