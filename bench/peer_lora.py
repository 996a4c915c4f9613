"""The same LoRA step of a Llama in PyTorch on the CPU, in float32, as a child of lora_bench.

argv: folder tokens threads length seed rank alpha rate beta1 beta2 epsilon decay clip. The folder is
one of Hugging Face in a single file of BF16; tokens is a file of uint32. Standard input holds the A
of every adapter (float32, in the order of the layers' query, key, value and out products); B begins
as zeros. Then it holds the number of each step (uint32), whose batch of one sequence is drawn as the
job draws it. The answer to each step is a line of JSON."""
import math
import os
import sys
import time

sys.dont_write_bytecode = True
from peer_torch import load, read, read_folder, say  # noqa: E402

numpy, torch, F = load(int(sys.argv[3]))
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/oracle")]
import torch_decoder as reference  # noqa: E402

FOLDER, TOKENS = sys.argv[1:3]
LENGTH, SEED, RANK = map(int, sys.argv[4:7])
ALPHA, RATE, BETA1, BETA2, EPSILON, DECAY, CLIP = map(float, sys.argv[7:14])


class Model:
    def __init__(self):
        self.config, self.weights = read_folder(FOLDER)
        self.heads = self.config["num_attention_heads"]
        self.kv_heads = self.config["num_key_value_heads"]
        angles = torch.outer(torch.arange(LENGTH).double(), reference.frequencies(self.config))
        angles = torch.cat((angles, angles), dim=-1)
        self.cos, self.sin = angles.cos().float(), angles.sin().float()
        self.adapters = {}

    def add_adapters(self):
        for layer in range(self.config["num_hidden_layers"]):
            for part in "qkvo":
                name = "model.layers.%d.self_attn.%s_proj" % (layer, part)
                out, into = self.weights[name + ".weight"].shape
                a = torch.from_numpy(read("<f4", RANK, into).copy())
                self.adapters[name] = (torch.nn.Parameter(a),
                                       torch.nn.Parameter(torch.zeros(out, RANK)))
        return [p for pair in self.adapters.values() for p in pair]

    def linear(self, name, x):
        y = F.linear(x, self.weights[name + ".weight"])
        if name in self.adapters:
            a, b = self.adapters[name]
            y = y + F.linear(F.linear(x, a), b) * (ALPHA / RANK)
        return y

    def norm(self, name, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return x * scale * self.weights[name + ".weight"]

    def turn(self, x):
        half = x.shape[-1] // 2
        return x * self.cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * self.sin

    def attention(self, at, x):
        q = self.turn(self.linear(at + "q_proj", x).view(LENGTH, self.heads, -1).transpose(0, 1))
        k = self.turn(self.linear(at + "k_proj", x).view(LENGTH, self.kv_heads, -1).transpose(0, 1))
        v = self.linear(at + "v_proj", x).view(LENGTH, self.kv_heads, -1).transpose(0, 1)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, dim=0) for t in (k, v))
        mask = torch.full((LENGTH, LENGTH), -math.inf).triu(1)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]) + mask
        y = (scores.softmax(-1) @ v).transpose(0, 1).reshape(LENGTH, -1)
        return self.linear(at + "o_proj", y)

    def loss(self, tokens, targets):
        x = self.weights["model.embed_tokens.weight"][tokens]
        for layer in range(self.config["num_hidden_layers"]):
            at = "model.layers.%d." % layer
            x = x + self.attention(at + "self_attn.", self.norm(at + "input_layernorm", x))
            y = self.norm(at + "post_attention_layernorm", x)
            gate = F.silu(self.linear(at + "mlp.gate_proj", y))
            x = x + self.linear(at + "mlp.down_proj", gate * self.linear(at + "mlp.up_proj", y))
        x = self.norm("model.norm", x)
        head = self.weights.get("lm_head.weight", self.weights["model.embed_tokens.weight"])
        return F.cross_entropy(F.linear(x, head), targets)


def main():
    torch.set_flush_denormal(True)
    model = Model()
    tokens = numpy.fromfile(TOKENS, "<u4")
    parameters = model.add_adapters()
    optimizer = torch.optim.AdamW(parameters, lr=RATE, betas=(BETA1, BETA2), eps=EPSILON,
                                  weight_decay=DECAY)
    say(ready=torch.__version__, parameters=sum(p.numel() for p in parameters))
    while True:
        step = int(read("<u4", 1)[0])
        at, = reference.starts(len(tokens), LENGTH, 1, step, SEED)
        batch = torch.from_numpy(tokens[at:at + LENGTH + 1].astype("int64"))
        start, used = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(batch[:-1], batch[1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        say(seconds=time.perf_counter() - start, processor=time.process_time() - used, loss=loss.item())


main()
