/* metrics.c - see metrics.h. */
#include "verifier/status/metrics.h"

#include <inttypes.h>

#include "base/version.h"

static void labelled(struct sheet *sheet, const char *label, const char *value, uint64_t number)
{
    sheet_sample(sheet, "%" PRIu64, number);
    sheet_sample_label(sheet, label, value);
}

static double seconds(uint64_t ms)
{
    return (double)ms / 1e3;
}

/* ---- groups ------------------------------------------------------------- */

static void add_endpoints(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    sheet_metric(sheet, "lockstep_ledger_endpoint_well", "gauge",
                 "0 while an endpoint of the ledger does not answer, or not as it should.");
    for (uint32_t i = 0; i < snapshot->endpoint_count; i++) {
        sheet_sample(sheet, "%d", snapshot->endpoints[i].reason[0] == '\0');
        sheet_sample_label(sheet, "endpoint", snapshot->endpoints[i].label);
    }
    sheet_metric(sheet, "lockstep_ledger_endpoint_ill_since_seconds", "gauge",
                 "Since when such an endpoint is ill, in seconds since 1970, and why.");
    for (uint32_t i = 0; i < snapshot->endpoint_count; i++) {
        if (snapshot->endpoints[i].reason[0] != '\0') {
            sheet_sample(sheet, "%" PRIu64, snapshot->endpoints[i].since_s);
            sheet_sample_label(sheet, "endpoint", snapshot->endpoints[i].label);
            sheet_sample_label(sheet, "reason", snapshot->endpoints[i].reason);
        }
    }
}

static void add_node(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    sheet_metric(sheet, "lockstep_build_info", "gauge",
                 "The program's version, as a label; always 1.");
    labelled(sheet, "version", LOCKSTEP_VERSION, 1);
    sheet_figure(sheet, "lockstep_node_start_time_seconds", "gauge",
                 "When the node was started, in seconds since 1970.",
                 seconds(snapshot->started_ms));
    sheet_figure(sheet, "lockstep_node_alive_time_seconds", "gauge",
                 "The node's last sign of life, in seconds since 1970; 0 before the first.",
                 seconds(snapshot->alive_ms));
    sheet_figure(sheet, "lockstep_node_healthy", "gauge",
                 "1 while the node is alive, has no fault and reaches its ledger.",
                 node_snapshot_trouble(snapshot) == NULL);
    sheet_figure(sheet, "lockstep_node_fault", "gauge",
                 "1 when two replays on this machine disagreed: nothing is signed any more.",
                 snapshot->fault[0] != '\0');
    sheet_figure(sheet, "lockstep_ledger_reachable", "gauge",
                 "0 while no endpoint of the ledger answers.", snapshot->ledger_trouble[0] == '\0');
    add_endpoints(sheet, snapshot);
    sheet_figure(sheet, "lockstep_moves_reopened_total", "counter",
                 "Moves that counted as final and were taken back by a deeper reorganization.",
                 (double)snapshot->reopened);
    sheet_figure(sheet, "lockstep_ledger_entries_read", "gauge",
                 "The number of the last entry of the ledger's event log that was read.",
                 (double)snapshot->cursor);
}

static void add_jobs(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    static const char *const phases[NODE_SNAPSHOT_PHASES] = {"none", "open", "running", "closed"};

    sheet_metric(sheet, "lockstep_jobs", "gauge", "Jobs on the ledger, by phase.");
    for (size_t i = GAME_PHASE_OPEN; i < NODE_SNAPSHOT_PHASES; i++) {
        labelled(sheet, "phase", phases[i], snapshot->jobs[i]);
    }
    sheet_figure(sheet, "lockstep_segments_committed", "gauge",
                 "Segments that stand on the ledger.", (double)snapshot->committed);
    sheet_figure(sheet, "lockstep_segments_final", "gauge", "Segments that are final.",
                 (double)snapshot->finalized);
}

static void add_checks(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    sheet_metric(sheet, "lockstep_checks_queued", "gauge", "Checks of segments, by state.");
    for (size_t i = 0; i < NODE_SNAPSHOT_TASK_STATES; i++) {
        labelled(sheet, "state", task_state_name((enum task_state)i), snapshot->tasks[i]);
    }
    sheet_metric(sheet, "lockstep_checks_done_total", "counter",
                 "Checks that ended, by what came of them.");
    for (size_t i = 0; i < NODE_SNAPSHOT_OUTCOMES; i++) {
        labelled(sheet, "outcome", check_outcome_name((enum check_outcome)i),
                 snapshot->outcomes[i]);
    }
    sheet_figure(sheet, "lockstep_check_attempts_total", "counter",
                 "Attempts at checks, also those without an answer.", (double)snapshot->attempts);
    sheet_figure(sheet, "lockstep_steps_proven_total", "counter",
                 "Steps of segments that were run again and gave the same bits.",
                 (double)snapshot->steps_proven);
    sheet_figure(sheet, "lockstep_steps_replayed_total", "counter",
                 "Steps that were run again, in the last attempt at each check.",
                 (double)snapshot->steps_run);
    sheet_figure(sheet, "lockstep_replay_seconds_total", "counter",
                 "Time in these replays, in the last attempt at each check.",
                 (double)snapshot->compute_ns / 1e9);
    sheet_figure(sheet, "lockstep_next_deadline_time_seconds", "gauge",
                 "The next deadline of a check that waits or runs, in seconds since 1970; 0: none.",
                 (double)snapshot->next_deadline_s);
}

