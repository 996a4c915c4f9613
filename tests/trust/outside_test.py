"""Goal: nothing outside the lists of docs/TRUST.md can make a false "proven" or a false conviction.
Method: programs with one fault each, planted in a function that an audit reaches and that no list of
the first two promises has. Each audits a true bundle and a false one, and judges a piece of evidence
with a byte changed; the evidence that it writes itself is judged by the sound program. Twenty faults,
others each day; make soak plants many more."""

import datetime
import glob
import json
import os
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), "scripts"]
sys.dont_write_bytecode = True

import trust  # noqa: E402
from program import DATA, LOCKSTEP, ask, call, main, new_job, path  # noqa: E402

ROOMS = ("base", "engine", "proofs", "chain", "client", "prover", "verifier")
BUILD = os.environ["TEST_BUILD"]
LIE = 6  # the step that the cheat falsifies
FAULTS = 400 if int(os.environ.get("SOAK_MINUTES", "0")) > 0 else 20
AT_ONCE = 2
# What a fault makes of a line.
CHANGES = ((" == ", " != "), (" != ", " == "), (" < ", " <= "), (" <= ", " < "), (" > ", " >= "),
           (" && ", " || "), (" || ", " && "), (" + 1", " + 2"), (" - 1", " - 0"),
           ("return true;", "return false;"), ("return false;", "return true;"), ("++", "--"),
           ("if (", "if (!("), (" ? ", " == 0 ? "))
FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-I.", "-O0", "-w", "-fopenmp", "-ffp-contract=off",
         "-fno-fast-math")


def libraries():
    """What make links the program with."""
    with open("mk/compile.mk", encoding="utf-8") as file:
        (words,) = re.findall(r"^LDLIBS = (.*)$", file.read(), re.M)
    there = subprocess.run(["gcc", "-print-file-name=libscrypt.so.0"], stdout=subprocess.PIPE)
    return words.replace("$(scrypt)", "-l:libscrypt.so.0" if b"/" in there.stdout
                         else "-lscrypt").split()


def listed():
    """The files of the first two promises."""
    with open("docs/TRUST.md", encoding="utf-8") as file:
        text = file.read()
    found = set()
    for block in re.findall(r"<!-- trust: c .*?-->\n(.*?)<!-- end -->", text, re.S)[:2]:
        for folder, names in re.findall(r"- `(.*?)`: ((?:.*\n(?:  )?)+?)(?=- |\Z)", block):
            found |= {folder + "/" + name for name in re.findall(r"([\w.]+\.[ch]) ", names)}
    assert "verifier/check/verdict.c" in found and "proofs/dispute/evidence_judge.c" in found, found
    return found


def places():
    """File, line and changed line of every fault that can be planted."""
    program, inside, found = trust.Program(ROOMS, BUILD), listed(), []
    for name, functions in sorted(program.reached(["run_audit", "audit_evidence"]).items()):
        if name in inside or not name.endswith(".c"):
            continue
        with open(name, encoding="utf-8") as file:
            lines = file.read().split("\n")
        bodies = trust.blank("\n".join(lines)).split("\n")
        for at, (line, body) in enumerate(zip(lines, bodies)):
            for old, new in CHANGES:
                if line.startswith("    ") and old in body and old in line and \
                        (old != "if (" or body.rstrip().endswith(") {")):
                    changed = line.replace(old, new, 1)
                    if old == "if (":
                        changed = changed.replace(") {", ")) {")
                    found.append((name, at, changed))
    assert len(found) > 500, len(found)
    return found


def plant(number, place):
    """A program with the fault; None: it does not compile."""
    name, at, changed = place
    with open(name, encoding="utf-8") as file:
        lines = file.read().split("\n")
    lines[at] = changed
    source, made = path("fault-%d.c" % number), path("fault-%d" % number)
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    for words in (["gcc", *FLAGS, "-c", "-o", made + ".o", source],
                  ["gcc", "-fopenmp", "-pie", "-o", made, BUILD + "/lockstep.o", made + ".o",
                   BUILD + "/liblockstep.a", *libraries()]):
        if subprocess.run(words, stderr=subprocess.DEVNULL).returncode != 0:
            return None
    return made


