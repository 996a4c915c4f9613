"""Goal: solvers that take work by themselves empty a board of ten jobs: each job is trained and paid
once, nobody takes what its policy refuses, one job at a time runs on a device and several at once on
several, none begins while others use it where it shall not, a node that is killed at any call goes on
with what it began, and one whose trainings fail gives the job back.
Method: two nodes with different policies in a town (town.py) of an embedded ledger and of a chain. Both
have all job files. One has no stake above 5 ether and wants no small reward; the other takes at most two
jobs at a time. Jobs that both refuse stay open."""

import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from town import BOND, DATA, ETHER, LOCKSTEP, PERIOD_S, PURSE, STAKE, Town, free_port, main  # noqa: E402
import browser  # noqa: E402

JOBS = 10
SMALL = ETHER // 100
REFUSED = ("huge", "poor")
# Nobody verifies here: a segment is final a minute after it was committed.
SOON = ("--seal-period", "20s", "--reveal-period", "20s", "--claim-period", "20s")
# Calls at which the nodes die, in their first lives: before, while and after they stake and train.
DEATHS = {"careful": (40, 250, 700), "greedy": (25, 400)}


def open_board(town):
    """Ten jobs that somebody takes, and two that nobody does."""
    os.mkdir(town.path("jobs"))
    keys = {}
    for number in range(JOBS):
        job = town.new_job("jobs/%d.job" % number, "--seed", str(number + 1), "--steps", "8")
        keys[str(number)] = town.open_job(
            job, "--seats", "0", "--stake", "%dwei" % (ETHER * (2 + 6 * (number % 2))),
            "--reward", "%dwei" % (2 * ETHER + number), "--segment-period", "%ds" % (3 * PERIOD_S),
            *SOON)
    for name in REFUSED:
        job = town.new_job("jobs/%s.job" % name, "--seed", str(100 + len(name)), "--width", "24")
        stake = 30 * ETHER if name == "huge" else ETHER // 100
        reward = 20 * ETHER if name == "huge" else SMALL
        keys[name] = town.open_job(job, "--seats", "0", "--stake", "%dwei" % stake, "--reward",
                                   "%dwei" % reward, "--bond", "%dwei" % min(stake, BOND), *SOON)
    return keys


def node(town, who, *policy):
    return town.start(who, "prover", "node", "--jobs", town.path("jobs"), "--data", DATA,
                      "--threads", "1", "--measure", "0.05", "--poll", "1s", "--reward-min",
                      "0.1ether", "--stake-rewards-max", "0", *policy, deaths=DEATHS[who],
                      more={"LOCKSTEP_LOCKS": town.path(who)})


def jobs_of(town, who):
    """What the node's file says; it may not be there yet."""
    try:
        with open(town.path(who + "/state/lockstep/solver/node.json"), encoding="utf-8") as view:
            told = json.load(view)
    except FileNotFoundError:
        return {"paid": 0, "slots": [{"why": ""}]}
    return told


def adds_up(town, who):
    """What the node says of its money is what the ledger says, to the wei: all that it has was given to
    it or earned, less its gas."""
    money = jobs_of(town, who)["money"]
    amounts = {name[:-4]: int(amount) for name, amount in money.items() if name.endswith("_wei")}
    assert amounts["earned"] > 0 and amounts["lost"] == 0, money
    assert (amounts["gas"] > 0) == (town.chain is not None), money
    places = [amounts[name] for name in ("free", "stakes", "bonds", "escrow", "owed")]
    assert sum(places) == amounts["total"], money
    assert sum(int(day["earned_wei"]) for day in money["days"]) == amounts["earned"], money
    return amounts["brought_in"] == PURSE and amounts["free"] == amounts["total"] and \
        money == town.ask(who, "ledger", "status")["accounts"][0]["money"]


