"""Goal: kill -9 at any instant of a whole dispute, of the verifier's node, of a prover, of both,
costs nothing but time: nothing is lost, doubled or false, and all money is where it belongs.
Method: games with an honest solver, a cheat and a node on one ledger. Programs die at calls to the
system that change what others see, each instant chosen by its number (sudden_death.c) with a seed
that is printed, and are restarted. A first game without deaths counts the calls to choose from. `kill_test.py seed SEED` plays one game of that seed again."""

import contextlib
import os
import random
import shutil
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from plays import PEOPLE, STEP, see_conviction, see_money, see_once, see_pay  # noqa: E402
from town import DATA, ETHER, NOBODY, QUICK, SEGMENTS, SOAK, Town  # noqa: E402

KILLS = 60 if SOAK else 4 if QUICK else 12
KILLS_ON_A_CHAIN = 20 if SOAK else 4
GAS = ETHER // 5
ROLES = ("verifier", "cheat", "honest")
LIVES_MOST = 4
GAMES_AT_ONCE = 2
LIE_KEPT = STEP // 4 * 4 + 4


def is_falsified(town, bundle):
    """Is the fault in the journal and in a checkpoint that it names (a file alone is there a moment
    earlier)? A cheat whose run ended before begins again: from the last honest state `prover resume`
    would come to an honest end, or see that the journal says otherwise."""
    try:
        roots = town.roots(bundle)
    except AssertionError:
        return False
    journal = sqlite3.connect(os.path.join(bundle, "journal.db"), timeout=stage.WAIT_MAX_S)
    with contextlib.closing(journal):
        kept = journal.execute("SELECT count(*) FROM checkpoints WHERE step = ?", (LIE_KEPT,))
        return kept.fetchone() == (1,) and len(roots) >= LIE_KEPT


def solve_as_runs(town, keys, job, deaths):
    """`prover run` and `resume` do everything."""
    def cheating():
        bundle = town.path("cheat.run")
        if os.path.exists(bundle) and not is_falsified(town, bundle):
            shutil.rmtree(bundle)
        common = ["--job-key", keys["cheat"], "--data", DATA, "--threads", "1", "--poll", "1s",
                  "--contact", NOBODY]
        if os.path.exists(bundle):
            return ["prover", "resume", bundle, "--ledger", town.place["LOCKSTEP_LEDGER"], *common]
        return ["prover", "run", job, "--bundle", bundle, *common, "--falsify", str(STEP)]

    honest = town.solve("honest", job, keys["honest"], deaths=deaths["honest"])
    return {"honest": honest, "cheat": town.start("cheat", cheating, deaths=deaths["cheat"])}


def solve_in_parts(town, keys, job, deaths):
    """Trained without a ledger; then `prover commit` and, for the rest, `respond` or `collect`."""
    solvers = {}
    for who, more, verb in (("honest", (), "collect"), ("cheat", ("--falsify", str(STEP)),
                                                        "respond")):
        bundle = town.train(who, job, who + ".run", *more)
        place = ["--ledger", town.place["LOCKSTEP_LEDGER"], "--job-key", keys[who], "--poll", "1s"]
        half = len(deaths[who]) // 2
        commit = town.start(who, "prover", "commit", bundle, *place, "--contact", NOBODY,
                            deaths=deaths[who][:half])
        town.until(lambda: commit.code() == 0, "%s has committed" % who)
        solvers[who] = town.start(who, "prover", verb, bundle, "--wait", *place,
                                  deaths=deaths[who][half:])
        solvers[who].died += commit.died
    return solvers


def play(town, deaths, parts, serves, gas):
    """A whole game; returns the processes by their roles."""
    job = town.new_job("a.job")
    keys = {who: town.open_job(job) for who in ("honest", "cheat")}
    roles = (solve_in_parts if parts else solve_as_runs)(town, keys, job, deaths)
    for key in keys.values():
        town.until_count(SEGMENTS, "committed", key)
    mirrors = ["--mirror", town.path("honest.run")]
    if serves:
        mirrors += ["--mirror", town.serve("cheat", town.path("cheat.run"))[1]]
    else:
        town.run("cheat", "prover", "publish", town.path("cheat.run"), "--out", town.path("www"))
        mirrors += ["--mirror", town.path("www")]
    roles["verifier"] = town.verifier(*mirrors, deaths=deaths["verifier"])
    queries = see_conviction(town, keys["cheat"])
    assert (queries == 0) == serves, queries
    see_pay(town, keys["honest"], roles["verifier"])
    town.until(lambda: roles["honest"].code() == 0, "the honest solver's program ends")
    see_money(town, keys, gas)
    see_once(town, keys)
    assert town.count("sealed") == 0, town.events("sealed")  # a seat needs no seal but its verdict's
    return roles


def no_deaths():
    return {role: [] for role in ROLES}


def choose(numbers, calls, parts):
    """Who dies, how often, and at which calls: later lives, and parts, are shorter."""
    deaths = no_deaths()
    for role in numbers.sample(ROLES, numbers.randint(1, len(ROLES))):
        most = calls[role] // 4 if parts and role != "verifier" else calls[role]
        for life in range(numbers.randint(1, LIVES_MOST)):
            deaths[role].append(numbers.randint(1, most // (life + 1)))
    return deaths


def game_of(seed, calls, on_chain, gas):
    numbers = random.Random(seed)
    parts, serves = numbers.random() < 0.5, numbers.random() < 0.5
    deaths = choose(numbers, calls, parts)
    print("# seed %d: %s, %s, %s" % (seed, deaths, "parts" if parts else "runs",
                                     "served" if serves else "not served"), flush=True)
    with Town(PEOPLE, on_chain=on_chain) as town:
        roles = play(town, deaths, parts, serves, gas)
        died = {role: process.died for role, process in roles.items()}
    print("# seed %d died: %s" % (seed, died), flush=True)
    return sum(died.values())


def calls_of_a_game(on_chain, gas):
    with Town(PEOPLE, on_chain=on_chain) as town:
        roles = play(town, no_deaths(), False, True, gas)
        calls = {role: process.calls() for role, process in roles.items()}
    print("# calls of one game: %s" % calls, flush=True)
    return calls


def play_until(kills, first_seed, on_chain, gas):
    calls = calls_of_a_game(on_chain, gas)
    died, seed = 0, first_seed
    with ThreadPoolExecutor(GAMES_AT_ONCE) as pool:
        while died < kills:
            seeds = range(seed, seed + GAMES_AT_ONCE)
            died += sum(pool.map(lambda one: game_of(one, calls, on_chain, gas), seeds))
            seed += GAMES_AT_ONCE
    print("# %d kills in %d games" % (died, seed - first_seed))


def nothing_is_lost_or_doubled_by_kills():
    play_until(KILLS, 7000, False, 0)


def nothing_is_lost_or_doubled_by_kills_on_a_chain():
    play_until(KILLS_ON_A_CHAIN, 8000, True, GAS)


if sys.argv[1:2] == ["seed"]:
    again = int(sys.argv[2])
    chain = again >= 8000
    money = GAS if chain else 0
    game_of(again, calls_of_a_game(chain, money), chain, money)
    sys.exit(0)
sys.exit(stage.main([nothing_is_lost_or_doubled_by_kills],
                    [nothing_is_lost_or_doubled_by_kills_on_a_chain]))
