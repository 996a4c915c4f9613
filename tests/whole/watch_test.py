"""Goal: a client sees its job live: `job watch` shows from the ledger alone where segments and
money stand and what it waits for; it takes the curve from a mirror and says that this is unproven;
no mirror can make it fail or write to the terminal. On a terminal it fits every window and leaves
it as it was. Method: the built program; a job that is trained, committed and closed; mirrors that
do wrong (tests/verifier/check/hostile_mirror.py); a pseudo terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import town  # noqa: E402
from delivery_test import BROKEN, FALSE, publish, train  # noqa: E402
from town import LOCKSTEP, PERIOD_S, REWARD, Town, main, processes  # noqa: E402
import browser  # noqa: E402

CONTACT = "http://127.0.0.1:9/<script>"


def commit(here):
    """A job whose three segments are committed; its key and bundle. Its solver says something hostile
    on the ledger."""
    job, bundle = train(here, "first")
    key = here.open_job(job, "--seats", "0")
    solver = here.start("solver", "prover", "run", job, "--bundle", here.path("solver.run"),
                        "--data", town.DATA, "--threads", "1", "--job-key", key, "--poll", "1s",
                        "--contact", CONTACT, "--page", "0")
    here.until_count_at_least(3, "committed", key)
    return key, bundle, solver


def look(here, key, *more):
    patience = [] if "--mirror-timeout" in more else ["--mirror-timeout", "10s"]
    return here.ask("client", "job", "watch", key, "--once", *patience, *more)


def start(here, *words, **more):
    return processes.start([LOCKSTEP, "job", "watch", *words], stdin=subprocess.DEVNULL,
                           env=dict(here.environment("client"), **more.pop("env", {})), **more)


def losses(here, bundle):
    steps = here.ask("client", "bundle", "steps", bundle, "--count", "1000")["steps"]
    return [step["loss"] for step in steps]


def seen_by_the_ledger(here, key):
    seen = look(here, key)
    assert (seen["phase"], seen["steps_done"], seen["committed"]) == ("running", 12, 3), seen
    assert sum(seen["segments_by_state"].values()) == seen["segments"] == 3, seen
    assert seen["training"]["loss"] is None and seen["training"]["losses"] == [], seen
    assert int(seen["money"]["to_come_wei"]) == REWARD and seen["money"]["earned_wei"] == "0"
    assert seen["waits_for"]["segment"] == 0, seen
    assert not seen["training"]["curve_proven"], seen


def curve_of_a_mirror(here, key, bundle):
    url = publish(here, bundle) + "/good"
    seen = look(here, key, "--mirror", url)["training"]
    assert [loss for _, loss in seen["losses"]] == losses(here, bundle), seen
    assert [step for step, _ in seen["losses"]] == list(range(12)), seen
    assert url in seen["curve_is"] and "UNPROVEN" in seen["curve_is"], seen
    assert seen["tokens_per_second"] is None or seen["tokens_per_second"] > 0, seen
    return url


def mirrors_that_do_wrong(here, key, bundle, good):
    """They are asked first. What they say of losses is shown as theirs; the rest is another's."""
    right = losses(here, bundle)
    for kind in BROKEN + FALSE:
        bad = good.replace("/good", "/" + kind)
        seen = look(here, key, "--mirror", bad, "--mirror", good, "--mirror-timeout", "1s")
        said = [loss for _, loss in seen["training"]["losses"]]
        assert seen["committed"] == 3, (kind, seen)
        assert said == right or bad in seen["training"]["curve_is"], (kind, seen)
        assert kind in FALSE or said == right, (kind, seen)


def a_pipe_gets_lines(here, key, url):
    watch = start(here, key, "--poll", "1s", "--mirror", url, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True)
    line = watch.stdout.readline()
    assert line.startswith("running  12 of 12 steps  3 of 3 segments committed, 0 final"), line
    while "loss" not in line:
        line = watch.stdout.readline()
    watch.send_signal(signal.SIGINT)
    assert watch.wait(town.WAIT_MAX_S) == 0, watch.stderr.read()
    assert "\x1b" not in line + watch.stdout.read() + watch.stderr.read()


# ---- the page ------------------------------------------------------------------------------


def get(url):
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        url, timeout=town.WAIT_MAX_S).read().decode()


def see_page(here, process, title):
    """What a page of a job with three committed segments and a curve has; where it is."""
    url = here.until(lambda: re.search(r"job at (http://\S+)", process.said()),
                     "the page is served").group(1)
    here.until(lambda: len(json.loads(get(url + "job.json"))["training"]["losses"]) == 12 and
               "3 of 3 committed" in get(url), "the page has the curve and the segments")
    page = get(url)
    assert 'aria-label="loss: ' in page and "<h1>%s" % title in page and "<h2>Money</h2>" in page, page
    assert "3 of 3 committed, 0 final" in page and "Staked" in page, page
    assert page.count("<script>") == 1 and "<script>/" not in page, page
    for outside in ("src=", "@import", "<link rel=\"style"):
        assert outside not in page, outside
    seen = json.loads(get(url + "job.json"))
    assert seen["committed"] == 3, seen
    assert get(url + "health") == "well\n"
    browser.see(url)


