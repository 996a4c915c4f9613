/* defendant.c - see defendant.h. */
#include "tests/support/dispute/defendant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rules/rule.h"
#include "proofs/commit/state_root.h"
#include "proofs/dispute/fraud_proof.h"
#include "proofs/dispute/ledger_query.h"
#include "proofs/run/replay.h"
#include "tests/support/dispute/forgery.h"
#include "tests/support/test.h"

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

struct job *defendant_job_of(struct small_job_options *options, uint64_t seed)
{
    options->steps = DEFENDANT_STEPS;
    options->segment_length = DEFENDANT_SEGMENT;
    options->model.seed = seed;
    return small_job_new(options);
}

struct job *defendant_job(enum model_kind kind, uint64_t seed)
{
    struct small_job_options options;

    small_job_of_kind(&options, kind);
    return defendant_job_of(&options, seed);
}

/* ---- the lie ------------------------------------------------------------------ */

struct defendant_lie defendant_choose(const struct job *job, uint64_t step, uint64_t *random)
{
    const struct tape *tape = job->tape;
    struct defendant_lie lie = {.step = step, .in_state = true, .in_trace = true};
    uint32_t *next = NULL;
    uint32_t state = (uint32_t)test_random_below(random, tape->state_count);
    struct error error;

    error_init(&error);
    check(trace_next_items(&next, tape, &error), &error);
    while (tape->tensors[tape->states[state].before].dtype != DTYPE_F32 || next[state] == state) {
        state = (state + 1) % tape->state_count;
    }
    lie.state.item = state;
    lie.state.element = test_random_below(random, tape->tensors[tape->states[state].before].count);
    lie.trace = lie.state;
    lie.trace.item = next[state];
    free(next);
    return lie;
}

uint32_t defendant_longest_sum(const struct tape *tape, uint64_t least)
{
    struct rule_axis longest = {0};
    uint32_t item = 0;

    for (uint32_t op = 0; op < tape->op_count; op++) {
        struct rule_axis axis;

        rule_axis_of(&axis, &tape->ops[op], 0, 0);
        if (tape->ops[op].kind == OP_CONTRACT && axis.length > longest.length) {
            longest = axis;
            item = trace_item_of_output(tape, (struct op_turn){op, 0}, 0);
        }
    }
    assert_true(longest.length >= least);
    return item;
}

static void record_step(struct bundle *bundle, struct run *run, uint64_t step)
{
    struct bundle_step entry = {.step = step, .microjoules = BUNDLE_ENERGY_UNKNOWN};
    struct error error;

    error_init(&error);
    check(run_loss(&entry.loss_bits, run, &error), &error);
    check(state_root_of(&entry.root, run->machine, &error), &error);
    check(bundle_record(bundle, &entry, &error), &error);
    if ((step + 1) % DEFENDANT_SEGMENT == 0) {
        check(bundle_checkpoint_write(bundle, run->machine, step + 1, &error), &error);
    }
}

static void fault_injection_in_state(struct run *run, const struct lie *lie)
{
    uint32_t id = run->job->tape->states[lie->item].before;
    const struct tensor *tensor = &run->job->tape->tensors[id];
    uint8_t *bytes = calloc(1, commit_tensor_size(tensor));
    struct error error;

    error_init(&error);
    assert_non_null(bytes);
    check(run->machine->backend->read(run->machine, id, bytes, &error), &error);
    liar_lie(bytes, tensor, lie);
    check(run->machine->backend->write(run->machine, id, bytes, &error), &error);
    free(bytes);
}

void defendant_write(const char *path, struct job *job, const struct defendant_lie *lie)
{
    struct bundle *bundle = NULL;
    struct run run;
    struct error error;

    error_init(&error);
    check(bundle_create(&bundle, path, job, &error), &error);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    small_run_begin(&run);
    for (uint64_t at = 0; at < bundle_job(bundle)->steps; at++) {
        small_run_step(&run);
        if (lie->in_state && at == lie->step) {
            fault_injection_in_state(&run, &lie->state);
        }
        record_step(bundle, &run, at);
    }
    run_close(&run);
    bundle_close(bundle);
}

/* ---- answering ------------------------------------------------------------------ */

/* Before the step, in trace mode. */
static void reach(struct run *run, const struct defendant *accused)
{
    const struct replay_options replay = {.threads = 1};
    struct machine_options traced;
    struct error error;

    error_init(&error);
    small_run_open(run, bundle_job(accused->bundle), isa_best(), 1, false);
    check(replay_reach(run, accused->bundle, accused->lie.step, &replay, &error), &error);
    traced = run->options;
    traced.trace = true;
    check(run_reopen(run, &traced, &error), &error);
}

static bool only_in_state(const struct defendant *accused)
{
    return accused->lie.in_state && !accused->lie.in_trace;
}

