/*
 * Goal: what the node's metrics and its page say is what its database says; both are well formed,
 * no matter what a stranger wrote; the server answers what it should and nothing else. Method: a
 * database is made event by event. The metrics are read by a strict reader of the text format
 * (https://prometheus.io/docs/instrumenting/exposition_formats/) and by promtool where it is
 * installed; the page by chromium where that is.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/io/file.h"
#include "client/keeper/keep_metrics.h"
#include "tests/support/browser.h"
#include "tests/support/chain/event_file.h"
#include "tests/support/numeric/small_job.h"
#include "verifier/status/metrics.h"
#include "verifier/status/node_views.h"
#include "verifier/status/status_page.h"
#include "verifier/status/status_server.h"
#include "verifier/store/store_endpoints.h"

#define OK(call) assert_int_equal((call), STATUS_OK)

enum {
    SEGMENTS = 50, /* of the job */
    COMMITTED = 40,
    HOUR_MS = 3600000,
};
static const uint64_t now_ms = UINT64_C(1800000000000);

#define OWNER "0x0700000000000000000000000000000000000000"

/* ---- a database --------------------------------------------------------- */

/* The ledger's: what a store takes is there too, for those who only look. */
static struct database events;

static struct hash32 key_of(uint8_t number)
{
    struct hash32 key = {{number}};

    return key;
}

static void take(struct store *store, const struct game_event *event, uint64_t number)
{
    const struct ledger_entry entry = {.kind = LEDGER_EVENT,
                                       .number = number,
                                       .height = number,
                                       .time_s = number,
                                       .event = *event};
    struct address own = {{7}};
    struct error error;

    error_init(&error);
    OK(store_take(store, &entry, &own, &error));
    if (events.database != NULL) {
        event_file_add(&events, event, number);
    }
}

static void open_job(struct store *store, uint8_t job, uint32_t segments, uint64_t *number)
{
    struct game_event event = {.kind = GAME_OPENED, .job = key_of(job)};

    event.terms = event_file_terms(segments, 10);
    take(store, &event, ++*number);
    event.kind = GAME_ACCEPTED;
    event.account = (struct address){{9}};
    take(store, &event, ++*number);
}

static void check_segment(struct store *store, uint8_t job, uint32_t index,
                          enum check_outcome outcome, float loss)
{
    static struct check_result result;
    struct store_segment segment;
    struct hash32 key = key_of(job);
    struct task task = {.index = index, .deadline_s = now_ms / 1000 + 100 + index};
    struct error error;
    bool full = false;

    error_init(&error);
    memset(&result, 0, sizeof(result));
    result.outcome = outcome;
    result.flaw = outcome == CHECK_REFUTED ? CHECK_FLAW_STATE : CHECK_FLAW_NONE;
    result.steps_run = 10;
    result.compute_ns = 2000000000;
    result.loss_known = true;
    memcpy(&result.loss_bits, &loss, sizeof(loss));
    OK(store_segment(store, &segment, &key, index, &error));
    OK(queue_add(store, &full, &segment, &task, &error));
    OK(queue_next(store, &task, now_ms, 1000, false, &error));
    assert_int_equal(task.index, index);
    OK(queue_begin(store, &task, now_ms - HOUR_MS / 2, &error));
    OK(queue_finish(store, &task, &result, outcome == CHECK_CANNOT_TELL ? TASK_SKIPPED : TASK_DONE,
                    now_ms - (uint64_t)(COMMITTED - index) * 60000, 0, &error));
}

static void fill_job(struct store *store, uint8_t job, uint64_t *number)
{
    static const struct digest states[10];

    open_job(store, job, SEGMENTS, number);
    for (uint32_t i = 0; i < COMMITTED; i++) {
        struct game_event event = {.kind = GAME_COMMITTED, .job = key_of(job), .index = i};

        event.segment = (struct game_segment){.index = i, .steps = 10, .time_s = 1 + i};
        event.segment.root.bytes[0] = (uint8_t)(i + 1);
        event.segment.root.bytes[1] = job;
        event.states = (struct game_hashes){.hashes = states, .count = 10};
        take(store, &event, ++*number);
    }
    for (uint32_t i = 0; i < 30; i++) {
        check_segment(store, job, i,
                      i == 17   ? CHECK_CANNOT_TELL
                      : i == 25 ? CHECK_REFUTED
                                : CHECK_PROVEN,
                      4.0F - 0.07F * (float)i);
    }
}

