"""Goal: the same prompt and seed give the same text with every instruction set and number of threads:
every logit has the same bits.
Method: a GPT-2 of random weights, at temperature 1; in full runs a small one, in soak GPT-2 124M's shape
over 512 tokens. The logits that each token was chosen by are compared byte by byte."""

import hashlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../support"))
sys.dont_write_bytecode = True

import tiny_gpt2  # noqa: E402
from program import ask, main, path  # noqa: E402

SOAK = int(os.environ.get("SOAK_MINUTES", "0")) > 0
TOKENS = 512 if SOAK else 90
SHAPE = {} if SOAK else {"n_layer": 2, "n_embd": 96, "n_head": 3, "vocab_size": 1031, "n_positions": 128}
VOCABULARY = (tiny_gpt2.CONFIG | SHAPE)["vocab_size"]
ISAS = {"avx2": "avx2", "avx512": "avx512bw", "neon": "asimd"}
PROMPT = "The village"


def here():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        flags = file.read()
    return ["scalar"] + [isa for isa, flag in ISAS.items() if flag in flags]


def every_logit_has_the_same_bits():
    folder, found = path("model"), {}
    tiny_gpt2.write(folder, **SHAPE)
    for isa in here():
        for threads in ("1", "2") if not SOAK else ("2",):
            logits = path("logits")
            said = ask("generate", folder, "--tokenizer", "bytes", "--prompt", PROMPT, "--tokens", str(TOKENS),
                       "--seed", "7", "--isa", isa, "--threads", threads, "--logits", logits)
            with open(logits, "rb") as file:
                data = file.read()
            assert len(data) == 4 * VOCABULARY * len(said["tokens"]), said
            found[isa, threads] = (tuple(said["tokens"]), hashlib.sha256(data).hexdigest())
            print("# %s, %s threads: %.1f tokens a second" % (isa, threads, said["tokens_per_second"]))
    assert len(set(found.values())) == 1, found
    tokens = next(iter(found.values()))[0]
    assert len(tokens) == TOKENS and len(set(tokens)) > TOKENS // 3, tokens


if __name__ == "__main__":
    sys.exit(main([every_logit_has_the_same_bits]))
