"""Goal: every rule that an attack here is about is needed: without it the attack's test fails.

Method: each fault of the table is put into one file of the embedded game, which must have that text
exactly once. The file is compiled and linked with the rest of what this tree built and with the
attacks' program, which plays on the embedded ledger alone (on a chain where that has no such thing).
The attack that the table names must fail: in one of a few plays, since chance draws the seats.
Without a fault all attacks pass. `make soak` plays them; else it is only seen that each fault still
has its place. One alone, by words of what is wrong:
SOAK_MINUTES=1 tests/attacks/rule_mutants_slow_test.py 'slow line'.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "../.."))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.dont_write_bytecode = True

import tap  # noqa: E402

SOAK = int(os.environ.get("SOAK_MINUTES", "0")) > 0
BUILD = os.path.realpath(os.environ.get("TEST_BUILD", os.path.join(ROOT, "build")))
CC = [os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-I" + ROOT, "-w", "-fopenmp",
      "-ffp-contract=off", "-O1"]
if os.path.basename(BUILD) == "asan":
    CC.append("-fsanitize=address,undefined")
LIBRARIES = ["-lcmocka"] + (os.environ.get("TEST_LDLIBS") or
                            "-lcrypto -lcurl -lsqlite3 -ljansson -lsecp256k1 -l:libscrypt.so.0"
                            " -lmicrohttpd -lzstd -lz -ldl -lm").split()

GAME, PANEL, LEGS, RULES, REFEREE, CLAIMS, LEG, POLICY, KEEPER = (
    "chain/local/local_game.c", "chain/local/local_panel.c", "chain/local/local_legs.c",
    "chain/local/local_rules.c", "chain/local/local_referee.c", "chain/local/local_claims.c",
    "chain/game/leg.c", "chain/game/policy/policy.c", "client/keeper/keep_plan.c")
EVM = "chain/evm/ledger_evm.c"
SEATS, NODE_PANEL, SEEDS = ("verifier/node/node_seats.c", "verifier/node/node_panel.c",
                            "chain/evm/evm_seeds.c")

# Their tests are not made for both ledgers; they play in the repository's folder.
PLAIN = ("paused_token", "honeypot", "evm_seeds", "killed_solver")

# They play one test alone, where it is named.
CHOOSE = ("nodes", "honeypot", "evm_seeds", "killed_solver")

ROOMS = {"evm_seeds": "tests/chain/evm"}

PLAYS = 4

# What is wrong, where, the text, what stands in its place, the program, the attack.
FAULTS = (
    ("numbers of those who went stay", PANEL, "if (is_now && job.phase == GAME_PHASE_OPEN) {",
     "if (0) {", "panel", "dead_entries"),
    ("a panel outlives its tenure", RULES, "    job->entries = 0;\n", "", "panel",
     "entries_of_a_tenure_that_is_over"),
    ("a solver accepts in the block of the opening", GAME,
     "TRY(local_require_after(game, job->opened_at_s + terms->seal_period_s));", "", "panel",
     "a_panel_captured_in_the_block_of_the_opening"),
    ("absence costs a fee", PANEL, "TRY(local_credit(game, &entry.owner, job.terms.bond));",
     "TRY(local_credit(game, &entry.owner, job.terms.bond - job.terms.fee));", "panel",
     "blind_enlistment"),
    ("a late seat pays", PANEL, "TRY(local_credit(game, &entry.owner, job.terms.bond));",
     "TRY(local_credit(game, &entry.owner, job.terms.bond - job.terms.fee));", "panel",
     "a_seat_that_is_kept_late"),
    ("denials are paid on a final leg", LEGS,
     "if (local_get_place(tally, place) == LOCAL_PLACE_RIGHT) {",
     "if (local_get_place(tally, place) != LOCAL_PLACE_SKIPPED) {", "panel",
     "a_pool_drained_by_denials"),
    ("a silent panel voids", LEG, "(tally->rights == 0 && unseen == 0)", "0", "free_work",
     "a_panel_asleep"),
    ("a void costs the client nothing", LEG,
     "burned.escrow = less_wei(burned.stake, left * terms->reward);", "burned.escrow = 0;",
     "free_work", "a_panel_of_the_clients_accounts"),
    ("a client names any query fee", GAME, "{terms->query_fee, 0, game_query_fee_max(terms), 11},",
     "{terms->query_fee, 0, WEI_MAX, 11},", "free_work", "a_panel_that_a_void_would_pay"),
    ("a void leaves the pool alone", LEG,
     "burned.pool = match + less_wei(pool - match, fees);", "burned.pool = 0;", "free_work",
     "free_work_by_a_refusal"),
    ("commits go on after a refusal", GAME, "if (job->refused_until_s != 0) {", "if (0) {",
     "free_work", "free_work_by_a_refusal"),
    ("a vouch does not silence denials", LEG, "return tally->vouched ? 0 : tally->unseen;",
     "return tally->unseen;", "free_work", "a_rival_voids_nothing_that_is_vouched"),
    ("a refusal holds what is vouched", LEGS, "job->refused_until_s != 0 && !told->vouched &&",
     "job->refused_until_s != 0 &&", "free_work", "a_refusal_of_what_is_vouched"),
    ("a refusal holds what was over", LEGS,
     "wait_end(segment, told) + notice_s >= job->refused_until_s", "notice_s > 0", "free_work",
     "a_refusal_that_comes_too_late"),
    ("anybody vouches", LEGS, "if (!is_of_keeper(game, segment, vouch)) {", "if (0) {",
     "free_work", "a_vouch_of_somebody_else"),
    ("a stop takes the next segment too", GAME, "segments = job.committed + 1;",
     "segments = job.committed;", "free_work", "a_stop_instead_of_a_refusal"),
    ("a third of rights is enough", LEG, "(tally->rights > 0 && tally->rights >= 2 * unseen)",
     "(tally->rights > 0)", "withholding", "two_partners_in_a_panel_of_twelve"),
    ("one friend passes a last segment", LEG, "(tally->rights > 0 && tally->rights >= 2 * unseen)",
     "(tally->rights > 0)", "withholding", "serving_one_friend_of_a_small_panel"),
    ("a void burns nothing of the stake", LEG,
     "burned.stake = game_void_price(terms, open);", "burned.stake = 0;",
     "withholding", "thirty_two_bytes"),
    ("a leg is paid that is void", LEGS,
     "TRY(local_credit(game, &job->solver, job->terms.stake - lost.stake));",
     "TRY(local_credit(game, &job->solver, job->terms.stake - lost.stake + job->terms.reward));",
     "withholding", "ransom_of_the_last_state"),
    ("keepers cannot refuse", GAME, "!address_equal(&game->sender, &job.terms.keeper)", "1",
     "withholding", "a_keeper_that_refuses_what_it_did_not_get"),
    ("luck has no end", LEG, "segment->index - leg_start >= GAME_LEG_MAX - 1 ||", "", "legs",
     "endless_luck"),
    ("draws come in any order", PANEL, "if (segment.index != job->drawn) {", "if (0) {", "legs",
     "skipped_draws"),
    ("the tail is paid to who stops", LEGS,
     "TRY(local_credit(game, &job.solver, job.terms.stake - penalty));",
     "TRY(local_credit(game, &job.solver, job.terms.stake - penalty +"
     " (job.committed - job.finalized) * job.terms.reward));", "legs",
     "the_last_segment_never_comes"),
    ("the deadline covers nothing", LEG,
     "segment->time_s + terms->segment_period_s > terms->deadline_s ||", "", "legs",
     "stopping_before_the_deadline"),
    ("sleep is free", LEGS, "job.terms.stake / GAME_LATE_SHARE", "0", "legs", "accept_and_sleep"),
    ("any number may be open", GAME, "job->committed - job->finalized >= GAME_OPEN_MAX", "0",
     "legs", "commit_all_and_abandon"),
    ("a void overtakes a claim", LEGS,
     "    TRY(local_require_after(game, wait_end(segment, told)));\n"
     "    TRY(require_no_claims(game, job));\n",
     "    TRY(local_require_after(game, wait_end(segment, told)));\n", "legs",
     "a_void_to_save_a_liar"),
    ("a claim does not hold a refusal up", LEGS,
     "    TRY(require_first(game, &segment->job, segment->tally.leg_start));\n"
     "    TRY(require_no_claims(game, &segment->job));\n",
     "    TRY(require_first(game, &segment->job, segment->tally.leg_start));\n", "legs",
     "a_refusal_blocked_by_an_own_claim"),
    ("a void bars nobody", LEGS, "job->barred = true;", "", "legs",
     "a_job_that_goes_on_after_a_void"),
    ("a challenge needs no seal", REFEREE,
     "TRY(local_open_seal(game, &subject, &move->seal_salt));", "", "verdicts",
     "a_challenge_that_is_copied"),
    ("a challenger has the whole bond", PANEL,
     "TRY(local_credit(game, &game->sender, bond - bond / 2));",
     "TRY(local_credit(game, &game->sender, bond));", "verdicts",
     "a_guess_that_its_friend_challenges"),
    ("a right that was disproved counts for nothing", PANEL,
     "segment->tally.unseen++;\n    set_place(&segment->tally, place, LOCAL_PLACE_CLOSED);",
     "set_place(&segment->tally, place, LOCAL_PLACE_CLOSED);", "verdicts",
     "disproved_partners_and_then_silence"),
    ("a late seed covers nothing", LEG, "terms->seats == 0 || late ||", "terms->seats == 0 ||",
     "timing", "waiting_for_a_late_draw"),
    ("a later round pays a whole fee", LEG, "late ? fee - fee / GAME_LATER_SHARE : fee", "fee",
     "farming", "fee_farming_by_a_third_of_a_panel"),
    ("farming empties another's pool", LEG, "less_wei(terms->fee, pool / rights)", "terms->fee",
     "farming", "fee_farming_by_a_whole_panel"),
    ("the first seed draws all rounds", PANEL,
     "TRY(seed_of(game, &next.seed, &late, segment, next.height, next.time_s));",
     "late = false; next.seed = tally->seed;", "farming", "fee_farming_by_who_reads_the_seed"),
    ("a round is drawn before it is closed", PANEL,
     "if (next.height == 0 || segment->index < segment->job.finalized) {",
     "next.height = next.height == 0 ? 1 : next.height; if (0) {", "farming",
     "fee_farming_by_who_reads_the_seed"),
    ("the first unseen brings a seat too", LEG,
     "(unseen > 0 && tally->wanted > 1 ? 1 : 0)", "0", "farming", "fee_farming_by_a_whole_panel"),
    ("a vouch silences no farmer", LEG, "return tally->vouched ? 0 : tally->unseen;",
     "return tally->unseen;", "farming", "fee_farming_where_a_keeper_vouches"),
    ("silence buys no time", LEG, "unseen == 0 ? GAME_WAITS_MAX", "unseen == 0 ? 1", "slow_job",
     "a_slow_job_hides_no_lie"),
    ("silence counts as unseen", LEG, "return tally->vouched ? 0 : tally->unseen;",
     "return tally->vouched ? 0 : tally->drawn - tally->rights;", "slow_job", "a_slow_job"),
    ("one who has all is enough", LEG, "(tally->rights > 0 && tally->rights >= 2 * unseen)",
     "(tally->rights > 0)", "slow_job", "a_trickle_beside_two_friends"),
    ("a trickle is as good as bytes", LEG, "return tally->vouched ? 0 : tally->unseen;",
     "return 0;", "slow_job", "a_trickle"),
    ("nobody claims under a refusal", CLAIMS,
     "TRY(local_require_not_after(game, segment.job.refused_until_s));",
     "return local_refuse(game, GAME_TOO_LATE, 0);", "late_keeper",
     "a_lie_that_reaches_the_keeper_late"),
    ("a keeper vouches for what it had no time to look at", KEEPER,
     "(policy->replays ? known->replayed || !known->late : known->known_right)",
     "(policy->replays || known->known_right)", "late_keeper",
     "a_lie_that_reaches_the_keeper_late"),
    ("a keeper believes everybody", KEEPER,
     "(policy->replays ? known->replayed || !known->late : known->known_right)", "true",
     "late_keeper", "a_lie_that_reaches_a_keeper_that_cannot_replay"),
    ("a late vouch saves nothing", LEGS, "job->refused_until_s != 0 && !told->vouched &&",
     "job->refused_until_s != 0 &&", "late_keeper", "a_true_segment_that_reaches_the_keeper_late"),
    ("a solver has less than a leg open", POLICY,
     "most < GAME_LEG_MAX ? GAME_LEG_MAX : (uint32_t)most", "(uint32_t)most", "short_jobs",
     "three_segments_of_which_chance_looks_at_none"),
    ("the end of a short job is left to chance", LEG, "segment->index + 1 == segments ||", "",
     "short_jobs", "three_segments_that_are_lies"),
    ("a client has denied work for nothing", LEG,
     "burned.escrow = less_wei(burned.stake, left * terms->reward);", "burned.escrow = 0;",
     "short_jobs", "ten_segments_that_are_denied"),
    ("a payment that failed says nothing", EVM, "wait_for_failure(outcome);",
     "outcome->state = LEDGER_MOVE_WAITING;", "paused_token",
     "a_first_payment_of_a_paused_token_is_refused_by_name"),
    ("pay need not cover work", POLICY,
     "if (pay >= portion(cost, policy->cost_cover, POLICY_ONE)) {", "if (1) {", "nodes",
     "one_gwei"),
    ("a stranger's word reaches everything", "base/http/http_reach.c",
     "if (reach == HTTP_REACH_ANY) {", "if (1) {", "nodes", "a_node_sent_to_its_own_loopback"),
    ("a node enlists in what it has not tried", NODE_PANEL,
     "*ready = status == STATUS_OK && task.state == TASK_DONE;", "*ready = true;", "honeypot",
     "without_a_policy_a_node_locks_nothing_blindly"),
    ("any second is enough to reveal", POLICY,
     "is_long(refusal, POLICY_REVEAL_PERIOD, terms->reveal_period_s, policy->reveal_least_s,\n"
     "                   \"--reveal-period-min\") &&", "", "honeypot",
     "with_the_default_policy_it_locks_none"),
    ("a bond may be any number of fees", POLICY,
     "is_small_bond(refusal, policy, terms) &&\n           is_long(refusal, POLICY_SEAL",
     "is_long(refusal, POLICY_SEAL", "honeypot", "with_the_default_policy_it_locks_none"),
    ("roots of another job are taken", NODE_PANEL,
     "*agreed = terms_check_header(&job->terms, job->header, &why) == STATUS_OK;",
     "*agreed = true;", "honeypot", "terms_with_roots_of_another_job_get_no_bond"),
    ("every claim costs one bond", "chain/game/game.c", "terms->bond * (4 + outsiders) / 4",
     "terms->bond", "swarm", "nine_claims_at_once"),
    ("an alarm brings nothing forward", CLAIMS, "is_ahead = is_new || rank < dispute->rank;",
     "is_ahead = is_new;", "swarm", "sixteen_claims_price_nobody_out"),
    ("a full queue stays full", CLAIMS, "docket.outsiders -= !lead.seat;", "", "swarm",
     "a_full_queue_of_claims_about_another_segment"),
    ("a leader has all the time that it wants", CLAIMS,
     "dispute->lead_left_s = dispute->clock_s;", "dispute->lead_left_s = 100 * dispute->clock_s;",
     "swarm", "a_claim_in_the_last_second"),
    ("a seed is of the commit's own block", "chain/local/local_seeds.c",
     ": height + GAME_SEED_DELAY", ": height - 0", "timing",
     "a_commit_ground_with_the_proposers_random"),
    ("programs draw before the maker of the commit is far", SEEDS,
     "commits->height + seeds->delay", "commits->height + 1", "evm_seeds",
     "a_seed_comes_sixteen_blocks_behind_its_commit"),
    ("any contract may draw the seeds", SEEDS, "return memcmp(code, standing, size) == 0;",
     "return true;", "evm_seeds", "a_registry_of_strange_seeds_is_refused"),
    ("any chain has seeds", SEEDS, "if (rows[i].chain_id == chain_id) {", "if (1) {", "evm_seeds",
     "a_chain_of_unknown_seeds_is_refused"),
    ("one of those who are served is enough", LEG,
     "(tally->rights > 0 && tally->rights >= 2 * unseen)", "(tally->rights > 0)", "withholding",
     "selective_serving_at_10_percent"),
    ("ten segments need one right at the end", LEG, "segment->index + 1 == segments ||", "",
     "short_jobs", "ten_segments_of_which_chance_looks_at_a_fifth"),
    ("twenty denied segments are free", LEG,
     "burned.escrow = less_wei(burned.stake, left * terms->reward);", "burned.escrow = 0;",
     "short_jobs", "twenty_segments_that_are_denied"),
    ("what nobody has is paid", LEG, "(tally->rights == 0 && unseen == 0)", "1", "killed_solver",
     "what_is_final_is_somewhere"),
    ("a slow line denies", "verifier/node/node_checks.c",
     "result->line_works = result->line_works &&", "result->line_works = result->line_works ||",
     "nodes", "a_line_that_is_too_slow"),
    ("nobody measures a line", "verifier/node/node_checks.c", "if (bytes >= LINE_BYTES &&",
     "if (0 &&", "nodes", "a_panel_with_slow_lines"),
    ("a replay is for nothing", SEATS, "job.pool / (segment->draw.seats == 0 ? 1 : segment->draw.seats) >=",
     "job.pool + segment->terms.fee >=", "nodes", "a_pool_that_pays_no_more"),
)

# What is wrong above, played by real nodes too: the attack of nodes_test.c that fails.
NODES = {
    "numbers of those who went stay": "dead_entries",
    "absence costs a fee": "blind_enlistment",
    "a late seat pays": "a_solver_that_serves_too_late",
    "a silent panel voids": "a_panel_of_the_client_asleep",
    "a vouch does not silence denials": "a_panel_that_denies_what_the_keeper_has",
    "a third of rights is enough": "two_partners_in_a_panel_of_twelve",
    "a leg is paid that is void": "ransom_of_the_last_state",
    "the tail is paid to who stops": "the_last_segment_never_comes",
    "a late seed covers nothing": "a_lie_that_waits_for_a_late_draw",
    "a challenge needs no seal": "a_challenge_that_is_copied",
}
FAULTS += tuple(fault[:4] + ("nodes", NODES[fault[0]]) for fault in FAULTS if fault[0] in NODES)


def call(command, where):
    return subprocess.run(command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)


def need(done, what):
    assert done.returncode == 0, "%s: %s" % (what, done.stdout[-2000:])
    return done.stdout


class Bench:
    """Programs of attacks that are linked with objects of our own; they run where no chain is."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_object(self, program):
        made = self.path(program + "_test.o")
        if not os.path.exists(made):
            source = os.path.join(ROOT, ROOMS.get(program, "tests/attacks"), program + "_test.c")
            need(call(CC + ["-c", "-o", made, source], ROOT), source)
        return made

    def play(self, program, objects, attack="*"):
        """The names of the attacks that failed."""
        made = self.path("play")
        support = [path for path in glob.glob(os.path.join(BUILD, "tests/support/**/*.o"),
                                              recursive=True) if "fuzz_replay" not in path]
        archive = self.path("support.a")
        if not os.path.exists(archive):
            need(call(["ar", "rcs", archive, *support], ROOT), "ar")
        need(call(CC + ["-o", made, self.test_object(program), *objects, "-Wl,--start-group",
                        archive, os.path.join(BUILD, "liblockstep.a"), "-Wl,--end-group",
                        *LIBRARIES], ROOT), "link")
        which = [] if program not in CHOOSE else [
            "*" + attack + ("" if program in PLAIN else "_on_the_embedded_ledger")]
        said = call(["env", "CMOCKA_MESSAGE_OUTPUT=TAP", "TMPDIR=" + self.folder, made, *which],
                    ROOT if program in PLAIN else self.folder).stdout
        name = r" \d+ - test_(\w+)" if program in PLAIN else (
            r" \d+ - test_(\w+)_on_the_embedded_ledger")
        assert re.search(r"^(?:not )?ok" + name, said, re.M), said[-2000:]
        return re.findall(r"^not ok" + name, said, re.M)

    def fault(self, path, text, replacement):
        code = code_with(path, text)
        source, made = self.path("fault.c"), self.path("fault.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write(code.replace(text, replacement))
        need(call(CC + ["-c", "-o", made, source], ROOT), path)
        return made


bench = None


def code_with(path, text):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        code = file.read()
    assert code.count(text) == 1, "%s does not have once: %s" % (path, text)
    return code


def every_fault_has_its_place():
    for fault in FAULTS:
        code_with(fault[1], fault[2])


def without_faults(faults):
    def without_a_fault_all_attacks_pass():
        for program, attack in sorted({(fault[4], fault[5] if fault[4] in CHOOSE else "*")
                                       for fault in faults}):
            failed = bench.play(program, [], attack)
            assert not failed, (program, failed)

    return without_a_fault_all_attacks_pass


def test_of(fault):
    what, path, text, replacement, program, attack = fault

    def test():
        made = bench.fault(path, text, replacement)
        assert any(attack in bench.play(program, [made], attack) for _ in range(PLAYS)), (
            attack + " passed")

    test.__name__ = "%s: %s" % (attack, what)
    return test


def main():
    global bench
    if not SOAK:
        return tap.run([every_fault_has_its_place])
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        words = sys.argv[1:] or [""]
        faults = [fault for fault in FAULTS if any(word in fault[0] for word in words)]
        return tap.run([without_faults(faults)] + [test_of(fault) for fault in faults])


if __name__ == "__main__":
    sys.exit(main())
