"""Goal: a tokenizer.json that asks for what we do not do, or that cannot be, is refused with the part
that is wrong; what is taken loses no byte of a text.
Method: small tokenizers of both kinds, changed one part at a time; the bytes of the ids of random
strings are put together again, in Python, and must be the normalizer's text."""

import copy
import json
import os
import random
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
sys.dont_write_bytecode = True

import program  # noqa: E402
import tokenizers  # noqa: E402

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")


def texts(count):
    draw = random.Random(9)
    codes = [*map(ord, " \n\r\t'sStTlL.,-12\u00e9\u0301\u4e2d\u0e01\u17ff"), 0x1F600, 0x378, 0xFFFD, 1, 0x7F]
    return ["".join(chr(draw.choice(codes)) if draw.random() < 0.9 else chr(draw.randrange(0x2000))
                    for _ in range(draw.randrange(1, 60))) for _ in range(count)]


def encode(base, some, *words):
    """The ids of each text."""
    path = program.path("texts.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text, "n": i}) + "\n" for i, text in enumerate(some))
    out = program.path("encoded")
    shutil.rmtree(out, ignore_errors=True)
    program.call("data", "pack", path, "--tokenizer", base, "--length", "1024", "--out", out, "--bos", "never",
                 "--eos", "never", *words)
    return [ids for ids, _ in tokenizers.examples(out)]


def by_bytes(made):
    """Id -> the bytes that it stands for in a byte-level vocabulary."""
    letters = {letter: byte for byte, letter in enumerate(tokenizers.alphabet())}
    return {number: bytes(letters[letter] for letter in token)
            for token, number in made["model"]["vocab"].items()}


def test_bytes_of_ids_are_the_text():
    some = texts(2000)
    for name, made in (
            ("gpt2", tokenizers.byte_level()),
            ("pairs", tokenizers.byte_level((["t", "h"], ["th", "e"], ["Ġ", "s"]), ignore_merges=True)),
            ("cl100k", tokenizers.byte_level(pre_tokenizer={"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": CL100K}, "behavior": "Isolated", "invert": False},
                {"type": "Digits", "individual_digits": True},
                {"type": "Split", "pattern": {"String": "s"}, "behavior": "MergedWithNext", "invert": False},
                dict(tokenizers.GPT2, use_regex=False)]}))):
        base = tokenizers.write(program.path(name), made)
        names = by_bytes(made)
        found = sorted(b"".join(names[one] for one in ids) for ids in encode(base, some))
        assert found == sorted(text.encode() for text in some), name


