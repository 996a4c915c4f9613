"""Simulations, games, estimates and updates of one's own as repositories write them, for torch_table_test.py: a step,
its state and, where it draws rows, a batch. Not a test."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def gray_scott():
    kernel = torch.tensor([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]])[None, None]

    def laplacian(x):
        return F.conv2d(F.pad(x[None, None], (1, 1, 1, 1), mode="circular"), kernel)[0, 0]

    def step(state):
        u, v = state["u"], state["v"]
        for _ in range(2):
            uvv = u * v * v
            u, v = u + laplacian(u) - uvv + 0.055 * (1 - u), v + 0.5 * laplacian(v) + uvv - 0.117 * v
        return {"u": u.clamp(0, 1), "v": v.clamp(0, 1)}
    u, v = torch.ones(24, 24), torch.zeros(24, 24)
    u[9:15, 9:15], v[9:15, 9:15] = 0.5, 0.25
    return step, {"u": u + 0.01 * torch.rand(24, 24), "v": v}


def ising():
    """A checkerboard at a time; spins are small integers."""
    side = 12
    board = torch.arange(side)[:, None] + torch.arange(side)[None, :]

    def sweep(spins, colour, beta):
        around = sum(torch.roll(spins, shift, axis) for shift in (1, -1) for axis in (0, 1))
        change = 2.0 * spins * around
        accept = torch.rand(side, side) < torch.exp(-beta * change)
        return torch.where(accept & (board % 2 == colour), -spins, spins)

    def step(state):
        spins = state["spins"]
        for colour in (0, 1):
            spins = sweep(spins, colour, 0.44)
        return {"spins": spins, "magnet": spins.float().mean().abs()}
    spins = torch.randint(0, 2, (side, side)).to(torch.int8) * 2 - 1
    return step, {"spins": spins, "magnet": torch.tensor(0.0)}


def life_by_convolution():
    kernel = torch.ones(1, 1, 3, 3)
    kernel[0, 0, 1, 1] = 9

    def step(state):
        x = F.pad(state["x"], (1, 1, 1, 1), mode="circular")
        n = F.conv2d(x, kernel)
        return {"x": ((n == 3) + (n == 11) + (n == 12)).to(torch.float32)}
    return step, {"x": (torch.rand(1, 1, 14, 14) < 0.35).float()}


def life_of_bytes():
    """Cells are bytes, and so are the sums of their neighbours."""
    def step(state):
        x = state["x"]
        n = torch.zeros_like(x)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dy or dx:
                    n += x.roll((dy, dx), (0, 1))
        born, stays = (n == 3) & (x == 0), ((n == 2) | (n == 3)) & (x == 1)
        age = state["age"] + 100
        return {"x": torch.where(born | stays, 1, 0).to(torch.uint8), "age": age}
    return step, {"x": (torch.rand(10, 10) < 0.4).to(torch.uint8), "age": torch.full((4,), 200, dtype=torch.uint8)}


def pi_of_a_million():
    def step(state):
        points = torch.rand(1000000, 2)
        inside = ((points ** 2).sum(1) <= 1.0).sum()
        return {"pi": 4 * inside / 1000000, "seen": state["seen"] + 1}
    return step, {"pi": torch.tensor(0.0), "seen": torch.tensor(0)}


def gan_by_hand():
    """Both updates of a step, with momentum: the states are weights."""
    names = ("g1", "g2", "d1", "d2")

    def generator(w, z):
        return torch.tanh(z @ w["g1"]) @ w["g2"]

    def judge(w, x):
        return (F.leaky_relu(x @ w["d1"], 0.2) @ w["d2"]).squeeze(-1)

    def step(state, x):
        w = {name: state[name].detach().clone().requires_grad_(True) for name in names}
        fake = generator(w, torch.randn(x.shape[0], 3))
        ones, zeros = torch.ones(x.shape[0]), torch.zeros(x.shape[0])
        d_loss = F.binary_cross_entropy_with_logits(judge(w, x), ones) + \
            F.binary_cross_entropy_with_logits(judge(w, fake.detach()), zeros)
        d_grads = torch.autograd.grad(d_loss, [w["d1"], w["d2"]])
        g_loss = F.binary_cross_entropy_with_logits(judge(w, fake), ones)
        g_grads = torch.autograd.grad(g_loss, [w["g1"], w["g2"]])
        after = {}
        for name, gradient in zip(names, g_grads + d_grads):
            speed = 0.9 * state["v_" + name] + gradient
            after["v_" + name], after[name] = speed, state[name] - 0.05 * speed
        after["d_loss"] = d_loss.detach()
        return after
    sizes = {"g1": (3, 8), "g2": (8, 4), "d1": (4, 8), "d2": (8, 1)}
    state = {name: 0.3 * torch.randn(*size) for name, size in sizes.items()}
    state.update({"v_" + name: torch.zeros(*size) for name, size in sizes.items()})
    return step, {**state, "d_loss": torch.tensor(0.0)}, {"x": torch.randn(8, 4)}


def module_and_adam():
    """A module of torch, called with the weights of the state; Adam by hand, with its count."""
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 1))
    names = [name for name, _ in module.named_parameters()]

    def step(state, x, y):
        weights = {name: state[name].detach().requires_grad_(True) for name in names}
        buffers = {name: state[name] for name, one in module.named_buffers() if one.is_floating_point()}
        out = torch.nn.utils.stateless.functional_call(module, {**weights, **buffers}, (x,))
        loss = F.mse_loss(out, y)
        loss.backward()
        t = state["t"] + 1
        after = {"t": t, "error": loss.detach(), **buffers}
        for name in names:
            g = weights[name].grad
            m = 0.9 * state["m1." + name] + 0.1 * g
            v = 0.999 * state["m2." + name] + 0.001 * g * g
            m_hat, v_hat = m / (1 - 0.9 ** t), v / (1 - 0.999 ** t)
            after[name] = state[name] - 0.01 * m_hat / (v_hat.sqrt() + 1e-8)
            after["m1." + name], after["m2." + name] = m, v
        return after
    state = {name: one.detach().clone() for name, one in module.state_dict().items() if one.is_floating_point()}
    for name in names:
        state["m1." + name], state["m2." + name] = torch.zeros_like(state[name]), torch.zeros_like(state[name])
    state.update(t=torch.tensor(0), error=torch.tensor(0.0))
    return step, state, {"x": torch.randn(8, 4), "y": torch.randn(8, 1)}


def q_learning():
    """Many agents in a grid world with one table: what they learn is scattered into it."""
    side, agents = 5, 16
    moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def step(state):
        q, pos = state["q"], state["pos"].long()
        index = pos[:, 0] * side + pos[:, 1]
        greedy = q[index].argmax(1)
        explore = torch.rand(agents) < 0.2
        action = torch.where(explore, torch.randint(0, 4, (agents,)), greedy)
        new = (pos + moves[action]).clamp(0, side - 1)
        after = new[:, 0] * side + new[:, 1]
        reward = (after == side * side - 1).float()
        target = reward + 0.9 * q[after].max(1).values * (1 - reward)
        error = target - q[index, action]
        table = torch.zeros_like(q).index_put((index, action), error, accumulate=True)
        home = (reward > 0).unsqueeze(1)
        return {"q": q + 0.5 * table / agents, "pos": torch.where(home, torch.zeros_like(new), new).float()}
    return step, {"q": 0.1 * torch.rand(25, 4), "pos": torch.randint(0, side, (agents, 2)).float()}


def black_scholes():
    def step(state, strike=1.05, rate=0.03, sigma=0.25, steps=12, paths=4096):
        dt = 1 / steps
        z = torch.randn(steps, paths)
        log_path = torch.cumsum((rate - 0.5 * sigma ** 2) * dt + sigma * math.sqrt(dt) * z, dim=0)
        prices = torch.exp(log_path)
        asian = torch.clamp(prices.mean(0) - strike, min=0)
        barrier = torch.where(prices.max(dim=0).values < 1.4, torch.clamp(prices[-1] - strike, min=0),
                              torch.zeros(()))
        n = state["n"] + 1
        found = math.exp(-rate) * torch.stack([asian.mean(), barrier.mean()])
        return {"price": state["price"] + (found - state["price"]) / n, "n": n}
    return step, {"price": torch.zeros(2), "n": torch.tensor(0)}


def double_pendulum():
    def slope(y):
        a, b, p, q = y.unbind(-1)
        d = a - b
        s = 1 + torch.sin(d) ** 2
        up = (q ** 2 * torch.sin(d) + 9.81 * torch.sin(b) * torch.cos(d) - 19.62 * torch.sin(a)
              + p ** 2 * torch.sin(d) * torch.cos(d) * -1) / s
        down = (2 * p ** 2 * torch.sin(d) + 19.62 * torch.sin(a) * torch.cos(d) - 19.62 * torch.sin(b)
                + q ** 2 * torch.sin(d) * torch.cos(d)) / s
        return torch.stack([p, q, up, down], -1)

    def step(state, h=0.01):
        y = state["y"]
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return {"y": y, "turn": torch.atan2(torch.sin(y[:, 0]), torch.cos(y[:, 0]))}
    return step, {"y": torch.randn(8, 4), "turn": torch.zeros(8)}


def k_means():
    def step(state, x):
        c = state["centres"]
        near = torch.cdist(x, c).argmin(dim=1)
        sums = torch.zeros_like(c).scatter_add_(0, near[:, None].expand(-1, 2), x)
        count = torch.zeros(4).index_add_(0, near, torch.ones(x.shape[0]))
        new = sums / count.clamp(min=1).unsqueeze(1)
        return {"centres": torch.where(count.unsqueeze(1) > 0, new, c), "count": count}
    return step, {"centres": torch.randn(4, 2), "count": torch.zeros(4)}, {"x": torch.randn(40, 2)}


def epidemic():
    links = (torch.rand(30, 30) < 0.15).float()
    links = torch.triu(links, 1)
    links = links + links.T

    def step(state):
        who = state["who"]  # 0 well, 1 ill, 2 over it
        ill = (who == 1).float()
        risk = 1 - (1 - 0.2) ** (links @ ill)
        falls = torch.bernoulli(risk).bool() & (who == 0)
        heals = (torch.rand(30) < 0.1) & (who == 1)
        who = torch.where(falls, torch.ones_like(who), torch.where(heals, torch.full_like(who, 2), who))
        count = torch.stack([(who == kind).sum() for kind in range(3)])
        return {"who": who, "count": count}
    who = torch.zeros(30, dtype=torch.long)
    who[:3] = 1
    return step, {"who": who, "count": torch.zeros(3, dtype=torch.long)}


def rule_110():
    """The rule is a table that the three cells index."""
    table = torch.tensor([0, 1, 1, 1, 0, 1, 1, 0])

    def step(state):
        cells = state["cells"]
        index = 4 * torch.roll(cells, 1) + 2 * cells + torch.roll(cells, -1)
        after = table[index]
        history = torch.cat([state["history"][1:], after.unsqueeze(0)])
        return {"cells": after, "history": history}
    cells = torch.zeros(31, dtype=torch.long)
    cells[-1] = 1
    return step, {"cells": cells, "history": torch.zeros(6, 31, dtype=torch.long)}


def particle_swarm():
    def rastrigin(x):
        return 10 * x.shape[-1] + (x ** 2 - 10 * torch.cos(2 * math.pi * x)).sum(-1)

    def step(state):
        x, v, best, at = state["x"], state["v"], state["best"], state["best_at"]
        leader = at[torch.argmin(best)]
        v = 0.7 * v + 1.5 * torch.rand_like(x) * (at - x) + 1.5 * torch.rand_like(x) * (leader - x)
        x = torch.clamp(x + v, -5.12, 5.12)
        now = rastrigin(x)
        better = now < best
        return {"x": x, "v": v, "best": torch.where(better, now, best),
                "best_at": torch.where(better[:, None], x, at)}
    x = torch.rand(12, 3) * 10 - 5
    return step, {"x": x, "v": torch.zeros(12, 3), "best": rastrigin(x), "best_at": x.clone()}


def evolution_strategy():
    target = torch.tensor([0.5, 0.1, -0.3, 0.8])

    def step(state, population=20, sigma=0.1, rate=0.05):
        w = state["w"]
        half = torch.randn(population // 2, 4)
        noise = torch.cat([half, -half])
        reward = -((w + sigma * noise - target) ** 2).sum(1)
        order = torch.argsort(reward)
        ranks = torch.empty_like(reward).scatter_(0, order, torch.linspace(-0.5, 0.5, population))
        best = torch.maximum(state["best"], reward.max())
        return {"w": w + rate / (population * sigma) * ranks @ noise, "best": best}
    return step, {"w": torch.zeros(4), "best": torch.tensor(-100.0)}


def boltzmann_machine():
    """Contrastive divergence with units that are drawn."""
    def step(state, v0):
        w, a, b = state["w"], state["a"], state["b"]
        h0 = torch.sigmoid(v0 @ w + b)
        sample = torch.bernoulli(h0)
        v1 = torch.bernoulli(torch.sigmoid(F.linear(sample, w, a)))
        h1 = torch.sigmoid(v1 @ w + b)
        n = v0.size(0)
        return {"w": w + 0.1 * (v0.t() @ h0 - v1.t() @ h1) / n, "a": a + 0.1 * (v0 - v1).mean(0),
                "b": b + 0.1 * (h0 - h1).mean(0)}
    return step, {"w": 0.1 * torch.randn(6, 5), "a": torch.zeros(6), "b": torch.zeros(5)}, {
        "v0": (torch.rand(10, 6) < 0.5).float()}


def hamiltonian():
    """Hamiltonian Monte Carlo: slopes by autograd, one decision for each chain."""
    def energy(q):
        return 0.5 * (q[:, 0] ** 2 + (q[:, 1] - 0.3 * q[:, 0] ** 2) ** 2)

    def slope(q):
        q = q.detach().requires_grad_(True)
        return torch.autograd.grad(energy(q).sum(), q)[0]

    def step(state, eps=0.1, leaps=4):
        q0 = state["q"]
        p0 = torch.randn_like(q0)
        q, p = q0, p0 - 0.5 * eps * slope(q0)
        for i in range(leaps):
            q = q + eps * p
            p = p - (eps if i < leaps - 1 else 0.5 * eps) * slope(q)
        change = energy(q0) - energy(q) + 0.5 * (p0 ** 2 - p ** 2).sum(1)
        accept = torch.log(torch.rand(q0.shape[0])) < change
        return {"q": torch.where(accept.unsqueeze(1), q, q0), "rate": accept.float().mean()}
    return step, {"q": torch.randn(6, 2), "rate": torch.tensor(0.0)}


def burgers():
    """Upwind differences written into slices, as numpy programs are."""
    def step(state, dt=0.01, dx=0.1, nu=0.05):
        u = state["u"]
        new = u.clone()
        new[1:-1] = u[1:-1] - u[1:-1] * dt / dx * (u[1:-1] - u[:-2]) + \
            nu * dt / dx ** 2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        new[0] = 0
        new[-1] = 0
        return {"u": new, "time": state["time"] + dt}
    return step, {"u": torch.sin(torch.linspace(0, math.pi, 40)), "time": torch.tensor(0.0)}


def sandpile():
    def step(state):
        z = state["z"]
        over = z // 4
        z = z - 4 * over
        z[1:] += over[:-1]
        z[:-1] += over[1:]
        z[:, 1:] += over[:, :-1]
        z[:, :-1] += over[:, 1:]
        z[torch.randint(8, (1,)), torch.randint(8, (1,))] += 1
        return {"z": z, "grains": z.sum()}
    return step, {"z": torch.randint(0, 7, (8, 8)), "grains": torch.tensor(0)}


def generators():
    """Random numbers of one's own: a linear congruence, a xorshift, a hash of a counter."""
    def step(state):
        x = (state["x"] * 1664525 + 1013904223) % 2 ** 32
        y = state["y"] ^ (state["y"] << 13) & 0xffffffff
        y = y ^ (y >> 17)
        y = (y ^ (y << 5)) & 0xffffffff
        hashed = state["count"] * 2654435761 & 0xffffffff
        return {"x": x, "y": y, "unit": y.float() / 2 ** 32, "count": state["count"] + 1,
                "bucket": (hashed >> 20) % 7, "tens": torch.div(hashed, 10, rounding_mode="floor"),
                "large": torch.where(hashed > 2 ** 31, hashed >> 1, hashed)}
    zeros = torch.zeros(4, dtype=torch.long)
    return step, {"x": torch.tensor([1, 2, 3, 4000000000]), "y": torch.tensor([1, 7, 12345, 3]),
                  "unit": torch.zeros(4), "count": torch.arange(4), "bucket": zeros,
                  "tens": zeros, "large": zeros}


