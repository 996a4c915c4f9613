"""Goal: what `lockstep generate` says is what the published model says, for every family of the table
of decoders, and the token follows from it by the rule of engine/decode/sampler.h.
Method: small random folders (families_test.py, base_test.py); the logits of each step beside float64
over the whole row, which keeps nothing; the rule once more in Python; a bundle with adapters and one
of all weights beside what is exported of them."""

import json
import math
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
sys.dont_write_bytecode = True

try:
    import torch
except ImportError:
    print("skip: PyTorch is not installed (Debian: apt-get install python3-torch)")
    sys.exit(77)

import base_test as base  # noqa: E402
import families_test as families  # noqa: E402
import torch_decoder as reference  # noqa: E402
import torch_families  # noqa: E402
from program import ask, call, main, path  # noqa: E402

PROMPT = "0123456"  # the bytes are ids
TOKENS = 9  # with the prompt no more than the least window
REACH = 3e-6


def generate(folder, *more, tokens=TOKENS, prompt=PROMPT, **how):
    return ask("generate", folder, "--tokenizer", "bytes", "--prompt", prompt, "--tokens", str(tokens),
               *more, **how)


def with_logits(folder, stem, vocabulary, *more, **how):
    said = generate(folder, "--logits", path(stem + ".logits"), *more, **how)
    with open(path(stem + ".logits"), "rb") as file:
        numbers = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
    return said["tokens"], numbers.view(-1, vocabulary)


def check(folder, stem, decoder, vocabulary, prompt=PROMPT):
    tokens, logits = with_logits(folder, stem, vocabulary, prompt=prompt)
    assert len(tokens) == TOKENS, tokens
    row = torch.tensor([list(prompt.encode()) + tokens[:-1]])
    wanted = decoder(row)[0, len(prompt) - 1:].detach()
    far = float((logits.double() - wanted).norm() / wanted.norm())
    print("# %s: logits %.1e apart" % (stem, far))
    assert far <= REACH, (stem, far)
    return tokens, logits


def every_family_says_what_float64_says():
    for family in families.FAMILIES:
        folder, config, weights = families.folder_of(family)
        check(folder, family, torch_families.Family(config, weights), config["vocab_size"])
    for family in base.FAMILIES:
        folder, config, weights = base.folder_of(family, False)
        check(folder, family, reference.Decoder(config, weights), config["vocab_size"])
        if family in ("llama2", "qwen3", "biased"):  # a prompt that is taken many tokens at a time
            check(folder, family + ", longer", reference.Decoder(config, weights),
                  config["vocab_size"], 5 * PROMPT)


# ---- the rule, in numbers of 32 bits ----

def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def shares(logits, temperature):
    z = [f32(x * f32(1.0 / temperature)) for x in logits]
    e = [math.exp(x - max(z)) for x in z]
    return z, [x / sum(e) for x in e]


def allowed(p, top_k, top_p):
    """Which may be chosen; nobody stands at a border in this test."""
    order = sorted(range(len(p)), key=lambda i: -p[i])
    kept = order[:top_k] if top_k else order
    total, least = 0.0, []
    for i in order:
        least.append(i)
        total += p[i]
        if total >= top_p:
            break
    return set(kept) & set(least if top_p < 1 else order)


