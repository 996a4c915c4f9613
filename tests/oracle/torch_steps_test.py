"""Goal: a step without a loss becomes a job: its states are those of PyTorch after many steps, integers
to the last, draws are the job's, and all commands speak of steps and states. Method: a heat
equation, a game of life, a Monte Carlo estimate and a training step by hand, through
lockstep_torch.export_step(). Skipped where PyTorch is not installed."""

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

import lockstep_torch as lockstep  # noqa: E402
from program import ask, call, main, path  # noqa: E402

torch.set_num_threads(1)
F = torch.nn.functional


def laplace(u):
    return (torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1)
            - 4 * u)


def heat(state):
    """Two fields, of which one is the other's past: a wave under heat."""
    u, old = state["u"], state["old"]
    return {"u": 1.9 * u - 0.9 * old + 0.1 * laplace(u), "old": u, "time": state["time"] + 1}


def life(state):
    grid = state["grid"]
    around = F.conv2d(F.pad(grid[None, None].float(), (1, 1, 1, 1), mode="circular"),
                      torch.tensor([[[[1.0, 1, 1], [1, 0, 1], [1, 1, 1]]]]))[0, 0]
    lives = (around == 3) | ((around == 2) & (grid == 1))
    return {"grid": lives.to(grid.dtype), "births": state["births"] + (lives & (grid == 0)).sum()}


def pi(state):
    x, y = torch.rand(1000), torch.rand(1000)
    hits = (x * x + y * y <= 1).float().mean()
    return {"mean": state["mean"] + (hits - state["mean"]) / (state["count"] + 1),
            "count": state["count"] + 1}


def by_hand(state, x, y):
    """A training step with an optimizer of its own: signs of a momentum."""
    w = state["w"].detach().requires_grad_()
    loss = F.cross_entropy(torch.tanh(x @ w), y)
    slope, = torch.autograd.grad(loss, w)
    speed = 0.9 * state["speed"] + 0.1 * slope
    return {"w": (state["w"] - 0.01 * speed.sign()), "speed": speed}


def make(name):
    torch.manual_seed(1)
    return {"heat": (heat, {"u": torch.randn(12, 10), "old": torch.zeros(12, 10),
                            "time": torch.tensor(5)}),
            "life": (life, {"grid": torch.randint(0, 2, (16, 16)), "births": torch.tensor(0)}),
            "pi": (pi, {"mean": torch.tensor(0.0), "count": torch.tensor(0)}),
            "by_hand": (by_hand, {"w": torch.randn(8, 4) * 0.3, "speed": torch.zeros(8, 4)})}[name]


def run(name, steps, batch=None):
    function, state = make(name)
    lockstep.export_step(function, state, path(name), batch)
    data = []
    for key, rows in (batch or {}).items():
        lockstep.save_rows(path("%s.%s.npy" % (name, key)), rows)
        data += ["--data", path("%s.%s.npy" % (name, key))]
    with open(path(name + ".graph"), encoding="ascii") as file:
        frozen = ["--data", path(name + ".safetensors")] if " frozen " in file.read() else []
    given = ["--first-state", path(name + ".safetensors")]
    job = ask("job", "new", "--graph", path(name + ".graph"), *given, *data, "--steps", str(steps),
              "--segment-steps", "5", "--out", path(name + ".job"))
    assert job["first_step"]["loss"] is None and job["first_step"]["states"] <= 1e-6, job
    assert not job["facts"]["trains"] and job["facts"]["parameters"] == 0, job["facts"]
    ask("prover", "run", path(name + ".job"), *given, *data, *frozen, "--bundle",
        path(name + ".run"))
    audit, = ask("audit", path(name + ".run"), *data, *frozen)["audits"]
    assert audit["answer"] == "proven", audit
    return lockstep.load_state(state, path(name + ".run"))


