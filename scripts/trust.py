"""trust.py - which functions a function can reach, from the text of the sources, for check-trust.

The house's layout is enough to read C by: a function begins with its header in the first column
and ends with a brace there. An edge is a name: a function reaches every function, table and macro
that its text names. The values of a file's tables, and the functions that its macros make, are
reached with any function of the file. Names of other files count where the object file links to
them. So the graph has too many edges rather than too few. A line counts where it holds code.
"""

import os
import re
import subprocess

import layers

# No member of a struct, and no tag: "struct sha256" is a type, sha256() a function.
WORD = re.compile(r"(?<![\w.>])(?<!\bstruct )(?<!\benum )[A-Za-z_]\w*\b|(?<=[^-]>)[A-Za-z_]\w*\b")
DEFINE = re.compile(r"^#[ \t]*define[ \t]+(\w+)((?:.*\\\n)*.*)", re.M)
BLANKED = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
# Of what stands between functions: values of tables, and macros that make functions.
VALUE = re.compile(r"=\s*(?:\{.*?\};|[^;{}]*;)|^[A-Z][A-Z0-9_]*\([^)]*\)", re.M | re.S)
IMPORT = re.compile(r'\bfrom\s+"\./([\w.]+)"|^import\s+"\./([\w.]+)"', re.M)


def blank(text):
    """Without comments and texts, but with the same lines."""
    return BLANKED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


class Function:
    def __init__(self, path, name, is_static, lines, text):
        self.path, self.name, self.is_static, self.lines = path, name, is_static, lines
        self.words = set(WORD.findall(text))


def split(path, text):
    """The functions of a file, and what stands between them."""
    lines = blank(text).split("\n")
    functions, between = [], []
    begun = 0  # of what may be a header
    at = 0
    while at < len(lines):
        line = lines[at]
        if line == "{" and begun < at:
            end = at
            while end < len(lines) and lines[end] != "}":
                end += 1
            header = re.sub(r"__attribute__\s*\(\(.*?\)\)+", "", " ".join(lines[begun:at]))
            named = re.search(r"(\w+)\s*\(", header)
            if named is not None:
                body = lines[begun:end + 1]
                functions.append(Function(path, named.group(1), "static" in header.split("(")[0],
                                          sum(line.strip() != "" for line in body),
                                          "\n".join(body)))
                at = begun = end + 1
                continue
        between.append(line)
        if not line.strip() or line.startswith("#") or line.rstrip().endswith((";", "\\")) or \
                line.startswith("}"):
            begun = at + 1
        at += 1
    return functions, "\n".join(between)


class Program:
    """The functions of rooms, and what they name."""

    def __init__(self, rooms, build):
        self.of_file, self.between, self.everywhere, self.tables = {}, {}, {}, {}
        self.macros, self.declared, self.includes = {}, {}, {}
        for path, text in layers.sources(rooms).items():
            if path.endswith((".c", ".h")):  # the plugin of a GPU is no part of the program
                self.add(path, text)
        self.visible = {path: self.words_seen(path) for path in self.of_file}
        self.take_links(build)

    def add(self, path, text):
        self.includes[path] = layers.INCLUDE.findall(text)
        functions, between = split(path, text)
        for name, body in DEFINE.findall(blank(text)):
            self.macros.setdefault(name, set()).update(WORD.findall(body))
        between = DEFINE.sub("", between)
        self.of_file[path] = {function.name: function for function in functions}
        self.between[path] = set(WORD.findall(" ".join(VALUE.findall(between))))
        is_header = path.endswith(".h")
        if is_header:
            self.declared[path] = set(WORD.findall(between)) | set(self.of_file[path])
        for function in functions:
            if not function.is_static or is_header:
                self.everywhere.setdefault(function.name, []).append(function)
        for name in re.findall(r"^(?!static|extern|typedef)[a-z][\w ]*?\b(\w+)(?:\[[^\]\n]*\])* = ",
                               between, re.M):
            self.tables.setdefault(name, []).append(path)

    def take_links(self, build):
        """What was compiled says itself what it links to: no other name of its text is another file's
        function."""
        objects = {os.path.join(build, path[:-2] + ".o"): path for path in self.of_file
                   if path.endswith(".c")}
        there = [name for name in objects if os.path.exists(name)]
        said = subprocess.run(["nm", "-Au", *there], stdout=subprocess.PIPE, check=True)
        linked = {objects[name]: set() for name in there}
        for line in said.stdout.decode().splitlines():
            name, _, symbol = line.rpartition(" ")
            linked[objects[name.split(":")[0]]].add(symbol)
        for path, symbols in linked.items():
            inline = {word for word in self.visible[path] & set(self.everywhere)
                      if all(f.path.endswith(".h") for f in self.everywhere[word])}
            self.visible[path] = self.visible[path] & symbols | inline
            # Names that macros put together are in no text; the whole file stands for them.
            said_ones = set(self.between[path]).union(
                *(function.words for function in self.of_file[path].values()))
            pasted = {name for name in symbols & set(self.everywhere) if name not in said_ones}
            self.between[path] |= pasted
            self.visible[path] |= pasted

    def words_seen(self, path):
        """What the headers that a file includes, and they in turn, declare."""
        seen, todo, words = set(), list(self.includes[path]), set()
        while todo:
            header = todo.pop()
            if header not in seen:
                seen.add(header)
                words |= self.declared.get(header, set())
                todo += self.includes.get(header, [])
        return words

    def spread(self, words):
        """The words, and what the macros among them name."""
        found, todo = set(), list(words)
        while todo:
            word = todo.pop()
            if word not in found:
                found.add(word)
                todo += self.macros.get(word, ())
        return found

    def named(self, name):
        """The functions of a name, or of FILE:NAME; of one file, where the name is a file's own."""
        if ":" in name:
            path, name = name.split(":")
            if name in self.of_file.get(path, ()):
                return [self.of_file[path][name]]
        found = self.everywhere.get(name) or [functions[name] for functions in self.of_file.values()
                                              if name in functions]
        if not found or len({function.path for function in found}) > 1:
            raise SystemExit("check-trust: %s is the name of %d functions" % (name, len(found)))
        return found

    def reached(self, roots, outside=()):
        """Path -> names of its functions that the roots can reach, but not through `outside`."""
        found = {}
        todo = [function for root in roots for function in self.named(root)]
        while todo:
            function = todo.pop()
            path = function.path
            names = found.setdefault(path, set())
            if function.name in names:
                continue
            words = set(function.words)
            if not names and path.endswith((".c", "_body.h")):
                words |= self.between[path]
            names.add(function.name)
            for word in self.spread(words) - set(outside):
                if word in self.of_file[path]:
                    todo.append(self.of_file[path][word])
                elif word in self.visible[path]:
                    todo += self.everywhere.get(word, [])
                    for table in self.tables.get(word, ()):
                        # A table is its file's text: all of its functions stand for it.
                        if table not in found:
                            todo += list(self.of_file[table].values())
        return found

    def lines(self, path, names):
        return sum(self.of_file[path][name].lines for name in names)


def contracts(folder, roots):
    """File -> its lines of code, of the contracts that the roots import, and they in turn."""
    found, todo = {}, list(roots)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        found[name] = sum(line.strip() != "" for line in blank(text).split("\n"))
        todo += [one or other for one, other in IMPORT.findall(text)]
    return found
