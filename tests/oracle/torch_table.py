"""Programs as users write them, small: what docs/PYTORCH.md says it covers, tried on many. Each function
gives a module, a loss and a batch, or a step and its state. Not a test."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def pictures(count=4, size=16, channels=3):
    return torch.randn(count, channels, size, size)


def classify(module, x, y):
    return F.cross_entropy(module(x), y)


# -- models

class Bert(nn.Module):
    def __init__(self, vocabulary=40, width=24, heads=3, length=10):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.places = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.heads = heads
        self.register_buffer("position_ids", torch.arange(length).unsqueeze(0))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, ids):
        hidden = self.norm(self.words(ids) + self.places(self.position_ids[:, :ids.shape[1]]))
        mask = (ids == 0)[:, None, None, :] * -10000.0
        scores = self.split(self.query(hidden)) @ self.split(self.key(hidden)).transpose(-1, -2)
        shares = (scores / math.sqrt(8) + mask).softmax(-1)
        mixed = (shares @ self.split(self.value(hidden))).permute(0, 2, 1, 3).contiguous().view_as(hidden)
        hidden = self.norms[0](hidden + self.out(mixed))
        hidden = self.norms[1](hidden + self.down(F.gelu(self.up(hidden))))
        return hidden @ self.words.weight.T + self.bias


def bert():
    ids = torch.randint(1, 40, (4, 10))
    ids[0, 7:] = 0
    ids[2, 4:] = 0
    labels = torch.where(torch.rand(4, 10) < 0.3, ids, torch.full_like(ids, -100))
    labels[ids == 0] = -100
    labels[1, 1] = ids[1, 1]

    def loss(module, ids, labels):
        return F.cross_entropy(module(ids).view(-1, 40), labels.view(-1), ignore_index=-100)
    return Bert(), loss, {"ids": ids, "labels": labels}


class BasicBlock(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.shortcut = nn.Sequential()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False),
                                          nn.BatchNorm2d(outer))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


def resnet():
    module = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                           BasicBlock(8, 8, 1), BasicBlock(8, 16, 2), nn.AdaptiveAvgPool2d(1),
                           nn.Flatten(), nn.Linear(16, 10))
    return module, classify, {"x": pictures(8), "y": torch.randint(0, 10, (8,))}


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.GroupNorm(2, 6), nn.SiLU())
        self.two = nn.Sequential(nn.Conv2d(6, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.SiLU())
        self.up = nn.ConvTranspose2d(12, 6, 2, stride=2)
        self.last = nn.Sequential(nn.Conv2d(12, 6, 3, padding=1), nn.SiLU(), nn.Conv2d(6, 1, 1))

    def forward(self, x):
        one = self.one(x)
        two = self.two(F.avg_pool2d(one, 2))
        return self.last(torch.cat([self.up(two), one], dim=1))


def unet():
    def loss(module, x, y):
        return F.binary_cross_entropy_with_logits(module(x), y)
    return UNet(), loss, {"x": pictures(4, 12, 1), "y": (torch.rand(4, 1, 12, 12) > 0.5).float()}


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 12)
        self.gru = nn.GRU(12, 10, batch_first=True, bidirectional=True)
        self.head = nn.Linear(20, 5)

    def forward(self, x):
        return self.head(self.gru(self.words(x))[0])


def gru():
    def loss(module, x, y):
        return F.cross_entropy(module(x).transpose(1, 2), y)
    return Tagger(), loss, {"x": torch.randint(0, 30, (4, 7)), "y": torch.randint(0, 5, (4, 7))}


class Mixer(nn.Module):
    def __init__(self, places=16, width=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.across = nn.Sequential(nn.Linear(places, 20), nn.GELU(), nn.Linear(20, places))
        self.along = nn.Sequential(nn.Linear(width, 20), nn.GELU(), nn.Linear(20, width))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        x = x + self.along(self.norms[1](x))
        return self.head(x.mean(dim=1))


def mixer():
    return Mixer(), classify, {"x": pictures(), "y": torch.randint(0, 10, (4,))}


class Experts(nn.Module):
    def __init__(self, width=8, count=4):
        super().__init__()
        self.gate = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 16), nn.SiLU(), nn.Linear(16, width))
                                     for _ in range(count))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        shares = F.softmax(self.gate(x), dim=-1)
        weights, chosen = torch.topk(shares, 2, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            weight = (weights * (chosen == number)).sum(dim=-1, keepdim=True)
            out = out + weight * expert(x)
        return self.head(out)


def experts():
    return Experts(), classify, {"x": torch.randn(16, 8), "y": torch.randint(0, 3, (16,))}


class Graph(nn.Module):
    """Messages along edges, added up where they arrive."""

    def __init__(self, width=6):
        super().__init__()
        self.message, self.own = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("edges", torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 2, 4]]))

    def forward(self, x):
        source, target = self.edges
        sent = torch.relu(self.message(x[:, source]))
        got = torch.zeros_like(x).index_add(1, target, sent)
        return torch.tanh(self.own(x) + got)


def graph():
    def loss(module, x, y):
        return (module(module(x)).sum(dim=-1) - y).abs().mean()
    return Graph(), loss, {"x": torch.randn(8, 5, 6), "y": torch.randn(8, 5)}


# -- losses

def net(inner=8, outer=4):
    return nn.Sequential(nn.Linear(inner, 16), nn.Tanh(), nn.Linear(16, outer))


def focal():
    def loss(module, x, y):
        ce = F.cross_entropy(module(x), y, reduction="none")
        pt = torch.exp(-ce)
        return (0.25 * (1 - pt) ** 2 * ce).mean()
    return net(), loss, {"x": torch.randn(16, 8), "y": torch.randint(0, 4, (16,))}


def info_nce():
    def loss(module, x, y):
        a, b = F.normalize(module(x), dim=-1), F.normalize(module(y), dim=-1)
        logits = a @ b.t() / 0.07
        labels = torch.arange(len(a))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
    return net(), loss, {"x": torch.randn(12, 8), "y": torch.randn(12, 8)}


class Pair(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.pupil, self.teacher = make(), make()
        self.teacher.requires_grad_(False)


def dpo():
    def logp(model, x, y):
        return F.log_softmax(model(x), dim=-1).gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def loss(module, x, chosen, rejected):
        with torch.no_grad():
            reference = logp(module.teacher, x, chosen) - logp(module.teacher, x, rejected)
        margin = logp(module.pupil, x, chosen) - logp(module.pupil, x, rejected)
        return -F.logsigmoid(0.1 * (margin - reference)).mean()
    return Pair(net), loss, {"x": torch.randn(16, 8), "chosen": torch.randint(0, 4, (16,)),
                             "rejected": torch.randint(0, 4, (16,))}


def distillation():
    def loss(module, x, y):
        logits = module.pupil(x)
        with torch.no_grad():
            soft = F.softmax(module.teacher(x) / 2.0, dim=-1)
        kl = F.kl_div(F.log_softmax(logits / 2.0, dim=-1), soft, reduction="batchmean") * 4.0
        return 0.5 * kl + 0.5 * F.cross_entropy(logits, y)
    return Pair(net), loss, {"x": torch.randn(16, 8), "y": torch.randint(0, 4, (16,))}


class VqVae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 4), nn.Linear(4, 8)
        self.codes = nn.Embedding(6, 4)


def vq_vae():
    def loss(module, x):
        z = module.encoder(x)
        far = z.pow(2).sum(1, keepdim=True) - 2 * z @ module.codes.weight.t() + \
            module.codes.weight.pow(2).sum(1)
        q = module.codes(far.argmin(dim=1))
        commitment = F.mse_loss(z, q.detach()) * 0.25 + F.mse_loss(q, z.detach())
        q = z + (q - z).detach()
        return F.mse_loss(module.decoder(q), x) + commitment
    return VqVae(), loss, {"x": torch.randn(16, 8)}


def pinn():
    def loss(module, at):
        x = at.detach().clone().requires_grad_()
        u = module(x)
        slope, = torch.autograd.grad(u.sum(), x, create_graph=True)
        bend, = torch.autograd.grad(slope.sum(), x, create_graph=True)
        return (bend + u * slope - torch.cos(at)).pow(2).mean() + module(torch.zeros(1, 1)).pow(2).sum()
    return net(1, 1), loss, {"at": torch.rand(16, 1)}


def vae():
    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(8, 6), nn.Linear(3, 8)

    def loss(module, x, noise):
        mean, log_variance = module.encoder(x).chunk(2, dim=-1)
        z = mean + noise * torch.exp(0.5 * log_variance)
        kl = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp(), dim=-1)
        return (F.mse_loss(module.decoder(z), x, reduction="none").sum(-1) + kl).mean()
    return Vae(), loss, {"x": torch.randn(16, 8), "noise": torch.randn(16, 3)}


def policy():
    """PPO's clipped objective with a value and an entropy."""
    def loss(module, x, action, old, advantage, target):
        out = module(x)
        logits, value = out[:, :3], out[:, 3]
        logp = F.log_softmax(logits, dim=-1)
        ratio = torch.exp(logp.gather(1, action[:, None]).squeeze(1) - old)
        gain = torch.min(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage).mean()
        entropy = -(logp.exp() * logp).sum(-1).mean()
        return -gain + 0.5 * F.smooth_l1_loss(value, target) - 0.01 * entropy
    return net(), loss, {"x": torch.randn(16, 8), "action": torch.randint(0, 3, (16,)),
                         "old": -torch.rand(16) - 0.5, "advantage": torch.randn(16),
                         "target": torch.randn(16)}


