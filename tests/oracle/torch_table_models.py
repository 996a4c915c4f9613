"""Networks and their losses as repositories write them, for torch_table_test.py. Each function gives a module, a
loss and a batch. Not a test."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from torch_table import pictures


def weights_init(one):
    if isinstance(one, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(one.weight.data, 0.0, 0.02)
    elif isinstance(one, nn.BatchNorm2d):
        nn.init.normal_(one.weight.data, 1.0, 0.02)
        nn.init.constant_(one.bias.data, 0)


class Dcgan(nn.Module):
    def __init__(self, nz=6, ngf=4, ndf=4):
        super().__init__()
        self.netG = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False), nn.Tanh())
        self.netD = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False), nn.Sigmoid())
        self.apply(weights_init)


def dcgan():
    criterion = nn.BCELoss()

    def loss(module, real):
        b = real.size(0)
        valid = torch.full((b,), 1.0)
        errD_real = criterion(module.netD(real).view(-1), valid)
        fake = module.netG(torch.randn(b, 6, 1, 1))
        errD_fake = criterion(module.netD(fake.detach()).view(-1), torch.zeros_like(valid))
        return errD_real + errD_fake + criterion(module.netD(fake).view(-1), valid)
    return Dcgan(), loss, {"real": pictures(4, 16, 1)}


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(4, 12), nn.SiLU(), nn.Linear(12, 6))
        self.critic = nn.Sequential(nn.Linear(6, 12), nn.LeakyReLU(0.2), nn.Linear(12, 12), nn.Tanh(),
                                    nn.Linear(12, 1))


def wgan_gp():
    def gradient_penalty(critic, real, fake):
        alpha = torch.rand(real.size(0), 1).expand_as(real)
        interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
        scores = critic(interpolates)
        gradients = torch.autograd.grad(outputs=scores, inputs=interpolates, create_graph=True,
                                        grad_outputs=torch.ones_like(scores), retain_graph=True)[0]
        gradients = gradients.view(gradients.size(0), -1)
        return ((gradients.norm(2, dim=1) - 1) ** 2).mean()

    def loss(module, real):
        fake = module.generator(torch.randn(real.shape[0], 4))
        stopped = fake.detach()
        d = -torch.mean(module.critic(real)) + torch.mean(module.critic(stopped))
        return d + 10 * gradient_penalty(module.critic, real, stopped) - 0.1 * module.critic(fake).mean()
    return Critic(), loss, {"real": torch.randn(8, 6)}


class Denoiser(nn.Module):
    def __init__(self, steps=50, width=8):
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, steps)
        cumulative = torch.cumprod(1 - betas, dim=0)
        self.register_buffer("sqrt_alphas_cumprod", cumulative.sqrt())
        self.register_buffer("sqrt_one_minus_alphas_cumprod", (1 - cumulative).sqrt())
        self.width, self.num_timesteps = width, steps
        self.time_mlp = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))
        self.inc = nn.Conv2d(1, width, 3, padding=1)
        self.norm, self.outc = nn.GroupNorm(2, width), nn.Conv2d(2 * width, 1, 3, padding=1)
        self.down = nn.Conv2d(width, width, 4, 2, 1)

    def embedding(self, t):
        half = self.width // 2
        freqs = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
        args = t[:, None] * freqs[None, :]
        return torch.cat((args.sin(), args.cos()), dim=-1)

    def forward(self, x, t):
        emb = self.time_mlp(self.embedding(t))
        h = F.silu(self.norm(self.inc(x)) + emb[:, :, None, None])
        low = F.silu(self.down(h))
        return self.outc(torch.cat([F.interpolate(low, scale_factor=2, mode="nearest"), h], dim=1))


def ddpm():
    def extract(a, t, x_shape):
        out = a.gather(-1, t)
        return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))

    def loss(module, x):
        t = torch.randint(0, module.num_timesteps, (x.shape[0],)).long()
        noise = torch.randn_like(x)
        noisy = extract(module.sqrt_alphas_cumprod, t, x.shape) * x + \
            extract(module.sqrt_one_minus_alphas_cumprod, t, x.shape) * noise
        return F.smooth_l1_loss(module(noisy, t), noise)
    return Denoiser(), loss, {"x": pictures(4, 8, 1)}


class ActorCritic(nn.Module):
    def __init__(self, inner=6, actions=3, continuous=False):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inner, 16), nn.Tanh())
        self.actor, self.critic = nn.Linear(16, actions), nn.Linear(16, 1)
        self.log_std = nn.Parameter(torch.zeros(actions)) if continuous else None

    def forward(self, x):
        x = self.body(x)
        if self.log_std is not None:
            mean = self.actor(x)
            return torch.distributions.Normal(mean, self.log_std.exp().expand_as(mean)), self.critic(x)
        return torch.distributions.Categorical(logits=self.actor(x)), self.critic(x)


def ppo():
    def loss(module, obs, actions, old_logprob, returns, old_values):
        dist, values = module(obs)
        values = values.flatten()
        advantages = returns - old_values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        ratio = (dist.log_prob(actions) - old_logprob).exp()
        surr1, surr2 = ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages
        clipped = old_values + (values - old_values).clamp(-0.2, 0.2)
        v_loss = 0.5 * torch.max((values - returns).pow(2), (clipped - returns).pow(2)).mean()
        return -torch.min(surr1, surr2).mean() + 0.5 * v_loss - 0.01 * dist.entropy().mean()
    return ActorCritic(), loss, {
        "obs": torch.randn(12, 6), "actions": torch.randint(0, 3, (12,)),
        "old_logprob": -1.1 + 0.2 * torch.randn(12), "returns": torch.randn(12),
        "old_values": torch.randn(12)}


def a2c_continuous():
    def loss(module, obs, action, reward, done):
        dist, value = module(obs)
        returns, R = [], torch.zeros(obs.shape[0])
        for step in reversed(range(reward.shape[1])):
            R = reward[:, step] + 0.99 * R * (1.0 - done[:, step])
            returns.insert(0, R)
        returns = torch.stack(returns, 1).mean(1)
        advantage = returns - value.squeeze(-1)
        log_prob = dist.log_prob(action).sum(-1)
        return -(log_prob * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean() - \
            1e-3 * dist.entropy().sum(-1).mean()
    return ActorCritic(continuous=True), loss, {
        "obs": torch.randn(8, 6), "action": torch.randn(8, 3), "reward": torch.rand(8, 5),
        "done": (torch.rand(8, 5) < 0.2).float()}


class Dqn(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy_net, self.target_net = (nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
                                            for _ in range(2))


def dqn():
    """Double Q-learning: the policy chooses, the target says what it is worth."""
    def loss(module, state, action, reward, next_state, done):
        q = module.policy_net(state).gather(1, action.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = module.policy_net(next_state).argmax(dim=1, keepdim=True)
            target = reward + 0.99 * (1 - done) * module.target_net(next_state).gather(1, best).squeeze(1)
        return F.smooth_l1_loss(q, target)
    return Dqn(), loss, {"state": torch.randn(16, 4), "action": torch.randint(0, 2, (16,)),
                         "reward": torch.rand(16), "next_state": torch.randn(16, 4),
                         "done": (torch.rand(16) < 0.2).float()}


class Sac(nn.Module):
    def __init__(self, obs=5, act=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 16), nn.ReLU())
        self.mean, self.log_std = nn.Linear(16, act), nn.Linear(16, act)
        self.q1, self.q2, self.target = (nn.Sequential(nn.Linear(obs + act, 16), nn.SiLU(), nn.Linear(16, 1))
                                         for _ in range(3))
        self.log_alpha = nn.Parameter(torch.zeros(1))

    def sample(self, state):
        x = self.net(state)
        std = torch.clamp(self.log_std(x), -20, 2).exp()
        normal = torch.distributions.Normal(self.mean(x), std)
        x_t = normal.rsample()
        action = torch.tanh(x_t)
        log_prob = normal.log_prob(x_t) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(1, keepdim=True)


def sac():
    def loss(module, state, action, reward, next_state):
        alpha = module.log_alpha.exp().detach()
        with torch.no_grad():
            next_action, next_log = module.sample(next_state)
            q_next = module.target(torch.cat([next_state, next_action], 1)) - alpha * next_log
            y = reward.unsqueeze(1) + 0.99 * q_next
        both = torch.cat([state, action], 1)
        critic = F.mse_loss(module.q1(both), y) + F.mse_loss(module.q2(both), y)
        pi, log_pi = module.sample(state)
        at = torch.cat([state, pi], 1)
        actor = (alpha * log_pi - torch.min(module.q1(at), module.q2(at))).mean()
        return critic + actor - (module.log_alpha * (log_pi + 2).detach()).mean()
    return Sac(), loss, {"state": torch.randn(8, 5), "action": torch.rand(8, 2), "reward": torch.rand(8),
                         "next_state": torch.randn(8, 5)}


def reinforce_bandit():
    """The policy plays in the step: what it draws is the job's."""
    def loss(module, obs):
        dist, value = module(obs)
        action = dist.sample()
        reward = torch.where(action == 1, torch.tensor(1.0), torch.tensor(0.1)) * obs[:, 0].sigmoid()
        advantage = (reward - value.squeeze(-1)).detach()
        return -(dist.log_prob(action) * advantage).mean() + F.mse_loss(value.squeeze(-1), reward)
    return ActorCritic(), loss, {"obs": torch.randn(10, 6)}


