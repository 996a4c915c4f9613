/* metrics.c - see metrics.h. */
#include "verifier/status/metrics.h"

#include <inttypes.h>

#include "base/version.h"

static void head(struct buffer *text, const char *name, const char *type, const char *help)
{
    buffer_add_format(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void plain(struct buffer *text, const char *name, const char *type, const char *help,
                  double value)
{
    head(text, name, type, help);
    buffer_add_format(text, "%s %.17g\n", name, value);
}

static void labelled(struct buffer *text, const char *name, const char *label, const char *value,
                     uint64_t number)
{
    buffer_add_format(text, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, value, number);
}

/* A label's value: the format escapes backslash, quote and line feed. */
static void add_label(struct buffer *text, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"') {
            buffer_add_u8(text, '\\');
            buffer_add_u8(text, (uint8_t)*value);
        } else if (*value == '\n') {
            buffer_add_text(text, "\\n");
        } else {
            /* Other bytes may be a cut UTF-8 character. */
            buffer_add_u8(text, *value < ' ' || *value > '~' ? '?' : (uint8_t)*value);
        }
    }
}

static double seconds(uint64_t ms)
{
    return (double)ms / 1e3;
}

/* ---- groups ------------------------------------------------------------- */

static void add_endpoints(struct buffer *text, const struct node_snapshot *snapshot)
{
    head(text, "lockstep_ledger_endpoint_well", "gauge",
         "0 while an endpoint of the ledger does not answer, or not as it should.");
    for (uint32_t i = 0; i < snapshot->endpoint_count; i++) {
        buffer_add_text(text, "lockstep_ledger_endpoint_well{endpoint=\"");
        add_label(text, snapshot->endpoints[i].label);
        buffer_add_format(text, "\"} %d\n", snapshot->endpoints[i].reason[0] == '\0');
    }
    head(text, "lockstep_ledger_endpoint_ill_since_seconds", "gauge",
         "Since when such an endpoint is ill, in seconds since 1970, and why.");
    for (uint32_t i = 0; i < snapshot->endpoint_count; i++) {
        if (snapshot->endpoints[i].reason[0] != '\0') {
            buffer_add_text(text, "lockstep_ledger_endpoint_ill_since_seconds{endpoint=\"");
            add_label(text, snapshot->endpoints[i].label);
            buffer_add_text(text, "\",reason=\"");
            add_label(text, snapshot->endpoints[i].reason);
            buffer_add_format(text, "\"} %" PRIu64 "\n", snapshot->endpoints[i].since_s);
        }
    }
}

static void add_node(struct buffer *text, const struct node_snapshot *snapshot)
{
    head(text, "lockstep_build_info", "gauge", "The program's version, as a label; always 1.");
    labelled(text, "lockstep_build_info", "version", LOCKSTEP_VERSION, 1);
    plain(text, "lockstep_node_start_time_seconds", "gauge",
          "When the node was started, in seconds since 1970.", seconds(snapshot->started_ms));
    plain(text, "lockstep_node_alive_time_seconds", "gauge",
          "The node's last sign of life, in seconds since 1970; 0 before the first.",
          seconds(snapshot->alive_ms));
    plain(text, "lockstep_node_healthy", "gauge",
          "1 while the node is alive, has no fault and reaches its ledger.",
          node_snapshot_trouble(snapshot) == NULL);
    plain(text, "lockstep_node_fault", "gauge",
          "1 when two replays on this machine disagreed: nothing is signed any more.",
          snapshot->fault[0] != '\0');
    plain(text, "lockstep_ledger_reachable", "gauge", "0 while no endpoint of the ledger answers.",
          snapshot->ledger_trouble[0] == '\0');
    add_endpoints(text, snapshot);
    plain(text, "lockstep_moves_reopened_total", "counter",
          "Moves that counted as final and were taken back by a deeper reorganization.",
          (double)snapshot->reopened);
    plain(text, "lockstep_ledger_entries_read", "gauge",
          "The number of the last entry of the ledger's event log that was read.",
          (double)snapshot->cursor);
}

static void add_jobs(struct buffer *text, const struct node_snapshot *snapshot)
{
    static const char *const phases[NODE_SNAPSHOT_PHASES] = {"none", "open", "running", "closed"};

    head(text, "lockstep_jobs", "gauge", "Jobs on the ledger, by phase.");
    for (size_t i = GAME_PHASE_OPEN; i < NODE_SNAPSHOT_PHASES; i++) {
        labelled(text, "lockstep_jobs", "phase", phases[i], snapshot->jobs[i]);
    }
    plain(text, "lockstep_segments_committed", "gauge", "Segments that stand on the ledger.",
          (double)snapshot->committed);
    plain(text, "lockstep_segments_final", "gauge", "Segments that are final.",
          (double)snapshot->finalized);
}

static void add_checks(struct buffer *text, const struct node_snapshot *snapshot)
{
    head(text, "lockstep_checks_queued", "gauge", "Checks of segments, by state.");
    for (size_t i = 0; i < NODE_SNAPSHOT_TASK_STATES; i++) {
        labelled(text, "lockstep_checks_queued", "state", task_state_name((enum task_state)i),
                 snapshot->tasks[i]);
    }
    head(text, "lockstep_checks_done_total", "counter", "Checks that ended, by what came of them.");
    for (size_t i = 0; i < NODE_SNAPSHOT_OUTCOMES; i++) {
        labelled(text, "lockstep_checks_done_total", "outcome",
                 check_outcome_name((enum check_outcome)i), snapshot->outcomes[i]);
    }
    plain(text, "lockstep_check_attempts_total", "counter",
          "Attempts at checks, also those without an answer.", (double)snapshot->attempts);
    plain(text, "lockstep_steps_proven_total", "counter",
          "Steps of segments that were run again and gave the same bits.",
          (double)snapshot->steps_proven);
    plain(text, "lockstep_steps_replayed_total", "counter",
          "Steps that were run again, in the last attempt at each check.",
          (double)snapshot->steps_run);
    plain(text, "lockstep_replay_seconds_total", "counter",
          "Time in these replays, in the last attempt at each check.",
          (double)snapshot->compute_ns / 1e9);
    plain(text, "lockstep_next_deadline_time_seconds", "gauge",
          "The next deadline of a check that waits or runs, in seconds since 1970; 0: none.",
          (double)snapshot->next_deadline_s);
}

