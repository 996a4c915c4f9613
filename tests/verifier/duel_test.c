/*
 * Goal: a solver that lies in one number is convicted by what it answers, or by the clock where it
 * falls silent, at every point, whatever the node goes through.
 * Method: the real node with its children against a solver whose trace holds the lie that its
 * committed state shows; every move goes through the embedded ledger, and the money is counted to
 * the wei. Honest solvers that are accused: tests/prover/respond_test.c.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"
#include "proofs/question.h"
#include "proofs/replay.h"
#include "proofs/state_root.h"
#include "tests/support/liar.h"
#include "tests/support/market.h"

enum {
    STEPS = 12,
    SEGMENT = 4,
    ROUNDS_MAX = 20000,
    STARTS_MAX = 4,
    RUNS_SOAK = 120,
    RUNS = 5,
};

#define STAKE      (2 * WEI_PER_ETHER)
#define CLAIM_BOND (WEI_PER_ETHER / 10)

static struct job *small_job(enum model_kind kind, uint64_t seed)
{
    struct small_job_options options;

    small_job_of_kind(&options, kind);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    options.model.seed = seed;
    return small_job_new(&options);
}

static void check(enum status status, const struct error *error)
{
    if (status != STATUS_OK) {
        fail_msg("%s", error->text);
    }
}

/* ---- a solver that lies in one number and stands by it ---------------------- */

struct cheat_at {
    uint64_t step;
    bool lies;        /* false: the step is true, and should have been the last */
    struct lie state; /* item: the state after the step, by its number */
    struct lie trace; /* the same number where the trace holds it */
};

/* A float state that the step changes, and the item that holds its next value. */
static struct cheat_at choose_lie(const struct job *job, uint64_t step, uint64_t *random)
{
    const struct tape *tape = job->tape;
    struct cheat_at cheat = {.step = step, .lies = true};
    uint32_t *next = NULL;
    uint32_t state = (uint32_t)test_random_below(random, tape->state_count);
    struct error error;

    error_init(&error);
    check(trace_next_items(&next, tape, &error), &error);
    while (tape->tensors[tape->states[state].before].dtype != DTYPE_F32 || next[state] == state) {
        state = (state + 1) % tape->state_count;
    }
    cheat.state.item = state;
    cheat.state.element =
        test_random_below(random, tape->tensors[tape->states[state].before].count);
    cheat.trace = cheat.state;
    cheat.trace.item = next[state];
    free(next);
    return cheat;
}

static void record_step(struct bundle *bundle, struct run *run, uint64_t step)
{
    struct bundle_step entry = {.step = step, .microjoules = BUNDLE_ENERGY_UNKNOWN};
    struct error error;

    error_init(&error);
    check(run_loss(&entry.loss_bits, run, &error), &error);
    check(machine_state_root(&entry.root, run->machine, &error), &error);
    check(bundle_record(bundle, &entry, &error), &error);
    if ((step + 1) % SEGMENT == 0) {
        check(bundle_checkpoint_write(bundle, run->machine, step + 1, &error), &error);
    }
}

static void lie_in_state(struct run *run, const struct lie *lie)
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

/* The whole bundle, with the lie. Takes job. */
static void write_bundle(const char *path, struct job *job, const struct cheat_at *cheat)
{
    struct bundle *bundle = NULL;
    struct run run;
    struct error error;

    error_init(&error);
    check(bundle_create(&bundle, path, job, &error), &error);
    small_run_open(&run, bundle_job(bundle), isa_best(), 1, false);
    small_run_begin(&run);
    for (uint64_t at = 0; at < STEPS; at++) {
        small_run_step(&run);
        if (cheat->lies && at == cheat->step) {
            lie_in_state(&run, &cheat->state);
        }
        record_step(bundle, &run, at);
    }
    run_close(&run);
    bundle_close(bundle);
}

/* What the liar answers from. */
struct accused {
    struct market *market;
    struct hash32 job;
    struct bundle *bundle;
    struct run run;
    struct liar liar;
    bool lies;
    uint64_t step;
    struct teller teller;
    uint32_t moves;
};

