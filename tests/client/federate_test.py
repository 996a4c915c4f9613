"""Goal: rounds of many owners without a ledger: the mean of the states is right to the bit, of whole
models and of adapters, plain and with an outer step; a command that is killed anywhere goes on to the
same states; what can not be averaged is refused by name; and the audit proves honest rounds and names
each forgery: a forged mean, a dropped owner, a swapped state, another order, a record of other rounds.
Method: the built program on tiny models; the arithmetic once more in Python, rounded to binary32 after
each operation; forgeries are made of the parts of honest rounds."""

import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

import tap  # noqa: E402
import tiny_llama  # noqa: E402
from rounds import f32, mean, state  # noqa: E402

LOCKSTEP = os.path.abspath(os.environ["TEST_LOCKSTEP"])
DEATH = os.path.abspath(os.path.join(os.environ["TEST_BUILD"].replace("/asan", ""), "tests/sudden_death.so"))
TEXT = "fixtures/text/village.u8"
OWNERS = ("ada", "bob", "cem", "dea")
STEPS = 4
KILLS = (30, 131, 250, 401)

folder = tempfile.mkdtemp(prefix="lockstep-test-")


def path(*names):
    return os.path.join(folder, *names)


def run(*words, wanted=0, more=None):
    done = subprocess.run([LOCKSTEP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **(more or {})), check=False)
    assert done.returncode == wanted, (words, done.returncode, done.stdout[-900:], done.stderr[-900:])
    return done.stdout.decode()


def refusal(*words, wanted=3):
    error = json.loads(run(*words, "--json", wanted=wanted))["error"]
    return error["message"] + " " + error.get("advice", "")


# ---- plans ------------------------------------------------------------------------------------


def rows(number, count=3000):
    """The rows of an owner: a part of a text."""
    name = path("rows-%d.u8" % number)
    if not os.path.exists(name):
        with open(TEXT, "rb") as text, open(name, "wb") as file:
            text.seek(number * count)
            file.write(text.read(count))
    return name


def make_job(name, number, *more, width=16):
    run("job", "new", "--data", rows(number), "--layers", "1", "--heads", "1", "--width", str(width),
        "--length", "8", "--batch", "1", "--vocabulary", "128", "--steps", str(STEPS),
        "--segment-steps", "2", *more, "--out", path(name))
    return path(name)


def adapter_job(name, number):
    if not os.path.exists(path("base")):
        tiny_llama.write(path("base"), num_hidden_layers=1)
    run("job", "new", "--base", path("base"), "--lora", "2", "--target", "q_proj,v_proj", "--data",
        rows(number), "--data-type", "u8", "--length", "8", "--batch", "1", "--steps", str(STEPS),
        "--segment-steps", "2", "--out", path(name))
    return path(name)


def plan(name, owners, **more):
    """owners: (name, job, data...)"""
    with open(path(name), "w", encoding="ascii") as file:
        json.dump({"owners": [{"name": who, "job": job, "data": list(data)}
                              for who, job, *data in owners], **more}, file)
    return path(name)


def usual_plan(name="plan.json", order=OWNERS):
    for number, who in enumerate(OWNERS):
        if not os.path.exists(path(who + ".job")):
            make_job(who + ".job", number)
    return plan(name, [(who, path(who + ".job"), rows(OWNERS.index(who))) for who in order])


def federate(plan_path, out, *more, wanted=0, environment=None):
    return run("job", "federate", plan_path, "--out", path(out), "--offline", "--threads", "1", *more,
               wanted=wanted, more=environment)


def honest():
    """Two rounds of four owners, made once."""
    if not os.path.exists(path("honest")):
        federate(usual_plan(), "honest", "--rounds", "2")
    return path("honest")


# ---- the arithmetic -----------------------------------------------------------------------------


def outer(start, average, velocity, rate, momentum):
    d = f32(start - average)
    velocity = f32(f32(velocity * momentum) + d)
    return f32(start - f32(f32(d + f32(velocity * momentum)) * rate)), velocity