class GraphAttentionLayer(nn.Module):
    def __init__(self, in_features, out_features, alpha=0.2):
        super().__init__()
        self.W = nn.Parameter(torch.empty(in_features, out_features))
        self.a = nn.Parameter(torch.empty(2 * out_features, 1))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.out, self.leakyrelu = out_features, nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        e = self.leakyrelu(torch.matmul(Wh, self.a[:self.out]) + torch.matmul(Wh, self.a[self.out:]).T)
        attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e))
        attention = F.dropout(F.softmax(attention, dim=1), 0.5, training=self.training)
        return F.elu(torch.matmul(attention, Wh))


class Gat(nn.Module):
    def __init__(self, nodes=10):
        super().__init__()
        adj = torch.rand(nodes, nodes) < 0.4
        self.register_buffer("adj", ((adj | adj.T) | torch.eye(nodes).bool()).float())
        self.heads = nn.ModuleList(GraphAttentionLayer(5, 4) for _ in range(2))
        self.out_att = GraphAttentionLayer(8, 3)

    def forward(self, x):
        x = torch.cat([att(x, self.adj) for att in self.heads], dim=1)
        return F.log_softmax(self.out_att(x, self.adj), dim=1)


def gat():
    def loss(module, x, y):
        return F.nll_loss(module(x), y)
    return Gat(), loss, {"x": torch.randn(10, 5), "y": torch.randint(0, 3, (10,))}