static void accused_open(struct accused *accused, struct market *market, const struct hash32 *job,
                         const char *path, const struct cheat_at *cheat)
{
    const struct replay_options replay = {.threads = 1};
    struct machine_options traced;
    struct error error;

    error_init(&error);
    *accused = (struct accused){.market = market, .job = *job};
    check(bundle_open(&accused->bundle, path, BUNDLE_READ, &error), &error);
    small_run_open(&accused->run, bundle_job(accused->bundle), isa_best(), 1, false);
    check(replay_reach(&accused->run, accused->bundle, cheat->step, &replay, &error), &error);
    traced = accused->run.options;
    traced.trace = true;
    check(run_reopen(&accused->run, &traced, &error), &error);
    accused->lies = cheat->lies;
    accused->step = cheat->step;
    if (accused->lies) {
        liar_open(&accused->liar, accused->run.machine, &cheat->trace);
    }
    check(teller_open(&accused->teller,
                      accused->lies ? &accused->liar.machine : accused->run.machine, &error),
          &error);
}

static void accused_close(struct accused *accused)
{
    teller_close(&accused->teller);
    if (accused->lies) {
        liar_close(&accused->liar);
    }
    run_close(&accused->run);
    bundle_close(accused->bundle);
}

static void tell(struct accused *accused, const char *name, const struct hash32 *claim,
                 const struct game_bytes *payload)
{
    static uint8_t bytes[TELL_BYTES_MAX];
    struct asked asked;
    struct error error;
    size_t size = 0;

    error_init(&error);
    assert_int_equal(asked_read(&asked, payload->bytes, payload->size), STATUS_OK);
    check(teller_answer(bytes, &size, &accused->teller, &asked.ask, &error), &error);
    check(ledger_tell(accused->market->ledgers[MARKET_SOLVER], name, claim, payload, bytes, size,
                      &error),
          &error);
}

/* Answers what is the liar's to answer now. */
static void accused_round(struct accused *accused)
{
    struct ledger *ledger = accused->market->ledgers[MARKET_SOLVER];
    struct ledger_entry entry = {0};
    struct ledger_claim claim;
    struct hash32 key = {{0}};
    uint8_t payload[GAME_ASKED_MAX];
    struct game_bytes asked = {payload, 0};
    bool claimed = false;
    struct error error;
    char name[64];

    error_init(&error);
    check(ledger_work(ledger, &error), &error);
    while (ledger_next(ledger, &entry, entry.number, 0, &error) == STATUS_OK) {
        if (entry.event.kind == GAME_CLAIMED && hash32_equal(&entry.event.job, &accused->job) &&
            (uint64_t)entry.event.index * SEGMENT + entry.event.step == accused->step) {
            claimed = true;
            key = entry.event.claim;
        } else if (entry.event.kind == GAME_ASKED && hash32_equal(&entry.event.claim, &key)) {
            asked.size = entry.event.payload.size;
            memcpy(payload, entry.event.payload.bytes, asked.size);
        }
    }
    if (!claimed) {
        return;
    }
    check(ledger_get_claim(ledger, &claim, &key, &error), &error);
    if (claim.turn != GAME_TURN_ACCUSED || claim.phase == GAME_CLAIM_CLOSED) {
        return;
    }
    (void)snprintf(name, sizeof(name), "liar %02x%02x%02x%02x %u %d", key.bytes[0], key.bytes[1],
                   key.bytes[2], key.bytes[3], claim.turns, claim.phase);
    if (claim.phase == GAME_CLAIM_CALLED) {
        check(ledger_answer(ledger, name, &key, &accused->teller.trace.root, &error), &error);
    } else {
        tell(accused, name, &key, &asked);
    }
}

/* ---- the play ------------------------------------------------------------- */

static void round_of_node(struct market_node *node)
{
    struct error error;
    bool busy;

    error_init(&error);
    check(node_round(&node->node, &busy, &error), &error);
    (void)usleep(2000);
}

static uint32_t count_answers(struct market *market)
{
    return market_count(market, GAME_ANSWERED, NULL) + market_count(market, GAME_TOLD, NULL);
}

struct play {
    uint32_t silent_after; /* answers that the accused gives before it falls silent */
    uint32_t crash_every;  /* rounds between two crashes of the node; 0: none */
};

static uint64_t last_entry(struct market *market)
{
    struct ledger_entry entry = {0};
    struct error error;

    error_init(&error);
    (void)!ledger_catch_up(market->ledgers[MARKET_CLIENT], &error);
    while (ledger_next(market->ledgers[MARKET_CLIENT], &entry, entry.number, 0, &error) ==
           STATUS_OK) {
    }
    return entry.number;
}

/* How the node lives until it crashes. */
struct life {
    uint32_t rounds;
    uint32_t rounds_max; /* 0: for ever */
    uint64_t entry;      /* the ledger's last when it began */
};

/* Its children are killed wherever they are. A life in which nothing was done was too short for
 * this machine as it is now: the next one is longer. */