def see_means(out, rounds, owners, factors=None, moments=False):
    """Each round begins with what the arithmetic gives; of how many numbers."""
    velocity, seen = {}, 0
    for number in range(1, rounds + 1):
        start = state(path(out, "round-%03d" % number, "start.safetensors"))
        after = state(path(out, "round-%03d" % (number + 1), "start.safetensors"))
        given = [state(path(out, "round-%03d" % number, "owner-%02d.run/checkpoints/%012d.safetensors"
                            % (owner, STEPS))) for owner in owners]
        parameters = {name for name in given[0] if name[:2] not in ("m.", "v.")}
        assert set(after) == (set(given[0]) if moments else parameters), set(after)
        for name, values in after.items():
            for at, value in enumerate(values):
                wanted = mean([one[name][at] for one in given])
                if factors is not None and name in parameters:
                    wanted, velocity[name, at] = outer(start[name][at], wanted,
                                                       velocity.get((name, at), 0.0), *factors)
                assert struct.pack("<f", value) == struct.pack("<f", wanted), (number, name, at)
                seen += 1
    return seen


# ---- what works -----------------------------------------------------------------------------------


def the_mean_of_whole_models_is_right_and_proven():
    honest()
    assert see_means("honest", 2, (1, 2, 3, 4)) > 2000
    said = json.loads(run("audit", honest(), "--json"))["audits"][0]
    assert said["answer"] == "proven" and said["rounds"] == 2, said
    for number in (1, 2):
        assert "round %d: the mean of 4 states was made again and gave the same bits" % number in said["proven"], said
        assert "round %d: %d steps of dea were run again and gave the same bits" % (number, STEPS) in said["proven"], said
    # Each round trains on rows of its own draw: the second does not repeat the first.
    first, second = (json.loads(run("job", "show", path("honest", "round-%03d/owner-01.job" % number), "--json"))
                     for number in (1, 2))
    assert first["id"] != second["id"], first


def adapters_travel_alone():
    jobs = [(who, adapter_job(who + "-lora.job", at), rows(at), path("base")) for at, who in enumerate(OWNERS[:3])]
    federate(plan("lora.json", jobs), "lora", "--rounds", "2")
    assert see_means("lora", 2, (1, 2, 3)) > 100
    names = set(state(path("lora/round-003/start.safetensors")))
    assert names and all("lora_" in name for name in names), names
    assert "lora: proven" in run("audit", path("lora"))


def an_outer_step_and_moments():
    federate(usual_plan(), "outer", "--rounds", "2", "--outer", "0.7:0.9", "--keep-moments")
    see_means("outer", 2, (1, 2, 3, 4), (f32(0.7), f32(0.9)), moments=True)
    assert "outer: proven" in run("audit", path("outer"))


def a_diverging_owner_is_left_out_where_the_quorum_allows():
    jobs = [(who, make_job("wild-%s.job" % who, at, "--optimizer", "sgd", "--warmup", "0", "--clip", "0",
                      "--rate", "1e6" if who == "bob" else "0.1"),
             rows(at)) for at, who in enumerate(OWNERS[:3])]
    wild = plan("wild.json", jobs)
    assert "quorum is 3" in federate(wild, "wild3", "--json", wanted=1)
    federate(wild, "wild", "--quorum", "2")
    see_means("wild", 1, (1, 3))
    said = json.loads(run("audit", path("wild"), "--json"))["audits"][0]
    assert said["answer"] == "proven", said
    assert "round 1: bob is left out: diverged, as its record says" in said["trusted"], said