def states_are_those_of_pytorch():
    function, state = make("heat")
    found = run("heat", 20)
    state = {key: one.double() if one.is_floating_point() else one for key, one in state.items()}
    for _ in range(20):
        state = function(state)
    apart = float((found["u"] - state["u"]).norm() / state["u"].norm())
    print("# heat: %.1e apart after 20 steps" % apart)
    assert apart <= 1e-5 and int(found["time"]) == 25, (apart, found["time"])
    assert found["time"].dtype == torch.int64 and found["time"].dim() == 0


def integers_are_exact():
    function, state = make("life")
    found = run("life", 20)
    for _ in range(20):
        state = function(state)
    assert torch.equal(found["grid"], state["grid"]) and found["grid"].dtype == torch.int64
    assert int(found["births"]) == int(state["births"]) > 0


def draws_are_the_jobs():
    """Each step draws its own numbers: the mean of 60000 points is closer than that of one step's would be."""
    found = run("pi", 60)
    assert int(found["count"]) == 60
    assert abs(4 * float(found["mean"]) - 3.14159265) < 0.025, found["mean"]
    text = call("job", "show", path("pi.job"), "--program").stdout.decode()
    assert "uniform" in text, text


def a_step_may_train_by_itself():
    torch.manual_seed(2)
    batch = {"x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}
    function, state = make("by_hand")
    found = run("by_hand", 10, batch)
    for _ in range(10):  # six rows, a batch of six: the order of the rows says nothing
        state = function({key: one.double() for key, one in state.items()},
                         batch["x"].double(), batch["y"])
    assert float((found["w"] - state["w"]).abs().max()) < 1e-5


def commands_speak_of_steps_and_states():
    shown = call("job", "show", path("heat.job")).stdout.decode()
    assert "numbers of states, and no loss" in shown and "parameters" not in shown, shown
    assert "\n  step  " in shown and "\n  loss  " not in shown, shown
    steps = call("bundle", "steps", path("heat.run")).stdout.decode()
    assert "loss" not in steps and "committing" in steps, steps
    ran = call("prover", "run", path("heat.job"), "--first-state", path("heat.safetensors"),
               "--bundle", path("again.run")).stdout.decode()
    assert "ran 20 of 20 steps\n" in ran and "loss" not in ran and "train" not in ran, ran
    call("audit", path("again.run"), "--report", path("audit.html"))
    with open(path("audit.html"), encoding="utf-8") as file:
        page = file.read()
    assert ">Loss<" not in page and "Time of a step" in page


def what_says_nothing_is_refused():
    words = ["--graph", path("heat.graph"), "--first-state", path("heat.safetensors"), "--out",
             path("refused.job")]
    for option in (["--rate", "0.1"], ["--optimizer", "sgd"], ["--accumulate", "2"],
                   ["--clip", "1"]):
        said = call("job", "new", *words, *option, wanted=3).stderr.decode()
        assert option[0] in said and "without a loss" in said, said

    def refused(function, what, **state):
        try:
            lockstep.export_step(function, state, path("refused"))
        except lockstep.Refused as error:
            assert what in str(error), error
        else:
            raise AssertionError("%s is exported" % what)

    refused(lambda state: {"a": state["a"][1:]}, "another shape", a=torch.zeros(3))
    refused(lambda state: {"b": state["a"]}, "names of the state", a=torch.zeros(3))
    refused(lambda state: {"a": state["a"] * 3}, "exact up to 2^24", a=torch.full((2,), 2 ** 23))
    refused(lambda state: {"a": torch.poisson(state["a"])}, "random numbers", a=torch.zeros(3))
    counted = []

    def changing(state):
        counted.append(1)
        return {"a": state["a"] + len(counted)}
    refused(changing, "it is run once more", a=torch.zeros(3))


if __name__ == "__main__":
    sys.exit(main([states_are_those_of_pytorch, integers_are_exact, draws_are_the_jobs,
                   a_step_may_train_by_itself, commands_speak_of_steps_and_states,
                   what_says_nothing_is_refused]))
