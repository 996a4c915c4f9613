"""Goal: ids are those that other programs make with the same vocabularies, and conversations are laid out
as the published templates say.
Method: packages from npm (tests/judges) encode thousands of random strings and render conversations;
`data pack` does the same. Strings are of code points whose classes agree in the Unicode of both; the
number of the others is printed. Vocabularies and templates that are not here are named and skipped:
TEST_TEMPLATES is a folder with templates as NAME.jinja."""

import collections
import hashlib
import json
import os
import random
import re
import shutil
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

JUDGES = os.path.join(HERE, "../judges")
PACKAGES = os.path.join(JUDGES, "node_modules")
COUNT = 10000 if os.environ.get("SOAK_MINUTES") else 1500
BATCH = 500
DATE = "%d %b %Y"  # which Llama 3.2's template asks for


def need(package):
    if shutil.which("node") is None or not os.path.isdir(os.path.join(PACKAGES, package)):
        raise tap.Skip("%s is not installed (make judges)" % package)


def judge(*words):
    return subprocess.run(["node", os.path.join(JUDGES, "tokenizers.mjs"), *words], check=True,
                          stdout=subprocess.PIPE).stdout.decode()


def agreeing():
    """Code points of one class in Unicode 14.0 and in node's."""
    if unicodedata.unidata_version != "14.0.0":
        raise tap.Skip("this Python has Unicode %s, the tables are of 14.0" % unicodedata.unidata_version)
    theirs = judge("classes").strip()
    names = {"Lu": "U", "Lt": "U", "Ll": "l", "Lm": "X", "Lo": "X"}
    found, others = [], 0
    for code in range(0x110000):
        kind = unicodedata.category(chr(code))
        if kind in ("Cs", "Cn", "Co"):
            continue
        if names.get(kind, kind[0] if kind[0] in "MN" else "O") == theirs[code]:
            found.append(code)
        else:
            others += 1
    print("# %d code points of 14.0 have another class in node" % others)
    return found


def strings(count):
    draw = random.Random(5)
    codes = agreeing()
    near = [code for code in codes if code < 0x3000]
    words = ("the of and Hello WORLD don't I'LL you've 'S x=1 12345 3.14159 foo_bar \t \n \r\n !!! ?! ... -- "
             "caf\u00e9 nai\u0308ve \u6f22\u5b57 \ud55c\uad6d\uc5b4 \u0939\u093f\u0928 <h1> </p> // it'\u017f").split(" ")
    found = []
    for _ in range(count):
        kind, size = draw.randrange(5), draw.randrange(1, 40)
        if kind < 2:
            found.append("".join(chr(draw.choice(near if kind else codes)) for _ in range(size)))
        elif kind == 2:
            found.append(" ".join(draw.choice(words) for _ in range(size)))
        else:
            found.append("".join(draw.choice(words + [" ", "  ", "\n", "\t", "'", "a", "B", "1"])
                                 for _ in range(size)))
    return found


def ours(base, some):
    """The ids of each text, which hold 8 tokens at most a character: the texts are told apart by order
    within a batch whose examples all stand in rows of their own."""
    found = []
    for first in range(0, len(some), BATCH):
        path = program.path("judged.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"chosen": text, "rejected": "x"}) + "\n"
                            for text in some[first:first + BATCH])
        out = program.path("judged")
        shutil.rmtree(out, ignore_errors=True)
        program.call("data", "pack", path, "--tokenizer", base, "--length", "2048", "--out", out, "--bos",
                     "never", "--eos", "never", "--special")
        tokens, _, reach, _ = tokenizers.rows(out)
        for row, steps in zip(tokens[::2], reach[::2]):
            found.append(row[:max(steps) + 1])
    return found


def compare(name, base):
    some = strings(COUNT)
    if name.endswith("_base"):  # whose expression leaves the long s out
        some = [text.replace("\u017f", "s") for text in some]
    with open(program.path("texts.json"), "w", encoding="utf-8") as file:
        json.dump(some, file)
    theirs = [json.loads(line) for line in judge("ids", name, program.path("texts.json")).splitlines()]
    made = ours(base, some)
    assert len(theirs) == len(made) == len(some)
    for text, one, two in zip(some, theirs, made):
        assert one == two, (name, text, one, two)


def test_ids_are_those_of_js_tiktoken():
    need("js-tiktoken")
    for name in ("r50k_base", "cl100k_base", "o200k_base"):
        base = program.path(name)
        os.makedirs(base)
        judge("tiktoken", name, base)
        compare(name, base)


def of_package(name):
    def test():
        need("@huggingface/tokenizers")
        need("@lenml/" + name)
        compare(name, os.path.join(PACKAGES, "@lenml", name, "models"))

    test.__name__ = "test_ids_are_those_of_hugging_face_with_the_%s" % name.replace("-", "_")
    return test


# ---- conversations ----

