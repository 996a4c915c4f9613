"""Goal: four owners train a round on a ledger, one solver lies and one vanishes: the two honest ones are
paid in full, the mean of their two states is right to the bit, the record gives the reasons of the other
two, and anybody proves it offline and asks the ledger; a client that invents a reason is found. Where
nobody may be left out, the job of a convicted solver waits for another one, and is not paid twice; a void
job is opened again; solvers fetch what a second round begins with. An owner whose state nobody serves,
or about whom each child dies, holds up no other; a server that dies is begun again.
Method: client, solvers and a verifier's node, each a program, in a town (town.py) of an embedded ledger, and
the first play also on a chain.
The client dies at chosen calls and goes on. Adapters beside a frozen base, since they are what travels."""

import fnmatch
import json
import os
import shutil
import signal
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

import processes  # noqa: E402
import tiny_llama  # noqa: E402
import town as stage  # noqa: E402
from endpoint import Endpoint  # noqa: E402
from rounds import mean, state  # noqa: E402
from town import BOND, DATA, ETHER, FEE, PERIOD_S, PRIZE, PURSE, SEGMENTS, STAKE, Town  # noqa: E402

OWNERS = ("ada", "bob", "cem", "dea")
REWARDS = {"ada": 3 * ETHER, "bob": 6 * ETHER, "cem": 9 * ETHER, "dea": 12 * ETHER}
LATE_S = 5 * PERIOD_S
STEPS = 6
GAS = ETHER // 5  # more than anybody's transactions cost
DEATHS = (21, 48, 75)


def rows(town, who):
    name = town.path(who + ".u8")
    with open(DATA, "rb") as text, open(name, "wb") as file:
        text.seek(3000 * OWNERS.index(who))
        file.write(text.read(3000))
    return name


def terms(who):
    period = "%ds" % PERIOD_S
    return {"reward": "%dwei" % REWARDS[who], "stake": "%dwei" % STAKE, "seats": "1", "coverage": "1", "panel": "1",
            "fee": "%dwei" % FEE, "bond": "%dwei" % BOND, "query-fee": "0wei", "seal-period": period,
            "reveal-period": period, "claim-period": period, "clock": period, "segment-period": "%ds" % LATE_S,
            "deadline": "%ds" % (40 * PERIOD_S), "any-terms": True}


def plan(town, owners):
    """Adapters on one base; each owner has rows of its own."""
    tiny_llama.write(town.path("base"), num_hidden_layers=1)
    told = []
    for who in owners:
        job = town.path(who + ".job")
        town.run("client", "job", "new", "--base", town.path("base"), "--lora", "2", "--target", "q_proj,v_proj",
                 "--data", rows(town, who), "--data-type", "u8", "--length", "8", "--batch", "1", "--steps",
                 str(STEPS), "--segment-steps", str(STEPS // SEGMENTS), "--out", job)
        told.append({"name": who, "job": job, "data": [town.path(who + ".u8"), town.path("base")],
                     "terms": terms(who)})
    with open(town.path("plan.json"), "w", encoding="ascii") as file:
        json.dump({"owners": told}, file)
    return town.path("plan.json")


def start_client(town, *more, deaths=(), environment=None):
    return town.start("client", "job", "federate", town.path("plan.json"), "--out", town.path("fed"), "--yes",
                      "--poll", "1s", "--threads", "1", *more, deaths=deaths, more=environment)


def federate(town, owners, *more, deaths=()):
    """The client's process, and the keys of the jobs."""
    plan(town, owners)
    client = start_client(town, "--serve", "127.0.0.1:%d" % stage.free_port(), *more, deaths=deaths)
    town.until_count(len(owners), "opened")
    return client, {who: town.until(lambda at=at: key_of(town, at), "the client keeps the key")
                    for at, who in enumerate(owners)}


def key_of(town, at, number=1):
    try:
        with open(town.path("fed/round-%03d/owner-%02d.json" % (number, at + 1)), encoding="ascii") as file:
            tries = json.load(file)["tries"]
    except FileNotFoundError:
        return None
    return "0x" + tries[-1]["key"] if tries else None


def solve(town, who, owner, key, *more, by_key=False, contact=None, environment=None):
    """by_key: job and first state are fetched."""
    place = ("--serve", "127.0.0.1:0") if contact is None else ("--contact", contact)
    what = (key, "--private-contacts") if by_key else (town.path(owner + ".job"), "--job-key", key)
    return town.start(who, "prover", "run", *what, "--bundle", town.path(who + ".run"), "--data",
                      town.path(owner + ".u8"), "--data", town.path("base"), "--threads", "1", "--poll", "1s", *place,
                      *more, more=environment)


def judged(town, keys):
    """What solvers commit is judged, final and paid."""
    for key in keys.values():
        town.until_count_at_least(SEGMENTS, "committed", key)
        town.until(lambda: town.count("sealed a verdict", key) >= SEGMENTS, "all seats seal")
    town.pass_time(PERIOD_S + 1)
    for key in keys.values():
        town.until(lambda: town.count("revealed", key) >= SEGMENTS, "the seats say so")
    town.pass_time(2 * PERIOD_S + 1)
    for key in keys.values():
        town.until_count_at_least(1, "closed", key)


class Deaf(Endpoint):
    """Of a chain: it takes so many transactions, and refuses every later one."""

    def __init__(self, port, most):
        super().__init__(port)
        self.most, self.taken = most, set()

    def answer(self, handler, sent):
        request = json.loads(sent)
        if isinstance(request, dict) and request.get("method") == "eth_sendRawTransaction":
            with self.lock:
                if len(self.taken) < self.most:
                    self.taken.add(request["params"][0])
                if request["params"][0] not in self.taken:
                    return handler.say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {
                        "code": -32005, "message": "limit exceeded"}}).encode())
        return super().answer(handler, sent)


