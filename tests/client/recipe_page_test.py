"""Goal: the table of options in docs/FINETUNE.md is the program's own.
Method: every option of client/recipe has a row there, in the order of the code's table, with the words
of --help; --write makes the rows."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

from program import call, main  # noqa: E402

PAGE = "docs/FINETUNE.md"
HEAD = "| option | what it says |\n|---|---|\n"
TABLES = ("client/recipe/lora_options.h", "client/recipe/recipe_options.h")
NAME = re.compile(r'(?:\.name = |RECIPE_(?:NUMBER|RULES)\()"([a-z0-9-]+)"')


def names():
    found = []
    for table in TABLES:
        with open(table, encoding="ascii") as file:
            found += NAME.findall(file.read())
    return found


def first_words(words):
    """Up to a semicolon that no parenthesis holds."""
    parts = words.split("; ")
    kept = parts.pop(0)
    while kept.count("(") > kept.count(")") and parts:
        kept += "; " + parts.pop(0)
    return kept


def rows():
    """As --help all has them: a name, its value, and words over several lines."""
    said = call("job", "new", "--help", "all").stdout.decode()
    helps = {}
    for line in said.split("\n"):
        begins = re.match(r"  --([a-z0-9-]+)( \S+)?(?:  +(.*))?$", line)
        if begins:
            name, value, words = begins.groups()
            helps[name] = [(value or "").strip(), words or ""]
        elif line.startswith("        ") and helps:
            helps[name][1] += " " + line.strip()
    made = []
    for name in names():
        value, words = helps[name]
        made.append("| `--%s` | %s |\n" % ((name + " " + value).strip(), first_words(words.strip()).split(
            " (may be")[0].replace("*", "\\*").replace("|", ", ")))
    return made


def page_has_the_options_of_the_program():
    wanted = rows()
    assert len(wanted) == len(set(wanted)) and len(wanted) > 20, len(wanted)
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    at = page.index(HEAD) + len(HEAD)
    got = page[at:page.index("\n\n", at) + 1].splitlines(keepends=True)
    for one, other in zip(got, wanted):
        assert one == other, "%s has %r, and the program says %r" % (PAGE, one, other)
    assert len(got) == len(wanted), (len(got), len(wanted))


def write():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    at = page.index(HEAD) + len(HEAD)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page[:at] + "".join(rows()) + page[page.index("\n\n", at) + 1:])


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
        sys.exit(0)
    sys.exit(main([page_has_the_options_of_the_program]))