class Gcn(nn.Module):
    def __init__(self, nodes=9):
        super().__init__()
        a = (torch.rand(nodes, nodes) < 0.3).float()
        a = ((a + a.t()) > 0).float() + torch.eye(nodes)
        d = torch.diag(a.sum(1).pow(-0.5))
        self.register_buffer("a_hat", d @ a @ d)
        self.register_buffer("train_mask", torch.arange(nodes) % 3 != 1)
        self.gc1, self.gc2 = nn.Linear(4, 8, bias=False), nn.Linear(8, 3, bias=False)

    def forward(self, x):
        x = F.relu(self.a_hat @ self.gc1(x))
        return self.a_hat @ self.gc2(F.dropout(x, 0.5, self.training))


def gcn():
    def loss(module, x, y):
        out = module(x)
        return F.cross_entropy(out[module.train_mask], y[module.train_mask])
    return Gcn(), loss, {"x": torch.randn(9, 4), "y": torch.randint(0, 3, (9,))}


class Nerf(nn.Module):
    def __init__(self, freqs=4, width=16):
        super().__init__()
        self.register_buffer("freq_bands", 2.0 ** torch.linspace(0.0, freqs - 1, freqs))
        self.layers = nn.ModuleList([nn.Linear(3 + 6 * freqs, width), nn.Linear(width, width),
                                     nn.Linear(width + 3 + 6 * freqs, width)])
        self.sigma, self.rgb = nn.Linear(width, 1), nn.Linear(width, 3)

    def encode(self, x):
        out = [x]
        for freq in self.freq_bands:
            out += [torch.sin(x * freq), torch.cos(x * freq)]
        return torch.cat(out, -1)

    def forward(self, x):
        embedded = self.encode(x)
        h = embedded
        for i, layer in enumerate(self.layers):
            h = F.relu(layer(torch.cat([embedded, h], -1) if i == 2 else h))
        return torch.sigmoid(self.rgb(h)), self.sigma(h)


