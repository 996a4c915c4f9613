"""More networks, and steps without a loss, as repositories write them, for torch_table_test.py; the second half of
torch_table_models.py. Not a test."""

import math

import torch
import torch.nn.functional as F
from torch import nn

import torch_table_models as models
from torch_table import classify, net, pictures


class Mamba(nn.Module):
    def __init__(self, width=6, state=4, words=11):
        super().__init__()
        self.embed, self.inner, self.state, self.rank = nn.Embedding(words, width), 2 * width, state, 2
        self.in_proj = nn.Linear(width, 4 * width, bias=False)
        self.conv1d = nn.Conv1d(self.inner, self.inner, 3, groups=self.inner, padding=2)
        self.x_proj = nn.Linear(self.inner, self.rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(self.rank, self.inner)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, state + 1).float().repeat(self.inner, 1)))
        self.D = nn.Parameter(torch.ones(self.inner))
        self.out_proj = nn.Linear(self.inner, width, bias=False)

    def scan(self, u, delta, A, B, C):
        b, length, inner = u.shape
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x, ys = torch.zeros((b, inner, self.state)), []
        for i in range(length):
            x = deltaA[:, i] * x + deltaB_u[:, i]
            ys.append(torch.einsum("bdn,bn->bd", x, C[:, i, :]))
        return torch.stack(ys, dim=1) + u * self.D

    def forward(self, ids):
        h = self.embed(ids)
        x, res = self.in_proj(h).split(split_size=[self.inner, self.inner], dim=-1)
        x = F.silu(self.conv1d(x.transpose(1, 2))[:, :, :ids.shape[1]].transpose(1, 2))
        delta, B, C = self.x_proj(x).split([self.rank, self.state, self.state], dim=-1)
        y = self.scan(x, F.softplus(self.dt_proj(delta)), -torch.exp(self.A_log.float()), B, C)
        return (h + self.out_proj(y * F.silu(res))) @ self.embed.weight.t()


def mamba():
    def loss(module, ids):
        return F.cross_entropy(module(ids[:, :-1]).reshape(-1, 11), ids[:, 1:].reshape(-1))
    return Mamba(), loss, {"ids": torch.randint(0, 11, (3, 8))}


class Rwkv(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.time_decay = nn.Parameter(torch.linspace(-3, 1, width))
        self.time_first = nn.Parameter(torch.full((width,), math.log(0.3)))
        self.time_mix_k, self.time_mix_v, self.time_mix_r = (nn.Parameter(torch.rand(1, 1, width))
                                                             for _ in range(3))
        self.time_shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.key, self.value, self.receptance, self.output = (nn.Linear(width, width, bias=False)
                                                              for _ in range(4))

    def wkv(self, k, v):
        w, u = -torch.exp(self.time_decay), self.time_first
        aa = bb = torch.zeros_like(k[:, 0])
        pp, out = torch.full_like(k[:, 0], -1e38), []
        for t in range(k.shape[1]):
            ww = u + k[:, t]
            qq = torch.maximum(pp, ww)
            e1, e2 = torch.exp(pp - qq), torch.exp(ww - qq)
            out.append((e1 * aa + e2 * v[:, t]) / (e1 * bb + e2))
            ww = pp + w
            qq = torch.maximum(ww, k[:, t])
            e1, e2 = torch.exp(ww - qq), torch.exp(k[:, t] - qq)
            aa, bb, pp = e1 * aa + e2 * v[:, t], e1 * bb + e2, qq
        return torch.stack(out, 1)

    def forward(self, x):
        xx = self.time_shift(x)
        k = self.key(x * self.time_mix_k + xx * (1 - self.time_mix_k))
        v = self.value(x * self.time_mix_v + xx * (1 - self.time_mix_v))
        r = self.receptance(x * self.time_mix_r + xx * (1 - self.time_mix_r))
        return x + self.output(torch.sigmoid(r) * self.wkv(k, v))


def rwkv():
    def loss(module, x, y):
        return F.mse_loss(module(x), y)
    return Rwkv(), loss, {"x": torch.randn(3, 7, 6), "y": torch.randn(3, 7, 6)}


class LayerNorm2d(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + 1e-6)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class ConvNextBlock(nn.Module):
    def __init__(self, dim, drop=0.2):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1, self.pwconv2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.gamma, self.drop = nn.Parameter(0.1 * torch.ones(dim)), drop

    def drop_path(self, x):
        if not self.training:
            return x
        keep = 1 - self.drop
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        mask = keep + torch.rand(shape, dtype=x.dtype, device=x.device)
        mask.floor_()
        return x.div(keep) * mask

    def forward(self, x):
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(self.norm(y))))
        return x + self.drop_path(y.permute(0, 3, 1, 2))


