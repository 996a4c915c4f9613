"""Goal: packaging/slurm/run.sh goes on from the last whole checkpoint with the machines that are left,
to the roots of one process; it gives up where nothing gets further, and ends at once where a new try
would not help.
Method: srun and scontrol are small scripts of the test that start the ranks on this machine; nodes are
addresses of its loopback, and a file says which are down. Ranks are killed with SIGKILL, once together
with their node. The same by the mpirun of Open MPI and of MPICH, each where it is installed."""

import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import processes  # noqa: E402
import program  # noqa: E402
import tap  # noqa: E402
from program import DATA, LOCKSTEP, ask, call, path  # noqa: E402

SCRIPT = "packaging/slurm/run.sh"
NODES = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
WAIT_MAX_S = 120
STEPS = 120

SCONTROL = r"""#!/bin/sh
[ "$2" = hostnames ] && { echo "$3" | tr , '\n'; exit; }
echo "NodeName=$3 Arch=x86_64 State=$(grep -qx "$3" "$DOWN" && echo 'DOWN*' || echo ALLOCATED) Weight=1"
"""

# Notes what it was asked for, starts the ranks, and ends all when one fails.
SRUN = r"""#!/usr/bin/python3
import os, signal, subprocess, sys, time
words = sys.argv[1:]
options = {}
while words[0].startswith("--"):
    if "=" in words[0]:
        words.pop(0)
    else:
        options[words[0]] = words[1]
        del words[:2]
count = int(options["--ntasks"])
nodes = options["--nodelist"].split(",")
assert int(options["--nodes"]) == len(nodes) <= count, options
with open(os.environ["NOTES"], "a") as notes:
    notes.write("%d %s\n" % (count, ",".join(nodes)))
down = open(os.environ["DOWN"]).read().split()
assert not set(nodes) & set(down), (nodes, down)
ranks = [subprocess.Popen(words, env={**os.environ, "SLURM_PROCID": str(i), "SLURM_NTASKS": str(count),
                                      "SLURM_LOCALID": "0", "FAKE_NODE": nodes[i * len(nodes) // count]})
         for i in range(count)]
signal.signal(signal.SIGTERM, lambda *_: [rank.terminate() for rank in ranks])
while all(rank.poll() is None for rank in ranks):
    time.sleep(0.02)
end = time.monotonic() + 5
while any(rank.poll() is None for rank in ranks) and time.monotonic() < end:
    time.sleep(0.02)
codes = []
for rank in ranks:
    if rank.poll() is None:
        rank.kill()
    code = rank.wait()
    codes.append(code if code >= 0 else 128 - code)
sys.exit(max(codes))
"""


def write_script(name, text):
    os.makedirs(path("bin"), exist_ok=True)
    with open(path("bin/" + name), "w") as file:
        file.write(text)
    os.chmod(path("bin/" + name), 0o755)


def environment_of(name):
    write_script("srun", SRUN)
    write_script("scontrol", SCONTROL)
    for file in "down", "notes":
        open(path("%s.%s" % (name, file)), "w").close()
    return {**os.environ, "PATH": "%s:%s" % (path("bin"), os.environ["PATH"]), "LOCKSTEP": LOCKSTEP,
            "DOWN": path(name + ".down"), "NOTES": path(name + ".notes"), "RANKS_PAUSE": "0",
            "SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": ",".join(NODES),
            "RANKS_PORT": str(20000 + os.getpid() % 20000)}


def job():
    if not os.path.exists(path("long.job")):
        ask("job", "new", "--data", DATA, *program.SIZE, "--accumulate", "4", "--accumulate-group",
            "1", "--steps", str(STEPS), "--segment-steps", "10", "--out", path("long.job"))
        call("prover", "run", path("long.job"), "--data", DATA, "--bundle", path("one"), "--keep",
             "0", "--threads", "1")
    return path("long.job")


def roots(bundle):
    steps = ask("bundle", "steps", bundle, "--count", "100000")["steps"]
    return [step["state_root"] for step in steps]


def start(name, environment, *more):
    return processes.start([SCRIPT, job(), path(name), "--data", DATA, "--threads", "1", *more],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=environment)


def until_steps(name, process, least):
    end = time.monotonic() + WAIT_MAX_S
    while program.steps_made(path(name)) < least:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no steps"
        time.sleep(0.05)


def kill_rank(name, variable, wanted):
    """The first of the ranks whose environment says so."""
    for place in os.listdir("/proc"):
        try:
            with open("/proc/%s/environ" % place, "rb") as of, open("/proc/%s/cmdline" % place, "rb") as line:
                words = line.read().split(b"\0")
                found = (words[0].decode() == LOCKSTEP and path(name).encode() in words
                         and b"%s=%s" % (variable.encode(), wanted.encode()) in of.read().split(b"\0"))
        except OSError:
            continue
        if found:
            os.kill(int(place), signal.SIGKILL)
            return
    raise AssertionError("no rank to kill")