def a_page_shows_it(here, key, url):
    watch = here.start("client", "job", "watch", key, "--poll", "1s", "--mirror", url, "--page",
                       "0")
    see_page(here, watch, "Lockstep job")
    assert "no root binds a loss" in get(re.search(r"job at (\S+)", watch.said()).group(1))
    assert watch.stop() == 0, watch.said()


# ---- the terminal --------------------------------------------------------------------------


class Terminal:
    """What a person sees: obeys what the program draws with, and nothing else."""

    def __init__(self, columns, rows):
        self.master, self.slave = pty.openpty()
        self.rest = b""
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines, self.x, self.y = [""] * rows, 0, 0
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def put(self, letter):
        if self.x == self.columns:  # drawn for the window of before
            self.x = 0
            self.feed_line()
        assert unicodedata.category(letter)[0] != "C", repr(letter)
        line = self.lines[self.y].ljust(self.x)
        self.lines[self.y] = line[:self.x] + letter + line[self.x + 1:]
        self.x += 1

    def feed_line(self):
        self.y += 1
        if self.y == self.rows:
            self.lines, self.y = self.lines[1:] + [""], self.y - 1

    def obey(self, number, letter):
        if letter == "K":
            self.lines[self.y] = self.lines[self.y][:self.x]
        elif letter == "J":
            begin = 0 if number == "2" else self.y + 1
            self.lines[begin:] = [""] * (self.rows - begin)
            self.lines[self.y] = self.lines[self.y][:0 if number == "2" else self.x]
        elif letter == "A":
            self.y = max(0, self.y - int(number))
        else:
            assert letter == "H", letter
            self.x = self.y = 0

    def feed(self, text):
        for part in re.findall(r"\x1b\[[0-9]*[A-Z]|.", text, re.DOTALL):
            if part[0] == "\x1b" and len(part) > 1:
                self.obey(part[2:-1], part[-1])
            elif part == "\r":
                self.x = 0
            elif part == "\n":
                self.feed_line()
            else:
                self.put(part)

    def until(self, found):
        """Reads on until what is seen has it."""
        end = time.monotonic() + town.WAIT_MAX_S
        while not found("\n".join(self.lines)):
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            assert ready, self.lines
            self.rest += os.read(self.master, 65536)
            text = self.rest.decode("utf-8", "ignore")
            whole = text.rfind("\n") + 1  # no sequence is cut before an end of line
            self.feed(text[:whole])
            self.rest = text[whole:].encode()


def a_terminal_is_drawn_on_and_left_clean(here, key, url):
    sight = Terminal(80, 24)
    before = termios.tcgetattr(sight.slave)
    watch = start(here, key, "--poll", "1s", "--mirror", url, stdout=sight.slave, stderr=sight.slave,
                  env={"LC_ALL": "C.UTF-8"})
    sight.until(lambda seen: "loss " in seen and "money" in seen and "\u2524" in seen)
    assert "segments  " in "\n".join(sight.lines), sight.lines
    sight.resize(40, 30)
    sight.until(lambda seen: "loss " in seen and "waits" in seen)
    sight.resize(12, 6)
    sight.until(lambda seen: "job " in seen)
    sight.resize(100, 40)
    sight.until(lambda seen: "money" in seen and "waits" in seen)
    watch.send_signal(signal.SIGINT)
    sight.until(lambda seen: seen.startswith("job "))
    assert watch.wait(town.WAIT_MAX_S) == 0
    assert termios.tcgetattr(sight.slave) == before, "the terminal's modes changed"
    os.close(sight.slave)
    os.close(sight.master)


# ---- the end -------------------------------------------------------------------------------


def the_end_is_seen(here, key):
    here.pass_time(3 * PERIOD_S + 10)
    here.until_count(1, "closed", key)
    seen = look(here, key)
    assert seen["phase"] == "closed" and seen["final"] == 3, seen
    assert int(seen["money"]["earned_wei"]) == REWARD, seen
    assert seen["money"]["to_come_wei"] == "0" and seen["alert"] == "", seen
    assert seen["money"]["burned_client_wei"] == "0", seen
    done = here.run("client", "job", "watch", key, "--poll", "1s")  # there is nothing to wait for
    assert done.startswith("closed  12 of 12 steps"), done


def play(on_chain):
    with Town(["client", "solver"], on_chain=on_chain) as here:
        key, bundle, solver = commit(here)
        see_page(here, solver, "Lockstep solver")
        seen_by_the_ledger(here, key)
        url = curve_of_a_mirror(here, key, bundle)
        if not on_chain:
            mirrors_that_do_wrong(here, key, bundle, url)
            a_pipe_gets_lines(here, key, url)
            a_page_shows_it(here, key, url)
            a_terminal_is_drawn_on_and_left_clean(here, key, url)
        the_end_is_seen(here, key)


def test_a_job_is_watched_on_the_embedded_ledger():
    play(False)


def test_a_job_is_watched_on_a_chain():
    play(True)


if __name__ == "__main__":
    sys.exit(main([test_a_job_is_watched_on_the_embedded_ledger], [test_a_job_is_watched_on_a_chain]))
