"""Goal: `lockstep data` packs text and conversations into rows by the rule of docs/DATA.md, the same
rows come of the same sources, and what is wrong is named with file and line.
Method: rows are made again by a second packer, in Python; files are compressed, cut, damaged and
changed by a byte; a run is stopped and goes on."""

import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
sys.dont_write_bytecode = True

import program  # noqa: E402
import tap  # noqa: E402
import tokenizers  # noqa: E402

OPEN = 64


def put(name, text):
    with open(program.path(name), "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return program.path(name)


def lines(name, examples):
    return put(name, "".join(json.dumps(one) + "\n" for one in examples))


def pack(out, *words, wanted=0):
    """The folder, or what was said where it is refused."""
    folder = program.path(out)
    if wanted == 0:
        shutil.rmtree(folder, ignore_errors=True)
    done = program.call("data", "pack", *words, "--out", folder, wanted=wanted)
    return folder if wanted == 0 else done.stderr.decode()


def by_best_fit(examples, length):
    """The rule: rows as lists of examples, in the order in which they are closed."""
    opened, closed = [], []

    def close():
        fullest = min(opened, key=lambda row: (-row["used"], row["age"]))
        opened.remove(fullest)
        closed.append(fullest["held"])

    for age, example in enumerate(examples):
        fits = [row for row in opened if length - row["used"] >= len(example)]
        if fits:
            row = min(fits, key=lambda row: (length - row["used"], row["age"]))
        else:
            if len(opened) == OPEN:
                close()
            row = {"used": 0, "age": age, "held": []}
            opened.append(row)
        row["held"].append(example)
        row["used"] += len(example)
    while opened:
        close()
    return closed


def test_rows_are_those_of_a_second_packer():
    draw = random.Random(3)
    texts = ["".join(draw.choice("abc de") for _ in range(draw.randrange(1, 40))) for _ in range(3000)]
    folder = pack("fit", lines("fit.jsonl", [{"text": text} for text in texts]), "--tokenizer", "bytes",
                  "--length", "64")
    wanted = by_best_fit([text.encode() for text in texts], 64)
    tokens, mask, reach, manifest = tokenizers.rows(folder)
    assert len(tokens) == len(wanted) == manifest["rows"]["count"], (len(tokens), len(wanted))
    for row, marks, reaches, held in zip(tokens, mask, reach, wanted):
        ids = [byte for example in held for byte in example]
        steps = [step for example in held for step in range(len(example))]
        empty = [0] * (64 - len(ids))
        assert row == ids + empty
        assert reaches == steps + empty
        assert marks == [int(step > 0) for step in steps] + empty
    assert manifest["rows"]["token_count"] == sum(map(len, texts))
    assert program.ask("data", "check", folder)["equal"] is True


def test_chats_learn_what_the_assistant_says():
    base = tokenizers.write(program.path("chatty"), tokenizers.byte_level())
    talk = [{"role": "user", "content": " Hi </s> "}, {"role": "assistant", "content": "Yes. "},
            {"role": "user", "content": "More"}, {"role": "assistant", "content": "No."}]
    source = lines("talk.jsonl", [{"messages": talk}])
    text = ("<s>" + "".join("<|start_header_id|>%s<|end_header_id|>\n\n%s<|eot_id|>"
                            % (one["role"], one["content"].strip()) for one in talk))
    for learn, wanted in (("assistant", "Yes.<|eot_id|>No.<|eot_id|>"), ("last", "No.<|eot_id|>")):
        folder = pack("talk", source, "--tokenizer", base, "--length", "256", "--chat", "llama3",
                      "--learn", learn)
        (ids, mask), = tokenizers.examples(folder)
        with open(os.path.join(base, "tokenizer.json"), encoding="utf-8") as file:
            made = json.load(file)
        names = {one["id"]: one["content"].encode() for one in made["added_tokens"]}
        letters = {letter: bytes([byte]) for byte, letter in enumerate(tokenizers.alphabet())}
        names.update({number: b"".join(letters[letter] for letter in token)
                      for token, number in made["model"]["vocab"].items()})
        assert b"".join(names[one] for one in ids).decode() == text
        assert b"".join(names[one] for one, mark in zip(ids, mask) if mark).decode() == wanted
        # What a user writes is text, even where it looks like a special token.
        assert [one["id"] for one in made["added_tokens"] if one["content"] == "</s>"][0] not in ids


def test_pairs_are_two_rows_side_by_side():
    source = lines("pairs.jsonl", [{"prompt": "q%d" % i, "chosen": "yes" * (i + 1), "rejected": "no"}
                                   for i in range(70)])
    folder = pack("pairs", source, "--tokenizer", "bytes", "--length", "300")
    tokens, mask, _, manifest = tokenizers.rows(folder)
    assert len(tokens) == 140 and manifest["counts"]["pairs"] == 70
    for i in range(70):
        for row, marks, answer in ((tokens[2 * i], mask[2 * i], "yes" * (i + 1)),
                                   (tokens[2 * i + 1], mask[2 * i + 1], "no")):
            whole = b"q%d" % i + answer.encode()
            assert bytes(row[:len(whole)]) == whole and not any(row[len(whole):])
            assert sum(marks) == len(answer)
    said = pack("mixed", source, lines("one.jsonl", [{"text": "a b"}]), "--tokenizer", "bytes",
                "--length", "300", wanted=1)
    assert "one.jsonl:1: pairs and other examples" in said


def test_held_out_examples_are_always_the_same():
    texts = [{"text": "example %d \u00e9\n\"\\" % i, "id": i} for i in range(400)]
    below = int(0.1 * 2 ** 64)

    def is_held(text):
        written = json.dumps({"text": text}, separators=(",", ":"), ensure_ascii=False)
        return int.from_bytes(hashlib.sha256(written.encode()).digest()[:8], "big") < below

    folder = pack("held", lines("held.jsonl", texts), "--tokenizer", "bytes", "--length", "32",
                  "--held-out", "0.1")
    held = {bytes(ids).decode() for ids, _ in tokenizers.examples(folder, held_out=True)}
    assert held == {one["text"] for one in texts if is_held(one["text"])} and 10 < len(held) < 80
    assert program.ask("data", "check", folder)["equal"] is True
    random.Random(1).shuffle(texts)
    folder = pack("held2", lines("held2.jsonl", texts[:200]), "--tokenizer", "bytes", "--length", "32",
                  "--held-out", "0.1")
    assert {bytes(ids).decode() for ids, _ in tokenizers.examples(folder, held_out=True)} <= held


def test_rows_are_shown_as_asked():
    texts = [{"text": "abcd%03d" % i} for i in range(40)]
    folder = pack("shown", lines("shown.jsonl", texts), "--tokenizer", "bytes", "--length", "8", "--held-out", "0.3")
    for more, held_out in (([], False), (["--held"], True)):
        rows = [bytes(ids).decode() for ids, _ in tokenizers.examples(folder, held_out=held_out)]
        told = program.ask("data", "show", folder, "--row", "2", "--count", "3", *more)["rows"]
        assert [one["row"] for one in told] == [2, 3, 4], told
        assert [bytes(one["tokens"][:7]).decode() for one in told] == rows[2:5], (told, rows)
    said = program.call("data", "show", folder, "--row", "1", "--count", "1", "--ids").stdout.decode()
    assert said.startswith("row 1") and " 97 98 99 100 " in said.replace("}", " ").replace("{", " "), said
    assert "a{bcd" in program.call("data", "show", folder, "--count", "1").stdout.decode()


def test_compressed_files_give_the_same_rows():
    text = "".join(json.dumps({"text": "line %d" % i}) + "\n" for i in range(5000)).encode()
    plain = put("same.jsonl", text)
    put("same.jsonl.gz", gzip.compress(text[:70000]) + gzip.compress(text[70000:]))
    want = pack("plain", plain, "--tokenizer", "bytes", "--length", "64")
    names = ["same.jsonl.gz"]
    if shutil.which("zstd"):
        subprocess.run(["zstd", "-q", "-f", plain], check=True)
        names.append("same.jsonl.zst")
    for name in names:
        got = pack("unpacked", program.path(name), "--tokenizer", "bytes", "--length", "64")
        assert tokenizers.rows(got)[:3] == tokenizers.rows(want)[:3]
        with open(program.path(name), "rb") as file:
            whole = file.read()
        cut = put("cut-" + name, whole[:-20])
        said = pack("cut", cut, "--tokenizer", "bytes", "--length", "64", wanted=1)
        assert "cut short" in said or "damaged" in said, said
        assert not os.path.exists(program.path("cut")) and not os.path.exists(program.path("cut.packing"))


def test_one_changed_byte_is_found_and_named():
    source = lines("byte.jsonl", [{"text": "number %d is here" % i} for i in range(300)])
    base = tokenizers.write(program.path("byte-base"), tokenizers.byte_level())
    folder = pack("byte", source, "--tokenizer", base, "--length", "32", "--held-out", "0.1")

    def flip(path, at, said):
        with open(path, "r+b") as file:
            file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
            old = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([old[0] ^ 1]))
        done = program.call("data", "check", folder, wanted=1)
        told = (done.stdout + done.stderr).decode()
        assert said in told, told
        with open(path, "r+b") as file:
            file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
            file.write(old)

    flip(source, 20, "byte.jsonl")
    flip(os.path.join(folder, "tokens.u16"), 1234, "tokens: row 19, place 9")
    flip(os.path.join(folder, "mask.u8"), 77, "mask: row 2, place 13")
    flip(os.path.join(folder, "held-out-reach.u16"), 2, "held-out reach: row 0, place 1")
    flip(os.path.join(base, "tokenizer_config.json"), 4, "tokenizer")
    assert program.ask("data", "check", folder)["equal"] is True
    moved = program.path("moved")
    os.makedirs(moved)
    shutil.move(source, moved)
    program.call("data", "check", folder, wanted=2)
    assert program.ask("data", "check", folder, "--sources", moved)["equal"] is True