def nerf():
    def render(module, origins, directions, n=6):
        t = torch.linspace(2.0, 6.0, n).expand(origins.shape[0], n)
        mids = 0.5 * (t[..., 1:] + t[..., :-1])
        upper, lower = torch.cat([mids, t[..., -1:]], -1), torch.cat([t[..., :1], mids], -1)
        t = lower + (upper - lower) * torch.rand_like(t)
        points = origins[:, None, :] + directions[:, None, :] * t[..., :, None]
        rgb, sigma = module(points.reshape(-1, 3))
        rgb, sigma = rgb.reshape(-1, n, 3), sigma.reshape(-1, n)
        dists = t[..., 1:] - t[..., :-1]
        dists = torch.cat([dists, torch.full_like(dists[..., :1], 1e10)], -1)
        alpha = 1.0 - torch.exp(-F.softplus(sigma) * dists)
        trans = torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)
        weights = alpha * trans[:, :-1]
        return torch.sum(weights[..., None] * rgb, -2)

    def loss(module, origins, directions, target):
        mse = torch.mean((render(module, origins, directions) - target) ** 2)
        return mse
    return Nerf(), loss, {"origins": 0.1 * torch.randn(8, 3), "directions": F.normalize(torch.randn(8, 3)),
                          "target": torch.rand(8, 3)}


class DeepONet(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 8))
        self.trunk = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh())
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, u, y):
        return torch.einsum("bi,bpi->bp", self.branch(u), self.trunk(y)) + self.b


def deeponet():
    def loss(module, u, y, s):
        return nn.MSELoss()(module(u, y), s)
    return DeepONet(), loss, {"u": torch.randn(6, 20), "y": torch.rand(6, 7, 1), "s": torch.randn(6, 7)}


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(4, 12), nn.LeakyReLU(), nn.Linear(12, 4), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(4, 12), nn.LeakyReLU(), nn.Linear(12, 4))

    def forward(self, x):
        kept = x * self.mask
        s, t = self.s(kept) * (1 - self.mask), self.t(kept) * (1 - self.mask)
        return kept + (1 - self.mask) * (x * torch.exp(s) + t), s.sum(dim=1)


class RealNvp(nn.Module):
    def __init__(self):
        super().__init__()
        mask = torch.tensor([1.0, 0.0, 1.0, 0.0])
        self.flows = nn.ModuleList(Coupling(mask if i % 2 else 1 - mask) for i in range(3))

    def log_prob(self, x):
        total = x.new_zeros(x.shape[0])
        for flow in self.flows:
            x, log_det = flow(x)
            total += log_det
        prior = torch.distributions.Normal(torch.zeros(4), torch.ones(4))
        return prior.log_prob(x).sum(-1) + total


def realnvp():
    def loss(module, x):
        return -module.log_prob(x).mean()
    return RealNvp(), loss, {"x": torch.randn(12, 4)}


class Mdn(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(1, 12), nn.Tanh())
        self.pi, self.mu, self.sigma = nn.Linear(12, k), nn.Linear(12, k), nn.Linear(12, k)

    def forward(self, x):
        x = self.hidden(x)
        return F.softmax(self.pi(x), -1), torch.exp(self.sigma(x)), self.mu(x)


def mdn():
    def loss(module, x, y):
        pi, sigma, mu = module(x)
        m = torch.distributions.Normal(loc=mu, scale=sigma)
        return torch.mean(-torch.log(torch.sum(torch.exp(m.log_prob(y)) * pi, dim=1)))
    return Mdn(), loss, {"x": torch.randn(12, 1), "y": torch.randn(12, 1)}


class SkipGram(nn.Module):
    def __init__(self, words=30, dim=8):
        super().__init__()
        self.input_vectors, self.output_vectors = nn.Embedding(words, dim), nn.Embedding(words, dim)
        self.register_buffer("noise", torch.rand(words) + 0.1)


