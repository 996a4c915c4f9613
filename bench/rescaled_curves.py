"""Trainings of a GPT with some channels 1,000 times larger, and the weights that read them so much
smaller: how far from float64 the losses are, ours beside operands in bfloat16.

make bench NAME=curves runs it; CURVES_STEPS makes it shorter. It needs
PyTorch. A random GPT-2 of three layers and width 64 in a folder, six channels in a hundred rescaled
behind each norm; all weights, and adapters of rank 8, are trained by the program (`job new --base`,
14 bits) and by tests/oracle/torch_decoder.py, in float64 and with the operands of all products, also
of the gradients, rounded to bfloat16. All take the same tokens; the adapters of the others begin as
ours are after step 0. "curve" is the mean distance of a step's loss, "end" that of the mean of the
last ten, both relative."""

import os
import shutil
import sys

os.environ.setdefault("TEST_LOCKSTEP", "build/lockstep")
sys.path[:0] = ["tests/support", "tests/oracle"]
sys.dont_write_bytecode = True

import torch  # noqa: E402

import torch_decoder as reference  # noqa: E402
from program import DATA, ask, folder as place, path  # noqa: E402

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
LENGTH, BATCH, RATE = 32, 4, 1e-5
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 64, "n_layer": 3,
          "n_head": 4, "n_positions": 64, "n_ctx": 64, "vocab_size": 256,
          "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
ADAPTED = "attn.c_attn"


class Rounded(torch.autograd.Function):
    """A product of operands in bfloat16, exactly summed; its gradients likewise."""

    @staticmethod
    def forward(context, a, b):
        a, b = a.bfloat16().double(), b.bfloat16().double()
        context.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(context, dy):
        a, b = context.saved_tensors
        dy = dy.bfloat16().double()
        da, db = dy @ b.transpose(-1, -2), a.transpose(-1, -2) @ dy
        while db.dim() > b.dim():  # one weight for all sequences
            db = db.sum(0)
        return da, db


def rescale(weights, by):
    generator = torch.Generator().manual_seed(11)
    for layer in range(CONFIG["n_layer"]):
        for norm, reader in (("ln_1", ADAPTED), ("ln_2", "mlp.c_fc")):
            large = torch.randperm(CONFIG["n_embd"], generator=generator)[:4]
            for end in (".weight", ".bias"):
                weights["h.%d.%s%s" % (layer, norm, end)][large] *= by
            weights["h.%d.%s.weight" % (layer, reader)][large, :] /= by


def ours(base, name, *more):
    job, bundle = path(name + ".job"), path(name + ".run")
    made = ask("job", "new", "--base", base, "--data", DATA, "--data-type", "u8", "--length", str(LENGTH), "--batch",
               str(BATCH), "--steps", str(STEPS), "--segment-steps", "1", "--rate", str(RATE),
               "--schedule", "constant", "--warmup", "0", "--beta2", "0.95", "--out", job, *more)
    given = ["--data", base] if "--lora" in more else ["--first-state", base]
    ask("prover", "run", job, "--data", DATA, *given, "--bundle", bundle)
    first = reference.read_safetensors(os.path.join(bundle, "checkpoints", "%012d.safetensors" % 1))
    return [step["loss"] for step in ask("bundle", "steps", bundle)["steps"]], first, made


def theirs(weights, product, first):
    """first: our state after step 0, for adapters; then step 0 is not run."""
    reference.product = product
    weights = {name: t.clone() for name, t in weights.items()}
    adapters, trained, moments = {}, weights, None
    if first is not None:
        modules = ["h.%d.%s" % (layer, ADAPTED) for layer in range(CONFIG["n_layer"])]
        adapters = {m: tuple(first[m + ".lora_%s.weight" % x].double() for x in "AB") + (2.0,)
                    for m in modules}
        trained = {"%s.%d" % (m, i): adapters[m][i] for m in modules for i in (0, 1)}
        moments = {"%s.%d" % (m, i): tuple(first["%s.%s.lora_%s.weight" % (kind, m, "AB"[i])].double()
                                           for kind in "mv") for m in modules for i in (0, 1)}
    begin = 0 if first is None else 1
    batches = [[reference.batch_of(TOKENS, LENGTH, BATCH, step)] for step in range(begin, STEPS)]
    losses = reference.train(reference.Decoder(CONFIG, weights, adapters), trained, batches,
                             [RATE] * len(batches), moments=moments)
    reference.product = torch.matmul
    return losses


def apart(losses, exact):
    curve = sum(abs(a - b) / b for a, b in zip(losses, exact)) / len(exact)
    return curve, abs(sum(losses[-10:]) / sum(exact[-10:]) - 1)


with open(DATA, "rb") as file:
    TOKENS = torch.tensor(list(file.read()))
failed = 0
for times in (1.0, 1000.0):
    drawn = reference.draw_weights(CONFIG, "F32")
    rescale(drawn, times)
    drawn = {name: t.float().double() for name, t in drawn.items()}
    base = path("base.%d" % times)
    reference.write_folder(base, CONFIG, drawn, "F32", 1, "transformer.")
    for what, more in (("all weights", ()), ("adapters", ("--lora", "8"))):
        mine, state, made = ours(base, "%d.%s" % (times, what[:3]), *more)
        state = state if more else None
        exact = theirs(drawn, torch.matmul, state)
        halves = theirs(drawn, Rounded.apply, state)
        (curve, end), (curve_16, end_16) = (apart(x[-len(exact):], exact) for x in (mine, halves))
        print("channels times %g, %s, %d steps: curve %.1e, bfloat16 %.1e; end %.1e, bfloat16 %.1e; "
              "%d shifted, %d of 22 bits" % (times, what, STEPS, curve, curve_16, end, end_16,
                                             len(made["precision"]["shifted"]),
                                             len(made["precision"]["wide"])), flush=True)
        failed |= curve > curve_16
shutil.rmtree(place)
sys.exit(failed)
