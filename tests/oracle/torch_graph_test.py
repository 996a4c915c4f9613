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
import warnings  # noqa: E402

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
    checked = ask("job", "new", *words, "--out", path(name + ".job"), "--segment-steps", "5",
                  *more)["first_step"]
    # A bias that a batch norm cancels counts by a hundredth of the whole gradient.
    assert max(checked["loss"], checked["gradients"] / 10, checked["states"]) <= 1e-5, checked
    ask("prover", "run", path(name + ".job"), *data, "--bundle", path(name + ".run"))
    steps = ask("bundle", "steps", path(name + ".run"))["steps"]
    folder = path(name + ".run/checkpoints")
    return steps, lockstep._read_tensors(os.path.join(folder, sorted(os.listdir(folder))[-1]))


def in_double(module, loss, batch):
    """With the draws of an example."""
    module = copy.deepcopy(module).double()
    batch = {key: rows.double() if rows.is_floating_point() else rows
             for key, rows in batch.items()}
    before = {name: one.clone() for name, one in module.named_buffers()}
    torch.set_default_dtype(torch.float64)
    try:
        with lockstep.Reference(True):
            return of_double(module, loss, batch, before)
    finally:
        torch.set_default_dtype(torch.float32)


def of_double(module, loss, batch, before):
    named = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
    value = loss(module, **batch)
    found = torch.autograd.grad(value, [one for _, one in named], allow_unused=True)
    return float(value), {name: one for (name, _), one in zip(named, found) if one is not None}, {
        name: one for name, one in module.named_buffers() if not torch.equal(one, before[name])}


def states_are_alike(state, wanted):
    """As far apart as the worst is, relatively; integers are equal."""
    worst = 0
    for name, one in wanted.items():
        if not one.is_floating_point():
            assert torch.equal(state[name].long(), one.reshape(-1)), (name, state[name], one)
        else:
            worst = max(worst, float((state[name].double() - one).norm() / one.norm()))
    return worst


def scale_of(gradient, whole):
    """What an error is measured by. A bias that a batch norm cancels has none but of rounding."""
    norm = float(gradient.norm())
    return whole if norm < 1e-12 * whole else max(norm, whole / 1000)


def check_program(name):
    module, loss, batch = programs.make(name)
    without, words, data, _ = export(name, module, loss, batch)
    steps, state = run(name, words, data, "--optimizer", "sgd", "--steps", "1", "--warmup", "0",
                       "--clip", "0", "--decay", "0")
    if name in ("noisy", "in_place", "indexed"):
        return  # what a row meets hangs on its place, and the job draws others; `job new` compared
    wanted, gradients, states = in_double(module, loss, batch)
    whole = sum(float(one.pow(2).sum()) for one in gradients.values()) ** 0.5
    assert {key[2:] for key in state if key[:2] == "v." and key[2:] in state} == set(gradients), (
        sorted(state), sorted(gradients), without)
    worst = max((float((state["v." + key].double() - one).norm()) / scale_of(one, whole), key)
                for key, one in gradients.items())
    apart = abs(steps[0]["loss"] - wanted) / abs(wanted)
    stated = states_are_alike(state, states)
    print("# %s: loss %.1e apart, gradients %.1e (%s), %d states %.1e" % (
        name, apart, *worst, len(states), stated))
    assert apart <= 1e-5 and worst[0] <= 1e-5 and stated <= 1e-5, (name, apart, worst, stated)
    assert {"normed": 6, "averaged": 3}.get(name, 0) == len(states), (name, sorted(states))


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
    refuse_to_load(module)


def refuse_to_load(module):
    try:
        lockstep.load(module, path("whole.run"))
    except lockstep.Refused as error:
        assert "wte.weight" in str(error), error
    else:
        raise AssertionError("weights of another shape are loaded")


