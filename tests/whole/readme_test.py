"""Goal: who pastes the README's recipes into one terminal has a job trained, verified, paid and
delivered, and everybody there takes quick terms, which nobody takes unasked.
Method: the recipes as the README's own text has them, in a shell, in a folder that holds nothing but the
fixtures. And quick terms on both ledgers, as `job show` tells of them."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from town import ETHER, LOCKSTEP, WAIT_MAX_S, Town, main, processes  # noqa: E402

README = os.path.abspath("README.md")
FIXTURES = os.path.abspath("fixtures")
PURSE = 100 * ETHER
PERIODS = ("seal_period", "reveal_period", "claim_period")
FIVE_MINUTES_S = 300


def recipes():
    """What the section of the roles shows to be typed."""
    with open(README, encoding="utf-8") as file:
        section = file.read().split("\n## One recipe for each role\n")[1].split("\n### All of them")[0]
    lines = re.findall("^    (.*)$", section, re.M)
    assert len(lines) > 10, lines
    return "\n".join(lines) + "\n"


def paste(folder, text):
    """In a shell that stops at the first line that fails; what it says. All that it started ends."""
    os.symlink(FIXTURES, os.path.join(folder, "fixtures"))
    home = {"XDG_%s_HOME" % place: os.path.join(folder, place.lower())
            for place in ("DATA", "STATE", "CONFIG")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_")}
    # Light keys: six in ten seconds of processor went into passphrases, and on a busy machine a party
    # that opens its key for half a minute misses its turns of seconds.
    environment = dict(kept, PATH=os.path.dirname(os.path.abspath(LOCKSTEP)) + ":" + kept["PATH"],
                       LOCKSTEP_LIGHT="true", **home)
    shell = processes.start(["bash", "-e"], cwd=folder, env=environment, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            start_new_session=True)
    try:
        said, _ = shell.communicate(text.encode(), timeout=2 * WAIT_MAX_S)
    finally:
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    said = said.decode(errors="replace")
    assert shell.returncode == 0, said[-3000:]
    for name in glob.glob(os.path.join(folder, "*/UTC--*")):
        with open(name, encoding="ascii") as key:
            assert json.load(key)["crypto"]["kdfparams"]["n"] == 4096, name
    return said


def look(folder, who, *words):
    environment = dict(os.environ, LOCKSTEP_LEDGER="local:" + os.path.join(folder, "try.ledger"))
    done = subprocess.run([LOCKSTEP, *words, "--wallet", os.path.join(folder, who), "--json"],
                          stdout=subprocess.PIPE, env=environment, check=True)
    return json.loads(done.stdout)


def the_readmes_recipes_end_paid():
    folder = tempfile.mkdtemp(prefix="lockstep-test-")
    try:
        said = paste(folder, recipes())
        assert "text.run: proven" in said and "as committed and final" in said, said
        assert os.path.getsize(os.path.join(folder, "text.html")) > 1000
        assert os.path.getsize(os.path.join(folder, "model/model.safetensors")) > 1000
        for who in ("solver", "verifier"):
            (account,) = look(folder, who, "ledger", "status")["accounts"]
            has = int(account["purse_wei"]) + int(account["owed_wei"])
            assert has > PURSE, (who, has, said)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_quick(town, periods_most_s):
    """Opened without --any-terms: a solver that says quick takes it. The periods of a segment."""
    job = town.new_job("quick.job")
    key = town.ask("client", "job", "open", job, "--reward", "0.5eth", "--terms", "quick", "--yes")
    (shown,) = town.ask("client", "job", "list")["jobs"]
    terms = shown["terms"]
    assert shown["job"] == key["job"] and terms["seats"] == 1 and terms["panel_least"] == 1, shown
    assert terms["coverage"] == 1 and sum(terms[name] for name in PERIODS) < periods_most_s, terms
    for who in ("solver", "node"):
        assert shown["refused_by"][who] is not None, "nobody takes quick terms unasked"
        assert "least" in shown["refused_by"][who]["text"], shown
    (shown,) = town.ask("client", "job", "list", "--terms", "quick")["jobs"]
    assert shown["refused_by"] == {"solver": None, "node": None}, shown
    strict = ("--terms", "quick", "--seal-period-min", "1h", "--clock-min", "1h")
    (shown,) = town.ask("client", "job", "list", *strict)["jobs"]
    assert None not in shown["refused_by"].values(), "what is said stands before quick"
    refused = town.run("client", "job", "open", job, "--reward", "0.5eth", "--terms", "quick",
                       "--salt", "1", "--reveal-period", "1s", "--yes", wanted=1)
    assert "with --terms quick" in refused, refused
    return terms


def quick_terms_are_seconds():
    with Town(["client"]) as town:
        open_quick(town, FIVE_MINUTES_S / 2)


def quick_terms_are_minutes_on_a_chain():
    with Town(["client"], on_chain=True) as town:
        terms = open_quick(town, 3600)
        assert min(terms[name] for name in PERIODS) >= 120, terms


if __name__ == "__main__":
    sys.exit(main([the_readmes_recipes_end_paid, quick_terms_are_seconds],
                  [quick_terms_are_minutes_on_a_chain]))