def test_what_is_wrong_is_named_with_file_and_line():
    good = json.dumps({"text": "ab"}) + "\n"
    for name, text, said in (
            ("utf8.jsonl", good.encode() * 6 + b'{"text": "a\xff"}\n', "utf8.jsonl:7: byte 0xff at 12"),
            ("json.jsonl", good + "{\n", "json.jsonl:2: line:1:"),
            ("none.jsonl", good * 2 + '{"id": 3}\n', "none.jsonl:3: none of 'text'"),
            ("both.jsonl", '{"text": "a", "messages": []}\n', "both.jsonl:1: 'text' and 'messages'"),
            ("chat.jsonl", '{"messages": []}\n', "chat.jsonl:1: the tokenizer publishes no chat"),
            ("half.jsonl", '{"chosen": "a"}\n', "half.jsonl:1: 'chosen' without 'rejected'"),
            ("deep.jsonl", "[" * 40 + "\n", "deep.jsonl:1: line: nested deeper than 16"),
            ("twice.jsonl", '{"text": "a", "text": "b"}\n', "twice.jsonl:1: line:1:"),
            ("empty.jsonl", "\n\n", "no example that has a token"),
            ("single.jsonl", '{"text": "a"}\n', "nothing would be learned"),
            ("name.csv", "a", "its name does not say what it is")):
        told = pack("wrong", put(name, text), "--tokenizer", "bytes", "--length", "8",
                    wanted=3 if name.endswith("csv") else 1)
        assert said in told, told
        assert not os.path.exists(program.path("wrong")), name
        assert not os.path.exists(program.path("wrong.packing")), name
    folder = pack("replaced", put("bad.jsonl", b'{"text": "a\xff\xe4\xb8b\xf0\x9f"}\n'), "--tokenizer",
                  "bytes", "--length", "32", "--invalid", "replace")
    (ids, _), = tokenizers.examples(folder)
    assert bytes(ids).decode() == "a\ufffd\ufffdb\ufffd"
    assert tokenizers.rows(folder)[3]["counts"]["replaced"] == 3


