/* status_page.c - see status_page.h. */
#include "verifier/status/status_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "chain/money/money_page.h"

/* ---- the top ------------------------------------------------------------ */

static void add_endpoints(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->endpoint_count; i++) {
        const struct ledger_endpoint *endpoint = &snapshot->endpoints[i];

        if (endpoint->reason[0] != '\0') {
            sheet_line(sheet, SHEET_ILL, "Endpoint ");
            sheet_words(sheet, SHEET_CODE, "%s", endpoint->label);
            sheet_words(sheet, SHEET_PLAIN, " is ill since ");
            sheet_when(sheet, SHEET_PLAIN, endpoint->since_s, snapshot->now_ms / 1000);
            sheet_words(sheet, SHEET_PLAIN, ": %s.", endpoint->reason);
        }
    }
}

static void add_state(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    const char *trouble = node_snapshot_trouble(snapshot);
    const char *more = snapshot->fault[0] != '\0' ? snapshot->fault : snapshot->ledger_trouble;
    uint64_t now_s = snapshot->now_ms / 1000;

    sheet_begin_line(sheet, trouble == NULL ? SHEET_WELL : SHEET_ILL);
    sheet_words(sheet, SHEET_STRONG, trouble == NULL ? "Well" : "Not well");
    if (trouble != NULL) {
        sheet_words(sheet, SHEET_PLAIN, ": %s%s%s", trouble, more[0] == '\0' ? "" : ". ", more);
    }
    sheet_words(sheet, SHEET_PLAIN, ". ");
    sheet_words(sheet, SHEET_DIM, "Started ");
    sheet_when(sheet, SHEET_DIM, snapshot->started_ms / 1000, now_s);
    if (snapshot->next_deadline_s != 0) {
        sheet_words(sheet, SHEET_DIM,
                    snapshot->next_deadline_s >= now_s ? ", the next deadline of a check is "
                                                       : ", the deadline of a check was ");
        sheet_when(sheet, SHEET_DIM, snapshot->next_deadline_s, now_s);
    }
}

static void add_top(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    const struct {
        uint64_t count;
        const char *words;
    } cards[] = {{snapshot->jobs[GAME_PHASE_RUNNING], "jobs running"},
                 {snapshot->tasks[TASK_RUNNING], "checks running"},
                 {snapshot->tasks[TASK_WAITING], "checks waiting"},
                 {snapshot->steps_proven, "steps proven"},
                 {snapshot->outcomes[CHECK_REFUTED], "segments refuted"},
                 {snapshot->claims_open, "claims open"},
                 {snapshot->entries, "entries in panels"},
                 {snapshot->missed, "seats missed"},
                 {snapshot->bonds_lost, "bonds lost"}};

    sheet_add(sheet, SHEET_TITLE, NULL, "Lockstep verifier");
    sheet_begin_line(sheet, SHEET_DIM);
    sheet_words(sheet, SHEET_CODE, "%s",
                snapshot->owner[0] == '\0' ? "no ledger yet" : snapshot->owner);
    add_state(sheet, snapshot);
    add_endpoints(sheet, snapshot);
    for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
        sheet_add(sheet, SHEET_CARD, cards[i].words, "%" PRIu64, cards[i].count);
    }
    if (snapshot->has_money) {
        money_page_cards(sheet, &snapshot->money);
        money_page_write(sheet, &snapshot->money);
    }
}

/* ---- throughput --------------------------------------------------------- */

static void add_throughput(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    struct sheet_plot plot = {.unit = "/s",
                              .last = "now",
                              .from_zero = true,
                              .is_low = true,
                              .count = NODE_SNAPSHOT_BARS,
                              .series_count = 1,
                              .series = {{"steps replayed a second", SHEET_FORM_BARS, {0}}}};

    for (size_t i = 0; i < NODE_SNAPSHOT_BARS; i++) {
        const struct node_snapshot_bar *bar = &snapshot->bars[i];

        plot.series[0].values[i] =
            bar->checks > 0 ? (double)bar->steps * 1e3 / (double)snapshot->bar_ms : NAN;
    }
    (void)snprintf(plot.first, sizeof(plot.first), "%" PRIu64 " h ago",
                   snapshot->bar_ms * NODE_SNAPSHOT_BARS / 3600000);
    sheet_add(sheet, SHEET_HEADING, NULL, "Throughput");
    sheet_plot(sheet, &plot);
}

