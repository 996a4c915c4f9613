"""Goal: who has a receipt and the published folder knows what the model answered. `generate --prove`
writes it, `audit RECEIPT --base FOLDER` proves it by one step, and a change in it, or in
the folder, is refused by name.
Method: the program on small random Llamas with a byte-level tokenizer, under every rule of choice.
Models with channels that a step's products round coarsely disagree with the decoder: the answer goes
on with the step's choice, eight times at most. The bytes are the same with every instruction set."""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support"), os.path.join(HERE, "../../data")]
sys.dont_write_bytecode = True

import tiny_llama  # noqa: E402
import tokenizers  # noqa: E402
from program import LOCKSTEP, ask, call, main, path  # noqa: E402

RULES = {"likeliest": ["--temperature", "0"], "all": [], "hot": ["--temperature", "7.5", "--seed", "99"],
         "k": ["--top-k", "5"], "p": ["--top-p", "0.7", "--temperature", "0.6"],
         "both": ["--top-k", "40", "--top-p", "0.95", "--seed", "3"], "one": ["--top-k", "1"]}
PROMPT = "the thing"
SWITCHED_OFF = ["00000000"]


def model(name="model", **more):
    folder = path(name)
    if not os.path.exists(folder):
        merges = ("t h", "th e", "i n", "Ġ the")
        ids = 256 + len(merges) + len(tokenizers.SPECIALS)
        tiny_llama.write(folder, vocab_size=ids,
                         **({"num_hidden_layers": 1, "max_position_embeddings": 256} | more))
        tokenizers.write(folder, tokenizers.byte_level(merges))
    return folder


