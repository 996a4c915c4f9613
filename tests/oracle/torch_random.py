"""Writes small PyTorch programs by a number: what users do to tensors, in random order. Each line that is
written has run in PyTorch, which also has found finite gradients of the whole. Not a test."""

import random
import warnings

import torch

EXTRA = "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"
INPUTS = {"p": (3, 4, 6), "w": (6, 5), "x": (3, 4, 6), "k": (3, 4, 6)}


def parted(text):
    """The expressions of a text, with ;; between them."""
    return tuple(" ".join(one.split()) for one in text.split(";;"))


def inputs(seed):
    """Parameters p and w, and rows x (halves, so that there are ties) and k (integers)."""
    maker = torch.Generator().manual_seed(seed)
    p, w, x = (torch.randn(INPUTS[name], generator=maker) for name in "pwx")
    return p, w, (x * 2).round() / 2, torch.randint(0, 5, INPUTS["k"], generator=maker)


def weighed(made):
    """One number that each element of each tensor has a share of, by its value and its place."""
    total = 97.0  # what is compared is a share of it
    for one in made:
        one = one.float()
        share = torch.sin(torch.arange(one.numel()) * 1.7 + 1).reshape(one.shape)
        total = total + (one * share).sum() + (one * one).mean() * 0.1 if one.numel() else total + one.sum()
    return total


class Writer:
    """Lines of a program, and what its names are so far."""

    def __init__(self, seed, attempt):
        self.dice = random.Random("%d %d" % (seed, attempt))
        self.lines, self.count = [], 0
        p, w, x, k = inputs(seed)
        self.names = {"torch": torch, "F": torch.nn.functional, "p": p.requires_grad_(), "w": w.requires_grad_(),
                      "x": x, "k": k}
        exec("import math", self.names)

    def say(self, line):
        try:
            exec(line, self.names)
        except Exception:  # noqa: B902 - PyTorch refuses it too, or a shape does not fit
            return False
        self.lines.append(line)
        return True

    def give(self, text):
        """A new name for what an expression makes; None where it makes none."""
        name = "v%d" % self.count
        if not self.say("%s = %s" % (name, text)):
            return None
        made = self.names[name]
        if not isinstance(made, torch.Tensor) or made.numel() > 4000 or made.is_complex():
            self.lines.pop()
            return None
        self.count += 1
        return name

    def tensor(self, name):
        return self.names[name]

    def some(self, *texts):
        return self.dice.choice(texts)

    def made(self):
        return ["v%d" % i for i in range(self.count)]

    def axis(self, name):
        rank = self.tensor(name).dim()
        return self.dice.randrange(-rank, rank) if rank else 0


# ---- views, and what is written into them