def vanish(town, owner, key):
    """A solver that commits one segment, and is gone."""
    if town.chain is not None:
        with Deaf(town.port, 2) as chain:  # it accepts, and commits
            solver = solve(town, owner, owner, key, environment={"LOCKSTEP_LEDGER": chain.url})
            town.until_count(1, "committed", key)
            solver.kill()
        return
    town.change_ledger("CREATE TRIGGER stuck BEFORE INSERT ON moves WHEN NEW.name LIKE '% commit 1 generation %'"
                        " BEGIN SELECT RAISE(ABORT, 'stuck'); END")
    solver = solve(town, owner, owner, key)
    town.until_count(1, "committed", key)
    solver.kill()
    town.change_ledger("DROP TRIGGER stuck")


def see_purse(town, who, wanted):
    """To the wei, where no transaction has cost anything."""
    gas = 0 if town.chain is None else GAS
    town.until(lambda: 0 <= wanted - town.money(who) <= gas, "%s has %d" % (who, wanted))


def enlist(town, count):
    node = town.verifier("--extra", "0")
    town.until_count(count, "enlisted")
    town.pass_time(PERIOD_S + 1)  # until then nobody accepts
    return node


def see_mean(town, solvers, number=1):
    """Of the last states in the solvers' own bundles, in order, to the bit."""
    given = [state(town.path("%s.run/checkpoints/%012d.safetensors" % (who, STEPS))) for who in solvers]
    after = state(town.path("fed/round-%03d/start.safetensors" % (number + 1)))
    assert after and all("lora_" in name for name in after), set(after)
    for name, values in after.items():
        for at, value in enumerate(values):
            wanted = mean([one[name][at] for one in given])
            assert struct.pack("<f", value) == struct.pack("<f", wanted), (name, at)


def audit(town, *more, wanted=0, where="fed"):
    # Without a ledger in its environment: nobody is asked, unless --transactions says so.
    return town.ask("verifier", "audit", town.path(where), *more, wanted=wanted)["audits"][0]


def invent(town, name, change):
    """A client that writes another record than what came of it."""
    shutil.copytree(town.path("fed"), town.path(name))
    record = town.path(name + "/round-001/round.json")
    with open(record, encoding="ascii") as file:
        told = json.load(file)
    change(told)
    with open(record, "w", encoding="ascii") as file:
        file.write(json.dumps(told, separators=(",", ":"), sort_keys=True) + "\n")
    return audit(town, "--transactions", wanted=1, where=name)["refuted"]


def open_and_close(town, who, job, salt):
    words = [word for name, value in terms("cem").items() if value is not True for word in ("--" + name, value)]
    key = town.ask(who, "job", "open", town.path(job), *words, "--any-terms", "--salt", str(salt), "--yes")["job"]
    town.ask(who, "job", "close", key)
    return key


