"""Programs as strangers write them: networks, losses, optimizers and simulations that the other tables do not have,
for torch_table_test.py. Not a test."""

import math
import torch
import torch.nn.functional as F
from torch import nn

from torch_table import classify, net, pictures


def rotate_half(x):
    x = x.reshape(*x.shape[:-1], -1, 2)
    x1, x2 = x.unbind(dim=-1)
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


class RopeAttention(nn.Module):
    def __init__(self, dim, heads, grid):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.q_norm, self.k_norm = nn.LayerNorm(self.head_dim), nn.LayerNorm(self.head_dim)
        bands = torch.linspace(1.0, 3.0, self.head_dim // 4) * math.pi
        pos = torch.stack(torch.meshgrid(torch.linspace(-1, 1, grid), torch.linspace(-1, 1, grid), indexing="ij"), -1)
        freqs = (pos.reshape(-1, 2).unsqueeze(-1) * bands).flatten(1).repeat_interleave(2, -1)
        self.register_buffer("sin", freqs.sin(), persistent=False)
        self.register_buffer("cos", freqs.cos(), persistent=False)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        n = N - self.sin.shape[0]
        q = torch.cat([q[:, :, :n], q[:, :, n:] * self.cos + rotate_half(q[:, :, n:]) * self.sin], 2)
        k = torch.cat([k[:, :, :n], k[:, :, n:] * self.cos + rotate_half(k[:, :, n:]) * self.sin], 2)
        attn = (q * self.head_dim ** -0.5) @ k.transpose(-2, -1)
        return self.proj((attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, N, C))


class EvaBlock(nn.Module):
    def __init__(self, dim, grid):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.attn = RopeAttention(dim, 2, grid)
        self.gate, self.up, self.down = nn.Linear(dim, 24), nn.Linear(dim, 24), nn.Linear(24, dim)
        self.ls1, self.ls2 = nn.Parameter(0.1 * torch.ones(dim)), nn.Parameter(0.1 * torch.ones(dim))

    def forward(self, x):
        x = x + self.ls1 * self.attn(self.norm1(x))
        h = self.norm2(x)
        return x + self.ls2 * self.down(F.silu(self.gate(h)) * self.up(h))


class RotaryVit(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 4, 4)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.reg = nn.Parameter(torch.randn(1, 2, dim) * 0.02)
        self.blocks = nn.ModuleList([EvaBlock(dim, 4) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), self.reg.expand(x.shape[0], -1, -1), x), dim=1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def rotary_vit():
    return RotaryVit(), classify, {"x": pictures(4), "y": torch.randint(0, 5, (4,))}


class MaskedConv(nn.Conv2d):
    def __init__(self, kind, *args, by_data=False, **kwargs):
        super().__init__(*args, **kwargs)
        self.by_data = by_data
        mask = torch.ones_like(self.weight)
        _, _, h, w = mask.shape
        mask[:, :, h // 2, w // 2 + (kind == "B"):] = 0
        mask[:, :, h // 2 + 1:] = 0
        self.register_buffer("mask", mask)

    def forward(self, x):
        if self.by_data:
            self.weight.data *= self.mask
            return super().forward(x)
        return F.conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)


def pixel_net(by_data):
    return nn.Sequential(MaskedConv("A", 1, 8, 5, padding=2, by_data=by_data), nn.BatchNorm2d(8), nn.ReLU(),
                         MaskedConv("B", 8, 8, 3, padding=1, by_data=by_data), nn.ReLU(), nn.Conv2d(8, 4, 1))


def pixel_loss(module, x):
    target = (x[:, 0] * 3.999).long()
    return F.cross_entropy(module(x), target)


def pixel_cnn():
    return pixel_net(False), pixel_loss, {"x": torch.rand(4, 1, 8, 8)}


def pixel_cnn_by_data():
    return pixel_net(True), pixel_loss, {"x": torch.rand(4, 1, 8, 8)}


class Hopfield(nn.Module):
    def __init__(self):
        super().__init__()
        self.patterns = nn.Parameter(torch.randn(7, 6))
        self.log_beta = nn.Parameter(torch.tensor(0.3))

    def energy(self, q):
        beta = self.log_beta.exp()
        return -torch.logsumexp(beta * q @ self.patterns.T, -1) / beta + 0.5 * (q * q).sum(-1)

    def forward(self, q):
        q = q.clone().requires_grad_(True)
        for _ in range(2):
            g, = torch.autograd.grad(self.energy(q).sum(), q, create_graph=True)
            q = q - 0.5 * g
        return q


def hopfield():
    def loss(module, x):
        noisy = x * (torch.arange(6) < 4)
        return F.mse_loss(module(noisy), x) + 0.01 * module.patterns.norm(dim=1).mean()
    return Hopfield(), loss, {"x": torch.randn(5, 6)}


def box_cxcywh_to_xyxy(x):
    cx, cy, w, h = x.unbind(-1)
    return torch.stack([cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h], dim=-1)


def box_area(b):
    return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])


