"""Goal: `prover run --ranks N` has the state roots of one process after every step, for every model
and every N; a lost rank ends the run with its number and exit code 5, and any other number of ranks
goes on to the same bits; ranks that differ refuse each other by name before the first step.
Method: the built program. Tiny jobs of four groups on 1, 2, 3 and 4 ranks, roots compared step by
step; one bundle of four ranks is audited by one thread. Ranks are killed with SIGKILL. Ranks that a
launcher would start are started by hand, with its variables, and with another job, other data and
another secret."""

import ctypes
import glob
import os
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import processes  # noqa: E402
import program  # noqa: E402
import tap  # noqa: E402
import tiny_llama  # noqa: E402
from launched_ranks import SECRET, free_port, launch  # noqa: E402
from program import DATA, LOCKSTEP, ask, call, path  # noqa: E402

GROUPS = ["--accumulate", "8", "--accumulate-group", "2"]
COURSE = ["--steps", "6", "--segment-steps", "3", "--warmup", "0"]
TEXT = ["--data", DATA, "--width", "16", "--heads", "2", "--layers", "1", "--length", "8",
        "--batch", "2", "--vocabulary", "128"]
IMAGES = ["--data", "fixtures/images/shapes.npy", "--labels",
          "fixtures/images/shapes-labels.npy", "--batch", "4"]
IMAGE_FILES = [IMAGES[1], IMAGES[3]]
WAIT_MAX_S = 60
ORPHANS_MAX_S = 20  # less than a rank calls one that does not answer


def new_job(name, *words):
    ask("job", "new", *words, *COURSE, *GROUPS, "--out", path(name))
    return path(name)


def run_words(verb, what, bundle, files, ranks):
    words = ["prover", verb, what, *(["--bundle", bundle] if verb == "run" else [])]
    for name in files:
        words += ["--data", name]
    return words + ([] if ranks is None else ["--ranks", str(ranks)])


def roots(bundle):
    steps = ask("bundle", "steps", bundle, "--count", "100000")["steps"]
    return [(step["state_root"], step["loss"], step["held_out_loss"]) for step in steps]


def same_on_all(name, files, *words):
    job = new_job(name + ".job", *words)
    wanted = None
    for ranks in 1, 2, 3, 4, 6:
        bundle = path("%s.%d" % (name, ranks))
        call(*run_words("run", job, bundle, files, ranks), "--threads", "1")
        found = roots(bundle)
        assert len(found) == 6, found
        wanted = wanted or found
        assert found == wanted, (name, ranks, found, wanted)
    return bundle


def test_gpt2_has_the_roots_of_one_process():
    bundle = same_on_all("gpt2", [DATA], "--model", "gpt2", *TEXT, "--dropout", "0.1")
    answer = ask("audit", bundle, "--threads", "1")["audits"]
    assert [audit["answer"] for audit in answer] == ["proven"], answer


def test_llama_with_held_out_rows_has_the_roots_of_one_process():
    same_on_all("llama", [DATA, DATA], "--model", "llama", *TEXT, "--eval", DATA, "--eval-every", "2")


def test_matrices_in_shards_have_the_roots_of_one_process():
    """Large enough to be cut; Muon's are whole on one rank each, and so is the held-out batch."""
    wide = ["--data", DATA, "--width", "128", "--heads", "2", "--layers", "1", "--length", "8",
            "--batch", "1", "--vocabulary", "128"]
    for optimizer in "adamw", "muon":
        name = "wide." + optimizer
        bundle = same_on_all(name, [DATA, DATA], "--model", "gpt2", *wide, "--eval", DATA,
                             "--eval-every", "4", "--optimizer", optimizer)
        for step in 3, 6:
            files = [os.path.join(folder, "checkpoints", "%012d.safetensors" % step)
                     for folder in (path(name + ".1"), bundle)]
            with open(files[0], "rb") as one, open(files[1], "rb") as other:
                assert one.read() == other.read(), "%s has other bytes" % files[1]


def test_mlp_and_convnet_have_the_roots_of_one_process():
    same_on_all("mlp", IMAGE_FILES, "--model", "mlp", *IMAGES)
    same_on_all("convnet", IMAGE_FILES, "--model", "convnet", *IMAGES)


def test_adapters_have_the_roots_of_one_process():
    tiny_llama.write(path("base"), num_hidden_layers=1, hidden_size=32, intermediate_size=64)
    base = path("base/model.safetensors")
    same_on_all("lora", [DATA, base], "--base", path("base"), "--lora", "2", "--data", DATA,
                "--data-type", "u8", "--length", "8", "--batch", "2")