/* Sets a claim of ours before the ledger, and one more mirror with a hostile name. */
static void fill_rest(struct store *store, uint8_t job, uint64_t *number)
{
    struct game_event event = {.kind = GAME_CLAIMED,
                               .job = key_of(job),
                               .claim = key_of(99),
                               .account = {{7}},
                               .index = 25,
                               .step = 3};
    struct action action = {
        .name = "claim/1", .kind = ACTION_CLAIM, .claim = key_of(99), .step = 3};
    struct store_segment segment;
    struct hash32 key = key_of(job);
    struct error error;

    error_init(&error);
    take(store, &event, ++*number);
    event.kind = GAME_TURN_PASSED;
    event.phase = GAME_CLAIM_CALLED;
    event.turn = GAME_TURN_ACCUSED;
    event.time_s = now_ms / 1000 + 3000;
    take(store, &event, ++*number);
    OK(store_segment(store, &segment, &key, 25, &error));
    action.segment = segment.hash;
    OK(action_plan(store, &action, &error));
    OK(action_set(store, &action, ACTION_SENT, 0, "<script>alert(1)</script>", &error));
    OK(database_run(&store->sql, &error,
                    "INSERT INTO mirrors VALUES (?, 5, 1, 12345678, ?, 3, 1, ?)", "tti",
                    "https://a.example/\"x\\y\n<img src=x>\xff", "'stale' & \"foreign\" <data>",
                    (int64_t)now_ms + 20000));
    OK(store_set_text(store, "owner", OWNER " at local:1 <b>", &error));
    OK(store_set_number(store, "started_ms", (int64_t)now_ms - 2 * HOUR_MS, &error));
    OK(store_set_number(store, "alive_ms", (int64_t)now_ms - 1000, &error));
    event =
        (struct game_event){.kind = GAME_FINALIZED, .job = key_of(job), .index = 11, .time_s = 1};
    take(store, &event, ++*number);
}

/* A database with two jobs; the caller closes it. */
static void make_store(struct store *store, const char *path)
{
    struct error error;
    uint64_t number = 0;

    error_init(&error);
    OK(store_open(store, path, STORE_WRITE, &error));
    fill_job(store, 1, &number);
    open_job(store, 2, SEGMENTS, &number);
    fill_rest(store, 1, &number);
}

static struct node_snapshot *look(struct store *store)
{
    struct node_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    struct error error;

    assert_non_null(snapshot);
    error_init(&error);
    OK(node_snapshot_look(snapshot, store, now_ms, &error));
    return snapshot;
}

/* ---- snapshot ------------------------------------------------------------- */

static void test_a_snapshot_is_what_the_database_says(void **state)
{
    struct store store;
    struct node_snapshot *snapshot;
    uint64_t checks = 0;

    (void)state;
    make_store(&store, small_path("snapshot.db"));
    snapshot = look(&store);
    assert_int_equal(snapshot->jobs[GAME_PHASE_RUNNING], 2);
    assert_int_equal(snapshot->committed, COMMITTED);
    assert_int_equal(snapshot->finalized, 12);
    assert_int_equal(snapshot->outcomes[CHECK_PROVEN], 28);
    assert_int_equal(snapshot->outcomes[CHECK_REFUTED], 1);
    assert_int_equal(snapshot->tasks[TASK_SKIPPED], 1);
    assert_int_equal(snapshot->attempts, 30);
    assert_int_equal(snapshot->steps_proven, 280);
    assert_int_equal(snapshot->steps_run, 300);
    assert_int_equal(snapshot->claims_open, 1);
    assert_int_equal(snapshot->job_count, 2);
    assert_int_equal(snapshot->job[0].segment_count, SEGMENTS);
    assert_int_equal(snapshot->job[0].cell_count, SEGMENTS);
    assert_int_equal(snapshot->job[0].cells[0].mark, NODE_SNAPSHOT_PROVEN);
    assert_true(snapshot->job[0].cells[0].has_loss);
    assert_true(snapshot->job[0].cells[0].loss == 4.0);
    assert_int_equal(snapshot->job[0].cells[17].mark, NODE_SNAPSHOT_UNTOLD);
    assert_false(snapshot->job[0].cells[17].has_loss);
    assert_int_equal(snapshot->job[0].cells[25].mark, NODE_SNAPSHOT_REFUTED);
    assert_int_equal(snapshot->job[0].cells[35].mark, NODE_SNAPSHOT_COMMITTED);
    assert_int_equal(snapshot->job[0].cells[45].mark, NODE_SNAPSHOT_AHEAD);
    assert_int_equal(snapshot->claim_count, 1);
    assert_int_equal(snapshot->claim[0].index, 25);
    for (size_t i = 0; i < NODE_SNAPSHOT_BARS; i++) {
        checks += snapshot->bars[i].checks;
    }
    assert_int_equal(checks, 30);
    free(snapshot);
    store_close(&store);
}

/* Begins a check of the segment and does not end it. */
static void begin_check(struct store *store, uint8_t job, uint32_t index)
{
    struct store_segment segment;
    struct hash32 key = key_of(job);
    struct task task = {.index = index, .deadline_s = now_ms / 1000 + 100 + index};
    struct error error;
    bool full = false;

    error_init(&error);
    OK(store_segment(store, &segment, &key, index, &error));
    OK(queue_add(store, &full, &segment, &task, &error));
    OK(queue_next(store, &task, now_ms, 1000, false, &error));
    assert_int_equal(task.index, index);
    OK(queue_begin(store, &task, now_ms, &error));
}

static void page_of(struct buffer *page, const struct node_snapshot *snapshot)
{
    struct sheet sheet;

    sheet_init(&sheet);
    status_page_show(&sheet, snapshot);
    sheet_page_write(page, &sheet, snapshot->now_ms / 1000);
    sheet_release(&sheet);
}

