"""Goal: a pedigree is checked link by link from its bytes, and one changed byte is found and named.
Method: a small model from a folder of weights and conversations to merged weights, adapters and
bfloat16; one byte flipped in a file of each kind; the envelope as the openssl command takes it."""

import base64
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support"), os.path.join(HERE, "../../data")]
sys.dont_write_bytecode = True

import tiny_llama  # noqa: E402
import tokenizers  # noqa: E402
from program import LOCKSTEP, ask, call, folder, main, path  # noqa: E402

GIVEN = ["base", "packed", "tune.run", "adapter", "tuned", "tuned.bf16", "state.safetensors", "answer.receipt"]
MERGES = ("t h", "th e", "i n", "p r", "i m", "im e", "pr ime")


def talk(count):
    for number in range(count):
        prime = number > 1 and all(number % d for d in range(2, number))
        yield json.dumps({"messages": [{"role": "user", "content": "Is %d prime?" % number},
                                       {"role": "assistant", "content": "Yes." if prime else "No."}]})


def prepare():
    os.chdir(folder)
    tiny_llama.write("base", vocab_size=256 + len(MERGES) + len(tokenizers.SPECIALS), hidden_size=16,
                     intermediate_size=32, num_hidden_layers=1)
    tokenizers.write("base", tokenizers.byte_level(MERGES))
    with open("talk.jsonl", "w", encoding="utf-8") as file:
        file.write("\n".join(talk(60)) + "\n")
    call("data", "pack", "talk.jsonl", "--tokenizer", "base", "--chat", "llama3", "--length", "64",
         "--held-out", "0.2", "--out", "packed")
    call("job", "new", "--base", "base", "--lora", "4", "--target", "q_proj,v_proj", "--data", "packed",
         "--eval", "packed", "--eval-every", "2", "--eval-batches", "1", "--batch", "2", "--steps", "8",
         "--segment-steps", "2", "--rate", "0.01", "--out", "tune.job")
    call("prover", "run", "tune.job", "--data", "packed", "--data", "packed", "--data", "base",
         "--bundle", "tune.run")
    call("bundle", "export", "tune.run", "--hf", "adapter", "--base", "base", "--base-name", "a/b")
    call("bundle", "export", "tune.run", "--hf", "tuned", "--base", "base", "--merge")
    call("bundle", "export", "tune.run", "--hf", "tuned.bf16", "--base", "base", "--merge", "--dtype",
         "bf16", "--step", "2")
    call("bundle", "export", "tune.run", "--hf", "mean", "--base", "base", "--merge", "--average", "2")
    shutil.copy("tune.run/checkpoints/000000000004.safetensors", "state.safetensors")
    call("generate", "tuned", "--chat", "llama3", "--prompt", "Is 7 prime?", "--tokens", "8", "--seed", "3",
         "--prove", "answer.receipt")
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem"],
                   check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["openssl", "ec", "-in", "key.pem", "-pubout", "-out", "public.pem"], check=True,
                   stderr=subprocess.DEVNULL)


def lineage(*more, wanted=0, given=None):
    return ask("audit", "--lineage", *(given or GIVEN), *more, wanted=wanted)


def sentences(found, name):
    return ["%s: %s" % (said["file"], said["says"]) for said in found[name]]


