"""Goal: a keeper keeps strangers from taking anything of its client: it vouches for what it has, replays
what nobody found right, claims a lie, and refuses what it could not have. Every wei is accounted for.
Method: the built program as client, keeper, solver and cheat on an embedded ledger whose clock the test
sets, and on a real EVM node; the panel enlists and then sleeps, so that all hangs on the keeper."""

import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

import town
from town import BOND, DATA, ETHER, PERIOD_S, PURSE, REWARD, SEGMENTS, STAKE, Town, main

PEOPLE = ["client", "keeper", "solver", "verifier"]
GAS = ETHER // 5  # that a person pays at most on a chain


def open_kept(here, *more):
    job = here.new_job("a.job")
    key = here.open_job(job, "--keeper", here.people["keeper"], *more)
    return job, key


def keep(here, key, *more, who="keeper"):
    """Returns the process, and what its page is."""
    keeper = here.start(who, "job", "keep", key, "--serve", "127.0.0.1:0", "--poll", "1s",
                        "--page", "0", "--mirror", here.mirror, "--data", DATA, *more)
    here.until(lambda: "keeping job" in keeper.said(), "the keeper is there")
    page = re.search(r"the keeper at (\S+)", keeper.said()).group(1)
    here.until(lambda: is_well(page), "the keeper has the job file, and its mirror answers")
    return keeper, page


def is_well(page):
    try:
        return get(page + "health")
    except urllib.error.HTTPError:
        return False


def get(url):
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        url, timeout=town.WAIT_MAX_S).read().decode()


def serve_folder(here, who, job, folder):
    """Somebody serves the job file, its data and what lies in a folder. Returns where."""
    server = here.start(who, "job", "serve", job, "--data", DATA, "--serve", "127.0.0.1:0",
                        "--folder", folder, "--json")
    here.until(lambda: "serving" in server.said(), "%s serves" % who)
    return re.search(r'"serving": *"([^"]+)"', server.said()).group(1)


def serve_job(here, job):
    here.mirror = serve_folder(here, "client", job, here.path("served"))


def all_money(here):
    """What everybody has, and what the ledger still owes."""
    return sum(here.money(who) for who in PEOPLE)


def has(here, who, wanted):
    """But for the gas."""
    lost = wanted - here.money(who)
    assert lost == 0 if here.chain is None else 0 <= lost < GAS, (who, lost)