/* The first attempt counts from its start: a segment whose check runs is not one without answer,
 * nor one that is passed over, even if the node's secret sample left it out. */
static void test_a_segment_whose_check_runs_is_being_checked(void **state)
{
    struct store store;
    struct node_snapshot *snapshot;
    struct buffer page;
    struct error error;
    struct sheet view;
    struct store_segment segment;
    struct hash32 key = key_of(1);
    json_t *job;

    (void)state;
    error_init(&error);
    make_store(&store, small_path("running.db"));
    begin_check(&store, 1, 31);
    for (uint32_t index = 31; index <= 33; index += 2) {
        OK(store_segment(&store, &segment, &key, index, &error));
        OK(store_choose(&store, &segment.hash, STORE_CHOICE_PASS, "not drawn", &error));
    }
    snapshot = look(&store);
    assert_int_equal(snapshot->job[0].cells[31].mark, NODE_SNAPSHOT_CHECKING);
    assert_int_equal(snapshot->job[0].cells[17].mark, NODE_SNAPSHOT_UNTOLD);
    buffer_init(&page, STATUS_PAGE_SIZE_MAX);
    page_of(&page, snapshot);
    assert_non_null(strstr(buffer_text(&page), "></i>being checked</span>"));
    assert_non_null(strstr(buffer_text(&page), "1 being checked"));
    buffer_release(&page);
    free(snapshot);
    sheet_init(&view);
    OK(node_status_view(&view, &store, &error));
    assert_int_equal(json_array_size(json_object_get(view.facts, "unanswered")), 1); /* 17 */
    job = json_array_get(json_object_get(view.facts, "jobs"), 1);
    assert_int_equal(json_integer_value(json_object_get(job, "being_checked")), 1);
    assert_int_equal(json_array_size(json_object_get(view.facts, "passed_over")), 1); /* 33 */
    sheet_release(&view);
    store_close(&store);
}

/* An hour without trouble forgives a failure: page, metrics and `verifier status` know it. */
static void test_a_mirror_is_forgiven_everywhere(void **state)
{
    const int64_t system_ms = (int64_t)time(NULL) * 1000;
    const int64_t rests_ms[] = {-2 * HOUR_MS, -1000, 100 * HOUR_MS};
    const char *states[3];
    struct store store;
    struct error error;
    struct sheet view;

    (void)state;
    error_init(&error);
    OK(store_open(&store, small_path("forgiven.db"), STORE_WRITE, &error));
    for (int i = 0; i < 3; i++) { /* the last one's clock was set back */
        OK(database_run(&store.sql, &error, "INSERT INTO mirrors VALUES (?, 1, 1, 9, '', 0, 1, ?)",
                        "ii", (int64_t)i, system_ms + rests_ms[i]));
    }
    sheet_init(&view);
    OK(node_status_view(&view, &store, &error));
    assert_int_equal(json_unpack(view.facts, "{s:[{s:s},{s:s},{s:s}]}", "mirrors", "state",
                                 &states[0], "state", &states[1], "state", &states[2]),
                     0);
    assert_string_equal(states[0], "good");
    assert_string_equal(states[1], "on trial");
    assert_string_equal(states[2], "on trial");
    assert_null(json_object_get(json_array_get(json_object_get(view.facts, "queue"), 0), "_ns"));
    sheet_release(&view);
    store_close(&store);
}

static void test_a_job_of_many_segments_fits_its_map(void **state)
{
    struct store store;
    struct node_snapshot *snapshot;
    struct error error;
    uint64_t number = 0;

    (void)state;
    error_init(&error);
    OK(store_open(&store, small_path("many.db"), STORE_WRITE, &error));
    open_job(&store, 1, GAME_SEGMENTS_MAX, &number);
    open_job(&store, 2, NODE_SNAPSHOT_CELLS_MAX + 1, &number);
    snapshot = look(&store);
    assert_int_equal(snapshot->job[1].segment_count, GAME_SEGMENTS_MAX);
    assert_in_range(snapshot->job[1].cell_count, 1, NODE_SNAPSHOT_CELLS_MAX);
    assert_true((uint64_t)snapshot->job[1].cell_count * snapshot->job[1].cell_segments >=
                GAME_SEGMENTS_MAX);
    assert_int_equal(snapshot->job[0].cell_segments, 2);
    assert_int_equal(snapshot->job[0].cell_count, (NODE_SNAPSHOT_CELLS_MAX + 2) / 2);
    free(snapshot);
    store_close(&store);
}

/* A job with money at stake must be on the page. */
static void test_a_job_under_claim_is_shown_before_newer_ones(void **state)
{
    struct store store;
    struct node_snapshot *snapshot;
    struct hash32 disputed = key_of(1);
    struct hash32 newest = key_of(60);
    struct error error;
    uint64_t number = 1000;

    (void)state;
    error_init(&error);
    make_store(&store, small_path("many.db"));
    for (uint8_t job = 10; job <= 60; job++) {
        open_job(&store, job, 1, &number);
    }
    snapshot = look(&store);
    assert_int_equal(snapshot->job_count, NODE_SNAPSHOT_JOBS_MAX);
    assert_true(hash32_equal(&snapshot->job[0].key, &disputed));
    assert_true(hash32_equal(&snapshot->job[1].key, &newest));
    free(snapshot);
    take(&store,
         &(struct game_event){.kind = GAME_RULED, .claim = key_of(99), .outcome = GAME_REFUTED},
         ++number);
    snapshot = look(&store);
    assert_true(hash32_equal(&snapshot->job[0].key, &newest));
    free(snapshot);
    store_close(&store);
}