def test_a_whole_pedigree_is_proven():
    prepare()
    found = lineage()
    assert found["answer"] == "proven" and not found["refuted"] and not found["not_told"], found
    assert sentences(found, "proven") == [
        "packed: 48 rows and 12 that are held out follow from their sources by the tokenizer base",
        "tune.run: names the config.json of base",
        "tune.run: stands on the weights of base",
        "tune.run: reads the rows of packed",
        "tune.run: 8 of 8 steps were run again and gave the same bits",
        "adapter: is what the state of tune.run after 8 of 8 steps makes, byte for byte",
        "tuned: is what the state of tune.run after 8 of 8 steps makes, byte for byte",
        "tuned.bf16: is what the state of tune.run after 2 of 8 steps makes, byte for byte",
        "state.safetensors: is what the state of tune.run after 4 of 8 steps makes, byte for byte",
        "answer.receipt: tuned answered so: one step holds the 8 tokens of the answer to the rule, "
        + found["proven"][-1]["says"].rsplit(", ", 1)[1],
    ], found["proven"]
    assert not found["missing"] and sorted(sentences(found, "trusted")) == [
        "adapter: that its base is called 'a/b'",
        "base: that it is what its publisher published: compare its root or its SHA-256",
        "packed: that its sources are what they are called, and may be used",
        "tune.run: that its program computes what the files say that its job names: who wrote the job says so",
    ], found["trusted"]
    assert [given["roles"] for given in found["given"]] == [
        ["base"], ["data"], ["training"], ["product"], ["product", "asked"], ["product"], ["product"], ["answer"]]
    steps = ask("bundle", "steps", "tune.run")["steps"]
    looks = {step["step"] + 1: step["held_out_loss"] for step in steps}
    assert {one["state_after"]: one["loss"] for one in found["held_out"]} == {n: looks[n] for n in (2, 4, 8)}


def test_roots_and_hashes_are_those_of_other_commands():
    given = {one["path"]: one for one in lineage()["given"]}
    for model in ("base", "tuned", "tuned.bf16"):
        root = ask("model", "root", model)["root"]
        assert given[model]["root"] == {"lockstep.state.v1": root}, model
    assert given["tune.run"]["root"] == {"lockstep.job.v1": ask("job", "show", "tune.job")["id"]}
    for name, one in given.items():
        for file in one["files"]:
            with open(os.path.join(name, file["name"]) if file["name"] else name, "rb") as whole:
                content = whole.read()
            assert file["sha256"] == hashlib.sha256(content).hexdigest() and file["size"] == len(content)


def test_a_mean_of_states_is_made_again():
    found = lineage(given=["base", "packed", "tune.run", "mean"])
    assert found["answer"] == "proven" and found["given"][3]["roles"] == ["product"], found
    with flipped("mean/model.safetensors", -9):
        found = lineage(given=["base", "packed", "tune.run", "mean"], wanted=1)
    assert found["refuted"][0]["file"] == "mean/model.safetensors", found


@contextlib.contextmanager
def flipped(name, place):
    flip(name, place)
    try:
        yield
    finally:
        flip(name, place)


def flip(name, place):
    with open(name, "r+b") as file:
        file.seek(place, os.SEEK_END if place < 0 else os.SEEK_SET)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def test_one_changed_byte_is_found_and_named():
    """Where the byte is, and what the first sentence must say about which file."""
    for name, place, file, says in (
            ("talk.jsonl", 100, "talk.jsonl", "is another file than the source of packed"),
            ("talk.jsonl", 0, "talk.jsonl", "is another file than the source of packed"),
            ("base/tokenizer.json", 40, "base/tokenizer.json", "is another file than the tokenizer of packed"),
            ("base/model.safetensors", -1, "base", "'lm_head.weight' has another root"),
            ("base/model.safetensors", -12000, "base", " has another root"),
            ("packed/tokens.u16", 6, "packed", "tokens"),
            ("packed/mask.u8", 30, "packed", "mask"),
            ("packed/held-out-tokens.u16", 10, "packed", "held-out"),
            ("packed/held-out-reach.u16", 10, "packed", "held-out"),
            ("tuned/model.safetensors", -1, "tuned/model.safetensors", "in 'model.norm.weight', differs"),
            ("tuned/model.safetensors", 12, "tuned", ""),
            ("tuned/config.json", 5, "tuned/config.json", "byte 5 differs"),
            ("tuned/tokenizer.json", 50, "tuned/tokenizer.json", "byte 50 differs"),
            ("tuned.bf16/model.safetensors", -7, "tuned.bf16/model.safetensors", "differs"),
            ("adapter/adapter_model.safetensors", -3, "adapter/adapter_model.safetensors", "lora_B"),
            ("adapter/adapter_config.json", 20, "adapter", ""),
            ("state.safetensors", -1, "state.safetensors", "it has another root"),
            ("tune.run/job", 300, "tune.run", ""),
            ("answer.receipt", 0, "answer.receipt", ""),
            ("answer.receipt", 60, "answer.receipt", ""),
            ("answer.receipt", -10, "answer.receipt", ""),
    ):
        with flipped(name, place):
            found = lineage(wanted=1)
        said = [one for one in found["refuted"] if one["file"].startswith(file) and says in one["says"]]
        assert found["answer"] == "refuted" and said, (name, place, found["refuted"], found["not_told"])
    assert lineage()["answer"] == "proven"