def convnext():
    class ConvNext(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 6, 4, 4), LayerNorm2d(6))
            self.stage = nn.Sequential(ConvNextBlock(6), ConvNextBlock(6))
            self.norm, self.head = nn.LayerNorm(6, eps=1e-6), nn.Linear(6, 5)

        def forward(self, x):
            return self.head(self.norm(self.stage(self.stem(x)).mean([-2, -1])))
    return ConvNext(), classify, {"x": pictures(4, 16), "y": torch.randint(0, 5, (4,))}


class SqueezeExcitation(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(nn.Linear(width, 4), nn.ReLU(inplace=True), nn.Linear(4, width),
                                nn.Hardsigmoid(inplace=True))

    def forward(self, x):
        b, c, _, _ = x.size()
        return x * self.fc(self.avg_pool(x).view(b, c)).view(b, c, 1, 1).expand_as(x)


class InvertedResidual(nn.Module):
    def __init__(self, inner, hidden, outer, stride, act):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(inner, hidden, 1, bias=False), nn.BatchNorm2d(hidden), act(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden),
            SqueezeExcitation(hidden), act(inplace=True), nn.Conv2d(hidden, outer, 1, bias=False),
            nn.BatchNorm2d(outer))
        self.same = stride == 1 and inner == outer

    def forward(self, x):
        return x + self.conv(x) if self.same else self.conv(x)


def mobilenet():
    module = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6), nn.Hardswish(inplace=True),
                           InvertedResidual(6, 12, 6, 1, nn.ReLU6), InvertedResidual(6, 12, 8, 2, nn.Hardswish),
                           nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 4))
    return module, classify, {"x": pictures(4, 16), "y": torch.randint(0, 4, (4,))}


def yolo():
    """Two boxes a cell; the one that fits better is held to the truth."""
    def iou(a, b):
        a1, a2 = a[..., :2] - a[..., 2:] / 2, a[..., :2] + a[..., 2:] / 2
        b1, b2 = b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2
        lap = (torch.min(a2, b2) - torch.max(a1, b1)).clamp(0).prod(-1, keepdim=True)
        area = lambda lo, hi: abs((hi - lo).prod(-1, keepdim=True))  # noqa: E731
        return lap / (area(a1, a2) + area(b1, b2) - lap + 1e-6)

    def loss(module, x, target):
        mse = nn.MSELoss(reduction="sum")
        p = module(x).permute(0, 2, 3, 1)
        truth, exists = target[..., 3:7], target[..., 2:3]
        ious = torch.cat([iou(p[..., 3:7], truth).unsqueeze(0), iou(p[..., 8:12], truth).unsqueeze(0)], dim=0)
        _, best = torch.max(ious, dim=0)
        box = exists * (best * p[..., 8:12] + (1 - best) * p[..., 3:7])
        wanted = exists * truth
        size = torch.sign(box[..., 2:4]) * torch.sqrt(torch.abs(box[..., 2:4] + 1e-6))
        box_loss = mse(torch.cat([box[..., :2], size], -1).flatten(end_dim=-2),
                       torch.cat([wanted[..., :2], torch.sqrt(wanted[..., 2:])], -1).flatten(end_dim=-2))
        seen = best * p[..., 7:8] + (1 - best) * p[..., 2:3]
        obj = mse(torch.flatten(exists * seen), torch.flatten(exists))
        no_obj = mse(torch.flatten((1 - exists) * p[..., 2:3]), torch.zeros(x.shape[0] * 9))
        return 5 * box_loss + obj + 0.5 * no_obj + mse(exists * p[..., :2], exists * target[..., :2])
    target = torch.rand(3, 3, 3, 7)
    target[..., 2] = (target[..., 2] > 0.5).float()
    return nn.Conv2d(3, 12, 3, 2), loss, {"x": pictures(3, 7), "target": target}


