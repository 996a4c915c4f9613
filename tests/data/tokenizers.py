"""Small tokenizers that tests write. Not a test."""

import json
import os


def alphabet():
    """The character that stands for each byte in byte-level vocabularies."""
    prints = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in prints else chr(next(others)) for byte in range(256)]


GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
SPECIALS = ["<s>", "</s>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]


def byte_level(merges=("t h", "th e", "i n", "Ġ the"), normalizer=None, pre_tokenizer=None, **model):
    """A tokenizer.json: the bytes, what the merges make, and special tokens behind."""
    vocab = {letter: byte for byte, letter in enumerate(alphabet())}
    for merge in merges:
        vocab.setdefault("".join(merge if isinstance(merge, list) else merge.split(" ")), len(vocab))
    added = [{"id": len(vocab) + i, "content": text, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": True}
             for i, text in enumerate(SPECIALS)]
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer or GPT2,
            "post_processor": {"type": "TemplateProcessing", "single": single}, "decoder": None,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "vocab": vocab,
                      "merges": list(merges), **model}}


def write(folder, tokenizer, **config):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump(tokenizer, file)
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"bos_token": "<s>", "eos_token": "</s>",
                   "model_max_length": 1000000000000000019884624838656, **config}, file)
    return folder


def rows(folder, held_out=False):
    """(tokens, mask, reach) of a packed folder, each a list of rows, and its manifest."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    length = manifest["options"]["length"]
    found = []
    for name in ("tokens", "mask", "reach"):
        side = manifest["held_out" if held_out else "rows"]
        if name not in side:
            found.append([])
            continue
        kind = side[name]["type"]
        size = int(kind[1:]) // 8
        path = os.path.join(folder, "%s%s.%s" % ("held-out-" if held_out else "", name, kind))
        with open(path, "rb") as file:
            data = file.read()
        values = [int.from_bytes(data[i:i + size], "little") for i in range(0, len(data), size)]
        found.append([values[i:i + length] for i in range(0, len(values), length)])
    return (*found, manifest)


def examples(folder, held_out=False):
    """The ids of the examples of a packed folder, in the rows' order, each with its mask."""
    tokens, mask, reach, _ = rows(folder, held_out)
    found = []
    for row, marks, reaches in zip(tokens, mask, reach):
        used = len(row)
        while used > 0 and not row[used - 1] and not marks[used - 1] and not reaches[used - 1]:
            used -= 1
        for at in range(used):
            if reaches[at] == 0:
                found.append(([], []))
            found[-1][0].append(row[at])
            found[-1][1].append(marks[at])
    return found
