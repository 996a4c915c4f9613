"""Goal: under a real systemd the packaged units of a verifier's and of a solver's node, and of a keeper, start, show what
they wait for, are killed and restarted when the node hangs, and stop cleanly.
Method: a manager of the user's kind in a name space of our own, with the packaged unit less what
belongs to its user and its jail; every wait is for a property of the unit. Skipped where there is
no systemd, or nobody may mount."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
import processes  # noqa: E402
from town import LOCKSTEP, WAIT_MAX_S, Town  # noqa: E402

SYSTEMD = "/lib/systemd/systemd"
RUN = "/run/lockstep-test"
KEPT = ("Type", "NotifyAccess", "ExecStart", "Restart", "RestartSec", "WatchdogSec",
        "TimeoutStartSec", "TimeoutStopSec", "KillMode", "OOMPolicy", "LimitCORE", "UMask")
SOLVER = "lockstep-solver"
KEEPER = "lockstep-keeper@"
WATCHDOG_S = 10  # in place of three minutes; on a very busy machine it may bite once more


def control(*words):
    return subprocess.run(["systemctl", "--user", *words], stdin=subprocess.DEVNULL, check=True,
                          stdout=subprocess.PIPE, text=True, timeout=WAIT_MAX_S).stdout


def passphrase(town):
    path = town.path("passphrase")
    with open(path, "w", encoding="ascii") as file:
        file.write("pass words\n")
    os.chmod(path, 0o600)
    return path


class Manager:
    """systemd itself. It believes that it may run where /run/systemd/system is."""

    def __init__(self, folder):
        os.makedirs("/run/systemd/system", exist_ok=True)
        os.makedirs(RUN, mode=0o700)
        os.makedirs(folder + "/systemd/user")
        self.units = folder + "/systemd/user"
        os.environ.update(XDG_RUNTIME_DIR=RUN, XDG_CONFIG_HOME=folder)
        self.log = open(folder + "/log", "w", encoding="utf-8")
        self.process = processes.start([SYSTEMD, "--user", "--log-target=console"],
                                        stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        self.until(lambda: os.path.exists(RUN + "/systemd/private"), "the manager is there")

    def until(self, happened, what):
        end = time.monotonic() + WAIT_MAX_S
        while not happened():
            assert self.process.poll() is None, "the manager is gone"
            assert time.monotonic() < end, "it never happened: " + what
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(WAIT_MAX_S)
        self.log.close()
        shutil.rmtree(RUN, ignore_errors=True)

    def add(self, town, name, ledger, unit="lockstep-verifier"):
        """A packaged unit, with places of the town's."""
        with open("packaging/%s.service" % unit, encoding="utf-8") as file:
            lines = file.read().splitlines()
        config = town.path(name + ".conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write("state=%s\nledger=%s\nregistry=%s\n" % (town.path(name), ledger, "0x" + "11" * 20))
            if "verifier" in unit:  # as the examples have it
                file.write("mode=act\n" if "gpu" in unit else "mode=observe\n")
            if unit in (SOLVER, KEEPER):
                file.write("wallet=%s\npassphrase-file=%s\n" % (
                    town.path("client/data/lockstep/wallet"), passphrase(town)))
        made = ["[Service]"] + [line for line in lines if line.partition("=")[0] in KEPT]
        text = "\n".join(made).replace("@BIN@/lockstep", os.path.abspath(LOCKSTEP))
        text = re.sub("/etc/lockstep/(verifier|solver|keeper).conf", config, text)
        text = text.replace("%i", "0x" + "22" * 32)
        text = re.sub(r"127\.0\.0\.1:757\d", "0", text)
        text += "\nStandardError=append:%s" % town.path(name + ".log")
        text = re.sub("WatchdogSec=.*", "WatchdogSec=%d" % WATCHDOG_S, text)
        text = re.sub("RestartSec=.*", "RestartSec=1", text)
        assert len(made) == len(KEPT) + 1, made
        # A unit that is at rest is forgotten, and how it ended with it.
        report = "$$SERVICE_RESULT $$EXIT_CODE $$EXIT_STATUS"
        text += "\nExecStopPost=/bin/sh -c 'echo %s >>%s'\n" % (report, town.path(name + ".ends"))
        with open("%s/%s.service" % (self.units, name), "w", encoding="utf-8") as file:
            file.write(text)
        control("daemon-reload")


def about(name, what):
    return control("show", "-P", what, name).strip()


def ends(town, name):
    with open(town.path(name + ".ends"), encoding="utf-8") as file:
        return file.read().splitlines()


def a_verifiers_unit_starts_hangs_is_started_again_and_ends():
    starts_hangs_is_started_again_and_ends("lockstep-verifier")


def a_solvers_unit_starts_hangs_is_started_again_and_ends():
    starts_hangs_is_started_again_and_ends(SOLVER)


def starts_hangs_is_started_again_and_ends(unit):
    with Town(("client",)) as town, Manager(town.path("manager")) as manager:
        manager.add(town, "node", town.url, unit)
        control("start", "node")  # returns when the node has said that it is ready
        assert about("node", "StatusText") == "following the ledger"
        restarts = int(about("node", "NRestarts"))
        first = int(about("node", "MainPID"))
        os.kill(first, signal.SIGSTOP)  # a round that hangs
        manager.until(lambda: int(about("node", "NRestarts")) > restarts,
                      "the watchdog saw it")
        manager.until(lambda: about("node", "StatusText") == "following the ledger"
                      and about("node", "ActiveState") == "active", "it follows the ledger again")
        assert int(about("node", "MainPID")) not in (0, first)
        begun = time.monotonic()
        control("stop", "node")
        print("# stopped in %.1f s" % (time.monotonic() - begun))
        assert about("node", "ActiveState") == "inactive"
        # Killed by the watchdog; then neither killed nor late.
        report = ends(town, "node")
        assert report[-1] == "success exited 0" and set(report[:-1]) == {"watchdog killed ABRT"}, report


def units_whose_ledger_is_away_are_started_and_say_so():
    with Town(("client",)) as town, Manager(town.path("manager")) as manager:
        for unit in ("lockstep-verifier", SOLVER, KEEPER):
            name = unit.rstrip("@")
            manager.add(town, name, "http://127.0.0.1:1", unit)
            control("start", name)
            assert about(name, "StatusText").startswith("waiting for the ledger: ")
            assert about(name, "ActiveState") == "active"
            control("stop", name)
            assert ends(town, name)[-1] == "success exited 0", ends(town, name)


def units_for_gpus_start_on_a_device_and_without_one():
    for plugin, taken in ((os.path.abspath("build/tests/emulated_cuda.so"), "the first GPU"),
                          ("off", "the CPU: CUDA is turned off by LOCKSTEP_CUDA")):
        with Town(("client",)) as town, Manager(town.path("manager")) as manager:
            own = town.environment("client")
            control("set-environment", "LOCKSTEP_CUDA=" + plugin, *(
                "%s=%s" % (name, own[name]) for name in own if name.startswith("XDG_") and name.endswith("_HOME")),
                "LOCKSTEP_PASSPHRASE=" + own["LOCKSTEP_PASSPHRASE"], "LOCKSTEP_LOCKS=" + town.path("client"))
            for who, option in (("verifier", "--device auto"), ("solver", "--slot auto")):
                manager.add(town, who, town.url, "lockstep-%s-gpu" % who)
                control("start", who)
                assert about(who, "StatusText") == "following the ledger"
                assert option in about(who, "ExecStart")
                with open(town.path(who + ".log"), encoding="utf-8") as file:
                    assert "auto takes " + taken in file.read()
                control("stop", who)
                assert ends(town, who)[-1] == "success exited 0", ends(town, who)


def why_not():
    if not os.path.exists(SYSTEMD) or not shutil.which("systemctl"):
        return "systemd is not installed"
    probe = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /run"]
    if not shutil.which("unshare") or subprocess.run(
            probe, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL).returncode != 0:
        return "no file system may be mounted here"
    begins = ["unshare", "--mount", "sh", "-c",
              "mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/try &&"
              " chmod 700 /run/try || exit 1; XDG_RUNTIME_DIR=/run/try timeout 60 %s --user & for i in $(seq 300); do"
              " [ -e /run/try/systemd/private ] && kill $! && exit 0; sleep 0.2; done; exit 1"
              % SYSTEMD]
    if subprocess.run(begins, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        return "a systemd does not run here"
    return None


if "OWN_ROOM" not in os.environ:
    reason = why_not()
    if reason is not None:
        print("1..1\nskip: %s\nok 1 # SKIP units under systemd" % reason)
        sys.exit(0)
    os.environ["OWN_ROOM"] = "1"
    os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])

subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
stage.AT_ONCE = 1  # there is one manager at a time
sys.exit(stage.main([a_verifiers_unit_starts_hangs_is_started_again_and_ends,
                     a_solvers_unit_starts_hangs_is_started_again_and_ends,
                     units_whose_ledger_is_away_are_started_and_say_so,
                     units_for_gpus_start_on_a_device_and_without_one]))