def weights(folder, change):
    """Changes the numbers of single tensors: change(name, numbers of bfloat16)."""
    file = os.path.join(folder, "model.safetensors")
    with open(file, "rb") as opened:
        size, = struct.unpack("<Q", opened.read(8))
        text, body = opened.read(size), bytearray(opened.read())
    for name, entry in json.loads(text).items():
        start, end = entry["data_offsets"]
        numbers = list(struct.unpack("<%dH" % ((end - start) // 2), body[start:end]))
        change(name, numbers, entry["shape"])
        body[start:end] = struct.pack("<%dH" % len(numbers), *numbers)
    with open(file, "wb") as opened:
        opened.write(struct.pack("<Q", size) + text + body)
    return folder


def prove(name, *more, folder=None, tokens=20, wanted=0):
    out = path(name + ".receipt")
    said = ask("generate", folder or model(), "--prompt", PROMPT, "--tokens", str(tokens), "--prove", out,
               *more, wanted=wanted)
    return out, said


def read(receipt):
    with open(receipt, encoding="ascii") as file:
        return json.load(file)


def write(name, claim):
    with open(path(name), "w", encoding="ascii") as file:
        file.write(json.dumps(claim, sort_keys=True, separators=(",", ":")) + "\n")
    return path(name)


def audit(receipt, folder=None, wanted=0):
    one, = ask("audit", receipt, "--base", folder or model(), wanted=wanted)["audits"]
    return one


def bits(text):
    return struct.unpack(">f", bytes.fromhex(text))[0]


def test_an_answer_under_every_rule_is_proven():
    for name, rule in RULES.items():
        out, said = prove(name, *rule, tokens=70)  # two slices
        plain = ask("generate", model(), "--prompt", PROMPT, "--tokens", "70", *rule)
        assert said["tokens"] == plain["tokens"] and said["text"] == plain["text"], name
        assert said["corrected"] == 0 and said["receipt"] == out, said
        claim, found = read(out), audit(out)
        assert claim["tokens"][claim["prompt_tokens"]:] == said["tokens"], name
        assert claim["prompt_tokens"] == said["prompt_tokens"] == 6, claim
        each = 2 + 2 * ("--top-k" in rule) + 2 * ("--top-p" in rule)
        assert found["answer"] == "proven" and found["stopped"] is False, found
        assert found["held"] == found["conditions"] == each * len(said["tokens"]), (name, found)
        for rule_name, option in (("thresholds_k", "--top-k"), ("thresholds_p", "--top-p")):
            assert (set(claim[rule_name]) == set(SWITCHED_OFF)) == (option not in rule), (name, claim)
        assert (bits(claim["temperature"]) == 0) == (name == "likeliest")
    said = call("audit", path("both.receipt"), "--base", model()).stdout.decode()
    for words in (": proven\n", "prompt   6 tokens", "top-k 40, top-p 0.95, seed 3", "420 of 420"):
        assert words in said, said


def test_what_was_changed_in_a_receipt_is_refuted():
    out, _ = prove("whole", "--top-k", "40", "--top-p", "0.95", "--seed", "3")
    count = len(read(out)["tokens"])

    def refuted(words, held=True, **changes):
        claim = read(out)
        for key, change in changes.items():
            claim[key] = change(claim[key]) if callable(change) else change
        found = audit(write("changed", claim), wanted=1)
        assert found["answer"] == "refuted" and words in found["reason"], found
        assert (0 < found["held"] < found["conditions"]) == held, found

    def other(index, by=1):
        return lambda tokens: tokens[:index] + [tokens[index] ^ by] + tokens[index + 1:]

    def nudged(index):
        return lambda list_: list_[:index] + ["%08x" % (int(list_[index], 16) + 1)] + list_[index + 1:]

    refuted("token 19 of the answer is", tokens=other(count - 1))
    refuted("of the answer is", tokens=other(count - 10))
    refuted("", tokens=other(2))  # of the prompt
    refuted("the threshold of top-p at token 0 of the answer", thresholds_p=nudged(0))
    refuted("the threshold of top-k at token 7 of the answer", thresholds_k=nudged(7))
    refuted("of the answer is", seed="0000000000000004")
    refuted("of the answer is", temperature="3f99999a")
    refuted("the threshold of top-k", top_k=41)
    refuted("the threshold of top-p", top_p="3f666666")
    refuted("of the answer is", prompt_tokens=7, thresholds_p=lambda list_: list_[1:],
            thresholds_k=lambda list_: list_[1:])
    # Of another model, or of what it does not take: without a step.
    refuted("the weights of", held=False, model_root="00" * 32)
    refuted("config.json of", held=False, config="00" * 32)
    refuted("token 25 of the row is 400, and the model has 265", held=False,
            tokens=lambda tokens: tokens[:-1] + [400])
    refuted("on a multiple of 16 272, and the model takes 256", held=False,
            tokens=lambda tokens: tokens[:6] + [1] * 251, thresholds_p=["3f800000"] * 251,
            thresholds_k=["3f800000"] * 251)
    refuted("a choice among 266 tokens", held=False, top_k=266)
    assert audit(out)["answer"] == "proven"
    both = ask("audit", out, path("changed"), "--base", model(), wanted=1)["audits"]
    assert [one["answer"] for one in both] == ["proven", "refuted"]


def test_a_token_that_is_not_the_likeliest_is_refuted():
    out, _ = prove("likeliest", *RULES["likeliest"])
    claim = read(out)
    claim["tokens"][-1] ^= 1
    found = audit(write("changed", claim), wanted=1)
    assert (found["held"], found["conditions"]) == (39, 40), found
    claim["temperature"] = "3f800000"
    claim["tokens"][-1] ^= 1
    assert "of the answer is" in audit(write("changed", claim), wanted=1)["reason"]


def test_a_folder_with_another_weight_or_another_config_is_not_the_receipts():
    out, _ = prove("whole")
    other = path("other")
    shutil.copytree(model(), other)
    with open(os.path.join(other, "model.safetensors"), "r+b") as file:
        file.seek(-2, 2)
        byte = file.read(1)
        file.seek(-2, 2)
        file.write(bytes([byte[0] ^ 1]))
    found = audit(out, other, wanted=1)
    root = ask("model", "root", model())["root"]
    assert found["answer"] == "refuted" and "the weights of" in found["reason"], found
    assert root[:16] in found["reason"] and read(out)["model_root"] == root
    shutil.copy(os.path.join(model(), "model.safetensors"), other)
    assert audit(out, other)["answer"] == "proven"
    with open(os.path.join(other, "config.json"), "a", encoding="ascii") as file:
        file.write("\n")
    assert "config.json of" in audit(out, other, wanted=1)["reason"]
    with open(os.path.join(model(), "config.json"), "rb") as file:
        assert read(out)["config"] == hashlib.sha256(file.read()).hexdigest()
    shutil.rmtree(other)
    found = audit(out, other, wanted=2)
    assert found["answer"] == "cannot-tell" and "no such file" in found["reason"], found


def test_bytes_that_are_no_receipt_prove_nothing():
    out, _ = prove("whole", "--top-k", "9")
    with open(out, "rb") as file:
        whole = file.read()

    def unread(words, claim):
        name = write("bad", claim) if isinstance(claim, dict) else path("bad")
        if isinstance(claim, bytes):
            with open(name, "wb") as file:
                file.write(claim)
        found = audit(name, wanted=2)
        assert found["answer"] == "cannot-tell" and words in found["reason"], found

    unread("not those of a receipt", whole + b"\n")
    unread("not those of a receipt", whole[:-1])
    unread("not those of a receipt", whole.replace(b'"seed":"00', b'"seed":"0x00'))
    root = read(out)["model_root"].encode()
    unread("not those of a receipt", whole.replace(root, root.upper()))
    unread("", whole[:-40])
    for words, changes in (
            ("'more'", {"more": 1}), ("lockstep-receipt-2", {"format": "lockstep-receipt-2"}),
            ("version 99 of the rules", {"rules": 99}), ("'seed'", {"seed": "12"}),
            ("thresholds for 19 tokens", {"prompt_tokens": 7}),
            ("there must be one or more of prompt and of answer", {"prompt_tokens": 0}),
            ("there must be one or more of prompt and of answer", {"prompt_tokens": 26}),
            ("choose no token", {"temperature": "7fc00000"}), ("choose no token", {"temperature": "42ca0000"}),
            ("choose no token", {"temperature": "00000000"}), ("choose no token", {"top_p": "00000000"}),
            ("choose no token", {"top_p": "40000000"}), ("is no token", {"tokens": [-1] * 26}),
            ("is no token", {"tokens": ["a"] * 26}), ("is no share", {"thresholds_k": ["40000000"] * 20}),
            ("is no share", {"thresholds_k": ["7fc00000"] * 20}),
            ("'thresholds_p': a number below +0", {"thresholds_p": ["80000000"] * 20}),
            ("'temperature': a number below +0", {"temperature": "80000000"}),
            ("'top_p': a number below +0", {"top_p": "80000000"}),
            ("a seed of no draw", {"temperature": "00000000", "top_k": 0, "seed": "0000000000000001"}),
            ("the rule is off", {"thresholds_p": ["3f000000"] * 20}),
            ("no binary32", {"thresholds_k": ["3f00000"] * 20}), ("do not rise", {"stops": [5, 5]}),
            ("'stops'", {"stops": list(range(65))}),
            ("ends answers, and this one goes on", {"stops": [read(out)["tokens"][8]]})):
        unread(words, read(out) | changes)
    for key in read(out):
        unread("'%s'" % key, {other: value for other, value in read(out).items() if other != key}
               if key != "config" else read(out) | {"config": 5})


def test_a_token_that_ends_an_answer_is_the_last_one():
    plain = ask("generate", model(), "--prompt", PROMPT, "--tokens", "20", "--seed", "5")
    stop = next(token for token in plain["tokens"][3:] if 97 <= token <= 122)
    out, said = prove("stopped", "--seed", "5", "--stop", chr(stop))
    assert said["end"] == "stop" and said["tokens"][-1] == stop, (said, stop)
    found = audit(out)
    assert found["answer"] == "proven" and found["stopped"], found
    assert found["stops"] == read(out)["stops"]
    assert stop in read(out)["stops"] and read(out)["stops"] == sorted(read(out)["stops"])
    assert "the last one ends it" in call("audit", out, "--base", model()).stdout.decode()


def test_the_bytes_are_the_same_with_every_instruction_set():
    found = set()
    with open("/proc/cpuinfo", encoding="ascii") as file:
        here = file.read()
    for isa in ["scalar"] + [name for name, flag in (("avx2", "avx2"), ("avx512", "avx512bw"))
                             if flag in here]:
        for threads in "12":
            out, _ = prove("isa", *RULES["both"], "--isa", isa, "--threads", threads, tokens=70)
            with open(out, "rb") as file:
                found.add(file.read())
    assert len(found) == 1


def outlier(name, size):
    """A model in which one channel is far larger than the others, which a product then rounds."""
    def change(tensor, numbers, shape):
        if tensor == "model.norm.weight":
            numbers[3] = struct.unpack(">H", struct.pack(">f", size)[:2])[0]
        if tensor == "lm_head.weight":  # every token has the same share of that channel
            for row in range(shape[0]):
                numbers[row * shape[1] + 3] = 0x3f80

    folder = path(name)
    if not os.path.exists(folder):
        weights(model(name), change)
    return folder


def test_where_the_step_chooses_otherwise_the_answer_goes_on_from_there():
    folder = outlier("some", OUTLIER_SOME)
    out, said = prove("some", "--seed", "2", folder=folder, tokens=100)
    plain = ask("generate", folder, "--prompt", PROMPT, "--tokens", "100", "--seed", "2")
    assert 1 <= said["corrected"] <= 8 and said["tokens"] != plain["tokens"], (said["corrected"], said)
    same = next(i for i in range(100) if said["tokens"][i] != plain["tokens"][i])
    assert said["tokens"][:same] == plain["tokens"][:same] and len(said["tokens"]) == 100
    assert audit(out, folder)["answer"] == "proven"
    folder = outlier("many", OUTLIER_MANY)
    done = subprocess.run([LOCKSTEP, "generate", folder, "--prompt", PROMPT, "--tokens", "100", "--prove",
                           path("none.receipt")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and b"no receipt: after 8 corrections" in done.stderr, done
    assert not os.path.exists(path("none.receipt")) and len(done.stdout) > 50


def test_a_conversation_has_the_receipt_of_its_newest_answer():
    out = path("chat.receipt")
    done = subprocess.run([LOCKSTEP, "generate", model(), "--chat", "llama3", "--tokens", "6", "--json",
                           "--prove", out], input=b"the in\nthing\n", stdout=subprocess.PIPE, check=True)
    first, second = map(json.loads, done.stdout.splitlines())
    claim = read(out)
    assert claim["prompt_tokens"] == second["prompt_tokens"] > first["prompt_tokens"] + 6
    assert claim["tokens"][-len(second["tokens"]):] == second["tokens"]
    assert int(claim["seed"], 16) == second["seed"] == 2
    assert audit(out)["answer"] == "proven"


def bundle():
    """A run of adapters over model(), and one of a model from a seed."""
    if not os.path.exists(path("tuned.run")):
        with open(path("tokens.u8"), "wb") as file:
            file.write(bytes(range(256)) * 2)
        for name, what, place in (("tuned", ["--base", model(), "--lora", "2"], ["--data", model()]),
                                  ("seed", ["--model", "llama", "--vocabulary", "300", "--layers", "1", "--width", "16",
                                            "--heads", "2"], [])):
            call("job", "new", *what, "--data", path("tokens.u8"), "--data-type", "u8", "--length", "32", "--batch",
                 "2", "--steps", "4", "--segment-steps", "2", "--rate", "0.05", "--out", path(name + ".job"))
            call("prover", "run", path(name + ".job"), "--data", path("tokens.u8"), *place, "--bundle",
                 path(name + ".run"))
    return path("tuned.run"), path("seed.run")


def test_a_bundle_has_receipts_of_its_states():
    """The receipt is that of the exported folder; audit finds the state, and holds it to the journal's root."""
    tuned, seed = bundle()
    for step in (2, 4):
        out, _ = prove("state", "--base", model(), "--step", str(step), folder=tuned)
        found, = ask("audit", out, "--base", tuned, "--data", model())["audits"]
        assert found["answer"] == "proven" and found["state_after"] == step, found
        exported = path("exported.%d" % step)
        call("bundle", "export", tuned, "--hf", exported, "--base", model(), "--merge", "--step", str(step))
        with open(os.path.join(exported, "README.md"), encoding="ascii") as file:
            assert "| root of this state | `%s` |" % found["state_root"] in file.read(), found
        again, _ = prove("exported", folder=exported)
        assert read(again) == read(out) and audit(out, exported)["answer"] == "proven"
    out, _ = prove("seed", "--tokenizer", "bytes", folder=seed)
    assert ask("audit", out, "--base", seed)["audits"][0]["state_after"] == 4
    left = [name for name in os.listdir(os.environ.get("TMPDIR") or "/tmp") if name.startswith("lockstep-model-")]
    assert not left, left


def test_a_bundle_that_is_not_the_receipts_is_named():
    tuned, seed = bundle()
    out, _ = prove("state", "--base", model(), folder=tuned)

    def answer(wanted, part, *words):
        found, = ask("audit", out, "--base", *words, wanted=wanted)["audits"]
        assert part in found["reason"], found

    answer(1, "no state of", seed)
    answer(2, "began with a folder", tuned)
    answer(2, "is not what the job began with", tuned, "--data",
           weights(model("bent"), lambda name, numbers, _: numbers.__setitem__(0, numbers[0] ^ 1)))
    shutil.copytree(model(), path("config.of"))
    with open(path("config.of/config.json"), "a", encoding="ascii") as file:
        file.write("\n")
    answer(2, "config.json is not the one", tuned, "--data", path("config.of"))
    claim = read(out)
    claim["tokens"][-1] ^= 1
    out = write("changed", claim)
    answer(1, "the step chooses", tuned, "--data", model())
    for words in ([tuned, "--data", model(), "--data", model()], [model(), "--data", model()]):
        assert "--data" in ask("audit", out, "--base", *words, wanted=3)["error"]["message"]
    said = ask("generate", tuned, "--prompt", PROMPT, "--prove", path("no.receipt"), wanted=3)["error"]
    assert "began with a folder" in said["message"] and "--base" in said["advice"], said
    said = ask("job", "new", "--receipt", out, "--base", tuned, "--out", path("no.job"), wanted=3)["error"]
    assert "is a bundle" in said["message"], said


def test_what_has_no_receipt_is_refused_by_name():
    def refused(part, *words, wanted=3):
        said = ask(*words, wanted=wanted)["error"]["message"]
        assert part in said, (words, said)

    out, _ = prove("whole")
    more = ["--prompt", PROMPT, "--prove", path("no.receipt")]
    refused("--logits with --prove", "generate", model(), *more, "--logits", path("no"))
    refused("a folder of its own", "generate", model() + "/model.safetensors", "--base", model(), *more)
    refused("leaves no place", "generate", model("short", max_position_embeddings=17), "--prompt",
            "a" * 14, "--prove", path("no.receipt"), wanted=1)
    refused("no receipt", "audit", path("whole.receipt"), model(), "--base", model())
    refused("is held against a model", "audit", out)
    refused("--sample says nothing of a receipt", "audit", out, "--base", model(), "--sample", "3")
    new = ["job", "new", "--receipt", out, "--out", path("no.job")]
    refused("is of a model", *new)
    refused("--steps says nothing about a receipt", *new, "--base", model(), "--steps", "2")
    refused("--data says nothing about a receipt", *new, "--base", model(), "--data", out)
    refused("--tape says nothing about a receipt", *new, "--base", model(), "--tape", out)
    refused("the weights of", *new, "--base", model("two", num_hidden_layers=2), wanted=1)
    refused("leaves no place", "generate", model("tiny", max_position_embeddings=12), *more, wanted=1)
    assert not os.path.exists(path("no.receipt")) and not os.path.exists(path("no.job"))


def test_logits_that_are_no_numbers_prove_nothing():
    def change(tensor, numbers, _):
        if tensor == "model.norm.weight":
            numbers[:] = [0x7f7f] * len(numbers)  # the largest there is: what it multiplies is not finite

    folder = weights(model("wild"), change)
    out, _ = prove("whole", *RULES["likeliest"], tokens=3)
    with open(os.path.join(folder, "config.json"), "rb") as file:
        config = hashlib.sha256(file.read()).hexdigest()
    for rule in ({}, {"temperature": "3f800000"}):
        claim = read(out) | {"model_root": ask("model", "root", folder)["root"], "config": config} | rule
        claim["tokens"][-3:] = [0, 0, 0]  # the first index of a row in which nothing may be chosen
        found = audit(write("wild.receipt", claim), folder, wanted=1)
        assert "are no numbers" in found["reason"] and found["held"] < found["conditions"], found


OUTLIER_SOME, OUTLIER_MANY = 2.0 ** 20, 2.0 ** 24

if __name__ == "__main__":
    sys.exit(main([test for name, test in sorted(globals().items()) if name.startswith("test_")]))