@contextlib.contextmanager
def configured(key, value):
    with open("base/config.json", encoding="ascii") as file:
        text = file.read()
    with open("base/config.json", "w", encoding="ascii") as file:
        json.dump(json.loads(text) | {key: value}, file)
    try:
        yield
    finally:
        with open("base/config.json", "w", encoding="ascii") as file:
            file.write(text)


def test_another_config_of_the_base_is_found_and_named():
    for key, value in (("rope_theta", 20000.0), ("rms_norm_eps", 1e-4), ("hidden_act", "gelu"),
                       ("tie_word_embeddings", True), ("eos_token_id", 3), ("pad_token_id", 1)):
        for given in (GIVEN, ["base", "packed", "tune.run", "adapter"]):
            with configured(key, value):
                found = lineage(wanted=1, given=given)
            said, = [one["says"] for one in found["refuted"] if one["file"] == "base/config.json"]
            assert said.startswith("is not the one of which the program of tune.run was made"), (key, found)
    found = lineage(given=["packed", "tune.run"], wanted=2)
    assert any("tune.run: the config.json of which its program was made, with the SHA-256 " in one
               for one in sentences(found, "missing")), found


def test_a_receipt_of_a_bundle_needs_no_folder_of_the_model():
    call("generate", "tune.run", "--base", "base", "--step", "4", "--chat", "llama3", "--prompt", "Is 7 prime?",
         "--tokens", "8", "--prove", "state.receipt")
    found = lineage(given=["base", "packed", "tune.run", "state.receipt"])
    said, = [one for one in found["proven"] if one["file"] == "state.receipt"]
    assert said["says"].startswith("tune.run, the state after 4 steps, answered so: "), found
    with flipped("state.receipt", -10):
        assert lineage(given=["base", "packed", "tune.run", "state.receipt"], wanted=1)["answer"] == "refuted"
    # A checkpoint of another step is no fault of the receipt, nor is a run that cannot be asked.
    given = ["base", "packed", "tune.run", "state.receipt"]
    with flipped("tune.run/checkpoints/000000000006.safetensors", -1):
        found = lineage(given=given)
        ask("audit", "state.receipt", "--base", "tune.run", "--data", "base")
    assert found["proven"][-1]["says"].startswith("tune.run, the state after 4 steps, answered so: "), found
    with flipped("tune.run/checkpoints/000000000004.safetensors", -1):
        found = lineage(given=given, wanted=2)
        ask("audit", "state.receipt", "--base", "tune.run", "--data", "base", wanted=2)
    said, = [one for one in found["not_told"] if one["file"] == "state.receipt"]
    assert said["says"].startswith("tune.run could not be asked: ") and not found["refuted"], found