def play_four_owners(on_chain):
    with Town(["client", *OWNERS, "verifier"], on_chain=on_chain) as town:
        client, keys = federate(town, OWNERS, "--quorum", "2", deaths=DEATHS)
        node = enlist(town, len(OWNERS))
        vanish(town, "dea", keys["dea"])
        for who in ("ada", "bob", "cem"):
            solve(town, who, who, keys[who], *(("--falsify", "3") if who == "bob" else ()))
        for who in ("ada", "bob", "cem"):
            town.until_count(SEGMENTS, "committed", keys[who])
        town.until(lambda: town.count("sealed a verdict") >= 3 * SEGMENTS + 1, "all seats seal")
        town.pass_time(PERIOD_S + 1)
        town.until_count(1, "convicted", keys["bob"])
        for who, count in (("ada", SEGMENTS), ("cem", SEGMENTS), ("dea", 1)):
            town.until_count(count, "revealed", keys[who])
        town.pass_time(2 * PERIOD_S + 1)
        for who, count in (("ada", SEGMENTS), ("cem", SEGMENTS), ("dea", 1)):
            town.until_count(count, "finalized", keys[who])
        assert client.code() is None, client.said()  # dea's solver may still come
        town.pass_time(LATE_S)
        town.until_count(1, "released", keys["dea"])
        town.until(lambda: client.code() is not None, "the client ends the round")
        assert client.code() == 0, client.said()[-900:]
        assert client.died == len(DEATHS), client.died

        # Nothing was opened or paid twice, and the honest two have all of it.
        assert town.count("opened") == len(OWNERS) and town.count("closed") == len(OWNERS), town.events()
        for who in ("ada", "cem"):
            see_purse(town, who, PURSE + REWARDS[who])
        see_purse(town, "bob", PURSE - STAKE)
        town.ask("client", "job", "collect", keys["bob"])
        paid = REWARDS["ada"] + REWARDS["cem"] + REWARDS["dea"] // SEGMENTS + (2 * SEGMENTS + 1) * FEE
        see_purse(town, "client", PURSE - paid + PRIZE)

        see_mean(town, ("ada", "cem"))
        said = audit(town)
        assert said["answer"] == "proven", said
        assert "round 1: bob is left out: convicted, as its record says" in said["trusted"], said
        assert "round 1: dea is left out: late, as its record says" in said["trusted"], said
        said = audit(town, "--transactions")
        assert said["answer"] == "proven", said
        for words in ("round 1: bob is left out: convicted", "round 1: dea is left out: late",
                      "round 1: the state of ada is final on the ledger"):
            assert words in said["proven"], (words, said)

        def drop(told):
            told["owners"][2]["tries"][0]["end"] = "late"
            del told["owners"][2]["state"], told["owners"][2]["trees"]

        for name, change, words in (
                ("invented", lambda told: told["owners"][1]["tries"][0].update(end="late"),
                 "the ledger says otherwise of try 1 of bob: not late but convicted"),
                ("dropped", drop, "the ledger says otherwise of try 1 of cem: not late but final"),
                ("renamed", lambda told: told["owners"][0]["tries"][0].update(key=keys["bob"][2:]),
                 "the ledger says otherwise of try 1 of ada: it is of another job")):
            refuted = invent(town, name, change)
            assert any(words in one for one in refuted), (words, refuted)

        # Another account opens cem's job as well, and closes it: so it is untaken.
        with open(town.path("fed/round-001/round.json"), encoding="ascii") as file:
            salt = json.load(file)["owners"][2]["tries"][0]["salt"]
        for name, who, more, words in (
                ("beside", "dea", salt, "another account opened it than the other jobs"),
                ("kept", "client", salt + 7, "try 1 of cem has another salt than the agreement gives it")):
            key = open_and_close(town, who, "fed/round-001/owner-03.job", more)

            def untaken(told, key=key, more=more):
                drop(told)
                told["owners"][2]["tries"][0].update(key=key[2:], salt=more, end="untaken")

            refuted = invent(town, name, untaken)
            assert any(words in one for one in refuted), (words, refuted)
        assert node.stop() == 0, node.said()


def one_lies_and_one_vanishes():
    play_four_owners(False)


def one_lies_and_one_vanishes_on_a_chain():
    play_four_owners(True)