def adapters_are_added_to_the_weights_beside_them():
    module = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Linear(4, 2))
    before = copy.deepcopy(module)
    a, b = torch.randn(3, 6), torch.randn(4, 3)
    wrong = {"0.lora_A.weight": torch.randn(3, 5), "0.lora_B.weight": b}
    for tensors, scale, words in (
            ({"0.lora_A.weight": a, "0.lora_B.weight": b}, None, "scale=alpha / rank"),
            ({"0.lora_A.weight": a}, 2.0, "no lora_B"), (wrong, 2.0, "does not fit"),
            ({"5.lora_A.weight": a, "5.lora_B.weight": b}, 2.0, "no '5.weight'")):
        lockstep._save_tensors(path("adapters.safetensors"), tensors)
        try:
            lockstep.load(module, path("adapters.safetensors"), scale)
        except lockstep.Refused as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
        assert torch.equal(module[0].weight, before[0].weight)
    lockstep._save_tensors(path("adapters.safetensors"),
                           {"0.lora_A.weight": a, "0.lora_B.weight": b})
    left = lockstep.load(module, path("adapters.safetensors"), 2.0)
    assert left == ["0.bias", "1.weight", "1.bias"], left
    assert torch.allclose(module[0].weight, before[0].weight + 2 * b @ a)


def a_gpt2_of_a_job_is_a_module():
    """Its logits are those of the job."""
    tokens = torch.tensor([(7 * i * i + i) % 50 for i in range(17)])
    with open(path("gpt2.u8"), "wb") as file:
        file.write(bytes(tokens.tolist()))  # one window
    size = ["--model", "gpt2", "--data", path("gpt2.u8"), "--vocabulary", "50", "--layers", "2",
            "--heads", "4", "--width", "32", "--length", "16", "--batch", "1", "--bits", "22"]
    ask("job", "new", *size, "--steps", "3", "--rate", "0.05", "--out", path("gpt2.job"))
    ask("prover", "run", path("gpt2.job"), "--data", path("gpt2.u8"), "--bundle", path("gpt2.run"))
    module = lockstep.gpt2(path("gpt2.run"), 4)
    weights = path("gpt2.safetensors")
    lockstep._save_tensors(weights, dict(module.named_parameters()))
    ask("job", "new", *size, "--inference", "--first-state", weights, "--steps", "1", "--out",
        path("answers.job"))
    ask("prover", "run", path("answers.job"), "--first-state", weights, "--data", path("gpt2.u8"),
        "--bundle", path("answers.run"))
    answers = lockstep._newest(path("answers.run"))[0]["answers"].reshape(16, 50)
    with torch.no_grad():
        apart = float((module(tokens[:16]) - answers).norm() / answers.norm())
    print("# logits are %.1e apart" % apart)
    assert apart < 1e-5, apart
    lockstep._save_tensors(weights, {key: one for key, one in module.named_parameters()
                                     if key != "h.1.ln_1.bias"})
    for given, heads, words in ((weights, 4, "no 'h.1.ln_1.bias'"), (path("gpt2.run"), 3, "3 heads"),
                                (path("adapters.safetensors"), 1, "no GPT-2")):
        try:
            lockstep.gpt2(given, heads)
        except lockstep.Refused as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)


def states_go_from_step_to_step_and_load():
    """Also from one micro-batch to the next."""
    module, loss, batch = programs.make("averaged")
    fixed = module.fixed.clone()
    _, words, data, read = export("carried", module, loss, batch)
    assert int(module.seen) == 3 and float(module.mean.abs().max()) == 0, "export() changed buffers"
    _, state = run("carried", words, data, "--steps", "6", "--accumulate", "2", "--warmup", "0")
    audit, = ask("audit", path("carried.run"), *read)["audits"]
    assert audit["answer"] == "proven", audit
    assert lockstep.load(module, path("carried.run")) == []
    assert int(module.seen) == 3 + 2 * 6, module.seen
    assert module.seen.dtype == torch.int64 and module.seen.dim() == 0
    assert torch.equal(module.slow, state["slow"]) and torch.equal(module.fixed, fixed)