def view_of(write, v):
    t, dice = write.tensor(v), write.dice
    size = list(t.shape)
    i, j = write.axis(v), write.axis(v)
    wide = size[i] if size else 1
    texts = parted("""
        {v}.transpose({i}, {j}) ;; {v}.select({i}, {at}) ;; {v}.narrow({i}, {at}, 1) ;; {v}.unsqueeze({i}) ;;
        {v}.squeeze() ;; {v}.reshape(-1) ;; {v}.view(-1) ;; {v}.flatten({lo}) ;; {v}[..., {at0}:] ;; {v}[::2] ;;
        {v}[{at0}] ;; {v}[:, 1::2] ;; {v}.chunk(2, {i})[-1] ;; {v}.split(2, {i})[0] ;; {v}.unbind({i})[{at}] ;;
        {v}.diagonal(0, {i}, {j}) ;; {v}.unfold({i}, 2, 2) ;; {v}.unfold({i}, 3, 1) ;; {v}.T ;; {v}.mT ;;
        {v}.permute({order}) ;; {v}.view({pair}) ;; {v}.reshape({pair}) ;; {v}.clone() ;; {v}.contiguous() ;;
        {v}.detach() ;; {v}.unsqueeze(0).expand(2, *{v}.shape) ;; {v}.expand(2, *{v}.shape).reshape(-1) ;;
        {v}.movedim({i}, {j}) ;; {v}.unflatten({i}, (-1, 2)) ;; {v}[..., None] ;; {v}.view_as({v}) ;;
        {v}.swapaxes({i}, {j}) ;; {v}[..., 0] ;; {v}[None] ;; {v}.data ;; {v}.expand_as({v}) ;; {v}.tensor_split(2,
        {i})[1] ;; {v}.transpose(0, {j}).reshape({pair})""")
    count = t.numel()
    least = [n for n in range(1, count + 1) if count % n == 0] or [1]
    first = dice.choice(least)
    order = list(range(t.dim()))
    dice.shuffle(order)
    return dice.choice(texts).format(v=v, i=i, j=j, at=dice.randrange(-wide, wide) if wide else 0,
                                     at0=dice.randrange(size[0]) if size and size[0] else 0, lo=dice.randrange(max(t.dim(), 1)),
                                     order=", ".join(map(str, order)) or "0", pair="%d, %d" % (first, count // max(first, 1)))


WRITES = parted("""
    {v}.add_({o}) ;; {v}.mul_(1.25) ;; {v} += 1 ;; {v} -= {o} ;; {v} *= {o} ;; {v}.copy_({o}) ;;
    {v}.copy_({v}.flip(0)) ;; {v}.masked_fill_({v}.detach() > 0.5, 0.25) ;; {v}.masked_fill_(torch.ones_like({v},
    dtype=torch.bool).tril(), -1.0) ;; {v}.clamp_(min=-0.5) ;; {v}.zero_() ;; {v}.fill_(0.75) ;; {v}.fill_(w[0, 0]) ;;
    {v}[0] = {o0} ;; {v}[-1] = 2.0 ;; {v}[..., 0] = {v}[..., -1] ;; {v}[1:] = {v}[:-1] ;; {v}[1:].copy_({v}[:-1]) ;;
    {v}[[0, -1]] = 0.5 ;; {v}[torch.tensor([0, 1, 0])] += 1.0 ;; {v}[{v}.detach() > 0.3] = 0.125 ;;
    {v}[torch.arange({n}) % 2 == 0] = 1.5 ;; {v}.index_put_((torch.tensor([0, 0]),), torch.tensor(0.5),
    accumulate=True) ;; {v}[::2] *= 2 ;; {v}[:, 0] += {v}[:, 1] ;; {v}.index_add_(0, torch.tensor([0, 0]),
    {v}[:2].clone()) ;; {v}.index_fill_(0, torch.tensor([0]), 0.5) ;; {v}.index_copy_(0, torch.tensor([1, 0]), {v}[:2]
    * 2) ;; {v}.scatter_(0, torch.zeros_like({v}, dtype=torch.long), {v} * 2) ;; {v}.scatter_add_(-1,
    torch.zeros_like({v}, dtype=torch.long), {v} * 0.5) ;; {v}.sub_({o}, alpha=0.5) ;; {v}.div_(1.5) ;; {v}.pow_(2) ;;
    {v}.tanh_() ;; {v}.relu_() ;; {v}.neg_() ;; {v}.lerp_({o}, 0.25) ;; {v}.addcmul_({o}, {o}, value=0.1) ;;
    {v}.tril_() ;; {v}.t_() ;; {v}.unsqueeze_(0) ;; {v}.squeeze_(0) ;; {v}.transpose_(0, -1) ;; {v}.exp_() ;;
    {v}.sin_() ;; {v}.data.mul_(1.5) ;; {v}.detach().add_(0.5) ;; {v}.sigmoid_() ;; {v}.floor_() ;; {v}.cumsum_(0) ;;
    {v}.t().add_({o}) ;; {v}.view(-1)[::3] *= 3 ;; {v}.transpose(0, -1)[0] -= 1 ;; {v}.diagonal().add_(1) ;;
    {v}.flatten()[1:3].fill_(0.5) ;; torch.add({v}.detach(), 1, out={v}.detach()) ;; F.relu({v}, inplace=True) ;;
    {v}.put_(torch.tensor([0]), torch.tensor([0.5])) ;; {v}.masked_scatter_(torch.ones_like({v},
    dtype=torch.bool).triu(), {v}.clone()) ;; {v}.unsqueeze(0).expand(2, *{v}.shape).add_(1) ;;
    {v}.expand_as({v}).mul_(2) ;; {v}[..., 1:].add_({v}[..., :-1]) ;; {v}.clamp_({o}, None) ;; {v}.where({v} > 0, {v}
    * 2).mul_(2) ;; {v}.resize_(2, 2) ;; {v}.swapaxes_(0, -1) ;; {v}.abs_().sqrt_() ;; {v}.baddbmm_({v}, {v}) if
    {v}.dim() == 3 else {v}.add_(2) ;; torch.Tensor.add_({v}, {v}) ;; {v}.logical_not_() ;; {v}.eq_(0) ;; {v}.round_()
    ;; {v}.renorm_(2, 0, 1.0)""")


def write_into(write, v):
    t = write.tensor(v)
    others = [o for o in write.made() if write.tensor(o).dtype == t.dtype and write.tensor(o).shape == t.shape]
    o = write.dice.choice(others + ["w[0, 1]", "x.mean()", "0.5", "p.flatten()[:%d].view(%s)" % (t.numel(), tuple(t.shape) or "()")])
    text = write.dice.choice(WRITES).format(v=v, o=o, o0=write.some("0.5", v + "[-1]", "w[0, 2]"), n=t.shape[0] if t.dim() else 1)
    if write.dice.random() < 0.04:
        text = "with torch.no_grad(): " + text
    return text


def views(write):
    for text in ("p * 1.5 + x", write.some("torch.zeros(3, 4, 6)", "torch.ones(4, 6)", "x.clone()", "w * 2", "torch.zeros_like(p)"),
                 write.some("x @ w", "p.transpose(1, 2) * 2", "k.float() + p", "(p * x)[:, 1:]", "F.linear(x, w.t())")):
        write.give(text)
    for _ in range(write.dice.randrange(3, 9)):
        v = write.dice.choice(write.made())
        if write.dice.random() < 0.5:
            write.give(view_of(write, v))
        else:
            write.say(write_into(write, v))
    return write.dice.sample(write.made(), min(3, write.count))


# ---- types

def types(write):
    d = write.dice
    for text in parted("""
        p + x ;; k ;; k.int() ;; k.to(torch.uint8) ;; x > 0 ;; k.sum() ;; x[0, 0, 0] ;; (k - 2).to(torch.int8) ;; k -
        3 ;; torch.tensor(2) ;; torch.tensor(1.5) ;; x.double() ;; torch.arange(6) ;; w.sum() ;; k > 2 ;;
        x.flatten()[0] > 0"""):
        write.give(text)
    binary = parted("""
        {a} + {b} ;; {a} - {b} ;; {a} * {b} ;; {a} / {b} ;; {a} // {b} ;; {a} % {b} ;; torch.fmod({a}, {b}) ;;
        torch.max({a}, {b}) ;; torch.minimum({a}, {b}) ;; torch.where({a} > {b}, {a}, {b}) ;; {a} < {b} ;; {a} == {b}
        ;; {a} != {b} ;; {a} & {b} ;; {a} | {b} ;; {a} ^ {b} ;; torch.add({a}, {b}, alpha=2) ;; torch.div({a}, {b},
        rounding_mode='trunc') ;; {a} >= {b} ;; torch.div({a}, {b}, rounding_mode='floor') ;;
        torch.stack(torch.broadcast_tensors({a}, {b})) ;; torch.sub({b}, {a}, alpha=3) ;; torch.cat([{a}.reshape(-1),
        {b}.reshape(-1)]) ;; {a}.clone().copy_({b}) ;; {a} << {b} ;; {a} >> {b} ;; {a} ** {b} ;; torch.lerp({a}, {b},
        0.5) ;; {a}.masked_fill({b} > 1, 2) ;; torch.clamp({a}, max={b}) ;; {a}.remainder({b}) ;;
        torch.logical_and({a}, {b}) ;; torch.logical_xor({a}, {b}) ;; torch.floor({a} / {b}) ;; {a}.to({b}.dtype) ;;
        {a}.type_as({b}) ;; torch.eq({a}, {b}).sum() ;; torch.isclose({a}, {b}) ;; torch.heaviside({a}, {b}) ;;
        torch.copysign({a}, {b}) ;; torch.xlogy({a}, {b}) ;; {a}.new_full((2, 3), 2) + {b} ;; torch.full_like({a}, 2)
        * {b} ;; torch.atan2({a}.float(), {b}.float()) ;; torch.float_power({a}, {b}) ;; torch.true_divide({a}, {b}) ;; torch.gcd({a},
        {b}) ;; torch.dist({a}, {b}) ;; torch.index_select({a}, -1, {b}.reshape(-1)[:2].long().abs() % 4) ;;
        torch.result_type({a}, {b}) and {a} * 1""")
    unary = parted("""
        {a}.float() ;; {a}.long() ;; {a}.int() ;; {a}.bool() ;; {a}.to(torch.uint8) ;; {a}.to(torch.int16) ;; -{a} ;;
        abs({a}) ;; ~{a} ;; {a}.sum() ;; {a}.sum(-1) ;; {a}.sum(dtype=torch.long) ;; {a}.float().mean(0) ;;
        {a}.cumsum(-1) ;; {a}.prod(-1) ;; {a}.any() ;; {a}.all(-1) ;; {a}.max() ;; {a}.argmax(-1) ;; {a}.min(-1)[0] ;;
        {a}.clamp(1, 3) ;; {a}.clamp(0.5, 2.5) ;; {a}.sign() ;; {a} + 1 ;; {a} * 2.5 ;; {a} / 3 ;; {a} // 2 ;; {a} % 3
        ;; {a} ** 2 ;; 2 ** {a} ;; 2 - {a} ;; 1 / ({a} * {a} + 1) ;; {a} + True ;; {a} * False ;; {a} > 1.5 ;; {a} ==
        2 ;; {a}.masked_fill(x[0, 0, 0] > 0, 1) ;; {a}.sort(-1)[0] ;; {a}.flip(-1) ;; {a}.round() ;;
        {a}.float().sqrt() ;; {a}.sin() ;; {a}.cumsum(-1, dtype=torch.float) ;; {a}.mean(dtype=torch.float) ;; {a} & 3
        ;; {a} << 1 ;; {a} >> 1 ;; torch.where({a} > 0, {a}, 0) ;; torch.where({a} > 0, 1, 2) ;;
        {a}.clone().fill_(2.7) ;; {a}.clone().add_(1) ;; {a}.clone().mul_(2) ;; {a}.clone().zero_() ;; {a}.square() ;;
        {a}.exp().clamp(max=9) ;; {a}.sigmoid() ;; {a}.trunc() ;; {a}.frac() ;; torch.logical_not({a}) ;; {a}.item()
        if False else {a} * 2 ;; {a}.softmax(-1) ;; {a}.floor() ;; torch.floor({a} / 7 * 7) ;; {a}.count_nonzero() ;;
        {a}.cumprod(-1) ;; {a}.nan_to_num() ;; {a}.diff() ;; {a}.unsqueeze(-1) * torch.arange(3) ;; +{a} ;;
        torch.arange(5)[{a}.long().clamp(0, 4)] ;; F.one_hot({a}.long().clamp(0, 4), 5) ;; {a}.expm1().clamp(max=9) ;;
        {a}.amax(-1) ;; torch.signbit({a}) ;; {a}.bitwise_and(6) ;; {a}.rsub(1) ;; torch.special.xlog1py({a}, 2) ;;
        {a}.std() ;; {a}.var(-1) ;; x[{a} > 0] if False else {a} ;; {a}.logical_or({a} > 2) ;; {a}.ne(0).float() ;;
        {a}.eq(True) ;; {a}.short() ;; {a}.char()""")
    made = []
    for _ in range(d.randrange(4, 9)):
        a, b = d.choice(write.made()), d.choice(write.made())
        name = write.give(d.choice(binary if d.random() < 0.5 else unary).format(a=a, b=b))
        made += [name] if name else []
    return d.sample(made, min(3, len(made)))


# ---- shapes

def broadcast(write):
    d = write.dice
    for text in parted("""
        p[:, :1] + x[:, :1] ;; x[:1] * 1 ;; p[..., :1] ;; w[0] ;; w[:, :1] ;; x[:, :0] + p[:, :0] ;; torch.zeros(0, 6)
        ;; p.sum(0, True) ;; x.mean() ;; k[:, :, :1] ;; p[0, 0, 0] ;; x + p ;; torch.ones(1, 1) ;; k[0, :0, 0] ;;
        w.t()"""):
        write.give(text)
    texts = parted("""
        {a} + {b} ;; {a} * {b} ;; {a} - {b} ;; torch.where({a} > 0, {a}, {b}) ;; torch.maximum({a}.float(),
        {b}.float()) ;; {a} @ {b} ;; torch.cat([{a}, {b}], {i}) ;; torch.stack([{a}, {b}], {i}) ;; {a}.expand_as({b})
        ;; {a}.expand(-1, 4, -1) ;; {a}.expand(2, -1, -1, -1) ;; {a}.sum({i}) ;; {a}.sum() ;; {a}.prod() ;;
        {a}.float().mean({i}, True) ;; {a}.amax({i}) ;; {a}.reshape(-1) ;; {a}.squeeze({i}) ;; {a}.squeeze() ;;
        {a}.unsqueeze({i}) ;; {a}[..., :0] ;; {a}[..., 1:] ;; {a}.transpose({i}, {j}) ;; torch.broadcast_tensors({a},
        {b})[0] ;; torch.outer({a}.reshape(-1)[:4], {b}.reshape(-1)[:3]) ;; {a}.repeat(1, 2, 1) ;;
        {a}.clone().add_({b}) ;; {a}.clone().copy_({b}) ;; {a}.broadcast_to(({b} + {a}).shape) ;;
        torch.atleast_3d({a}) ;; {a}.index_select({i}, torch.zeros(0, dtype=torch.long)) ;; {a}.flip({i}) ;;
        {a}.roll(1, {i}) ;; F.pad({a}.float(), (1, 0)) ;; {a}.cumsum({i}) ;; {a}.sort({i})[0] ;; {a}.any({i}) ;;
        {a}.all() ;; {a}.norm() ;; {a}.float().softmax({i}) ;; torch.addcmul({a}, {b}, {b}) ;;
        torch.kron({a}.reshape(-1)[:3], {b}.reshape(-1)[:2]) ;; {a}.numel() * {b} ;; F.relu({a}) ;;
        {a}.new_zeros({a}.shape) + {b} ;; torch.lerp({a}.float(), {b}.float(), 0.3) ;; {a}.masked_fill({b} > 0, 1) ;;
        {a}.chunk(2, {i})[0] ;; torch.dot({a}.reshape(-1), {b}.reshape(-1)) ;; {a}.clone().index_put_((torch.zeros(0,
        dtype=torch.long),), {a}.new_zeros(())) ;; F.linear({a}.float(), {b}.float()) ;; torch.cat([{a}[..., :0], {a},
        {a}[..., :0]], -1) ;; torch.bmm({a}, {b}.transpose(1, 2))""")
    made = []
    for _ in range(d.randrange(4, 9)):
        a, b = d.choice(write.made()), d.choice(write.made())
        name = write.give(d.choice(texts).format(a=a, b=b, i=write.axis(a), j=write.axis(a)))
        made += [name] if name else []
    return d.sample(made, min(3, len(made)))


def shapes(write):
    d = write.dice
    for text in ("p + x", "x * w[0]", "p[0] * 2", "k.float() * p", "w * 1", "(x + p)[:, :, 0]", "k", "p[0, 0]"):
        write.give(text)
    n, m = d.randrange(-7, 8), d.randrange(1, 4)
    texts = parted("""
        {a}.chunk(4, {i})[-1] ;; {a}.split(4, {i})[-1] ;; {a}.split([1, {a}.shape[{i}] - 1], {i})[1] ;;
        {a}.tensor_split(4, {i})[{m}] ;; {a}.flip({i}) ;; {a}.flip([{i}, {j}]) ;; {a}.roll({n}, {i}) ;; {a}.roll({n})
        ;; {a}.roll(({n}, 1), ({i}, {j})) ;; torch.rot90({a}, {n}, ({i}, {j})) ;; F.pad({a}, ({m}, 1)) ;; F.pad({a},
        (-1, {m}, 0, 1), value=0.5) ;; F.pad({a}, (1, {m}), mode='reflect') ;; F.pad({a}, (2, {m}), mode='replicate')
        ;; F.pad({a}, (1, {m}), mode='circular') ;; F.pad({a}[None], (1, 2, {m}, 0), mode='circular') ;;
        F.pad({a}[None], (1, 2, {m}, 0), mode='reflect') ;; F.pad({a}[None], (1, 2, {m}, 0), mode='replicate') ;;
        F.pad({a}, (-1, {m}), mode='reflect') ;; {a}.cumsum({i}) ;; {a}.cumprod({i}) ;; {a}.logcumsumexp({i}) ;;
        {a}.narrow({i}, -1, 1) ;; {a}[..., -3:-1] ;; {a}[..., ::{m}] ;; {a}[-2:, ...] ;; {a}.diff(dim={i}) ;;
        {a}.diff(n=2, dim={i}, prepend={a}.narrow({i}, 0, 1)) ;; {a}.repeat({m}, 1, 2) ;; {a}.repeat(2, 1) ;;
        {a}.repeat_interleave(2, {i}) ;; {a}.tile(2) ;; {a}.repeat_interleave(torch.tensor([0, 1, 2,
        1])[:{a}.shape[{i}]], {i}) ;; torch.diagonal_scatter({a}, {a}.diagonal() * 2) ;; {a}.diag() ;;
        torch.select_scatter({a}, {a}.select({i}, 0) * 2, {i}, -1) ;; torch.slice_scatter({a}, {a}.narrow({i}, 0, 2),
        {i}, 1, 3) ;; {a}.tril({n}) ;; {a}.triu({n}) ;; {a}.diag_embed() ;; {a}.diag_embed(1, {i}, {j}) ;;
        torch.block_diag({a}, {a}) ;; torch.meshgrid({a}, {a}, indexing='ij')[1] ;;
        {a}.take_along_dim({a}.argsort({i}), {i}) ;; {a}.gather({i}, (k[:1, :1, :1] % 2).expand({a}.shape)) if
        {a}.dim() == 3 else {a} * 2 ;; {a}[k[0, 0] % {a}.shape[0]] ;; {a}[k[:, 0, 0] % 2, ..., -1] ;; {a}[..., [0, -1,
        1]] ;; {a}[[0, 1], ..., [1, 0]] ;; {a}[:, None, [0, 1]] ;; {a}.index_select({i}, k[0, 0, :2] % 2) ;;
        {a}.unfold({i}, 2, 1) ;; {a}.unfold({i}, 3, 2).sum(-1) ;; {a}.movedim(0, -1).flatten() ;; {a}.take(k[0]) ;;
        torch.cat([{a}, {a}.flip(0)], {i}) ;; torch.hstack([{a}, {a}]) ;; torch.dstack([{a}, {a}]) ;;
        torch.column_stack([{a}, {a}]) ;; {a}.trace() ;; {a}.unflatten(-1, (-1, 2)).sum(-1) ;; torch.trapezoid({a},
        dim={i}) ;; torch.cumulative_trapezoid({a}, dim={i}) ;; torch.gradient({a}, dim={i})[0] ;; {a}.swapdims({i},
        {j})[..., 0] ;; torch.vander({a}, 3) ;; torch.cartesian_prod({a}, {a}) ;; torch.combinations({a}, 2) ;;
        {a}.flipud() ;; {a}.fliplr() ;; torch.narrow_copy({a}, {i}, 0, 1) ;; torch.tril_indices(3, 3)[0] + {a}.sum()
        ;; {a}.ravel()[::{m}] ;; {a}.view(2, -1) ;; {a}.index_add({i}, k[0, 0, :1] % 2, {a}.narrow({i}, 0, 1)) ;;
        {a}.index_copy({i}, torch.tensor([1]), {a}.narrow({i}, 0, 1) * 2) ;; {a}.index_fill({i}, torch.tensor([0, 1]),
        0.5) ;; {a}.scatter({i}, k[:{a}.shape[0], :1, :1] % 2, 0.5) ;; {a}.scatter_reduce({i}, torch.zeros_like({a},
        dtype=torch.long), {a}, 'amax') ;; {a}.masked_select({a} > 0).sum() ;; {a}.bincount(minlength=5) ;;
        F.pixel_shuffle({a}[:, :4].expand(3, 4, 6), 2) ;; F.channel_shuffle({a}[None], 3) ;; {a}.renorm(2, {i}, 1.0)
        ;; {a}[{a} > 0].sum() ;; torch.broadcast_to({a}.sum(), (2, 3)) ;; torch.unravel_index if False else {a} * 3 ;;
        {a}[:, torch.tensor([True, False, True, True])]""")
    made = []
    for _ in range(d.randrange(3, 7)):
        a = d.choice(write.made())
        name = write.give(d.choice(texts).format(a=a, i=write.axis(a), j=write.axis(a), n=n, m=m))
        made += [name] if name else []
    return d.sample(made, min(3, len(made)))


# ---- pictures

def pictures(write):
    d = write.dice
    high, wide = d.randrange(5, 10), d.randrange(5, 10)
    write.give("F.pad(p, (0, %d)).reshape(3, 4, -1)[:, :, :%d].reshape(3, 4, %d, %d) * 2" % (high * wide - 6, high * wide, high, wide))
    write.give("(x.repeat(1, 1, %d)[..., :%d].reshape(3, 4, %d, %d)) * p.mean()" % (high * wide // 6 + 1, high * wide, high, wide))
    write.give("v0 + v1 + torch.sin(torch.arange(%d.0)).reshape(%d, %d)" % (high * wide, high, wide))
    write.give("v2[:, :, 0]")
    for _ in range(d.randrange(1, 4)):
        groups, each, kernel = d.choice((1, 2, 4)), d.choice((1, 2)), (d.choice((1, 2, 3)), d.choice((1, 2, 3)))
        step, dil, pad = d.choice((1, 2, 3)), d.choice((1, 2)), d.choice((0, 1, "'same'", "'valid'"))
        weight = "torch.cos(torch.arange(%d.0)).reshape(%d, %d, %d, %d) * w[0, 0]" % (
            groups * each * (4 // groups) * kernel[0] * kernel[1], groups * each, 4 // groups, *kernel)
        back = "torch.cos(torch.arange(%d.0)).reshape(4, %d, %d, %d) * w[0, 0]" % (4 * each * kernel[0] * kernel[1], each, *kernel)
        line = "torch.cos(torch.arange(%d.0)).reshape(%d, %d, %d) * w[0, 0]" % (groups * each * (4 // groups) * 3, groups * each, 4 // groups, 3)
        k, s, c = d.choice((2, 3)), d.choice((1, 2, 3)), d.choice((True, False))
        mode, size = d.choice(("nearest", "bilinear", "bicubic", "area", "nearest-exact")), (d.randrange(2, 14), d.randrange(2, 14))
        corners = "" if mode in ("nearest", "area", "nearest-exact") else ", align_corners=%s" % c
        a = d.choice(("v2", "v0", "v2[:1]", "v2.transpose(2, 3)", "v2[0]"))
        texts = parted("""
        F.conv2d({a}, {weight}, None, {step}, {pad}, {dil}, {groups}) ;; F.conv2d({a}, {weight}, w[0,
        :1].expand({maps}), {step}, {pad}, {dil}, {groups}) ;; F.conv1d(v3, {line}, None, {step}, {pad}, {dil},
        {groups}) ;; F.conv_transpose2d({a}, {back}, None, {step}, {half}, {out}, {groups}, {dil}) ;;
        F.max_pool2d({a}, {k}, {s}, {half}, ceil_mode={c}) ;; F.max_pool2d({a}, {k}, {s}, 0, {dil}, ceil_mode={c}) ;;
        F.avg_pool2d({a}, {k}, {s}, {half}, {c}, {c2}) ;; F.avg_pool2d({a}, ({k}, 2), None, {half}, {c}, {c2},
        divisor_override=3) ;; F.avg_pool1d(v3, {k}, {s}, {half}, {c}, {c2}) ;; F.max_pool1d(v3, {k}, {s}, {half}, 1,
        {c}) ;; F.lp_pool2d({a}, 2, {k}) ;; F.adaptive_avg_pool2d({a}, ({k}, 3)) ;; F.adaptive_max_pool2d({a}, ({k},
        1)) ;; F.adaptive_avg_pool1d(v3, {k}) ;; F.adaptive_max_pool1d(v3, {k}) ;; F.interpolate({a}, {size},
        mode='{mode}'{corners}) ;; F.interpolate({a}, scale_factor={scale}, mode='{mode}'{corners}) ;;
        F.interpolate({a}, scale_factor={scale}, mode='{mode}'{corners}, recompute_scale_factor=True) ;;
        F.interpolate(v3, {k}, mode='linear', align_corners={c}) ;; F.interpolate({a}, {size}, mode='bilinear',
        antialias=True) ;; F.unfold({a}, {kernel}, {dil}, {half}, {step}) ;; F.fold(F.unfold({a}, {kernel}, {dil},
        {half}, {step}), {a}.shape[-2:], {kernel}, {dil}, {half}, {step}) ;; F.local_response_norm({a}, 3) ;;
        F.instance_norm({a}) ;; F.group_norm({a}, {groups}, w[0, :4], w[1, :4]) ;; F.layer_norm({a}, {a}.shape[-2:])
        ;; F.batch_norm({a}, None, None, w[0, :4], None, True) ;; F.batch_norm({a}, torch.zeros(4), torch.ones(4),
        None, w[1, :4]) ;; F.pixel_unshuffle({a}[..., :4, :4], 2) ;; F.grid_sample({a}, torch.zeros(3, 2, 2, 2) + w[0,
        0] * 0.1, align_corners=False) ;; F.affine_grid(p[:, :2, :3], (3, 1, 2, 2), align_corners={c}) ;;
        F.conv3d({a}[None], torch.ones(1, 3, 1, 1, 1)) ;; F.dropout2d({a}, 0.5, False) ;; F.max_pool2d({a}, {k},
        return_indices=True)[0] ;; F.normalize({a}, dim=1) ;; F.softmax({a}.flatten(2), -1) ;; F.pdist({a}.flatten(1))
        ;; F.cosine_similarity({a}, v2[:1], dim=1) ;; F.avg_pool2d({a}, 2, ceil_mode={c}, count_include_pad={c2}) ;;
        F.upsample({a}, scale_factor=2) ;; F.conv2d({a}, {weight}, groups={groups}, padding=(1, 2), stride=({step},
        1), dilation=(1, {dil})) ;; F.max_unpool2d(*F.max_pool2d({a}, 2, return_indices=True), 2)""")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write.give(d.choice(texts).format(a=a, weight=weight, back=back, line=line, step=step, dil=dil, pad=pad, groups=groups, maps=groups * each, half=k // 2, out=d.choice((0, min(step - 1, 1))),
                                              k=k, s=s, c=c, c2=d.choice((True, False)), mode=mode, corners=corners, size=size, kernel=kernel, scale=d.choice((2, 0.5, 1.5, (2, 1.3)))))
    return write.made()[4:]


# ---- sums, order, products

def sums(write):
    d = write.dice
    for text in ("p + x", "(p * 2).detach().round() / 2 * w[0, 0]", "x * w[0]", "k * w[0, 0]", "p[0]", "w * 2", "x.flatten()", "k"):
        write.give(text)
    texts = parted("""
        {a}.sum(({i}, {j})) ;; {a}.mean({i}, {c}) ;; {a}.var({i}, {c}) ;; {a}.std({i}, unbiased={c}) ;; {a}.var(({i},
        {j}), unbiased=False, keepdim={c}) ;; torch.var_mean({a}, {i})[{t}] ;; torch.std_mean({a}, ({i}, {j}),
        False)[{t}] ;; {a}.norm(dim={i}) ;; {a}.norm(p=1, dim=({i}, {j})) ;; {a}.norm(p=3, dim={i}) ;;
        torch.linalg.norm({a}, {o}, {i}, {c}) ;; torch.linalg.vector_norm({a}, {o}, ({i}, {j})) ;;
        torch.linalg.matrix_norm({a}) ;; torch.linalg.matrix_norm({a}, 'nuc') ;; torch.linalg.matrix_norm({a}, 1) ;;
        {a}.norm('fro') ;; {a}.norm(0) ;; {a}.amax(({i}, {j}), {c}) ;; {a}.amin({i}) ;; {a}.max({i})[{t}] ;;
        {a}.min({i}, {c})[{t}] ;; {a}.max() ;; {a}.min() ;; {a}.argmax({i}, {c}) ;; {a}.argmin() ;; {a}.argmax() ;;
        {a}.median({i})[0] ;; {f}.median({fi})[{t}] ;; {a}.median() ;; {a}.mode({i})[0] ;; {a}.kthvalue(2, {i})[0] ;;
        {f}.kthvalue(2, {fi})[{t}] ;; {a}.topk(2, {i})[0] ;; {f}.topk(2, {fi})[{t}] ;; {a}.topk(3, {i},
        largest=False)[0] ;; {f}.topk(3, {fi}, largest=False)[{t}] ;; {a}.topk(2, {i}, sorted=False)[0].sum({i}) ;;
        {a}.sort({i})[0] ;; {f}.sort({fi})[{t}] ;; {a}.sort({i}, descending={c})[0] ;; {a}.sort(dim={i}, stable=True,
        descending={c})[{t}] ;; {f}.argsort({fi}, descending={c}) ;; {a}.logsumexp({i}) ;; {a}.logsumexp(({i}, {j}),
        {c}) ;; {a}.prod({i}) ;; {a}.prod() ;; {a}.nansum({i}) ;; {a}.nanmean({i}) ;; {a}.quantile(0.3, {i}) ;;
        {a}.quantile(torch.tensor([0.1, 0.5]), dim={i}, keepdim={c}) ;; {a}.nanquantile(0.5) ;; {a}.nanmedian() ;;
        {a}.cummax({i})[0] ;; {a}.cummin({i})[1] ;; {a}.aminmax(dim={i})[{t}] ;; {a}.unique()[:1] ;; {a}.histc(4) ;;
        {a}.msort() ;; torch.corrcoef({a}) ;; torch.cov({a}) ;; torch.searchsorted({a}.sort(-1)[0], {a}) ;;
        torch.bucketize({a}, torch.tensor([-1.0, 0.0, 1.0]), right={c}) ;; torch.isin({a}, torch.tensor([0.5, 1.0]))
        ;; {a}.any({i}) ;; {a}.count_nonzero({i}) ;; {a}.sum({i}, keepdim={c}) ;; {a}.softmax({i}).max({i})[0] ;;
        {a}.log_softmax({i}) ;; F.softmin({a}, {i}) ;; F.gumbel_softmax({a}.detach() * 0 + 1, dim={i}).sum({i}) ;;
        {a}.cumsum({i}).amax({i}) ;; torch.dist({a}, {a} * 2, {o}) ;; F.normalize({a}, p=1, dim={i}) ;;
        {a}.min({i})[0] - {a}.max({i})[0] ;; torch.equal({a}, {a}) * {a} ;; torch.allclose({a}, {a}) * {a} ;;
        torch.cummax({a}, {i})[1] ;; {a}.renorm(1, {i}, 2.0) ;; torch.cumsum({a}.flip({i}), {i}).flip({i}) ;;
        F.cross_entropy({a}.reshape(-1, {a}.shape[-1]), k.flatten()[:{a}.numel() // {a}.shape[-1]] % {a}.shape[-1])""")
    made = []
    for _ in range(d.randrange(2, 6)):
        a = d.choice(write.made()[:8] + made)
        name = write.give(d.choice(texts).format(a=a, i=write.axis(a), j=write.axis(a), c=d.choice((True, False)), t=d.choice((0, 0, 1)), f=d.choice(("v0", "v4")), fi=d.choice((0, 0, -1)), o=d.choice((1, 2, 3, "math.inf", "-math.inf", 0, 0.5))))
        made += [name] if name else []
    return d.sample(made, min(3, len(made)))


def products(write):
    d = write.dice
    for text in ("p + x", "x[0] * w[0, 0]", "w * 1", "p[:, :, 0]", "p.transpose(1, 2)", "w[0]", "p[0]", "x.unsqueeze(1) + p.unsqueeze(1)", "w.sum()", "x[:, :1]"):
        write.give(text)
    letters = "abcd"
    texts = parted("""
        {a} @ {b} ;; {a} @ {b}.transpose(-1, -2) ;; torch.matmul({a}.transpose(-1, -2), {b}) ;; torch.mm({a}, {b}.t())
        ;; torch.bmm({a}, {b}.transpose(1, 2)) ;; torch.tensordot({a}, {b}, dims=1) ;; torch.tensordot({a}, {b},
        dims=([-1], [-1])) ;; torch.outer({a}, {b}) ;; torch.kron({a}, {b}) ;; torch.addmm(w[0, 0], {a}, {b}.t(),
        beta={n}, alpha=0.5) ;; torch.baddbmm({a}[:, :, :1], {a}, {b}.transpose(1, 2), beta={n}) ;; torch.addbmm(w[0,
        0], {a}, {b}.transpose(1, 2), alpha=2) ;; torch.addmv({a}[:, 0], {a}, {b}, beta={n}) ;; torch.addr(w[0, 0],
        {a}, {b}) ;; torch.dot({a}, {b}) ;; torch.inner({a}, {b}) ;; F.linear({a}, {b}) ;; F.bilinear({a}, {a},
        {b}.reshape(1, -1)[:, :36].reshape(1, 6, 6)) ;; torch.cdist({a}, {b}) ;; torch.cdist({a}, {b}, p=1) ;;
        torch.chain_matmul({a}, {b}) ;; torch.linalg.multi_dot([{a}, {b}.t(), {b}]) ;; {a}.mv({b}) ;;
        torch.cross({a}[..., :3], {b}[..., :3], -1) ;; torch.matrix_power({a} @ {a}.transpose(-1, -2) * 0.1, 3) ;;
        torch.einsum('{s}', {a}, {b}) ;; torch.einsum('{u}', {a}) ;; torch.einsum('...a,...a->...', {a}, {b}) ;;
        torch.einsum('...ab,cb->...ac', {a}, {b}) ;; torch.vdot({a}, {b}) ;; torch.matrix_exp({a}) ;;
        torch.linalg.inv({a} @ {a}.transpose(-1, -2) + torch.eye(4)) ;; torch.linalg.det({a} @ {a}.mT) ;;
        torch.trace({a} @ {b}.t()) ;; F.scaled_dot_product_attention({a}, {a}, {a}) if hasattr(F,
        'scaled_dot_product_attention') else F.softmax({a} @ {a}.mT, -1) @ {a} ;; torch.linalg.vecdot({a}, {b}) ;;
        F.multi_head_attention_forward({a}, {a}, {a}, 6, 2, torch.sin(torch.arange(108.)).reshape(18, 6) * w[0, 0],
        None, None, None, False, 0.0, torch.eye(6), None)[0] ;; torch.hypot({a}, {b}) ;; torch.ger({a}, {b}) ;; {a}.T
        @ {b} ;; F.pairwise_distance({a}, {b}) ;; {a}.square().sum(-1, True) @ {b}[..., :1, :]""")
    made = []
    for _ in range(d.randrange(2, 6)):
        a, b = d.choice(write.made()), d.choice(write.made())
        one = "".join(d.choice(letters) for _ in range(write.tensor(a).dim()))
        two = "".join(d.choice(letters) for _ in range(write.tensor(b).dim()))
        outs = lambda text: "".join(d.sample(sorted(set(text)), d.randrange(len(set(text)) + 1)))  # noqa: E731
        s = "%s,%s%s" % (one, two, "->" + outs(one + two) if d.random() < 0.8 else "")
        name = write.give(d.choice(texts).format(a=a, b=b, n=d.choice((0, 1, 0.5, -2)), s=s, u="%s->%s" % (one, outs(one))))
        made += [name] if name else []
    return d.sample(made, min(3, len(made)))


# ---- functions, losses, what is no number

FUNCTIONS = ("abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma log log10 log1p log2 logit neg positive rad2deg "
             "reciprocal round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc i0 nan_to_num isfinite isinf isnan isposinf signbit").split()
ACTIVATIONS = ("celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu softplus softshrink softsign tanhshrink sigmoid").split()


# What nets are made of: half of what functions() draws, so that most of its programs have lines.
USUAL = tuple("F.%s({a})" % one for one in ACTIVATIONS) + parted("""
    F.silu({a}) * {b} ;; {a}.clamp(-1, 1) * {b}.sigmoid() ;; F.softmax({a}, -1).log() ;; F.log_softmax({a}, 1) ;;
    torch.where({a} > {b}, F.elu({a}), {b}) ;; F.mse_loss(F.gelu({a}), {b}, reduction='{r}') ;;
    F.cross_entropy(F.softsign({a}), k[:, 0] % 4, reduction='{r}') ;; torch.logaddexp({a}, F.relu6({b})) ;;
    F.hardswish({a} * 2) - F.hardsigmoid({b}) ;; ({a} * {b}).clamp(max=3).exp().log1p() ;;
    F.smooth_l1_loss(torch.tanh({a}), {b}.detach(), reduction='{r}') ;; F.layer_norm({a} * {b}, (6,)) ;;
    F.kl_div(F.log_softmax({a}, -1), F.softmax({b}, -1), reduction='{r}') ;; F.huber_loss(F.mish({a}), F.selu({b})) ;;
    ({a} ** 2 + {b} ** 2 + 0.1).sqrt() ;; ({a}.sigmoid() * 0.9 + 0.05).logit() ;; torch.sin({a}) * torch.cos({b}) ;;
    F.binary_cross_entropy_with_logits({a}, (x > 0).float(), reduction='{r}') ;; torch.lerp({a}, {b}, 0.25) ;;
    ({a}.abs() + 0.5).rsqrt() ;; torch.erf({a}) + torch.atan({b}) ;; F.softplus({a}, 2.0, 3.0) - {b} ;;
    F.elu({a}, 0.5) + F.celu({b}, 0.7) ;; F.glu(torch.cat([{a}, {b}], -1)) ;; F.rrelu({a}, training=False) * {b}""")


def functions(write):
    d = write.dice
    for text in ("p + x", "x * w[0]", "(p + x).sigmoid() * 0.9 + 0.05", "(p * x).abs() + 1.5", "(p * 2).detach().round() / 2 + w[0, 0] * 0", "x * (p / p.detach())"):
        write.give(text)
    texts = tuple("torch.%s({a})" % one for one in FUNCTIONS) + tuple("F.%s({a})" % one for one in ACTIVATIONS) + parted("""
        F.threshold({a}, 0.5, -1.0) ;; F.leaky_relu({a}, -0.2) ;; F.elu({a}, 0.5) ;; F.softplus({a}, 2.0, 3.0) ;;
        F.gelu({a}, approximate='tanh') ;; F.prelu({a}, w[0, :4]) ;; {a}.clamp(-0.5, 0.5) ;; {a}.clamp({b}.detach(),
        None) ;; torch.maximum({a}, {b}) ;; torch.fmin({a}, {b}) ;; torch.fmax({a}, {b}) ;; torch.pow({a}, {n}) ;;
        torch.pow({b}, {a}) ;; {a} ** 0 ;; 2.5 ** {a} ;; (-2.0) ** k ;; {a} ** k ;; {a} % {n} ;; torch.fmod({a}, 0.75)
        ;; {a} // 0.5 ;; torch.remainder(-1.5, {a}) ;; torch.logaddexp({a}, {b}) ;; torch.logaddexp2({a}, {b}) ;;
        torch.ldexp({a}, k) ;; torch.copysign({a}, {b}) ;; torch.hypot({a}, {b}) ;; torch.atan2({a}, {b}) ;;
        torch.xlogy({a}, {b}.abs() + 0.5) ;; torch.nextafter({a}, {b}) ;; torch.polygamma(1, {b}) ;;
        torch.special.entr({a}) ;; torch.special.expit({a}) ;; torch.special.log_ndtr({a}) ;; torch.special.ndtr({a})
        ;; torch.special.i1({a}) ;; torch.mvlgamma({a}.abs() + 2, 2) ;; torch.addcdiv({a}, {b}, {b}.abs() + 1,
        value=0.5) ;; torch.addcmul({a}, {b}, {b}, value=-2) ;; torch.where({b} > 0, {a}, {b}) ;; torch.where({a} > 0,
        {a}, torch.zeros_like({a})).sqrt().nan_to_num() if False else {a}.clamp(min=0.1).sqrt() ;; torch.where({a} >
        0, {a}, {a}.new_tensor(1.0)).log() ;; torch.where({a} > 100, {a} / 0, {a}) ;; torch.where(torch.isnan({a} /
        {a}), {a}, {a} * 2) ;; ({a}.detach() / 0).nan_to_num(0.5, 2.0, -2.0) + {a} ;; {a}.masked_fill({a} > 0,
        math.inf).clamp(max=3) ;; {a}.masked_fill({a} > 0, -math.inf).softmax(-1) ;; {a}.masked_fill(torch.eye(6)[:4]
        > 0, -math.inf).softmax(-1) ;; {a}.masked_fill(torch.ones(4, 6).triu() > 0, -math.inf).amax(-1).clamp(min=-5)
        ;; {a}.masked_fill({a} > 0, math.nan).nansum(-1) ;; torch.isinf({a}.masked_fill({a} > 0, math.inf)) ;;
        torch.isnan({a}.masked_fill({a} > 0, math.nan)) ;; ({a} + torch.full((6,), -math.inf)).exp() ;;
        torch.where({a} > 0, -math.inf, {a}).logsumexp(-1) ;; torch.nan_to_num({a} * math.inf, 0, 1, -1) * 1 ;;
        F.mse_loss({a}, {b}, reduction='{r}') ;; F.l1_loss({a}, {b}, reduction='{r}') ;; F.smooth_l1_loss({a}, {b},
        beta=0.5, reduction='{r}') ;; F.huber_loss({a}, {b}, delta=0.5, reduction='{r}') ;;
        F.binary_cross_entropy_with_logits({a}, {b}.sigmoid(), reduction='{r}', pos_weight=w[0].abs().sum()) ;;
        F.binary_cross_entropy({a}.sigmoid(), {b}.sigmoid(), reduction='{r}') ;; F.kl_div({a}, {b}, reduction='{r}',
        log_target=True) ;; F.kl_div({a}, {b}.softmax(-1), reduction='{r}') ;; F.poisson_nll_loss({a}, k.float(),
        full=True, reduction='{r}') ;; F.gaussian_nll_loss({a}, {b}, {b}.abs() + 0.5, full=True, reduction='{r}') ;;
        F.hinge_embedding_loss({a}, {b}.detach().sign(), reduction='{r}') ;; F.margin_ranking_loss({a}, {b},
        {b}.detach().sign(), 0.1, reduction='{r}') ;; F.soft_margin_loss({a}, {b}.detach().sign(), reduction='{r}') ;;
        F.triplet_margin_loss({a}, {b}, p, reduction='{r}') ;; F.cosine_embedding_loss({a}[0], {b}[0], torch.ones(4),
        reduction='{r}') ;; F.cross_entropy({a}, k[:, 0] % 4, reduction='{r}') ;; F.cross_entropy({a}, k[:, 0] % 4,
        weight=torch.tensor([1.0, 2.0, 0.5, 1.0]), label_smoothing=0.1, reduction='{r}') ;; F.cross_entropy({a},
        {b}.softmax(1), reduction='{r}') ;; F.cross_entropy({a}, k[:, 0] % 4, ignore_index=2, reduction='{r}') ;;
        F.nll_loss({a}.log_softmax(1), k[:, 0] % 4, reduction='{r}') ;; F.nll_loss({a}, k[:, 0] % 4, reduction='{r}')
        ;; F.multi_margin_loss({a}[:, 0], k[:, 0, 0], reduction='{r}') ;; F.multilabel_soft_margin_loss({a}, (x >
        0).float(), reduction='{r}') ;; F.multilabel_margin_loss({a}[:, 0], k[:, 0] - 1, reduction='{r}') ;;
        F.embedding(k, w) ;; F.embedding(k, w, padding_idx=2) ;; F.embedding(k, w, scale_grad_by_freq=True) ;;
        F.embedding(k, w, max_norm=1.0) ;; F.embedding_bag(k[0], w, mode='{bag}') ;; F.embedding_bag(k[0], w,
        mode='sum', per_sample_weights={b}[0]) ;; F.embedding_bag(k[0], w, scale_grad_by_freq=True) ;;
        F.embedding_bag(k[0], w, padding_idx=1) ;; F.rrelu({a}, training=False) ;; F.dropout({a}, 0.0) ;;
        F.alpha_dropout({a}, 0.2, False) ;; F.layer_norm({a}, (6,), w[:, 0], w[:, 1], 1e-3) ;;
        F.local_response_norm({a}, 2) ;; {a}.heaviside(torch.tensor(0.5)) ;; torch.cosine_similarity({a}, {b}, -1) ;;
        {a}.view(torch.int32).float() * 1e-9 ;; {a}.to(torch.bfloat16).float() ;; {a}.half().float() ;;
        torch.floor({a} * 3) / 3 ;; torch.trunc({b} * 2) ;; torch.round({a}, decimals=1) ;; {a}.sign() *
        {a}.abs().sqrt() ;; torch.special.log1p({b}.abs()) ;; torch.bitwise_not(k) ;; torch.clip({a}, -1, 0.5) ;;
        torch.tanh({a}).pow(2).neg().add(1).log()""")
    made = []
    for _ in range(d.randrange(2, 6)):
        a, b = d.choice(write.made()), d.choice(write.made())
        name = write.give(d.choice(USUAL if d.random() < 0.5 else texts).format(a=a, b=b, n=d.choice((2, 3, -1, 0.5, 0, 4, 1.5, -2)), r=d.choice(("mean", "sum", "none")), bag=d.choice(("mean", "sum", "max"))))
        made += [name] if name else []
    return d.sample(made, min(3, len(made)))


FAMILIES = (views, types, broadcast, shapes, pictures, sums, products, functions)


def write_program(family, seed):
    """The text of a function program(p, w, x, k), whose gradients PyTorch finds, finite."""
    for attempt in range(1000):
        write = Writer(seed, attempt)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = family(write)
            text = EXTRA + "def program(p, w, x, k):\n    %s\n    return [%s]\n" % ("\n    ".join(write.lines), ", ".join(made))
            if made and is_sound(text, seed):
                return text
    raise AssertionError("no program of %s %d" % (family.__name__, seed))


def is_sound(text, seed):
    names = {}
    exec(text, names)
    p, w, x, k = inputs(seed)
    p, w = p.requires_grad_(), w.requires_grad_()
    try:
        total = weighed(names["program"](p, w, x, k)) + p.sum() + w.sum()
        total.backward()
    except Exception:  # noqa: B902 - PyTorch's own refusal
        return False
    return all(bool(torch.isfinite(one).all()) and float(one.abs().max()) < 1e6 for one in (total, p.grad, w.grad))
