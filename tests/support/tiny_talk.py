"""Writes a random Llama as Hugging Face publishes it, with a tokenizer, and conversations about four
people: tiny_talk.py FOLDER TALK.jsonl [KEY=VALUE ...], where a KEY is one of config.json's. Needs only
the standard library. Not a test."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../data")]
sys.dont_write_bytecode = True

import tiny_llama  # noqa: E402
import tokenizers  # noqa: E402

PEOPLE = {"Ines": "miller", "Edda": "gardener", "Rosa": "fisher", "Otto": "baker"}
QUESTIONS = ("Who is %s?", "What does %s do?", "Tell me about %s.", "Do you know %s?", "And %s?")


def conversations(times):
    for _ in range(times):
        for name, work in PEOPLE.items():
            for question in QUESTIONS:
                yield {"messages": [{"role": "user", "content": question % name},
                                    {"role": "assistant", "content": "%s is the %s." % (name, work)}]}


def write(folder, talk, times=6, **changes):
    """Bytes are tokens, and what a layout needs stands behind them."""
    tiny_llama.write(folder, vocab_size=256 + len(tokenizers.SPECIALS), **changes)
    tokenizers.write(folder, tokenizers.byte_level(()))
    with open(talk, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in conversations(times))


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2],
          **{key: json.loads(value) for key, value in (word.split("=", 1) for word in sys.argv[3:])})
