"""Small random folders as Hugging Face publishes them, and what they compute, in PyTorch in float64:
written from the published formulas, not from the engine. For base_test.py; not a test."""

import json
import math
import os
import struct

import torch
import torch.nn.functional as F

WORD = 0xFFFFFFFF
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


# ---- folders ----

def write_safetensors(path, tensors, kind):
    """tensors: name -> float64; stored as `kind`."""
    header, parts, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in tensors.items():
        narrow = tensor.to(TYPES[kind]).contiguous()
        raw = narrow.view(torch.int16 if kind != "F32" else torch.int32).numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_safetensors(path):
    with open(path, "rb") as file:
        whole = file.read()
    size = struct.unpack("<Q", whole[:8])[0]
    header, tensors = json.loads(whole[8:8 + size]), {}
    kinds = dict(TYPES, U32=torch.int32)
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            tensors[name] = torch.frombuffer(bytearray(whole[begin:end]),
                                             dtype=kinds[entry["dtype"]]).view(entry["shape"])
    return tensors


def write_folder(folder, config, tensors, kind="BF16", shards=1, prefix=""):
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump(config, file, indent=2)
    named = [(published(prefix, name), tensor) for name, tensor in tensors.items()]
    if shards == 1:
        write_safetensors(os.path.join(folder, "model.safetensors"), dict(named), kind)
        return
    weight_map = {}
    for shard in range(shards):
        name = "model-%05d-of-%05d.safetensors" % (shard + 1, shards)
        part = dict(named[shard::shards])
        weight_map |= {key: name for key in part}
        write_safetensors(os.path.join(folder, name), part, kind)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="ascii") as file:
        json.dump({"metadata": {"total_size": 0}, "weight_map": weight_map}, file)


def published(prefix, name):
    """The prefix is the module of the layers, and the head is none of them."""
    return name if name == "lm_head.weight" else prefix + name


def head_width_of(config):
    if config["model_type"] == "gpt2":
        return config["n_embd"] // config["n_head"]
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def has_bias(config, part):
    kind = config["model_type"]
    if part == "mlp":
        return config.get("mlp_bias", False)
    if kind == "qwen2":
        return part == "qkv"
    return config.get("attention_bias", False)


def shapes_of(config):
    if config["model_type"] == "gpt2":
        w, inner = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
        shapes = {"wte.weight": (config["vocab_size"], w), "wpe.weight": (config["n_positions"], w)}
        for layer in range(config["n_layer"]):
            for name, rows, columns in (("attn.c_attn", w, 3 * w), ("attn.c_proj", w, w),
                                        ("mlp.c_fc", w, inner), ("mlp.c_proj", inner, w)):
                shapes[f"h.{layer}.{name}.weight"] = (rows, columns)
                shapes[f"h.{layer}.{name}.bias"] = (columns,)
            for name in ("ln_1", "ln_2"):
                shapes[f"h.{layer}.{name}.weight"] = shapes[f"h.{layer}.{name}.bias"] = (w,)
        if not config.get("tie_word_embeddings", True):
            shapes["lm_head.weight"] = (config["vocab_size"], w)
        return shapes | {"ln_f.weight": (w,), "ln_f.bias": (w,)}
    w, d, hidden = config["hidden_size"], head_width_of(config), config["intermediate_size"]
    wide, narrow = (config[key] * d for key in ("num_attention_heads", "num_key_value_heads"))
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], w), "model.norm.weight": (w,)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for name, out, into, part in (
                ("self_attn.q_proj", wide, w, "qkv"), ("self_attn.k_proj", narrow, w, "qkv"),
                ("self_attn.v_proj", narrow, w, "qkv"), ("self_attn.o_proj", w, wide, "out"),
                ("mlp.gate_proj", hidden, w, "mlp"), ("mlp.up_proj", hidden, w, "mlp"),
                ("mlp.down_proj", w, hidden, "mlp")):
            shapes[at + name + ".weight"] = (out, into)
            if has_bias(config, part):
                shapes[at + name + ".bias"] = (out,)
        shapes[at + "input_layernorm.weight"] = (w,)
        shapes[at + "post_attention_layernorm.weight"] = (w,)
        if config["model_type"] == "qwen3":
            shapes[at + "self_attn.q_norm.weight"] = shapes[at + "self_attn.k_norm.weight"] = (d,)
    if not config.get("tie_word_embeddings", False):
        shapes["lm_head.weight"] = (config["vocab_size"], w)
    return shapes


def is_norm(name):
    return "norm" in name or "ln_" in name


