"""Programs of PyTorch as users write them, for torch_graph_test.py: module, loss and batch. Not a
test."""

import torch
from torch import nn

F = nn.functional
LETTERS = 40


def classify(module, x, y):
    return F.cross_entropy(module(x), y)


def next_token(module, tokens):
    return F.cross_entropy(module(tokens[:, :-1]).reshape(-1, LETTERS), tokens[:, 1:].reshape(-1))


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)), \
        lambda module, x, y: F.mse_loss(module(x), y), {"x": torch.randn(6, 8),
                                                        "y": torch.randn(6, 3)}


def cnn():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(),
                         nn.AvgPool2d(2), nn.Conv2d(8, 12, 3, stride=2), nn.GELU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 4)), classify, {
        "x": torch.randn(5, 3, 12, 12), "y": torch.randint(0, 4, (5,))}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.attn(self.ln_1(x)).split(width, 2))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).contiguous().view(batch, length, width)
        x = x + self.proj(y)
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(LETTERS, width), nn.Embedding(16, width)
        self.h, self.ln_f = nn.ModuleList([Block(width, 4)]), nn.LayerNorm(width)
        self.head = nn.Linear(width, LETTERS, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def gpt():
    return Gpt(), next_token, {"tokens": torch.randint(0, LETTERS, (4, 13))}


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def turned(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


class Lora(nn.Module):
    """An adapter by hand, beside a weight that stays."""

    def __init__(self, width, out, rank=4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out, width) * 0.2, requires_grad=False)
        self.a, self.b = (nn.Parameter(torch.randn(*shape) * 0.2)
                          for shape in ((rank, width), (out, rank)))

    def forward(self, x):
        return F.linear(x, self.weight) + 2 * (x @ self.a.T) @ self.b.T


class Llama(nn.Module):
    def __init__(self, width=32, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.embed = nn.Embedding(LETTERS, width)
        self.norms = nn.ModuleList([RmsNorm(width) for _ in range(3)])
        self.q, self.v = Lora(width, width), nn.Linear(width, groups * self.size, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 48, bias=False) for _ in range(2))
        self.down = nn.Linear(48, width, bias=False)
        self.head = nn.Linear(width, LETTERS, bias=False)

    def heads_of(self, x, count):
        return x.view(*x.shape[:2], count, self.size).transpose(1, 2)

    def repeated(self, x):
        batch, groups, length, size = x.shape
        return x[:, :, None].expand(batch, groups, self.heads // groups, length, size).reshape(
            batch, self.heads, length, size)

    def attention(self, x, cos, sin, mask):
        q, k = self.heads_of(self.q(x), self.heads), self.heads_of(self.k(x), self.groups)
        q, k = q * cos + turned(q) * sin, k * cos + turned(k) * sin
        scores = q @ self.repeated(k).transpose(2, 3) / self.size ** 0.5 + mask
        y = F.softmax(scores, -1) @ self.repeated(self.heads_of(self.v(x), self.groups))
        return self.o(y.transpose(1, 2).reshape(x.shape))

    def forward(self, tokens):
        length = tokens.shape[1]
        rates = 1 / 10000 ** (torch.arange(0, self.size, 2).float() / self.size)
        angles = torch.outer(torch.arange(length).float(), rates).repeat(1, 2)
        mask = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)[None, None]
        x = self.embed(tokens)
        x = x + self.attention(self.norms[0](x), angles.cos(), angles.sin(), mask)
        y = self.norms[1](x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return self.head(self.norms[2](x))


def llama():
    """With targets that take no part."""
    tokens = torch.randint(0, LETTERS, (4, 12))
    targets = torch.randint(0, LETTERS, (4, 12))
    targets[1, 3:] = -100
    return Llama(), lambda module, tokens, targets: F.cross_entropy(
        module(tokens).transpose(1, 2), targets), {"tokens": tokens, "targets": targets}


class Stopped(nn.Module):
    """detach() and no_grad() are not seen below autograd."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        with torch.no_grad():
            gate = self.a(x).sigmoid()
        return self.b(h * h.detach() * gate + h.detach())


def stopped():
    return Stopped(), classify, {"x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 4)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def lstm():
    return Recurrent(), classify, {"x": torch.randn(6, 4, 8), "y": torch.randint(0, 4, (6,))}


def encoder():
    layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, F.gelu, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(80, 4)), classify, {
        "x": torch.randn(6, 5, 16), "y": torch.randint(0, 4, (6,))}


def normed():
    """Batch norm in training, whose running statistics the step writes, over pictures and rows."""
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.SiLU(),
                         nn.AvgPool2d(2), nn.Flatten(), nn.Linear(96, 12), nn.BatchNorm1d(12),
                         nn.Tanh(), nn.Linear(12, 4)), classify, {
        "x": torch.randn(6, 3, 8, 8), "y": torch.randint(0, 4, (6,))}


class Averaged(nn.Module):
    """A teacher that follows its pupil, a counter, and a buffer that is put again."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 4)
        self.register_buffer("slow", torch.randn(4, 8) * 0.3)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("seen", torch.tensor(3))
        self.register_buffer("fixed", torch.randn(4))

    def forward(self, x):
        y = self.net(x)
        target = F.linear(x, self.slow) + self.fixed
        self.slow.data.mul_(0.9).add_(self.net.weight.data, alpha=0.1)
        self.mean = 0.75 * self.mean + 0.25 * y.detach().mean(0)
        self.seen += 1
        return ((y - target) ** 2).mean() + (y - self.mean).abs().mean() / self.seen


def averaged():
    return Averaged(), lambda module, x: module(x), {"x": torch.randn(6, 8)}


def noisy():
    """Draws of PyTorch's become draws of the job's."""
    def loss(module, x, y):
        noise = torch.randn_like(x)
        share = torch.rand(x.shape[0], 1)
        kept = (torch.rand(x.shape) < 0.8).float()
        mixed = share * x * kept + (1 - share) * noise + torch.empty(6, 8).uniform_(-1, 1)
        return F.cross_entropy(module(mixed + torch.bernoulli(torch.full((6, 8), 0.3))), y)
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4)), loss, {
        "x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}


def in_place():
    """Parts of tensors that are changed where they lie."""
    def loss(module, x, y):
        h = module(x).clone()
        h[:, 0] = 0
        h[1:3, 1:] *= 2
        pad = torch.zeros(8, 6)
        pad[1:-1, 1:5] = h
        pad[0] = pad[-2]
        return F.cross_entropy(pad[:6, 1:5] + F.pad(h[None], (1, 1), mode="circular")[0, :, 2:], y)
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4)), loss, {
        "x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}


def convolved():
    """Smoothed labels, and convolutions: groups, one map a channel, spaced out again, over one axis."""
    def loss(module, x, y):
        h = F.silu(module[0](x))
        h = F.silu(module[1](h))
        h = module[2](h)
        h = F.silu(module[3](h).flatten(2))
        return F.cross_entropy(module[4](h).mean(-1), y, label_smoothing=0.1)
    return nn.ModuleList([nn.Conv2d(4, 8, 3, padding=1, groups=2), nn.Conv2d(8, 8, 3, groups=8),
                          nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1),
                          nn.ConvTranspose2d(6, 4, (2, 3), groups=2, dilation=(1, 2)),
                          nn.Conv1d(4, 4, 5, stride=2)]), loss, {
        "x": torch.randn(3, 4, 6, 5), "y": torch.randint(0, 4, (3,))}


