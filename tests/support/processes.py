"""Processes that a test starts: none outlives it, however the test ends. Not a test."""

import atexit
import signal
import subprocess
import sys

STARTED = []


def start(words, **options):
    """As subprocess.Popen; the process is killed when the test program ends."""
    process = subprocess.Popen(words, **options)
    STARTED.append(process)
    return process


def end_all():
    for process in STARTED:
        if process.poll() is None:
            process.kill()
            process.wait()


atexit.register(end_all)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