def words_with_signs():
    """int32 comes round, shifts keep the sign."""
    def step(state):
        return {"x": state["x"] * 1103515245 + 12345, "half": (state["half"] ^ -5) >> 1,
                "other": ~state["other"] | 1}
    return step, {"x": torch.tensor([1, -7], dtype=torch.int32), "half": torch.tensor([100, -30]),
                  "other": torch.tensor([4, 5])}


def elementary_automaton():
    """Wolfram's rule 30 by its bits."""
    def step(state):
        c = state["cells"]
        return {"cells": (30 >> (torch.roll(c, 1) * 4 + c * 2 + torch.roll(c, -1))) & 1}
    return step, {"cells": (torch.arange(33) == 16).long()}


def order_statistics():
    def step(state):
        x, long = state["x"], state["long"]
        return {"x": 0.9 * x.sort(descending=True, stable=True).values.roll(1) + 0.1 * x,
                "ranks": x.argsort().argsort(), "middle": x.median(), "third": x.kthvalue(3).values,
                "long": long.roll(1) * 1.01, "best": long.topk(3).indices,
                "least": long.topk(3, largest=False).values,
                "counts": state["counts"].scatter_add(0, x.argsort() % 10, torch.ones(50))}
    index = torch.zeros(50, dtype=torch.long)
    return step, {"x": torch.randn(50), "ranks": index, "middle": torch.zeros(()), "third": torch.zeros(()),
                  "long": torch.randn(10000), "best": index[:3], "least": torch.zeros(3),
                  "counts": torch.zeros(10)}


STEPS = (generators, words_with_signs, elementary_automaton, order_statistics, gray_scott, ising, life_by_convolution, life_of_bytes, pi_of_a_million, gan_by_hand, module_and_adam,
         q_learning, black_scholes, double_pendulum, k_means, epidemic, rule_110, particle_swarm,
         evolution_strategy, boltzmann_machine, hamiltonian, burgers, sandpile)