def generalized_box_iou(a, b):
    lt, rb = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    union = box_area(a)[:, None] + box_area(b) - inter
    iou = inter / union
    lt, rb = torch.min(a[:, None, :2], b[:, :2]), torch.max(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    area = wh[:, :, 0] * wh[:, :, 1]
    return iou - (area - union) / area


class Detr(nn.Module):
    def __init__(self, d=16, queries=5, classes=4):
        super().__init__()
        self.backbone = nn.Conv2d(3, d, 4, 4)
        self.transformer = nn.Transformer(d, 2, 1, 1, 32, dropout=0.0, batch_first=True)
        self.query_pos = nn.Parameter(torch.rand(queries, d))
        self.row, self.col = nn.Parameter(torch.rand(4, d // 2)), nn.Parameter(torch.rand(4, d // 2))
        self.classes, self.boxes = nn.Linear(d, classes + 1), nn.Linear(d, 4)

    def forward(self, x):
        h = self.backbone(x)
        H, W = h.shape[-2:]
        pos = torch.cat([self.col[:W].unsqueeze(0).repeat(H, 1, 1), self.row[:H].unsqueeze(1).repeat(1, W, 1)],
                        dim=-1).flatten(0, 1).unsqueeze(0)
        h = self.transformer(pos + h.flatten(2).permute(0, 2, 1), self.query_pos.unsqueeze(0).repeat(len(x), 1, 1))
        return self.classes(h), self.boxes(h).sigmoid()


def detr_cost(logits, boxes, labels, targets):
    prob = logits.flatten(0, 1).softmax(-1)
    out = boxes.flatten(0, 1)
    ids, tgt = labels.flatten(), targets.flatten(0, 1)
    return 5 * torch.cdist(out, tgt, p=1) - prob[:, ids] - 2 * generalized_box_iou(
        box_cxcywh_to_xyxy(out), box_cxcywh_to_xyxy(tgt))


def detr():
    """With a greedy matching that stays on tensors."""
    def loss(module, x, labels, targets):
        logits, boxes = module(x)
        bs, nq = logits.shape[:2]
        with torch.no_grad():
            C = detr_cost(logits, boxes, labels, targets).view(bs, nq, bs, -1)
            C = C[torch.arange(bs), :, torch.arange(bs)]
            picks = []
            for t in range(labels.shape[1]):
                i = C[:, :, t].argmin(1)
                picks.append(i)
                C = C + 1e3 * F.one_hot(i, nq).unsqueeze(-1)
            src = torch.stack(picks, 1)
        batch = torch.arange(bs).unsqueeze(1).expand_as(src)
        target_classes = torch.full((bs, nq), 4, dtype=torch.int64)
        target_classes[batch, src] = labels
        weight = torch.ones(5)
        weight[-1] = 0.1
        ce = F.cross_entropy(logits.transpose(1, 2), target_classes, weight)
        chosen = boxes[batch, src]
        l1 = F.l1_loss(chosen, targets, reduction="none").sum() / labels.numel()
        giou = 1 - torch.diag(generalized_box_iou(box_cxcywh_to_xyxy(chosen.flatten(0, 1)),
                                                  box_cxcywh_to_xyxy(targets.flatten(0, 1))))
        return ce + 5 * l1 + 2 * giou.sum() / labels.numel()
    return Detr(), loss, {"x": pictures(3), "labels": torch.randint(0, 4, (3, 2)),
                          "targets": torch.cat([0.3 + 0.4 * torch.rand(3, 2, 2), 0.1 + 0.3 * torch.rand(3, 2, 2)], -1)}


def detr_with_scipy():
    def loss(module, x, labels, targets):
        logits, boxes = module(x)
        with torch.no_grad():
            C = detr_cost(logits, boxes, labels, targets).cpu().numpy()
        return logits.mean() + float(C.min())
    m, _, b = detr()
    return m, loss, b


class Perceiver(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(4, d))
        self.embed = nn.Linear(5, d)
        self.cross = nn.MultiheadAttention(d, 2, batch_first=True, kdim=d, vdim=d)
        self.own = nn.TransformerEncoderLayer(d, 2, 32, 0.0, F.gelu, batch_first=True)
        self.decode = nn.Parameter(torch.randn(1, d))
        self.out = nn.MultiheadAttention(d, 1, batch_first=True)
        self.head = nn.Linear(d, 3)

    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1])[None, :] >= lengths[:, None]
        x = self.embed(x)
        z = self.latents.unsqueeze(0).repeat(len(x), 1, 1)
        for _ in range(2):
            z = z + self.cross(z, x, x, key_padding_mask=mask, need_weights=False)[0]
            z = self.own(z)
        q = self.decode.expand(len(x), 1, -1)
        return self.head(self.out(q, z, z, average_attn_weights=True)[0].squeeze(1))


def perceiver():
    def loss(module, x, lengths, y):
        return F.cross_entropy(module(x, lengths), y, label_smoothing=0.1)
    return Perceiver(), loss, {"x": torch.randn(4, 9, 5), "lengths": torch.tensor([9, 4, 6, 1]), "y": torch.randint(0, 3, (4,))}


def spectral(way):
    layers = [nn.Conv2d(3, 6, 4, 2, 1), nn.Conv2d(6, 8, 4, 2, 1)]
    return nn.Sequential(way(layers[0]), nn.LeakyReLU(0.1), way(layers[1]), nn.LeakyReLU(0.1), nn.Flatten(),
                         way(nn.Linear(128, 1)))


def hinge_gan(module, real, fake):
    return F.relu(1 - module(real)).mean() + F.relu(1 + module(fake)).mean()


def sn_gan_old():
    return spectral(nn.utils.spectral_norm), hinge_gan, {"real": pictures(4), "fake": pictures(4)}


def sn_gan_new():
    return spectral(nn.utils.parametrizations.spectral_norm), hinge_gan, {"real": pictures(4), "fake": pictures(4)}


def focal_tversky():
    def loss(module, x, y):
        p = module(x).sigmoid().view(len(x), -1)
        t = y.view(len(y), -1)
        tp, fp, fn = (p * t).sum(1), ((1 - t) * p).sum(1), (t * (1 - p)).sum(1)
        tversky = (tp + 1) / (tp + 0.3 * fp + 0.7 * fn + 1)
        return ((1 - tversky) ** 0.75).mean()
    module = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.InstanceNorm2d(4, affine=True), nn.PReLU(4), nn.Conv2d(4, 1, 1))
    return module, loss, {"x": pictures(3, 8, 1), "y": (torch.rand(3, 1, 8, 8) > 0.6).float()}


