"""Ranks that a test starts by hand, as the launcher of Open MPI would, over TCP. Not a test."""

import os
import socket
import subprocess

import processes
from program import LOCKSTEP

SECRET = "one word that no stranger guesses"
WAIT_MAX_S = 120


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


def launch(ranks, folders=None):
    """ranks: for each its words and what its environment has beside the launcher's variables; folders:
    where a rank is. Returns what each said, its two outputs, and its exit code."""
    place = "127.0.0.1:%d" % free_port()
    started = []
    for rank, (words, more) in enumerate(ranks):
        environment = {**os.environ, "OMPI_COMM_WORLD_RANK": str(rank),
                       "OMPI_COMM_WORLD_SIZE": str(len(ranks)),
                       "LOCKSTEP_RANKS_SECRET": SECRET, **more}
        started.append(processes.start([LOCKSTEP, *words, "--ranks-at", place, "--threads", "1"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       stdin=subprocess.DEVNULL, env=environment,
                                       cwd=(folders or {}).get(rank)))
    return [(*process.communicate(timeout=WAIT_MAX_S), process.returncode) for process in started]