def indexed():
    """Indexes that are computed, orders, sums that run on."""
    def loss(module, x, y):
        h = module(x)
        order, places = h.sort(-1, descending=True)
        best, which = h.topk(3, -1)
        run = h.softmax(-1).cumsum(-1)
        edges = torch.tensor([0, 2, 2, 5, 1, 0])
        graph = torch.zeros(6, 8).index_add(0, edges, torch.tanh(h))
        sent = torch.zeros(6, 8).scatter_add(1, y[:, None].expand(6, 8) % 5, h)
        mask = F.one_hot(y, 8).float()
        several = h.gather(1, torch.stack([y, (y + 1) % 8, (y + 2) % 8], 1))
        table = torch.nn.functional.embedding(which[:, 0], module.weight)
        weights = torch.arange(8.0)
        return (order * weights).mean() + (best * which.sqrt()).mean() + (run * run).sum() + (
            graph ** 2).mean() + (sent ** 2).mean() + (h * mask).sum() + several.std() + (
            table * x).mean() + (places * h).mean() + F.cross_entropy(h, y)
    return nn.Linear(8, 8), loss, {"x": torch.randn(6, 8), "y": torch.randint(0, 8, (6,))}


NAMES = ("mlp", "cnn", "gpt", "llama", "stopped", "lstm", "encoder", "normed", "averaged", "noisy",
         "in_place", "convolved", "indexed")


def make(name):
    torch.manual_seed(1)
    return globals()[name]()


# ---- what is refused ------------------------------------------------------------------------

def changed(loss):
    def program():
        torch.manual_seed(1)
        return nn.Linear(8, 4), loss, {"x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}
    return program


def branch(module, x, y):
    loss = classify(module, x, y)
    return loss if loss.item() > 0 else -loss


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.round()

    @staticmethod
    def backward(context, dy):
        return dy


class Clash(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8))
        self.v = nn.Linear(8, 4)

    def forward(self, x):
        return F.linear(x, self.weight) + self.v(x)


def clash():
    torch.manual_seed(1)
    return Clash(), classify, {"x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}


REFUSED = {
    "item": (changed(branch), "no item()"),
    "function": (changed(lambda module, x, y: F.cross_entropy(Straight.apply(module(x)), y)),
                 "autograd.Function"),
    "noise": (changed(lambda module, x, y: classify(module, torch.poisson(x.abs()), y)), "poisson"),
    "cummax": (changed(lambda module, x, y: module(x).cummax(-1)[0].sum()), "cummax"),
    "one_hot": (changed(lambda module, x, y: (module(x) * F.one_hot(y)).sum()), "num_classes"),
}