static void test_the_worst_trouble_is_shown_first(void **state)
{
    static struct node_snapshot snapshot;

    (void)state;
    snapshot.now_ms = now_ms;
    snapshot.started_ms = now_ms - 1000;
    assert_null(node_snapshot_trouble(&snapshot)); /* it has just begun */
    snapshot.started_ms = now_ms - HOUR_MS;
    assert_non_null(strstr(node_snapshot_trouble(&snapshot), "sign of life"));
    snapshot.alive_ms = now_ms - 60000;
    assert_null(node_snapshot_trouble(&snapshot));
    snapshot.missed_s = now_ms / 1000 - 100;
    assert_non_null(strstr(node_snapshot_trouble(&snapshot), "a seat was missed"));
    snapshot.verdict_s = snapshot.missed_s; /* it works again */
    assert_null(node_snapshot_trouble(&snapshot));
    snapshot.verdict_s = 0;
    snapshot.missed_s = now_ms / 1000 - NODE_SNAPSHOT_MISSED_S; /* and was drawn no more */
    assert_null(node_snapshot_trouble(&snapshot));
    strcpy(snapshot.ledger_trouble, "no endpoint answers");
    assert_non_null(strstr(node_snapshot_trouble(&snapshot), "ledger"));
    strcpy(snapshot.fault, "two replays disagree");
    assert_non_null(strstr(node_snapshot_trouble(&snapshot), "nothing is signed"));
}

/* ---- the text format ---------------------------------------------------- */

static size_t name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");
}

/* Past {name="value",...}; the value's escapes are \\, \" and \n. */
static const char *past_labels(const char *at)
{
    assert_int_equal(*at, '{');
    do {
        at++;
        assert_true(name_length(at) > 0);
        at += name_length(at);
        assert_true(strncmp(at, "=\"", 2) == 0);
        for (at += 2; *at != '"'; at++) {
            assert_true(*at >= ' ' && *at <= '~');
            if (*at == '\\') {
                at++;
                assert_true(*at == '\\' || *at == '"' || *at == 'n');
            }
        }
        at++;
    } while (*at == ',');
    assert_int_equal(*at, '}');
    return at + 1;
}

/* Each family comes once, HELP and TYPE before its samples; each sample once, with a number. */
static void read_metrics(const char *text)
{
    char family[128] = "";
    char *copy = strdup(text);
    char *seen[512];
    size_t count = 0;
    char *rest = NULL;

    assert_non_null(copy);
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *at = line;
        char *end = NULL;

        if (line[0] == '#') {
            const bool help = strncmp(line, "# HELP ", 7) == 0;

            assert_true(help || strncmp(line, "# TYPE ", 7) == 0);
            if (help) {
                (void)snprintf(family, sizeof(family), "%.*s", (int)name_length(line + 7),
                               line + 7);
                continue;
            }
            assert_true(strncmp(line + 7, family, strlen(family)) == 0);
            at = line + 7 + strlen(family);
            assert_true(strcmp(at, " gauge") == 0 || strcmp(at, " counter") == 0);
            /* A counter's name says so, and no other's. */
            assert_int_equal(strcmp(at, " counter") == 0, strstr(family, "_total") != NULL);
            continue;
        }
        assert_int_equal(name_length(at), strlen(family));
        assert_true(strncmp(at, family, strlen(family)) == 0);
        at += strlen(family);
        at = *at == '{' ? past_labels(at) : at;
        assert_int_equal(*at, ' ');
        (void)strtod(at + 1, &end);
        assert_true(end > at + 1 && *end == '\0');
        line[at - line] = '\0';
        for (size_t i = 0; i < count; i++) {
            assert_string_not_equal(seen[i], line);
        }
        assert_true(count < sizeof(seen) / sizeof(seen[0]));
        seen[count++] = line;
    }
    assert_true(count > 60);
    free(copy);
}

static void metrics_of(struct buffer *text, const struct node_snapshot *snapshot)
{
    struct sheet sheet;
    struct error error;

    error_init(&error);
    buffer_init(text, STATUS_PAGE_SIZE_MAX);
    sheet_init(&sheet);
    metrics_show(&sheet, snapshot);
    sheet_metrics_write(text, &sheet);
    sheet_release(&sheet);
    OK(buffer_check(text, &error, "metrics"));
}