def diffusion():
    def loss(module, x, noise, t):
        alpha = torch.cos(t * math.pi / 2) ** 2
        seen = alpha.sqrt() * x + (1 - alpha).sqrt() * noise
        return F.mse_loss(module(torch.cat([seen, t], dim=1)), noise)
    return net(9, 8), loss, {"x": torch.randn(16, 8), "noise": torch.randn(16, 8),
                             "t": 0.05 + 0.9 * torch.rand(16, 1)}


def triplet():
    def loss(module, a, p, n):
        return F.triplet_margin_loss(module(a), module(p), module(n), margin=1.0)
    return net(), loss, {name: torch.randn(12, 8) for name in "apn"}


def siren():
    class Sine(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.linear = nn.Linear(inner, outer)

        def forward(self, x):
            return torch.sin(3.0 * self.linear(x))

    def loss(module, at, colour):
        return ((module(at) - colour) ** 2).mean()
    return nn.Sequential(Sine(2, 16), Sine(16, 16), nn.Linear(16, 3)), loss, {
        "at": torch.rand(32, 2), "colour": torch.rand(32, 3)}


# -- steps without a loss

def wave():
    def step(state):
        u, before = state["u"], state["before"]
        bend = torch.roll(u, 1) + torch.roll(u, -1) - 2 * u
        return {"u": 2 * u - before + 0.25 * bend, "before": u}
    u = torch.exp(-((torch.arange(64.0) - 32) / 5) ** 2)
    return step, {"u": u, "before": u.clone()}


def bodies():
    def step(state):
        x, v, m = state["x"], state["v"], state["m"]
        apart = x[None, :, :] - x[:, None, :]
        far = (apart.pow(2).sum(-1) + 0.01) ** -1.5
        v = v + 0.01 * (apart * (far * m[None, :])[..., None]).sum(1)
        return {"x": x + 0.01 * v, "v": v, "m": m}
    return step, {"x": torch.randn(6, 2), "v": torch.zeros(6, 2), "m": torch.rand(6) + 0.5}


def lattice():
    """Lattice Boltzmann in one dimension: three speeds."""
    weights = torch.tensor([2 / 3, 1 / 6, 1 / 6])
    speeds = torch.tensor([0.0, 1.0, -1.0])

    def step(state):
        f = state["f"]
        rho = f.sum(0)
        u = (f * speeds[:, None]).sum(0) / rho
        cu = speeds[:, None] * u
        rest = weights[:, None] * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * u * u)
        f = f + 0.6 * (rest - f)
        return {"f": torch.stack([torch.roll(f[i], int(speeds[i])) for i in range(3)])}
    return step, {"f": weights[:, None] * (1 + 0.1 * torch.rand(1, 32))}