def see_policies(town, keys):
    """Who took what, by the ledger."""
    accepted = [(event["job"], event["account"]) for event in town.events("accepted")]
    assert sorted(job for job, _ in accepted) == sorted(keys[str(i)] for i in range(JOBS)), accepted
    for number in range(JOBS):
        if number % 2:  # a stake of 8 ether
            assert (keys[str(number)], town.people["careful"]) not in accepted, accepted
    assert {account for _, account in accepted} == {town.people["careful"], town.people["greedy"]}


def see_reasons(town, keys):
    """Of each open job it is told which term is refused, and by which option."""
    for who in ("careful", "greedy"):
        told = {offer["job"]: offer for offer in jobs_of(town, who)["offers"]}
        assert all(told[keys[name]]["refused"] for name in REFUSED), told
        assert "--stake-max" in told[keys["huge"]]["why"], told
        assert "--reward-min" in told[keys["poor"]]["why"], told


def see_page(one):
    """The page, the JSON and the health tell the same as the node's file."""
    url = re.search(r"http://\S+", one.said()).group()
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    page = ask(url, timeout=60).read().decode()
    assert "computes on cpu" in page and "Lockstep solver" in page and "<script" in page, page
    assert "http" not in page.replace("http-equiv", ""), "a page asks for nothing outside"
    assert json.load(ask(url + "node.json", timeout=60))["slots"][0]["does"] == "idle"
    assert ask(url + "health", timeout=60).read() == b"well\n"
    browser.see(url)


def empty_the_board(on_chain):
    with Town(["client", "careful", "greedy"], on_chain=on_chain) as town:
        for who in ("careful", "greedy"):
            os.makedirs(town.path(who), exist_ok=True)
        keys = open_board(town)
        nodes = [node(town, "careful", "--stake-max", "5ether"),
                 node(town, "greedy", "--stake-max", "20ether", "--jobs-max", "2")]
        for one in nodes:
            one.again = False

        def all_paid():
            town.pass_time(4)  # periods end while the nodes work
            return sum(jobs_of(town, who)["paid"] for who in ("careful", "greedy")) >= JOBS
        town.until(all_paid, "all jobs are paid")
        town.until(lambda: town.count("closed") >= JOBS, "the client's index has all of it")
        see_policies(town, keys)
        see_reasons(town, keys)
        assert town.count("committed") == 2 * JOBS and town.count("convicted") == 0
        assert town.count("released") == 0
        assert all(one.died > 0 for one in nodes), [one.died for one in nodes]
        for who in ("careful", "greedy"):
            town.until(lambda who=who: adds_up(town, who), "the money of %s adds up" % who)
        for one in nodes:
            assert one.stop() == 0, one.said()
        for who in ("careful", "greedy"):
            view = jobs_of(town, who)
            assert view["lost"] == 0 and not view["jobs"], view


def two_nodes_empty_a_board():
    empty_the_board(False)


def two_nodes_empty_a_board_on_a_chain():
    empty_the_board(True)


def a_job_is_measured_once_for_all_its_openings():
    with Town(["client", "greedy"]) as town:
        os.makedirs(town.path("greedy"), exist_ok=True)
        os.mkdir(town.path("jobs"))
        job = town.new_job("jobs/a.job")
        for salt in range(6):
            town.open_job(job, "--seats", "0", "--salt", str(salt), *SOON)
        one = town.start("greedy", "prover", "node", "--jobs", town.path("jobs"), "--data", DATA,
                         "--threads", "1", "--measure", "0.05", "--hour-min", "1000000000ether",
                         more={"LOCKSTEP_LOCKS": town.path("greedy")})

        def refused():
            offers = jobs_of(town, "greedy").get("offers", ())
            return len(offers) == 6 and all("--hour-min" in offer["why"] for offer in offers)
        town.until(refused, "the pace of all openings is known")
        assert one.said().count("measures job") == 1, one.said()
        assert one.stop() == 0