def see_wants(keeper, bond, gas, purse):
    """It says how much money a claim of its own takes, louder where it has less, and what it cannot
    do without."""
    wants = re.search(r"(\S+) keeper: to claim what a replay finds false it wants a bond of ([0-9.]+) eth"
                      r"(| and gas: at most 8 million of it in a dispute); the account has ([0-9.]+)"
                      r" eth\. Without them it protects only against withholding", keeper.said())
    assert wants is not None, keeper.said()
    assert wants.group(3) != "" if gas else wants.group(3) == "", wants.group(0)
    assert [round(float(wants.group(i)) * 1000) for i in (2, 4)] == [
        bond * 1000 // ETHER, purse * 1000 // ETHER], wants.group(0)
    assert (wants.group(1) == "warn") == (purse < bond), wants.group(0)


def a_panel_sleeps(on_chain):
    with Town(PEOPLE, on_chain) as here:
        job, key = open_kept(here)
        serve_job(here, job)
        keeper, page = keep(here, key)
        see_wants(keeper, BOND, on_chain, PURSE)
        solver = here.solve("solver", job, key)
        here.until_count(SEGMENTS, "committed", key)
        here.until(lambda: "%d covered ones wait, %d with their states" % (SEGMENTS, SEGMENTS) in
                   keeper.said(), "the keeper has all states")
        here.until(lambda: keeper.said().count("handed to the solver") == SEGMENTS, "vouches go")
        here.pass_time(2 * PERIOD_S + 2)  # sealing and revealing: nobody said anything
        here.until(lambda: keeper.said().count("is right, by a replay") == SEGMENTS, "replays")
        wanted = 'lockstep_keeper_replays_total{outcome="right"} %d\n' % SEGMENTS
        here.until(lambda: wanted in get(page + "metrics"), "the page counts them")
        metrics = get(page + "metrics")
        assert "lockstep_keeper_healthy 1\n" in metrics and get(page + "health"), metrics
        here.pass_time(PERIOD_S + 2)  # one claim time: without a vouch it were four
        here.until_count(SEGMENTS, "finalized", key)
        here.until_count(1, "closed", key)
        here.until(lambda: solver.code() == 0, "the solver is paid")
        here.until(lambda: keeper.code() == 0, "nothing is left to keep")
        assert here.count("vouched", key) == SEGMENTS and here.count("voided", key) == 0
        has(here, "solver", PURSE + REWARD)
        has(here, "keeper", PURSE)


def test_a_keeper_vouches_for_a_panel_that_sleeps():
    a_panel_sleeps(False)


def test_the_same_on_a_chain():
    a_panel_sleeps(True)


def test_a_keeper_without_money_says_what_it_cannot_do():
    with Town(PEOPLE) as here:
        here.people["poor"] = here.ask("poor", "wallet", "new", "--light")["address"]
        job = here.new_job("a.job")
        key = here.open_job(job, "--keeper", here.people["poor"])
        serve_job(here, job)
        keeper, _ = keep(here, key, who="poor")
        see_wants(keeper, BOND, False, 0)
        assert keeper.stop() == 0, keeper.said()
        keeper, _ = keep(here, key, "--no-replay", "--known", here.people["verifier"], who="poor")
        assert "it wants a bond" not in keeper.said(), "it claims nothing"
        assert keeper.stop() == 0, keeper.said()


def give_all_but_the_last(here, job):
    """A mirror that a solver fills after it was killed: nobody takes a vouch there."""
    folder, last = here.path("solver.www"), "%012d." % (SEGMENTS * 4)
    here.run("solver", "prover", "publish", here.path("solver.run"), "--data", DATA, "--out",
             here.path("solver.all"))
    for place, _, files in os.walk(here.path("solver.all")):
        for name in files:
            if name.startswith(last):
                os.remove(os.path.join(place, name))
    shutil.copytree(here.path("solver.all"), folder, dirs_exist_ok=True)


def a_solver_goes_and_hides_its_last_state(on_chain):
    """What nobody gives the keeper computes, from the state before it: nothing burns."""
    with Town(PEOPLE, on_chain) as here:
        job, key = open_kept(here)
        serve_job(here, job)
        keeper, page = keep(here, key)
        url = serve_folder(here, "solver", job, here.path("solver.www"))
        solver = here.solve("solver", job, key, "--contact", url)
        here.until_count(SEGMENTS, "committed", key)
        here.until_count(SEGMENTS, "round", key)
        solver.kill()
        give_all_but_the_last(here, job)
        here.until(lambda: keeper.said().count("announced on the ledger") == SEGMENTS - 1,
                   "vouches go to everybody")
        here.pass_time(2 * PERIOD_S + 2)
        here.until(lambda: "nobody gives the state that it ends in; replaying" in keeper.said(),
                   "the last one is computed")
        here.until(lambda: keeper.said().count("announced on the ledger") == SEGMENTS,
                   "and vouched for")
        assert "lockstep_keeper_held_segments %d\n" % SEGMENTS in get(page + "metrics")
        here.pass_time(4 * PERIOD_S + 2)
        here.ask("client", "job", "collect", key)
        here.until_count(SEGMENTS, "finalized", key)
        here.until_count(1, "closed", key)
        assert here.count("voided", key) == 0 and here.count("refused", key, "keeper") == 0
        keeper.stop()
        has(here, "keeper", PURSE)
        has(here, "solver", PURSE + REWARD)
        has(here, "verifier", PURSE - BOND)  # which it fetches when it wakes


def test_a_keeper_computes_what_a_solver_hides():
    a_solver_goes_and_hides_its_last_state(False)


def test_what_a_keeper_computes_is_paid_on_a_chain():
    a_solver_goes_and_hides_its_last_state(True)


def test_a_keeper_claims_what_nobody_looked_at():
    with Town(PEOPLE) as here:
        job, key = open_kept(here)
        serve_job(here, job)
        keeper, _ = keep(here, key)
        here.solve("solver", job, key, "--falsify", "6")
        here.until_count(SEGMENTS, "committed", key)
        here.until(lambda: keeper.said().count("handed to the solver") == SEGMENTS, "vouches go")
        here.pass_time(2 * PERIOD_S + 2)
        here.until_count(1, "convicted", key)
        here.until_count(1, "paid", key)
        here.until(lambda: "is FALSE" in keeper.said(), "the keeper says so")
        assert keeper.stop() == 0
        here.ask("client", "job", "close", key)
        assert here.money("solver") == PURSE - STAKE
        assert here.money("keeper") == PURSE + STAKE // 4
        assert here.money("client") == PURSE + STAKE // 4, "nothing false was paid"


def test_what_a_keeper_cannot_have_it_refuses():
    with Town(PEOPLE) as here:
        job, key = open_kept(here)
        serve_job(here, job)
        keeper, page = keep(here, key, "--no-replay", "--known", here.people["verifier"])
        here.solve("solver", job, key, "--contact", "http://127.0.0.1:9")  # nobody is there
        here.until_count(SEGMENTS, "committed", key)
        here.until(lambda: here.count("round", key) == SEGMENTS, "all are drawn")
        here.pass_time(2 * PERIOD_S + 2)
        here.until_count(1, "refused", key, "keeper")
        here.until(lambda: "REFUSED" in keeper.said(), "the keeper says so")
        here.until(lambda: "refused by the keeper" in get(page), "the page says it")
        here.pass_time(3 * PERIOD_S + 2)  # claims come until then
        here.until_count(1, "voided", key)  # by the solver, for the rest of its stake
        shown = here.ask("client", "job", "show", key)
        assert shown["barred"] and shown["phase"] == "barred", shown
        burned = int(shown["missing_wei"])
        (voided,) = here.events("voided", key)
        lost = (SEGMENTS + 1) * REWARD // SEGMENTS  # all that is open, and one more
        assert burned > 0 and here.money("solver") == PURSE - lost, here.money("solver")
        text = here.run("client", "job", "watch", key, "--once")
        assert "barred" in text and "job resume" in " ".join(text.split()), text
        back = here.ask("client", "job", "close", key)
        assert back["move"] == "closed", back
        assert here.money("client") == PURSE - burned, (here.money("client"), burned)
        asleep = BOND  # whose owner has not fetched it
        assert all_money(here) == len(PEOPLE) * PURSE - burned - lost - asleep, voided


def watched(here, key, page):
    """Is the silence of the keeper told: by the command, on its page, by the alarms of the ledger?"""
    once = here.ask("client", "job", "watch", key, "--once")["alert"]
    told = once != ""
    assert not told or re.fullmatch("the keeper of this job has vouched nothing for [0-9]+ minutes",
                                    once), once
    alarms = subprocess.run([town.LOCKSTEP, "watch", "--once"], stdout=subprocess.PIPE,
                            env=here.environment("client")).stdout.decode()
    assert ("has not vouched" in alarms) == told, (once, alarms)
    here.until(lambda: ("has vouched nothing for" in get(page)) == told, "the page says the same")
    return told


def serve_and_keep(here, job, key):
    """One process that does both: it, where its page is, and where it serves."""
    server = here.start("keeper", "job", "serve", job, "--data", DATA, "--serve", "127.0.0.1:0",
                        "--folder", here.path("kept"), "--keeper-of", key, "--poll", "1s",
                        "--page", "0", "--json")
    here.until(lambda: "the keeper at" in server.said() and "serving" in server.said(), "it is up")
    page = re.search(r"the keeper at (\S+)", server.said()).group(1)
    return server, page, re.search(r'"serving": *"([^"]+)"', server.said()).group(1)


def see_what_it_keeps(here, job, page, url):
    here.until(lambda: is_well(page), "its own mirror answers")
    told = "%d covered segments wait, %d with their states here" % (SEGMENTS, SEGMENTS)
    here.until(lambda: told in get(page), "the page says it")
    assert told in get(page + "job.json"), get(page + "job.json")
    assert "lockstep_keeper_held_segments %d\n" % SEGMENTS in get(page + "metrics")
    name = "/v1/jobs/%s/checkpoints/%012d.safetensors" % (
        here.ask("client", "job", "show", job)["id"], 12)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            url + name, timeout=town.WAIT_MAX_S) as given:
        with open(here.path("kept" + name), "rb") as kept:
            assert given.read() == kept.read()