def kill_and_go_on(job, files, bundle, ranks, least):
    """A rank is killed after a step; what comes of it goes on with other numbers of ranks."""
    process = processes.start([LOCKSTEP, *run_words("run", job, bundle, files, ranks), "--threads", "1"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    until(lambda: len(followers(process)) == ranks - 1, "the other ranks")
    until(lambda: program.steps_made(bundle) > least or process.poll() is not None, "some steps")
    if process.poll() is None:
        os.kill(followers(process)[-1], 9)
    said = process.communicate(timeout=WAIT_MAX_S)[1].decode()
    assert process.returncode in (0, 5), (process.returncode, said)
    return process.returncode == 5


def test_seven_and_eight_ranks_with_kills_have_the_roots_of_one_process():
    if int(os.environ.get("SOAK_MINUTES", "0")) == 0:
        raise tap.Skip("only in make soak")
    tiny_llama.write(path("base8"), num_hidden_layers=1, hidden_size=32, intermediate_size=64)
    lora = ["--base", path("base8"), "--lora", "2", "--data", DATA, "--data-type", "u8", "--length", "8",
            "--batch", "2"]
    kills = 0
    for name, files, words in (
            ("mlp", IMAGE_FILES, ["--model", "mlp", *IMAGES]), ("convnet", IMAGE_FILES, ["--model", "convnet", *IMAGES]),
            ("gpt2", [DATA], ["--model", "gpt2", *TEXT]), ("llama", [DATA], ["--model", "llama", *TEXT]),
            ("lora", [DATA, path("base8/model.safetensors")], lora)):
        job = path(name + "8.job")
        ask("job", "new", *words, "--accumulate", "8", "--accumulate-group", "1", "--steps", "60", "--segment-steps",
            "10", "--warmup", "0", "--out", job)
        call(*run_words("run", job, path(name + "8.one"), files, None), "--threads", "1")
        wanted = roots(path(name + "8.one"))
        assert len(wanted) == 60, wanted
        for ranks, others in (7, (8, 3)), (8, (7, 1)):
            bundle = path("%s8.%d" % (name, ranks))
            kills += kill_and_go_on(job, files, bundle, ranks, 5)
            for other in others:
                call(*run_words("resume", bundle, bundle, [], other), "--threads", "1")
            assert roots(bundle) == wanted, (name, ranks)
    assert kills >= 5, kills


def test_a_training_that_diverges_ends_as_on_one_process():
    job = path("wild.job")
    ask("job", "new", "--model", "gpt2", *TEXT, *GROUPS, "--steps", "40", "--segment-steps", "4",
        "--optimizer", "sgd", "--schedule", "constant", "--warmup", "0", "--clip", "0",
        "--rate", "1000000", "--rate-min", "1000000", "--decay", "1000", "--out", job)
    found = []
    for ranks in 1, 3:
        bundle = path("wild.%d" % ranks)
        call(*run_words("run", job, bundle, [DATA], ranks), wanted=4)
        found.append(roots(bundle))
    assert found[0] == found[1] and len(found[0]) < 40, found


# ---- lost ranks ---------------------------------------------------------------------------------

def followers(parent):
    """The ranks that a command started: its children with its own command line."""
    found = []
    for place in glob.glob("/proc/[0-9]*/status"):
        try:
            fields = processes.fields_of(place)
            with open(place[:-6] + "cmdline", "rb") as line:
                own = b"--ranks" in line.read().split(b"\0")
        except OSError:
            continue
        if own and fields["PPid"] == str(parent.pid):
            found.append(int(place.split("/")[2]))
    return sorted(found)


def until(question, what, seconds=WAIT_MAX_S):
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_a_killed_rank_ends_the_run_and_others_go_on():
    job = path("long.job")
    ask("job", "new", "--model", "gpt2", *TEXT, *GROUPS, "--steps", "160", "--segment-steps", "20",
        "--out", job)
    call(*run_words("run", job, path("long.one"), [DATA], None))
    wanted = roots(path("long.one"))
    bundle = path("long.run")
    verb = "run"
    for ranks in 3, 4, 2:
        words = run_words(verb, job if verb == "run" else bundle, bundle, [DATA], ranks)
        before = len(roots(bundle)) if verb == "resume" else 0
        process = processes.start([LOCKSTEP, *words, "--threads", "1"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        until(lambda: len(followers(process)) == ranks - 1, "the other ranks")
        until(lambda: program.steps_made(bundle) > before + 3, "some steps")
        os.kill(followers(process)[0], 9)
        said = process.communicate(timeout=WAIT_MAX_S)[1].decode()
        assert process.returncode == 5, (process.returncode, said)
        # between two messages, or in the middle of one
        assert "rank 1 (127.0.0.1) has hung up" in said or \
            "rank 1 (127.0.0.1) hung up in the middle of a message" in said, said
        verb = "resume"
    call(*run_words("resume", bundle, bundle, [], 4))
    assert roots(bundle) == wanted


def test_rank_0_dies_and_leaves_nobody():
    job = path("long.job")
    process = processes.start([LOCKSTEP, *run_words("run", job, path("dead.run"), [DATA], 3)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: len(followers(process)) == 2, "the other ranks")
    others = followers(process)
    process.kill()
    process.wait()
    until(lambda: all(is_gone(other) for other in others), "ranks stayed", ORPHANS_MAX_S)


def test_a_rank_dies_with_who_started_it():
    """While it calls a rank 0 that does not answer, which it does for a minute."""
    place = {"LOCKSTEP_RANK": "1", "LOCKSTEP_RANK_COUNT": "2", "LOCKSTEP_RANKS_SECRET": SECRET,
             "LOCKSTEP_RANKS_AT": "127.0.0.1:%d" % free_port()}
    shell = processes.start(
        ["sh", "-c", '"$@" & echo $!; wait', "sh", LOCKSTEP,
         *run_words("run", path("gpt2.job"), path("orphan.run"), [DATA], 2)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **place})
    other = int(shell.stdout.readline())
    until(lambda: int(processes.fields_of("/proc/%d/status" % other)["SigBlk"], 16) != 0, "a rank")
    time.sleep(2)  # it has begun to call
    shell.kill()
    shell.wait()
    until(lambda: is_gone(other), "a rank stayed", ORPHANS_MAX_S)


def is_gone(process):
    try:
        return processes.fields_of("/proc/%d/status" % process)["State"].startswith("Z")
    except OSError:
        return True


# ---- ranks of a launcher ---------------------------------------------------------------------------

def test_ranks_of_mpirun_are_those_of_its_variables():
    job = path("gpt2.job")
    words = run_words("run", job, path("mpi.run"), [DATA], None)
    for out, error, code in launch([(words, {})] * 3):
        assert code == 0, (out, error)
    assert roots(path("mpi.run")) == roots(path("gpt2.1"))


def two_networks():
    """Name spaces "a" and "b" with a line between them, in which "nodea" is the first: to itself its
    loopback, as many machines' own names are."""
    names = ["ls%d%s" % (os.getpid(), letter) for letter in "ab"]
    lines = ["netns add %s" % name for name in names]
    lines += ["link add %sv type veth peer name %sv netns %s" % (names[0], names[1], names[1]),
              "link set %sv netns %s" % (names[0], names[0])]
    for number, name in enumerate(names, 1):
        lines += ["-n %s addr add 10.77.0.%d/24 dev %sv" % (name, number, name),
                  "-n %s link set %sv up" % (name, name), "-n %s link set lo up" % name]
        os.makedirs("/etc/netns/%s" % name)
        with open("/etc/netns/%s/hosts" % name, "w") as hosts:
            hosts.write("127.0.0.1 localhost\n%s nodea\n" % ("127.0.1.1" if number == 1 else "10.77.0.1"))
    for line in lines:
        subprocess.run(["ip", *line.split()], check=True, stderr=subprocess.PIPE)
    return names


def no_networks(names):
    for name in names:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        shutil.rmtree("/etc/netns/%s" % name, ignore_errors=True)


def test_a_rank_beside_rank_0_is_found_from_another_machine():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise tap.Skip("only root makes networks, with iproute2")
    names = ["ls%d%s" % (os.getpid(), letter) for letter in "ab"]
    try:
        try:
            two_networks()
        except (OSError, subprocess.CalledProcessError) as why:
            raise tap.Skip("no networks can be made here: %s" % why)
        started = []
        for rank, name in enumerate((names[0], names[0], names[1])):
            environment = {**os.environ, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "3",
                           "LOCKSTEP_RANKS_SECRET": SECRET}
            started.append(processes.start(["ip", "netns", "exec", name, *run_on("", "apart.run"),
                                            "--ranks-at", "nodea:7590"], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment))
        said = [(process.communicate(timeout=WAIT_MAX_S + 60), process.returncode) for process in started]
        assert [code for _, code in said] == [0, 0, 0], said
        assert roots(path("apart.run")) == roots(path("gpt2.1"))
    finally:
        no_networks(names)


MPI_RUNS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}
MPI_RANK = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}
MPI_LIBRARY = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}
MPI_PACKAGE = {"openmpi": "openmpi-bin", "mpich": "mpich"}


def mpirun(family):
    """The first words of a command line; a family that is not here skips the test."""
    if shutil.which(MPI_RUNS[family][0]) is None:
        raise tap.Skip("no %s here: install %s" % (MPI_RUNS[family][0], MPI_PACKAGE[family]))
    try:
        ctypes.CDLL(MPI_LIBRARY[family])
    except OSError:
        raise tap.Skip("no %s here: install %s" % (MPI_LIBRARY[family], MPI_PACKAGE[family]))
    return MPI_RUNS[family]


def mpi_run(family, *words, wanted=0, more=None):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **(more or {})}
    done = subprocess.run([*mpirun(family), *words], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=WAIT_MAX_S + 60)
    assert done.returncode == wanted, (words, done.returncode, done.stdout, done.stderr)
    return done.stderr.decode()


def run_on(family, bundle, job="gpt2.job"):
    return [LOCKSTEP, *run_words("run", path(job), path(bundle), [DATA], None), "--threads", "1"]


def sends_over_tcp(family):
    bundle = "tcp.%s" % family
    mpi_run(family, "-n", "3", *run_on(family, bundle), "--ranks-at",
            "127.0.0.1:%d" % free_port(), more={"LOCKSTEP_RANKS_SECRET": SECRET})
    assert roots(path(bundle)) == roots(path("gpt2.1"))


def has_the_roots_of_one_process(family):
    """Without a secret and a place: over TCP they could not begin."""
    for ranks in 2, 3, 4:
        bundle = "%s.%d" % (family, ranks)
        mpi_run(family, "-n", str(ranks), *run_on(family, bundle),
                *(["--ranks", "mpi"] if ranks == 2 else []))
        assert roots(path(bundle)) == roots(path("gpt2.1")), (family, ranks)
    answer = ask("audit", path("%s.4" % family), "--threads", "1")["audits"]
    assert [audit["answer"] for audit in answer] == ["proven"], answer


def loses_a_rank_and_goes_on(family):
    bundle = path("lost.%s" % family)
    process = processes.start([*mpirun(family), "-n", "3", *run_on(family, bundle, "long.job")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL,
                              env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    until(lambda: program.steps_made(bundle) > 3, "some steps")
    os.kill(rank_process(MPI_RANK[family], 2), 9)
    process.communicate(timeout=WAIT_MAX_S)
    assert process.returncode != 0
    assert 3 < len(roots(bundle)) < 160
    mpi_run(family, "-n", "2", LOCKSTEP, "prover", "resume", bundle, "--threads", "1")
    assert roots(bundle) == roots(path("long.one"))


def rank_process(variable, rank):
    """Of this test's ranks the one that is not a shell's or mpirun's child of that environment."""
    for place in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(place, "rb") as of, open(place[:-7] + "cmdline", "rb") as line:
                words = line.read().split(b"\0")
                if (b"%s=%d" % (variable.encode(), rank) in of.read().split(b"\0")
                        and words[0].decode() == LOCKSTEP and program.folder.encode() in b" ".join(words)):
                    return int(place.split("/")[2])
        except OSError:
            continue
    raise AssertionError("no rank %d" % rank)


def refuses_by_name(family):
    other = {"openmpi": "mpich", "mpich": "openmpi"}[family]
    one = run_on(family, "refused.run")
    two = [LOCKSTEP, *run_words("run", path("llama.job"), path("refused.run"), [DATA, DATA], None)]
    said = mpi_run(family, "-n", "1", *one, ":", "-n", "2", *two, wanted=1)
    assert " has another job: " in said and "rank 1 (%s)" % socket.gethostname() in said, said
    mpirun(other)
    forged = 'export %s=$%s %s=2; exec "$@"' % (
        MPI_RANK[other], MPI_RANK[family], MPI_RANK[other].replace("RANK", "SIZE"))
    if family == "openmpi":
        forged = forged.replace("exec", "unset OMPI_COMM_WORLD_RANK; exec")
    said = mpi_run(family, "-n", "2", "sh", "-c", forged, "sh", *one, wanted=1)
    # Each rank refuses; mpirun ends the other one as soon as the first has.
    assert "is rank 0 of 1, and its launcher said rank " in said, said
    assert "mpirun.openmpi has Open MPI's" in said, said
    assert not os.path.exists(path("refused.run"))


def test_ranks_of_open_mpi_send_over_tcp_where_a_place_is_said():
    sends_over_tcp("openmpi")


def test_ranks_of_mpich_send_over_tcp_where_a_place_is_said():
    sends_over_tcp("mpich")


def test_through_open_mpi_ranks_have_the_roots_of_one_process():
    has_the_roots_of_one_process("openmpi")


def test_through_mpich_ranks_have_the_roots_of_one_process():
    has_the_roots_of_one_process("mpich")


def test_a_rank_lost_by_open_mpi_ends_the_run_and_others_go_on():
    loses_a_rank_and_goes_on("openmpi")


def test_a_rank_lost_by_mpich_ends_the_run_and_others_go_on():
    loses_a_rank_and_goes_on("mpich")


def test_through_open_mpi_ranks_that_differ_refuse_each_other():
    refuses_by_name("openmpi")


def test_through_mpich_ranks_that_differ_refuse_each_other():
    refuses_by_name("mpich")


def test_ranks_that_differ_refuse_each_other_by_name():
    good = run_words("run", path("gpt2.job"), path("differ.run"), [DATA], None)
    other_job = run_words("run", path("llama.job"), path("differ.run"), [DATA, DATA], None)
    with open(DATA, "rb") as source, open(path("other.u8"), "wb") as target:
        target.write(source.read()[::-1])
    other_data = run_words("run", path("gpt2.job"), path("differ.run"), [path("other.u8")], None)
    for bad, text in ((other_job, "rank 1 (127.0.0.1) has another job: "),
                      (other_data, "rank 1 (127.0.0.1): %s is not the job's" % path("other.u8"))):
        said = launch([(good, {}), (bad, {}), (good, {})])
        assert [code for _, _, code in said] == [1, 1, 1], said
        assert text in said[0][1].decode(), said[0]
        assert text in said[2][1].decode(), said[2]
        assert not os.path.exists(path("differ.run")), "something was left behind"


def test_a_size_that_does_not_agree_is_refused():
    good = run_words("run", path("gpt2.job"), path("size.run"), [DATA], None)
    said = launch([(good, {}), (good, {"OMPI_COMM_WORLD_SIZE": "3"})])
    assert said[0][2] == 1 and "started as one of 3 ranks, and rank 0 as one of 2" in said[0][1].decode(), said


# ---- refusals --------------------------------------------------------------------------------------

def refused(text, *words, wanted=1, environment=None):
    said = call(*words, wanted=wanted, environment=environment).stderr.decode()
    assert text in said, said


def test_ranks_that_check_each_other_have_the_same_roots():
    for ranks, every in (2, 1), (3, 2), (4, 5):
        bundle = path("crossed.%d" % ranks)
        call(*run_words("run", path("gpt2.job"), bundle, [DATA], ranks), "--threads", "1",
             "--cross-check", str(every))
        assert roots(bundle) == roots(path("gpt2.1"))


def test_what_ranks_cannot_share_is_refused_by_name():
    plain = path("plain.job")
    ask("job", "new", "--model", "gpt2", *TEXT, *COURSE, "--out", plain)
    run = run_words("run", plain, path("never.run"), [DATA], 2)
    refused("the job has no groups of micro-batches", *run)
    refused("--accumulate-group", *run)
    job = path("gpt2.job")
    refused("a number from 1 to 1024, mpi or slurm",
            *run_words("run", job, path("never.run"), [DATA], "many"), wanted=3)
    one = run_words("run", job, path("never.run"), [DATA], None)
    refused("--cross-check takes a number of steps, and two ranks at least", *one,
            "--cross-check", "2", wanted=3)
    mpi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    refused("no launcher of MPI has started this", *one, "--ranks", "mpi", wanted=3)
    refused("give one of them", *one, "--ranks", "mpi", "--ranks-at", "127.0.0.1:1", wanted=3,
            environment=mpi)
    refused("nothing says of how many ranks", *one, wanted=3, environment={"PMIX_RANK": "0"})
    refused("LOCKSTEP_RANKS_SECRET", *one, "--ranks-at", "127.0.0.1:1", wanted=3, environment=mpi)
    refused("has 8 characters, and under 22 can be guessed", *one, "--ranks-at", "127.0.0.1:1",
            wanted=3, environment={**mpi, "LOCKSTEP_RANKS_SECRET": "one word"})
    refused("SLURM_PROCID and SLURM_NTASKS do not say",
            *run_words("run", job, path("never.run"), [DATA], "slurm"), wanted=3)
    assert not os.path.exists(path("never.run"))


def test_too_few_open_files_are_refused_with_the_number():
    run = run_words("run", path("gpt2.job"), path("few.run"), [DATA], 2)
    said = subprocess.run(["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", LOCKSTEP, *run],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=WAIT_MAX_S)
    assert said.returncode == 1, said
    assert b"2 ranks need 132 open files, and the system allows 100" in said.stderr, said
    assert not os.path.exists(path("few.run"))


def test_spare_ranks_say_so():
    said = call(*run_words("run", path("gpt2.job"), path("spare.run"), [DATA], 6)).stderr.decode()
    assert "2 of 6 ranks are spare: the job has 4 groups" in said, said
    assert roots(path("spare.run")) == roots(path("gpt2.1"))


def test_slurm_counts_only_where_the_options_say_so():
    slurm = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}
    call(*run_words("run", path("gpt2.job"), path("alone.run"), [DATA], None), environment=slurm)
    assert roots(path("alone.run")) == roots(path("gpt2.1"))


def test_job_show_says_what_goes_over_the_wire():
    shown = ask("job", "show", path("gpt2.job"), "--ranks", "4")["ranks"]
    parameters = shown["parameters"]
    # four subtrees of four ranks: (N - 1) / N of 8 bytes a parameter and rank, of all four 24;
    # and 4 bytes for each row that is clipped, to three ranks
    rows = shown["wire_bytes"] - 24 * parameters
    assert rows > 0 and rows % 12 == 0, shown
    new_job("free.job", "--model", "gpt2", *TEXT, "--clip", "0")
    shown = ask("job", "show", path("free.job"), "--ranks", "4")["ranks"]
    assert shown["wire_bytes"] == 24 * shown["parameters"], shown
    assert shown["shard_bytes"] == 8 * (shown["parameters"] - 1), shown  # both moments
    spare = ask("job", "show", path("gpt2.job"), "--ranks", "6")["ranks"]
    assert spare["spare"] == 2, spare


if __name__ == "__main__":
    sys.exit(program.main([
        test_gpt2_has_the_roots_of_one_process,
        test_llama_with_held_out_rows_has_the_roots_of_one_process,
        test_matrices_in_shards_have_the_roots_of_one_process,
        test_mlp_and_convnet_have_the_roots_of_one_process,
        test_adapters_have_the_roots_of_one_process,
        test_seven_and_eight_ranks_with_kills_have_the_roots_of_one_process,
        test_a_training_that_diverges_ends_as_on_one_process,
        test_a_killed_rank_ends_the_run_and_others_go_on,
        test_rank_0_dies_and_leaves_nobody,
        test_a_rank_dies_with_who_started_it,
        test_ranks_of_mpirun_are_those_of_its_variables,
        test_a_rank_beside_rank_0_is_found_from_another_machine,
        test_ranks_of_open_mpi_send_over_tcp_where_a_place_is_said,
        test_ranks_of_mpich_send_over_tcp_where_a_place_is_said,
        test_through_open_mpi_ranks_have_the_roots_of_one_process,
        test_through_mpich_ranks_have_the_roots_of_one_process,
        test_a_rank_lost_by_open_mpi_ends_the_run_and_others_go_on,
        test_a_rank_lost_by_mpich_ends_the_run_and_others_go_on,
        test_through_open_mpi_ranks_that_differ_refuse_each_other,
        test_through_mpich_ranks_that_differ_refuse_each_other,
        test_ranks_that_differ_refuse_each_other_by_name,
        test_a_size_that_does_not_agree_is_refused,
        test_ranks_that_check_each_other_have_the_same_roots,
        test_what_ranks_cannot_share_is_refused_by_name,
        test_too_few_open_files_are_refused_with_the_number,
        test_spare_ranks_say_so,
        test_slurm_counts_only_where_the_options_say_so,
        test_job_show_says_what_goes_over_the_wire,
    ]))