def stakes_of_all_jobs_together_have_a_limit():
    """Two slots, and room for one stake: the second job waits until the first one is closed."""
    with Town(["client", "greedy"]) as town:
        os.makedirs(town.path("greedy"), exist_ok=True)
        os.mkdir(town.path("jobs"))
        keys = [town.open_job(town.new_job("jobs/%d.job" % number, "--seed", str(number + 1)), "--seats", "0", *SOON)
                for number in range(2)]

        def start(most):
            return town.start("greedy", "prover", "node", "--jobs", town.path("jobs"), "--data", DATA, "--threads",
                              "1", "--measure", "0.05", "--poll", "1s", "--clock-min", "0s", "--stakes-max",
                              "%dwei" % most, more={"LOCKSTEP_LOCKS": town.path("greedy")})

        def why():
            return {offer["job"]: offer["why"] for offer in jobs_of(town, "greedy").get("offers", ())}

        one = start(STAKE - 1)
        town.until(lambda: all("more than 4.99" in why().get(key, "") and "(--stakes-max)" in why()[key]
                               for key in keys), "it takes none")
        assert town.count("accepted") == 0 and one.stop() == 0, one.said()
        one = start(2 * STAKE - 1)
        town.until_count(1, "accepted")
        first = town.events("accepted")[0]["job"]
        (second,) = set(keys) - {first}
        town.until(lambda: "(--stakes-max)" in why().get(second, ""), "the second is refused")
        town.until(lambda: town.count("committed", first) == 3, "the first is trained")
        assert town.count("accepted") == 1, town.events("accepted")
        town.pass_time(120)
        town.until(lambda: town.count("closed", second) == 1, "the second is done after the first")
        kinds = [(event["event"], event["job"]) for event in town.events()]
        assert kinds.index(("closed", first)) < kinds.index(("accepted", second)), kinds
        assert one.stop() == 0, one.said()


def nothing_is_staked_where_nobody_could_fetch():
    """A panel that cannot fetch votes a segment void, however right it is."""
    with Town(["client", "greedy", "verifier"]) as town:
        os.makedirs(town.path("greedy"), exist_ok=True)
        os.mkdir(town.path("jobs"))
        key = town.open_job(town.new_job("jobs/a.job"))

        def start(*more):
            return town.start("greedy", "prover", "node", "--jobs", town.path("jobs"), "--data", DATA,
                              "--threads", "1", "--measure", "0.05", "--page", "0", *more,
                              more={"LOCKSTEP_LOCKS": town.path("greedy")})

        def why():
            return [offer["why"] for offer in jobs_of(town, "greedy").get("offers", ())]

        place = "127.0.0.1:%d" % free_port()
        for more, words in (((), "name a place with --serve"),
                            (("--serve", "0.0.0.0:0"), "could not know where this node serves")):
            one = start(*more)
            town.until(lambda: [text for text in why() if words in text], words)
            assert "takes no job that has seats" in one.said(), one.said()
            assert town.count("accepted", key) == 0
            assert one.stop() == 0
            assert words in town.run("greedy", "prover", "status")
        one = start("--serve", place)
        town.until_count(1, "accepted", key)
        (accepted,) = [event for event in town.events("accepted") if event["job"] == key]
        assert accepted["contact"] == "http://" + place, accepted
        assert one.stop() == 0
        # The node asks the address that it announces, as a verifier does.
        one = start("--contact", "http://127.0.0.1:9")
        told = "http://127.0.0.1:9, which the ledger names, does not give what this node serves"
        town.until(lambda: told in one.said(), "the node has asked itself")
        town.until(lambda: told in jobs_of(town, "greedy").get("contact_trouble", ""), "it is told")
        assert one.stop() == 0
        assert told in town.run("greedy", "prover", "status")