def life():
    def step(state):
        cells = state["cells"]
        around = sum(torch.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)
                     if (i, j) != (0, 0))
        alive = (around == 3) | ((cells == 1) & (around == 2))
        return {"cells": alive.float()}
    return step, {"cells": (torch.rand(16, 16) < 0.4).float()}


def pagerank():
    links = (torch.rand(12, 12) < 0.3).float() + torch.eye(12)
    links = links / links.sum(0, keepdim=True)

    def step(state):
        return {"rank": 0.15 / 12 + 0.85 * (links @ state["rank"])}
    return step, {"rank": torch.full((12,), 1 / 12)}


def adagrad():
    """A training step with an optimizer of one's own, written by hand."""
    x, y = torch.randn(32, 4), torch.randn(32, 1)

    def step(state):
        w = state["w"]
        gradient = 2 * x.T @ (x @ w - y) / 32
        sums = state["sums"] + gradient ** 2
        return {"w": w - 0.1 * gradient / (sums.sqrt() + 1e-8), "sums": sums}
    return step, {"w": torch.zeros(4, 1), "sums": torch.zeros(4, 1)}


def metropolis():
    """A walk over a normal law: draws, and a choice by comparison."""
    def step(state):
        x = state["x"]
        new = x + torch.randn(64)
        take = torch.rand(64) < torch.exp(torch.clamp((x * x - new * new) / 2, max=0.0))
        return {"x": torch.where(take, new, x), "sum": state["sum"] + (x * x).mean()}
    return step, {"x": torch.zeros(64), "sum": torch.tensor(0.0)}


