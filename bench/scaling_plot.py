"""Draws what scaling_bench measured: processor time and memory of a step against length, width, depth.

    /usr/bin/python3 bench/scaling_plot.py build/bench/scaling.json OUT.svg [OUT.md]

The Markdown is the table of the same numbers. Both axes are logarithmic."""
import json
import math
import re
import sys

SERIES = (("length", "tokens of one sequence"), ("width", "width"), ("depth", "layers"))
ROWS = (("a step", "seconds of processor, a step"), ("memory used", "megabytes of the process"))
# The key of a line, its name and its colour, which people who see few colours can tell apart.
LINES = (("plain", "Lockstep", "#0072b2"), ("recomputing", "Lockstep, recomputing", "#009e73"),
         ("torch", "PyTorch float32", "#d55e00"))
PANEL_W, PANEL_H, LEFT, TOP, GAP = 260, 190, 64, 52, 78


def read(name):
    """{series: {value: {what: {line: number}}}}"""
    with open(name, encoding="utf-8") as file:
        told = json.load(file)
    points = {}
    for row in told["rows"]:
        match = re.fullmatch(r"(\w+) (\d+): (.+?)(, recomputing)?", row["name"])
        at = points.setdefault(match[1], {}).setdefault(int(match[2]), {}).setdefault(match[3], {})
        at["recomputing" if match[4] else "plain"] = row["ours"]
        if "peer" in row:
            at["torch"] = row["peer"]
    return told, points


def number(value):
    return "%.0f" % value if value >= 100 else "%.3g" % value


def decades(values):
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return (low, high if high > low else low + 1)


def panel(out, x, y, title, points, what):
    """One plot; a series that was not measured leaves its place empty."""
    values = sorted(value for value in points if points[value].get(what))
    numbers = [n for value in values for n in points[value][what].values() if n > 0]
    if len(values) < 2 or not numbers:
        return
    low, high = decades(numbers)
    first, last = math.log2(values[0]), math.log2(values[-1])

    def place(value, n):
        across = (math.log2(value) - first) / (last - first)
        up = (math.log10(n) - low) / (high - low)
        return x + across * PANEL_W, y + PANEL_H - up * PANEL_H

    out.append('<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>' %
               (x, y, PANEL_W, PANEL_H))
    for decade in range(low, high + 1):
        at = place(values[0], 10.0 ** decade)[1]
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (x, x + PANEL_W, at, at))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (x - 6, at + 4, 10.0 ** decade))
    for value in values:
        at = place(value, 10.0 ** low)[0]
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (at, y + PANEL_H + 16, value))
    out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' %
               (x + PANEL_W / 2, y + PANEL_H + 32, title))
    for line, _, colour in LINES:
        there = [place(value, points[value][what][line]) for value in values
                 if points[value][what].get(line, 0) > 0]
        out.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' %
                   (colour, " ".join("%.1f,%.1f" % place for place in there)))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (*place, colour) for place in there]


def draw(told, points):
    width = LEFT + len(SERIES) * (PANEL_W + GAP)
    height = TOP + len(ROWS) * (PANEL_H + GAP)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" '
           'font-size="11">' % (width, height),
           '<rect width="%d" height="%d" fill="white"/>' % (width, height),
           '<text x="%d" y="16" font-size="13">A GPT-2 training step as it grows: %s</text>' %
           (LEFT, told["cpu"])]
    for i, (_, name, colour) in enumerate(LINES):
        out.append('<circle cx="%d" cy="32" r="4" fill="%s"/><text x="%d" y="36">%s</text>' %
                   (LEFT + 170 * i, colour, LEFT + 8 + 170 * i, name))
    for row, (what, unit) in enumerate(ROWS):
        y = TOP + row * (PANEL_H + GAP)
        out.append('<text transform="translate(14,%d) rotate(-90)" text-anchor="middle">%s</text>' %
                   (y + PANEL_H // 2, unit))
        for column, (series, title) in enumerate(SERIES):
            panel(out, LEFT + column * (PANEL_W + GAP), y, title, points.get(series, {}), what)
    return "\n".join(out + ["</svg>", ""])


def table(points):
    heads = ["s", "s, recomputing", "s, PyTorch", "MB planned", "used", "planned, recomputing", "used",
             "PyTorch"]
    out = []
    for series, _ in SERIES:
        if series not in points:
            continue
        out += ["| %s | %s |" % (series, " | ".join(heads)), "|--:" * (len(heads) + 1) + "|"]
        for value in sorted(points[series]):
            at = points[series][value]
            cells = [at["a step"].get(line) for line, _, _ in LINES]
            for line in ("plain", "recomputing"):
                cells += [at["memory planned"].get(line), at["memory used"].get(line)]
            cells.append(at["memory used"].get("torch"))
            out.append("| {:,} | {} |".format(value, " | ".join("-" if not n else number(n) for n in cells)))
        out.append("")
    return "\n".join(out)


def main():
    told, points = read(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw(told, points))
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w", encoding="utf-8") as file:
            file.write(table(points))


main()