def a_device_trains_one_job_at_a_time():
    """Where another process computes, a node waits and says so; a run by hand goes on, and says so."""
    with Town(["client", "greedy"]) as town:
        os.makedirs(town.path("greedy"), exist_ok=True)
        os.mkdir(town.path("jobs"))
        key = town.open_job(town.new_job("jobs/a.job"), "--seats", "0", *SOON)
        lock = os.open(town.path("greedy/lockstep-cpu.lock"), os.O_RDONLY | os.O_CREAT, 0o444)
        fcntl.flock(lock, fcntl.LOCK_EX)
        one = town.start("greedy", "prover", "node", "--jobs", town.path("jobs"), "--data", DATA,
                         "--threads", "1", "--measure", "0.05", "--clock-min", "0s", "--page",
                         "0",
                         more={"LOCKSTEP_LOCKS": town.path("greedy")})
        town.until(lambda: "computes on cpu" in jobs_of(town, "greedy")["slots"][0]["why"],
                   "the node waits")
        assert "process %d (" % os.getpid() in jobs_of(town, "greedy")["slots"][0]["why"]
        assert town.count("accepted", key) == 0
        see_page(one)
        os.close(lock)
        town.until(lambda: town.count("closed", key) == 1, "the job is done")
        assert one.stop() == 0
        assert town.ask("greedy", "prover", "status") == jobs_of(town, "greedy")


def health(one):
    """The code and the line of /health."""
    url = re.search(r"http://\S+", one.said()).group() + "health"
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    try:
        with ask(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()


def a_job_that_is_begun_waits_for_its_own_user_alone():
    """Where another user holds the lock for ever, the stake of a job that is begun is not lost."""
    locks = tempfile.mkdtemp(prefix="lockstep-locks-")
    os.chmod(locks, 0o755)
    path = os.path.join(locks, "lockstep-cpu.lock")
    stranger = None
    try:
        with Town(["client", "greedy"]) as town:
            os.makedirs(town.path("greedy"), exist_ok=True)
            os.mkdir(town.path("jobs"))
            key = town.open_job(town.new_job("jobs/a.job", "--steps", "4000", "--segment-steps", "250",
                                             "--width", "8", "--length", "4"), "--seats", "0", *SOON)
            words = ("prover", "node", "--jobs", town.path("jobs"), "--data", DATA, "--threads", "1",
                     "--measure", "0.05", "--clock-min", "0s", "--page", "0")
            one = town.start("greedy", *words, more={"LOCKSTEP_LOCKS": locks})
            town.until(lambda: trainings(one), "it trains")
            one.kill()
            lock = os.open(path, os.O_RDONLY)
            town.until(lambda: take_lock(lock), "its child ends")
            one = town.start("greedy", *words, more={"LOCKSTEP_LOCKS": locks})
            ours = "process %d (" % os.getpid()
            town.until(lambda: ours in one.said(), "the log names who holds the lock")
            code, line = town.until(lambda: health(one)[0] == 503 and health(one), "it is ill")
            assert ours in line and "that is begun waits" in line, (code, line)
            assert not trainings(one)
            os.close(lock)
            town.until(lambda: trainings(one), "it trains again")
            one.kill()
            if os.geteuid() != 0:
                print("# only root can act as another user: that part was left out")
                return
            stranger = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534",
                                         "--clear-groups", "flock", path, "sleep", "600"])
            lock = os.open(path, os.O_RDONLY)
            town.until(lambda: not take_lock(lock) or fcntl.flock(lock, fcntl.LOCK_UN), "it is held")
            os.close(lock)
            one = town.start("greedy", *words, more={"LOCKSTEP_LOCKS": locks})
            town.until(lambda: town.count("closed", key) == 1, "the job is done beside a stranger")
            assert "of user 65534 holds" in one.said() and "trains beside it" in one.said(), one.said()
            assert health(one)[0] == 200
            assert one.stop() == 0
    finally:
        if stranger is not None:
            subprocess.run(["pkill", "-P", str(stranger.pid)], check=False)
            stranger.kill()
            stranger.wait()
        shutil.rmtree(locks, ignore_errors=True)