class Crf(nn.Module):
    """A chain of tags, as torchcrf has it: the sequence first."""

    def __init__(self, tags=4, width=5):
        super().__init__()
        self.emit = nn.Linear(width, tags)
        self.start_transitions, self.end_transitions = (nn.Parameter(torch.empty(tags).uniform_(-0.1, 0.1))
                                                        for _ in range(2))
        self.transitions = nn.Parameter(torch.empty(tags, tags).uniform_(-0.1, 0.1))

    def score(self, emissions, tags, mask):
        length, batch = tags.shape
        score = self.start_transitions[tags[0]] + emissions[0, torch.arange(batch), tags[0]]
        for i in range(1, length):
            score = score + self.transitions[tags[i - 1], tags[i]] * mask[i]
            score = score + emissions[i, torch.arange(batch), tags[i]] * mask[i]
        seq_ends = mask.long().sum(dim=0) - 1
        return score + self.end_transitions[tags[seq_ends, torch.arange(batch)]]

    def normalizer(self, emissions, mask):
        score = self.start_transitions + emissions[0]
        for i in range(1, emissions.shape[0]):
            wide = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            score = torch.where(mask[i].unsqueeze(1).bool(), torch.logsumexp(wide, dim=1), score)
        return torch.logsumexp(score + self.end_transitions, dim=1)


def crf():
    def loss(module, x, tags, mask):
        emissions, tags, mask = module.emit(x).transpose(0, 1), tags.transpose(0, 1), mask.transpose(0, 1)
        return -(module.score(emissions, tags, mask) - module.normalizer(emissions, mask)).mean()
    mask = torch.ones(4, 6)
    mask[1, 4:], mask[3, 2:] = 0, 0
    return Crf(), loss, {"x": torch.randn(4, 6, 5), "tags": torch.randint(0, 4, (4, 6)), "mask": mask}


class Mae(nn.Module):
    def __init__(self, patches=16, width=8):
        super().__init__()
        self.patch_embed = nn.Linear(16, width)
        self.pos_embed = nn.Parameter(0.1 * torch.randn(1, patches, width))
        self.encoder = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True, norm_first=True)
        self.mask_token, self.pred = nn.Parameter(torch.zeros(1, 1, width)), nn.Linear(width, 16)

    def random_masking(self, x, mask_ratio=0.5):
        N, L, D = x.shape
        len_keep = int(L * (1 - mask_ratio))
        ids_shuffle = torch.argsort(torch.rand(N, L, device=x.device), dim=1)
        ids_restore = torch.argsort(ids_shuffle, dim=1)
        ids_keep = ids_shuffle[:, :len_keep]
        kept = torch.gather(x, dim=1, index=ids_keep.unsqueeze(-1).repeat(1, 1, D))
        mask = torch.ones([N, L], device=x.device)
        mask[:, :len_keep] = 0
        return kept, torch.gather(mask, dim=1, index=ids_restore), ids_restore

    def forward(self, imgs):
        n = imgs.shape[0]
        patches = torch.einsum("nchpwq->nhwpqc", imgs.reshape(n, 1, 4, 4, 4, 4)).reshape(n, 16, 16)
        x, mask, restore = self.random_masking(self.patch_embed(patches) + self.pos_embed)
        x = self.encoder(x)
        x = torch.cat([x, self.mask_token.repeat(n, restore.shape[1] - x.shape[1], 1)], dim=1)
        x = torch.gather(x, dim=1, index=restore.unsqueeze(-1).repeat(1, 1, x.shape[2]))
        each = ((self.pred(x + self.pos_embed) - patches) ** 2).mean(dim=-1)
        return (each * mask).sum() / mask.sum()