def test_a_second_stage_may_stand_on_adapters():
    call("base", "merge", "base", "--adapter", "adapter", "--out", "merged")
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        with open("merged/" + name, "rb") as one, open("tuned/" + name, "rb") as other:
            assert one.read() == other.read(), name
    call("job", "new", "--base", "merged", "--data", "packed", "--batch", "2", "--steps", "2", "--segment-steps", "2",
         "--out", "second.job")
    call("prover", "run", "second.job", "--data", "packed", "--first-state", "merged", "--bundle", "second.run")
    whole = ["base", "packed", "tune.run", "adapter", "merged", "second.run"]
    found = lineage(given=whole)
    assert found["answer"] == "proven" and not found["not_told"], found
    assert "merged: is base with the adapters of adapter, byte for byte" in sentences(found, "proven"), found
    assert "second.run: begins with the weights of merged" in sentences(found, "proven"), found
    for name, place in (("merged/model.safetensors", -1), ("merged/tokenizer.json", 50),
                        ("adapter/adapter_model.safetensors", -3)):
        with flipped(name, place):
            for given in (whole, ["base", "packed", "adapter", "merged", "second.run"]):
                found = lineage(wanted=1, given=given)
                assert name in [one["file"] for one in found["refuted"]], (name, found)
    found = lineage(given=["base", "packed", "merged", "second.run"])
    assert "merged: the adapters that MERGED.json names" in sentences(found, "missing"), found
    found = lineage(given=["second.run", "packed", "base", "tune.run", "state.receipt"], wanted=1)
    assert not [one for one in found["refuted"] + found["not_told"] if one["file"] == "state.receipt"], found


@contextlib.contextmanager
def noted(change):
    """Another MERGED.json of the merged folder."""
    with open("merged/MERGED.json", encoding="ascii") as file:
        text = file.read()
    note = json.loads(text)
    change(note)
    with open("merged/MERGED.json", "w", encoding="ascii") as file:
        file.write(json.dumps(note, indent=2) + "\n")
    try:
        yield
    finally:
        with open("merged/MERGED.json", "w", encoding="ascii") as file:
            file.write(text)


def test_a_false_note_of_a_merge_is_found_and_blames_nobody_else():
    whole = ["base", "packed", "tune.run", "adapter", "merged", "second.run"]
    other = "5" * 64
    for change, file in ((lambda note: note["base"].update({"config.json": other}), "merged/MERGED.json"),
                         (lambda note: note["base"].update({"model.safetensors": other}), "merged/MERGED.json"),
                         (lambda note: note["adapters"].update({"adapter_config.json": other}), "merged/MERGED.json"),
                         (lambda note: note.update(scale=3.0), "merged/MERGED.json"),
                         (lambda note: note.update(base={"../../base/config.json": other}), "merged"),
                         (lambda note: note.update(base={"config.json": 5}), "merged"),
                         (lambda note: note.update(base=["config.json"]), "merged"),
                         (lambda note: note.pop("adapters"), "merged")):
        with noted(change):
            found = lineage(given=whole, wanted=1)
        assert [one["file"] for one in found["refuted"]] == [file], found["refuted"]
    # A merge of a merge: what was not given is missing, and no other folder is taken for it.
    call("base", "merge", "merged", "--adapter", "adapter", "--out", "twice")
    assert lineage(given=whole + ["twice"])["answer"] == "proven"
    found = lineage(given=["merged", "twice", "adapter"])
    assert "merged: the base that MERGED.json names" in sentences(found, "missing") and not found["refuted"], found


def test_a_note_of_a_merge_is_no_way_around_the_run():
    shutil.copytree("tuned", "posing")
    shutil.copy("merged/MERGED.json", "posing")
    flip("posing/model.safetensors", -1)
    call("generate", "posing", "--prompt", "Is 7 prime?", "--tokens", "4", "--prove", "posing.receipt")
    given = ["base", "packed", "tune.run", "posing", "posing.receipt"]
    found = lineage(given=given, wanted=1)
    assert [one["file"] for one in found["refuted"]] == ["posing/model.safetensors"], found