def regress():
    x, y = torch.randn(32, 5), torch.randn(32, 3)
    def gradient(w, v):
        with torch.enable_grad():
            w, v = w.detach().requires_grad_(True), v.detach().requires_grad_(True)
            loss = F.mse_loss(torch.tanh(x @ w) @ v, y)
            return torch.autograd.grad(loss, (w, v))
    return gradient


def adafactor():
    gradient = regress()
    def step(state):
        t = state["t"] + 1
        rate = 0.5 * 1e-2 * (1 + torch.cos(math.pi * (t % 10) / 10))
        beta = 1 - t.float() ** -0.8
        new = {"t": t}
        for key, g in zip("wv", gradient(state["w"], state["v"])):
            sq = g ** 2 + 1e-30
            row = beta * state[key + "_row"] + (1 - beta) * sq.mean(-1)
            col = beta * state[key + "_col"] + (1 - beta) * sq.mean(-2)
            r = (row / row.mean(-1, keepdim=True)).rsqrt().unsqueeze(-1)
            u = g * r * col.unsqueeze(-2).rsqrt()
            u = u / torch.clamp(u.pow(2).mean().sqrt() / 1.0, min=1.0)
            scale = torch.clamp(state[key].pow(2).mean().sqrt(), min=1e-3)
            new[key] = state[key] - rate * scale * u
            new[key + "_row"], new[key + "_col"] = row, col
        return new
    w, v = torch.randn(5, 4), torch.randn(4, 3)
    return step, {"t": torch.tensor(0), "w": w, "v": v, "w_row": torch.zeros(5), "w_col": torch.zeros(4),
                  "v_row": torch.zeros(4), "v_col": torch.zeros(3)}


def lamb():
    gradient = regress()
    def step(state):
        t = state["t"] + 1
        new = {"t": t}
        for key, g in zip("wv", gradient(state["w"], state["v"])):
            p = state[key]
            m = 0.9 * state[key + "m"] + 0.1 * g
            s = 0.999 * state[key + "s"] + 0.001 * g * g
            u = (m / (1 - 0.9 ** t)) / ((s / (1 - 0.999 ** t)).sqrt() + 1e-6) + 0.01 * p
            pn, un = p.norm(), u.norm()
            trust = torch.where((pn > 0) & (un > 0), pn / un, torch.ones_like(pn))
            new[key], new[key + "m"], new[key + "s"] = p - 0.01 * trust * u, m, s
        return new
    w, v = torch.randn(5, 4), torch.randn(4, 3)
    z = torch.zeros_like
    return step, {"t": torch.tensor(0), "w": w, "v": v, "wm": z(w), "ws": z(w), "vm": z(v), "vs": z(v)}


def sam():
    gradient = regress()
    def step(state):
        g = gradient(state["w"], state["v"])
        norm = torch.norm(torch.stack([one.norm(p=2) for one in g]), p=2)
        there = [state[key] + 0.05 * one / (norm + 1e-12) for key, one in zip("wv", g)]
        g = gradient(*there)
        norm = torch.linalg.vector_norm(torch.cat([one.flatten() for one in g]))
        clip = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
        new = {}
        for key, one in zip("wv", g):
            buf = 0.9 * state["b" + key] + clip * one
            new[key], new["b" + key] = state[key] - 0.1 * (clip * one + 0.9 * buf), buf
        return new
    w, v = torch.randn(5, 4), torch.randn(4, 3)
    return step, {"w": w, "v": v, "bw": torch.zeros_like(w), "bv": torch.zeros_like(v)}