def killed_anywhere_it_goes_on():
    """This process, and its children, die at a chosen system call; then the same command goes on."""
    ends = json.loads(federate(usual_plan(), "honest", "--rounds", "2", "--json"))
    wanted = [one["mean_state"] for one in ends["rounds"]]
    deaths = 0
    for number, kill in enumerate(KILLS):
        name = "killed-%d" % number
        words = [LOCKSTEP, "job", "federate", usual_plan(), "--out", path(name), "--offline", "--threads", "1",
                 "--rounds", "2"]
        for _ in range(3):
            done = subprocess.run(words, env=dict(os.environ, LD_PRELOAD=DEATH, SUDDEN_DEATH=str(kill),
                                                  OMP_WAIT_POLICY="passive", ASAN_OPTIONS="verify_asan_link_order=0"),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                  check=False)
            deaths += done.returncode == -signal.SIGKILL
        ends = json.loads(federate(usual_plan(), name, "--rounds", "2", "--json"))
        assert [one["mean_state"] for one in ends["rounds"]] == wanted, (kill, ends)
        left = [file for _, _, files in os.walk(path(name)) for file in files
                if file.endswith(".tmp")]
        assert not left, left
        assert "%s: proven" % name in run("audit", path(name))
    assert deaths >= len(KILLS), deaths


def the_page_is_true():
    """The commands of docs/FEDERATE.md in their order, but those about a ledger."""
    with open("docs/FEDERATE.md", encoding="utf-8") as file:
        text = file.read()
    here = path("page")
    os.mkdir(here)
    tiny_llama.write(os.path.join(here, "base"), num_hidden_layers=1)
    for number, who in enumerate(("ada", "bob")):
        shutil.copy(rows(number), os.path.join(here, who + ".u8"))
    (told,) = re.findall(r'^    (\{"owners".*?\]\})$', text, re.MULTILINE | re.DOTALL)
    with open(os.path.join(here, "plan.json"), "w", encoding="ascii") as file:
        json.dump(json.loads(told), file)
    commands = [line for line in re.findall(r"^    (lockstep .*)$", text.replace("\\\n", " "), re.MULTILINE)]
    assert len(commands) == 7, commands
    for command in commands:
        if "--ledger" not in command:
            done = subprocess.run(["bash", "-c", command], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=dict(os.environ, PATH=os.path.dirname(LOCKSTEP) + ":" + os.environ["PATH"]),
                                  check=False)
            assert done.returncode == 0, (command, done.stdout[-300:], done.stderr[-600:])
    # The adapters that PEFT would load are the last mean.
    last = state(os.path.join(here, "fed/round-003/start.safetensors"))
    given = state(os.path.join(here, "together/adapter_model.safetensors"))
    assert sorted(last.values()) == sorted(given.values()) and len(given) == 4, set(given)
    with open(os.path.join(here, "together/README.md"), encoding="utf-8") as file:
        assert "| mean of round | 2 |" in file.read()


def begun_otherwise_it_is_refused():
    honest()
    for more, word in ((("--rounds", "3"), "--rounds"), (("--rounds", "2", "--quorum", "2"), "--quorum"),
                       (("--rounds", "2", "--outer", "1:0"), "--outer"),
                       (("--rounds", "2", "--keep-moments"), "--keep-moments")):
        said = federate(usual_plan(), "honest", *more, "--json", wanted=1)
        assert "another agreement: other %s" % word in said, said
    other = usual_plan("other.json", OWNERS[::-1])
    assert "other owners" in federate(other, "honest", "--rounds", "2", "--json", wanted=1)


# ---- what is refused --------------------------------------------------------------------------------