def mae():
    def loss(module, imgs):
        return module(imgs)
    return Mae(), loss, {"imgs": pictures(3, 16, 1)}


class SwinBlock(nn.Module):
    def __init__(self, dim=8, heads=2, window=4, shift=2, side=8):
        super().__init__()
        self.window, self.shift, self.heads, self.side = window, shift, heads, side
        self.relative_position_bias_table = nn.Parameter(0.1 * torch.randn((2 * window - 1) ** 2, heads))
        coords = torch.stack(torch.meshgrid([torch.arange(window)] * 2, indexing="ij")).flatten(1)
        relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous() + window - 1
        relative[:, :, 0] *= 2 * window - 1
        self.register_buffer("relative_position_index", relative.sum(-1))
        self.norm, self.qkv, self.proj = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        img_mask, cnt = torch.zeros((1, side, side, 1)), 0
        slices = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
        for h in slices:
            for w in slices:
                img_mask[:, h, w, :] = cnt
                cnt += 1
        flat = self.partition(img_mask).view(-1, window * window)
        mask = flat.unsqueeze(1) - flat.unsqueeze(2)
        self.register_buffer("attn_mask", mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0))

    def partition(self, x):
        b, h, w, c = x.shape
        x = x.view(b, h // self.window, self.window, w // self.window, self.window, c)
        return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, self.window, self.window, c)

    def forward(self, x):
        b, c = x.shape[0], x.shape[-1]
        shifted = torch.roll(self.norm(x), shifts=(-self.shift, -self.shift), dims=(1, 2))
        windows = self.partition(shifted).view(-1, self.window ** 2, c)
        n_windows, n, _ = windows.shape
        qkv = self.qkv(windows).reshape(n_windows, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0] * (c // self.heads) ** -0.5, qkv[1], qkv[2]
        attn = q @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)].view(n, n, -1)
        attn = attn + bias.permute(2, 0, 1).contiguous().unsqueeze(0)
        nw = self.attn_mask.shape[0]
        attn = attn.view(n_windows // nw, nw, self.heads, n, n) + self.attn_mask.unsqueeze(1).unsqueeze(0)
        attn = F.softmax(attn.view(-1, self.heads, n, n), dim=-1)
        out = self.proj((attn @ v).transpose(1, 2).reshape(n_windows, n, c))
        out = out.view(b, self.side // self.window, self.side // self.window, self.window, self.window, -1)
        out = out.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, self.side, self.side, -1)
        return x + torch.roll(out, shifts=(self.shift, self.shift), dims=(1, 2))


def swin():
    def loss(module, x, y):
        return F.mse_loss(module(x), y)
    return SwinBlock(), loss, {"x": torch.randn(2, 8, 8, 8), "y": torch.randn(2, 8, 8, 8)}


class NeuralCa(nn.Module):
    def __init__(self, channels=6, hidden=12, fire=0.5):
        super().__init__()
        identity = torch.tensor([[0.0, 0, 0], [0, 1, 0], [0, 0, 0]])
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        kernel = torch.stack([identity, sobel, sobel.T]).repeat(channels, 1, 1).unsqueeze(1)
        self.register_buffer("kernel", kernel)
        self.fc0, self.fc1 = nn.Conv2d(channels * 3, hidden, 1), nn.Conv2d(hidden, channels, 1, bias=False)
        self.channels, self.fire = channels, fire

    def alive(self, x):
        return F.max_pool2d(x[:, 3:4, :, :], kernel_size=3, stride=1, padding=1) > 0.1

    def forward(self, x, steps=3):
        for _ in range(steps):
            before = self.alive(x)
            y = F.conv2d(F.pad(x, [1, 1, 1, 1], "circular"), self.kernel, groups=self.channels)
            dx = self.fc1(F.relu(self.fc0(y)))
            x = x + dx * (torch.rand(x[:, :1].shape) <= self.fire).float()
            x = x * (before & self.alive(x)).float()
        return x


def neural_automaton():
    def loss(module, x, y):
        return F.mse_loss(module(x)[:, :4], y)
    x = torch.zeros(2, 6, 8, 8)
    x[:, 3:, 4, 4] = 1.0
    return NeuralCa(), loss, {"x": x + 0.05 * torch.rand(2, 6, 8, 8), "y": torch.rand(2, 4, 8, 8)}


def mixup():
    def loss(module, x, y):
        index = torch.randperm(x.size(0))
        lam = 0.5 + 0.5 * torch.rand(1)
        out = module(lam * x + (1 - lam) * x[index, :])
        return lam.squeeze() * F.cross_entropy(out, y) + (1 - lam.squeeze()) * F.cross_entropy(out, y[index])
    return net(), loss, {"x": torch.randn(10, 8), "y": torch.randint(0, 4, (10,))}


def maml():
    """One step inside for each task; the outer gradient goes through it."""
    def forward(x, w):
        return F.linear(torch.tanh(F.linear(x, w[0], w[1])), w[2], w[3])

    def loss(module, support_x, support_y, query_x, query_y):
        losses = []
        for i in range(support_x.size(0)):
            fast = list(module.parameters())
            for _ in range(2):
                inner = F.mse_loss(forward(support_x[i], fast), support_y[i])
                grad = torch.autograd.grad(inner, fast, create_graph=True)
                fast = [p - 0.1 * g for p, g in zip(fast, grad)]
            losses.append(F.mse_loss(forward(query_x[i], fast), query_y[i]))
        return torch.stack(losses).mean()
    module = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
    return module, loss, {name: torch.randn(3, 5, 1) for name in (
        "support_x", "support_y", "query_x", "query_y")}


class CategoricalVae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x):
        q = self.encoder(x).view(x.size(0), 3, 4)
        z = F.gumbel_softmax(q, tau=0.7, hard=True)
        return torch.sigmoid(self.decoder(z.view(x.size(0), -1))), F.softmax(q, dim=-1)