static void test_metrics_follow_the_text_format(void **state)
{
    struct store store;
    struct node_snapshot *snapshot;
    struct buffer text;

    (void)state;
    make_store(&store, small_path("metrics.db"));
    snapshot = look(&store);
    snapshot->has_money = true;
    snapshot->money.amounts[MONEY_EARNED] = 550000000000000040u; /* no binary number is that */
    snapshot->money.amounts[MONEY_GAS] = 7;
    snapshot->money.bonds = 3500000;
    snapshot->money.currency = currency_of_token("USDC", 6);
    metrics_of(&text, snapshot);
    read_metrics(buffer_text(&text));
    assert_non_null(strstr(buffer_text(&text), "\nlockstep_money_moved_total{as=\"earned\","
                                               "currency=\"USDC\"} 550000000000.00004\n"));
    assert_non_null(strstr(buffer_text(&text), "\nlockstep_money_moved_total{as=\"gas\","
                                               "currency=\"eth\"} 0.000000000000000007\n"));
    assert_non_null(
        strstr(buffer_text(&text), "\nlockstep_money{in=\"bonds\",currency=\"USDC\"} 3.5\n"));
    assert_non_null(
        strstr(buffer_text(&text), "\nlockstep_checks_done_total{outcome=\"proven\"} 28\n"));
    assert_non_null(strstr(buffer_text(&text), "\nlockstep_steps_proven_total 280\n"));
    assert_non_null(strstr(buffer_text(&text), "\nlockstep_node_healthy 1\n"));
    assert_non_null(strstr(buffer_text(&text),
                           "\nlockstep_mirror_bytes_total{mirror=\"https://a.example/\\\"x\\\\y\\n"
                           "<img src=x>?\"} 12345678\n"));
    assert_non_null(strstr(buffer_text(&text), "<img src=x>?\"} 3\n# HELP")); /* silent */
    assert_non_null(strstr(buffer_text(&text),
                           "\nlockstep_mirror_resting{mirror=\"https://a.example/\\\"x\\\\y\\n"
                           "<img src=x>?\"} 1\n"));
    buffer_release(&text);
    free(snapshot);
    store_close(&store);
}

static bool installed(const char *program)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

static void test_metrics_pass_promtool(void **state)
{
    struct store store;
    struct node_snapshot *snapshot;
    struct buffer text;
    FILE *tool;

    (void)state;
    if (!installed("promtool")) {
        test_skip("promtool is not installed (Debian: prometheus)");
    }
    make_store(&store, small_path("promtool.db"));
    snapshot = look(&store);
    metrics_of(&text, snapshot);
    tool = popen("promtool check metrics >&2", "w");
    assert_non_null(tool);
    assert_int_equal(fwrite(text.data, 1, text.size, tool), text.size);
    assert_int_equal(pclose(tool), 0);
    buffer_release(&text);
    free(snapshot);
    store_close(&store);
}

/* Does the solver's page write it? It stands there as a string. */
static bool is_of_solver(const char *name, size_t length)
{
    struct file_bytes source;
    struct error error;
    char quoted[128];
    bool is;

    error_init(&error);
    (void)snprintf(quoted, sizeof(quoted), "\"%.*s\"", (int)length, name);
    OK(file_read(&source, &error, "prover/node/node_page.c", 1u << 20));
    is = strstr((const char *)source.data, quoted) != NULL;
    file_bytes_release(&source);
    return is;
}

/* Every word of ours in a file: "lockstep_", letters and low lines. */
static void see_known(const char *path, const char *metrics)
{
    struct file_bytes bytes;
    struct error error;
    const char *at;
    size_t count = 0;

    error_init(&error);
    OK(file_read(&bytes, &error, path, 1u << 20));
    for (at = (const char *)bytes.data; (at = strstr(at, "lockstep_")) != NULL; count++) {
        char line[128];
        size_t length = name_length(at);

        (void)snprintf(line, sizeof(line), "# TYPE %.*s ", (int)length, at);
        assert_true(strstr(metrics, line) != NULL || is_of_solver(at, length));
        at += length;
    }
    assert_true(count > 5);
    file_bytes_release(&bytes);
}

static void test_dashboard_and_alerts_name_only_metrics_that_exist(void **state)
{
    static struct node_snapshot snapshot;
    static const struct job_view view;
    static const struct keeper_counts none;
    struct sheet sheet;
    struct buffer text;

    (void)state;
    snapshot.has_money = true;
    metrics_of(&text, &snapshot);
    sheet_init(&sheet);
    keep_metrics_show(&sheet, &none, &view);
    sheet_metrics_write(&text, &sheet);
    sheet_release(&sheet);
    see_known("packaging/grafana.json", buffer_text(&text));
    see_known("packaging/alerts.yml", buffer_text(&text));
    buffer_release(&text);
    if (installed("promtool")) {
        assert_int_equal(system("promtool check rules packaging/alerts.yml >&2"), 0);
    }
}

/* A move of one kind about a claim or a segment, that came to its end. */
static void add_ended(struct store *store, const char *name, const struct action *like,
                      enum action_state state, enum game_refusal_kind refusal)
{
    struct action action = *like;
    struct error error;

    error_init(&error);
    (void)snprintf(action.name, sizeof(action.name), "%s", name);
    OK(action_plan(store, &action, &error));
    action.refusal = refusal;
    OK(action_set(store, &action, state, 0, "", &error));
}