class Retention(nn.Module):
    def __init__(self, d=12, heads=3):
        super().__init__()
        self.h = heads
        self.q, self.k, self.v, self.g, self.o = (nn.Linear(d, d, bias=False) for _ in range(5))
        self.norm = nn.GroupNorm(heads, d)

    def forward(self, x):
        b, t, d = x.shape
        gamma = 1 - torch.exp(torch.linspace(math.log(1 / 32), math.log(1 / 512), self.h))
        n, m = torch.arange(t).unsqueeze(1), torch.arange(t).unsqueeze(0)
        D = (gamma[:, None, None] ** (n - m).clamp(min=0)) * (n >= m).float()
        D = D.nan_to_num()
        q, k, v = (f(x).view(b, t, self.h, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        s = (q @ k.transpose(-1, -2)) * (d // self.h) ** -0.5 * D
        s = s / s.detach().abs().sum(-1, keepdim=True).clamp(min=1)
        y = (s @ v).transpose(1, 2).reshape(b * t, d)
        y = self.norm(y).reshape(b, t, d)
        return x + self.o(F.silu(self.g(x)) * y)


def retnet():
    def loss(module, x, y):
        return F.huber_loss(module(x), y, delta=0.7)
    return Retention(), loss, {"x": torch.randn(3, 6, 12), "y": torch.randn(3, 6, 12)}


def set_transformer():
    class Mab(nn.Module):
        def __init__(self, d=12):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        def forward(self, Q, K):
            q, k, v = self.q(Q), self.k(K), self.v(K)
            q_, k_, v_ = (torch.cat(x.split(4, 2), 0) for x in (q, k, v))
            A = torch.softmax(q_.bmm(k_.transpose(1, 2)) / math.sqrt(12), 2)
            O = torch.cat((q_ + A.bmm(v_)).split(Q.size(0), 0), 2)
            return O + F.relu(self.o(O))
    class Sets(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.I, self.S = nn.Linear(3, 12), nn.Parameter(torch.empty(1, 3, 12)), nn.Parameter(torch.empty(1, 1, 12))
            nn.init.xavier_uniform_(self.I); nn.init.xavier_uniform_(self.S)
            self.m0, self.m1, self.m2, self.head = Mab(), Mab(), Mab(), nn.Linear(12, 1)
        def forward(self, x):
            x = self.embed(x)
            h = self.m0(self.I.repeat(x.size(0), 1, 1), x)
            x = self.m1(x, h)
            return self.head(self.m2(self.S.repeat(x.size(0), 1, 1), x)).squeeze()
    def loss(module, x):
        return F.smooth_l1_loss(module(x), x.amax(dim=(1, 2)))
    return Sets(), loss, {"x": torch.rand(4, 6, 3)}


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2)
    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.rnn(packed)
        return self.head(h[-1])


def packed_lstm():
    def loss(module, x, lengths, y):
        return F.cross_entropy(module(x, lengths), y)
    return Packed(), loss, {"x": torch.randn(4, 6, 4), "lengths": torch.tensor([6, 3, 5, 2]), "y": torch.randint(0, 2, (4,))}


def qr_dqn():
    def loss(module, s, a, r, s2, done):
        n = 5
        q = module.pupil(s).view(-1, 4, n)
        chosen = q[torch.arange(len(s)), a]
        with torch.no_grad():
            nxt = module.teacher(s2).view(-1, 4, n)
            best = nxt.mean(2).max(1)[1]
            target = r.unsqueeze(1) + 0.99 * (1 - done.float()).unsqueeze(1) * nxt[range(len(s)), best]
        tau = (torch.arange(n) + 0.5) / n
        diff = target.unsqueeze(1) - chosen.unsqueeze(2)
        huber = torch.where(diff.abs() < 1, 0.5 * diff.pow(2), diff.abs() - 0.5)
        return (huber * (tau.view(1, -1, 1) - (diff.detach() < 0).float()).abs()).mean(2).sum(1).mean()
    pair = nn.Module()
    pair.pupil, pair.teacher = net(6, 20), net(6, 20).requires_grad_(False)
    return pair, loss, {"s": torch.randn(8, 6), "a": torch.randint(0, 4, (8,)), "r": torch.randn(8), "s2": torch.randn(8, 6),
                        "done": torch.rand(8) < 0.2}


def rqs(x, w, h, d, bound=3.0):
    n = w.shape[-1]
    w = 1e-3 + (1 - 1e-3 * n) * F.softmax(w, -1)
    cw = F.pad(torch.cumsum(w, -1), (1, 0), value=0.0) * 2 * bound - bound
    cw = torch.cat([torch.full_like(cw[..., :1], -bound), cw[..., 1:-1], torch.full_like(cw[..., :1], bound)], -1)
    w = cw[..., 1:] - cw[..., :-1]
    h = 1e-3 + (1 - 1e-3 * n) * F.softmax(h, -1)
    ch = F.pad(torch.cumsum(h, -1), (1, 0), value=0.0) * 2 * bound - bound
    h = ch[..., 1:] - ch[..., :-1]
    d = 1e-3 + F.softplus(F.pad(d, (1, 1), value=math.log(math.exp(1 - 1e-3) - 1)))
    inside = (x >= -bound) & (x <= bound)
    xi = torch.where(inside, x, torch.zeros_like(x))
    at = (torch.sum(xi[..., None] >= cw[..., :-1], -1) - 1)[..., None]
    pick = lambda t: t.gather(-1, at)[..., 0]
    icw, iw, ich, ih = pick(cw), pick(w), pick(ch), pick(h)
    s = ih / iw
    d0, d1 = pick(d), d[..., 1:].gather(-1, at)[..., 0]
    th = (xi - icw) / iw
    t1 = th * (1 - th)
    den = s + (d0 + d1 - 2 * s) * t1
    y = ich + ih * (s * th.pow(2) + d0 * t1) / den
    lad = torch.log(s.pow(2) * (d1 * th.pow(2) + 2 * s * t1 + d0 * (1 - th).pow(2))) - 2 * torch.log(den)
    return torch.where(inside, y, x), torch.where(inside, lad, torch.zeros_like(lad))


def spline_flow():
    def loss(module, x):
        a, b = x.chunk(2, 1)
        p = module(a).view(len(x), 2, 14)
        y, lad = rqs(b, *p.split([5, 5, 4], -1))
        z = torch.cat([a, y], 1)
        return (0.5 * z.pow(2).sum(1) - lad.sum(1)).mean()
    return net(2, 28), loss, {"x": 1.5 * torch.randn(16, 4)}


def gaussian_process():
    class Gp(nn.Module):
        def __init__(self):
            super().__init__()
            self.log_scale, self.log_noise = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(-1.0))
    def loss(module, x, y):
        K = torch.exp(-0.5 * torch.cdist(x, x) ** 2 / module.log_scale.exp() ** 2) + module.log_noise.exp() * torch.eye(len(x))
        L = torch.linalg.cholesky(K)
        a = torch.cholesky_solve(y.unsqueeze(1), L)
        return 0.5 * (y @ a.squeeze(1)) + L.diagonal().log().sum()
    return Gp(), loss, {"x": torch.randn(6, 2), "y": torch.randn(6)}


def schnet():
    class SchNet(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.z, self.f = nn.Embedding(5, d), nn.Sequential(nn.Linear(6, d), nn.Softplus(), nn.Linear(d, d))
            self.lin, self.out = nn.Linear(d, d), nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, 1))
            self.register_buffer("centers", torch.linspace(0.0, 4.0, 6))
            self.register_buffer("pairs", torch.tensor([[i, j] for i in range(4) for j in range(4) if i != j]).t())
        def forward(self, z, r):
            i, j = self.pairs
            dist = (r[:, i] - r[:, j]).norm(dim=-1)
            rbf = torch.exp(-2.0 * (dist.unsqueeze(-1) - self.centers) ** 2)
            cut = 0.5 * (torch.cos(dist * math.pi / 4.0) + 1) * (dist < 4.0)
            h = self.z(z)
            m = self.lin(h)[:, j] * self.f(rbf) * cut.unsqueeze(-1)
            h = h + torch.zeros_like(h).index_add_(1, i, m)
            return self.out(h).sum((1, 2))
    def loss(module, z, r, e, f):
        r = r.requires_grad_()
        energy = module(z, r)
        forces = -torch.autograd.grad(energy.sum(), r, create_graph=True, retain_graph=True)[0]
        return F.mse_loss(energy, e) + 10 * F.mse_loss(forces, f)
    return SchNet(), loss, {"z": torch.randint(0, 5, (3, 4)), "r": 1.5 * torch.randn(3, 4, 3), "e": torch.randn(3), "f": torch.randn(3, 4, 3)}


def off_diagonal(x):
    n, m = x.shape
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


def vicreg():
    def loss(module, a, b):
        x, y = module(a), module(b)
        sim = F.mse_loss(x, y)
        x, y = x - x.mean(dim=0), y - y.mean(dim=0)
        sx, sy = torch.sqrt(x.var(dim=0) + 1e-4), torch.sqrt(y.var(dim=0) + 1e-4)
        std = torch.mean(F.relu(1 - sx)) / 2 + torch.mean(F.relu(1 - sy)) / 2
        cx, cy = (x.T @ x) / (len(x) - 1), (y.T @ y) / (len(x) - 1)
        cov = off_diagonal(cx).pow_(2).sum().div(4) + off_diagonal(cy).pow_(2).sum().div(4)
        return 25 * sim + 25 * std + cov
    module = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(True), nn.Linear(16, 4, bias=False))
    return module, loss, {"a": torch.randn(12, 8), "b": torch.randn(12, 8)}


