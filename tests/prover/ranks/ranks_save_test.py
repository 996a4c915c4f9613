"""Goal: where all ranks see one folder each writes its shards of a checkpoint, with the bytes of one
process; where one does not, rank 0 writes all, and says so; a rank that dies or has a full disk at any
call leaves no half checkpoint, and any other number of ranks goes on to the same bits.
Method: the built program. Ranks are started by hand, so that sudden_death.so counts the calls of one
rank about files, ends it at each of them in turn, or fills its disk. Jobs whose states are cut: AdamW's,
adapters, and more ranks than groups."""

import glob
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support"))
sys.dont_write_bytecode = True

import program  # noqa: E402
import tiny_llama  # noqa: E402
from launched_ranks import launch  # noqa: E402
from program import DATA, ask, call, path  # noqa: E402

SOAK = int(os.environ.get("SOAK_MINUTES", "0")) > 0
DEATH = os.path.abspath(os.environ["TEST_BUILD"].removesuffix("/asan") + "/tests/sudden_death.so")
COURSE = ["--steps", "4", "--segment-steps", "2", "--warmup", "0", "--accumulate", "4", "--accumulate-group",
          "1", "--data", DATA]
WIDE = ["--model", "gpt2", "--width", "128", "--heads", "2", "--layers", "1", "--length", "8", "--batch", "1",
        "--vocabulary", "128"]
KEEP = ["--keep", "0"]


def job(name):
    """Its words, and those that name its data; made once."""
    words, data = WIDE, [DATA]
    if name == "lora":
        base = path("base")
        if not os.path.exists(base):
            tiny_llama.write(base, num_hidden_layers=1, hidden_size=256, intermediate_size=256)
        words = ["--base", base, "--lora", "64", "--data-type", "u8", "--length", "8", "--batch", "1"]
        data = [DATA, os.path.join(base, "model.safetensors")]
    told = path(name + ".job")
    data = [word for one in data for word in ("--data", one)]
    if not os.path.exists(told):
        ask("job", "new", *words, *COURSE, "--out", told)
        call("prover", "run", told, *data, "--bundle", path(name + ".one"), "--threads", "1", *KEEP)
    return told, data


def checkpoints(bundle):
    """Their bytes by their names; nothing else lies there."""
    found = {}
    for name in sorted(glob.glob(bundle + "/checkpoints/*")):
        with open(name, "rb") as file:
            found[os.path.basename(name)] = file.read()
    return found


def start_ranks(ranks, words, more=None, folders=None):
    """more: what a rank has in its environment; folders: where it is. The exit code of each, and what
    it said."""
    usual = {"OMP_WAIT_POLICY": "passive", "ASAN_OPTIONS": "verify_asan_link_order=0"}
    told = launch([(words, {**usual, **(more or {}).get(rank, {})}) for rank in range(ranks)], folders)
    return [(code, said.decode()) for _, said, code in told]


def counted(name):
    with open(path(name), "rb") as tally:
        return struct.unpack("=Q", tally.read(8))[0]


def tally(name, **more):
    return {"LD_PRELOAD": DEATH, "SUDDEN_DISK": "1", "SUDDEN_TALLY": path(name), **more}


def run_words(name, bundle):
    told, data = job(name)
    return ["prover", "run", told, *data, "--bundle", bundle, *KEEP]


def all_write(name, ranks):
    """How many calls about files each other rank makes."""
    bundle = path("%s.%d" % (name, ranks))
    shutil.rmtree(bundle, ignore_errors=True)
    others = {rank: tally("%s.%d" % (bundle, rank)) for rank in range(1, ranks)}
    for code, said in start_ranks(ranks, run_words(name, bundle), others):
        assert code == 0 and "writes the checkpoints" not in said, (code, said)
    assert checkpoints(bundle) == checkpoints(path(name + ".one")) and len(checkpoints(bundle)) == 2
    return [counted("%s.%d" % (bundle, rank)) for rank in range(1, ranks)]


def test_each_rank_writes_its_shards_of_adamws_states():
    for ranks in 2, 3, 4:
        assert all(calls > 4 for calls in all_write("wide", ranks)), ranks


def test_so_do_ranks_without_a_group():
    assert all(calls > 4 for calls in all_write("wide", 6))


def test_each_rank_writes_its_shards_of_adapters():
    assert ask("job", "show", job("lora")[0], "--ranks", "3")["ranks"]["shard_bytes"] > 0
    assert all(calls > 4 for calls in all_write("lora", 3))


