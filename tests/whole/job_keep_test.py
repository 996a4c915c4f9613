"""Goal: a keeper keeps strangers from taking anything of its client: it vouches for what it has, replays
what nobody found right, claims a lie, and refuses what it could not have. Every wei is accounted for.
Method: the built program as client, keeper, solver and cheat on an embedded ledger whose clock the test
sets; the panel enlists and then sleeps, so that all hangs on the keeper."""

import re
import sys
import urllib.error
import urllib.request

import town
from town import DATA, PERIOD_S, PURSE, REWARD, SEGMENTS, STAKE, Town, main

PEOPLE = ["client", "keeper", "solver", "verifier"]


def open_kept(here, *more):
    job = here.new_job("a.job")
    key = here.open_job(job, "--keeper", here.people["keeper"], *more)
    return job, key


def keep(here, key, *more):
    """Returns the process, and what its page is."""
    keeper = here.start("keeper", "job", "keep", key, "--serve", "127.0.0.1:0", "--poll", "1s",
                        "--status", "0", "--mirror", here.mirror, "--data", DATA, *more)
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


def serve_job(here, job):
    """The client serves the job file and its data."""
    server = here.start("client", "job", "serve", job, "--data", DATA, "--at", "127.0.0.1:0",
                        "--folder", here.path("served"), "--json")
    here.until(lambda: "serving" in server.said(), "the client serves")
    here.mirror = re.search(r'"serving": *"([^"]+)"', server.said()).group(1)


def all_money(here):
    """What everybody has, and what the ledger still owes."""
    return sum(here.money(who) for who in PEOPLE)


def test_a_keeper_vouches_for_a_panel_that_sleeps():
    with Town(PEOPLE) as here:
        job, key = open_kept(here)
        serve_job(here, job)
        keeper, page = keep(here, key)
        solver = here.solve("solver", job, key)
        here.until_count(SEGMENTS, "committed", key)
        here.until(lambda: "%d covered ones wait, %d with their states" % (SEGMENTS, SEGMENTS) in
                   keeper.said(), "the keeper has all states")
        here.until(lambda: keeper.said().count("handed to the solver") == SEGMENTS, "vouches go")
        here.pass_time(2 * PERIOD_S + 2)  # sealing and revealing: nobody said anything
        here.until(lambda: keeper.said().count("is right, by a replay") == SEGMENTS, "replays")
        metrics = get(page + "metrics")
        assert 'lockstep_keeper_replays_total{outcome="right"} %d\n' % SEGMENTS in metrics, metrics
        assert "lockstep_keeper_healthy 1\n" in metrics and get(page + "health"), metrics
        here.pass_time(PERIOD_S + 2)  # one claim time: without a vouch it were four
        here.until_count(SEGMENTS, "finalized", key)
        here.until_count(1, "closed", key)
        here.until(lambda: solver.code() == 0, "the solver is paid")
        here.until(lambda: keeper.code() == 0, "nothing is left to keep")
        assert here.count("vouched", key) == SEGMENTS and here.count("voided", key) == 0
        assert here.money("solver") == PURSE + REWARD
        assert here.money("keeper") == PURSE, "it risks nothing"


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
        keeper, page = keep(here, key)
        here.solve("solver", job, key, "--contact", "http://127.0.0.1:9")  # nobody is there
        here.until_count(SEGMENTS, "committed", key)
        here.until(lambda: here.count("round", key) == SEGMENTS, "all are drawn")
        here.pass_time(2 * PERIOD_S + 2)
        here.until_count(1, "refused", key, "keeper")
        here.until(lambda: "REFUSED" in keeper.said(), "the keeper says so")
        here.until(lambda: "refused by the keeper" in get(page) or "vouched nothing" in get(page),
                   "the page says it")
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
        asleep = town.BOND  # whose owner has not fetched it
        assert all_money(here) == len(PEOPLE) * PURSE - burned - lost - asleep, voided


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
                   test_a_keeper_claims_what_nobody_looked_at,
                   test_what_a_keeper_cannot_have_it_refuses,
                   test_a_client_resumes_stops_and_refuses]))