static void add_moves(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    sheet_metric(sheet, "lockstep_moves", "gauge", "Moves on the ledger, by kind and state.");
    for (size_t kind = 0; kind < ACTION_KINDS; kind++) {
        for (size_t state = 0; state < NODE_SNAPSHOT_ACTION_STATES; state++) {
            sheet_sample(sheet, "%" PRIu64, snapshot->actions[kind][state]);
            sheet_sample_label(sheet, "kind", action_kind_name((enum action_kind)kind));
            sheet_sample_label(sheet, "state", action_state_name((enum action_state)state));
        }
    }
    sheet_metric(sheet, "lockstep_moves_lost", "gauge",
                 "Moves that were ours to make and never will be: refused for good, or too late.");
    for (size_t kind = 0; kind < ACTION_KINDS; kind++) {
        labelled(sheet, "kind", action_kind_name((enum action_kind)kind), snapshot->lost[kind]);
    }
    sheet_metric(sheet, "lockstep_claims", "gauge", "Claims of this node that are on the ledger.");
    labelled(sheet, "state", "open", snapshot->claims_open);
    labelled(sheet, "state", "upheld", snapshot->claims_upheld);
    labelled(sheet, "state", "refuted", snapshot->claims_refuted);
    labelled(sheet, "state", "lapsed", snapshot->claims_lapsed);
    sheet_figure(sheet, "lockstep_panel_entries", "gauge", "Entries of this node in panels.",
                 (double)snapshot->entries);
    sheet_figure(sheet, "lockstep_bonds_lost_total", "counter",
                 "Bonds of entries that were lost, since a right was disproved.",
                 (double)snapshot->bonds_lost);
    sheet_figure(sheet, "lockstep_seats_missed_total", "counter",
                 "Places of this node in which it sealed no verdict in time.",
                 (double)snapshot->missed);
    sheet_metric(sheet, "lockstep_seats", "gauge", "Places of this node in draws, by phase.");
    for (size_t i = 0; i < NODE_SNAPSHOT_SEAT_PHASES; i++) {
        labelled(sheet, "phase", store_seat_phase_words.words[i], snapshot->seats[i]);
    }
    sheet_metric(sheet, "lockstep_verdicts", "gauge", "Verdicts that this node has revealed.");
    for (size_t i = GAME_VERDICT_RIGHT; i < NODE_SNAPSHOT_VERDICTS; i++) {
        labelled(sheet, "verdict", store_verdict_words.words[i], snapshot->verdicts[i]);
    }
}

/* An exact decimal: a binary number would round it. */
static void add_amount(struct sheet *sheet, const char *label, const char *value,
                       const struct currency *currency, wei amount)
{
    char number[WEI_TEXT_SIZE];

    currency_print_number(number, currency, amount);
    sheet_sample(sheet, "%s", number);
    sheet_sample_label(sheet, label, value);
    sheet_sample_label(sheet, "currency", currency_name(currency));
}

static void add_money(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    const struct money *money = &snapshot->money;
    const struct {
        const char *in;
        wei amount;
    } places[] = {{"account", money->free},
                  {"stakes", money->stakes},
                  {"bonds", money->bonds},
                  {"escrow", money->escrow},
                  {"owed", money->owed}};

    if (!snapshot->has_money) {
        return;
    }
    sheet_metric(sheet, "lockstep_money", "gauge", "What the account has, by where it lies.");
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        add_amount(sheet, "in", places[i].in, &money->currency, places[i].amount);
    }
    sheet_metric(sheet, "lockstep_money_moved_total", "counter",
                 "What became of it: earned, paid for what was delivered, lost, and gas.");
    for (int i = 0; i < MONEY_KINDS; i++) {
        add_amount(sheet, "as", money_kind_name((enum money_kind)i),
                   i == MONEY_GAS ? &currency_coin : &money->currency, money->amounts[i]);
    }
}

static void add_mirrors(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    static const struct {
        const char *name;
        const char *help;
        size_t offset;
    } families[] = {
        {"lockstep_mirror_good_total", "Answers that were what they should be.",
         offsetof(struct node_snapshot_mirror, good)},
        {"lockstep_mirror_bad_total", "Answers that were something else.",
         offsetof(struct node_snapshot_mirror, bad)},
        {"lockstep_mirror_silent_total", "Requests without a whole reply.",
         offsetof(struct node_snapshot_mirror, silent)},
        {"lockstep_mirror_bytes_total", "Bytes that were fetched.",
         offsetof(struct node_snapshot_mirror, bytes)},
    };

    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        sheet_metric(sheet, families[i].name, "counter", families[i].help);
        for (uint32_t m = 0; m < snapshot->mirror_count; m++) {
            const struct node_snapshot_mirror *mirror = &snapshot->mirror[m];

            labelled(sheet, "mirror", mirror->name,
                     *(const uint64_t *)((const char *)mirror + families[i].offset));
        }
    }
    sheet_metric(sheet, "lockstep_mirror_resting", "gauge",
                 "1 while it is asked after all others, because it was silent or wrong lately.");
    for (uint32_t m = 0; m < snapshot->mirror_count; m++) {
        labelled(sheet, "mirror", snapshot->mirror[m].name, snapshot->mirror[m].rests ? 1 : 0);
    }
}

void metrics_show(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    add_node(sheet, snapshot);
    add_jobs(sheet, snapshot);
    add_checks(sheet, snapshot);
    add_moves(sheet, snapshot);
    add_money(sheet, snapshot);
    add_mirrors(sheet, snapshot);
}