def test_the_config_that_the_job_names_is_held_to_what_the_run_stands_on():
    """Another folder that has it does not stand in for the base."""
    shutil.copytree("base", "stand_in")
    given = ["base", "packed", "tune.run", "adapter", "stand_in"]
    with configured("rope_theta", 20000.0):
        for order in (given, given[::-1]):  # of two with these weights it is the one with this file
            said = [one["file"] for one in lineage(given=order, wanted=1)["refuted"]]
            assert "base/config.json" in said and not [file for file in said if file.startswith("stand_in")], said
        flip("stand_in/model.safetensors", -1)
        said, = lineage(given=given, wanted=1)["refuted"]
        assert said["file"] == "base/config.json" and "the program of tune.run" in said["says"], said
    shutil.rmtree("stand_in")


def test_a_false_checkpoint_or_step_is_found():
    checkpoint = "tune.run/checkpoints/000000000008.safetensors"
    with flipped(checkpoint, -1):
        found = lineage(wanted=2)
    assert any(one.startswith("tune.run: ") for one in sentences(found, "not_told")), found
    call("prover", "run", "tune.job", "--data", "packed", "--data", "packed", "--data", "base",
         "--bundle", "false.run", "--falsify", "3")
    found = lineage(given=["base", "packed", "false.run"], wanted=1)
    assert sentences(found, "refuted")[0].startswith("false.run: step 3 "), found


def test_what_was_not_given_is_missing_and_what_is_no_part_is_refuted():
    found = lineage(given=["base", "tune.run", "tuned"], wanted=2)
    assert any("its data 'tokens'" in one for one in sentences(found, "missing")), found
    assert any("what it reads is not all there" in one for one in sentences(found, "not_told")), found
    found = lineage(given=["packed", "tune.run"], wanted=2)
    assert any("its data 'model.layers" in one for one in sentences(found, "missing")), found
    found = lineage(given=["base", "packed", "tune.run"])
    assert sentences(found, "missing") == [": the files of the trained model",
                                           ": the receipt of an answer"], found
    tiny_llama.write("other", hidden_size=16, intermediate_size=32, num_hidden_layers=1)
    with open("other.u8", "wb") as file:
        file.write(b"nobody reads this")
    found = lineage(given=GIVEN + ["other.u8"], wanted=1)
    assert sentences(found, "refuted") == [
        "other.u8: is no part of this lineage: no run that was given reads it, begins with it or makes it"]
    found = lineage(given=GIVEN + ["other"], wanted=1)
    assert [one["file"].split("/")[0] for one in found["refuted"]] == ["other"] * len(found["refuted"]), found
    found = lineage(given=GIVEN + ["nowhere"], wanted=2)
    assert sentences(found, "not_told") == ["nowhere: cannot open nowhere: No such file or directory"], found


def test_sources_may_lie_elsewhere_or_be_gone():
    os.makedirs("moved")
    os.rename("talk.jsonl", "moved/talk.jsonl")
    found = lineage("--attest", "gone.dsse", "--attest-key", "key.pem")
    assert "talk.jsonl: the source of packed is not there" in sentences(found, "missing"), found
    assert any("follow from their sources, which are not all there" in one
               for one in sentences(found, "trusted")), found
    needs = {need["name"] for need in
             statement("gone.dsse")["predicate"]["buildDefinition"]["resolvedDependencies"]}
    assert "packed/tokens.u16" in needs and "talk.jsonl" not in needs, needs  # nobody saw it
    assert lineage("--sources", "moved")["missing"] == []
    os.rename("moved/talk.jsonl", "talk.jsonl")


def test_a_sample_is_said_to_be_one():
    found = lineage("--sample", "1")
    assert any("2 of 8 steps" in one for one in sentences(found, "proven")), found
    assert "tune.run: 6 steps, which were not run again" in sentences(found, "trusted"), found
    told = [one for one in sentences(found, "trusted") if "held-out loss" in one]
    proven = [one["state_after"] for one in found["held_out"]]
    # Each look is of the segment that ends there.
    assert len(proven) == 1 and len(told) == 2 and len(set(told)) == 2, found
    assert all("the state after %d steps" % proven[0] not in one for one in told), found