def stylegan():
    class Mod(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.affine = nn.Parameter(torch.randn(1, 6, 4, 3, 3)), nn.Linear(5, 4)
            self.register_buffer("blur", torch.tensor([1., 3., 3., 1.])[None] * torch.tensor([1., 3., 3., 1.])[:, None] / 64)
            self.noise = nn.Parameter(torch.zeros(1))
        def forward(self, x, s):
            b, c, h, w = x.shape
            style = self.affine(s).view(b, 1, c, 1, 1)
            weight = self.weight / math.sqrt(c * 9) * style
            weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8).view(b, 6, 1, 1, 1)
            x = F.conv2d(x.view(1, b * c, h, w), weight.view(b * 6, c, 3, 3), padding=1, groups=b).view(b, 6, h, w)
            x = x + self.noise * torch.randn(b, 1, h, w)
            x = F.conv2d(F.pad(x, (1, 2, 1, 2)).reshape(b * 6, 1, h + 3, w + 3), self.blur[None, None]).view(b, 6, h, w)
            return F.leaky_relu(x, 0.2) * math.sqrt(2)
    def loss(module, x, s):
        return F.softplus(-module(x, s).mean((1, 2, 3))).mean()
    return Mod(), loss, {"x": torch.randn(3, 4, 6, 6), "s": torch.randn(3, 5)}


def checkpointed():
    from torch.utils.checkpoint import checkpoint
    m = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6))
    def loss(module, x):
        h = module[0](x)
        h = checkpoint(lambda t: module[2](module[1](t)), h, use_reentrant=False)
        return h.pow(2).mean()
    return m, loss, {"x": torch.randn(5, 6)}


@torch.jit.script


def fused_gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / 1.41421))


def scripted():
    def loss(module, x):
        return fused_gelu(module(x)).pow(2).mean()
    return nn.Linear(6, 5), loss, {"x": torch.randn(5, 6)}


def hooked():
    m = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 6))
    def loss(module, x):
        h = module[:2](x)
        h.register_hook(lambda g: -0.1 * g)
        return module[2](h).pow(2).mean()
    return m, loss, {"x": torch.randn(5, 6)}


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.a = a
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return -ctx.a * g, None