def test_a_server_that_keeps():
    """Solver and keeper go, with the vouches that were handed over: everybody is told. The keeper
    comes back, and vouches to everybody."""
    with Town(PEOPLE) as here:
        job, key = open_kept(here)
        assert "--page shows what --keeper-of KEY keeps" in here.run(
            "keeper", "job", "serve", job, "--data", DATA, "--page", "0", wanted=3)
        server, page, url = serve_and_keep(here, job, key)
        solver = here.solve("solver", job, key)
        here.until_count(SEGMENTS, "round", key)
        here.until(lambda: "%d handed to the solver" % SEGMENTS in get(page), "vouches go")
        see_what_it_keeps(here, job, page, url)
        assert server.stop() == 0, server.said()
        solver.kill()
        watch = here.start("client", "job", "watch", key, "--page", "0", "--poll", "1s")
        here.until(lambda: "the job at" in watch.said(), "it is watched")
        seen = re.search(r"the job at (\S+)", watch.said()).group(1)
        here.pass_time(2 * PERIOD_S + 2)
        assert not watched(here, key, seen), "the solver may have its word"
        here.pass_time(PERIOD_S + 2)
        assert watched(here, key, seen)
        server, page, url = serve_and_keep(here, job, key)
        here.until(lambda: "%d announced" % SEGMENTS in get(page), "vouches go to everybody")
        assert not watched(here, key, seen)
        see_what_it_keeps(here, job, page, url)
        here.ask("client", "job", "collect", key)
        here.until_count(SEGMENTS, "finalized", key)
        here.until(lambda: "nothing is left to keep" in server.said(), "the job is closed")
        assert server.stop() == 0, server.said()