/* ---- jobs --------------------------------------------------------------- */

static void add_map(struct sheet *sheet, const struct node_snapshot_job *job)
{
    uint8_t marks[NODE_SNAPSHOT_CELLS_MAX];
    const struct sheet_squares squares = {.name = "segments by what this node found",
                                          .unit = "segment",
                                          .marks = marks,
                                          .count = job->cell_count,
                                          .each = job->cell_segments,
                                          .total = job->segment_count,
                                          .words = {"not committed", "not checked", "proven",
                                                    "being checked", "no answer", "refuted"}};

    for (uint32_t i = 0; i < job->cell_count; i++) {
        marks[i] = (uint8_t)job->cells[i].mark;
    }
    sheet_squares(sheet, &squares);
}

static void add_loss(struct sheet *sheet, const struct node_snapshot_job *job)
{
    static const char words[] = "loss after the segments that were proven here";
    struct sheet_plot plot = {.unit = "",
                              .first = "segment 0",
                              .is_low = true,
                              .count = job->cell_count,
                              .series_count = 1,
                              .series = {{words, SHEET_FORM_POINTS, {0}}}};
    bool has_any = false;

    for (uint32_t i = 0; i < job->cell_count; i++) {
        plot.series[0].values[i] = job->cells[i].has_loss ? job->cells[i].loss : NAN;
        has_any = has_any || job->cells[i].has_loss;
    }
    (void)snprintf(plot.last, sizeof(plot.last), "segment %u", job->segment_count - 1);
    if (has_any) {
        sheet_plot(sheet, &plot);
    }
}

static void add_job(struct sheet *sheet, const struct node_snapshot_job *job)
{
    static const char *const phases[NODE_SNAPSHOT_PHASES] = {"unknown", "open", "running",
                                                             "closed"};

    sheet_begin(sheet, SHEET_SECTION, NULL);
    sheet_begin(sheet, SHEET_SUBHEADING, NULL);
    sheet_key(sheet, job->key.bytes, HASH32_SIZE);
    sheet_words(sheet, SHEET_PLAIN, " %s",
                job->phase < NODE_SNAPSHOT_PHASES ? phases[job->phase] : phases[0]);
    sheet_line(sheet, SHEET_DIM,
               "%" PRIu64 " steps in %u segments: %u committed, %u proven here, %u refuted, %u "
               "final, %u being checked",
               job->steps, job->segment_count, job->committed, job->proven, job->refuted,
               job->finalized, job->being_checked);
    add_map(sheet, job);
    add_loss(sheet, job);
    sheet_begin(sheet, SHEET_SECTION_END, NULL);
}

static void add_jobs(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    uint64_t all = 0;

    for (size_t i = 0; i < NODE_SNAPSHOT_PHASES; i++) {
        all += snapshot->jobs[i];
    }
    sheet_add(sheet, SHEET_HEADING, NULL, "Jobs");
    if (snapshot->job_count == 0) {
        sheet_line(sheet, SHEET_DIM, "There are none on the ledger.");
    }
    for (uint32_t i = 0; i < snapshot->job_count; i++) {
        add_job(sheet, &snapshot->job[i]);
    }
    if (all > snapshot->job_count && snapshot->job_count > 0) {
        sheet_line(sheet, SHEET_DIM, "and %" PRIu64 " others", all - snapshot->job_count);
    }
}

/* ---- claims and mirrors ------------------------------------------------- */

static void add_claim(struct sheet *sheet, const struct node_snapshot_claim *claim, uint64_t now_s)
{
    static const char *const phases[] = {"not on the ledger yet", "waits behind another",
                                         "waits for an answer", "in dispute", "closed"};
    bool closed = claim->phase == GAME_CLAIM_CLOSED;

    sheet_begin(sheet, SHEET_NOTE, NULL);
    sheet_key(sheet, claim->key.bytes, HASH32_SIZE);
    sheet_words(sheet, SHEET_DIM, " %s", claim->trouble);
    sheet_begin(sheet, SHEET_ROW, NULL);
    sheet_add(sheet, SHEET_CELL, NULL, "%u", claim->index);
    sheet_add(sheet, SHEET_CELL, NULL, "%u", claim->step);
    sheet_add(sheet, SHEET_CELL, NULL, "%s", action_state_name(claim->move));
    sheet_add(sheet, SHEET_CELL, NULL, "%s",
              closed                             ? claim->outcome
              : claim->phase < GAME_CLAIM_CLOSED ? phases[claim->phase]
                                                 : "unknown");
    sheet_begin(sheet, SHEET_CELL, NULL);
    sheet_when(sheet, SHEET_PLAIN, closed ? 0 : claim->deadline_s, now_s);
}

