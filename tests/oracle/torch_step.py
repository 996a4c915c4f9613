"""Takes the steps that step_test dumped in PyTorch, in float64. Prints TAP.

The models follow their published descriptions, gradients come from autograd, updates from
torch.optim. Only the numbers in the folder come from the engine.
"""

import math
import os
import sys

import torch
import torch.nn.functional as F

TEXT = "fixtures/text/village.u8"


class Case:
    def __init__(self, folder):
        self.folder = folder
        self.options = {}
        with open(os.path.join(folder, "options.txt"), encoding="ascii") as file:
            for line in file:
                key, value = line.strip().split("=")
                try:
                    self.options[key] = float(value) if "." in value or "e" in value else int(value)
                except ValueError:
                    self.options[key] = value

    def __getattr__(self, name):
        return self.options[name]

    def raw(self, name, dtype):
        with open(os.path.join(self.folder, name), "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=dtype)

    def real(self, name):
        return self.raw(name, torch.float32).double()

    def words(self, name):
        return self.raw(name, torch.int32).long()


def shapes_of(case):
    """Names and shapes of all parameters."""
    c = case
    if c.kind == "mlp":
        shapes, width = {}, c.side * c.side
        for layer in range(c.layers):
            shapes[f"layers.{layer}.weight"] = (c.hidden, width)
            shapes[f"layers.{layer}.bias"] = (c.hidden,)
            width = c.hidden
        return shapes | {"head.weight": (c.classes, width), "head.bias": (c.classes,)}
    if c.kind == "convnet":
        flat = (c.side // 4) ** 2 * 2 * c.hidden
        return {
            "conv.0.weight": (c.hidden, 9),
            "conv.0.bias": (c.hidden,),
            "conv.1.weight": (2 * c.hidden, 9 * c.hidden),
            "conv.1.bias": (2 * c.hidden,),
            "head.weight": (c.classes, flat),
            "head.bias": (c.classes,),
        }
    w = c.width
    if c.kind == "gpt2":
        shapes = {"wte.weight": (c.vocabulary, w), "wpe.weight": (-1, w)}
        for layer in range(c.layers):
            for name, rows, columns in (
                ("attn.c_attn", w, 3 * w),
                ("attn.c_proj", w, w),
                ("mlp.c_fc", w, 4 * w),
                ("mlp.c_proj", 4 * w, w),
            ):
                shapes[f"h.{layer}.{name}.weight"] = (rows, columns)
                shapes[f"h.{layer}.{name}.bias"] = (columns,)
            for name in ("ln_1", "ln_2"):
                shapes[f"h.{layer}.{name}.weight"] = (w,)
                shapes[f"h.{layer}.{name}.bias"] = (w,)
        return shapes | {"ln_f.weight": (w,), "ln_f.bias": (w,)}
    shapes = {"model.embed_tokens.weight": (c.vocabulary, w), "model.norm.weight": (w,)}
    narrow = w // c.heads * c.kv_heads
    for layer in range(c.layers):
        at = f"model.layers.{layer}."
        shapes |= {
            at + "input_layernorm.weight": (w,),
            at + "self_attn.q_proj.weight": (w, w),
            at + "self_attn.k_proj.weight": (narrow, w),
            at + "self_attn.v_proj.weight": (narrow, w),
            at + "self_attn.o_proj.weight": (w, w),
            at + "post_attention_layernorm.weight": (w,),
            at + "mlp.gate_proj.weight": (c.hidden, w),
            at + "mlp.up_proj.weight": (c.hidden, w),
            at + "mlp.down_proj.weight": (w, c.hidden),
        }
    return shapes | {"lm_head.weight": (c.vocabulary, w)}


def attention(q, k, v):
    """(batch, heads, time, d) each; causal."""
    time = q.shape[2]
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    mask = torch.ones(time, time, dtype=torch.bool).tril()
    y = scores.masked_fill(~mask, -math.inf).softmax(-1) @ v
    return y.transpose(1, 2).reshape(q.shape[0], time, -1)


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gpt2(case, p, tokens):
    w = case.width
    x = p["wte.weight"][tokens] + p["wpe.weight"][: case.length]
    for layer in range(case.layers):
        def part(name):
            return p[f"h.{layer}.{name}.weight"], p[f"h.{layer}.{name}.bias"]

        def linear(name, y):
            weight, bias = part(name)
            return y @ weight + bias

        y = F.layer_norm(x, (w,), *part("ln_1"), eps=1e-5)
        q, k, v = (heads_of(t, case.heads) for t in linear("attn.c_attn", y).split(w, dim=2))
        x = x + linear("attn.c_proj", attention(q, k, v))
        y = F.layer_norm(x, (w,), *part("ln_2"), eps=1e-5)
        x = x + linear("mlp.c_proj", gelu(linear("mlp.c_fc", y)))
    x = F.layer_norm(x, (w,), p["ln_f.weight"], p["ln_f.bias"], eps=1e-5)
    return x @ p["wte.weight"].T


def rms_norm(x, gain):
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * gain


def rotate(x):
    """As published Llama weights want it: x cos + rotate_half(x) sin, where the halves of a head
    are the pairs and pair j turns by time * 10000^(-2j/d)."""
    time, d = x.shape[2], x.shape[3]
    angles = torch.arange(time).double()[:, None] * 10000.0 ** (
        -torch.arange(0, d, 2).double() / d
    )
    angles = torch.cat((angles, angles), dim=-1)
    half = torch.cat((-x[..., d // 2:], x[..., : d // 2]), dim=-1)
    return x * angles.cos() + half * angles.sin()


def llama(case, p, tokens):
    x = p["model.embed_tokens.weight"][tokens]
    group = case.heads // case.kv_heads
    for layer in range(case.layers):
        def weight(name):
            return p[f"model.layers.{layer}.{name}.weight"]

        y = rms_norm(x, weight("input_layernorm"))
        q = rotate(heads_of(y @ weight("self_attn.q_proj").T, case.heads))
        k = rotate(heads_of(y @ weight("self_attn.k_proj").T, case.kv_heads))
        v = heads_of(y @ weight("self_attn.v_proj").T, case.kv_heads)
        k, v = (t.repeat_interleave(group, dim=1) for t in (k, v))
        x = x + attention(q, k, v) @ weight("self_attn.o_proj").T
        y = rms_norm(x, weight("post_attention_layernorm"))
        gate = F.silu(y @ weight("mlp.gate_proj").T) * (y @ weight("mlp.up_proj").T)
        x = x + gate @ weight("mlp.down_proj").T
    return rms_norm(x, p["model.norm.weight"]) @ p["lm_head.weight"].T


def mlp(case, p, x):
    for layer in range(case.layers):
        x = F.relu(F.linear(x, p[f"layers.{layer}.weight"], p[f"layers.{layer}.bias"]))
    return F.linear(x, p["head.weight"], p["head.bias"])


def convnet(case, p, x):
    x = x.view(case.batch, 1, case.side, case.side)

    def convolve(x, name):
        weight = p[name + ".weight"]
        kernel = weight.view(weight.shape[0], 3, 3, -1).permute(0, 3, 1, 2)
        return F.relu(F.conv2d(x, kernel, p[name + ".bias"], padding=1))

    x = F.max_pool2d(convolve(x, "conv.0"), 2)
    x = F.avg_pool2d(convolve(x, "conv.1"), 2)
    return F.linear(x.permute(0, 2, 3, 1).flatten(1), p["head.weight"], p["head.bias"])


def update(case, parameters):
    """Clips, then takes torch.optim's step from the dumped moments; returns the new moments."""
    norm = math.sqrt(sum(float((t.grad**2).sum()) for t in parameters.values()))
    if case.clip > 0 and norm > case.clip:
        for t in parameters.values():
            t.grad *= case.clip / norm
    matrices = [t for t in parameters.values() if t.dim() > 1]
    vectors = [t for t in parameters.values() if t.dim() == 1]
    groups = [
        {"params": matrices, "weight_decay": case.decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    moments = {}
    if case.optimizer == "sgd":
        optimizer = torch.optim.SGD(groups, lr=case.rate, momentum=case.momentum)
        for name, t in parameters.items():
            moments["v." + name] = case.real(f"v.{name}.before").view_as(t)
            optimizer.state[t]["momentum_buffer"] = moments["v." + name]
    else:
        optimizer = torch.optim.AdamW(
            groups, lr=case.rate, betas=(case.beta1, case.beta2), eps=case.epsilon
        )
        for name, t in parameters.items():
            moments["m." + name] = case.real(f"m.{name}.before").view_as(t)
            moments["v." + name] = case.real(f"v.{name}.before").view_as(t)
            optimizer.state[t] = {
                "step": torch.tensor(float(case.step)),
                "exp_avg": moments["m." + name],
                "exp_avg_sq": moments["v." + name],
            }
    optimizer.step()
    return moments


def check_batch(case, tokens, targets):
    """Every sequence is a piece of the text, and the targets are one ahead."""
    with open(TEXT, "rb") as file:
        text = file.read()
    for row, ahead in zip(tokens.tolist(), targets.tolist()):
        if row[1:] != ahead[:-1] or bytes(row + ahead[-1:]) not in text:
            return "a batch that is not in the text"
    return None


def compare(case, parameters, before, moments, loss):
    engine_loss = float(case.real("loss.bin"))
    if not abs(engine_loss - loss) <= case.loss_within * loss:
        return f"loss {engine_loss}, PyTorch {loss}"
    for name, moment in moments.items():
        ours = case.real(name + ".after").view_as(moment)
        apart = float((ours - moment).norm() / moment.norm())
        if not apart <= case.moment_within:
            return f"{name} is {apart:.3g} away"
    apart = moved = 0.0
    for name, t in parameters.items():
        apart += float((case.real(name + ".after").view_as(t) - t).pow(2).sum())
        moved += float((t - before[name]).pow(2).sum())
    if not math.sqrt(apart / moved) <= case.update_within:
        return f"the parameters are {math.sqrt(apart / moved):.3g} of their way apart"
    return None


def check(case):
    before = {n: case.real(n + ".before").view(s) for n, s in shapes_of(case).items()}
    parameters = {n: t.clone().requires_grad_() for n, t in before.items()}
    if case.kind in ("gpt2", "llama"):
        batch = case.words("batch.bin").view(case.batch, case.length)
        targets = case.words("targets.bin").view(case.batch, case.length)
        wrong = check_batch(case, batch, targets)
        if wrong:
            return wrong
    else:
        batch = case.real("batch.bin").view(case.batch, -1)
        targets = case.words("targets.bin")
    logits = {"mlp": mlp, "convnet": convnet, "gpt2": gpt2, "llama": llama}[case.kind](
        case, parameters, batch
    )
    loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
    loss.backward()
    moments = update(case, parameters)
    with torch.no_grad():
        return compare(case, parameters, before, moments, float(loss))


def main(folder):
    names = sorted(os.listdir(folder))
    print(f"1..{len(names)}")
    failures = 0
    for number, name in enumerate(names, 1):
        wrong = check(Case(os.path.join(folder, name)))
        failures += wrong is not None
        print(f"{'not ' if wrong else ''}ok {number} - PyTorch agrees on {name}")
        if wrong:
            print(f"# {wrong}")
    return 1 if failures else 0


sys.exit(main(sys.argv[1]))
