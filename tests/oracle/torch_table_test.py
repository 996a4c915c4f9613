"""Goal: programs of many kinds, as users write them, are PyTorch's when they are jobs: loss, gradients and
next states of the first step, in float64; and they run.
Method: torch_table.py, torch_table_models.py, _more, _steps and _strangers, each exported and made a job, which
compares; some are run and proven. Skipped where PyTorch is not installed."""

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
import torch_table as table  # noqa: E402
import torch_table_more as more  # noqa: E402
import torch_table_steps as steps  # noqa: E402
import torch_table_strangers as strangers  # noqa: E402
from program import ask, main, path  # noqa: E402

torch.set_num_threads(1)
LOSSES, STEPS = table.LOSSES + more.LOSSES + strangers.LOSSES, table.STEPS + steps.STEPS + strangers.STEPS
REFUSED = {**table.REFUSED, **more.REFUSED, **strangers.REFUSED}
PROVEN = ("bert", "graph", "vq_vae", "pinn", "lattice", "metropolis", "crf", "word2vec", "q_learning", "sandpile", "speech",
          "fno2d", "schroedinger")
MOST = {"loss": 1e-5, "gradients": 1e-4, "states": 1e-5}  # where ReLU and margins change over


def export(make):
    name = make.__name__
    torch.manual_seed(3)
    if make in STEPS:
        step, state, *batch = make()
        batch = batch[0] if batch else {}
        lockstep.export_step(step, state, path(name), batch=batch)
    else:
        module, loss, batch = make()
        lockstep.export(module, loss, batch, path(name))
    data = []
    for key, rows in batch.items():
        lockstep.save_rows(path("%s.%s.npy" % (name, key)), rows)
        data += ["--data", "%s=%s" % (key, path("%s.%s.npy" % (name, key)))]
    return data


def check(make):
    name = make.__name__
    data = export(make)
    weights = ["--first-state", path(name + ".safetensors")]
    found = ask("job", "new", "--graph", path(name + ".graph"), *weights, *data, "--steps", "4",
                "--segment-steps", "2", "--out", path(name + ".job"))["first_step"]
    reference = found.pop("reference")
    found.pop("allowed", None)
    print("# %-19s %s %s" % (name, reference, "  ".join("%s %.1e" % (key, one) for key, one in
                                                        found.items() if one is not None)))
    assert any(one is not None for one in found.values()), found
    assert all(one is None or one <= MOST[key] for key, one in found.items()), (name, found)
    if name not in PROVEN:
        return
    with open(path(name + ".graph"), encoding="ascii") as file:
        frozen = ["--data", path(name + ".safetensors")] if " frozen " in file.read() else []
    ask("prover", "run", path(name + ".job"), *weights, *data, *frozen, "--bundle", path(name + ".run"))
    audit, = ask("audit", path(name + ".run"), *data, *frozen)["audits"]
    assert audit["answer"] == "proven", (name, audit)


def trained_programs_are_pytorchs():
    for make in LOSSES:
        check(make)


def steps_without_a_loss_are_pytorchs():
    for make in STEPS:
        check(make)


def what_has_no_line_is_refused_with_the_users_line():
    for make, word in REFUSED.items():
        torch.manual_seed(3)
        module, loss, batch = make()
        try:
            lockstep.export(module, loss, batch, path(make.__name__))
        except lockstep.Refused as error:
            told = str(error)
        else:
            told = "exported"
        named = "torch_table" in told and ".py:" in told or "a parameter that the step" in told
        assert word in told and named, (make.__name__, told)
        assert not os.path.exists(path(make.__name__ + ".graph"))


def a_step_that_changes_a_parameter_is_refused():
    """BYOL's teacher: what is written past autograd is no state, and the job would not have it."""
    module = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)]).requires_grad_(True)
    module[1].requires_grad_(False)

    def loss(module, x):
        for mine, teachers in zip(module[0].parameters(), module[1].parameters()):
            teachers.data.mul_(0.9).add_(0.1 * mine.data)
        return (module[0](x) - module[1](x)).pow(2).mean()
    before = module[1].weight.clone()
    try:
        lockstep.export(module, loss, {"x": torch.randn(4, 3)}, path("changes"))
    except lockstep.Refused as error:
        assert "1.weight" in str(error) and "make it a buffer" in str(error), error
    else:
        raise AssertionError("exported")
    assert torch.equal(module[1].weight, before)


def a_gradient_that_is_nan_is_refused_with_a_way_out():
    module = torch.nn.Linear(6, 6)

    def loss(module, x):
        made = module(x)
        return torch.where(made > 0, made.sqrt(), made * 0).mean()
    try:
        lockstep.export(module, loss, {"x": torch.randn(8, 6)}, path("nan"))
    except lockstep.Refused as error:
        assert "gradient of weight" in str(error) or "gradient of bias" in str(error), error
        assert "torch.where(" in str(error), error
    else:
        raise AssertionError("exported")


if __name__ == "__main__":
    sys.exit(main([trained_programs_are_pytorchs, steps_without_a_loss_are_pytorchs,
                   what_has_no_line_is_refused_with_the_users_line,
                   a_step_that_changes_a_parameter_is_refused,
                   a_gradient_that_is_nan_is_refused_with_a_way_out]))