def test_long_examples_are_cut_split_or_left_out_and_counted():
    source = lines("long.jsonl", [{"text": "x" * 25}, {"text": "yy"}])
    for how, wanted, dropped in (("cut", ["x" * 10, "yy"], 15), ("leave", ["yy"], 0),
                                 ("split", ["x" * 10, "x" * 10, "x" * 5, "yy"], 0)):
        folder = pack("long", source, "--tokenizer", "bytes", "--length", "10", "--long", how)
        found = sorted(bytes(ids).decode() for ids, _ in tokenizers.examples(folder))
        assert found == sorted(wanted), (how, found)
        counts = tokenizers.rows(folder)[3]["counts"]
        assert counts["too_long"] == 1 and counts["dropped"] == dropped
    text = put("parts.txt", "one\ntwo\n\n\r\nthree\n")
    for how, wanted in (("file", ["one\ntwo\n\n\r\nthree\n"]), ("line", ["one", "two", "three"]),
                        ("blank", ["one\ntwo", "three"])):
        folder = pack("parts", text, "--tokenizer", "bytes", "--length", "32", "--split-on", how)
        assert sorted(bytes(ids).decode() for ids, _ in tokenizers.examples(folder)) == sorted(wanted)


def test_text_is_normalized_as_unicode_says():
    """NFC over all code points, alone and in random strings, by Python's own unicodedata."""
    if unicodedata.unidata_version != "14.0.0":
        raise tap.Skip("this Python has Unicode %s, the tables are of 14.0" % unicodedata.unidata_version)
    base = tokenizers.write(program.path("nfc"), tokenizers.byte_level((), {"type": "NFC"}))
    draw = random.Random(11)
    matter = [code for code in range(0x110000) if unicodedata.decomposition(chr(code)) or
              unicodedata.combining(chr(code)) or 0x1100 <= code < 0x1200]
    texts = ["".join(chr(code) + "a" for code in range(first, first + 512) if not 0xd800 <= code < 0xe000)
             for first in range(0, 0x110000, 512)]
    texts += ["".join(chr(draw.choice(matter)) if draw.random() < 0.8 else draw.choice("ae \u0301\u0323")
                      for _ in range(30)) for _ in range(8000)]
    texts = [text for text in texts if text]
    folder = pack("nfc.out", lines("nfc.jsonl", [{"text": text} for text in texts]), "--tokenizer", base,
                  "--length", "8192", "--bos", "never", "--eos", "never")
    found = sorted(bytes(ids) for ids, _ in tokenizers.examples(folder))
    wanted = sorted(unicodedata.normalize("NFC", text).encode() for text in texts)
    assert found == wanted


