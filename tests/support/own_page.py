"""The programs of docs/OWN_MODEL.md. Not a test.

    own_page.py FOLDER SECTION ...

makes in the folder what the Python of these sections makes before their first command."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def sections():
    with open(os.path.join(ROOT, "docs/OWN_MODEL.md"), encoding="utf-8") as page:
        return re.split(r"^## ", page.read(), flags=re.M)[1:]


def blocks(section):
    """Indented lines, as far as they go on; a command begins a block of its own. Returns (is it for
    the shell?, text)."""
    made = []
    lines = section.split("\n")
    inside = False
    for at, line in enumerate(lines):
        if line.startswith("    "):
            shell = line.startswith("    lockstep ") or (inside and made[-1][0] and
                                                         lines[at - 1].endswith("\\"))
            if not inside or shell != made[-1][0]:
                made.append((shell, []))
            made[-1][1].append(line[4:])
            inside = True
        elif line == "" and inside:
            made[-1][1].append("")
        else:
            inside = False
    return [(shell, "\n".join(one) + "\n") for shell, one in made]


def main(folder, *numbers):
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(ROOT, "share/lockstep"))
    found = {}
    pages = sections()
    os.chdir(folder)
    for number in numbers:
        for shell, text in blocks(pages[int(number) - 1]):
            if shell:
                break
            exec(compile(text, "docs/OWN_MODEL.md", "exec"), found)  # noqa: S102 - our own page


if __name__ == "__main__":
    main(*sys.argv[1:])