def test_words_that_people_write_are_trusted_not_proven():
    with open("tuned/README.md", "a", encoding="utf-8") as file:
        file.write("\nThis is the best model.\n")
    with open("tuned/notes.txt", "w", encoding="utf-8") as file:
        file.write("words\n")
    found = lineage("--attest", "words.dsse", "--attest-key", "key.pem")
    assert {one["file"] for one in found["trusted"]} >= {"tuned/README.md", "tuned/notes.txt"}, found
    names = {one["name"] for one in statement("words.dsse")["subject"]}
    assert "tuned/model.safetensors" in names and not names & {"tuned/README.md", "tuned/notes.txt"}
    os.remove("tuned/notes.txt")


def test_an_answer_of_another_model_is_no_part_of_the_lineage():
    tiny_llama.write("stranger", vocab_size=256 + len(MERGES) + len(tokenizers.SPECIALS), hidden_size=16,
                     intermediate_size=32, num_hidden_layers=1, rms_norm_eps=1e-3)
    tokenizers.write("stranger", tokenizers.byte_level(MERGES))
    flip("stranger/model.safetensors", -1)
    call("generate", "stranger", "--prompt", "Is 7 prime?", "--tokens", "4", "--prove", "stranger.receipt")
    found = lineage(given=["stranger", "stranger.receipt"])
    assert found["answer"] == "proven" and len(found["trusted"]) == 1, found
    found = lineage(given=GIVEN + ["stranger", "stranger.receipt"], wanted=1)
    assert found["answer"] == "refuted" and found["refuted"], found
    for one in found["refuted"]:
        assert one["file"].startswith("stranger/"), found


def test_a_second_model_in_the_folder_is_refuted():
    for place, name in (("tuned", "pytorch_model.bin"), ("adapter", "model.safetensors"),
                        ("adapter", "config.json")):
        shutil.copy(os.path.join("base", "config.json" if name.endswith("json") else "model.safetensors"),
                    os.path.join(place, name))
        found = lineage(wanted=1)
        said = sentences(found, "refuted")
        assert said[0].startswith("%s/%s: is none of the model's files" % (place, name)), found
        os.remove(os.path.join(place, name))


def test_held_out_data_that_are_learned_are_found():
    with open("flat.u8", "wb") as file:
        file.write(bytes(range(64)) * 8)
    with open("apart.u8", "wb") as file:
        file.write(bytes(range(63)) * 8)
    for held, wanted in (("flat.u8", 1), ("apart.u8", 0)):
        call("job", "new", "--data", "flat.u8", "--eval", held, "--eval-every", "2", "--layers", "1", "--heads",
             "1", "--width", "8", "--length", "4", "--batch", "1", "--vocabulary", "64", "--steps", "2",
             "--segment-steps", "2", "--out", held + ".job")
        call("prover", "run", held + ".job", "--data", "flat.u8", "--data", held, "--bundle", held + ".run")
        found = lineage(given=[held + ".run", *sorted({"flat.u8", held})], wanted=wanted)
        said = sentences(found, "refuted" if wanted else "trusted")
        assert held + ".run: " + ("its held-out figures are of the data that it learns from" if wanted else
                                  "that it learns from nothing that its held-out figures are of") in said, found