def gumbel_vae():
    def loss(module, x):
        again, qy = module(x)
        kl = torch.sum(qy * torch.log(qy * 4 + 1e-20), dim=-1).mean()
        return F.binary_cross_entropy(again, x, reduction="sum") / x.shape[0] + kl
    return CategoricalVae(), loss, {"x": torch.rand(8, 8)}


class DoubleConv(nn.Sequential):
    def __init__(self, inner, outer):
        super().__init__(nn.Conv2d(inner, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer),
                         nn.ReLU(inplace=True))


class Segmenter(nn.Module):
    """A U-Net with bilinear upsampling; what does not fit is padded."""

    def __init__(self):
        super().__init__()
        self.inc, self.down, self.conv = DoubleConv(1, 4), DoubleConv(4, 8), DoubleConv(12, 4)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.outc = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.up(self.down(F.max_pool2d(x1, 2)))
        dy, dx = x1.size()[2] - x2.size()[2], x1.size()[3] - x2.size()[3]
        x2 = F.pad(x2, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.outc(self.conv(torch.cat([x1, x2], dim=1)))


def segmentation():
    def loss(module, x, y):
        out = module(x)
        p, t = F.softmax(out, dim=1).float(), F.one_hot(y, 2).permute(0, 3, 1, 2).float()
        dice = 1 - (2 * (p * t).sum() + 1e-6) / (p.sum() + t.sum() + 1e-6)
        return F.cross_entropy(out, y) + dice
    return Segmenter(), loss, {"x": pictures(3, 9, 1), "y": torch.randint(0, 2, (3, 9, 9))}


def style_transfer():
    """Gram matrices of fixed features, smoothness, and a picture that is what is trained."""
    class Picture(nn.Module):
        def __init__(self):
            super().__init__()
            self.image = nn.Parameter(torch.rand(1, 3, 12, 12))
            self.features = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Softplus()).requires_grad_(False)

    def gram(x):
        b, c, h, w = x.size()
        features = x.view(b * c, h * w)
        return torch.mm(features, features.t()).div(b * c * h * w)

    def loss(module, content, style):
        y = module.features(F.interpolate(module.image, size=(9, 9), mode="bilinear", align_corners=False))
        tv = torch.abs(module.image[:, :, 1:] - module.image[:, :, :-1]).mean() + \
            torch.pow(module.image[..., 1:] - module.image[..., :-1], 2).mean()
        return F.mse_loss(y, module.features(content)) + 1e3 * F.mse_loss(
            gram(y), gram(module.features(style))) + tv
    return Picture(), loss, {"content": torch.rand(1, 3, 9, 9), "style": torch.rand(1, 3, 9, 9)}


