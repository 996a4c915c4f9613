"""Goal: each option is used by a test, and what texts tell a reader to type exists: a sentence of the
program or of a document that names a command with an option names one that the command has, and a
command that stands alone between quotes is there.
Method: the table of words, the texts of all tests, the manual pages that the program writes, the strings
of the product and the code of the documents."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

from program import call, main, path  # noqa: E402

# What an option fills in, where a test holds that and needs no command line: a word of the test.
HELD = {
    "check-time": ("tests/verifier/check/workers_test.c", "time_max_s"),
    "disk-max": ("tests/verifier/check/fetch_test.c", "file_max"),
    "forget-fault": ("tests/verifier/node/node_crash_test.c", "node_forget_fault"),
    "gas-price-max": ("tests/chain/evm/outbox_test.c", "fee_most"),
    "grace": ("tests/verifier/node/solver_timeout_test.c", "grace_s"),
    "no-refuse": ("tests/client/keep_plan_test.c", "refuses"),
}
COMMON = {"help", "json", "config", "log-level", "log-format"}
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def tracked(*places):
    listed = subprocess.run(["git", "ls-files", *places], stdout=subprocess.PIPE, check=False).stdout.decode().split()
    return [name for name in listed if os.path.isfile(name)]


def read(name):
    with open(name, encoding="utf-8", errors="replace") as file:
        return file.read()


def words():
    return [line.split()[0] for line in read("tests/house/option_words.txt").split("\n")
            if line.strip() and not line.startswith("#")]


def each_option_is_used_by_a_test():
    texts = "\n".join(read(name) for name in tracked("tests", "scripts/demo")
                      if not name.startswith("tests/house/") and "node_modules" not in name)
    used = set(re.findall(r"(?<![\w-])--([a-z0-9][a-z0-9-]*)", texts))
    for option in words():
        if option in HELD:
            name, word = HELD[option]
            assert re.search(r"\b%s" % word, read(name)), (option, name, word)
            assert option not in used, "--%s is used by a test: its line in HELD goes" % option
        else:
            assert option in used, "--%s: no test says it" % option


def commands():
    """{"job new": its options}"""
    os.mkdir(path("man"))
    call("help", "--man-to", path("man"))
    found = {}
    for name in os.listdir(path("man")):
        page = read(os.path.join(path("man"), name)).replace("\\-", "-")
        found[name[:-2].replace("lockstep-", "", 1).replace("-", " ", 1)] = \
            COMMON | set(re.findall(r"^\.B --([a-z0-9-]+)", page, re.M))
    assert len(found) > 50 and "segment-steps" in found["job new"], sorted(found)
    return found


def told(name):
    """The pieces of a file that a reader may type."""
    text = read(name)
    if name.endswith((".c", ".h")):
        for match in STRING.finditer(COMMENT.sub("", text)):
            yield re.sub(r'"\s*"|\\n', lambda found: " \n" if found.group() == "\\n" else "", match.group()[1:-1])
    else:
        yield from re.findall(r"`([^`\n]+)`", text)
        yield from re.findall(r"^    .*$", re.sub(r"\\\n\s*", "", text), re.M)


def what_a_text_says_to_type_exists():
    known = commands()
    verbs = {name.split()[0] for name in known if " " in name}
    named = re.compile(r"(?: *lockstep )?(%s) ([a-z][a-z-]*)(?=[' ]|$)" % "|".join(sorted(verbs)))
    asked = re.compile(r"(?<![\w/-])(?:lockstep )?(%s)((?: +(?!lockstep )[^\s'`;|&()]+)*)" % "|".join(
        sorted(map(re.escape, known), key=len, reverse=True)))
    seen, wrong = 0, []
    for name in tracked("base", "data", "chain", "client", "prover", "verifier", "proofs", "README.md", "docs"):
        if not name.endswith((".c", ".h", ".md")) or name.startswith(("docs/history/", "base/cli/renamed")):
            continue
        for piece in told(name):
            for quoted in re.findall(r"'[^']*'", piece) if name.endswith((".c", ".h")) else [piece]:
                match = named.match(quoted.strip("'"))
                if match and "%s %s" % match.groups() not in known:
                    wrong.append("%s: '%s %s'" % (name, *match.groups()))
            for command, rest in asked.findall(piece):
                for option in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", rest.split("--launch", 1)[0]):
                    seen += 1
                    if option not in known[command] and option.replace("no-", "", 1) not in known[command]:
                        wrong.append("%s: '%s --%s'" % (name, command, option))
    assert seen > 150 and not wrong, (seen, wrong)


sys.exit(main([each_option_is_used_by_a_test, what_a_text_says_to_type_exists]))