def test_a_pipe_is_refused_and_not_waited_for():
    os.mkfifo("pipe")
    for words, wanted in ((["--lineage", "base", "pipe"], 1), (["pipe", "--base", "base"], 3)):
        done = subprocess.run([LOCKSTEP, "audit", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=120, check=False)
        assert done.returncode == wanted and b"pipe" in done.stdout, done


def test_text_and_page_say_the_same():
    found = lineage("--report", "page.html")
    text = call("audit", "--lineage", *GIVEN).stdout.decode()
    with open("page.html", encoding="utf-8") as file:
        page = file.read()
    assert text.startswith("Lineage\nProven: ") and "<script" not in page
    for name in ("proven", "trusted"):
        for one in sentences(found, name):
            assert "  %s\n" % one in text and one.replace("'", "&#39;") in page, one


# ---- the envelope -----------------------------------------------------------------


def envelope(name):
    with open(name, encoding="ascii") as file:
        return json.load(file)


def statement(name):
    return json.loads(base64.b64decode(envelope(name)["payload"], validate=True))


def pae(one):
    body = base64.b64decode(one["payload"], validate=True)
    kind = one["payloadType"].encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)


def openssl_takes(content, signature):
    for name, whole in (("pae.bin", content), ("pae.sig", signature)):
        with open(name, "wb") as file:
            file.write(whole)
    done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", "public.pem", "-signature", "pae.sig",
                           "pae.bin"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0 and b"Verified OK" in done.stdout


def test_openssl_takes_the_signature():
    lineage("--attest", "one.dsse", "--attest-key", "key.pem")
    one = envelope("one.dsse")
    assert one["payloadType"] == "application/vnd.in-toto+json" and len(one["signatures"]) == 1
    signature = base64.b64decode(one["signatures"][0]["sig"], validate=True)
    assert openssl_takes(pae(one), signature)
    assert not openssl_takes(pae(one)[:-1] + b" ", signature)
    with open("public.pem", encoding="ascii") as file:
        der = base64.b64decode("".join(file.read().split("\n")[1:-2]))
    wire = b"".join(len(part).to_bytes(4, "big") + part
                    for part in (b"ecdsa-sha2-nistp256", b"nistp256", der[-65:]))
    wanted = "SHA256:" + base64.b64encode(hashlib.sha256(wire).digest()).decode().rstrip("=")
    assert one["signatures"][0]["keyid"] == wanted