static void add_claims(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    static const char *const headings[] = {"Segment", "Step", "Move", "State", "Next deadline"};

    sheet_add(sheet, SHEET_HEADING, NULL, "Claims");
    if (snapshot->claim_count == 0) {
        sheet_line(sheet, SHEET_DIM, "This node has made none.");
        return;
    }
    sheet_columns(sheet, headings, sizeof(headings) / sizeof(headings[0]));
    for (uint32_t i = 0; i < snapshot->claim_count; i++) {
        add_claim(sheet, &snapshot->claim[i], snapshot->now_ms / 1000);
    }
}

/* Why they earned nothing, and what to do. */
static void add_missed(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    static const char *const headings[] = {"Segment", "Place"};

    if (snapshot->missed_count == 0) {
        return;
    }
    sheet_add(sheet, SHEET_HEADING, NULL, "Seats missed");
    sheet_columns(sheet, headings, sizeof(headings) / sizeof(headings[0]));
    for (uint32_t i = 0; i < snapshot->missed_count; i++) {
        const struct node_snapshot_missed *seat = &snapshot->missed_seat[i];

        sheet_begin(sheet, SHEET_NOTE, NULL);
        sheet_key(sheet, seat->job.bytes, HASH32_SIZE);
        sheet_words(sheet, SHEET_DIM, " %s", seat->reason);
        sheet_begin(sheet, SHEET_ROW, NULL);
        sheet_add(sheet, SHEET_CELL, NULL, "%u", seat->index);
        sheet_add(sheet, SHEET_CELL, NULL, "%u", seat->place);
    }
}

static void add_mirror(struct sheet *sheet, const struct node_snapshot_mirror *mirror,
                       uint64_t now_s)
{
    sheet_begin(sheet, SHEET_NOTE, NULL);
    sheet_words(sheet, SHEET_CODE, "%s", mirror->name);
    if (mirror->trouble[0] != '\0') {
        sheet_words(sheet, SHEET_DIM, " last trouble: %s", mirror->trouble);
    }
    sheet_begin(sheet, SHEET_ROW, NULL);
    if (mirror->rests) {
        sheet_add(sheet, SHEET_CELL, NULL, "asked last, again ");
        sheet_when(sheet, SHEET_PLAIN, mirror->rest_until_s, now_s);
    } else {
        sheet_add(sheet, SHEET_CELL, NULL, "%s", mirror->failures > 0 ? "on trial" : "good");
    }
    sheet_add(sheet, SHEET_CELL, NULL, "%" PRIu64, mirror->good);
    sheet_add(sheet, SHEET_CELL, NULL, "%" PRIu64, mirror->bad);
    sheet_add(sheet, SHEET_CELL, NULL, "%" PRIu64, mirror->silent);
    sheet_add(sheet, SHEET_CELL, NULL, "%.1f", (double)mirror->bytes / 1e6);
}

static void add_mirrors(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    static const char *const headings[] = {"State", "Good", "Bad", "Silent", "MB"};

    if (snapshot->mirror_count == 0) {
        return;
    }
    sheet_add(sheet, SHEET_HEADING, NULL, "Mirrors");
    sheet_columns(sheet, headings, sizeof(headings) / sizeof(headings[0]));
    for (uint32_t i = 0; i < snapshot->mirror_count; i++) {
        add_mirror(sheet, &snapshot->mirror[i], snapshot->now_ms / 1000);
    }
}

/* ---- the page ----------------------------------------------------------- */

void status_page_show(struct sheet *sheet, const struct node_snapshot *snapshot)
{
    sheet_add(sheet, SHEET_WINDOW, NULL, "%sLockstep verifier",
              node_snapshot_trouble(snapshot) == NULL ? "" : "! ");
    add_top(sheet, snapshot);
    add_jobs(sheet, snapshot);
    add_claims(sheet, snapshot);
    add_missed(sheet, snapshot);
    add_throughput(sheet, snapshot);
    add_mirrors(sheet, snapshot);
    sheet_add(
        sheet, SHEET_FOOTER, NULL,
        "A step is called proven only where this node ran it again and every bit of the state "
        "after it was the same.");
}