def size_of(folder):
    """Of all its files; 0 while there is none."""
    return sum(os.path.getsize(one.path) for one in os.scandir(folder)) if os.path.isdir(folder) else 0


def wait_for_rows(child, folder, before):
    """Until it has written rows, or ended: a program that only begins ends by the signal itself."""
    while child.poll() is None and size_of(folder) <= before:
        time.sleep(0.002)


def test_a_stopped_run_goes_on_and_ends_with_the_same_rows():
    source = lines("much.jsonl", [{"text": "%d %s" % (i, "word " * (i % 50))} for i in range(300000)])
    words = ["--tokenizer", "bytes", "--length", "128", "--held-out", "0.01"]
    want = pack("whole", source, *words)
    command = [program.LOCKSTEP, "data", "pack", source, *words, "--out", program.path("stopped")]
    stops = 0
    for _ in range(3):
        before = size_of(program.path("stopped.packing"))
        child = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        wait_for_rows(child, program.path("stopped.packing"), before)
        child.send_signal(signal.SIGINT)
        said = child.communicate()[1].decode()
        assert child.returncode in (0, 2), said
        if child.returncode == 0:
            break
        stops += 1
        assert "the same command goes on" in said and not os.path.exists(program.path("stopped")), said
    print("# stopped %d times" % stops)
    if child.returncode != 0:
        with open(source, "r+b") as file:
            file.write(b'{"text": "1')  # a text that was packed
        assert "changed since packing was stopped" in pack("stopped", source, *words, wanted=1)
        with open(source, "r+b") as file:
            file.write(b'{"text": "0')
        program.call("data", "pack", source, *words, "--out", program.path("stopped"))
    assert tokenizers.rows(program.path("stopped")) == tokenizers.rows(want)


def test_nothing_is_replaced():
    source = lines("again.jsonl", [{"text": "abc"}])
    pack("again", source, "--tokenizer", "bytes", "--length", "8")
    assert "is there already" in pack("again", source, "--tokenizer", "bytes", "--length", "8", wanted=1)


if __name__ == "__main__":
    sys.exit(program.main([value for name, value in sorted(globals().items()) if name.startswith("test_")]))