def another_solver_takes_over():
    """Without a quorum nobody is left out: the job of the convicted solver waits for the next one."""
    with Town(["client", "ada", "bob", "eve", "verifier"]) as town:
        client, keys = federate(town, ("ada", "bob"))
        node = enlist(town, 2)
        for who in ("ada", "bob"):
            solve(town, who, who, keys[who], *(("--falsify", "3") if who == "bob" else ()))
        for who in ("ada", "bob"):
            town.until_count(SEGMENTS, "committed", keys[who])
        town.until(lambda: town.count("sealed a verdict") >= 2 * SEGMENTS, "all seats seal")
        town.pass_time(PERIOD_S + 1)
        town.until_count(1, "convicted", keys["bob"])
        town.until_count_at_least(2, "enlisted", keys["bob"])  # for the next solver, in a panel of its own
        town.pass_time(PERIOD_S + 1)
        assert client.code() is None, client.said()
        sealed = town.count("sealed a verdict", keys["bob"])
        solve(town, "eve", "bob", keys["bob"])
        town.until_count(2 * SEGMENTS, "committed", keys["bob"])
        town.until(lambda: town.count("sealed a verdict", keys["bob"]) >= sealed + SEGMENTS, "all seats seal")
        town.pass_time(PERIOD_S + 1)
        town.until(lambda: town.count("revealed", keys["bob"]) >= SEGMENTS, "the seats say so")
        town.pass_time(2 * PERIOD_S + 1)
        town.until_count(2, "closed")
        town.until(lambda: client.code() is not None, "the client ends the round")
        assert client.code() == 0, client.said()[-900:]
        assert town.count("opened") == 2, town.events("opened")
        see_mean(town, ("ada", "eve"))
        assert audit(town, "--transactions")["answer"] == "proven"
        assert node.stop() == 0, node.said()


def void_is_opened_again_and_two_rounds():
    """What a client cannot fetch, and refuses, is void: it closes the job, opens the same one once more with
    another salt, and counts what comes of that. The second round begins with the first one's mean, which
    solvers and seats fetch of the client."""
    with Town(["client", "ada", "bob", "verifier"]) as town:
        client, keys = federate(town, ("ada", "bob"), "--rounds", "2")
        node = enlist(town, 2)
        lost = solve(town, "bob", "bob", keys["bob"], contact=stage.NOBODY)
        town.until_count(SEGMENTS, "committed", keys["bob"])
        town.ask("client", "job", "refuse", keys["bob"])
        town.pass_time(3 * PERIOD_S + 2)
        town.until_count(1, "voided", keys["bob"])
        town.until_count(1, "closed", keys["bob"])
        town.until_count(3, "opened")
        again = town.until(lambda: key_of(town, 1) != keys["bob"] and key_of(town, 1), "the new key is kept")
        lost.kill()
        town.until_count_at_least(1, "enlisted", again)
        town.pass_time(PERIOD_S + 1)
        shutil.rmtree(town.path("bob.run"))
        solve(town, "ada", "ada", keys["ada"])
        solve(town, "bob", "bob", again)
        judged(town, {"ada": keys["ada"], "bob": again})
        town.until_count(5, "opened")
        with open(town.path("fed/round-001/owner-02.json"), encoding="ascii") as file:
            assert [one["end"] for one in json.load(file)["tries"]] == ["void", "final"]
        see_mean(town, ("ada", "bob"))

        second = {who: town.until(lambda at=at: key_of(town, at, 2), "the client keeps the key")
                  for at, who in enumerate(("ada", "bob"))}
        assert not set(second.values()) & {*keys.values(), again}
        for key in second.values():
            town.until_count_at_least(1, "enlisted", key)
        town.pass_time(PERIOD_S + 1)
        for who in ("ada", "bob"):
            shutil.rmtree(town.path(who + ".run"))
            solve(town, who, who, second[who], by_key=True)
        judged(town, second)
        town.until(lambda: client.code() is not None, "the client ends the rounds")
        assert client.code() == 0, client.said()[-900:]
        assert town.count("opened") == 5 == town.count("closed"), town.events("opened")
        see_mean(town, ("ada", "bob"), 2)
        said = audit(town, "--transactions")
        assert said["answer"] == "proven", said
        for words in ("round 1: the state of bob is final on the ledger", "round 2: the state of ada is final on the ledger"):
            assert words in said["proven"], (words, said)
        assert node.stop() == 0, node.said()


# ---- one owner's trouble, and the others ---------------------------------------------------------------

CHILD_DIED = "it ended with code 137"  # by SIGKILL


def gave_state(town, at):
    with open(town.path("fed/round-001/owner-%02d.json" % (at + 1)), encoding="ascii") as file:
        return "state" in json.load(file)


def kill_server(town, client):
    """The client's child that serves; the client misses it."""
    def seen():
        return client.said().count("job serve: %s" % CHILD_DIED)

    before = seen()
    os.kill(town.until(lambda: processes.child_of(client.process, b"serve"), "the client serves"), signal.SIGKILL)
    town.until(lambda: seen() > before, "the client misses its server")