def fallback(**changed):
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for byte in range(256):
        vocab["<0x%02X>" % byte] = len(vocab)
    for token in ["▁", *"stSTl12", "▁s", "st", "▁st", "▁▁"]:
        vocab[token] = len(vocab)
    model = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
             "vocab": vocab, "merges": ["▁ s", "s t", "▁s t", "▁ ▁"]}
    made = tokenizers.byte_level()
    made.update({"added_tokens": [], "pre_tokenizer": None, "post_processor": None, "model": model,
                 "normalizer": {"type": "Sequence", "normalizers": [
                     {"type": "Prepend", "prepend": "▁"},
                     {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}})
    made.update(changed)
    return made


def test_byte_fallback_gives_the_normalizers_text():
    some = texts(2000)
    made = fallback()
    names = {number: token.encode() for token, number in made["model"]["vocab"].items()}
    names.update({made["model"]["vocab"]["<0x%02X>" % byte]: bytes([byte]) for byte in range(256)})
    base = tokenizers.write(program.path("fallback"), made)
    found = sorted(b"".join(names[one] for one in ids) for ids in encode(base, some))
    assert found == sorted("▁".encode() + text.replace(" ", "▁").encode() for text in some)
    # Metaspace says the same of blanks, but puts none where one stands.
    made = fallback(normalizer=None, pre_tokenizer={"type": "Metaspace", "replacement": "▁",
                                                    "prepend_scheme": "always", "split": True})
    base = tokenizers.write(program.path("metaspace"), made)
    found = sorted(b"".join(names[one] for one in ids) for ids in encode(base, some))
    assert found == sorted(("" if text[0] == " " else "▁").encode() + text.replace(" ", "▁").encode()
                           for text in some)


def test_unknown_characters_are_one_token_or_refused():
    made = fallback(normalizer=None)
    made["model"]["byte_fallback"] = False
    base = tokenizers.write(program.path("unknown"), made)
    assert encode(base, ["sts\u4e2d\u4e2dt"]) == [[made["model"]["vocab"][x] for x in ("st", "s")] + [0] +
                                                  [made["model"]["vocab"]["t"]]]
    made["model"]["fuse_unk"] = False
    base = tokenizers.write(program.path("unfused"), made)
    assert encode(base, ["\u4e2d\u4e2dt"])[0][:2] == [0, 0]
    made["model"]["unk_token"] = None
    base = tokenizers.write(program.path("none"), made)
    with open(program.path("texts.jsonl"), "w", encoding="utf-8") as file:
        file.write('{"text": "s\\u4e2d"}\n')
    said = program.call("data", "pack", program.path("texts.jsonl"), "--tokenizer", base, "--length", "9",
                        "--out", program.path("no"), wanted=1).stderr.decode()
    assert "texts.jsonl:1: the tokenizer has no token for the character U+4E2D" in said, said


def test_special_tokens_of_a_text_are_text_unless_asked_for():
    made = tokenizers.byte_level()
    base = tokenizers.write(program.path("special"), made)
    number = {one["content"]: one["id"] for one in made["added_tokens"]}
    assert number["</s>"] not in encode(base, ["a </s> b"])[0]
    assert encode(base, ["a </s> b"], "--special")[0] == [97, 32, number["</s>"], 32, 98]


def test_what_we_do_not_do_is_refused_and_shown():
    def refused(part, wanted):
        made = copy.deepcopy(tokenizers.byte_level())
        part(made)
        base = tokenizers.write(program.path("bad"), made)
        with open(program.path("a.txt"), "w", encoding="utf-8") as file:
            file.write("ab")
        said = program.call("data", "pack", program.path("a.txt"), "--tokenizer", base, "--length", "8",
                            "--out", program.path("no"), wanted=1).stderr.decode()
        assert wanted in said, said
        assert not os.path.exists(program.path("no"))

    def put(*place, **changed):
        def change(made):
            for key in place:
                made = made[key]
            made.update(changed)
        return change

    regex = {"type": "Split", "pattern": {"Regex": "\\w+|x"}, "behavior": "Isolated", "invert": False}
    refused(put(pre_tokenizer=regex), '"\\\\w+|x"')
    refused(put(pre_tokenizer={"type": "Whitespace"}), '{"type":"Whitespace"}')
    refused(put(normalizer={"type": "NFKC"}), '{"type":"NFKC"}')
    refused(put(post_processor={"type": "BertProcessing"}), "BertProcessing")
    refused(put(extra=1), "extra")
    refused(put("model", type="WordPiece"), "WordPiece")
    refused(put("model", dropout=0.1), "dropout")
    refused(put("model", continuing_subword_prefix="##"), "##")
    refused(put("model", merges=["a b"]), "merge 1: 'a' and 'b': what they make")
    refused(put("model", merges=["t h", "t h"]), "merge 2: 't' and 'h' are there twice")
    refused(put("model", merges=[["", "a"]]), "merge 1: a part is empty")
    refused(put("model", merges=["a b c"]), "merge 1: it must be two tokens and one blank")
    refused(put("model", vocab={"a": 0, "b": 0}), "two tokens have the id 0")
    refused(put("model", vocab={"a": 4194304}), "the id of the token 'a'")
    refused(put("model", vocab={"a": -1}), "the id of the token 'a'")
    refused(put("model", vocab={"": 1}), "the token of id 1 is empty")
    refused(put("added_tokens", 0, id=3), "the vocabulary has another token of id 3")
    refused(put("added_tokens", 0, id=4194304), "added token 1: 'id'")
    refused(put("added_tokens", 0, single_word=True), "single words")
    refused(put(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}] * 9}), "more than 8 steps")
    refused(put("post_processor", single=[{"SpecialToken": {"id": "<x>", "type_id": 0}}]), "no token")


if __name__ == "__main__":
    sys.exit(program.main([value for name, value in sorted(globals().items()) if name.startswith("test_")]))
