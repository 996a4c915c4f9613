"""What the families of published decoders compute, in PyTorch in float64, written from the published
formulas and not from the engine's table. For families_test.py; not a test."""

import math

import torch
import torch.nn.functional as F

from torch_decoder import ACTIVATIONS, product

GELU = ACTIVATIONS["gelu_new"]


EXPERT_NAMES = ("mlp.gate", "mlp.experts.%d.", "gate_proj", "up_proj", "down_proj")


# pad_token_id where a config is silent; other families have none. GPT-2, GPT-NeoX and Falcon never do.
PADDING = {"gemma": 0, "gemma2": 0, "gemma3_text": 0, "olmo2": 1, "olmoe": 1, "opt": 1, "smollm3": 128004,
           "phi3": 32000, "glm": 151329, "glm4": 151329}


class Family:
    """A config, its weights as the files hold them, and adapters: module -> (A, B, scale)."""

    def __init__(self, config, weights, adapters=None, kind="BF16"):
        self.c, self.p, self.adapters, self.kind = config, weights, adapters or {}, kind
        self.d = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        self.heads = config["num_attention_heads"]
        self.kv_heads = config.get("num_key_value_heads") or self.heads
        self.margins = []
        self.eps = config.get("rms_norm_eps", config.get("layer_norm_eps", 1e-5))

    def linear(self, name, x):
        y = product(x, self.p[name + ".weight"].T)
        if name + ".bias" in self.p:
            y = y + self.p[name + ".bias"]
        if name in self.adapters:
            a, b, scale = self.adapters[name]
            y = y + product(product(x, a.T), b.T) * scale
        return y

    def rms(self, name, x, above=0.0):
        gain = above + self.p[name + ".weight"]
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * gain

    def ln(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.p[name + ".weight"], self.p[name + ".bias"], self.eps)

    def frequencies(self, base, turned=None):
        turned = turned or self.d
        return base ** (-torch.arange(0, turned, 2).double() / turned)

    def turn_halves(self, x, inverse, amplitude=1.0):
        """x (batch, heads, time, d): the first elements turn, in pairs half of them apart."""
        half = len(inverse)
        angles = torch.arange(x.shape[2]).double()[:, None] * inverse
        cos, sin = angles.cos() * amplitude, angles.sin() * amplitude
        a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), -1)

    def turn_neighbours(self, x, inverse):
        n = 2 * len(inverse)
        angles = torch.arange(x.shape[2]).double()[:, None] * inverse
        a, b = x[..., 0:n:2], x[..., 1:n:2]
        turned = torch.stack((a * angles.cos() - b * angles.sin(),
                              b * angles.cos() + a * angles.sin()), -1).flatten(-2)
        return torch.cat((turned, x[..., n:]), -1)

    def attend(self, q, k, v, scale, cap=None):
        """(batch, heads, time, d) each; heads share keys."""
        time = q.shape[2]
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
        scores = product(q, k.transpose(2, 3)) * scale
        if cap:
            scores = cap * torch.tanh(scores / cap)
        unseen = torch.ones(time, time, dtype=torch.bool).triu(1)
        y = product(scores.masked_fill(unseen, -math.inf).softmax(-1), v)
        return y.transpose(1, 2).flatten(2)

    def split(self, x, heads):
        return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    def qkv(self, at, x):
        return (self.split(self.linear(at + "self_attn.q_proj", x), self.heads),
                self.split(self.linear(at + "self_attn.k_proj", x), self.kv_heads),
                self.split(self.linear(at + "self_attn.v_proj", x), self.kv_heads))

    def gated(self, at, x, act):
        return self.linear(at + "mlp.down_proj", act(self.linear(at + "mlp.gate_proj", x))
                           * self.linear(at + "mlp.up_proj", x))

    def gated_joined(self, at, x):
        gate, up = self.linear(at + "mlp.gate_up_proj", x).chunk(2, -1)
        return self.linear(at + "mlp.down_proj", up * F.silu(gate))

    def head(self, x, embedding="model.embed_tokens", head="lm_head"):
        return product(x, self.p.get(head + ".weight", self.p[embedding + ".weight"]).T)

    def rows(self, name, tokens):
        """As torch.nn.Embedding with padding_idx: as an input that token trains nothing."""
        own = self.c.get("pad_token_id", PADDING.get(self.c["model_type"]))
        return F.embedding(tokens, self.p[name + ".weight"],
                           padding_idx=None if own is None or own >= self.c["vocab_size"] else own)

    def layers(self):
        return range(self.c["num_hidden_layers"])

    # ---- the families ----

    def root(self):
        """Of the width, in the type of the embedding."""
        types = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
        return torch.tensor(self.c["hidden_size"]**0.5, dtype=types[self.kind]).double()

    def gemma(self, tokens):
        inverse = self.frequencies(self.c["rope_theta"])
        x = self.rows("model.embed_tokens", tokens) * self.root()
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q, k, v = self.qkv(at, self.rms(at + "input_layernorm", x, 1.0))
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            self.d**-0.5)
            x = x + self.linear(at + "self_attn.o_proj", y)
            x = x + self.gated(at, self.rms(at + "post_attention_layernorm", x, 1.0), GELU)
        return self.head(self.rms("model.norm", x, 1.0))

    def gemma2(self, tokens, third=False):
        c = self.c
        everywhere = self.frequencies(c["rope_theta"]) / (c.get("rope_scaling") or {}).get("factor", 1)
        local = self.frequencies(c.get("rope_local_base_freq", 10000.0))
        x = self.rows("model.embed_tokens", tokens) * self.root()
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q, k, v = self.qkv(at, self.rms(at + "input_layernorm", x, 1.0))
            inverse = everywhere
            if third:
                q = self.rms(at + "self_attn.q_norm", q, 1.0)
                k = self.rms(at + "self_attn.k_norm", k, 1.0)
                if (layer + 1) % c.get("sliding_window_pattern", 6) != 0:
                    inverse = local
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            c["query_pre_attn_scalar"]**-0.5, c.get("attn_logit_softcapping"))
            y = self.linear(at + "self_attn.o_proj", y)
            x = x + self.rms(at + "post_attention_layernorm", y, 1.0)
            y = self.gated(at, self.rms(at + "pre_feedforward_layernorm", x, 1.0), GELU)
            x = x + self.rms(at + "post_feedforward_layernorm", y, 1.0)
        y, cap = self.head(self.rms("model.norm", x, 1.0)), c.get("final_logit_softcapping")
        return cap * torch.tanh(y / cap) if cap else y

    def gemma3(self, tokens):
        return self.gemma2(tokens, True)

    def olmo2(self, tokens):
        inverse = self.frequencies(self.c["rope_theta"])
        x = self.rows("model.embed_tokens", tokens)
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q = self.rms(at + "self_attn.q_norm", self.linear(at + "self_attn.q_proj", x))
            k = self.rms(at + "self_attn.k_norm", self.linear(at + "self_attn.k_proj", x))
            v = self.split(self.linear(at + "self_attn.v_proj", x), self.kv_heads)
            q = self.turn_halves(self.split(q, self.heads), inverse)
            k = self.turn_halves(self.split(k, self.kv_heads), inverse)
            y = self.linear(at + "self_attn.o_proj", self.attend(q, k, v, self.d**-0.5))
            x = x + self.rms(at + "post_attention_layernorm", y)
            x = x + self.rms(at + "post_feedforward_layernorm", self.gated(at, x, F.silu))
        return self.head(self.rms("model.norm", x))

    def granite(self, tokens):
        c = self.c
        inverse = self.frequencies(c["rope_theta"])
        x = self.rows("model.embed_tokens", tokens) * c["embedding_multiplier"]
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q, k, v = self.qkv(at, self.rms(at + "input_layernorm", x))
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            c["attention_multiplier"])
            x = x + self.linear(at + "self_attn.o_proj", y) * c["residual_multiplier"]
            y = self.gated(at, self.rms(at + "post_attention_layernorm", x), F.silu)
            x = x + y * c["residual_multiplier"]
        return self.head(self.rms("model.norm", x)) / c["logits_scaling"]

    def yarn(self):
        """Of the paper: low frequencies are divided by the factor, high ones stay."""
        s, base = self.c["rope_scaling"], self.c["rope_theta"]
        first = s["original_max_position_embeddings"]

        def pair(turns):
            return self.d * math.log(first / (turns * 2 * math.pi)) / (2 * math.log(base))

        low = max(math.floor(pair(s.get("beta_fast", 32))), 0)
        high = min(math.ceil(pair(s.get("beta_slow", 1))), self.d - 1)
        ramp = ((torch.arange(self.d // 2).double() - low) / (high - low)).clamp(0, 1)
        inverse = self.frequencies(base)
        return (inverse / s["factor"] * ramp + inverse * (1 - ramp),
                0.1 * math.log(s["factor"]) + 1)

    def smollm3(self, tokens):
        inverse, amplitude = self.frequencies(self.c["rope_theta"]), 1.0
        if self.c.get("rope_scaling"):
            inverse, amplitude = self.yarn()
        x = self.rows("model.embed_tokens", tokens)
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q, k, v = self.qkv(at, self.rms(at + "input_layernorm", x))
            if self.c["no_rope_layers"][layer]:
                q, k = (self.turn_halves(t, inverse, amplitude) for t in (q, k))
            x = x + self.linear(at + "self_attn.o_proj", self.attend(q, k, v, self.d**-0.5))
            x = x + self.gated(at, self.rms(at + "post_attention_layernorm", x), F.silu)
        return self.head(self.rms("model.norm", x))

    def phi3(self, tokens):
        c, amplitude = self.c, 1.0
        turned = int(self.d * c.get("partial_rotary_factor", 1.0))
        inverse = self.frequencies(c["rope_theta"], turned)
        if c.get("rope_scaling"):
            first = c["original_max_position_embeddings"]
            which = "long_factor" if tokens.shape[1] > first else "short_factor"
            inverse = inverse / torch.tensor(c["rope_scaling"][which], dtype=torch.float64)
            amplitude = math.sqrt(1 + math.log(c["max_position_embeddings"] / first)
                                  / math.log(first))
        x = self.rows("model.embed_tokens", tokens)
        for layer in self.layers():
            at = "model.layers.%d." % layer
            y = self.linear(at + "self_attn.qkv_proj", self.rms(at + "input_layernorm", x))
            q, k, v = y.split([self.heads * self.d] + 2 * [self.kv_heads * self.d], -1)
            q = self.turn_halves(self.split(q, self.heads), inverse, amplitude)
            k = self.turn_halves(self.split(k, self.kv_heads), inverse, amplitude)
            y = self.attend(q, k, self.split(v, self.kv_heads), self.d**-0.5)
            x = x + self.linear(at + "self_attn.o_proj", y)
            x = x + self.gated_joined(at, self.rms(at + "post_attention_layernorm", x))
        return self.head(self.rms("model.norm", x))

    def glm(self, tokens, fourth=False):
        inverse = self.frequencies(self.c["rope_theta"], self.d // 2)
        x = self.rows("model.embed_tokens", tokens)
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q, k, v = self.qkv(at, self.rms(at + "input_layernorm", x))
            y = self.attend(self.turn_neighbours(q, inverse), self.turn_neighbours(k, inverse), v,
                            self.d**-0.5)
            y = self.linear(at + "self_attn.o_proj", y)
            x = x + (self.rms(at + "post_self_attn_layernorm", y) if fourth else y)
            y = self.gated_joined(at, self.rms(at + "post_attention_layernorm", x))
            x = x + (self.rms(at + "post_mlp_layernorm", y) if fourth else y)
        return self.head(self.rms("model.norm", x))

    def glm4(self, tokens):
        return self.glm(tokens, True)

    def gpt_neox(self, tokens):
        c = self.c
        inverse = self.frequencies(c["rotary_emb_base"], int(self.d * c["rotary_pct"]))
        x = self.p["gpt_neox.embed_in.weight"][tokens]
        for layer in self.layers():
            at = "gpt_neox.layers.%d." % layer
            y = self.linear(at + "attention.query_key_value", self.ln(at + "input_layernorm", x))
            q, k, v = self.split(y, self.heads).chunk(3, -1)
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            self.d**-0.5)
            y = self.linear(at + "attention.dense", y)
            z = self.ln(at + "post_attention_layernorm", x if c["use_parallel_residual"] else x + y)
            z = self.linear(at + "mlp.dense_4h_to_h", ACTIVATIONS["gelu"](
                self.linear(at + "mlp.dense_h_to_4h", z)))
            x = x + y + z
        return self.head(self.ln("gpt_neox.final_layer_norm", x), "gpt_neox.embed_in", "embed_out")

    def falcon(self, tokens):
        inverse = self.frequencies(self.c["rope_theta"])
        x = self.p["transformer.word_embeddings.weight"][tokens]
        for layer in self.layers():
            at = "transformer.h.%d." % layer
            normed = self.ln(at + "input_layernorm", x)
            y = self.linear(at + "self_attention.query_key_value", normed)
            q, k, v = y.split((self.heads * self.d, self.d, self.d), -1)
            q, k, v = self.split(q, self.heads), self.split(k, 1), self.split(v, 1)
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            self.d**-0.5)
            z = ACTIVATIONS["gelu"](self.linear(at + "mlp.dense_h_to_4h", normed))
            x = x + self.linear(at + "self_attention.dense", y) + self.linear(
                at + "mlp.dense_4h_to_h", z)
        return self.head(self.ln("transformer.ln_f", x), "transformer.word_embeddings")

    def stablelm(self, tokens):
        inverse = self.frequencies(self.c["rope_theta"], self.d // 4)
        x = self.rows("model.embed_tokens", tokens)
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q, k, v = self.qkv(at, self.ln(at + "input_layernorm", x))
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            self.d**-0.5)
            x = x + self.linear(at + "self_attn.o_proj", y)
            x = x + self.gated(at, self.ln(at + "post_attention_layernorm", x), F.silu)
        return self.head(self.ln("model.norm", x))

    def starcoder2(self, tokens):
        inverse = self.frequencies(self.c["rope_theta"])
        x = self.rows("model.embed_tokens", tokens)
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q, k, v = self.qkv(at, self.ln(at + "input_layernorm", x))
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            self.d**-0.5)
            x = x + self.linear(at + "self_attn.o_proj", y)
            y = self.linear(at + "mlp.c_fc", self.ln(at + "post_attention_layernorm", x))
            x = x + self.linear(at + "mlp.c_proj", GELU(y))
        return self.head(self.ln("model.norm", x))

    def phi(self, tokens):
        inverse = self.frequencies(self.c["rope_theta"], self.d // 2)
        x = self.rows("model.embed_tokens", tokens)
        for layer in self.layers():
            at = "model.layers.%d." % layer
            normed = self.ln(at + "input_layernorm", x)
            q, k, v = self.qkv(at, normed)
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            self.d**-0.5)
            x = (x + self.linear(at + "self_attn.dense", y)
                 + self.linear(at + "mlp.fc2", GELU(self.linear(at + "mlp.fc1", normed))))
        return self.linear("lm_head", self.ln("model.final_layernorm", x))

    def opt(self, tokens):
        at = "model.decoder."
        x = (self.rows(at + "embed_tokens", tokens)
             + self.p[at + "embed_positions.weight"][2:2 + tokens.shape[1]])
        for layer in self.layers():
            at = "model.decoder.layers.%d." % layer
            q, k, v = self.qkv(at, self.ln(at + "self_attn_layer_norm", x))
            x = x + self.linear(at + "self_attn.out_proj", self.attend(q, k, v, self.d**-0.5))
            y = self.linear(at + "fc1", self.ln(at + "final_layer_norm", x))
            x = x + self.linear(at + "fc2", F.relu(y))
        return self.head(self.ln("model.decoder.final_layer_norm", x), "model.decoder.embed_tokens")

    # ---- mixtures of experts ----

    def mixture(self, at, x, router, expert, gate, up, down):
        """A token goes to the experts of the largest probabilities; then they may sum to one."""
        c = self.c
        count = c.get("num_local_experts") or c["num_experts"]
        used = c["num_experts_per_tok"]
        probabilities = self.linear(at + router, x).softmax(-1)
        ranked = probabilities.detach().sort(-1, descending=True).values
        if used < count:
            self.margins.append((ranked[..., used - 1] - ranked[..., used]).flatten())
        values, chosen = probabilities.topk(used, -1)
        if c.get("norm_topk_prob", c["model_type"] == "mixtral"):
            values = values / values.sum(-1, keepdim=True)
        self.routes.append((probabilities.flatten(0, -2), chosen.flatten(0, -2)))
        weights = torch.zeros_like(probabilities).scatter(-1, chosen, values)
        y = torch.zeros_like(x)
        for e in range(count):
            name = at + expert % e
            inner = F.silu(self.linear(name + gate, x)) * self.linear(name + up, x)
            y = y + weights[..., e:e + 1] * self.linear(name + down, inner)
        return y

    def balance(self):
        """Over the tokens of all layers: the experts' shares of the choices, times the means of
        their probabilities (the loss of Switch Transformers, as the three families have it)."""
        if not self.c.get("output_router_logits"):
            return 0.0
        probabilities = torch.cat([p for p, _ in self.routes])
        chosen = torch.cat([c for _, c in self.routes])
        count = probabilities.shape[-1]
        shares = F.one_hot(chosen, count).double().mean(0)
        return (self.c["router_aux_loss_coef"] * count
                * (shares * probabilities.mean(0)[None]).sum())

    def close_routes(self, margin=1e-5):
        """Tokens whose route another arithmetic may choose otherwise."""
        return sum(int((m < margin).sum()) for m in self.margins)

    def with_experts(self, tokens, wide, narrow, parts):
        inverse = self.frequencies(self.c["rope_theta"])
        x = self.rows("model.embed_tokens", tokens)
        self.routes = []
        for layer in self.layers():
            at = "model.layers.%d." % layer
            q, k, v = (self.linear(at + "self_attn.%s_proj" % part, self.rms(
                at + "input_layernorm", x)) for part in "qkv")
            if wide:
                q, k = self.rms(at + "self_attn.q_norm", q), self.rms(at + "self_attn.k_norm", k)
            q, k, v = (self.split(t, n) for t, n in (
                (q, self.heads), (k, self.kv_heads), (v, self.kv_heads)))
            if narrow:
                q, k = self.rms(at + "self_attn.q_norm", q), self.rms(at + "self_attn.k_norm", k)
            y = self.attend(self.turn_halves(q, inverse), self.turn_halves(k, inverse), v,
                            self.d**-0.5)
            x = x + self.linear(at + "self_attn.o_proj", y)
            x = x + self.mixture(at, self.rms(at + "post_attention_layernorm", x), *parts)
        return self.head(self.rms("model.norm", x))

    def mixtral(self, tokens):
        return self.with_experts(tokens, False, False, (
            "block_sparse_moe.gate", "block_sparse_moe.experts.%d.", "w1", "w3", "w2"))

    def qwen3_moe(self, tokens):
        return self.with_experts(tokens, False, True, EXPERT_NAMES)

    def olmoe(self, tokens):
        return self.with_experts(tokens, True, False, EXPERT_NAMES)

    def __call__(self, tokens):
        return getattr(self, {"gemma3_text": "gemma3"}.get(self.c["model_type"],
                                                           self.c["model_type"]))(tokens)


# ---- the layouts of the files ----

def shapes_of(c):
    """name -> shape, as the published folders have them; gains are those that end in norm.weight."""
    kind, w, n = c["model_type"], c["hidden_size"], c["num_hidden_layers"]
    hidden = c.get("intermediate_size", c.get("ffn_dim", 4 * w))
    d = c.get("head_dim") or w // c["num_attention_heads"]
    wide = c["num_attention_heads"] * d
    narrow = (c.get("num_key_value_heads") or c["num_attention_heads"]) * d
    vocabulary = c["vocab_size"]
    at, embedding, last, head = "model.layers.%d.", "model.embed_tokens", "model.norm", "lm_head"
    attention = {"self_attn.q_proj": (wide, w), "self_attn.k_proj": (narrow, w),
                 "self_attn.v_proj": (narrow, w), "self_attn.o_proj": (w, wide)}
    gated = {"mlp.gate_proj": (hidden, w), "mlp.up_proj": (hidden, w), "mlp.down_proj": (w, hidden)}
    joined = {"mlp.gate_up_proj": (2 * hidden, w), "mlp.down_proj": (w, hidden)}
    norms = {"input_layernorm": w, "post_attention_layernorm": w}
    biased, more = (), {}
    if kind in ("gemma2", "gemma3_text"):
        norms |= {"pre_feedforward_layernorm": w, "post_feedforward_layernorm": w}
    if kind == "gemma3_text":
        norms |= {"self_attn.q_norm": d, "self_attn.k_norm": d}
    if kind == "olmo2":
        norms = {"post_attention_layernorm": w, "post_feedforward_layernorm": w,
                 "self_attn.q_norm": wide, "self_attn.k_norm": narrow}
    linears = attention | gated
    if kind in ("mixtral", "qwen3_moe", "olmoe"):
        experts = c.get("num_local_experts") or c["num_experts"]
        hidden = c.get("moe_intermediate_size", hidden)
        router, name, gate, up, down = EXPERT_NAMES if kind != "mixtral" else (
            "block_sparse_moe.gate", "block_sparse_moe.experts.%d.", "w1", "w3", "w2")
        linears = attention | {router: (experts, w)}
        for e in range(experts):
            linears |= {name % e + gate: (hidden, w), name % e + up: (hidden, w),
                        name % e + down: (w, hidden)}
    if kind == "qwen3_moe":
        norms |= {"self_attn.q_norm": d, "self_attn.k_norm": d}
    if kind == "olmoe":
        norms |= {"self_attn.q_norm": wide, "self_attn.k_norm": narrow}
    if kind == "phi3":
        linears = {"self_attn.qkv_proj": (wide + 2 * narrow, w), "self_attn.o_proj": (w, wide)} | joined
    if kind in ("glm", "glm4"):
        linears, biased = attention | joined, ("q_proj", "k_proj", "v_proj")
    if kind == "glm4":
        norms |= {"post_self_attn_layernorm": w, "post_mlp_layernorm": w}
    if kind == "stablelm":
        biased = ("norm", "q_proj", "k_proj", "v_proj") if c["use_qkv_bias"] else ("norm",)
    if kind == "starcoder2":
        linears = attention | {"mlp.c_fc": (hidden, w), "mlp.c_proj": (w, hidden)}
        biased = ("norm", "proj", "c_fc")
    if kind == "phi":
        attention.pop("self_attn.o_proj")
        linears = attention | {"self_attn.dense": (w, wide), "mlp.fc1": (hidden, w),
                               "mlp.fc2": (w, hidden)}
        norms, biased, last = {"input_layernorm": w}, ("norm", "proj", "dense", "fc"), \
            "model.final_layernorm"
        more = {"lm_head.bias": (vocabulary,)}
    if kind == "gpt_neox":
        linears = {"attention.query_key_value": (3 * wide, w), "attention.dense": (w, wide),
                   "mlp.dense_h_to_4h": (hidden, w), "mlp.dense_4h_to_h": (w, hidden)}
        at, embedding, head, biased = "gpt_neox.layers.%d.", "gpt_neox.embed_in", "embed_out", ("",)
        last = "gpt_neox.final_layer_norm"
    if kind == "falcon":
        linears = {"self_attention.query_key_value": (wide + 2 * d, w), "self_attention.dense": (w, wide),
                   "mlp.dense_h_to_4h": (4 * w, w), "mlp.dense_4h_to_h": (w, 4 * w)}
        at, embedding, last = ("transformer." + x for x in ("h.%d.", "word_embeddings", "ln_f"))
        norms, biased = {"input_layernorm": w}, ("norm", "ln_f")
    if kind == "opt":
        attention["self_attn.out_proj"] = attention.pop("self_attn.o_proj")
        linears = attention | {"fc1": (hidden, w), "fc2": (w, hidden)}
        norms, biased = {"self_attn_layer_norm": w, "final_layer_norm": w}, ("",)
        at, embedding, last = ("model.decoder." + x for x in ("layers.%d.", "embed_tokens",
                                                              "final_layer_norm"))
        more = {"model.decoder.embed_positions.weight": (c["max_position_embeddings"] + 2, w)}
    shapes = {embedding + ".weight": (vocabulary, w), last + ".weight": (w,)} | more
    if any(part in last for part in biased):
        shapes[last + ".bias"] = (w,)
    for layer in range(n):
        for name, shape in (linears | {name: (size,) for name, size in norms.items()}).items():
            shapes[at % layer + name + ".weight"] = shape
            if any(part in name for part in biased):
                shapes[at % layer + name + ".bias"] = shape[:1]
    if not c["tie_word_embeddings"]:
        shapes[head + ".weight"] = (vocabulary, w)
    return shapes


def draw(c, kind="BF16", seed=7):
    """As the file of this type holds them, in float64."""
    generator = torch.Generator().manual_seed(seed)
    types = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
    tensors = {}
    for name, shape in shapes_of(c).items():
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        if len(shape) == 2:
            values *= 0.1 if "embed" in name and "out" not in name else shape[1]**-0.5
        elif name.endswith("weight"):
            values = 0.1 * values + (0.0 if "gemma" in c["model_type"] else 1.0)
        else:
            values *= 0.1
        tensors[name] = values.to(types[kind]).double()
    return tensors