def a_state_that_nobody_serves_holds_up_no_other():
    """bob, whose job comes first, names a place where nobody is; the verifier alone knows where he serves.
    Then ada's job is final, and her state counts. Meanwhile the client's own server is killed."""
    with Town(["client", "bob", "ada", "verifier"]) as town:
        hidden = "127.0.0.1:%d" % stage.free_port()
        client, keys = federate(town, ("bob", "ada"))
        kill_server(town, client)
        node = town.verifier("--extra", "0", "--mirror", "http://" + hidden)
        town.until_count(2, "enlisted")
        town.pass_time(PERIOD_S + 1)
        solve(town, "bob", "bob", keys["bob"], "--serve", hidden, contact=stage.NOBODY)
        town.until_count(SEGMENTS, "committed", keys["bob"])
        town.until(lambda: town.count("sealed a verdict", keys["bob"]) >= SEGMENTS, "all seats seal")
        solve(town, "ada", "ada", keys["ada"])
        judged(town, {who: keys[who] for who in ("bob", "ada")})
        town.until(lambda: gave_state(town, 1), "ada's state counts")
        assert not gave_state(town, 0) and client.code() is None, client.said()
        town.until(lambda: " bob: " in client.said(), "the client says whose state it misses")
        assert client.stop() == 2, client.said()
        town.start("bob", "prover", "serve", town.path("bob.run"), "--serve", hidden, "--threads", "1")
        client = start_client(town, "--mirror", "http://" + hidden)
        town.until(lambda: client.code() is not None, "the client ends the round")
        assert client.code() == 0, client.said()[-900:]
        see_mean(town, ("bob", "ada"))
        assert node.stop() == 0, node.said()


def a_child_that_always_dies_is_begun_no_more():
    """Each child that opens bob's job is killed, as by a system without memory. ada's job is opened and trained
    meanwhile; then the client ends, and the same command goes on."""
    with Town(["client", "bob", "ada", "verifier"]) as town:
        plan(town, ("bob", "ada"))
        client = start_client(town, "--serve", "127.0.0.1:%d" % stage.free_port(), environment={
            "SUDDEN_IN": "open", "SUDDEN_OF": "owner-01.job", "SUDDEN_DEATH": "1"})
        town.until_count(1, "opened")
        key = town.until(lambda: key_of(town, 1), "the client keeps ada's key")
        node = enlist(town, 1)
        solve(town, "ada", "ada", key)
        judged(town, {"ada": key})
        town.until(lambda: client.code() is not None, "the client gives up")
        said = client.said()
        assert client.code() == 2 and gave_state(town, 1), said
        assert said.count("death 8 in a row, and no more is begun") == 1, said
        assert "died 8 times one after another, without a step of progress: bob: " + CHILD_DIED in said, said
        assert "whether memory ran out" in said, said
        assert town.count("opened") == 1, town.events("opened")
        client = start_client(town)
        town.until_count(2, "opened")
        assert client.stop() == 2, client.said()
        assert node.stop() == 0, node.said()


def port_of(town, client):
    """Of the client's server."""
    with open("/proc/%d/cmdline" % town.until(lambda: processes.child_of(client.process, b"serve"), "the client serves"),
              "rb") as file:
        words = file.read().split(b"\0")
    return words[words.index(b"--serve") + 1]


def a_server_that_always_dies_is_begun_no_more():
    """Deaths between which a solver commits are not in a row. A server that is begun again listens where the job
    on the ledger says, though --serve left the port open."""
    with Town(["client", "bob", "verifier"]) as town:
        plan(town, ("bob",))
        client = start_client(town, "--serve", "127.0.0.1:0")
        town.until_count(1, "opened")
        key = town.until(lambda: key_of(town, 0), "the client keeps the key")
        for _ in range(5):
            kill_server(town, client)
        told = port_of(town, client).decode()
        assert town.events("opened")[0]["contact"].startswith("http://" + told + "#"), (told, town.events())
        node = enlist(town, 1)
        solve(town, "bob", "bob", key)
        town.until_count(SEGMENTS, "committed", key)
        town.until(lambda: os.path.exists(town.path("fed/round-001/owner-01.fetched")), "the client sees that")
        for _ in range(7):
            kill_server(town, client)
        assert "in a row" not in client.said() and port_of(town, client).decode() == told, client.said()
        kill_server(town, client)
        town.until(lambda: client.code() is not None, "the client gives up")
        said = client.said().split("died 8 times one after another, without a step of progress: ")
        assert client.code() == 2 and len(said) == 2 and "job serve" in said[1], client.said()
        assert node.stop() == 0, node.said()