def dann():
    m = nn.ModuleDict({"f": nn.Linear(6, 8), "c": nn.Linear(8, 3), "d": nn.Linear(8, 2)})
    def loss(module, x, y, d):
        h = torch.tanh(module["f"](x))
        return F.cross_entropy(module["c"](h), y) + F.cross_entropy(module["d"](Reverse.apply(h, 0.3)), d)
    return m, loss, {"x": torch.randn(5, 6), "y": torch.randint(0, 3, (5,)), "d": torch.randint(0, 2, (5,))}


def viterbi():
    n, T = 4, 6
    trans, emit = torch.randn(n, n), torch.randn(T, n)
    def step(state):
        score, back = state["score"], []
        for t in range(T):
            best, arg = (score.unsqueeze(1) + trans).max(0)
            score = best + emit[t]
            back.append(arg)
        last = score.argmax()
        path = [last]
        for arg in reversed(back):
            last = arg.gather(0, last.reshape(1)).squeeze(0)
            path.append(last)
        return {"score": score - score.max(), "path": torch.stack(path[::-1])}
    return step, {"score": torch.zeros(n), "path": torch.zeros(T + 1, dtype=torch.long)}


def floyd_warshall():
    w = torch.where(torch.rand(8, 8) < 0.4, torch.rand(8, 8), torch.full((8, 8), float("inf")))
    w.fill_diagonal_(0)
    def step(state):
        d = state["d"]
        for k in range(8):
            d = torch.minimum(d, d[:, k:k + 1] + d[k:k + 1, :])
        return {"d": torch.where(torch.isinf(d), torch.full_like(d, 1e6), d), "reach": (d < 1e5).long().sum(1)}
    return step, {"d": w.nan_to_num(posinf=1e6), "reach": torch.zeros(8, dtype=torch.long)}


def mandelbrot():
    re, im = torch.meshgrid(torch.linspace(-2, 1, 24), torch.linspace(-1, 1, 16), indexing="xy")
    def step(state):
        x, y, n = state["x"], state["y"], state["n"]
        for _ in range(5):
            x, y = x * x - y * y + re, 2 * x * y + im
            out = x * x + y * y > 4
            x, y = x.masked_fill(out, 2.0), y.masked_fill(out, 2.0)
            n = n + (~out).int()
        return {"x": x, "y": y, "n": n}
    z = torch.zeros_like(re)
    return step, {"x": z, "y": z.clone(), "n": torch.zeros(re.shape, dtype=torch.int32)}


def knapsack():
    weights, values = [3, 4, 5, 9, 14], [3, 4, 4, 10, 15]
    def step(state):
        best = torch.zeros_like(state["best"])
        for w, v in zip(weights, values):
            best[w:] = torch.maximum(best[w:], best[:-w] + v)
        return {"best": best}
    return step, {"best": torch.zeros(20, dtype=torch.int64)}