# -- and more, as people write them

class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.maker = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8))
        self.judge = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))


def gan():
    def loss(module, z, x):
        fake = module.maker(z)
        judged = F.softplus(-module.judge(x)).mean() + F.softplus(module.judge(fake.detach())).mean()
        return judged + F.softplus(-module.judge(fake)).mean()
    return Gan(), loss, {"z": torch.randn(16, 4), "x": torch.randn(16, 8)}


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x, pad):
        return self.head(self.attention(x, x, x, key_padding_mask=pad, need_weights=False)[0].mean(1))


def padded_attention():
    def loss(module, x, pad, y):
        return F.cross_entropy(module(x, pad > 0.5), y)
    pad = torch.zeros(4, 6)
    pad[1, 4:] = 1
    return Pooled(), loss, {"x": torch.randn(4, 6, 16), "pad": pad, "y": torch.randint(0, 3, (4,))}


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 8, 1)
        self.gates = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=by) for by in (1, 2, 4))
        self.last = nn.Conv1d(8, 1, 1)

    def forward(self, x):
        x = self.first(x)
        for i, gate in enumerate(self.gates):
            a, b = gate(F.pad(x, (2 ** i, 0))).chunk(2, 1)
            x = x + torch.tanh(a) * torch.sigmoid(b)
        return self.last(x)


def wavenet():
    def loss(module, x, y):
        return F.l1_loss(module(x), y)
    return Waves(), loss, {"x": torch.randn(4, 1, 20), "y": torch.randn(4, 1, 20)}


def separable():
    module = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.Conv2d(4, 8, 1), nn.Hardswish(),
                           nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
    return module, classify, {"x": pictures(4, 8, 4), "y": torch.randint(0, 3, (4,))}


class Squeezed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.slope = nn.Conv2d(3, 8, 3, padding=1), nn.PReLU()
        self.down, self.up, self.head = nn.Linear(8, 2), nn.Linear(2, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.slope(self.conv(x))
        shares = torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3))))))
        return self.head(F.max_pool2d(x * shares[:, :, None, None], 2).amax((2, 3)))


def squeeze_excite():
    return Squeezed(), classify, {"x": pictures(4, 8), "y": torch.randint(0, 3, (4,))}


class Einsum(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Parameter(0.3 * torch.randn(2, 8, 4)) for _ in range(3))

    def forward(self, x):
        q, k, v = (torch.einsum("bnd,hde->bhne", x, one) for one in (self.query, self.key, self.value))
        shares = torch.softmax(torch.einsum("bhne,bhme->bhnm", q, k) / 2, -1)
        return torch.einsum("bhnm,bhme->bnhe", shares, v).flatten(2)


def einsum():
    def loss(module, x):
        return (module(x) - x).pow(2).mean()
    return Einsum(), loss, {"x": torch.randn(3, 5, 8)}


def class_weights():
    weights = torch.tensor([1.0, 2.0, 0.5])

    def loss(module, x, y):
        out = module(x)
        return F.cross_entropy(out, y, weight=weights, label_smoothing=0.1) + \
            F.cross_entropy(out, y, weight=weights, ignore_index=1)
    return nn.Linear(6, 3), loss, {"x": torch.randn(12, 6), "y": torch.randint(0, 3, (12,))}


def larger_pictures():
    module = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1),
                           nn.PixelShuffle(2), nn.Upsample(scale_factor=2, mode="nearest"))

    def loss(module, x, y):
        return F.smooth_l1_loss(F.pixel_unshuffle(module(x), 2), y)
    return module, loss, {"x": pictures(4, 6, 1), "y": pictures(4, 12, 4)}


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(20, 8, mode="mean"), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.words(x))