class LocalAttention(nn.Module):
    """Each place looks at the three before it; slopes by the distance instead of places."""

    def __init__(self, width=8, window=4):
        super().__init__()
        self.qkv, self.window = nn.Linear(width, 3 * width), window
        self.w1, self.w2, self.w3 = nn.Linear(width, 12), nn.Linear(12, width), nn.Linear(width, 12)
        self.register_buffer("alibi", -torch.arange(window - 1, -1, -1) * 0.5)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        k, v = (F.pad(one, (0, 0, self.window - 1, 0)).unfold(1, self.window, 1) for one in (k, v))
        scores = torch.einsum("btd,btdw->btw", q, k) / q.shape[-1] ** 0.5 + self.alibi
        x = x + torch.einsum("btw,btdw->btd", scores.softmax(-1), v)
        return x + self.w2(F.silu(self.w1(x)) * self.w3(x))


def local_attention():
    def loss(module, x, y):
        return F.mse_loss(module(x), y)
    return LocalAttention(), loss, {"x": torch.randn(2, 9, 8), "y": torch.randn(2, 9, 8)}


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(9, 6), nn.Embedding(14, 6)
        self.bias, self.deep = nn.Embedding(14, 1), nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, user, item):
        u, i = self.users(user), self.items(item)
        return (u * i).sum(-1) + self.bias(item).squeeze(-1) + self.deep(torch.cat([u, i], -1)).squeeze(-1)


def ranking():
    """Bayesian personalised ranking; an item that was not seen is drawn."""
    def loss(module, user, item):
        other = torch.randint(14, item.shape)
        reg = module.users(user).norm(2).pow(2) + module.items(item).norm(2).pow(2)
        return -(module(user, item) - module(user, other)).sigmoid().log().mean() + 1e-3 * reg / len(user)
    return Factors(), loss, {"user": torch.randint(0, 9, (8,)), "item": torch.randint(0, 14, (8,))}


class BayesLinear(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.mu, self.rho = nn.Parameter(0.3 * torch.randn(outer, inner)), nn.Parameter(torch.full((outer, inner), -3.0))

    def forward(self, x):
        sigma = torch.log1p(torch.exp(self.rho))
        weight = self.mu + sigma * torch.randn_like(sigma)
        self.kl = torch.distributions.kl_divergence(torch.distributions.Normal(self.mu, sigma),
                                                    torch.distributions.Normal(0.0, 1.0)).sum()
        return F.linear(x, weight)


def bayes_by_backprop():
    def loss(module, x, y):
        out = module(x)
        return F.mse_loss(out, y, reduction="sum") + 0.1 * (module[0].kl + module[2].kl)
    return nn.Sequential(BayesLinear(4, 8), nn.Softplus(), BayesLinear(8, 1)), loss, {
        "x": torch.randn(8, 4), "y": torch.randn(8, 1)}


def energy_model():
    """Negatives by Langevin steps inside the loss."""
    def loss(module, x):
        y = torch.rand_like(x) * 2 - 1
        for _ in range(3):
            y = y.detach().requires_grad_(True)
            gradient = torch.autograd.grad(module(y).sum(), [y])[0]
            y = y - 0.5 * gradient + 0.01 * torch.randn_like(y)
        y = y.detach()
        up, down = module(x), module(y)
        return up.mean() - down.mean() + 0.1 * (up ** 2 + down ** 2).mean()
    return nn.Sequential(nn.Linear(2, 12), nn.SiLU(), nn.Linear(12, 1)), loss, {"x": torch.randn(8, 2)}


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv1d(3, 12, 1), nn.Linear(12, 9)
        self.net, self.head = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.SiLU()), nn.Linear(16, 3)

    def forward(self, x):
        t = torch.max(torch.tanh(self.conv(x)), 2, keepdim=True)[0].view(-1, 12)
        iden = torch.eye(3).flatten().view(1, 9).repeat(x.size(0), 1)
        trans = (self.fc(t) + iden).view(-1, 3, 3)
        x = torch.bmm(x.transpose(2, 1), trans).transpose(2, 1)
        return F.log_softmax(self.head(torch.max(self.net(x), 2)[0]), dim=-1), trans