def held_out_data_are_looked_at_in_eval_mode():
    """Dropout and a batch norm are others there. Files may be named, in any order."""
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(),
                                 torch.nn.Dropout(0.3), torch.nn.Linear(16, 4))
    for one in module[0].parameters():
        one.requires_grad = False
    x, y = torch.randn(30, 8), torch.randint(0, 4, (30,))
    held = {"x": torch.randn(17, 8), "y": torch.randint(0, 4, (17,))}
    _, words, _, _ = export("eval", module, programs.classify, {"x": x[:6], "y": y[:6]})
    assert module.training and int(module[1].num_batches_tracked) == 0
    lockstep.save_rows(path("eval.x.npy"), x)
    lockstep.save_rows(path("eval.y.npy"), y)
    for key, rows in held.items():
        lockstep.save_rows(path("held.%s.npy" % key), rows)
    words = words[:words.index("--data")]
    named = ["--data", "y=" + path("eval.y.npy"), "--data", "x=" + path("eval.x.npy")]
    evals = ["--eval", "y=" + path("held.y.npy"), "--eval", "x=" + path("held.x.npy")]
    plain = ["--data", path("eval.x.npy"), "--data", path("eval.y.npy"), "--eval",
             path("held.x.npy"), "--eval", path("held.y.npy")]
    how = ["--steps", "6", "--segment-steps", "3", "--rate", "0.01", "--warmup", "0",
           "--eval-every", "3", "--accumulate", "2"]
    job = ask("job", "new", *words, *named, *evals, *how, "--out", path("eval.job"))
    assert job["id"] == ask("job", "new", *words, *plain, *how, "--out", path("plain.job"))["id"]
    given = named + ["--data", path("eval.safetensors"), "--data",
                     "held_out.x=" + path("held.x.npy"), "--data",
                     "held_out.y=" + path("held.y.npy")]
    ask("prover", "run", path("eval.job"), "--first-state", path("eval.safetensors"), *given,
        "--bundle", path("eval.run"))
    steps = ask("bundle", "steps", path("eval.run"))["steps"]
    assert [one["held_out_loss"] is not None for one in steps] == [False, False, True] * 2, steps
    audit, = ask("audit", path("eval.run"), *given)["audits"]
    assert audit["answer"] == "proven", audit
    assert set(lockstep.load(module, path("eval.run"))) == {"0.weight", "0.bias"}
    module.eval()
    with torch.no_grad():  # two whole batches of six
        wanted = float(sum(programs.classify(module, held["x"][at:at + 6], held["y"][at:at + 6])
                           for at in (0, 6)) / 2)
    assert abs(steps[-1]["held_out_loss"] - wanted) <= 1e-5 * wanted, (steps[-1], wanted)

    def refused(what, *more, wanted=3):
        said = call("job", "new", *words, *more, *how[:8], "--out", path("never.job"),
                    wanted=wanted).stderr.decode()
        assert what in said, said

    refused("name each input once", *named[:3], path("eval.x.npy"), *evals)
    refused("name each input once", *named[:2], *named[:2], *evals)
    refused("--eval names 1", *named, *evals[:2])
    refused("no 3 whole batches of 6", *named, *evals, "--eval-batches", "3")
    refused("says nothing without --eval", *named, "--eval-every", "2")
    lockstep.save_rows(path("short.x.npy"), held["x"][:5])
    lockstep.save_rows(path("short.y.npy"), held["y"][:5])
    refused("5 rows are no 1 whole batch of 6", *named, "--eval", "x=" + path("short.x.npy"),
            "--eval", "y=" + path("short.y.npy"))
    lockstep.save_rows(path("wide.y.npy"), held["y"] + 70000)
    refused("is of u32, and the data of 'y' of u8", *named, "--eval", evals[3], "--eval",
            "y=" + path("wide.y.npy"))
    lockstep.export(module.train(), programs.classify, {"x": x[:6], "y": y[:6]}, path("eval"),
                    evaluate=False)
    refused("does not say what held-out data cost", *named, *evals)