def draw_weights(config, kind, outliers=False, seed=7):
    """As the file of this type holds them, in float64."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in shapes_of(config).items():
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        if len(shape) == 2:
            # Columns of the input have unit size; GPT-2's linear weights are (in, out).
            into = shape[0] if config["model_type"] == "gpt2" and ".c_" in name else shape[1]
            values *= 0.05 if "wte" in name or "wpe" in name or "embed" in name else into**-0.5
        elif is_norm(name) and name.endswith("weight"):
            values = 1 + 0.1 * values
        else:
            values *= 0.1
        tensors[name] = values
    if outliers:
        rescale(config, tensors, generator)
    return {name: t.to(TYPES[kind]).double() for name, t in tensors.items()}


def rescale(config, tensors, generator):
    """The same function, with six channels in a hundred 100 times larger behind each norm."""
    gpt2 = config["model_type"] == "gpt2"
    width = config["n_embd" if gpt2 else "hidden_size"]
    layers = config["n_layer" if gpt2 else "num_hidden_layers"]
    at = "h.%d." if gpt2 else "model.layers.%d."
    readers = ({"ln_1": ("attn.c_attn",), "ln_2": ("mlp.c_fc",)} if gpt2 else
               {"input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj")})
    groups = [(at % layer + norm, [at % layer + name for name in names])
              for layer in range(layers) for norm, names in readers.items()]
    if "lm_head.weight" in tensors:
        groups.append(("model.norm", ["lm_head"]))
    for norm, names in groups:
        large = torch.randperm(width, generator=generator)[: max(1, round(0.06 * width))]
        for end in (".weight", ".bias"):
            if norm + end in tensors:
                tensors[norm + end][large] *= 100
        for name in names:
            if gpt2:
                tensors[name + ".weight"][large, :] /= 100
            else:
                tensors[name + ".weight"][:, large] /= 100
    for layer in range(layers):
        rescale_inside(config, tensors, generator, at % layer)


def some_of(count, generator):
    return torch.randperm(count, generator=generator)[: max(1, round(0.06 * count))]


def rescale_inside(config, tensors, generator, at):
    """Also between layers: queries against keys, values against the out layer, up against down."""
    gpt2, d = config["model_type"] == "gpt2", head_width_of(config)
    heads = config["n_head" if gpt2 else "num_attention_heads"]
    kv_heads = heads if gpt2 else config.get("num_key_value_heads", heads)

    def scale(name, channels, by, first=0):
        for end in (".weight", ".bias"):
            if name + end in tensors:
                t = tensors[name + end]
                (t.T if gpt2 and t.dim() == 2 else t)[first + channels] *= by

    def scale_input(name, channels, by):
        t = tensors[name + ".weight"]
        (t if gpt2 else t.T)[channels] *= by

    pair = some_of(d // 2, generator)  # a rotation mixes its two halves
    pair = torch.cat((pair, pair + d // 2))
    value = some_of(kv_heads * d, generator)
    group = torch.arange(heads // kv_heads) * d
    readers = (value // d * (heads // kv_heads) * d + value % d)[:, None] + group
    if gpt2:
        wide = heads * d
        scale(at + "attn.c_attn", pair, 100)
        scale(at + "attn.c_attn", pair, 0.01, wide)
        scale(at + "attn.c_attn", value, 100, 2 * wide)
        scale_input(at + "attn.c_proj", readers.flatten(), 0.01)
        return
    if config["model_type"] == "qwen3":
        tensors[at + "self_attn.q_norm.weight"][pair] *= 100
        tensors[at + "self_attn.k_norm.weight"][pair] *= 0.01
    else:  # all heads that read the first key head
        queries = (pair[:, None] + group).flatten()
        scale(at + "self_attn.q_proj", queries, 100)
        scale(at + "self_attn.k_proj", pair, 0.01)
    scale(at + "self_attn.v_proj", value, 100)
    scale_input(at + "self_attn.o_proj", readers.flatten(), 0.01)
    inner = some_of(config["intermediate_size"], generator)
    scale(at + "mlp.up_proj", inner, 100)
    scale_input(at + "mlp.down_proj", inner, 0.01)


# ---- what they compute ----

product = torch.matmul  # another may stand in its place


def frequencies(config):
    d = head_width_of(config)
    inverse = config.get("rope_theta", 10000.0) ** (-torch.arange(0, d, 2).double() / d)
    scaling = config.get("rope_scaling")
    if scaling is None:
        return inverse
    if scaling.get("rope_type", scaling.get("type")) == "linear":
        return inverse / scaling["factor"]
    low = scaling["original_max_position_embeddings"] / scaling["low_freq_factor"]
    high = scaling["original_max_position_embeddings"] / scaling["high_freq_factor"]
    scaled = []
    for f in inverse.tolist():
        wave = 2 * math.pi / f
        if wave < high:
            scaled.append(f)
        elif wave > low:
            scaled.append(f / scaling["factor"])
        else:
            smooth = ((scaling["original_max_position_embeddings"] / wave
                       - scaling["low_freq_factor"])
                      / (scaling["high_freq_factor"] - scaling["low_freq_factor"]))
            scaled.append((1 - smooth) * f / scaling["factor"] + smooth * f)
    return torch.tensor(scaled, dtype=torch.float64)


def rotate(x, inverse):
    d = x.shape[3]
    angles = torch.arange(x.shape[2]).double()[:, None] * inverse
    angles = torch.cat((angles, angles), dim=-1)
    half = torch.cat((-x[..., d // 2:], x[..., : d // 2]), dim=-1)
    return x * angles.cos().to(x) + half * angles.sin().to(x)


def attention(q, k, v, scale=None, reach=None):
    """reach: how many tokens before its own each token sees, (batch, length)."""
    time = q.shape[2]
    scores = product(q, k.transpose(2, 3)) * (scale or 1 / math.sqrt(q.shape[3]))
    mask = torch.ones(time, time, dtype=torch.bool).tril()
    if reach is not None:
        column, row = torch.arange(time), torch.arange(time)[:, None]
        mask = mask & (column >= row - reach[:, None, :, None])
    y = product(scores.masked_fill(~mask, -math.inf).softmax(-1), v)
    return y.transpose(1, 2).reshape(q.shape[0], time, -1)


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def rms_norm(x, gain, epsilon):
    return x / (x.pow(2).mean(-1, keepdim=True) + epsilon).sqrt() * gain


ACTIVATIONS = {
    "silu": F.silu,
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi)
                                                    * (x + 0.044715 * x**3))),
    "relu": F.relu,
}


class Decoder:
    """config and weights; adapters: module -> (A, B, scale)."""

    def __init__(self, config, weights, adapters=None):
        self.config, self.p, self.adapters = config, weights, adapters or {}
        self.dropout, self.step = 0.0, 0  # of what enters adapters; each call is a step
        self.reaches, self.reach = None, None  # of packed rows: of each call, in turn; of this one

    def linear(self, name, x):
        w = self.p[name + ".weight"]
        y = product(x, w if self.config["model_type"] == "gpt2" else w.T)
        if name + ".bias" in self.p:
            y = y + self.p[name + ".bias"]
        if name in self.adapters:
            a, b, scale = self.adapters[name]
            if self.dropout:  # stream 0 draws the batch
                x = x * dropout_mask(x.shape, self.dropout, self.step,
                                     1 + list(self.adapters).index(name))
            y = y + product(product(x, a.T), b.T) * scale
        return y

    def __call__(self, tokens):
        self.reach = next(self.reaches) if self.reaches is not None else None
        logits = (self.gpt2 if self.config["model_type"] == "gpt2" else self.llama)(tokens)
        self.step += 1
        return logits

    def gpt2(self, tokens):
        c, p = self.config, self.p
        act = ACTIVATIONS[c.get("activation_function", "gelu_new")]

        def norm(name, x):
            return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"],
                                eps=c.get("layer_norm_epsilon", 1e-5))

        places = torch.arange(tokens.shape[1]) if self.reach is None else self.reach
        x = p["wte.weight"][tokens] + p["wpe.weight"][places]
        for layer in range(c["n_layer"]):
            at = f"h.{layer}."
            y = self.linear(at + "attn.c_attn", norm(at + "ln_1", x))
            q, k, v = (heads_of(t, c["n_head"]) for t in y.split(c["n_embd"], dim=2))
            scale = 1 / math.sqrt(q.shape[3]) if c.get("scale_attn_weights", True) else 1.0
            if c.get("scale_attn_by_inverse_layer_idx", False):
                scale /= layer + 1
            x = x + self.linear(at + "attn.c_proj", attention(q, k, v, scale, self.reach))
            y = act(self.linear(at + "mlp.c_fc", norm(at + "ln_2", x)))
            x = x + self.linear(at + "mlp.c_proj", y)
        return product(norm("ln_f", x), p.get("lm_head.weight", p["wte.weight"]).T)

    def llama(self, tokens):
        c, p = self.config, self.p
        epsilon = c.get("rms_norm_eps", 1e-6)
        heads, kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        inverse = frequencies(c)
        x = p["model.embed_tokens.weight"][tokens]
        for layer in range(c["num_hidden_layers"]):
            at = f"model.layers.{layer}."
            y = rms_norm(x, p[at + "input_layernorm.weight"], epsilon)
            q = heads_of(self.linear(at + "self_attn.q_proj", y), heads)
            k = heads_of(self.linear(at + "self_attn.k_proj", y), kv_heads)
            v = heads_of(self.linear(at + "self_attn.v_proj", y), kv_heads)
            if c["model_type"] == "qwen3":
                q = rms_norm(q, p[at + "self_attn.q_norm.weight"], epsilon)
                k = rms_norm(k, p[at + "self_attn.k_norm.weight"], epsilon)
            q, k = rotate(q, inverse), rotate(k, inverse)
            k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (k, v))
            x = x + self.linear(at + "self_attn.o_proj", attention(q, k, v, reach=self.reach))
            y = rms_norm(x, p[at + "post_attention_layernorm.weight"], epsilon)
            gate = ACTIVATIONS[c.get("hidden_act", "silu")](self.linear(at + "mlp.gate_proj", y))
            x = x + self.linear(at + "mlp.down_proj", gate * self.linear(at + "mlp.up_proj", y))
        x = rms_norm(x, p["model.norm.weight"], epsilon)
        return product(x, p.get("lm_head.weight", p["model.embed_tokens.weight"]).T)


# ---- batches, from docs/ARITHMETIC.md ----

def philox(counter, key):
    c, (key0, key1) = list(counter), key
    for _ in range(10):
        product0, product2 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(product2 >> 32) ^ c[1] ^ key0, product2 & WORD,
             (product0 >> 32) ^ c[3] ^ key1, product0 & WORD]
        key0, key1 = (key0 + 0x9E3779B9) & WORD, (key1 + 0xBB67AE85) & WORD
    return c


def starts(count, length, batch, step, seed=1, stream=0):
    for row in range(batch):
        words = philox([row, 0, stream, step], [seed & WORD, seed >> 32])
        yield (words[1] << 32 | words[0]) * (count - length) >> 64


def dropout_mask(shape, share, step, stream, seed=1):
    """What each element is multiplied by."""
    count = math.prod(shape)
    words = [word for block in range((count + 3) // 4)
             for word in philox([block, 0, stream, step], [seed & WORD, seed >> 32])]
    kept = torch.tensor(words[:count]) >= round(share * 2**32)
    return kept.view(shape).double() / (1 - share)


def batch_of(data, length, batch, step, seed=1):
    """data: a tensor of tokens. Returns tokens and targets, (batch, length) each."""
    at = list(starts(len(data), length, batch, step, seed))
    return (torch.stack([data[s:s + length] for s in at]),
            torch.stack([data[s + 1:s + length + 1] for s in at]))


# ---- training ----

def rate_at(step, steps, warmup, rate, rate_min):
    """Warm-up, then half a cosine."""
    if step < warmup:
        return rate * (step + 1) / warmup
    share = (step - warmup) / (steps - 1 - warmup)
    return rate_min + (rate - rate_min) * 0.5 * (1 + math.cos(math.pi * share))


def train(decoder, trained, batches, rates, clip=1.0, decay=0.1, betas=(0.9, 0.95), epsilon=1e-8,
          masks=None, moments=None):
    """moments: of `trained` after one step. batches: for each step a list of micro-batches. Returns the losses; `trained` ends changed."""
    for t in trained.values():
        t.requires_grad_()
    optimizer = torch.optim.AdamW(
        [{"params": [t for t in trained.values() if t.dim() > 1], "weight_decay": decay},
         {"params": [t for t in trained.values() if t.dim() == 1], "weight_decay": 0.0}],
        lr=rates[0], betas=betas, eps=epsilon)
    for name, pair in (moments or {}).items():
        optimizer.state[trained[name]] = {"step": torch.tensor(1.0), "exp_avg": pair[0],
                                          "exp_avg_sq": pair[1]}
    losses = []
    for step, micro in enumerate(batches):
        optimizer.zero_grad()
        loss = 0.0
        counted = sum(int(mask.sum()) for mask in masks[step]) if masks is not None else 0
        for number, (tokens, targets) in enumerate(micro):
            logits, wanted = decoder(tokens).flatten(0, 1), targets.flatten()
            if masks is None:
                balance = getattr(decoder, "balance", float)() # of experts
                part = (F.cross_entropy(logits, wanted) + balance) / len(micro)
            else:
                wanted = wanted.masked_fill(masks[step][number].flatten() == 0, -100)
                part = F.cross_entropy(logits, wanted, reduction="sum") / counted
            part.backward()
            loss += float(part)
        norm = math.sqrt(sum(float(t.grad.pow(2).sum()) for t in trained.values()))
        for t in trained.values():
            t.grad *= min(1.0, clip / norm)
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        optimizer.step()
        losses.append(loss)
    for t in trained.values():
        t.requires_grad_(False)
    return losses