static void crash_at_end(struct life *life, struct market *market, struct market_node *node,
                         const struct play *play)
{
    uint64_t entry;

    if (life->rounds_max == 0 || ++life->rounds < life->rounds_max) {
        return;
    }
    market_node_close(node);
    market_node_open(node);
    entry = last_entry(market);
    life->rounds_max = entry > life->entry ? play->crash_every : 2 * life->rounds_max;
    life->rounds = 0;
    life->entry = entry;
}

/* Until the accused is convicted. */
static void play_out(struct market *market, struct market_node *node, struct accused *accused,
                     const struct play *play)
{
    uint32_t convicted = market_count(market, GAME_CONVICTED, NULL);
    uint32_t claims = market_count(market, GAME_CLAIMED, NULL);
    uint32_t answered = count_answers(market);
    struct life life = {.rounds_max = play->crash_every};
    uint32_t round = 0;

    market_node_open(node);
    while (market_count(market, GAME_CONVICTED, NULL) == convicted) {
        round_of_node(node);
        if (count_answers(market) - answered < play->silent_after) {
            accused_round(accused);
        } else if (node->node.running_count == 0 &&
                   market_count(market, GAME_CLAIMED, NULL) > claims) {
            market_pass_time(market, MARKET_RESPONSE_S / 12);
        }
        /* A child may take as long as it wants: no time passes for it. */
        if (node->node.running_count == 0) {
            assert_true(++round < ROUNDS_MAX);
            if (round % 64 == 0) {
                market_pass_time(market, 1);
            }
        }
        crash_at_end(&life, market, node, play);
    }
    market_node_close(node);
    /* Whatever comes after an infinity is wrong too, and may be claimed as well. */
    if (accused->lies) {
        assert_int_equal(market_count(market, GAME_CLAIMED, NULL), claims + 1);
    }
}

/* A mirror that has what the liar says of the list of its trace. */
static void serve_first_answer(struct accused *accused, const char *mirror, uint64_t step)
{
    static uint8_t bytes[TELL_BYTES_MAX];
    const struct ask ask = {.kind = ASK_LIST, .list = ASK_TRACE};
    char job[HEX_SIZE(DIGEST_SIZE)];
    char folder[700];
    char path[800];
    struct error error;
    size_t size = 0;

    error_init(&error);
    hex_encode(job, bundle_job(accused->bundle)->id.bytes, DIGEST_SIZE);
    (void)snprintf(folder, sizeof(folder), "%.400s/v1/jobs/%s/trace/%llu/list", mirror, job,
                   (unsigned long long)step);
    check(file_make_folder(folder, &error, 0700), &error);
    (void)snprintf(path, sizeof(path), "%s/trace", folder);
    check(teller_answer(bytes, &size, &accused->teller, &ask, &error), &error);
    check(file_write(path, &error, bytes, size, 0600), &error);
}

/* A job whose solver lies, convicted. The claimant has its bond back and half of the stake. */
static void convict_of(struct market *market, struct job *job, const struct cheat_at *cheat,
                       const struct play *play, const char *second_mirror)
{
    wei owed = market_owed(market, MARKET_VERIFIER);
    struct market_node node;
    struct accused accused;
    struct hash32 key;
    const char *path;
    char name[64];

    (void)snprintf(name, sizeof(name), "duel-%02x%02x%02x%02x-%u", job->id.bytes[0],
                   job->id.bytes[1], job->id.bytes[2], job->id.bytes[3], market->moves);
    path = small_path(name);
    write_bundle(path, job, cheat);
    key = market_commit(market, path);
    market_node_defaults(&node, market, path);
    node.options.mode = NODE_DEFEND;
    accused_open(&accused, market, &key, path, cheat);
    if (second_mirror != NULL) {
        serve_first_answer(&accused, second_mirror, cheat->step);
        node.mirrors[node.options.mirror_count++] = second_mirror;
    }
    play_out(market, &node, &accused, play);
    accused_close(&accused);
    assert_true(market_owed(market, MARKET_VERIFIER) - owed == CLAIM_BOND + STAKE / 2);
    assert_int_equal(market_job(market, &key).phase, GAME_PHASE_OPEN);
    assert_int_equal(market_job(market, &key).epoch, 1);
}

static void convict(struct market *market, uint64_t number, enum model_kind kind, uint64_t step,
                    const struct play *play, const char *second_mirror)
{
    struct job *job = small_job(kind, 100 + number);
    struct cheat_at cheat = choose_lie(job, step, &number);

    convict_of(market, job, &cheat, play, second_mirror);
}

/* ---- tests ---------------------------------------------------------------- */