def sobel():
    def step(state):
        img = state["img"].float()
        k = torch.tensor([[1., 0, -1], [2, 0, -2], [1, 0, -1]])
        gx = F.conv2d(img[None, None], k[None, None], padding=1)[0, 0]
        gy = F.conv2d(img[None, None], k.t()[None, None], padding=1)[0, 0]
        mag = (gx.abs() + gy.abs()).clamp(0, 255).round()
        return {"img": ((state["img"].to(torch.int32) + mag.to(torch.int32)) // 2).to(torch.uint8)}
    return step, {"img": torch.randint(0, 256, (12, 12), dtype=torch.uint8)}


def kalman():
    A, H, Q, R = torch.tensor([[1., 0.1], [0., 1.]]), torch.tensor([[1., 0.]]), 0.01 * torch.eye(2), torch.tensor([[0.5]])
    def step(state, z):
        x, P = state["x"], state["P"]
        for t in range(z.shape[0]):
            x, P = A @ x, A @ P @ A.T + Q
            S = H @ P @ H.T + R
            K = P @ H.T / S
            x = x + K @ (z[t].view(1, 1) - H @ x)
            P = (torch.eye(2) - K @ H) @ P
        return {"x": x, "P": P}
    return step, {"x": torch.zeros(2, 1), "P": torch.eye(2)}, {"z": torch.randn(5)}


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(5, 6, batch_first=True, bidirectional=True), nn.Linear(12, 5)
    def forward(self, x):
        return self.head(self.rnn(x)[0]).log_softmax(-1)


def speech():
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    def loss(module, x, frames, y, sizes):
        return ctc(module(x).transpose(0, 1), y, frames, sizes)
    y = torch.tensor([[1, 2, 2, 3], [4, 4, 0, 0], [3, 0, 0, 0], [1, 1, 1, 1]])
    return Speech(), loss, {"x": torch.randn(4, 10, 5), "frames": torch.tensor([10, 7, 4, 6]), "y": y, "sizes": torch.tensor([4, 2, 1, 4])}


def speech_side_by_side():
    def loss(module, x, y):
        return F.ctc_loss(module(x).transpose(0, 1), y.flatten()[:7], (10, 10, 10, 10), (3, 1, 2, 1), blank=4, reduction="sum")
    return Speech(), loss, {"x": torch.randn(4, 10, 5), "y": torch.tensor([[1, 2], [0, 3], [1, 1], [2, 3]])}


def pgd():
    """A step of an attack by the sign, and a penalty by the largest norm."""
    def loss(module, x, y):
        d = torch.zeros_like(x).uniform_(-0.1, 0.1).requires_grad_(True)
        for _ in range(2):
            g, = torch.autograd.grad(F.cross_entropy(module(x + d), y), d)
            d = (d + 0.05 * g.sign()).clamp(-0.1, 0.1).detach().requires_grad_(True)
        return F.cross_entropy(module(x + d.detach()), y) + 0.01 * module[0].weight.norm(p=float("inf"), dim=1).sum()
    return net(), loss, {"x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}


def universal():
    """d.grad of a backward() inside the loss."""
    def loss(module, x, y):
        d = torch.zeros(1, 8, requires_grad=True)
        F.cross_entropy(module(x + d), y).backward()
        module.zero_grad()
        with torch.no_grad():
            far = 0.1 * d.grad.sign()
        return F.cross_entropy(module(x + far), y)
    return net(), loss, {"x": torch.randn(6, 8), "y": torch.randint(0, 4, (6,))}


def draws_that_require():
    def loss(module, x):
        z = torch.randn(6, 8, requires_grad=True)
        g, = torch.autograd.grad(module(z).pow(2).sum(), z, create_graph=True)
        with torch.no_grad():
            e = module(x) * 2
        e.requires_grad_(True)
        g2, = torch.autograd.grad((e ** 3).sum(), e, create_graph=True)
        return g.pow(2).mean() + (g2 * module(x)).mean()
    return net(), loss, {"x": torch.randn(6, 8)}


def fnet():
    class FNet(nn.Module):
        def __init__(self, d=8):
            super().__init__()
            self.n1, self.n2, self.ff = nn.LayerNorm(d), nn.LayerNorm(d), nn.Sequential(nn.Linear(d, 16), nn.GELU(), nn.Linear(16, d))
        def forward(self, x):
            x = self.n1(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
            return self.n2(x + self.ff(x))
    def loss(module, x, y):
        return F.mse_loss(module(x), y)
    return FNet(), loss, {"x": torch.randn(3, 6, 8), "y": torch.randn(3, 6, 8)}


class SpectralConv2d(nn.Module):
    def __init__(self, i, o, m):
        super().__init__()
        self.o, self.m = o, m
        self.weights1 = nn.Parameter(torch.rand(i, o, m, m, dtype=torch.cfloat) / (i * o))
        self.weights2 = nn.Parameter(torch.rand(i, o, m, m, dtype=torch.cfloat) / (i * o))
    def mul(self, a, b):
        return torch.einsum("bixy,ioxy->boxy", a, b)
    def forward(self, x):
        f = torch.fft.rfft2(x)
        out = torch.zeros(x.shape[0], self.o, x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat, device=x.device)
        out[:, :, :self.m, :self.m] = self.mul(f[:, :, :self.m, :self.m], self.weights1)
        out[:, :, -self.m:, :self.m] = self.mul(f[:, :, -self.m:, :self.m], self.weights2)
        return torch.fft.irfft2(out, s=(x.size(-2), x.size(-1)))


def fno2d():
    class Fno(nn.Module):
        def __init__(self):
            super().__init__()
            self.p, self.c, self.w, self.q = nn.Conv2d(1, 4, 1), SpectralConv2d(4, 4, 3), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 1, 1)
        def forward(self, x):
            x = self.p(x)
            return self.q(F.gelu(self.c(x) + self.w(x)))
    def loss(module, x, y):
        n = len(x)
        d = torch.norm(module(x).reshape(n, -1) - y.reshape(n, -1), 2, 1)
        return (d / torch.norm(y.reshape(n, -1), 2, 1)).mean()
    return Fno(), loss, {"x": torch.randn(2, 1, 8, 8), "y": torch.randn(2, 1, 8, 8)}


def spectral_loss():
    def loss(module, x, y):
        a, b = torch.fft.rfft(module(x), norm="ortho"), torch.fft.rfft(y, norm="ortho")
        p = torch.angle(a) * a.real.abs()
        return (a.abs() - b.abs()).abs().mean() + (a - b).abs().pow(2).mean() + 0.1 * p.mean() + 0.01 * torch.view_as_real(a * b.conj()).pow(2).mean()
    return nn.Linear(9, 9), loss, {"x": torch.randn(4, 9), "y": torch.randn(4, 9)}


def hyena():
    """A long convolution by transforms, and a complex state space."""
    class H(nn.Module):
        def __init__(self):
            super().__init__()
            self.filter = nn.Parameter(0.3 * torch.randn(4, 12))
            self.log_a, self.im, self.C = nn.Parameter(torch.rand(4, 3)), nn.Parameter(torch.randn(4, 3)), nn.Parameter(torch.randn(4, 3, 2))
        def forward(self, u):
            L = u.shape[-1]
            y = torch.fft.irfft(torch.fft.rfft(u, n=2 * L) * torch.fft.rfft(self.filter, n=2 * L), n=2 * L)[..., :L]
            A = -torch.exp(self.log_a) + 1j * self.im
            K = torch.exp((A * 0.1).unsqueeze(-1) * torch.arange(L))
            K = 2 * torch.einsum("hn,hnl->hl", torch.view_as_complex(self.C) * (torch.exp(A * 0.1) - 1.0) / A, K).real
            return y + torch.fft.irfft(torch.fft.rfft(K, n=2 * L) * torch.fft.rfft(u, n=2 * L), n=2 * L)[..., :L]
    def loss(module, u, y):
        return F.mse_loss(module(u), y)
    return H(), loss, {"u": torch.randn(2, 4, 12), "y": torch.randn(2, 4, 12)}


def rope_complex():
    """Rotary as Llama's first code writes it."""
    freqs = 1.0 / (100.0 ** (torch.arange(0, 4, 2).float() / 4))
    cis = torch.polar(torch.ones(6, 2), torch.outer(torch.arange(6).float(), freqs))
    def loss(module, x, y):
        q = module(x)
        q_ = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
        q = torch.view_as_real(q_ * cis).flatten(-2).type_as(x)
        return F.mse_loss(q @ q.transpose(1, 2), y)
    return nn.Linear(4, 4), loss, {"x": torch.randn(3, 6, 4), "y": torch.randn(3, 6, 6)}


def long_fft():
    def loss(module, x):
        return torch.fft.rfft(module(x).repeat(1, 300)).abs().mean()
    return nn.Linear(4, 4), loss, {"x": torch.randn(3, 4)}


def schroedinger():
    n = 16
    k = torch.fft.fftfreq(n, 1 / n)
    V = torch.linspace(-1, 1, n) ** 2
    def step(state):
        psi = torch.complex(state["re"], state["im"])
        psi = psi * torch.exp(-0.5j * 0.1 * V)
        psi = torch.fft.ifft(torch.exp(-0.5j * 0.1 * k ** 2) * torch.fft.fft(psi))
        psi = psi * torch.exp(-0.5j * 0.1 * V)
        return {"re": psi.real, "im": psi.imag, "norm": (psi.abs() ** 2).sum()}
    x = torch.exp(-torch.linspace(-3, 3, n) ** 2)
    return step, {"re": x, "im": torch.zeros(n), "norm": torch.tensor(0.0)}


FUNCTIONS = (
    torch.atan, torch.asin, torch.acos, torch.sinh, torch.asinh, torch.atanh, torch.tan, torch.erfinv, torch.log1p,
    torch.expm1, torch.sinc, torch.erfc, F.softplus, F.mish, F.elu, F.selu, F.celu, F.gelu, F.hardswish, F.softsign,
    F.logsigmoid, F.tanhshrink, F.relu, F.relu6, F.leaky_relu, F.silu, torch.abs,
    lambda x: torch.atan2(x, 1 + x), lambda x: torch.atan2(x + 1, x), lambda x: torch.hypot(x, x + 1),
    lambda x: x.clamp(min=0), lambda x: x.clamp(0, 0.25), lambda x: F.hardtanh(x, 0.0, 1.0), lambda x: F.hardsigmoid(x * 3 + 3),
    lambda x: F.softshrink(x, 0.25), lambda x: x.norm(dim=1, keepdim=True), lambda x: F.normalize(x, dim=0),
    lambda x: torch.cdist(x, x), lambda x: torch.cdist(x, x + 1, p=1), lambda x: x.std(0), lambda x: (x + 0.01).norm(p=math.inf),
    lambda x: torch.diag(torch.diag(x[:, 0], 1), 1) * x[:, 0],
)


class Ends(nn.Module):
    def __init__(self):
        super().__init__()
        self.at = nn.ParameterList([nn.Parameter(torch.tensor([[0.0], [0.0], [0.3], [-0.3], [0.25]]))
                                    for _ in FUNCTIONS])


def slopes_at_ends():
    """Where functions have corners, and where their parts meet: at 0, and at what clamps."""
    def loss(module, x):
        total = x.sum() * 0
        for function, at in zip(FUNCTIONS, module.at):
            made = function(at * 1.0)
            total = total + (made * (torch.arange(made.numel()) + 1.0).reshape(made.shape)).sum()
        return total
    return Ends(), loss, {"x": torch.randn(3, 2)}


def similar():
    """Both sides are learned: their norms are changed where autograd does not see it."""
    def loss(module, a, b):
        a, b = module(a), module(b)
        return -F.cosine_similarity(a, b.detach(), dim=-1).mean() + (1 - nn.CosineSimilarity()(a, b)).pow(2).mean()
    return net(), loss, {"a": torch.randn(6, 8), "b": torch.randn(6, 8)}


def flipped_order():
    """What a sort gave, read backwards."""
    def loss(module, x):
        made = module(x)
        sorted_, order = made.sort(dim=1)
        return (made.gather(1, order.flip(1)) * sorted_ * torch.arange(6.0)).mean()
    return nn.Linear(6, 6), loss, {"x": torch.randn(8, 6)}


LOSSES = (flipped_order, rotary_vit, pixel_cnn, hopfield, detr, perceiver, sn_gan_old, sn_gan_new, focal_tversky, retnet,
          set_transformer, qr_dqn, spline_flow, schnet, vicreg, stylegan, checkpointed, scripted, speech,
          speech_side_by_side, pgd, universal, draws_that_require, fnet, fno2d, spectral_loss, hyena, rope_complex,
          slopes_at_ends, similar)
STEPS = (adafactor, lamb, sam, viterbi, floyd_warshall, mandelbrot, knapsack, sobel, kalman, schroedinger)
REFUSED = {pixel_cnn_by_data: "make it a buffer", detr_with_scipy: "numpy: a number", packed_lstm: "rows filled up",
           gaussian_process: "conjugate gradients", hooked: "register_hook", dann: "autograd.Function",
           long_fft: "at most 1024"}
