"""GPT-2 124M training steps in PyTorch on a GPU, in one table with the numbers of gpu-check.

usage: peer_gpu.py gpu-check.json [gpu-check.md]

Float32 with deterministic algorithms and no TF32, TF32, bf16 autocast, and bf16 compiled; batches of
4 x 1024 and 16 x 1024; timed by events of the device, random tokens, medians. Without PyTorch or a
device it says so and changes nothing. A ratio is PyTorch's time over ours: above 1 ours is faster.
"""
import json
import os
import statistics
import sys

# Deterministic matrix products need this before CUDA starts.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("peer_gpu: skipped: PyTorch is not installed")
    sys.exit(0)
if not torch.cuda.is_available():
    print("peer_gpu: skipped: PyTorch sees no device")
    sys.exit(0)

VOCABULARY, LENGTH, LAYERS, HEADS, WIDTH = 50257, 1024, 12, 12, 768
WARM, ROUNDS = 4, 7
if os.environ.get("GPU_CHECK_QUICK"):
    VOCABULARY, LENGTH, LAYERS, HEADS, WIDTH = 500, 64, 2, 12, 96


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before = torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.project = torch.nn.Linear(WIDTH, WIDTH)
        self.between = torch.nn.LayerNorm(WIDTH)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.before(x)).split(WIDTH, dim=2)
        q, k, v = (t.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.between(x)), approximate="tanh"))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.positions = torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.ModuleList([Block() for _ in range(LAYERS)])
        self.last = torch.nn.LayerNorm(WIDTH)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.last(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCABULARY).float(), targets.view(-1))


def settings(way):
    torch.use_deterministic_algorithms(way == "float32 deterministic")
    torch.backends.cuda.matmul.allow_tf32 = way == "TF32"
    torch.backends.cudnn.allow_tf32 = way == "TF32"


def milliseconds(way, batch):
    settings(way)
    torch.manual_seed(1)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    run = torch.compile(model) if way == "bf16 compiled" else model
    times = []
    for step in range(WARM + ROUNDS):
        tokens = torch.randint(VOCABULARY, (batch, LENGTH + 1), device="cuda")
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=way.startswith("bf16")):
            loss = run(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        end.record()
        end.synchronize()
        if step >= WARM:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


# The least ratio of PyTorch's time to ours.
GOALS = {"float32 deterministic": 2.0, "TF32": 0.8, "bf16 compiled": 1 / 2.5}


def verdict(way, ratio):
    goal = GOALS.get(way)
    return "" if goal is None else f"{'met' if ratio >= goal else 'MISSED'}: at least {goal:.3g}"


def write(path, table, rows, lines):
    """Row by row: what was measured stays where the rest finds no time."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    if table:
        with open(table, "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def main():
    path = sys.argv[1]
    table = sys.argv[2] if len(sys.argv) > 2 else None
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    ours = {row["name"]: row["value"] for row in rows}
    write(path, table, rows, [f"\nPyTorch {torch.__version__}, CUDA {torch.version.cuda}, in the same call:\n",
                              "| what | value | unit | goal |", "|---|---:|---|---|"])
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}, time over ours")
    for batch in (4, 16):
        mine = ours.get(f"gpt2 124M step, {batch} x 1024")
        for way in ("bf16 compiled", "bf16", "TF32", "float32 deterministic"):
            try:
                theirs = milliseconds(way, batch)
            except Exception as error:  # out of memory, no compiler: a row that says so
                print(f"  {batch} x {LENGTH} {way:24} {type(error).__name__}: {str(error)[:60]}")
                write(path, table, rows, [f"| PyTorch {way}, {batch} x {LENGTH} | {type(error).__name__} | | |"])
                continue
            finally:
                torch.cuda.empty_cache()
            ratio = theirs / mine if mine else float("nan")
            said = verdict(way, ratio)
            print(f"  {batch} x {LENGTH} {way:24} {theirs:10.2f} ms {ratio:8.3f} times ours  {said}", flush=True)
            rows.append({"name": f"PyTorch {way}, {batch} x {LENGTH}", "value": theirs, "unit": "ms"})
            rows.append({"name": f"PyTorch {way} over ours, {batch} x {LENGTH}", "value": ratio,
                         "unit": "times"})
            write(path, table, rows, [f"| PyTorch {way}, {batch} x {LENGTH} | {theirs:.4g} | ms | |",
                                      f"| over ours | {ratio:.4g} | times | {said} |"])


main()