def pointnet():
    def loss(module, x, y):
        out, trans = module(x)
        eye = torch.eye(3)[None]
        regular = torch.mean(torch.norm(torch.bmm(trans, trans.transpose(2, 1)) - eye, dim=(1, 2)))
        return F.nll_loss(out, y) + 0.001 * regular
    return PointNet(), loss, {"x": torch.randn(4, 3, 10), "y": torch.randint(0, 3, (4,))}


def message_passing():
    """Edges and the graph of each node are rows of the batch; what arrives is scattered."""
    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp, self.update, self.head = nn.Linear(8, 6), nn.Linear(10, 6), nn.Linear(6, 1)

        def forward(self, x, edge, graph):
            src, dst = edge[:, 0], edge[:, 1]
            m = F.silu(self.mlp(torch.cat([x[src], x[dst]], dim=-1)))
            got = torch.zeros(x.size(0), 6).scatter_add_(0, dst.unsqueeze(-1).expand_as(m), m)
            count = torch.zeros(x.size(0)).scatter_add_(0, dst, torch.ones(dst.shape)).clamp(min=1)
            h = torch.tanh(self.update(torch.cat([x, got / count.unsqueeze(-1)], dim=-1)))
            pooled = torch.zeros(3, 6).index_add_(0, graph, h)
            return self.head(pooled).squeeze(-1)

    def loss(module, x, edge, graph, y):
        return F.l1_loss(module(x, edge, graph), y[:3])
    return Conv(), loss, {"x": torch.randn(12, 4), "edge": torch.randint(0, 12, (12, 2)),
                          "graph": torch.arange(12) // 4, "y": torch.randn(12)}


def siamese():
    def loss(module, a, b, y):
        d = F.pairwise_distance(module(a), module(b), keepdim=True)
        return torch.mean((1 - y) * torch.pow(d, 2) + y * torch.pow(torch.clamp(2.0 - d, min=0.0), 2))
    module = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.BatchNorm2d(4),
                           nn.AdaptiveAvgPool2d((3, 2)), nn.Flatten(), nn.Linear(24, 5))
    return module, loss, {"a": pictures(6, 8, 1), "b": pictures(6, 8, 1), "y": (torch.rand(6, 1) < 0.5).float()}


# -- what is refused

def in_order():
    """Sorted losses, several elements of each row, sums by an index, a scan of log-sum-exp."""
    def loss(module, x, index, group):
        out = module(x)
        ranked = (out.sort(-1).values * torch.arange(6.)).sum() + out.topk(2).values.exp().mean()
        taken = out.gather(1, index).pow(2).mean() + out.gather(1, out.argsort(1)[:, :3]).sin().sum()
        sent = torch.zeros(6, 4).scatter_add(1, (out * 3).floor().long().clamp(0, 3), out).pow(2).sum()
        sums = torch.zeros(3, 6).index_add(0, group, out).pow(2).sum()
        put = torch.zeros(7, 6).index_put((torch.arange(6),), out).exp().sum()
        return ranked + taken + sent + sums + put + torch.logcumsumexp(out, 1).sum() + \
            out.median(1).values.sum() + out.kthvalue(2, 1).values.pow(2).sum()
    return nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 6)), loss, {
        "x": torch.randn(6, 8), "index": torch.randint(0, 6, (6, 4)), "group": torch.randint(0, 3, (6,))}


