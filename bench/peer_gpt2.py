"""The same GPT-2 training step in PyTorch on the CPU, as a child of step_bench.

argv: threads batch length positions vocabulary layers heads width rate beta1 beta2 epsilon decay
clip type. The type is that of the products: float32, or bfloat16 by autocast, as people train; the
parameters and their update are float32. Standard input holds the parameters (float32, in the order of
the published names), then for each step the batch's tokens and targets (uint32). The answer to each
step is a line of JSON.
"""
import os
import resource
import sys
import time

sys.dont_write_bytecode = True
import peer_torch  # noqa: E402
from peer_torch import load, say  # noqa: E402

numpy, torch, F = load(int(sys.argv[1]))
BATCH, LENGTH, POSITIONS, VOCABULARY, LAYERS, HEADS, WIDTH = map(int, sys.argv[2:9])
RATE, BETA1, BETA2, EPSILON, DECAY, CLIP = map(float, sys.argv[9:15])
BFLOAT16 = sys.argv[15] == "bfloat16"


def read(dtype, *shape):
    return torch.from_numpy(peer_torch.read(dtype, *shape).astype(
        numpy.float32 if dtype == "<f4" else numpy.int64))


def parameter(*shape):
    return torch.nn.Parameter(read("<f4", *shape))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = torch.nn.ParameterList([parameter(WIDTH), parameter(WIDTH)])
        self.c_attn = torch.nn.ParameterList([parameter(WIDTH, 3 * WIDTH), parameter(3 * WIDTH)])
        self.attn_proj = torch.nn.ParameterList([parameter(WIDTH, WIDTH), parameter(WIDTH)])
        self.ln_2 = torch.nn.ParameterList([parameter(WIDTH), parameter(WIDTH)])
        self.c_fc = torch.nn.ParameterList([parameter(WIDTH, 4 * WIDTH), parameter(4 * WIDTH)])
        self.mlp_proj = torch.nn.ParameterList([parameter(4 * WIDTH, WIDTH), parameter(WIDTH)])

    def forward(self, x, mask):
        rows = BATCH * LENGTH
        y = F.layer_norm(x, (WIDTH,), *self.ln_1)
        y = torch.addmm(self.c_attn[1], y.view(rows, WIDTH), self.c_attn[0])
        q, k, v = y.view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q * (WIDTH // HEADS) ** -0.5, k.transpose(-2, -1))
        y = torch.matmul(torch.softmax(scores + mask, -1), v)
        y = y.transpose(1, 2).reshape(rows, WIDTH)
        x = x + torch.addmm(self.attn_proj[1], y, self.attn_proj[0]).view(x.shape)
        y = F.layer_norm(x, (WIDTH,), *self.ln_2)
        y = torch.addmm(self.c_fc[1], y.view(rows, WIDTH), self.c_fc[0])
        y = F.gelu(y, approximate="tanh")
        return x + torch.addmm(self.mlp_proj[1], y, self.mlp_proj[0]).view(x.shape)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = parameter(VOCABULARY, WIDTH)
        self.wpe = parameter(POSITIONS, WIDTH)
        self.blocks = torch.nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln_f = torch.nn.ParameterList([parameter(WIDTH), parameter(WIDTH)])
        mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, tokens, targets):
        x = F.embedding(tokens, self.wte) + self.wpe[:LENGTH]
        for block in self.blocks:
            x = block(x, self.mask)
        x = F.layer_norm(x, (WIDTH,), *self.ln_f)
        logits = F.linear(x.view(-1, WIDTH), self.wte)
        return F.cross_entropy(logits, targets.view(-1))


def bfloat16_slowness():
    """How many times longer one product takes in bfloat16 than in float32: processors that have no such
    products are slower by hundreds, and a whole step would not end."""
    least = {}
    for dtype in (torch.float32, torch.bfloat16):
        x, w = torch.ones(64, 384, dtype=dtype), torch.ones(384, 384, dtype=dtype)
        times = []
        for _ in range(4):
            start = time.perf_counter()
            x @ w
            times.append(time.perf_counter() - start)
        least[dtype] = min(times[1:])
    return least[torch.bfloat16] / least[torch.float32]


def main():
    slowness_max = float(os.environ.get("STEP_BFLOAT16_SLOWNESS", "8"))
    try:
        slowness = bfloat16_slowness() if BFLOAT16 else 0
    except RuntimeError as error:  # oneDNN, held to an instruction set that has none
        say(error="no products of bfloat16 here: %s" % error, advice="the peer in float32 is timed all the same")
        return
    if slowness > slowness_max:
        say(error="this processor has no products of bfloat16: one takes %.0f times as long as in float32"
            % slowness, advice="the peer in float32 is timed all the same")
        return
    torch.set_flush_denormal(True)
    model = Model()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": DECAY},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}],
        lr=RATE, betas=(BETA1, BETA2), eps=EPSILON)
    say(ready=torch.__version__, parameters=sum(p.numel() for p in parameters))
    while True:
        tokens = read("<u4", BATCH, LENGTH)
        targets = read("<u4", BATCH, LENGTH)
        start, used = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=BFLOAT16):
            loss = model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        seconds, processor = time.perf_counter() - start, time.process_time() - used
        memory = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        say(seconds=seconds, processor=processor, loss=loss.item(), memory=memory)


main()