def test_where_a_rank_sees_no_folder_rank_0_writes():
    bundle = path("apart/wide.apart")
    words = run_words("wide", "wide.apart")
    words[words.index(DATA)] = os.path.abspath(DATA)
    os.makedirs(path("apart"))
    os.makedirs(path("elsewhere"))
    folders = {0: path("apart"), 1: path("apart"), 2: path("elsewhere")}
    more = {rank: tally("apart.%d" % rank) for rank in (1, 2)}
    ended = start_ranks(3, words, more, folders)
    assert [code for code, _ in ended] == [0, 0, 0], ended
    said = ended[0][1]
    assert said.count("rank 0 alone writes the checkpoints, since not all ranks see their folder: rank 2 (127.0.0.1): "
                      "cannot open 'wide.apart/checkpoints/") == 1, said
    assert checkpoints(bundle) == checkpoints(path("wide.one"))
    assert [counted("apart.%d" % rank) for rank in (1, 2)] == [0, 0]
    assert os.listdir(path("elsewhere")) == []


def test_an_encrypted_bundle_rank_0_writes():
    bundle = path("closed.run")
    told, data = job("wide")
    others = {1: tally("closed.1")}
    words = ["prover", "run", told, *data, "--bundle", bundle, *KEEP, "--encrypt", "--bundle-key",
             path("closed.key")]
    for code, said in start_ranks(2, words, others):
        assert code == 0, said
    assert counted("closed.1") == 0
    call("bundle", "check", bundle, "--bundle-key", path("closed.key"))
    assert ask("bundle", "steps", bundle, "--count", "9")["steps"][-1]["state_root"] == last_root(path("wide.one"))


def last_root(bundle):
    return ask("bundle", "steps", bundle, "--count", "9")["steps"][-1]["state_root"]


def goes_on(bundle, ranks):
    """What lies there is whole; what is resumed comes to the same bytes."""
    if not os.path.exists(bundle + "/job"):
        shutil.rmtree(bundle, ignore_errors=True)
        call(*run_words("wide", bundle), "--threads", "1", "--ranks", str(ranks))
    else:
        wanted = checkpoints(path("wide.one"))
        for name, found in checkpoints(bundle).items():
            assert ".part-" in name or found == wanted[name], "%s is half" % name
        call("prover", "resume", bundle, "--threads", "1", "--ranks", str(ranks), *KEEP)
    assert checkpoints(bundle) == checkpoints(path("wide.one")), bundle


def killed(rank, name, calls, **more):
    """One rank dies at each of its calls about files."""
    deaths = 0
    for at in calls:
        bundle = path("killed.%s.%d" % (name, at))
        ended = start_ranks(3, run_words("wide", bundle),
                            {rank: {"LD_PRELOAD": DEATH, "SUDDEN_DISK": "1", "SUDDEN_DEATH": str(at), **more}})
        assert ended[0][0] != 0, (at, ended)
        deaths += 1
        goes_on(bundle, (1, 2, 4)[at % 3])
        shutil.rmtree(bundle)
    return deaths


def test_a_rank_dies_at_any_call_of_its_writing():
    all_write("wide", 3)
    calls = counted("wide.3.1")
    each = range(1, calls + 1) if SOAK else range(1, calls // 2 + 1, 3)
    assert killed(1, "other", each) >= 4


def test_rank_0_dies_at_any_call_of_its_writing():
    """Its trainer, which has the journal as well."""
    job("wide")
    bundle = path("zero.3")
    inside = {"SUDDEN_IN": "--lockstep-trainer"}
    ended = start_ranks(3, run_words("wide", bundle), {0: tally("zero.0", **inside)})
    assert [code for code, _ in ended] == [0, 0, 0], ended
    calls = counted("zero.0")
    assert calls > 20, calls
    each = range(1, calls + 1) if SOAK else range(calls % 7 + 1, calls + 1, calls // 8)
    assert killed(0, "zero", each, **inside) >= 8


def test_a_full_disk_of_one_rank_is_named():
    bundle = path("full.run")
    with open(path("full"), "w"):
        pass
    ended = start_ranks(3, run_words("wide", bundle), {2: {"LD_PRELOAD": DEATH, "SUDDEN_FULL": path("full")}})
    assert ended[0][0] == 2, ended
    assert "rank 2 (127.0.0.1): cannot write '" in ended[0][1] and "No space left on device" in ended[0][1], ended
    assert not checkpoints(bundle), "a half checkpoint"
    goes_on(bundle, 2)


if __name__ == "__main__":
    sys.exit(program.main([
        test_each_rank_writes_its_shards_of_adamws_states,
        test_so_do_ranks_without_a_group,
        test_each_rank_writes_its_shards_of_adapters,
        test_where_a_rank_sees_no_folder_rank_0_writes,
        test_an_encrypted_bundle_rank_0_writes,
        test_a_rank_dies_at_any_call_of_its_writing,
        test_rank_0_dies_at_any_call_of_its_writing,
        test_a_full_disk_of_one_rank_is_named,
    ]))