/* A claim of ours, whose clock ran out or not. */
static void end_claim(struct store *store, uint8_t claim, bool lost)
{
    struct game_event event = {.kind = GAME_CLAIMED,
                               .job = key_of(1),
                               .claim = key_of(claim),
                               .account = {{7}},
                               .step = claim};
    uint64_t number = 5000 + 10 * (uint64_t)claim;

    take(store, &event, ++number);
    event.kind = GAME_DEFAULTED;
    if (lost) {
        take(store, &event, ++number);
    }
    event.kind = GAME_RULED;
    take(store, &event, ++number);
}

static void test_retried_and_obsolete_moves_are_not_lost(void **state)
{
    const struct action seal = {.kind = ACTION_SEAL};
    const struct action waits = {.kind = ACTION_REVEAL, .after = "seal/full"};
    const struct action follows = {.kind = ACTION_REVEAL, .after = "seal/late"};
    const struct action won = {.kind = ACTION_CONVICT, .claim = key_of(50)};
    const struct action lost = {.kind = ACTION_CONVICT, .claim = key_of(51)};
    const struct action goes_on = {.kind = ACTION_QUERY, .claim = key_of(99)};
    const struct action settle = {.kind = ACTION_SETTLE};
    struct store store;
    struct node_snapshot *snapshot;
    struct buffer text;

    (void)state;
    make_store(&store, small_path("lost.db"));
    end_claim(&store, 50, false);
    end_claim(&store, 51, true);
    add_ended(&store, "seal/full", &seal, ACTION_REFUSED, GAME_FULL);
    add_ended(&store, "reveal/full", &waits, ACTION_LATE, GAME_REFUSED_NOT);
    add_ended(&store, "settle/1", &settle, ACTION_REFUSED, GAME_WRONG_PHASE);
    add_ended(&store, "convict/50/1", &won, ACTION_REFUSED, GAME_BAD_EVIDENCE);
    add_ended(&store, "convict/50/1/1", &won, ACTION_DONE, GAME_REFUSED_NOT);
    add_ended(&store, "ask/99/1", &goes_on, ACTION_REFUSED, GAME_BAD_QUERY);
    snapshot = look(&store);
    for (size_t kind = 0; kind < ACTION_KINDS; kind++) {
        assert_int_equal(snapshot->lost[kind], 0);
    }
    assert_int_equal(snapshot->actions[ACTION_CONVICT][ACTION_REFUSED], 1);
    free(snapshot);
    add_ended(&store, "seal/late", &seal, ACTION_LATE, GAME_REFUSED_NOT);
    add_ended(&store, "seal/early", &seal, ACTION_REFUSED, GAME_TOO_LATE);
    add_ended(&store, "reveal/late", &follows, ACTION_LATE, GAME_REFUSED_NOT);
    add_ended(&store, "convict/51/1", &lost, ACTION_REFUSED, GAME_BAD_EVIDENCE);
    add_ended(&store, "convict/51/1/1", &lost, ACTION_REFUSED, GAME_BAD_EVIDENCE);
    snapshot = look(&store);
    metrics_of(&text, snapshot);
    assert_non_null(strstr(buffer_text(&text), "\nlockstep_moves_lost{kind=\"seal\"} 2\n"));
    assert_non_null(strstr(buffer_text(&text), "\nlockstep_moves_lost{kind=\"reveal\"} 0\n"));
    assert_non_null(strstr(buffer_text(&text), "\nlockstep_moves_lost{kind=\"convict\"} 1\n"));
    buffer_release(&text);
    free(snapshot);
    store_close(&store);
}

/* ---- the page ----------------------------------------------------------- */

static void test_page_stands_alone_and_escapes_foreign_text(void **state)
{
    static const char *const nowhere[] = {"<script src", "src=\"",  "http://",
                                          "url(",        "@import", "<img",
                                          "<b>\"",       "<data>",  "alert(1)</script>"};
    struct store store;
    struct node_snapshot *snapshot;
    struct buffer page;

    (void)state;
    make_store(&store, small_path("page.db"));
    snapshot = look(&store);
    buffer_init(&page, STATUS_PAGE_SIZE_MAX);
    page_of(&page, snapshot);
    assert_int_equal(page.status, STATUS_OK);
    for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
        assert_null(strstr(buffer_text(&page), nowhere[i]));
    }
    assert_non_null(strstr(buffer_text(&page), "<title>Lockstep verifier</title>"));
    assert_non_null(strstr(buffer_text(&page), "&#60;script&#62;alert(1)&#60;/script&#62;"));
    assert_non_null(strstr(buffer_text(&page), "aria-label=\"loss after the segments"));
    assert_non_null(strstr(buffer_text(&page), "28 proven here, 1 refuted, 12 final"));
    buffer_release(&page);
    free(snapshot);
    store_close(&store);
}

/* ---- the server --------------------------------------------------------- */

static size_t keep(char *bytes, size_t size, size_t count, void *context)
{
    buffer_add(context, bytes, size * count);
    return size * count;
}

