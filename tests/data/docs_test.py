"""Goal: who types the commands of docs/DATA.md gets what the page says.
Method: its indented blocks run in a shell, in a folder that holds a small tokenizer as `base`; and the
tables of layouts and of refusals say what the program says."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), HERE]
sys.dont_write_bytecode = True

import program  # noqa: E402
import tiny_llama  # noqa: E402
import tokenizers  # noqa: E402


def page():
    with open("docs/DATA.md", encoding="utf-8") as file:
        return file.read()


def test_every_command_of_the_page_works():
    merges = ("t h", "th e", "i n", "Ġ the", "p r", "i m", "im e", "pr ime")
    tiny_llama.write(program.path("base"), vocab_size=256 + len(merges) + len(tokenizers.SPECIALS))
    tokenizers.write(program.path("base"), tokenizers.byte_level(merges))
    block = re.sub("^    ", "", "\n".join(re.findall("^    .*$", page(), re.M)), flags=re.M)
    assert block.count("lockstep") == 7, block
    # Small, but as the page has it: this tokenizer publishes no template.
    block = block.replace("--length 64 --out", "--length 64 --chat llama3 --out")
    done = subprocess.run(["bash", "-e"], input=block.encode(), cwd=program.folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env=dict(os.environ, PATH=os.path.dirname(os.path.abspath(program.LOCKSTEP)) + ":" +
                                   os.environ["PATH"]))
    said = done.stdout.decode()
    assert done.returncode == 0, said
    for told in ("{Yes.<|eot_id|>}|", "equal: 2 rows", "rows         2 of 64 tokens, each 3 times\n",
                 "written to   rows.job", "makes two forwards more", "written to   pairs.job"):
        assert told in said, said


def test_layouts_of_the_page_are_those_of_the_program():
    with open("data/source/chat.c", encoding="utf-8") as file:
        table = re.findall('\\{"([a-z0-9.-]+)",[^{]*\\{((?:"[0-9a-f]{64}",?\\s*)+)\\}', file.read())
    assert len(table) == 7, table
    for name, hashes in table:
        row = [line for line in page().split("\n") if line.startswith("| `") and "`%s`" % name in line]
        assert len(row) == 1, name
        for digest in re.findall("[0-9a-f]{64}", hashes):
            assert "`%s`" % digest[:8] in row[0], (name, digest)
    told = program.call("data", "pack", "--help", "all").stdout.decode()
    for name, _ in table:
        assert name in told


if __name__ == "__main__":
    sys.exit(program.main([value for name, value in sorted(globals().items()) if name.startswith("test_")]))
