"""Goal: each chat layout writes a conversation as its published template does, and learns what the
assistant says with the token that ends its turn; a template that nobody knows is refused by its hash.
Method: one conversation, and what the template makes of it, written out; judges_test.py holds the layouts
to the templates themselves, where they are."""

import hashlib
import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
sys.dont_write_bytecode = True

import program  # noqa: E402
import tokenizers  # noqa: E402

CHAT = [{"role": "system", "content": "Be kind. "}, {"role": "user", "content": " Hi "},
        {"role": "assistant", "content": " Yes?\n"}, {"role": "user", "content": "Bye"},
        {"role": "assistant", "content": "So soon."}]
HEADER = "<|start_header_id|>%s<|end_header_id|>\n\n"
LLAMA3 = "".join(HEADER % role + text + "<|eot_id|>" for role, text in
                 (("user", "Hi"), ("assistant", "{Yes?}"), ("user", "Bye"), ("assistant", "{So soon.}")))
LLAMA3 = LLAMA3.replace("}<|eot_id|>", "<|eot_id|>}")
# What stands between { and } is learned.
WANTED = {
    "llama2": "<s>[INST] <<SYS>>\nBe kind. \n<</SYS>>\n\n Hi [/INST]{ Yes? </s>}<s>[INST] Bye [/INST]{ So soon. </s>}",
    "llama3": "<s>" + HEADER % "system" + "Be kind.<|eot_id|>" + LLAMA3,
    "llama3.1": "<s>" + HEADER % "system" + "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
                "Be kind.<|eot_id|>" + LLAMA3,
    "qwen3": "<|im_start|>system\nBe kind. <|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n"
             "{ Yes?\n<|im_end|>}\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
             "{<think>\n\n</think>\n\nSo soon.<|im_end|>}\n",
    "gemma3": "<s><start_of_turn>user\nBe kind. \n\nHi<end_of_turn>\n<start_of_turn>model\n{Yes?<end_of_turn>}\n"
              "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n{So soon.<end_of_turn>}\n",
    "mistral-v1": "<s>[INST]  Hi  [/INST]{ Yes?\n</s>} [INST] Bye [/INST]{So soon.</s>} ",
    "mistral-v3": "<s>[INST]  Hi  [/INST]{ Yes?\n</s>}[INST] Bye [/INST]{So soon.</s>}",
}


def base(**config):
    made = tokenizers.byte_level()
    made["added_tokens"] += [{"id": 1000 + i, "content": text, "special": True}
                             for i, text in enumerate(("<|im_start|>", "<|im_end|>", "<start_of_turn>",
                                                       "<end_of_turn>", "<think>", "</think>"))]
    return tokenizers.write(program.path("base"), made, **config), made


def pack(chat, *words, wanted=0, **config):
    place, made = base(**config)
    with open(program.path("chat.jsonl"), "w", encoding="utf-8") as file:
        file.write(json.dumps({"messages": chat}) + "\n")
    out = program.path("out")
    shutil.rmtree(out, ignore_errors=True)
    done = program.call("data", "pack", program.path("chat.jsonl"), "--tokenizer", place, "--length", "512",
                        "--out", out, *words, wanted=wanted)
    if wanted != 0:
        return done.stderr.decode()
    letters = {letter: byte for byte, letter in enumerate(tokenizers.alphabet())}
    names = {number: bytes(letters[letter] for letter in token)
             for token, number in made["model"]["vocab"].items()}
    names.update({one["id"]: one["content"].encode() for one in made["added_tokens"]})
    (ids, mask), = tokenizers.examples(out)
    text, learning = b"", 0
    for one, mark in zip(ids, mask):
        text += (b"{" if mark else b"}") * (mark != learning) + names[one]
        learning = mark
    return (text + b"}" * learning).decode()


def test_layouts_write_and_learn_what_their_templates_say():
    for name, wanted in WANTED.items():
        chat = CHAT[1:] if name.startswith("mistral") else CHAT
        found = pack(chat, "--chat", name)
        assert found == wanted, (name, found, wanted)


def test_dates_and_system_messages_are_options():
    found = pack(CHAT[1:], "--chat", "llama3.1", "--date", "1 Jan 2030", "--system", "Be kind.")
    assert found == WANTED["llama3.1"].replace("26 Jul 2024", "1 Jan 2030"), found
    assert pack(CHAT, "--chat", "llama3", "--system", "Not this") == WANTED["llama3"]


def test_a_message_says_itself_whether_it_is_learned():
    chat = json.loads(json.dumps(CHAT))
    chat[2]["learn"] = False
    assert pack(chat, "--chat", "llama3") == WANTED["llama3"].replace("{Yes?<|eot_id|>}", "Yes?<|eot_id|>")


def test_what_a_layout_has_no_place_for_is_refused():
    for chat, name, said in ((CHAT, "mistral-v3", "message 1: this layout has no place for a system message"),
                             (CHAT[2:], "gemma3", "message 1: this layout takes turns, user first"),
                             (CHAT[1:] + CHAT[:1], "llama2", "message 5: a system message stands first"),
                             ([{"role": "tool", "content": "x"}], "qwen3", "the role 'tool'"),
                             ([{"role": "user", "content": ["x"]}], "qwen3", "its 'content' is not a text"),
                             ([dict(CHAT[1], tool_calls=[1])], "qwen3", "the key 'tool_calls'"),
                             ([dict(CHAT[1], learn=True)], "qwen3", "only what the assistant says")):
        told = pack(chat, "--chat", name, wanted=1)
        assert "chat.jsonl:1: " in told and said in told, told
    assert "there are: auto, none, llama2" in pack(CHAT, "--chat", "llama4", wanted=3)


def test_a_template_that_nobody_knows_is_refused_by_its_hash():
    template = "{{ messages }}"
    told = pack(CHAT, chat_template=template, wanted=1)
    assert hashlib.sha256(template.encode()).hexdigest() in told, told


if __name__ == "__main__":
    sys.exit(program.main([value for name, value in sorted(globals().items()) if name.startswith("test_")]))