def states_are_strict():
    module, loss, batch = programs.make("averaged")
    _, words, _, _ = export("strict", module, loss, batch)
    with open(path("strict.graph"), encoding="ascii") as file:
        lines = file.read().split("\n")
    at = [i for i, line in enumerate(lines) if line.startswith("after ")]

    def refused(what, first, change):
        damaged = list(lines)
        damaged[first:first + 1] = change
        with open(path("strict.graph"), "w", encoding="ascii") as file:
            file.write("\n".join(damaged))
        said = call("job", "new", *words, "--out", path("strict.job"), wanted=1).stderr.decode()
        assert what in said, (what, said)

    first, second = lines[at[0]].split(" "), lines[at[1]].split(" ")
    refused("3 states, and 2 lines 'after'", at[0], [])
    refused("has its next value already", at[0], [lines[at[0]]] * 2)
    refused("'after' takes a state and a value", at[0], ["after " + first[1]])
    refused("is a call's, of its type and shape", at[0], ["after %s %s" % (first[1], second[2])])
    refused("is a call's, of its type and shape", at[0], ["after %s %s" % (first[1], first[1])])
    refused("is no state", at[0], ["after %0 " + first[2]])
    state = next(i for i, line in enumerate(lines) if " state mean " in line)
    refused("has an unknown type", state, [lines[state].replace(" f32 ", " f16 ")])
    refused("is declared twice", state, [lines[state].replace(" mean ", " slow ")])
    refused("a name of the job's own", state, [lines[state].replace(" mean ", " micro ")])
    refused("give one another name", state, [lines[state].replace(" mean ", " v.net.bias ")])
    wanted = next(i for i, line in enumerate(lines)
                  if line.startswith("expect %s " % lines[state].split(" ")[0]))
    words_of = lines[wanted].split(" ")
    refused("the next value of 'mean'", wanted, [" ".join(words_of[:2] + ["0x4000000000000000"] + words_of[3:])])


def one_value_is_next_of_one_state():
    module, loss, batch = programs.make("normed")
    _, words, _, _ = export("twice", module, loss, batch)
    with open(path("twice.graph"), encoding="ascii") as file:
        lines = file.read().split("\n")
    names = {line.split(" ")[0]: line.split(" ")[2] for line in lines if " state " in line}
    after = {names[line.split(" ")[1]]: i for i, line in enumerate(lines) if line.startswith("after ")}
    mean, var = after["1.running_mean"], after["1.running_var"]
    first, second = lines[mean].split(" "), lines[var].split(" ")
    assert mean < var, (mean, var)
    lines[var] = "after %s %s" % (second[1], first[2])
    with open(path("twice.graph"), "w", encoding="ascii") as file:
        file.write("\n".join(lines))
    said = call("job", "new", *words, "--out", path("twice.job"), wanted=1).stderr.decode()
    assert "one value is next of two states" in said, said