def quantiles_of_a_normal():
    """erfinv and its slope, log1p and expm1 of what is small, softplus, atan."""
    def loss(module, x):
        out = module(x)
        unit = torch.tanh(out)
        return torch.erfinv(unit).pow(2).mean() + torch.log1p(1e-4 * out ** 2).sum() + \
            torch.expm1(1e-3 * out).pow(2).sum() + F.softplus(out).mean() + torch.atan(3 * out).sum()
    return nn.Sequential(nn.Linear(8, 12), nn.Tanh(), nn.Linear(12, 6)), loss, {"x": torch.randn(6, 8)}


def fno():
    class Spectral(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.Parameter(torch.rand(4, 4, 5, dtype=torch.cfloat) / 16)

        def forward(self, x):
            x_ft = torch.fft.rfft(x)
            out = torch.zeros(x.shape[0], 4, x.size(-1) // 2 + 1, dtype=torch.cfloat)
            out[:, :, :5] = torch.einsum("bix,iox->box", x_ft[:, :, :5], self.weights)
            return torch.fft.irfft(out, n=x.size(-1))

    def loss(module, x):
        return module(x).pow(2).mean()
    return Spectral(), loss, {"x": torch.randn(2, 4, 16)}


def objects_by_a_mask():
    def loss(module, x, y):
        obj = y[..., 0] == 1
        return F.mse_loss(module(x)[obj], y[obj])
    return nn.Linear(4, 3), loss, {"x": torch.randn(6, 4), "y": (torch.rand(6, 3) < 0.5).float()}


def queue_of_keys():
    """MoCo's: the place in the queue is a number that leaves the tensors."""
    class Moco(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(4, 4)
            self.register_buffer("queue", F.normalize(torch.randn(4, 8), dim=0))
            self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    def loss(module, a, b):
        q, k = F.normalize(module.encoder(a), dim=1), F.normalize(module.encoder(b), dim=1).detach()
        positive = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        negative = torch.einsum("nc,ck->nk", [q, module.queue.clone().detach()])
        ptr = int(module.queue_ptr)
        module.queue[:, ptr:ptr + 4] = k.T
        module.queue_ptr[0] = (ptr + 4) % 8
        return F.cross_entropy(torch.cat([positive, negative], 1) / 0.07, torch.zeros(4, dtype=torch.long))
    return Moco(), loss, {"a": torch.randn(4, 4), "b": torch.randn(4, 4)}


def change_at_a_computed_place():
    def loss(module, x):
        out = module(x).detach().mean(0)
        out[out.argmax()] += 1.0
        return F.mse_loss(module(x).mean(0), out)
    return nn.Linear(4, 5), loss, {"x": torch.randn(6, 4)}


def congruence_of_64_bits():
    """Lehmer's: the product passes 32 bits before the rest is taken."""
    def loss(module, x, seed):
        unit = ((seed * 16807) % 2147483647).float() / 2147483647
        return F.mse_loss(module(x).squeeze(1), unit)
    return nn.Linear(4, 1), loss, {"x": torch.randn(6, 4), "seed": torch.arange(1, 7)}


LOSSES = (in_order, quantiles_of_a_normal, models.dcgan, models.wgan_gp, models.ddpm, models.ppo, models.a2c_continuous, models.dqn, models.sac,
          models.reinforce_bandit, models.gat, models.gcn, models.nerf, models.deeponet, models.realnvp,
          models.mdn, models.word2vec, models.supcon, models.barlow_twins, models.seq2seq, models.tcn,
          models.capsules, models.kan, mamba, rwkv, convnext, mobilenet, yolo, crf, mae, swin,
          neural_automaton, mixup, maml, gumbel_vae, segmentation, style_transfer, local_attention, ranking,
          bayes_by_backprop, energy_model, pointnet, message_passing, siamese, fno)
REFUSED = {congruence_of_64_bits: "may pass 32 bits: cut it first", objects_by_a_mask: "mask", queue_of_keys: "no item()",
           change_at_a_computed_place: "torch.where, index_put"}