def test_the_statement_names_base_data_and_tokenizer():
    one = statement("one.dsse")
    assert one["_type"] == "https://in-toto.io/Statement/v1"
    assert one["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {subject["name"]: subject["digest"] for subject in one["subject"]}
    with open("tuned/model.safetensors", "rb") as file:
        assert subjects["tuned/model.safetensors"] == {
            "sha256": hashlib.sha256(file.read()).hexdigest(),
            "lockstep.state.v1": ask("model", "root", "tuned")["root"]}
    build = one["predicate"]["buildDefinition"]
    needs = {need["name"]: need["digest"] for need in build["resolvedDependencies"]}
    for name, where in (("talk.jsonl", "talk.jsonl"), ("base/tokenizer.json", "base/tokenizer.json"),
                        ("base/model.safetensors", "base/model.safetensors"),
                        ("packed/held-out-tokens.u16", "packed/held-out-tokens.u16")):
        with open(where, "rb") as file:
            assert needs[name]["sha256"] == hashlib.sha256(file.read()).hexdigest(), name
    with open("packed/manifest.json", encoding="utf-8") as file:
        manifest = json.load(file)
    assert needs["packed/tokens.u16"]["lockstep.data.v1"] == manifest["rows"]["tokens"]["root"]
    assert build["externalParameters"]["jobs"] == [ask("job", "show", "tune.job")["id"]]
    certificate, = one["predicate"]["runDetails"]["byproducts"]
    again = lineage()
    assert {name: certificate["annotations"]["lockstep"][name] for name in again} == again


def test_an_account_signs_beside_it():
    secret = {"LOCKSTEP_PASSPHRASE": "a test", "XDG_DATA_HOME": path("data")}
    address = ask("wallet", "new", "--light", environment=secret)["address"]
    words = ["audit", "--lineage", *GIVEN, "--attest", "two.dsse", "--sign"]
    ask(*words, environment=secret)
    assert [one["keyid"] for one in envelope("two.dsse")["signatures"]] == [address]
    ask(*words, "--attest-key", "key.pem", environment=secret)
    two = envelope("two.dsse")
    assert [one["keyid"][:2] for one in two["signatures"]] == ["SH", "0x"]
    assert openssl_takes(pae(two), base64.b64decode(two["signatures"][0]["sig"]))
    assert two["payload"] == envelope("one.dsse")["payload"]  # no time, no machine


def test_only_what_is_proven_is_attested_and_only_with_a_key():
    with flipped("tuned/model.safetensors", -1):
        lineage("--attest", "three.dsse", "--attest-key", "key.pem", wanted=1)
    assert not os.path.exists("three.dsse")
    found = lineage("--attest", "three.dsse", "--attest-key", "key.pem", wanted=2,
                    given=["base", "packed", "tune.run"])
    assert "no model is given" in str(found), found
    for words, why in ((["--attest", "x"], "is signed"), (["--attest-key", "key.pem"], "--attest FILE"),
                       (["--sign"], "--attest FILE"), (["--data", "packed"], "--data says nothing"),
                       (["--report", "x.json"], "is a page"), (["--transactions"], "says nothing")):
        done = call("audit", "--lineage", *GIVEN, *words, wanted=3)
        assert why in done.stderr.decode(), (words, done.stderr)
    for words in (["--attest", "x"], ["--sources", "moved"], ["--tokenizer", "base"]):
        assert "without --lineage" in call("audit", "tune.run", *words, wanted=3).stderr.decode()


def test_other_keys_are_refused_by_name():
    subprocess.run(["openssl", "ecparam", "-name", "secp384r1", "-genkey", "-noout", "-out", "wide.pem"],
                   check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["openssl", "pkey", "-in", "key.pem", "-aes128", "-passout", "pass:x", "-out",
                    "locked.pem"], check=True, stderr=subprocess.DEVNULL)
    for name, why in (("wide.pem", "is no key of the curve P-256"), ("locked.pem", "is under a passphrase"),
                      ("public.pem", "holds no private key in PEM"), ("talk.jsonl", "holds no private key")):
        done = call("audit", "--lineage", *GIVEN, "--attest", "x", "--attest-key", name, wanted=2)
        assert why in done.stderr.decode(), (name, done.stderr)


if __name__ == "__main__":
    sys.exit(main([
        test_a_whole_pedigree_is_proven,
        test_roots_and_hashes_are_those_of_other_commands,
        test_a_mean_of_states_is_made_again,
        test_one_changed_byte_is_found_and_named,
        test_another_config_of_the_base_is_found_and_named,
        test_a_receipt_of_a_bundle_needs_no_folder_of_the_model,
        test_a_second_stage_may_stand_on_adapters,
        test_a_false_note_of_a_merge_is_found_and_blames_nobody_else,
        test_a_note_of_a_merge_is_no_way_around_the_run,
        test_the_config_that_the_job_names_is_held_to_what_the_run_stands_on,
        test_a_false_checkpoint_or_step_is_found,
        test_what_was_not_given_is_missing_and_what_is_no_part_is_refuted,
        test_sources_may_lie_elsewhere_or_be_gone,
        test_a_sample_is_said_to_be_one,
        test_openssl_takes_the_signature,
        test_the_statement_names_base_data_and_tokenizer,
        test_an_account_signs_beside_it,
        test_an_answer_of_another_model_is_no_part_of_the_lineage,
        test_a_second_model_in_the_folder_is_refuted,
        test_held_out_data_that_are_learned_are_found,
        test_a_pipe_is_refused_and_not_waited_for,
        test_words_that_people_write_are_trusted_not_proven,
        test_text_and_page_say_the_same,
        test_only_what_is_proven_is_attested_and_only_with_a_key,
        test_other_keys_are_refused_by_name,
    ]))