void defendant_open(struct defendant *accused, struct market *market, enum market_player player,
                    const struct hash32 *job, const char *path, const struct defendant_lie *lie)
{
    struct error error;

    error_init(&error);
    *accused = (struct defendant){.market = market, .player = player, .job = *job, .lie = *lie};
    check(bundle_open(&accused->bundle, path, BUNDLE_READ, &error), &error);
    reach(&accused->run, accused);
    if (lie->in_trace) {
        liar_open(&accused->liar, accused->run.machine, &lie->trace);
    }
    check(trace_server_open(&accused->server,
                            lie->in_trace ? &accused->liar.machine : accused->run.machine, &error),
          &error);
    if (only_in_state(accused)) {
        reach(&accused->state_run, accused);
        liar_open(&accused->liar, accused->state_run.machine, &lie->trace);
        check(trace_server_open(&accused->state_server, &accused->liar.machine, &error), &error);
    }
}

void defendant_close(struct defendant *accused)
{
    trace_server_close(&accused->server);
    if (only_in_state(accused)) {
        trace_server_close(&accused->state_server);
    }
    if (accused->lie.in_trace || only_in_state(accused)) {
        liar_close(&accused->liar);
    }
    if (only_in_state(accused)) {
        run_close(&accused->state_run);
    }
    run_close(&accused->run);
    bundle_close(accused->bundle);
}

/* Parts that come to what it committed to, true or not. */
static void forge(struct buffer *reply, const struct partial_sums_target *queried)
{
    struct partial_sums_reply read;
    uint64_t random = 1;
    uint32_t part;

    if (partial_sums_check(&read, queried, reply->data, reply->size) != VERDICT_VALID) {
        assert_true(forgery_bend(reply, &part, queried, &random));
    }
}

static void tell(struct defendant *accused, const char *name, const struct hash32 *claim,
                 const struct game_bytes *payload)
{
    struct evidence_given given;
    struct buffer reply;
    struct ledger_queried queried;
    struct error error;

    error_init(&error);
    assert_int_equal(ledger_queried_read(&queried, payload->bytes, payload->size), STATUS_OK);
    if (queried.query.kind == TRACE_QUERY_DIVERGED) {
        return; /* no number that it could show */
    }
    run_given(&given, &accused->run);
    buffer_init(&reply, GAME_REPLY_MAX);
    check(fraud_proof_reply(&reply,
                            only_in_state(accused) && queried.query.list == TRACE_QUERY_NEXT_STATE
                                ? &accused->state_server
                                : &accused->server,
                            &given, &queried.query, &queried.parts.range, &error),
          &error);
    if (queried.query.kind == TRACE_QUERY_PARTS) {
        forge(&reply, &queried.parts);
    }
    check(ledger_reply(accused->market->ledgers[accused->player], name, claim, payload, reply.data,
                       reply.size, &error),
          &error);
    buffer_release(&reply);
}

/* Of a claim by its key: the last one against the accused's step, and what was asked last. */
struct charge {
    bool made;
    struct hash32 key;
    uint8_t bytes[GAME_QUERIED_MAX];
    struct game_bytes queried;
};

static bool is_against(const struct defendant *accused, const struct game_event *event)
{
    return hash32_equal(&event->job, &accused->job) && event->kind == GAME_CLAIMED &&
           (uint64_t)event->index * DEFENDANT_SEGMENT + event->step == accused->lie.step;
}

static void read_charge(struct charge *charge, struct defendant *accused)
{
    struct ledger *ledger = accused->market->ledgers[accused->player];
    struct ledger_entry entry = {0};
    struct error error;

    error_init(&error);
    memset(charge, 0, sizeof(*charge));
    charge->queried.bytes = charge->bytes;
    check(ledger_catch_up(ledger, &error), &error);
    while (ledger_next(ledger, &entry, entry.number, 0, &error) == STATUS_OK) {
        if (entry.kind != LEDGER_EVENT) {
            continue;
        }
        if (is_against(accused, &entry.event)) {
            charge->made = true;
            charge->key = entry.event.claim;
        } else if (entry.event.kind == GAME_QUERIED &&
                   hash32_equal(&entry.event.claim, &charge->key)) {
            charge->queried.size = entry.event.payload.size;
            memcpy(charge->bytes, entry.event.payload.bytes, charge->queried.size);
        }
    }
}

void defendant_round(struct defendant *accused)
{
    struct ledger *ledger = accused->market->ledgers[accused->player];
    struct ledger_claim claim;
    struct charge charge;
    struct hash32 asked;
    struct error error;
    char name[96];

    error_init(&error);
    check(ledger_work(ledger, &error), &error);
    read_charge(&charge, accused);
    if (!charge.made) {
        return;
    }
    check(ledger_get_claim(ledger, &claim, &charge.key, &error), &error);
    if (claim.turn != GAME_TURN_ACCUSED || claim.phase == GAME_CLAIM_CLOSED) {
        return;
    }
    asked = keccak256(charge.queried.bytes, charge.queried.size);
    (void)snprintf(name, sizeof(name), "liar %02x%02x%02x%02x %02x%02x%02x%02x %llu %d",
                   charge.key.bytes[0], charge.key.bytes[1], charge.key.bytes[2],
                   charge.key.bytes[3], asked.bytes[0], asked.bytes[1], asked.bytes[2],
                   asked.bytes[3], (unsigned long long)claim.since_s, claim.phase);
    if (claim.phase == GAME_CLAIM_CALLED) {
        check(ledger_answer(ledger, name, &charge.key, &accused->server.trace.root, &error),
              &error);
    } else if (charge.queried.size > 0) {
        tell(accused, name, &charge.key, &charge.queried);
    }
}