def take_lock(descriptor):
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def kernel_says(process):
    """Seccomp's mode and the capabilities of every thread, in words of the kernel."""
    told = set()
    for path in glob.glob("/proc/%d/task/*/status" % process):
        try:
            with open(path, encoding="utf-8") as status:
                fields = dict(line.rstrip("\n").split(":\t", 1) for line in status)
        except OSError:  # it ended
            continue
        told.add((fields["Seccomp"], int(fields["CapEff"], 16) & ~6))  # 6: its right to files
    return told


def what_trains_a_strangers_program_is_confined():
    """And so is what measures it. tests/verifier/check/confine_test.c has what such a process cannot."""
    if os.path.basename(os.path.dirname(LOCKSTEP)) == "asan":
        print("# a sanitized program makes processes of its own, and is not confined")
        return
    with Town(["client", "greedy"]) as town:
        os.makedirs(town.path("greedy"), exist_ok=True)
        os.mkdir(town.path("jobs"))
        job = town.new_job("jobs/a.job", "--steps", "4000", "--segment-steps", "250", "--width", "8",
                           "--length", "4")
        probe = town.start("greedy", "prover", "probe", job, "--data", DATA, "--measure",
                           "600")
        town.until(lambda: kernel_says(probe.process.pid) == {("2", 0)}, "probe is confined")
        probe.kill()
        town.open_job(job, "--seats", "0", *SOON)
        one = town.start("greedy", "prover", "node", "--jobs", town.path("jobs"), "--data", DATA,
                         "--threads", "2", "--measure", "0.05", "--clock-min", "0s",
                         more={"LOCKSTEP_LOCKS": town.path("greedy")})
        town.until(lambda: [process for process in trainings(one)
                            if kernel_says(process) == {("2", 0)}], "the training is confined")
        assert one.stop() == 0, one.said()