def a_first_step_that_is_not_pytorchs_is_refused():
    module, loss, batch = programs.make("gpt")
    _, words, _, _ = export("first", module, loss, batch)
    with open(path("first.graph"), encoding="ascii") as file:
        text = file.read()

    def job(changed, wanted, *more):
        assert changed != text or wanted == 0
        with open(path("first.graph"), "w", encoding="ascii") as file:
            file.write(changed)
        if os.path.exists(path("first.job")):
            os.remove(path("first.job"))
        done = call("job", "new", *words, "--out", path("first.job"), *more, wanted=wanted)
        return (done.stdout + done.stderr).decode()

    def expecting(number, change):
        """With the numbers of the line `expect` changed; the first one is the loss's."""
        lines = text.split("\n")
        at = [i for i, line in enumerate(lines) if line.startswith("expect ")][number]
        lines[at:at + 1] = change(lines[at].split(" "))
        return "\n".join(lines)

    said = job(text, 0)
    assert "first step   as PyTorch's: the loss within" in said and " of 0.0001, gradients" in said
    assert " of 0.02, gradients within" in job(text, 0, "--bits", "14")
    job(text, 0, "--bits", "14", "--calibrate", "step", "--freeze", "wte.*", "--accumulate", "2")
    coarse, = (line for line in text.split("\n") if line.startswith("expect bfloat16 "))
    much = text.replace(coarse, "expect bfloat16 0x4000000000000000")
    assert " of 0.5" in job(much, 0, "--bits", "14")  # half of it, and no more than a half
    assert " of 0.01" in job(much, 0)
    assert "two lines 'expect bfloat16'" in job(text + coarse + "\n", 1)
    assert "an error below 0" in job(text.replace(coarse, "expect bfloat16 0xbff0000000000000"), 1)
    job(expecting(0, lambda words: []), 0)  # as graphs were that did not say in which precision
    said = job(expecting(1, lambda words: [" ".join(words[:2] + ["0x4010000000000000"])]), 1)
    assert "its loss is" in said and "not 4" in said, said
    wte = [line.split(" ")[0] for line in text.split("\n") if " param wte.weight " in line][0]
    number = [line.split(" ")[1] for line in text.split("\n")
              if line.startswith("expect ")].index(wte)
    for word, what in (("f16", "may say f64 or f32"), ("f32\nexpect f32", "may say f64 or f32")):
        said = job(expecting(0, lambda words: ["expect " + word]), 1)
        assert what in said, said
    said = job(expecting(number, lambda words: [" ".join(words[:4] + words[5:] + words[4:5])]), 1)
    assert "gradient of 'wte.weight', first read at wte torch_programs.py:" in said, said
    said = job(expecting(number, lambda words: [" ".join(words[:2] + ["0x3ff0000000000000"] +
                                                         words[3:])]), 1)
    assert "gradient of 'wte.weight'" in said, said
    for was, other in ((" gelu ", " relu "), (" 0x3eb504f3 12 =", " 0x3f000000 12 =")):
        assert "the first step is not PyTorch's" in job(text.replace(was, other), 1), was
    said = job(expecting(2, lambda words: []), 1)
    assert "no line 'expect' says" in said, said
    said = job(expecting(2, lambda words: [" ".join(words)] * 2), 1)
    assert "two lines 'expect'" in said, said
    said = job(expecting(2, lambda words: [" ".join(words[:-1])]), 1)
    assert "'expect' takes the loss and a number" in said, said
    said = job(expecting(2, lambda words: [" ".join(words[:2] + ["0x7ff0000000000000"] +
                                                    words[3:])]), 1)
    assert "not finite" in said, said
    lockstep.export(module, loss, batch, path("first"), check=False)
    with open(path("first.graph"), encoding="ascii") as file:
        text = file.read()
    assert "expect" not in text
    assert "not checked" in job(text, 0)


def a_first_step_in_float32_is_said():
    """A program that does not run in float64 is compared with float32, and nobody is left to think
    otherwise: not who exports it, nor who reads the graph, makes the job, or is shown it."""
    module, loss, batch = programs.make("mlp")

    def insists(module, **batch):
        if any(rows.dtype == torch.float64 for rows in batch.values()):
            raise TypeError("rows of float32, please")
        return loss(module, **batch)

    for name, program, precision in (("wide", loss, "64"), ("narrow", insists, "32")):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            _, words, _, _ = export(name, module, program, batch)
        assert ["float32, please" in str(one.message) for one in told] == [True] * (
            precision == "32"), told
        with open(path(name + ".graph"), encoding="ascii") as file:
            assert "expect f%s\n" % precision in file.read()
        for bits, allowed in (("22", [1e-4, 1e-2, 1e-4]), ("14", [2e-2, 0.1, 2e-2])):
            job = path("%s.%s.job" % (name, bits))
            made = call("job", "new", *words, "--bits", bits, "--out", job).stdout.decode()
            shown = call("job", "show", job).stdout.decode()
            assert ("in float32, not in float64" in made, "in float32, not in float64" in shown) == (
                precision == "32",) * 2, (made, shown)
            assert "the loss may be %g off, gradients %g," % tuple(allowed[:2]) in shown, shown
            first = ask("job", "show", job)["first_step"]
            assert first == {"reference": "float" + precision, "allowed": dict(
                zip(("loss", "gradients", "states"), allowed))}, first


def detach_that_is_lost_is_refused():
    """The trap for which the check is there: below autograd nothing shows a detach()."""
    module, loss, batch = programs.make("stopped")
    _, words, _, _ = export("lost", module, loss, batch)
    with open(path("lost.graph"), encoding="ascii") as file:
        text = file.read()
    assert " stop " in text
    with open(path("lost.graph"), "w", encoding="ascii") as file:
        file.write("\n".join(line.replace(" stop ", " scale ").replace(" =", " 0x3f800000 =")
                             if " stop " in line else line for line in text.split("\n")))
    said = call("job", "new", *words, "--out", path("lost.job"), wanted=1).stderr.decode()
    assert "the first step is not PyTorch's" in said, said


