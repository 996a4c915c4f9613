"""Goal: the page of all jobs (lockstep watch --page) shows what the ledger says, finds and sorts by a
form alone, lets no text of others into the page as more than text, and works in Chromium.
Method: a town (town.py) with jobs of different terms, one of them trained and committed; the page over
HTTP, which is all that a reader without scripts has, and where it is installed in
Chromium, whose console must be silent."""

import os
import re
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from town import ETHER, REWARD, Town, main  # noqa: E402
import browser  # noqa: E402


class Page:
    def __init__(self, town):
        self.process = town.start("reader", "watch", "--page", "0", "--poll", "1s")
        self.url = town.until(lambda: re.search(r"http://\S+", self.process.said()),
                              "the page is served").group()
        self.ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def read(self, **query):
        url = self.url + ("?" + urllib.parse.urlencode(query) if query else "")
        return self.ask(url, timeout=60).read().decode()

    def keys(self, **query):
        """Of the jobs shown, in their order."""
        return ["0x" + key for key in re.findall(r'<h3><code title="0x([0-9a-f]{64})"',
                                                 self.read(**query))]


def fill(town):
    """Three open jobs and one that runs; returns their keys."""
    keys = {}
    for name, stake, reward in (("low", 2, 1), ("high", 9, 4), ("middle", 5, 3)):
        keys[name] = town.open_job(town.new_job(name + ".job", "--seed", str(stake)), "--seats",
                                   "0", "--stake", "%dwei" % (stake * ETHER), "--reward",
                                   "%dwei" % (reward * ETHER))
    job = town.new_job("run.job", "--seed", "77")
    keys["run"] = town.open_job(job, "--seats", "0")
    town.solve("solver", job, keys["run"])
    town.until_count(3, "committed", keys["run"])
    return keys


def see_choices(page, keys):
    assert page.keys(sort="stake", **{"is": "open"}) == [keys["low"], keys["middle"], keys["high"]]
    assert page.keys(sort="reward", **{"is": "open"}) == [keys["high"], keys["middle"], keys["low"]]
    assert page.keys(**{"is": "running"}) == [keys["run"]]
    assert page.keys(**{"is": "over"}) == []
    assert page.keys(q=keys["middle"][:12]) == [keys["middle"]]
    assert page.keys(q="no such words") == []
    assert sorted(page.keys(sort="<b>", **{"is": "\x00"})) == sorted(keys.values())


def see_text(page):
    hostile = '"><script>alert(1)</script>\r\n\x00' + "x" * 3000
    shown = page.read(q=hostile)
    assert "<script>alert" not in shown and shown.count("<script>") == 1, shown
    running = page.read(**{"is": "running"})
    assert "3 of 3 segments committed, 0 final" in running, running
    assert running.count('title="segment ') == 3 and "at the earliest" in running, running
    assert "Reward</span> %d eth" % (REWARD // ETHER) in running, running
    for outside in ("http://", "https://", "src=", "@import"):
        assert outside not in shown, outside


def the_board_is_a_page():
    with Town(["client", "solver", "reader"]) as town:
        keys = fill(town)
        page = Page(town)
        town.until(lambda: len(page.keys()) == 4, "all jobs are shown")
        see_choices(page, keys)
        see_text(page)
        assert page.ask(page.url + "health", timeout=60).read() == b"well\n"
        browser.see(page.url)
        browser.see_it_end(page.url, page.process.stop)
        assert page.process.stop() == 0, page.process.said()


if __name__ == "__main__":
    sys.exit(main([the_board_is_a_page]))
