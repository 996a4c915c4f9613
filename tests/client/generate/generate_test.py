"""Goal: who talks to `lockstep generate` gets an answer, and can stop it.
Method: the program on a small random Llama with a byte-level tokenizer: a text, a conversation, what
a terminal sees, Ctrl-C, hostile folders."""

import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support"), os.path.join(HERE, "../../data")]
sys.dont_write_bytecode = True

import tiny_llama  # noqa: E402
import tokenizers  # noqa: E402
from program import LOCKSTEP, ask, call, main, path  # noqa: E402


def model(name="model", **more):
    folder = path(name)
    if not os.path.exists(folder):
        merges = ("t h", "th e", "i n", "Ġ the")
        ids = 256 + len(merges) + len(tokenizers.SPECIALS)
        tiny_llama.write(folder, vocab_size=ids, max_position_embeddings=4096,
                         **({"num_hidden_layers": 1} | more))
        tokenizers.write(folder, tokenizers.byte_level(merges))
    return folder


def talk(lines, *more, wanted=0):
    done = subprocess.run([LOCKSTEP, "generate", model(), "--chat", "llama3", *more],
                          input=lines.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    assert done.returncode == wanted, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def test_the_same_seed_gives_the_same_text_and_another_seed_another():
    texts = [call("generate", model(), "--prompt", "the thing", "--tokens", "30", "--seed",
                  seed).stdout for seed in "112"]
    assert texts[0] == texts[1] != texts[2], texts
    with open(path("prompt"), "wb") as file:
        file.write(b"the thing")
    assert call("generate", model(), "--prompt-file", path("prompt"), "--tokens", "30").stdout == texts[0]
    said = ask("generate", model(), "--prompt", "the thing", "--tokens", "30")
    assert said["prompt_tokens"] == 6 and said["seed"] == 1, said  # <s>, the, blank, th, in, g
    assert said["text"] == texts[0][:-1].decode(errors="replace")


def test_a_conversation_goes_on_where_it_was():
    """What a turn gives is what the whole conversation gives that is read at once."""
    answers = [json.loads(line) for line in
               talk("the in\nthing\n", "--tokens", "12", "--json", "--temperature", "0").splitlines()]
    assert [a["seed"] for a in answers] == [1, 2]
    heads = "<|start_header_id|>%s<|end_header_id|>\n\n%s<|eot_id|>"
    text = heads % ("user", "the in") + heads % ("assistant", answers[0]["text"].strip()) + heads % (
        "user", "thing") + "<|start_header_id|>assistant<|end_header_id|>\n\n"
    assert answers[1]["prompt_tokens"] > answers[0]["prompt_tokens"] + len(answers[0]["tokens"]), answers
    if "\ufffd" not in answers[0]["text"]:
        assert len(text) > answers[1]["prompt_tokens"]
    first = talk("", "--prompt", "the in", "--tokens", "12", "--json", "--temperature", "0")
    assert json.loads(first)["tokens"] == answers[0]["tokens"]
    system = talk("", "--prompt", "the in", "--system", "in", "--json", "--tokens", "12")
    assert json.loads(system)["prompt_tokens"] > answers[0]["prompt_tokens"]
    assert talk("\n\n") == b""


def test_a_question_is_what_a_row_has_before_the_answer():
    line = {"messages": [{"role": "user", "content": "the in"}, {"role": "assistant", "content": "x"}]}
    with open(path("talk.jsonl"), "w", encoding="ascii") as file:
        file.write(json.dumps(line))
    call("data", "pack", path("talk.jsonl"), "--tokenizer", model(), "--chat", "llama3", "--length",
         "64", "--out", path("packed"))
    marks = tokenizers.rows(path("packed"))[1][0]
    said = ask("generate", model(), "--chat", "llama3", "--prompt", "the in", "--tokens", "1")
    assert said["prompt_tokens"] == marks.index(1) > 10, (said, marks)


def test_what_an_answer_loses_is_forgotten():
    """A text that stops cuts what the decoder has taken; then the next answer is that of a conversation
    in which it was never said."""
    def answers(*more):
        said = talk("the in\nthing\n", "--json", "--temperature", "0", *more)
        return [json.loads(line) for line in said.splitlines()]

    whole = answers("--tokens", "12")[0]["tokens"]
    at = next(i for i in range(3, 12) if 32 < whole[i] < 127 and whole[i] not in whole[:i])
    cut = answers("--tokens", "12", "--stop", chr(whole[at]) + chr(whole[at + 1]))
    if cut[0]["end"] != "stop":  # the token behind is no byte that can be typed
        cut = answers("--tokens", "12", "--stop", chr(whole[at]))
    short = answers("--tokens", str(at))
    assert cut[0]["end"] == "stop" and cut[0]["text"] == short[0]["text"], (cut, short)
    assert cut[1]["tokens"][:at] == short[1]["tokens"] and at >= 3, (cut, short)
    assert cut[1]["prompt_tokens"] == short[1]["prompt_tokens"]


def test_tokens_that_end_a_text_or_a_turn_end_an_answer():
    eos, turn = (256 + 4 + tokenizers.SPECIALS.index(name) for name in ("</s>", "<|eot_id|>"))
    wild = ["--temperature", "3", "--tokens", "1500", "--json", "--seed"]
    for ends, more in (({eos}, []), ({eos, turn}, ["--chat", "llama3"])):
        said = [ask("generate", model(), "--prompt", "the", *more, *wild, str(seed))
                for seed in range(1, 9)]
        assert {s["tokens"][-1] for s in said if s["end"] == "stop"} == ends, said
        assert not any(ends & set(s["tokens"][:-1]) for s in said)


# SHA-256 of the logits of three tokens behind 1,300: every sum has one order, on every machine.
LOGITS = "74a89e3b19c4489c54adb697879b40fa1aa422347827c1732ec08824249a5a60"


def test_every_bit_of_the_logits_is_as_it_was():
    """Enough tokens for two chunks of a sum over them, and for work that threads share."""
    prompt = path("long")
    with open(prompt, "wb") as file:
        file.write(b"".join(b"%d the " % number for number in range(330))[:1299])
    said = set()
    for isa in ("scalar", "avx2", "avx512", "neon"):
        for threads in ("1", "3"):
            done = subprocess.run([LOCKSTEP, "generate", model("two", num_hidden_layers=2),
                                   "--tokenizer", "bytes", "--prompt-file", prompt, "--tokens", "3",
                                   "--temperature", "0", "--isa", isa, "--threads", threads,
                                   "--logits", path("logits"), "--json"], stdout=subprocess.PIPE,
                                  check=False)
            if done.returncode == 0:
                with open(path("logits"), "rb") as file:
                    said.add(hashlib.sha256(file.read()).hexdigest())
    assert said == {LOGITS}, said


def test_a_terminal_is_not_driven():
    end, other = pty.openpty()
    running = subprocess.Popen([LOCKSTEP, "generate", model(), "--prompt", "the", "--tokens", "300",
                                "--temperature", "3"], stdin=subprocess.DEVNULL, stdout=other,
                               stderr=subprocess.DEVNULL)
    os.close(other)
    seen = b""
    try:
        while True:
            part = os.read(end, 65536)
            if not part:
                break
            seen += part
    except OSError:
        pass
    assert running.wait() == 0
    assert b"\\x" in seen and not any(byte < 32 and byte not in b"\r\n" for byte in seen), seen


def test_ctrl_c_ends_an_answer_and_a_conversation():
    slow = model("slow", hidden_size=256, intermediate_size=512, num_hidden_layers=8)
    running = subprocess.Popen([LOCKSTEP, "generate", slow, "--prompt", "the", "--tokens", "4000"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    assert os.read(running.stdout.fileno(), 5), "there was no answer"
    running.send_signal(signal.SIGINT)
    rest, said = running.communicate(timeout=20)
    assert running.returncode == 2 and rest.endswith(b"\n") and said == b"", (running.returncode, said)
    running = subprocess.Popen([LOCKSTEP, "generate", model(), "--chat", "llama3",
                                "--tokens", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    running.stdin.write(b"the\n")
    running.stdin.flush()
    assert os.read(running.stdout.fileno(), 1), "there was no answer"
    time.sleep(0.1)  # it waits for the next message
    running.send_signal(signal.SIGINT)
    code = running.wait(timeout=20)
    assert code == 2, code
    running.communicate()


def test_hostile_folders_and_prompts_are_refused():
    def refused(part, *words, wanted=1):
        said = ask("generate", *words, wanted=wanted)["error"]["message"]
        assert part in said, (words, said)

    refused("template", model(), "--chat", "auto", "--prompt", "x")
    refused("no layout 'odd'", model(), "--chat", "odd", "--prompt", "x", wanted=3)
    refused("nothing to go on with", model(), wanted=3)
    with open(path("bad"), "wb") as file:
        file.write(b"the\xff")
    refused("no UTF-8 from byte 3", model(), "--prompt-file", path("bad"))
    for name, size in (("huge", 2 ** 31 - 1), ("many", 10 ** 8)):
        tiny_llama.write(path(name), num_hidden_layers=1)
        config = json.load(open(path(name) + "/config.json", encoding="ascii"))
        config["hidden_size" if name == "huge" else "num_hidden_layers"] = size
        with open(path(name) + "/config.json", "w", encoding="ascii") as file:
            json.dump(config, file)
        done = subprocess.run([LOCKSTEP, "generate", path(name), "--prompt", "x", "--tokenizer",
                               "bytes", "--json"], stdout=subprocess.PIPE, check=False, timeout=30)
        assert done.returncode in (1, 2, 3), done
    refused("no such file", path("nowhere"), "--prompt", "x", wanted=3)


if __name__ == "__main__":
    sys.exit(main([value for name, value in sorted(globals().items()) if name.startswith("test_")]))
