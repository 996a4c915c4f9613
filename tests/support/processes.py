"""Processes that a test starts: none outlives it, however the test ends. Not a test."""

import atexit
import glob
import signal
import subprocess
import sys

STARTED = []


def start(words, **options):
    """As subprocess.Popen; the process is killed when the test program ends."""
    process = subprocess.Popen(words, **options)
    STARTED.append(process)
    return process


def fields_of(place):
    """What a status file of /proc says."""
    with open(place, encoding="utf-8", errors="replace") as status:
        return dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)


def child_of(process, word):
    """The child of a process that has this word in its command line; None: there is none now."""
    for place in glob.glob("/proc/[0-9]*/status"):
        try:
            with open(place[:-6] + "cmdline", "rb") as line:
                words = line.read().split(b"\0")
            if word in words and fields_of(place)["PPid"] == str(process.pid):
                return int(place.split("/")[2])
        except OSError:  # it ended
            continue
    return None


def end_all():
    for process in STARTED:
        if process.poll() is None:
            process.kill()
            process.wait()


atexit.register(end_all)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