def parent_and_words(process):
    """Of a process that has not ended, else (None, [])."""
    try:
        with open("/proc/%s/stat" % process, encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
        with open("/proc/%s/cmdline" % process, encoding="utf-8", errors="replace") as line:
            return (None, []) if fields[0] == "Z" else (int(fields[1]), line.read().split("\0"))
    except OSError:  # it ended
        return None, []


def trainings(one):
    """What trains for a node, each below a child that resumes, and the devices it trains on."""
    found = {}
    for path in glob.glob("/proc/[0-9]*"):
        parent, words = parent_and_words(path[6:])
        if "--lockstep-trainer" in words:
            above, words = parent_and_words(parent)
            if above == one.process.pid and words[1:3] == ["prover", "resume"]:
                found[int(path[6:])] = words[words.index("--device") + 1]
    return found


def is_locked(town, device):
    lock = os.open(town.path("greedy/lockstep-%s.lock" % device), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(lock)


def know_pace(town, who, job, devices):
    """As after a measurement, which takes long on an emulated device."""
    paces = town.path(who + "/state/lockstep/paces")
    os.makedirs(paces, exist_ok=True)
    for device in devices:
        name = "%s/%s.%s" % (paces, town.ask(who, "job", "show", job)["id"], device)
        with open(name, "w", encoding="ascii") as file:
            file.write('{"step_ns": 1000000, "tokens": 4}\n')


def several_devices_train_at_once_when_nobody_else_uses_them():
    """Emulated devices, which nobody measures. Trainings are held still until both are there."""
    devices = ("cuda:0", "cuda:1")
    more = {"LOCKSTEP_CUDA": os.path.abspath("build/tests/emulated_cuda.so"),
            "LOCKSTEP_NVML": os.path.abspath("build/tests/fake_nvml.so")}
    with Town(["client", "greedy"]) as town:
        os.makedirs(town.path("greedy"), exist_ok=True)
        os.mkdir(town.path("jobs"))
        for number in range(2):
            job = town.new_job("jobs/%d.job" % number, "--seed", str(number + 1), "--steps", "4000",
                               "--segment-steps", "250", "--width", "8", "--length", "4")
            know_pace(town, "greedy", job, devices)
            town.open_job(job, "--seats", "0", *SOON)

        def start(use, **order):
            return town.start("greedy", "prover", "node", "--jobs", town.path("jobs"), "--data",
                              DATA, "--threads", "1", "--measure", "0.05", "--slot", devices[0],
                              "--slot", devices[1], "--when-idle",
                              more=dict(more, LOCKSTEP_LOCKS=town.path("greedy"),
                                        FAKE_NVML="2 1000 %d 0" % use, **order))

        def slots():
            return jobs_of(town, "greedy")["slots"]

        in_order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        for use, order, why in ((0, {}, "nobody can tell"), (90, in_order, "others use it (--when")):
            one = start(use, **order)
            town.until(lambda: len(slots()) == 2 and all(why in slot["why"] for slot in slots()), why)
            assert one.stop() == 0 and town.count("accepted") == 0, one.said()
        one = start(0, **in_order)

        def hold_until_both():
            found = trainings(one)
            for process in found:
                os.kill(process, signal.SIGSTOP)
            return found if len(found) == 2 else None

        both = town.until(hold_until_both, "both train")
        assert sorted(both.values()) == list(devices), both
        assert all(is_locked(town, device) for device in devices)
        assert all(os.sched_getscheduler(process) == os.SCHED_IDLE for process in both), both
        town.until(lambda: [slot["does"] for slot in slots()] == ["training"] * 2, "it says so")
        assert len({slot["job"] for slot in slots()}) == 2 and town.count("accepted") == 2
        for process in both:
            os.kill(process, signal.SIGCONT)
        assert one.stop() == 0, one.said()
        assert not any(is_locked(town, device) for device in devices)


def a_job_whose_training_fails_is_given_back():
    """What trains finds nonsense in its environment, each time; a node without it takes the job."""
    with Town(["client", "greedy", "careful"]) as town:
        for who in ("greedy", "careful"):
            os.makedirs(town.path(who), exist_ok=True)
        os.mkdir(town.path("jobs"))
        key = town.open_job(town.new_job("jobs/a.job"), "--seats", "0", *SOON)

        def start(who, **more):
            return town.start(who, "prover", "node", "--jobs", town.path("jobs"), "--data", DATA,
                              "--threads", "1", "--measure", "0.05", "--page", "0",
                              more=dict(more, LOCKSTEP_LOCKS=town.path(who)))

        broken = start("greedy", LOCKSTEP_KEEP_EVERY="nonsense")
        town.until(lambda: "is given back" in broken.said(), "no more is tried")
        town.pass_time(5 * PERIOD_S + 1)  # the time of its first segment
        town.until_count(1, "released", key)
        town.until(lambda: jobs_of(town, "greedy").get("lost") == 1, "it is lost")
        assert re.search(r"job %s is lost: its training failed \d+ times in a row" % key[:14], broken.said())
        page = re.search(r"http://\S+", broken.said()).group()
        ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        assert "<b>Works, and has lost jobs</b>" in ask(page, timeout=60).read().decode()
        town.until(lambda: [offer for offer in jobs_of(town, "greedy")["offers"]
                            if offer["job"] == key and "begun here before" in offer["why"]],
                   "and not taken again")
        assert town.money("greedy") == 100 * ETHER - STAKE // 8
        good = start("careful")
        town.until(lambda: town.count("closed", key) == 1, "another does it")
        assert town.count("accepted", key, "greedy") == 1
        for one in (broken, good):
            assert one.stop() == 0, one.said()


if __name__ == "__main__":
    sys.exit(main([two_nodes_empty_a_board, a_job_is_measured_once_for_all_its_openings,
                   stakes_of_all_jobs_together_have_a_limit,
                   nothing_is_staked_where_nobody_could_fetch,
                   a_device_trains_one_job_at_a_time,
                   what_trains_a_strangers_program_is_confined,
                   a_job_that_is_begun_waits_for_its_own_user_alone,
                   several_devices_train_at_once_when_nobody_else_uses_them,
                   a_job_whose_training_fails_is_given_back],
                  [two_nodes_empty_a_board_on_a_chain]))
