"""Goal: any PyTorch program becomes a job: its loss and all its gradients are those of PyTorch in
float64, a run of it is proved by an audit, and its weights come back into the module. What has no
line of a graph is refused by name, with the user's line. A damaged graph is refused by its line.
Method: small programs as users write them, through share/lockstep/lockstep_torch.py; one step of SGD
without clipping and decay leaves each gradient in its moment. Skipped where PyTorch is not
installed."""

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

import copy  # noqa: E402

import lockstep_torch as lockstep  # noqa: E402
import torch_programs as programs  # noqa: E402
from program import ask, call, main, path  # noqa: E402

torch.set_num_threads(1)


def export(name, module, loss, batch):
    """Returns the names without a gradient, the words of a job, and those of its run."""
    without = lockstep.export(module, loss, batch, path(name))
    data = []
    for key, rows in batch.items():
        lockstep.save_rows(path("%s.%s.npy" % (name, key)), rows)
        data += ["--data", path("%s.%s.npy" % (name, key))]
    weights = ["--first-state", path(name + ".safetensors")]
    words = ["--graph", path(name + ".graph"), *weights, *data]
    with open(path(name + ".graph"), encoding="ascii") as file:
        frozen = ["--data", path(name + ".safetensors")] if " frozen " in file.read() else []
    return without, words, weights + data + frozen, data + frozen


def run(name, words, data, *more):
    ask("job", "new", *words, "--out", path(name + ".job"), "--segment-steps", "5", *more)
    ask("prover", "run", path(name + ".job"), *data, "--bundle", path(name + ".run"))
    steps = ask("bundle", "steps", path(name + ".run"))["steps"]
    folder = path(name + ".run/checkpoints")
    return steps, lockstep._read_tensors(os.path.join(folder, sorted(os.listdir(folder))[-1]))


def in_double(module, loss, batch):
    module = copy.deepcopy(module).double()
    batch = {key: rows.double() if rows.is_floating_point() else rows
             for key, rows in batch.items()}
    named = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
    value = loss(module, **batch)
    found = torch.autograd.grad(value, [one for _, one in named], allow_unused=True)
    return float(value), {name: one for (name, _), one in zip(named, found) if one is not None}


def check_program(name):
    module, loss, batch = programs.make(name)
    without, words, data, _ = export(name, module, loss, batch)
    steps, state = run(name, words, data, "--optimizer", "sgd", "--steps", "1", "--warmup", "0",
                       "--clip", "0", "--decay", "0")
    wanted, gradients = in_double(module, loss, batch)
    whole = sum(float(one.pow(2).sum()) for one in gradients.values()) ** 0.5
    assert {key[2:] for key in state if key[:2] == "v." and key[2:] in state} == set(gradients), (
        sorted(state), sorted(gradients), without)
    worst = max((float((state["v." + key].double() - one).norm()) /
                 max(float(one.norm()), whole / 1000), key) for key, one in gradients.items())
    apart = abs(steps[0]["loss"] - wanted) / abs(wanted)
    print("# %s: loss %.1e apart, gradients %.1e (%s)" % (name, apart, *worst))
    assert apart <= 1e-5 and worst[0] <= 1e-5, (name, apart, worst)


def programs_are_those_of_pytorch():
    for name in programs.NAMES:
        check_program(name)


def a_run_is_proved_and_loads():
    module, loss, batch = programs.make("gpt")
    _, words, data, read = export("whole", module, loss, batch)
    steps, state = run("whole", words, data, "--steps", "10", "--rate", "0.01", "--warmup", "0")
    assert steps[-1]["loss"] < 0.8 * steps[0]["loss"], steps
    audit, = ask("audit", path("whole.run"), *read)["audits"]
    assert audit["answer"] == "proven", audit
    left = lockstep.load(module, path("whole.run"))
    assert left == [], left
    assert torch.equal(module.wte.weight, state["wte.weight"])
    assert module.head.weight is module.wte.weight
    assert float(loss(module, **batch)) < steps[-1]["loss"] * 1.05
    module.wte = torch.nn.Embedding(3, 32)
    try:
        lockstep.load(module, path("whole.run"))
    except lockstep.Refused as error:
        assert "wte.weight" in str(error), error
    else:
        raise AssertionError("weights of another shape are loaded")


def what_has_no_line_is_refused():
    for name, (program, words) in programs.REFUSED.items():
        module, loss, batch = program()
        try:
            lockstep.export(module, loss, batch, path("refused"))
        except lockstep.Refused as error:
            assert "torch_programs.py:" in str(error) and words in str(error), (name, error)
        else:
            raise AssertionError("%s is exported" % name)


def a_damaged_graph_is_refused_by_its_line():
    module, loss, batch = programs.make("mlp")
    _, words, _, _ = export("hostile", module, loss, batch)
    with open(path("hostile.graph"), encoding="ascii") as file:
        lines = file.read().split("\n")

    def refused(number, line, what):
        damaged = list(lines)
        damaged[number - 1:number] = line
        with open(path("hostile.graph"), "w", encoding="ascii") as file:
            file.write("\n".join(damaged))
        said = call("job", "new", *words, "--out", path("hostile.job"), wanted=1).stderr.decode()
        assert what in said, (line, said)

    gelu = next(i for i, line in enumerate(lines, 1) if " tanh " in line)
    value, _, operand = lines[gelu - 1].split()[:3]
    refused(1, ["lockstep-graph 2"], "begins with 'lockstep-graph 1'")
    refused(gelu, ["%s sing %s = 6 16" % (value, operand)], "line %d: 'sing' is no call" % gelu)
    refused(gelu, ["%s tanh %%99 = 6 16" % value], "'%99' is no value of an earlier line")
    refused(gelu, ["%s tanh %s = 6 17" % (value, operand)], "torch_programs.py")
    refused(gelu, ["%s tanh %s = 0" % (value, operand)], "line %d: a shape" % gelu)
    refused(gelu, ["%%77 tanh %s = 6 16" % operand], "it should make %s" % value)
    refused(gelu, [lines[gelu - 1] + " "], "line %d: words" % gelu)
    refused(gelu, [lines[gelu - 1], "%99 param again 3"], "line %d" % (gelu + 1))
    refused(5, [lines[4].replace("bias", "weight")], "is declared twice")
    refused(len(lines) - 1, [], "ends without its loss")
    with open(path("hostile.graph"), "w", encoding="ascii") as file:
        file.write("\n".join(lines))
    call("job", "new", *words, "--out", path("hostile.job"))
    said = call("job", "new", *words, "--batch", "3", "--out", path("hostile.job"), wanted=3)
    assert b"--batch" in said.stderr, said.stderr


if __name__ == "__main__":
    sys.exit(main([programs_are_those_of_pytorch, a_run_is_proved_and_loads,
                   what_has_no_line_is_refused, a_damaged_graph_is_refused_by_its_line]))