def exported_decoders_have_the_operations_of_built_in_ones():
    """At most 1.1 times as many: attention, rotations, norms and losses are single lines again."""
    with open(path("tokens.u8"), "wb") as file:
        file.write(bytes(i * 7 % programs.LETTERS for i in range(4000)))
    size = ["--data", path("tokens.u8"), "--bits", "22", "--steps", "2", "--batch", "4", "--length",
            "12", "--vocabulary", str(programs.LETTERS), "--layers", "1", "--heads", "4", "--width",
            "32"]
    adapter = programs.Lora
    for name, model in (("gpt", ["--model", "gpt2", "--hidden", "64", "--positions", "16"]),
                        ("llama", ["--model", "llama", "--kv-heads", "2", "--hidden", "48"])):
        programs.Lora = lambda width, out: torch.nn.Linear(width, out, bias=False)
        try:
            module, loss, batch = programs.make(name)
        finally:
            programs.Lora = adapter
        _, words, _, _ = export("few." + name, module, loss, batch)
        ours = ask("job", "new", *words, "--steps", "2", "--out", path("few.job." + name))
        built_in = ask("job", "new", *size, *model, "--out", path("built.job." + name))
        count, wanted = (job["program"]["operations"] for job in (ours, built_in))
        print("# %s: %d operations, built in %d" % (name, count, wanted))
        assert count <= 1.1 * wanted, (name, count, wanted)


def what_has_no_line_is_refused():
    for name, (program, words) in programs.REFUSED.items():
        module, loss, batch = program()
        try:
            lockstep.export(module, loss, batch, path("refused"))
        except lockstep.Refused as error:
            assert "torch_programs.py:" in str(error) and words in str(error), (name, error)
        else:
            raise AssertionError("%s is exported" % name)


def names_that_a_job_gives_itself_are_refused():
    module, loss, batch = programs.clash()
    try:
        lockstep.export(module, loss, batch, path("clash"))
    except lockstep.Refused as error:
        assert "v.weight and weight" in str(error) and "rename the module 'v'" in str(error), error
    else:
        raise AssertionError("a parameter has the name of another's moment")
    module = torch.nn.Module()
    module.step = torch.nn.Parameter(torch.ones(3))
    try:
        lockstep.export(module, lambda module, x: (module.step * x).sum(), {"x": torch.ones(2, 3)},
                        path("clash"))
    except lockstep.Refused as error:
        assert "step: a name of the job's own" in str(error), error
    else:
        raise AssertionError("a parameter has the name of a counter")


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
    loss_line = next(i for i, line in enumerate(lines, 1) if line.startswith("loss "))
    refused(loss_line, [], "what follows the loss")
    kept = lines
    lines = lines[:loss_line - 1] + [""]
    refused(len(lines), [""], "ends without its loss")
    lines = kept
    with open(path("hostile.graph"), "w", encoding="ascii") as file:
        file.write("\n".join(lines))
    call("job", "new", *words, "--out", path("hostile.job"))
    said = call("job", "new", *words, "--batch", "3", "--out", path("hostile.job"), wanted=3)
    assert b"--batch" in said.stderr, said.stderr


if __name__ == "__main__":
    sys.exit(main([programs_are_those_of_pytorch, a_run_is_proved_and_loads,
                   adapters_are_added_to_the_weights_beside_them, a_gpt2_of_a_job_is_a_module,
                   states_go_from_step_to_step_and_load,
                   held_out_data_are_looked_at_in_eval_mode, states_are_strict,
                   one_value_is_next_of_one_state,
                   a_first_step_that_is_not_pytorchs_is_refused,
                   a_first_step_in_float32_is_said, detach_that_is_lost_is_refused,
                   exported_decoders_have_the_operations_of_built_in_ones,
                   what_has_no_line_is_refused, names_that_a_job_gives_itself_are_refused,
                   a_damaged_graph_is_refused_by_its_line]))