def bags():
    return Bags(), classify, {"x": torch.randint(0, 20, (6, 5)), "y": torch.randint(0, 2, (6,))}


class PaddedWords(nn.Module):
    """The row of the padding is read by what counts, and learns nothing."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 2)
        nn.init.normal_(self.words.weight)

    def forward(self, x):
        return self.head(torch.tanh(self.words(x)).mean(1))


def padded_words():
    x = torch.randint(1, 20, (6, 5))
    x[:, 3:] = 0
    return PaddedWords(), classify, {"x": x, "y": torch.randint(0, 2, (6,))}


class Translator(nn.Module):
    """nn.Transformer with its own causal mask of -inf, and places of sines."""

    def __init__(self, width=16):
        super().__init__()
        self.words, self.head = nn.Embedding(20, width), nn.Linear(width, 20)
        at = torch.arange(10)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        self.register_buffer("places", torch.stack([at.sin(), at.cos()], -1).flatten(1))
        self.core = nn.Transformer(width, 2, 1, 1, 32, dropout=0.0, batch_first=True)

    def forward(self, a, b):
        mask = nn.Transformer.generate_square_subsequent_mask(b.shape[1])
        return self.head(self.core(self.words(a) + self.places[:a.shape[1]],
                                   self.words(b) + self.places[:b.shape[1]], tgt_mask=mask))


def translator():
    def loss(module, a, b):
        return F.cross_entropy(module(a, b[:, :-1]).reshape(-1, 20), b[:, 1:].reshape(-1))
    return Translator(), loss, {"a": torch.randint(0, 20, (3, 7)), "b": torch.randint(0, 20, (3, 6))}


def other_norms():
    module = nn.Sequential(nn.Conv1d(3, 6, 3, padding=1), nn.BatchNorm1d(6), nn.ELU(),
                           nn.InstanceNorm1d(6, affine=True), nn.Flatten(),
                           nn.utils.weight_norm(nn.Linear(48, 8)), nn.Mish(), nn.Linear(8, 3))
    return module, classify, {"x": torch.randn(4, 3, 8), "y": torch.randint(0, 3, (4,))}


class LinearAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        q, k, v = F.elu(self.query(x)) + 1, F.elu(self.key(x)) + 1, self.value(x)
        both, keys = torch.cumsum(k[..., :, None] * v[..., None, :], 1), torch.cumsum(k, 1)
        return (q[..., None, :] @ both).squeeze(-2) / (q * keys).sum(-1, keepdim=True)


def linear_attention():
    def loss(module, x):
        return (module(x) - x).pow(2).mean()
    return LinearAttention(), loss, {"x": torch.randn(3, 5, 8)}


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(4, 6), nn.Linear(6, 1)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 6)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return self.head(h).squeeze(-1)


def lstm_cells():
    def loss(module, x, y):
        return F.mse_loss(module(x), y)
    return Cells(), loss, {"x": torch.randn(5, 6, 4), "y": torch.randn(5)}


def neural_ode():
    def loss(module, x, y):
        for _ in range(5):
            slope = module(x)
            x = x + 0.1 * module(x + 0.05 * slope)
        return (x - y).norm(dim=1).mean()
    return net(2, 2), loss, {"x": torch.randn(8, 2), "y": torch.randn(8, 2)}


def sinkhorn():
    def loss(module, x, y):
        cost = torch.cdist(module(x), module(y)) ** 2
        u, v = torch.zeros(6), torch.zeros(6)
        for _ in range(4):
            u = -torch.logsumexp(v[None, :] - cost, 1)
            v = -torch.logsumexp(u[:, None] - cost, 0)
        return (torch.exp(u[:, None] + v[None, :] - cost) * cost).sum()
    return nn.Linear(3, 2), loss, {"x": torch.randn(6, 3), "y": torch.randn(6, 3)}


def quantiles():
    def loss(module, x, y):
        error, at = y - module(x), torch.tensor([0.1, 0.5, 0.9])
        return torch.maximum(at * error, (at - 1) * error).mean()
    return nn.Linear(4, 3), loss, {"x": torch.randn(16, 4), "y": torch.randn(16, 1)}


def cosines():
    def loss(module, a, b, y):
        return F.cosine_embedding_loss(module(a), module(b), torch.where(y > 0, 1.0, -1.0)) + \
            F.huber_loss(module(a).sum(1), y)
    return nn.Linear(5, 4), loss, {"a": torch.randn(8, 5), "b": torch.randn(8, 5), "y": torch.randn(8)}


def spread():
    class Centres(nn.Module):
        def __init__(self):
            super().__init__()
            self.at = nn.Parameter(torch.randn(3, 2))

    def loss(module, x):
        far = ((x[:, None] - module.at[None]) ** 2).sum(-1)
        return far.min(1).values.mean() + 0.01 * torch.var(far) + torch.std(far, dim=1).mean()
    return Centres(), loss, {"x": torch.randn(12, 2)}


def triangles():
    def loss(module, x):
        lower = torch.tril(module(x).reshape(-1, 4, 4)) + 2 * torch.eye(4)
        return torch.diagonal(lower @ lower.transpose(1, 2), dim1=1, dim2=2).log().sum(-1).mean()
    return nn.Linear(5, 16), loss, {"x": torch.randn(6, 5)}


def dice():
    def loss(module, x, y):
        p, axes = torch.sigmoid(module(x)), (1, 2, 3)
        return 1 - (2 * (p * y).sum(axes) + 1).div(p.sum(axes) + y.sum(axes) + 1).mean()
    return nn.Conv2d(1, 1, 3, padding=1), loss, {"x": pictures(3, 6, 1),
                                                 "y": (torch.rand(3, 1, 6, 6) > 0.5).float()}


class Centred(nn.Module):
    """A pupil, and a teacher that follows it."""

    def __init__(self):
        super().__init__()
        self.pupil = nn.Linear(4, 4)
        self.register_buffer("teacher", torch.zeros(4, 4))
        self.register_buffer("centre", torch.zeros(4))


def self_distillation():
    def loss(module, x):
        out = module.pupil(x)
        with torch.no_grad():
            told = x @ module.teacher.T
            module.centre.mul_(0.9).add_(0.1 * told.mean(0))
            module.teacher.mul_(0.99).add_(0.01 * module.pupil.weight)
        shares = F.softmax((told - module.centre) / 0.1, -1)
        return -(shares * F.log_softmax(out, -1)).sum(-1).mean()
    return Centred(), loss, {"x": torch.randn(6, 4)}


def gumbel():
    def loss(module, x):
        return F.gumbel_softmax(module(x)).pow(2).mean()
    return nn.Linear(4, 4), loss, {"x": torch.randn(3, 4)}


def between_pixels():
    def loss(module, x):
        return F.interpolate(module(x), scale_factor=2, mode="bilinear").pow(2).mean()
    return nn.Conv2d(1, 2, 3), loss, {"x": pictures(3, 6, 1)}


def fourier():
    def loss(module, x):
        return torch.fft.rfft(module(x)).abs().mean()
    return nn.Linear(8, 8), loss, {"x": torch.randn(4, 8)}


def alignment():
    def loss(module, x):
        return F.ctc_loss(F.log_softmax(module(x), -1).transpose(0, 1), torch.tensor([[1, 2]]), (6,), (2,))
    return nn.Linear(4, 5), loss, {"x": torch.randn(1, 6, 4)}


# -- what has no line

def branch_on_a_number():
    def loss(module, x):
        out = module(x)
        return out.mean() if out.sum().item() > 0 else out.pow(2).mean()
    return nn.Linear(4, 5), loss, {"x": torch.randn(3, 4)}


def other_draws():
    def loss(module, x):
        return (module(x) * torch.poisson(x.abs())).pow(2).mean()
    return nn.Linear(4, 4), loss, {"x": torch.randn(3, 4)}


LOSSES = (bert, resnet, unet, gru, mixer, experts, graph, focal, info_nce, dpo, distillation, vq_vae,
          pinn, vae, policy, diffusion, triplet, siren, gan, padded_attention, wavenet, separable,
          squeeze_excite, einsum, class_weights, larger_pictures, bags, padded_words, translator,
          other_norms, linear_attention, lstm_cells, neural_ode, sinkhorn, quantiles, cosines, spread,
          triangles, dice, self_distillation, gumbel, between_pixels,
          fourier, alignment)
STEPS = (wave, bodies, lattice, life, pagerank, adagrad, metropolis)
REFUSED = {branch_on_a_number: "no item()", other_draws: "poisson"}