/* The code of the answer; body is the caller's to release, headers are within. */
static long query(struct buffer *body, uint16_t port, const char *path, const char *method)
{
    CURL *curl = curl_easy_init();
    char url[256];
    long code = 0;

    assert_non_null(curl);
    buffer_init(body, 16u << 20);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", port, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HEADER, 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    assert_int_equal(curl_easy_perform(curl), CURLE_OK);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_cleanup(curl);
    return code;
}

static uint64_t real_ms(void)
{
    return (uint64_t)time(NULL) * 1000;
}

static struct status_server *serve(const char *name)
{
    const char *path = small_path(name);
    char log[1200];
    struct listen_place place;
    struct status_server *server;
    struct store store;
    struct error error;

    error_init(&error);
    OK(store_open(&store, path, STORE_WRITE, &error));
    (void)snprintf(log, sizeof(log), "%s.events", path);
    event_file_open(&events, log);
    OK(store_set_event_log(&store, log, &error));
    store_close(&store);
    make_store(&store, path);
    database_close(&events);
    OK(store_set_number(&store, "started_ms", (int64_t)real_ms() - 90000, &error));
    OK(store_set_number(&store, "alive_ms", (int64_t)real_ms(), &error));
    /* The plots end now, whenever this runs. */
    OK(database_run(&store.sql, &error, "UPDATE tasks SET ended_ms = ended_ms + ?", "i",
                    (int64_t)real_ms() - (int64_t)now_ms));
    store_close(&store);
    OK(listen_place_read(&place, "0", &error));
    OK(status_server_open(&server, path, &place, &error));
    return server;
}

static void test_server_answers_what_it_has_and_refuses_the_rest(void **state)
{
    struct status_server *server = serve("server.db");
    uint16_t port = status_server_port(server);
    struct buffer body;

    (void)state;
    assert_int_equal(query(&body, port, "/", "GET"), 200);
    assert_non_null(strstr(buffer_text(&body), "Content-Security-Policy: default-src 'none'"));
    assert_non_null(strstr(buffer_text(&body), "<title>Lockstep verifier</title>"));
    buffer_release(&body);
    assert_int_equal(query(&body, port, "/metrics", "GET"), 200);
    assert_non_null(strstr(buffer_text(&body), "text/plain; version=0.0.4"));
    read_metrics(strstr(buffer_text(&body), "\r\n\r\n") + 4);
    buffer_release(&body);
    assert_int_equal(query(&body, port, "/health", "GET"), 200);
    buffer_release(&body);
    assert_int_equal(query(&body, port, "/node.db", "GET"), 404);
    buffer_release(&body);
    assert_int_equal(query(&body, port, "/%2e%2e/node.db", "GET"), 404);
    buffer_release(&body);
    assert_int_equal(query(&body, port, "/", "DELETE"), 405);
    buffer_release(&body);
    status_server_close(server);
}

static void test_server_the_page_works_in_chromium(void **state)
{
    struct status_server *server;
    struct buffer reply;
    char url[64];

    (void)state;
    if (!installed("chromium")) {
        test_skip("chromium is not installed");
    }
    server = serve("chromium.db");
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", status_server_port(server));
    browser_print(&reply, url);
    /* Errors of the page, its script and its policy would be lines of the console. */
    assert_null(strstr(buffer_text(&reply), "CONSOLE"));
    assert_non_null(strstr(buffer_text(&reply), "<title>Lockstep verifier</title>"));
    assert_non_null(strstr(buffer_text(&reply), "aria-label=\"loss after the segments"));
    buffer_release(&reply);
    status_server_close(server);
}

#define LONG_PATH                                                                                  \
    "/home/somebody/lockstep/bundles/of-november/the-text-job-with-a-long-name.run/checkpoints/"   \
    "000000000100.safetensors"

/* Frames of four widths around the page, and a script that says which boxes are too narrow. */
static void add_frames(struct buffer *file, const struct buffer *page)
{
    static const int widths[] = {390, 500, 768, 1200};

    buffer_add_text(file, "<!DOCTYPE html><meta charset=\"utf-8\">\n");
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        buffer_add_format(file, "<iframe width=\"%d\" height=\"2600\" style=\"border:0\" srcdoc=\"",
                          widths[i]);
        for (const char *at = buffer_text(page); *at != '\0'; at++) {
            if (*at == '&' || *at == '"') {
                buffer_add_format(file, "&#%d;", *at);
            } else {
                buffer_add_u8(file, (uint8_t)*at);
            }
        }
        buffer_add_text(file, "\"></iframe>\n");
    }
    buffer_add_text(
        file,
        "<script>\nonload=()=>{let bad='',seen=0;for(const f of "
        "document.querySelectorAll('iframe'))"
        "{const d=f.contentDocument,w=f.clientWidth;for(const e of d.querySelectorAll('body,body "
        "*')"
        "){if(e.closest('svg,script'))continue;seen++;if(e.getBoundingClientRect().right>w+1||"
        "e.scrollWidth>e.clientWidth+1&&getComputedStyle(e).display!='inline')bad+=w+':'+e.tagName+"
        "'.'+e.className+' ';}for(const e of d.querySelectorAll('.own'))if(e.clientWidth<w*.6)"
        "bad+=w+':narrow ';}const p=document.createElement('p');p.id='result';"
        "p.textContent=bad==''&&seen>400?'all '+'fits':'too narrow: '+bad+seen;"
        "document.body.replaceChildren(p);}\n</script>\n");
}