static void add_moves(struct buffer *text, const struct node_snapshot *snapshot)
{
    head(text, "lockstep_moves", "gauge", "Moves on the ledger, by kind and state.");
    for (size_t kind = 0; kind < ACTION_KINDS; kind++) {
        for (size_t state = 0; state < NODE_SNAPSHOT_ACTION_STATES; state++) {
            buffer_add_format(text, "lockstep_moves{kind=\"%s\",state=\"%s\"} %" PRIu64 "\n",
                              action_kind_name((enum action_kind)kind),
                              action_state_name((enum action_state)state),
                              snapshot->actions[kind][state]);
        }
    }
    head(text, "lockstep_moves_lost", "gauge",
         "Moves that were ours to make and never will be: refused for good, or too late.");
    for (size_t kind = 0; kind < ACTION_KINDS; kind++) {
        labelled(text, "lockstep_moves_lost", "kind", action_kind_name((enum action_kind)kind),
                 snapshot->lost[kind]);
    }
    head(text, "lockstep_claims", "gauge", "Claims of this node that are on the ledger.");
    labelled(text, "lockstep_claims", "state", "open", snapshot->claims_open);
    labelled(text, "lockstep_claims", "state", "upheld", snapshot->claims_upheld);
    labelled(text, "lockstep_claims", "state", "refuted", snapshot->claims_refuted);
    labelled(text, "lockstep_claims", "state", "lapsed", snapshot->claims_lapsed);
    plain(text, "lockstep_panel_entries", "gauge", "Entries of this node in panels.",
          (double)snapshot->entries);
    plain(text, "lockstep_bonds_lost_total", "counter",
          "Bonds of entries that were lost, since a right was disproved.",
          (double)snapshot->bonds_lost);
    plain(text, "lockstep_seats_missed_total", "counter",
          "Places of this node in which it sealed no verdict in time.", (double)snapshot->missed);
    head(text, "lockstep_seats", "gauge", "Places of this node in draws, by phase.");
    for (size_t i = 0; i < NODE_SNAPSHOT_SEAT_PHASES; i++) {
        labelled(text, "lockstep_seats", "phase", store_seat_phase_words.words[i],
                 snapshot->seats[i]);
    }
    head(text, "lockstep_verdicts", "gauge", "Verdicts that this node has revealed.");
    for (size_t i = GAME_VERDICT_RIGHT; i < NODE_SNAPSHOT_VERDICTS; i++) {
        labelled(text, "lockstep_verdicts", "verdict", store_verdict_words.words[i],
                 snapshot->verdicts[i]);
    }
}

/* An exact decimal: a binary number would round it. */
static void add_amount(struct buffer *text, const char *name, const char *label, const char *value,
                       const struct currency *currency, wei amount)
{
    char number[WEI_TEXT_SIZE];

    currency_print_number(number, currency, amount);
    buffer_add_format(text, "%s{%s=\"%s\",currency=\"%s\"} %s\n", name, label, value,
                      currency_name(currency), number);
}

static void add_money(struct buffer *text, const struct node_snapshot *snapshot)
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
    head(text, "lockstep_money", "gauge", "What the account has, by where it lies.");
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        add_amount(text, "lockstep_money", "in", places[i].in, &money->currency, places[i].amount);
    }
    head(text, "lockstep_money_moved_total", "counter",
         "What became of it: earned, paid for what was delivered, lost, and gas.");
    for (int i = 0; i < MONEY_KINDS; i++) {
        add_amount(text, "lockstep_money_moved_total", "as", money_kind_name((enum money_kind)i),
                   i == MONEY_GAS ? &currency_coin : &money->currency, money->amounts[i]);
    }
}

static void add_mirrors(struct buffer *text, const struct node_snapshot *snapshot)
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
        head(text, families[i].name, "counter", families[i].help);
        for (uint32_t m = 0; m < snapshot->mirror_count; m++) {
            const struct node_snapshot_mirror *mirror = &snapshot->mirror[m];

            buffer_add_format(text, "%s{mirror=\"", families[i].name);
            add_label(text, mirror->name);
            buffer_add_format(text, "\"} %" PRIu64 "\n",
                              *(const uint64_t *)((const char *)mirror + families[i].offset));
        }
    }
    head(text, "lockstep_mirror_resting", "gauge",
         "1 while it is asked after all others, because it was silent or wrong lately.");
    for (uint32_t m = 0; m < snapshot->mirror_count; m++) {
        buffer_add_text(text, "lockstep_mirror_resting{mirror=\"");
        add_label(text, snapshot->mirror[m].name);
        buffer_add_format(text, "\"} %d\n", snapshot->mirror[m].rests ? 1 : 0);
    }
}

void metrics_write(struct buffer *text, const struct node_snapshot *snapshot)
{
    add_node(text, snapshot);
    add_jobs(text, snapshot);
    add_checks(text, snapshot);
    add_moves(text, snapshot);
    add_money(text, snapshot);
    add_mirrors(text, snapshot);
}