def word2vec():
    """The words of the noise are drawn in the step."""
    def loss(module, center, context):
        b = center.shape[0]
        v = module.input_vectors(center)
        u = module.output_vectors(context)
        words = torch.multinomial(module.noise, b * 4, replacement=True).view(b, 4)
        n = module.output_vectors(words).neg()
        near = F.logsigmoid(torch.bmm(u.unsqueeze(1), v.unsqueeze(2)).squeeze())
        far = F.logsigmoid(torch.bmm(n, v.unsqueeze(2)).squeeze()).sum(1)
        return -(near + far).mean()
    return SkipGram(), loss, {"center": torch.randint(0, 30, (6,)), "context": torch.randint(0, 30, (6,))}


def supcon():
    def loss(module, x, y):
        features = F.normalize(module(x), dim=1)
        n = features.shape[0]
        labels = y.contiguous().view(-1, 1)
        mask = torch.eq(labels, labels.T).float()
        logits = torch.div(torch.matmul(features, features.T), 0.1)
        logits_max, _ = torch.max(logits, dim=1, keepdim=True)
        logits = logits - logits_max.detach()
        others = torch.scatter(torch.ones_like(mask), 1, torch.arange(n).view(-1, 1), 0)
        mask = mask * others
        log_prob = logits - torch.log((torch.exp(logits) * others).sum(1, keepdim=True))
        return -((mask * log_prob).sum(1) / torch.clamp(mask.sum(1), min=1)).mean()
    return nn.Linear(8, 6), loss, {"x": torch.randn(12, 8), "y": torch.randint(0, 3, (12,))}


def barlow_twins():
    class Projector(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.ReLU(inplace=True),
                                     nn.Linear(12, 6, bias=False))
            self.bn = nn.BatchNorm1d(6, affine=False)

    def off_diagonal(x):
        n, _ = x.shape
        return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()

    def loss(module, a, b):
        c = module.bn(module.net(a)).T @ module.bn(module.net(b))
        c.div_(a.shape[0])
        on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
        return on_diag + 0.005 * off_diagonal(c).pow_(2).sum()
    return Projector(), loss, {"a": torch.randn(12, 8), "b": torch.randn(12, 8)}


class Attention(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.attn, self.v = nn.Linear(hidden * 2, hidden), nn.Linear(hidden, 1, bias=False)

    def forward(self, hidden, outputs):
        repeated = hidden.unsqueeze(1).repeat(1, outputs.shape[1], 1)
        energy = torch.tanh(self.attn(torch.cat((repeated, outputs), dim=2)))
        return F.softmax(self.v(energy).squeeze(2), dim=1)


class Seq2Seq(nn.Module):
    def __init__(self, words=12, hidden=8):
        super().__init__()
        self.embed, self.target = nn.Embedding(words, hidden), nn.Embedding(words, hidden)
        self.encoder = nn.GRU(hidden, hidden, batch_first=True)
        self.cell, self.attention = nn.GRU(2 * hidden, hidden, batch_first=True), Attention(hidden)
        self.out, self.words = nn.Linear(3 * hidden, words), words

    def forward(self, src, trg):
        outputs = torch.zeros(trg.shape[0], trg.shape[1], self.words)
        encoded, hidden = self.encoder(self.embed(src))
        word = trg[:, 0]
        for t in range(1, trg.shape[1]):
            seen = self.target(word).unsqueeze(1)
            a = self.attention(hidden.squeeze(0), encoded).unsqueeze(1)
            weighted = torch.bmm(a, encoded)
            out, hidden = self.cell(torch.cat((seen, weighted), dim=2), hidden)
            logits = self.out(torch.cat((out, weighted, seen), dim=2).squeeze(1))
            outputs[:, t] = logits
            word = logits.argmax(1) if t % 2 else trg[:, t]  # half by itself
        return outputs


def seq2seq():
    criterion = nn.CrossEntropyLoss(ignore_index=0)

    def loss(module, src, trg):
        out = module(src, trg)
        return criterion(out[:, 1:].reshape(-1, out.shape[-1]), trg[:, 1:].reshape(-1))
    return Seq2Seq(), loss, {"src": torch.randint(1, 12, (4, 6)), "trg": torch.randint(0, 12, (4, 5))}


class TemporalBlock(nn.Module):
    def __init__(self, inner, outer, dilation):
        super().__init__()
        self.padding = 2 * dilation
        self.conv1 = nn.utils.weight_norm(nn.Conv1d(inner, outer, 3, padding=self.padding, dilation=dilation))
        self.downsample = nn.Conv1d(inner, outer, 1) if inner != outer else None

    def forward(self, x):
        out = F.relu(self.conv1(x)[:, :, :-self.padding].contiguous())
        return F.relu(F.dropout(out, 0.1, self.training) + (x if self.downsample is None else self.downsample(x)))


def tcn():
    module = nn.Sequential(TemporalBlock(2, 6, 1), TemporalBlock(6, 6, 2), TemporalBlock(6, 6, 4))
    module.add_module("linear", nn.Conv1d(6, 3, 1))

    def loss(module, x, y):
        return F.cross_entropy(module(x)[:, :, -1], y)
    return module, loss, {"x": torch.randn(5, 2, 12), "y": torch.randint(0, 3, (5,))}


class CapsNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, stride=2)
        self.W = nn.Parameter(0.3 * torch.randn(1, 18, 3, 6, 4))
        self.decoder = nn.Sequential(nn.Linear(18, 12), nn.ReLU(inplace=True), nn.Linear(12, 64), nn.Sigmoid())

    @staticmethod
    def squash(x, dim=-1):
        squared = (x ** 2).sum(dim=dim, keepdim=True)
        return squared / (1 + squared) * x / (squared.sqrt() + 1e-8)

    def forward(self, x, y):
        u = self.squash(F.relu(self.conv(x)).view(x.size(0), -1, 4))
        u_hat = torch.matmul(self.W, u[:, :, None, :, None]).squeeze(-1)
        b, stopped = torch.zeros(x.size(0), 18, 3, 1), u_hat.detach()
        for i in range(3):
            c = F.softmax(b, dim=2)
            if i < 2:
                v = self.squash((c * stopped).sum(dim=1, keepdim=True))
                b = b + torch.matmul(stopped.unsqueeze(3), v.unsqueeze(-1)).squeeze(-1)
            else:
                v = self.squash((c * u_hat).sum(dim=1))
        masked = v * torch.eye(3).index_select(dim=0, index=y)[:, :, None]
        return v.norm(dim=-1), self.decoder(masked.view(x.size(0), -1))