def what_can_not_be_averaged_is_refused_by_name():
    usual_plan()
    ada = ("ada", path("ada.job"), rows(0))
    cases = [
        ([ada, ("eve", make_job("wide.job", 1, width=24), rows(1))], 1, "train different models"),
        ([ada, ("eve", make_job("seed.job", 1, "--seed", "7"), rows(1))], 1, "begin with different states"),
        ([ada, ("eve", make_job("long.job", 1, "--eval", rows(2)), rows(1), rows(2))], 1,
         "jobs of 'ada' and 'eve' train different models"),
        ([], 3, "'owners' is a list of 1 to 64"),
        ([ada] * 65, 3, "'owners' is a list of 1 to 64"),
        ([ada, ada], 3, "two owners are called 'ada'"),
        ([ada, ("eve", path("ada.job"), rows(0))], 3, "'ada' and 'eve' have one job: each owner has rows of its own"),
        ([("a b", path("ada.job"), rows(0))], 3, "a name has 1 to 40 letters"),
        ([("ada", path("none.job"), rows(0))], 3, "none.job"),
    ]
    for number, (owners, code, words) in enumerate(cases):
        said = refusal("job", "federate", plan("case.json", owners), "--out", path("case-%d" % number), "--offline",
                       wanted=code)
        assert words in said, (words, said)
        assert not os.path.exists(path("case-%d" % number, "rounds.json")), number
    usual = usual_plan()
    for more, words in ((("--quorum", "5"), "a quorum of 5"), (("--outer", "0.7"), "a rate and a momentum"),
                        (("--outer", "-1:0.9"), "each of 0 to 100"), (("--outer", "nan:0.9"), "each of 0 to 100")):
        said = refusal("job", "federate", usual, "--out", path("case"), "--offline", *more)
        assert words in said, (words, said)
    for change, words in (({"terms": {"reward": 1}}, "'reward' is a text"), ({"terms": {"rewart": "1"}}, "no word 'rewart'"),
                          ({"terms": {"salt": "1"}}, "leave it out"), ({"pay": "1"}, "unknown key 'pay'")):
        with open(path("case.json"), "w", encoding="ascii") as file:
            json.dump({"owners": [{"name": "ada", "job": path("ada.job"), "data": [rows(0)], **change}]}, file)
        said = refusal("job", "federate", path("case.json"), "--out", path("case"), "--offline",
                       wanted=1 if "pay" in change else 3)
        assert words in said, (words, said)


# ---- forgeries --------------------------------------------------------------------------------------


def forge(name, change):
    """A copy of the honest rounds with a change."""
    shutil.rmtree(path(name), ignore_errors=True)
    shutil.copytree(honest(), path(name))
    change(path(name))
    return path(name)


def record(where, number, change):
    name = os.path.join(where, "round-%03d/round.json" % number)
    with open(name, encoding="ascii") as file:
        told = json.load(file)
    change(told)
    with open(name, "w", encoding="ascii") as file:
        file.write(json.dumps(told, separators=(",", ":"), sort_keys=True) + "\n")


def other_rounds(name, **more):
    """Honest rounds of other owners or in another order, to take parts of."""
    if not os.path.exists(path(name)):
        federate(plan(name + ".json", more["owners"]), name, "--rounds", "2")
    return path(name)


def take_mean(where, source):
    shutil.rmtree(os.path.join(where, "round-002/mean.run"))
    shutil.copytree(os.path.join(source, "round-002/mean.run"), os.path.join(where, "round-002/mean.run"))


def forged_journal(where):
    """The mean's journal and its record say another state."""
    with sqlite3.connect(os.path.join(where, "round-002/mean.run/journal.db")) as journal:
        assert journal.execute("UPDATE steps SET root = ?", (b"\x11" * 32,)).rowcount == 1
        journal.execute("UPDATE checkpoints SET root = ? WHERE step = 1", (b"\x11" * 32,))
    journal.close()
    record(where, 2, lambda told: told.update(mean_state="11" * 32))


def swapped_file(where):
    """bob's file holds ada's numbers."""
    mine, other = (os.path.join(where, "round-002/owner-%02d.safetensors" % owner) for owner in (1, 2))
    with open(mine, "rb") as file:
        data = file.read()
    with open(other, "wb") as file:
        file.write(data.replace(b'"1.', b'"2.'))


def copied_state(told):
    """bob's solver gave what ada's made."""
    told["owners"][1].update(state=told["owners"][0]["state"], trees=told["owners"][0]["trees"])


def late(told):
    told["owners"][2]["tries"][0]["end"] = "late"
    del told["owners"][2]["state"], told["owners"][2]["trees"]


def no_reason(told):
    del told["owners"][2]["state"], told["owners"][2]["trees"]


