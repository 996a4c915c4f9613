"""layers.py - the table of arrows (layers.txt) and the modules of the tree, for check-layers and arrows."""

import os
import re
import sys

SOURCES = re.compile(r"\.(c|h|cu|cuh)$")
COMMENT = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def table(path="scripts/layers.txt"):
    """Folder -> what its line allows, in the order of the file."""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                folder, _, allowed = line.partition(":")
                if folder in rows:
                    sys.exit("%s: %s has two lines" % (path, folder))
                rows[folder] = allowed.split()
    return rows


def reaches(rows, folder):
    """The folders that `folder` may include, besides itself. NAME/* is NAME and all below it."""
    found = set()
    for name in rows[folder]:
        if name.endswith("/*"):
            found |= {other for other in rows if (other + "/").startswith(name[:-1])}
        elif name in rows:
            found.add(name)
        else:
            sys.exit("scripts/layers.txt: %s may include %s, which has no line" % (folder, name))
    return sorted(found - {folder})


def sources(rooms):
    """Path -> text of every source file below these rooms."""
    texts = {}
    for room in rooms:
        for folder, _, names in os.walk(room):
            for name in names:
                if SOURCES.search(name):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        texts[path] = file.read()
    return texts


def commented(text):
    """How many lines of a source hold a comment."""
    lines = set()
    for found in COMMENT.finditer(text):
        if found.group().startswith("/"):
            first = text.count("\n", 0, found.start())
            lines.update(range(first, first + found.group().count("\n") + 1))
    return len(lines)


def module(path):
    return SOURCES.sub("", path)


def cycles(graph):
    """Groups of nodes that reach each other, by Tarjan's algorithm without recursion."""
    index, low, stack, on_stack, groups = {}, {}, [], set(), []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in graph:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    group = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        group.append(member)
                        if member == node:
                            break
                    if len(group) > 1:
                        groups.append(sorted(group))
    return groups
