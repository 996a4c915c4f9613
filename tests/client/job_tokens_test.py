"""Goal: a file that is not what a model reads is seen before a job of it is paid for, and a rate never
rises by itself.
Method: a small published Llama with a tokenizer; tokens of the wrong size, masks that count nothing,
arrays of NumPy's own types; the rates that a job's schedule holds; a run that diverges."""

import json
import os
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), os.path.join(HERE, "../data")]
sys.dont_write_bytecode = True

import tiny_llama  # noqa: E402
import tokenizers  # noqa: E402
from program import DATA, ask, call, main, new_job, path  # noqa: E402

BASE = path("base")
WORDS = ["--length", "8", "--batch", "1", "--steps", "2", "--segment-steps", "2", "--calibrate", "none"]


def base():
    if not os.path.isdir(BASE):
        tiny_llama.write(BASE, vocab_size=512)
        tokenizers.write(BASE, tokenizers.byte_level())
    return BASE


def new(*words, wanted=0, out="tokens.job"):
    if os.path.exists(path(out)):
        os.remove(path(out))
    return ask("job", "new", "--base", base(), *WORDS, *words, "--out", path(out), wanted=wanted)


def write(name, kind, values):
    with open(path(name), "wb") as file:
        file.write(struct.pack("<%d%s" % (len(values), kind), *values))
    return path(name)


def write_npy(name, kind, code, values):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (kind, len(values))
    header = header.ljust(128 - 10 - 1) + "\n"
    with open(path(name), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                   struct.pack("<%d%s" % (len(values), code), *values))
    return path(name)


def a_flat_file_of_a_published_model_says_its_type():
    tokens = write("tokens.u16", "H", [72, 105, 257, 33] * 30)
    said = new("--data", tokens, wanted=3)["error"]
    assert "how large a token is" in said["message"] and "--data-type" in said["advice"], said
    made = new("--data", tokens, "--data-type", "u16")
    assert made["largest_token"] == 257, made
    new("--data", write_npy("tokens.npy", "<u2", "H", [1, 2, 3] * 30))


def the_first_row_is_shown_as_text():
    tokens = write("shown.u16", "H", [72, 105, 33, 10, 27, 256, 256, 300] * 30)
    made = new("--data", tokens, "--data-type", "u16")
    assert made["first_row"] == "Hi!\\n\\x1bthth<300?>", made["first_row"]  # 8 tokens; nothing drives a terminal
    said = call("job", "new", "--base", base(), *WORDS, "--data", tokens, "--data-type", "u16", "--out",
                path("said.job")).stdout.decode()
    assert "tokens       the largest is 300\n" in said and "first row    Hi!\\n" in said, said
    strange = path("strange")
    shutil.copytree(base(), strange)
    with open(os.path.join(strange, "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump({"model": {"type": "Unigram"}}, file)
    said = call("job", "new", "--base", strange, *WORDS, "--data", tokens, "--data-type", "u16", "--out",
                path("strange.job")).stdout.decode()
    assert 'first row    not shown: tokenizer' in said and "Unigram" in said, said


def numpys_own_types_are_refused_with_the_line_that_converts():
    for kind, code in (("<i8", "q"), ("<f8", "d")):
        name = write_npy("numpy.npy", kind, code, [1, 2, 3] * 30)
        said = new("--data", name, wanted=1)["error"]
        assert kind in said["message"] and 'astype("uint32")' in said["advice"], said
        line = said["advice"].replace("FILE.npy", name)
        try:
            import numpy  # noqa: F401
        except ImportError:
            continue
        subprocess.run(["sh", "-c", line.replace("python3", sys.executable, 1)], check=True)
        new("--data", name)


def a_mask_counts_something():
    tokens = write("masked.u8", "B", [1, 2, 3] * 30)
    words = ["--data", tokens, "--data-type", "u8", "--mask"]
    for mask, said in (([0] * 90, "it counts no token"), ([1] + [0] * 89, "it counts no token"),
                       ([1] * 89, "one u8 for each of 90 tokens")):
        told = new(*words, write("mask.u8", "B", mask), wanted=1)["error"]["message"]
        assert said in told, told
    new(*words, write("mask.u8", "B", [0] * 80 + [1] * 10))
    told = new(*words, path("mask.u8"), "--eval", tokens, wanted=1)["error"]
    assert "--eval with --mask" in told["message"], told


def rates(job):
    """What the schedule of a job holds."""
    call("job", "show", path(job), "--save-constants", path("constants.safetensors"))
    with open(path("constants.safetensors"), "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    name, = [name for name in header if "rate" in name or "schedule" in name or "optimizer" in name]
    first, last = header[name]["data_offsets"]
    return struct.unpack("<%df" % ((last - first) // 4), data[first:last])


def a_rate_never_rises_by_itself():
    tokens = write("rate.u8", "B", [1, 2, 3] * 30)
    new("--data", tokens, "--data-type", "u8", "--rate", "0.00002", "--steps", "40", "--warmup", "0",
        out="low.job")
    told = new("--data", tokens, "--data-type", "u8", "--rate", "0.00002", "--rate-min", "0.0001", wanted=3)
    assert "--rate-min 0.0001 is above the rate of 2e-05" in told["error"]["message"], told
    falling = [rate for rate in rates("low.job") if 0 < rate < 0.001]
    assert falling and max(falling) <= 0.0000201 and min(falling) < 0.000003, falling


def keys_of_qwen2_that_say_what_it_is_anyway_are_taken():
    place = path("qwen2")
    qwen2 = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
    for keys, said in (({"attention_bias": True, "qkv_bias": True}, "q_proj.bias"),  # which the folder lacks
                       ({"qkv_bias": False}, "'qkv_bias' is false")):
        shutil.rmtree(place, ignore_errors=True)
        tiny_llama.write(place, **qwen2, **keys)
        told = ask("job", "new", "--base", place, *WORDS, "--data", write("qwen2.u8", "B", [1, 2, 3] * 30),
                   "--data-type", "u8", "--out", path("qwen2.job"), wanted=1)["error"]["message"]
        assert said in told, told


def a_run_that_diverges_ends_with_4():
    new_job("wild.job", "--rate", "100000", "--clip", "0", "--steps", "12")
    done = ask("prover", "run", path("wild.job"), "--data", DATA, "--bundle", path("wild.run"), wanted=4)
    assert done["diverged"], done


sys.exit(main([
    a_flat_file_of_a_published_model_says_its_type,
    the_first_row_is_shown_as_text,
    numpys_own_types_are_refused_with_the_line_that_converts,
    a_mask_counts_something,
    a_rate_never_rises_by_itself,
    keys_of_qwen2_that_say_what_it_is_anyway_are_taken,
    a_run_that_diverges_ends_with_4,
]))