def run(program, *words):
    """A fault may make it crash, or wait for ever."""
    try:
        done = subprocess.run(["timeout", "-k", "1", "20", program, *words],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None, b""
    return done.returncode, done.stdout


def answer_of(said):
    try:
        return json.loads(said)["audits"][0]["answer"]
    except (ValueError, KeyError, IndexError):
        return None


def see(number, place):
    """What a program with the fault says falsely; None: it was not made."""
    program = plant(number, place)
    if program is None:
        return None
    folder = path("found-%d" % number)
    os.mkdir(folder)
    wrong = []
    for bundle, lie in (("honest.run", "refuted"), ("cheat.run", "proven")):
        code, said = run(program, "audit", "--json", "--threads", "1", "--evidence-folder", folder,
                         "--trace-from", path("www"), path(bundle))
        if answer_of(said) == lie or code == (1 if lie == "refuted" else 0):
            wrong.append("%s is called %s" % (bundle, lie))
    if run(program, "audit", "--verify-evidence", path("forged.evidence"))[0] == 1:
        wrong.append("forged bytes convict")
    for name in glob.glob(folder + "/*.evidence"):
        if "honest" in name:
            wrong.append("evidence against the honest solver: " + name)
    for name in (program, program + ".o", program + ".c"):
        os.remove(name)
    return wrong


def prepare():
    new_job("a.job")
    for name, more in (("honest.run", ()), ("cheat.run", ("--falsify", str(LIE)))):
        ask("prover", "run", path("a.job"), "--data", DATA, "--bundle", path(name), "--threads", "1",
            *more)
    ask("prover", "publish", path("cheat.run"), "--out", path("www"), "--trace", str(LIE),
        "--threads", "1")
    call("audit", "--threads", "1", "--evidence-folder", path("."), "--trace-from", path("www"),
         path("cheat.run"), wanted=1)
    (evidence,) = glob.glob(path("*.evidence"))
    call("audit", "--verify-evidence", evidence, wanted=1)
    with open(evidence, "rb") as file:
        content = bytearray(file.read())
    content[-1] ^= 1
    with open(path("forged.evidence"), "wb") as file:
        file.write(content)


def faults_outside_the_lists_say_nothing_false():
    prepare()
    chosen = random.Random(datetime.date.today().toordinal()).sample(places(), FAULTS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(see, range(FAULTS), chosen))
    wrong = ["%s:%d: %s: %s" % (place[0], place[1] + 1, place[2].strip(), one)
             for place, one in zip(chosen, found) if one]
    assert not wrong, wrong
    assert sum(one is not None for one in found) >= FAULTS // 2, "too few of them compile"


def faults_inside_the_list_are_seen():
    """The same by faults in the judge: so the method sees what it looks for."""
    for old, new, wanted in (("!digest_equal(&replay->root", "digest_equal(&replay->root",
                              "honest.run is called refuted"),
                             ("if (*flaw == CHECK_FLAW_NONE)", "if (true)",
                              "cheat.run is called proven")):
        with open("verifier/check/verdict.c", encoding="utf-8") as file:
            lines = file.read().split("\n")
        (at,) = [i for i, line in enumerate(lines) if old in line]
        wrong = see(FAULTS + (old[0] == "i"), ("verifier/check/verdict.c", at,
                                               lines[at].replace(old, new)))
        assert wrong == [wanted], wrong


if os.path.basename(BUILD) == "asan":
    print("1..0 # SKIP the faults are compiled into the program as users have it")
    sys.exit(0)
sys.exit(main([faults_outside_the_lists_say_nothing_false, faults_inside_the_list_are_seen]))