def ended(process, wanted):
    out, said = process.communicate(timeout=WAIT_MAX_S)
    assert process.returncode == wanted, (process.returncode, out, said)
    return said.decode()


def notes(name):
    with open(path(name + ".notes")) as file:
        return [line.split() for line in file]


def test_it_goes_on_with_the_nodes_that_are_left():
    environment = environment_of("nodes")
    process = start("nodes", environment)
    until_steps("nodes", process, 15)
    with open(path("nodes.down"), "w") as down:
        down.write(NODES[1] + "\n")
    kill_rank("nodes", "FAKE_NODE", NODES[1])
    said = ended(process, 0)
    assert notes("nodes") == [["3", ",".join(NODES)], ["2", "%s,%s" % (NODES[0], NODES[2])]], notes("nodes")
    assert "2 ranks on 2 machines, from step " in said, said
    assert roots(path("nodes")) == roots(path("one"))


def test_a_rank_that_dies_alone_comes_again_and_one_node_is_enough():
    environment = {**environment_of("alone"), "SLURM_JOB_NODELIST": NODES[0], "RANKS_PER_NODE": "6"}
    process = start("alone", environment)
    until_steps("alone", process, 5)
    kill_rank("alone", "SLURM_PROCID", "3")
    ended(process, 0)
    # Of 4 groups: two ranks are spare, and hold shards.
    assert notes("alone") == [["6", NODES[0]]] * 2, notes("alone")
    assert roots(path("alone")) == roots(path("one"))


def test_one_machine_that_is_left_trains_alone():
    environment = environment_of("last")
    with open(path("last.down"), "w") as down:
        down.write("\n".join(NODES[1:]) + "\n")
    ended(start("last", environment), 0)
    assert notes("last") == [["1", NODES[0]]]
    assert roots(path("last")) == roots(path("one"))


def test_what_does_not_help_is_not_tried_again():
    environment = environment_of("never")
    said = ended(start("never", environment, "--no-such-option"), 3)
    assert len(notes("never")) == 1 and "--no-such-option" in said, said
    write_script("srun", SRUN.replace("sys.exit(max(codes))", "sys.exit(9)").replace(
        "(words, env", "(['true'], env"))
    said = ended(start("never", {**environment, "RANKS_TRIES": "2"}), 9)
    assert len(notes("never")) == 3 and "2 tries made no step: exit code 9" in said, said
    with open(path("never.down"), "w") as down:
        down.write("\n".join(NODES) + "\n")
    assert "no machine is there" in ended(start("never", environment), 5)
    assert subprocess.run([SCRIPT], stderr=subprocess.PIPE).returncode == 3


def test_a_stop_is_passed_on():
    environment = environment_of("stop")
    process = start("stop", environment)
    until_steps("stop", process, 5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT_MAX_S)
    assert len(notes("stop")) == 1 and len(roots(path("stop"))) < STEPS, notes("stop")


def goes_on_by(mpirun, hosts, variable):
    if shutil.which(mpirun.split()[0]) is None:
        raise tap.Skip("no %s here (openmpi-bin, mpich)" % mpirun.split()[0])
    name = "by." + mpirun.split()[0]
    environment = {**environment_of(name), "HOSTS": "localhost", "RANKS_PER_NODE": "3", "MPIRUN": mpirun,
                   "MPI_HOSTS": hosts, "PROBE": "test -n", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    del environment["SLURM_JOB_ID"]
    process = start(name, environment)
    until_steps(name, process, 5)
    kill_rank(name, variable, "2")
    said = ended(process, 0)
    assert said.count("3 ranks on 1 machines") == 2, said
    assert roots(path(name)) == roots(path("one"))


def test_it_goes_on_by_mpirun_of_open_mpi():
    goes_on_by("mpirun.openmpi --oversubscribe", "--host", "OMPI_COMM_WORLD_RANK")


def test_it_goes_on_by_mpirun_of_mpich():
    goes_on_by("mpirun.mpich", "-hosts", "PMI_RANK")


if __name__ == "__main__":
    sys.exit(program.main([
        test_it_goes_on_with_the_nodes_that_are_left,
        test_a_rank_that_dies_alone_comes_again_and_one_node_is_enough,
        test_one_machine_that_is_left_trains_alone,
        test_what_does_not_help_is_not_tried_again,
        test_a_stop_is_passed_on,
        test_it_goes_on_by_mpirun_of_open_mpi,
        test_it_goes_on_by_mpirun_of_mpich,
    ]))