def drawn(z, may, number, seed, vocabulary):
    best = None
    for i in sorted(may):
        element = number % 64 * vocabulary + i
        block = reference.philox([element >> 2, 0, number // 64, 0], [seed, 0])
        v = f32(f32(f32(float(block[element & 3])) * 2.0 ** -32) + 2.0 ** -33)
        e = v + v * v / 2 if v < 2.0 ** -12 else -math.log(1 - v) if v < 1 else math.inf
        height = z[i] - math.log(e)
        best = (height, i) if best is None or height > best[0] else best
    return best[1]


def the_token_follows_from_the_logits_by_the_rule():
    folder, config, _ = base.folder_of("gpt2", False)
    vocabulary = config["vocab_size"]
    seen = set()
    for seed, temperature, top_k, top_p in ((1, 1.0, 0, 1.0), (2, 0.5, 7, 1.0), (3, 2.0, 0, 0.4),
                                            (9, 1.5, 20, 0.7)):
        tokens, logits = with_logits(folder, "rule", vocabulary, "--seed", str(seed),
                                     "--temperature", str(temperature), "--top-k", str(top_k),
                                     "--top-p", str(top_p))
        for number, token in enumerate(tokens):
            z, p = shares(logits[number].tolist(), temperature)
            assert token == drawn(z, allowed(p, top_k, top_p), number, seed, vocabulary), (seed, number)
        seen.add(tuple(tokens))
    assert len(seen) == 4, seen
    tokens, logits = with_logits(folder, "rule", vocabulary, "--temperature", "0")
    assert tokens == logits.argmax(-1).tolist()


def number_of(bits):
    return struct.unpack(">f", bytes.fromhex(bits))[0]


def near(a, b):
    return abs(a - b) <= 1e-4 * abs(b) + 1e-9


def receipts_of_every_family_say_what_float64_says():
    """The step that decides a receipt, beside the whole row in float64: thresholds, and the choice."""
    for family in families.FAMILIES:
        folder, config, weights = families.folder_of(family)
        out = path(family + ".receipt")
        said = generate(folder, "--prove", out, "--top-k", "6", "--top-p", "0.8", "--seed", "4")
        with open(out, encoding="ascii") as file:
            claim = json.load(file)
        row, prompt = claim["tokens"], claim["prompt_tokens"]
        assert (len(row), prompt, row[prompt:]) == (16, len(PROMPT), said["tokens"]), (family, row)
        logits = torch_families.Family(config, weights)(torch.tensor([row]))[0, prompt - 1:-1].detach()
        for number, token in enumerate(said["tokens"]):
            z, p = shares(logits[number].tolist(), 1.0)
            may = allowed(p, 6, 0.8)
            assert near(number_of(claim["thresholds_k"][number]), sorted(p)[-6]), (family, number)
            assert near(number_of(claim["thresholds_p"][number]), min(p[i] for i in allowed(p, 0, 0.8)))
            assert token == drawn(z, may, number, 4, config["vocab_size"]), (family, number)
        audit, = ask("audit", out, "--base", folder)["audits"]
        assert audit["answer"] == "proven" and audit["held"] == 6 * TOKENS, audit


def bits_depend_on_no_instruction_set_and_on_no_number_of_threads():
    for folder, _, _ in (base.folder_of("crfm", False), families.folder_of("gemma2")):
        said = set()
        for isa in ("scalar", "avx2", "avx512", "neon"):
            for threads in ("1", "2", "4"):
                name = path("bits")
                words = ["generate", folder, "--tokenizer", "bytes", "--prompt", PROMPT, "--tokens",
                         "9", "--logits", name, "--isa", isa, "--threads", threads]
                try:
                    answer = ask(*words)
                except AssertionError:
                    continue  # this processor has none
                with open(name, "rb") as file:
                    said.add((tuple(answer["tokens"]), file.read()))
        assert len(said) == 1, (folder, len(said))


def a_bundle_says_what_its_export_says():
    for stem, more in (("all", []), ("lora", ["--lora", "2", "--target", "all-linear"])):
        folder, config, _ = base.folder_of("gpt2", False)
        data = base.write_data()[0]
        job, run, out = (path("generate.%s.%s" % (stem, end)) for end in ("job", "run", "hf"))
        ask("job", "new", "--base", folder, "--data", data, "--data-type", "u8", "--length", "8",
            "--batch", "2", "--steps", "4", "--segment-steps", "2", "--rate", "0.05", "--calibrate", "none",
            "--out", job, *more)
        ask("prover", "run", job, "--data", data, "--first-state" if stem == "all" else "--data",
            folder, "--bundle", run)
        ask("bundle", "export", run, "--hf", out, "--base", folder, *(["--merge"] if more else []))
        vocabulary = config["vocab_size"]
        wanted = with_logits(out, stem, vocabulary)
        got = with_logits(run, stem, vocabulary, "--base", folder)
        before = with_logits(folder, stem, vocabulary)
        early = with_logits(run, stem, vocabulary, "--base", folder, "--step", "2")
        assert got[0] == wanted[0] and torch.equal(got[1], wanted[1])
        assert not torch.equal(before[1], wanted[1]) and not torch.equal(early[1], wanted[1])
        said = generate(run, wanted=3)["error"]["message"]
        assert "began with a folder" in said, said
        other = base.folder_of("crfm", False)[0]
        said = generate(run, "--base", other, wanted=1)["error"]["message"]
        assert "crfm" in said, said


def mistakes_are_named():
    folder, config, weights = base.folder_of("gpt2", False)
    for words, code, part in (
            (["--tokens", "100", "--context", "25"], 3, "sequences of 24 tokens"),
            (["--temperature", "0.0001"], 3, "temperature"),
            (["--top-p", "0"], 3, "top-p"),
            (["--isa", "mmx"], 3, "mmx"),
            (["--step", "3"], 3, "no bundle"),
            (["--system", "x"], 3, "--chat"),
            (["--stop", ""], 3, "--stop"),
            (["--base", path("nowhere")], 3, "nowhere")):
        said = generate(folder, *words, wanted=code)["error"]["message"]
        assert part in said, (words, said)
    for prompt, part in (("0" * 24, "24 tokens"), ("~", "token 126"), ("", "no token")):
        said = ask("generate", folder, "--tokenizer", "bytes", "--prompt", prompt,
                   wanted=3 if prompt == "" else 1)["error"]["message"]
        assert part in said, (prompt, said)
    said = ask("generate", folder, "--prompt", "x", wanted=3)["error"]["message"]
    assert "tokenizer" in said, said
    broken = dict(weights)
    del broken["h.1.ln_1.weight"]
    reference.write_folder(path("hole"), config, broken, "F32")
    said = generate(path("hole"), wanted=3)["error"]["message"]
    assert "h.1.ln_1.weight" in said, said
    reference.write_folder(path("shape"), config, weights | {"ln_f.bias": torch.zeros(31)}, "F32")
    said = generate(path("shape"), wanted=1)["error"]["message"]
    assert "ln_f.bias" in said, said
    wild = weights | {"ln_f.bias": torch.full((32,), math.inf)}
    reference.write_folder(path("wild"), config, wild, "F32")
    said = generate(path("wild"), wanted=1)["error"]["message"]
    assert "no number" in said, said


def an_answer_ends_at_a_stop_and_comes_as_text():
    folder = families.folder_of("olmo2")[0]
    said = generate(folder, tokens=40)
    assert said["end"] == "length" and len(said["tokens"]) == 40
    text = bytes(said["tokens"])
    assert call("generate", folder, "--tokenizer", "bytes", "--prompt", PROMPT, "--tokens",
                "40").stdout == text + b"\n"
    whole = next(text[at:at + 2] for at in range(6, 38) if text.index(text[at:at + 2]) == at
                 and all(31 < c < 127 and c != 44 for c in text[at:at + 2]))
    ended = generate(folder, "--stop", whole.decode(), tokens=40)
    assert ended["end"] == "stop" and ended["text"].encode() == text[:text.index(whole)], ended
    assert ended["tokens"] == said["tokens"][:len(ended["tokens"])]
    many = generate(folder, tokens=1000)
    assert many["end"] == "length" and len(many["tokens"]) == 64 - len(PROMPT) + 1, len(many["tokens"])
    for family, window in (("gemma2", 16), ("phi3", 32)):  # no token sees past a layer's window
        many = generate(families.folder_of(family)[0], tokens=1000)
        assert len(many["tokens"]) == window - len(PROMPT) + 1, (family, len(many["tokens"]))


if __name__ == "__main__":
    sys.exit(main([
        every_family_says_what_float64_says,
        the_token_follows_from_the_logits_by_the_rule,
        receipts_of_every_family_say_what_float64_says,
        bits_depend_on_no_instruction_set_and_on_no_number_of_threads,
        a_bundle_says_what_its_export_says,
        mistakes_are_named,
        an_answer_ends_at_a_stop_and_comes_as_text,
    ]))