static void test_a_liar_that_answers_is_convicted_by_its_answers(void **state)
{
    static const struct play play = {.silent_after = UINT32_MAX};
    uint64_t runs = test_share(RUNS_SOAK, RUNS);
    struct market market;

    (void)state;
    market_open(&market, true, "convict");
    for (uint64_t i = 0; i < runs; i++) {
        uint32_t told = market_count(&market, GAME_TOLD, NULL);
        uint32_t answered = market_count(&market, GAME_ANSWERED, NULL);
        uint32_t ruled = market_count(&market, GAME_RULED, NULL);

        convict(&market, i, (enum model_kind)(i % MODEL_COUNT), i * 5 % STEPS, &play, NULL);
        assert_int_equal(market_count(&market, GAME_ANSWERED, NULL), answered + 1);
        assert_true(market_count(&market, GAME_TOLD, NULL) >= told + 2);
        assert_int_equal(market_count(&market, GAME_RULED, NULL), ruled + 1);
    }
    market_close(&market);
}

/* What a mirror has told need not be asked on the ledger. */
static void test_what_is_served_is_not_asked(void **state)
{
    static const struct play play = {.silent_after = UINT32_MAX};
    const char *mirror = small_path("mirror");
    uint32_t alone;
    struct market market;

    (void)state;
    market_open(&market, true, "served");
    convict(&market, 500, MODEL_MLP, 5, &play, NULL);
    alone = market_count(&market, GAME_ASKED, NULL);
    convict(&market, 500, MODEL_MLP, 5, &play, mirror);
    assert_int_equal(market_count(&market, GAME_ASKED, NULL), 2 * alone - 1);
    market_close(&market);
}

/* Silent at once, after the trace root, and after the first thing that it was asked. */
static void test_a_liar_that_falls_silent_is_convicted_by_the_clock(void **state)
{
    struct market market;

    (void)state;
    market_open(&market, true, "silent");
    for (uint32_t answered = 0; answered < 3; answered++) {
        const struct play play = {.silent_after = answered};

        convict(&market, 1000 + answered, MODEL_MLP, 5, &play, NULL);
    }
    market_close(&market);
}

static void test_a_node_that_crashes_again_and_again_convicts(void **state)
{
    struct market market;

    (void)state;
    market_open(&market, true, "crash");
    for (uint32_t every = 40; every <= 120; every += 40) {
        const struct play play = {.silent_after = UINT32_MAX, .crash_every = every};

        convict(&market, 2000 + every, MODEL_MLP, 6, &play, NULL);
    }
    market_close(&market);
}

/* The first step after which the state is not finite. */
static uint64_t find_divergence(const struct job *job)
{
    struct run run;
    struct digest root;
    struct error error;
    bool finite = true;
    uint64_t step = 0;

    error_init(&error);
    small_run_open(&run, job, isa_best(), 1, false);
    small_run_begin(&run);
    for (; finite; step++) {
        small_run_step(&run);
        check(state_root_find(&root, &finite, run.machine, 1, &error), &error);
    }
    run_close(&run);
    return step - 1;
}

static void test_a_training_that_went_on_after_an_infinity_is_convicted(void **state)
{
    static const struct play play = {.silent_after = UINT32_MAX};
    struct small_job_options options;
    struct cheat_at cheat = {0};
    struct market market;
    struct job *job;

    (void)state;
    market_open(&market, true, "infinite");
    small_job_diverging(&options);
    options.steps = STEPS;
    options.segment_length = SEGMENT;
    job = small_job_new(&options);
    cheat.step = find_divergence(job);
    assert_true(cheat.step < STEPS - 1);
    convict_of(&market, job, &cheat, &play, NULL);
    assert_int_equal(market_count(&market, GAME_ANSWERED, NULL), 1);
    market_close(&market);
}

static void test_a_liar_is_convicted_on_a_chain(void **state)
{
    static const struct play play = {.silent_after = UINT32_MAX};
    struct market market;

    (void)state;
    market_open(&market, false, "chain");
    convict(&market, 3000, MODEL_MLP, 6, &play, NULL);
    market_close(&market);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_liar_that_answers_is_convicted_by_its_answers),
        cmocka_unit_test(test_what_is_served_is_not_asked),
        cmocka_unit_test(test_a_liar_that_falls_silent_is_convicted_by_the_clock),
        cmocka_unit_test(test_a_node_that_crashes_again_and_again_convicts),
        cmocka_unit_test(test_a_training_that_went_on_after_an_infinity_is_convicted),
        cmocka_unit_test(test_a_liar_is_convicted_on_a_chain),
    };

    if (workers_asked(argc, argv)) {
        return workers_serve();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