def each_forgery_is_found_and_named():
    usual_plan()
    backwards = other_rounds("backwards", owners=[(who, path(who + ".job"), rows(OWNERS.index(who)))
                                                  for who in OWNERS[::-1]])
    again = other_rounds("again", owners=[(who, path(who + ".job"), rows(at)) for at, who in enumerate(OWNERS)])
    fewer = other_rounds("fewer", owners=[(who, path(who + ".job"), rows(at)) for at, who in enumerate(OWNERS[:3])])

    def take_order(where):
        """The same states, added from the last to the first."""
        shutil.rmtree(os.path.join(where, "round-001/mean.run"))
        shutil.copytree(os.path.join(backwards, "round-001/mean.run"), os.path.join(where, "round-001/mean.run"))

    def replay(where):
        shutil.rmtree(os.path.join(where, "round-002"))
        shutil.copytree(os.path.join(again, "round-002"), os.path.join(where, "round-002"))

    cases = [
        (forged_journal, "round 2: the mean is forged: its step was run again, and gives another state"),
        (lambda where: take_mean(where, fewer), "round 2: the mean is not that of the record's states: it is the mean"
                                                " of other states"),
        (take_order, "round 1: the mean is not that of the record's states: it adds the states in another order"),
        (replay, "round 2: its record is of other rounds, with another agreement"),
        (swapped_file, "holds another state than the job of bob came to"),
        (lambda where: record(where, 2, copied_state), "round 2: the bundle of bob does not end with the state"),
        (lambda where: record(where, 2, lambda told: told["owners"].pop(2)),
         "round 2: its record does not name cem: an owner was dropped without a reason"),
        (lambda where: record(where, 2, no_reason), "round 2: cem is left out without a reason"),
        (lambda where: record(where, 2, late), "round 2: it has 3 states, and the quorum is 4"),
        (lambda where: record(where, 2, lambda told: told["owners"].reverse()),
         "round 2: its record names the owners in another order"),
        (lambda where: record(where, 1, lambda told: told.update(next="22" * 32)),
         "round 1: its record leads to another state than the mean"),
        (lambda where: record(where, 2, lambda told: told.update(previous="22" * 32)),
         "round 2: its record does not follow the record before it"),
        (lambda where: record(where, 2, lambda told: told.update(start="22" * 32)),
         "round 2: it does not begin with the mean of the round before"),
        (lambda where: record(where, 2, lambda told: told["owners"][0].update(job="22" * 32)),
         "round 2: the job of ada is another than the one that was given"),
        (lambda where: record(where, 2, lambda told: told["owners"][0].update(state="22" * 32)),
         "round 2: the trees of ada do not give the state"),
        (lambda where: record(where, 2, lambda told: told.update(mean_job="22" * 32)),
         "round 2: its record names another mean"),
        (lambda where: record(where, 2, lambda told: told.update(extra=1)), "extra"),
        (lambda where: shutil.copy(path("bob.job"), os.path.join(where, "owner-01.job")),
         "is another job than the agreement names"),
    ]
    for number, (change, words) in enumerate(cases):
        said = json.loads(run("audit", forge("forged-%d" % number, change), "--json", wanted=1))["audits"][0]
        assert said["answer"] == "refuted", (words, said)
        assert any(words in one for one in said["refuted"]), (words, said["refuted"], said["not_told"])
    said = json.loads(run("audit", forge("forged", lambda where: os.remove(
        os.path.join(where, "round-002/owner-02.safetensors"))), "--json", wanted=2))["audits"][0]
    assert said["answer"] == "cannot-tell" and said["not_told"], said
    unfinished = forge("unfinished", lambda where: shutil.rmtree(os.path.join(where, "round-002")))
    said = json.loads(run("audit", unfinished, "--json", wanted=2))["audits"][0]
    assert "round 2: it has no record: the rounds end before it" in said["not_told"], said


TESTS = [
    the_mean_of_whole_models_is_right_and_proven,
    adapters_travel_alone,
    an_outer_step_and_moments,
    a_diverging_owner_is_left_out_where_the_quorum_allows,
    the_page_is_true,
    begun_otherwise_it_is_refused,
    what_can_not_be_averaged_is_refused_by_name,
    each_forgery_is_found_and_named,
    killed_anywhere_it_goes_on,
]
try:
    code = tap.run(TESTS)
finally:
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(code)
