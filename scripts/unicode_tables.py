#!/usr/bin/env python3
"""unicode_tables.py - writes data/text/class_table.h and data/text/nfc_table.h from Unicode 14.0.

    scripts/unicode_tables.py [--check]

Token ids must depend on no library and no distribution, so the tables are fixed: they come from the
unicodedata of Python 3.11, whose version is checked. White_Space is not in it and is written out.
--check compares the files with what would be written.
"""

import os
import sys
import unicodedata

VERSION = "14.0.0"
CODE_POINTS = 0x110000
CLASSES = ["OTHER", "UPPER", "LOWER", "LETTER", "MARK", "NUMBER", "SPACE"]
WHITE_SPACE = [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
               0x202F, 0x205F, 0x3000]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "text")
WIDTH = 100

HEAD = """/* %s - %s
 *
 * Written by scripts/unicode_tables.py from Unicode %s; do not edit. */
#ifndef DATA_TEXT_%s_H
#define DATA_TEXT_%s_H

#include <stdint.h>

/* clang-format off */
"""
TAIL = """/* clang-format on */

#endif /* DATA_TEXT_%s_H */
"""


def class_of(code):
    """The class of a code point, as a number of enum unicode_class."""
    category = unicodedata.category(chr(code))
    if code in WHITE_SPACE:
        return CLASSES.index("SPACE")
    if category in ("Lu", "Lt"):
        return CLASSES.index("UPPER")
    if category == "Ll":
        return CLASSES.index("LOWER")
    names = {"L": "LETTER", "M": "MARK", "N": "NUMBER"}
    return CLASSES.index(names.get(category[0], "OTHER"))


def runs(value_of):
    """Where the value changes, and to what."""
    found, last = [], None
    for code in range(CODE_POINTS):
        value = value_of(code)
        if value != last:
            found.append((code, value))
            last = value
    return found


def array(kind, name, items):
    text = "static const %s %s[] = {\n" % (kind, name)
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > WIDTH:
            text += line + "\n"
            line = "   "
        line += " " + item + ","
    return text + line + "\n};\n"


def class_table():
    items = ["0x%08x" % (code << 3 | value) for code, value in runs(class_of)]
    return (HEAD % ("class_table.h", "classes of code points in runs: first << 3 | class, rising.",
                    VERSION, "CLASS_TABLE", "CLASS_TABLE")
            + array("uint32_t", "class_runs", items) + TAIL % "CLASS_TABLE")


def nfc_table():
    pairs = []
    for code in range(CODE_POINTS):
        parts = unicodedata.decomposition(chr(code)).split()
        if parts and not parts[0].startswith("<"):
            parts = [int(part, 16) for part in parts] + [0]
            pairs.append((code, parts[0], parts[1]))
    # What composes: a pair whose composition is not excluded.
    composed = [at for at, (code, one, two) in enumerate(pairs)
                if two and unicodedata.normalize("NFC", chr(one) + chr(two)) == chr(code)]
    composed.sort(key=lambda at: pairs[at][1:])
    marks = ["0x%07x" % (code << 8 | value)
             for code, value in runs(lambda code: unicodedata.combining(chr(code)))]
    return (HEAD % ("nfc_table.h", "canonical decompositions, compositions and combining classes.",
                    VERSION, "NFC_TABLE", "NFC_TABLE")
            + "/* code << 42 | first << 21 | second, rising; second 0: there is none. */\n"
            + array("uint64_t", "nfc_pairs",
                    ["0x%016x" % (code << 42 | one << 21 | two) for code, one, two in pairs])
            + "/* Which of these compose, by first and second. */\n"
            + array("uint16_t", "nfc_composed", ["%d" % at for at in composed])
            + "/* code << 8 | combining class, of runs. */\n"
            + array("uint32_t", "nfc_classes", marks) + TAIL % "NFC_TABLE")


def main(words):
    if unicodedata.unidata_version != VERSION:
        print("unicode_tables: skipped: this Python has Unicode %s, the tables are of %s"
              % (unicodedata.unidata_version, VERSION))
        return 2
    stale = 0
    for name, text in (("class_table.h", class_table()), ("nfc_table.h", nfc_table())):
        path = os.path.join(FOLDER, name)
        if words == ["--check"]:
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    print("unicode_tables: data/text/%s is not what Unicode %s says" % (name, VERSION))
                    stale = 1
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