def capsules():
    def loss(module, x, y):
        lengths, again = module(x, y)
        labels = F.one_hot(y, 3).float()
        left, right = F.relu(0.9 - lengths) ** 2, F.relu(lengths - 0.1) ** 2
        margin = (labels * left + 0.5 * (1.0 - labels) * right).sum(1).mean()
        return margin + 0.0005 * F.mse_loss(again, x.view(x.size(0), -1), reduction="sum")
    return CapsNet(), loss, {"x": torch.rand(4, 1, 8, 8), "y": torch.randint(0, 3, (4,))}


class KanLinear(nn.Module):
    def __init__(self, inner, outer, grid_size=4, order=3):
        super().__init__()
        h = 2 / grid_size
        grid = (torch.arange(-order, grid_size + order + 1) * h - 1).expand(inner, -1).contiguous()
        self.register_buffer("grid", grid)
        self.order, self.inner, self.outer = order, inner, outer
        self.base_weight = nn.Parameter(0.3 * torch.randn(outer, inner))
        self.spline_weight = nn.Parameter(0.3 * torch.randn(outer, inner, grid_size + order))
        self.spline_scaler = nn.Parameter(torch.ones(outer, inner))

    def b_splines(self, x):
        grid, x = self.grid, x.unsqueeze(-1)
        bases = ((x >= grid[:, :-1]) & (x < grid[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            bases = ((x - grid[:, :-(k + 1)]) / (grid[:, k:-1] - grid[:, :-(k + 1)]) * bases[:, :, :-1]) + (
                (grid[:, k + 1:] - x) / (grid[:, k + 1:] - grid[:, 1:(-k)]) * bases[:, :, 1:])
        return bases.contiguous()

    def forward(self, x):
        weight = (self.spline_weight * self.spline_scaler.unsqueeze(-1)).view(self.outer, -1)
        return F.linear(F.silu(x), self.base_weight) + F.linear(self.b_splines(x).view(x.size(0), -1), weight)


def kan():
    def loss(module, x, y):
        return F.mse_loss(module(x), y)
    return nn.Sequential(KanLinear(2, 5), KanLinear(5, 1)), loss, {
        "x": torch.rand(12, 2) * 2 - 1, "y": torch.randn(12, 1)}