Layout = collections.namedtuple("Layout", "name system free thinks behind")
LAYOUTS = {  # by the name of a template's file
    "llama2": Layout("llama2", True, False, False, ""),
    "llama3": Layout("llama3", True, True, False, "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    "llama31": Layout("llama3.1", True, True, False, ""),
    "llama32": Layout("llama3.1", True, True, False, ""),
    "qwen3": Layout("qwen3", True, True, True, ""),
    "gemma3": Layout("gemma3", True, False, False, ""),
    "mistral01": Layout("mistral-v1", False, False, False, ""),
    "mistral02": Layout("mistral-v3", False, False, False, ""),
}


def known_hashes():
    with open("data/source/chat.c", encoding="utf-8") as file:
        return set(re.findall('"([0-9a-f]{64})"', file.read()))


def template_of(name):
    """The published text; a test without it skips."""
    place = os.path.join(os.environ.get("TEST_TEMPLATES", "/nowhere"), name + ".jinja")
    text = None
    package = os.path.join(PACKAGES, "@lenml/tokenizer-%s/models/tokenizer_config.json" % name)
    if os.path.exists(place):
        with open(place, encoding="utf-8", newline="") as file:
            text = file.read()
    elif os.path.exists(package):
        with open(package, encoding="utf-8") as file:
            text = json.load(file).get("chat_template")
    if text is None:
        raise tap.Skip("the template of %s is not here (TEST_TEMPLATES, or @lenml/tokenizer-%s)" % (name, name))
    assert hashlib.sha256(text.encode()).hexdigest() in known_hashes(), name
    return text


def chats(layout, count):
    draw = random.Random(2)
    words = [" Hi", "there\n", "\n\n", "  ", "x", "\u00e9\u3000", "\u2003y", "<b>", "- 1.", "\t"]
    thoughts = ["", "<think>\nhm\n</think>\n\n", "\n<think>a</think>b</think>\n", "</think>"]
    found = []
    for _ in range(count):
        turns = draw.randrange(1, 6)
        roles = [("user", "assistant")[i % 2] for i in range(turns)]
        if layout.free and draw.random() < 0.3:
            roles = [draw.choice(("user", "assistant")) for _ in range(turns)]
        if layout.system and draw.random() < 0.5:
            roles.insert(0, "system")
        chat = []
        for role in roles:
            text = "".join(draw.choice(words) for _ in range(draw.randrange(6))) + draw.choice(("z", "w "))
            if layout.thinks:  # the package's lstrip('\n') strips all blanks
                text = "\n" * draw.randrange(3) + text.strip()
            if layout.thinks and role == "assistant":
                text = draw.choice(thoughts) + text
            chat.append({"role": role, "content": text})
            if layout.thinks and role == "assistant" and draw.random() < 0.2:
                chat[-1]["reasoning_content"] = draw.choice(("why\n", "", "\nso"))
        if any(one["role"] == "user" for one in chat):
            found.append(chat)
    return found


def laid_out(layout, some, today):
    """What we write, as bytes, with a byte-level tokenizer that has all special tokens."""
    made = tokenizers.byte_level()
    made["added_tokens"] += [{"id": 1000 + i, "content": text, "special": i < 6}
                             for i, text in enumerate(("<|im_start|>", "<|im_end|>", "<start_of_turn>",
                                                       "<end_of_turn>", "[INST]", "[/INST]", "<think>",
                                                       "</think>"))]
    base = tokenizers.write(program.path("all-special"), made)
    letters = {letter: byte for byte, letter in enumerate(tokenizers.alphabet())}
    names = {number: bytes(letters[letter] for letter in token)
             for token, number in made["model"]["vocab"].items()}
    names.update({one["id"]: one["content"].encode() for one in made["added_tokens"]})
    path = program.path("chats.jsonl")
    end = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"chosen": chat, "rejected": end}) + "\n" for chat in some)
    out = program.path("chats")
    shutil.rmtree(out, ignore_errors=True)
    program.call("data", "pack", path, "--tokenizer", base, "--length", "1024", "--out", out, "--chat", layout.name,
                 "--date", time.strftime(DATE) if today else "26 Jul 2024")
    tokens, _, reach, _ = tokenizers.rows(out)
    return [b"".join(names[one] for one in row[:max(steps) + 1]).decode()
            for row, steps in zip(tokens[::2], reach[::2])]


def of_template(name):
    def test():
        need("@huggingface/jinja")
        layout = LAYOUTS[name]
        some = chats(layout, 300)
        asked = {"template": template_of(name), "bos": "<s>", "eos": "</s>", "chats": some}
        with open(program.path("asked.json"), "w", encoding="utf-8") as file:
            json.dump(asked, file)
        theirs = [json.loads(line) for line in judge("chat", program.path("asked.json")).splitlines()]
        for chat, one, two in zip(some, theirs, laid_out(layout, some, name == "llama32")):
            assert one == two + layout.behind, (name, chat, one, two)

    test.__name__ = "test_conversations_are_laid_out_as_the_template_of_%s_says" % name
    return test


if __name__ == "__main__":
    TESTS = [test_ids_are_those_of_js_tiktoken]
    TESTS += [of_package("tokenizer-" + name) for name in ("llama2", "llama3", "qwen3", "gemma3")]
    TESTS += [of_template(name) for name in LAYOUTS]
    sys.exit(program.main(TESTS))
