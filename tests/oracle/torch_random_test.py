"""Goal: a program of random calls is PyTorch's when it is a job, loss and gradients, or it is refused by
name: never silently another one. What a refusal tells to write is what it stands for.
Method: torch_random.py writes programs by number; each is exported and made a job, which compares its
first step with PyTorch's in float64. Faults that are planted into the exporter are found. Skipped where
PyTorch is not installed. `torch_random_test.py FAMILY FIRST COUNT` tells of each of so many."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, part) for part in ("../support", "../../share/lockstep", "")]
sys.dont_write_bytecode = True

try:
    import torch
except ImportError:
    print("skip: PyTorch is not installed (Debian: apt-get install python3-torch)")
    sys.exit(77)

import collections  # noqa: E402
import math  # noqa: E402
import shutil  # noqa: E402
import warnings  # noqa: E402

import lockstep_torch as lockstep  # noqa: E402
import torch_random as programs  # noqa: E402
from program import ask, folder, main, path  # noqa: E402

torch.set_num_threads(1)
lockstep._found_in_bfloat16 = lambda *_: None  # jobs of fewer bits ask for it
PROGRAMS = 18  # of each family
MOST = {"loss": 2e-5, "gradients": 2e-4, "states": 0}


class Holder(torch.nn.Module):
    def __init__(self, p, w):
        super().__init__()
        self.p, self.w = torch.nn.Parameter(p), torch.nn.Parameter(w)


def export(text, seed, name):
    """The words of a job of it."""
    with open(path(name + ".py"), "w", encoding="ascii") as file:
        file.write(text)
    names = {}
    exec(compile(text, path(name + ".py"), "exec"), names)
    p, w, x, k = programs.inputs(seed)

    def loss(module, x, k):
        made = names["program"](module.p, module.w, x, k)
        return programs.weighed(made) + module.p.sum() + module.w.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lockstep.export(Holder(p, w), loss, {"x": x, "k": k}, path(name), evaluate=False)
    words = ["--graph", path(name + ".graph"), "--first-state", path(name + ".safetensors")]
    for key, rows in (("x", x), ("k", k)):
        lockstep.save_rows(path(key + ".npy"), rows)
        words += ["--data", "%s=%s" % (key, path(key + ".npy"))]
    return words


def judge(text, seed, name="one"):
    """How it went, in one word, and what was said."""
    try:
        words = export(text, seed, name)
    except lockstep.Refused as error:
        told = str(error)
        places = name + ".py:", "torch_random.py:", "the gradient of", "a parameter that the step"
        return ("refused" if any(one in told for one in places) else "unnamed"), told
    except Exception as error:  # noqa: B902 - all that must not come out
        return "broken", repr(error)
    try:
        found = ask("job", "new", *words, "--steps", "1", "--out", path(name + ".job"))["first_step"]
    except AssertionError as error:
        return "other", str(error.args[0][2:])
    finally:
        if os.path.exists(path(name + ".job")):
            os.remove(path(name + ".job"))
    off = [key for key, most in MOST.items() if not found[key] <= most]
    return ("other" if off else "equal"), str(found)


def tell(family, first, count):
    counts = collections.Counter()
    for seed in range(first, first + count):
        text = programs.write_program(family, seed)
        how, told = judge(text, seed)
        counts[how] += 1
        print("# %s %d: %s: %s" % (family.__name__, seed, how, told[-400:]))
        if how not in ("equal", "refused"):
            print(text[len(programs.EXTRA):])
    print("# %s: %s" % (family.__name__, dict(counts)))


def programs_are_pytorchs_or_refused(family):
    def test():
        counts = collections.Counter()
        for seed in range(PROGRAMS):
            text = programs.write_program(family, seed)
            how, told = judge(text, seed)
            assert how in ("equal", "refused"), (family.__name__, seed, how, told, text)
            counts[how] += 1
        print("# %s: %s" % (family.__name__, dict(counts)))
        assert counts["equal"] >= PROGRAMS / 3, counts
    test.__name__ = "%s_are_pytorchs_or_refused" % family.__name__
    return test


# A program, and a rule by its name, or a method of the recorder, with what takes its place: kept is the true one.
FAULTS = (
    ("views", 0, "changed", lambda kept, *_: None),
    ("shapes", 1, "roll", lambda kept, g, name, out, x, shifts, axes=(): kept(g, name, out, x, [-one for one in shifts], axes)),
    ("shapes", 35, "flip", lambda kept, g, name, out, x, axes: kept(g, name, out, x, axes[:1])),
    ("pictures", 22, "convolution", lambda kept, g, name, out, x, weight, *more: kept(
        g, name, out, x, g.flipped(g.real(weight), [3]), *more)),
    ("sums", 1, "var", lambda kept, *args, correction, **names: kept(*args, correction=1 - correction, **names)),
    ("sums", 4, "sort", lambda kept, *args, **names: kept(*args[:-1], not args[-1], **names)),
    ("functions", 35, "softplus", lambda kept, g, name, out, x, beta=1, threshold=20: kept(g, name, out, x, beta)),
    ("functions", 0, "elu", lambda kept, g, name, out, x, *more: kept(g, name, out, x)),
    ("types", 4, "floor_divide", lambda kept, g, name, *args: kept(g, "div", *args)),
    ("broadcast", 19, "sum", lambda kept, g, *args, **names: g.scale(kept(g, *args, **names), 1.001)),
)


def planted_faults_are_found():
    for family, seed, name, fault in FAULTS:
        text = programs.write_program(getattr(programs, family), seed)
        how, told = judge(text, seed)
        assert how == "equal", (name, seed, how, told)
        home = vars(lockstep.Recorder) if hasattr(lockstep.Recorder, name) else lockstep.RULES
        kept = home[name]
        try:
            plant(name, lambda *args, **names: fault(kept, *args, **names))
            how, told = judge(text, seed)
        finally:
            plant(name, kept)
        assert how == "other", (name, seed, how, told)


# Programs that were others, or were refused without need.
MENDED = (
    ("return [p[..., :1].sort(-2)[0]]",),
    ("a = p * 1.5 + x", "b = a.detach()", "a.mul_(2)", "return [b, a]"),
    ("a = p * 1.5 + x", "b = a.detach()", "a[0] = p[1]", "c = a * b", "return [b, a, c]"),
    ("a = p * 1.5 + x", "b = a.data", "a.unsqueeze_(0)", "return [b, a]"),
    ("a = p * 1.5 + x", "b = a.data[1]", "a += p", "return [b, a]"),
    ("a = p * 1.5 + x", "b = a[:, 1:3].transpose(0, 2)", "a.mul_(p)", "return [b, a * b.sum()]"),
    ("return [F.cosine_similarity(p[0], p[:1], dim=1)]",),
    ("return [(k - 2) ** (k - 3).int(), torch.pow(0, k - 2), k ** k, (k - 1) ** torch.tensor([-1, 0, 1, 2, -2, 3])]",),
)


def mended_programs_are_pytorchs():
    for lines in MENDED:
        text = programs.EXTRA + "def program(p, w, x, k):\n    %s\n" % "\n    ".join(lines)
        how, told = judge(text, 128)
        assert how == "equal", (lines, how, told)


MAKER = torch.Generator().manual_seed(1)
SQUARE, ROW, COUNTED = torch.randn(4, 4, generator=MAKER), torch.randn(20, generator=MAKER), torch.arange(20) % 3
ABOVE = torch.logspace(-6, 8, 300, dtype=torch.float64)
# What a refusal tells to write, word for word; x in it; what it stands for.
WAYS = (
    ("lgamma", "(z - 0.5) * z.log() - z + 0.9189385 + 1 / (12 * z) - 1 / (360 * z**3) - sum((x + i).log() for i in range(6))",
     ABOVE, "torch.lgamma(x)"),
    ("digamma", "z.log() - 1 / (2 * z) - 1 / (12 * z**2) + 1 / (120 * z**4) - sum(1 / (x + i) for i in range(6))",
     ABOVE, "torch.digamma(x)"),
    ("histc", "((x[:, None] >= edges[:-1]) & (x[:, None] < edges[1:])).sum(0)", ROW,
     "torch.histc(x, 4) - (x == edges[-1]).sum() * torch.tensor([0, 0, 0, 1])"),
    ("bincount", "torch.nn.functional.one_hot(x, count).sum(0)", COUNTED, "torch.bincount(x)"),
    ("mode", "torch.nn.functional.one_hot(x, count).sum(-2).argmax(-1)", COUNTED, "x.mode()[0]"),
    ("scatter_reduce", "torch.where(one_hot(index, count) > 0, x[..., None], -1e30).amax(0)", ROW,
     "torch.zeros(count).scatter_reduce(0, index, x, 'amax', include_self=False)"),
    ("renorm", "x * (limit / (x.norm(dim=axes, keepdim=True) + 1e-7)).clamp(max=1)", SQUARE, "x.renorm(2, 0, limit)"),
    ("norm", "x.abs().pow(p).sum(axes).pow(1 / p)", SQUARE, "torch.linalg.vector_norm(x, p, axes)"),
    ("norm", "x.abs().amin(axes)", SQUARE, "torch.linalg.vector_norm(x, -math.inf, axes)"),
    ("nansum", "torch.where(x == x, x, 0.0).sum()", SQUARE.log(), "x.nansum()"),
    ("nanmedian", "x.sort(-1)[0].gather(-1, ((x == x).sum(-1, True) - 1).clamp(min=0) // 2)", SQUARE.log(),
     "x.nanmedian(-1, True)[0]"),
    ("fmax", "torch.where(a != a, b, torch.where(b != b, a, torch.maximum(a, b)))", SQUARE, "torch.fmax(a, b)"),
    ("fmin", "torch.where(a != a, b, torch.where(b != b, a, torch.minimum(a, b)))", SQUARE, "torch.fmin(a, b)"),
    ("isin", "(x[..., None] == those).any(-1)", COUNTED, "torch.isin(x, those)"),
    ("diagonal_scatter", "torch.where(torch.eye(n) > 0, new, x)", SQUARE, "torch.diagonal_scatter(x, new)"),
)


def ways_out_are_what_they_stand_for():
    for name, text, x, true in WAYS:
        assert text in lockstep.WAY_OUT[name], (name, lockstep.WAY_OUT[name])
        names = {"torch": torch, "math": math, "one_hot": torch.nn.functional.one_hot, "x": x, "z": x + 6, "a": SQUARE.log(),
                 "b": SQUARE.t().log(), "index": COUNTED, "count": 3, "edges": torch.linspace(ROW.min(), ROW.max(), 5), "n": 4,
                 "limit": 1.5, "p": 3, "axes": 1, "those": torch.tensor([0, 2]), "new": ROW[:4]}
        one, other = (torch.as_tensor(eval(each, names)).double() for each in (text, true))
        assert torch.allclose(one, other, 2e-7, 2e-7, equal_nan=True), (name, one - other)


def plant(name, function):
    if hasattr(lockstep.Recorder, name):
        setattr(lockstep.Recorder, name, function)
    else:
        lockstep.RULES[name] = function


if __name__ == "__main__":
    if len(sys.argv) > 1:
        try:
            for family in programs.FAMILIES:
                if sys.argv[1] in (family.__name__, "all"):
                    tell(family, int(sys.argv[2]), int(sys.argv[3]))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        sys.exit(0)
    sys.exit(main([programs_are_pytorchs_or_refused(family) for family in programs.FAMILIES] +
                  [mended_programs_are_pytorchs, planted_faults_are_found, ways_out_are_what_they_stand_for]))
