"""Goal: what people asked for has an answer, and the answer is true.
Method: docs/MISSION.md as it stands. Each wish has a command, a test of this repository or a reason;
every command runs in a folder that holds nothing but the fixtures, in the order of the page, and ends
as the page says."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.dont_write_bytecode = True

import tap  # noqa: E402

LOCKSTEP = os.path.abspath(os.environ["TEST_LOCKSTEP"])
FIXTURES = os.path.abspath("fixtures")
WAIT_MAX_S = 120
WISHES = 53
REASONS = ("Not ours", "Not yet", "not yet")


def page():
    with open("docs/MISSION.md", encoding="utf-8") as file:
        return file.read()


def wishes(text):
    """(number, answer) of each wish, in the page's order."""
    items = re.findall(r"^- \*\*(\d+) ((?:.|\n  )+)$", text, re.M)
    parts = [(int(number), " ".join(item.split()).split(".** ", 1)) for number, item in items]
    return [(number, answer) for number, (_, answer) in parts]


def commands_of(answer):
    """(command, the exit codes that the page allows) of an answer."""
    found = re.findall(r"`(lockstep [^`]+)`(?: \(exits with ([0-9 or]+)\))?", answer)
    return [(command, {int(code) for code in re.findall(r"\d", codes)} or {0})
            for command, codes in found]


def tests_of(answer):
    return re.findall(r"`(tests/[^`]+)`", answer)


def every_wish_has_an_answer():
    rows = wishes(page())
    assert [number for number, _ in rows] == list(range(WISHES)), [number for number, _ in rows]
    for number, answer in rows:
        assert commands_of(answer) or tests_of(answer) or answer.startswith(REASONS), (number, answer)
        for named in tests_of(answer) + re.findall(r"`(docs/[^`]+)`", answer):
            assert os.path.isfile(named), (number, named)


def an_answer_that_shows_nothing_is_found():
    for answer in ("we do all of this", "see above", "`make demo`"):
        assert not (commands_of(answer) or tests_of(answer) or answer.startswith(REASONS)), answer


def run(folder, command):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("LOCKSTEP_")}
    for place in ("DATA", "STATE", "CONFIG"):
        environment["XDG_%s_HOME" % place] = os.path.join(folder, place.lower())
    environment["PATH"] = os.path.dirname(LOCKSTEP) + ":" + environment["PATH"]
    environment["LOCKSTEP_LEDGER"] = "local:" + os.path.join(folder, "wish.ledger")
    environment["LOCKSTEP_PASSPHRASE"] = "only to try"
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=WAIT_MAX_S, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def every_command_does_what_its_wish_says():
    text = page()
    folder = tempfile.mkdtemp(prefix="lockstep-test-")
    try:
        os.symlink(FIXTURES, os.path.join(folder, "fixtures"))
        for line in re.findall(r"^    (lockstep .*)$", text, re.M):
            code, said = run(folder, line)
            assert code == 0, (line, code, said[-1500:])
        for number, answer in wishes(text):
            for command, codes in commands_of(answer):
                code, said = run(folder, command)
                assert code in codes and said, (number, command, code, said[-1500:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(tap.run([every_wish_has_an_answer, an_answer_that_shows_nothing_is_found,
                       every_command_does_what_its_wish_says]))