# ---- kills while a void job is opened again ----------------------------------------------------------

MOVES = ("collect", "close", "open")  # the children with the key; each dies at its own calls


def prepare_void(town):
    """bob's job is about to be void, and the client is away; nobody else moves any more."""
    client, keys = federate(town, ("ada", "bob"))
    node = enlist(town, 2)
    lost = solve(town, "bob", "bob", keys["bob"], contact=stage.NOBODY)
    town.until_count(SEGMENTS, "committed", keys["bob"])
    town.ask("client", "job", "refuse", keys["bob"])
    assert client.stop() == 2, client.said()
    lost.kill()
    assert node.stop() == 0, node.said()
    town.pass_time(3 * PERIOD_S + 2)
    return keys


def go_on(town, **more):
    """The client goes on with the same command, until it dies or has opened bob's job again."""
    client = start_client(town, environment={"SUDDEN_DISK": "1", **more})
    end = time.monotonic() + stage.WAIT_MAX_S
    while client.code() is None and not reopened(town) and CHILD_DIED not in client.said():
        assert time.monotonic() < end, "neither died nor opened bob's job again: " + client.said()
        time.sleep(0.05)
    died = client.code() is not None or CHILD_DIED in client.said()
    client.kill()
    return died, client


def reopened(town):
    key = key_of(town, 1)
    return key is not None and key != town.lost and town.count("opened") == 3


def what_came(town):
    """Everything on the ledger, but when it was, and whether what is owed came home: the next withdrawal
    takes all of it."""
    moves = [(event["event"], event["job"], event["account"], event.get("segment")) for event in town.events()
             if event["event"] != "withdrawn"]
    with open(town.path("fed/round-001/owner-02.json"), encoding="ascii") as file:
        tries = json.load(file)["tries"]
    return moves, [town.money(who) for who in ("client", "bob", "verifier")], [one["end"] for one in tries]


def killed_while_a_void_job_is_opened_again():
    """The client's process dies at each call about files, and so does each child with the account's key; then
    the same command goes on: the ledger has every move once, and all have the money of a life without deaths."""
    with Town(["client", "ada", "bob", "verifier"]) as town:
        town.lost = prepare_void(town)["bob"]
        kept = town.folder + ".kept"
        shutil.copytree(town.folder, kept)
        try:
            calls = {}
            for who in ("federate", *MOVES):
                died, client = go_on(town, SUDDEN_IN=who)
                assert not died, client.said()
                calls[who] = client.calls()
                wanted = what_came(town)
                put_back(town, kept)
            assert all(count > 2 for count in calls.values()), calls
            assert [event for event, job, *_ in wanted[0] if job == town.lost][-1] == "closed", wanted
            deaths = 0
            for who, count in calls.items():
                for at in range(1 + count % 3, count + 1, 1 if stage.SOAK else max(1, count // 4)):
                    died, client = go_on(town, SUDDEN_IN=who, SUDDEN_DEATH=str(at))
                    deaths += died
                    died, client = go_on(town)
                    assert not died, (who, at, client.said())
                    assert what_came(town) == wanted, (who, at, what_came(town), wanted)
                    put_back(town, kept)
            print("# calls %s, %d deaths" % (calls, deaths), flush=True)
            assert deaths > len(calls), deaths
        finally:
            shutil.rmtree(kept)


def put_back(town, kept):
    """All but what processes said."""
    told = ("*.log", "*.tally")
    for name in os.listdir(town.folder):
        where = town.path(name)
        if os.path.isdir(where):
            shutil.rmtree(where)
        elif not any(fnmatch.fnmatch(name, one) for one in told):
            os.unlink(where)
    shutil.copytree(kept, town.folder, ignore=shutil.ignore_patterns(*told), dirs_exist_ok=True)


TESTS = [one_lies_and_one_vanishes, another_solver_takes_over, void_is_opened_again_and_two_rounds,
         killed_while_a_void_job_is_opened_again, a_state_that_nobody_serves_holds_up_no_other,
         a_child_that_always_dies_is_begun_no_more, a_server_that_always_dies_is_begun_no_more]
sys.exit(stage.main(TESTS, [one_lies_and_one_vanishes_on_a_chain]))