def test_a_client_resumes_stops_and_refuses():
    with Town(PEOPLE) as here:
        job = here.new_job("a.job", "--steps", "40")
        key = here.open_job(job)
        for verb, word in (("stop", "no solver"), ("refuse", "no solver"), ("resume", "not barred")):
            why = here.ask("client", "job", verb, key, *(["--yes"] if verb != "stop" else []),
                           wanted=1)["error"]["message"]
            assert word in why, (verb, why)
        said = here.run("client", "job", "cancel", key, wanted=3)
        assert "job close" in said, said
        solver = here.solve("solver", job, key)
        here.until_count_at_least(2, "committed", key)
        assert "a solver is at work" in here.ask("client", "job", "close", key,
                                                 wanted=1)["error"]["message"]
        solver.kill()
        committed = here.count("committed", key)
        if committed < 9:
            here.ask("client", "job", "stop", key)
            assert here.ask("client", "job", "show", key)["segments"] == committed + 1
        here.ask("client", "job", "refuse", key, "--yes")
        here.until_count(1, "refused", key, "client")
        assert here.ask("client", "job", "list")["jobs"][0]["phase"] == "refused"


if __name__ == "__main__":
    sys.exit(main([test_a_keeper_vouches_for_a_panel_that_sleeps,
                   test_a_keeper_without_money_says_what_it_cannot_do,
                   test_a_keeper_computes_what_a_solver_hides,
                   test_a_keeper_claims_what_nobody_looked_at,
                   test_what_a_keeper_cannot_have_it_refuses,
                   test_a_server_that_keeps,
                   test_a_client_resumes_stops_and_refuses],
                  [test_the_same_on_a_chain, test_what_a_keeper_computes_is_paid_on_a_chain]))