static void test_page_does_not_scroll_sideways_from_390_pixels_up(void **state)
{
    const char *path = small_path("widths.html");
    struct node_snapshot *snapshot;
    struct buffer page;
    struct buffer file;
    struct buffer reply;
    struct store store;
    struct error error;
    char url[1200];

    (void)state;
    if (!installed("chromium")) {
        test_skip("chromium is not installed");
    }
    error_init(&error);
    make_store(&store, small_path("widths.db"));
    OK(database_run(&store.sql, &error, "UPDATE actions SET trouble = ?", "t", LONG_PATH));
    OK(database_run(&store.sql, &error, "UPDATE mirrors SET trouble = ?", "t",
                    "stale: " LONG_PATH " is not there"));
    OK(database_run(&store.sql, &error,
                    "INSERT INTO mirrors VALUES (?, 1234567, 1, 912345678901, '', 0, 0, 0)", "t",
                    LONG_PATH));
    OK(store_set_text(&store, "owner", OWNER " at local:" LONG_PATH, &error));
    OK(store_set_text(&store, "fault", "two replays disagree: " LONG_PATH, &error));
    OK(store_put_endpoints(&store,
                           &(struct ledger_endpoint){"https://endpoint.example:8545",
                                                     "HTTP status 429: " LONG_PATH, 1},
                           1, &error));
    snapshot = look(&store);
    buffer_init(&page, STATUS_PAGE_SIZE_MAX);
    page_of(&page, snapshot);
    buffer_init(&file, 8 * STATUS_PAGE_SIZE_MAX);
    add_frames(&file, &page);
    OK(file_write(path, &error, file.data, file.size, 0600));
    (void)snprintf(url, sizeof(url), "file://%s", path);
    browser_print(&reply, url);
    if (strstr(buffer_text(&reply), "<p id=\"result\">all fits</p>") == NULL) {
        fail_msg("%s", buffer_text(&reply));
    }
    buffer_release(&reply);
    buffer_release(&file);
    buffer_release(&page);
    free(snapshot);
    store_close(&store);
}

static void test_endpoints_are_shown_with_reason_and_since_when(void **state)
{
    static const struct ledger_endpoint endpoints[] = {
        {"https://one:8545", "", 0},
        {"https://two:8545", "HTTP status 429: \"too\" many ill since requests", 1771000000},
    };
    static const char *const metrics[] = {
        "\nlockstep_ledger_endpoint_well{endpoint=\"https://one:8545\"} 1\n",
        "\nlockstep_ledger_endpoint_well{endpoint=\"https://two:8545\"} 0\n",
        "\nlockstep_ledger_endpoint_ill_since_seconds{endpoint=\"https://two:8545\",reason=\"HTTP "
        "status 429: \\\"too\\\" many ill since requests\"} 1771000000\n",
    };
    struct node_snapshot *snapshot;
    struct buffer text;
    struct store store;
    struct error error;

    (void)state;
    error_init(&error);
    make_store(&store, small_path("endpoints.db"));
    OK(store_put_endpoints(&store, endpoints, 2, &error));
    OK(store_put_endpoints(&store, endpoints, 2, &error));
    snapshot = look(&store);
    metrics_of(&text, snapshot);
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        assert_non_null(strstr(buffer_text(&text), metrics[i]));
    }
    buffer_clear(&text);
    page_of(&text, snapshot);
    assert_non_null(strstr(buffer_text(&text), "Endpoint <code>https://two:8545</code> is ill"));
    assert_null(strstr(buffer_text(&text), "https://one:8545"));
    free(snapshot);
    OK(store_put_endpoints(&store, endpoints, 1, &error));
    snapshot = look(&store);
    assert_int_equal(snapshot->endpoint_count, 1);
    free(snapshot);
    buffer_release(&text);
    store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_snapshot_is_what_the_database_says),
        cmocka_unit_test(test_a_segment_whose_check_runs_is_being_checked),
        cmocka_unit_test(test_a_mirror_is_forgiven_everywhere),
        cmocka_unit_test(test_a_job_of_many_segments_fits_its_map),
        cmocka_unit_test(test_a_job_under_claim_is_shown_before_newer_ones),
        cmocka_unit_test(test_the_worst_trouble_is_shown_first),
        cmocka_unit_test(test_endpoints_are_shown_with_reason_and_since_when),
        cmocka_unit_test(test_metrics_follow_the_text_format),
        cmocka_unit_test(test_metrics_pass_promtool),
        cmocka_unit_test(test_dashboard_and_alerts_name_only_metrics_that_exist),
        cmocka_unit_test(test_retried_and_obsolete_moves_are_not_lost),
        cmocka_unit_test(test_page_stands_alone_and_escapes_foreign_text),
        cmocka_unit_test(test_server_answers_what_it_has_and_refuses_the_rest),
        cmocka_unit_test(test_server_the_page_works_in_chromium),
        cmocka_unit_test(test_page_does_not_scroll_sideways_from_390_pixels_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
