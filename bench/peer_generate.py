"""GPT-2 that goes on with a text in PyTorch on the CPU, in float32, with keys and values kept, as a child
of generate_bench.

argv: folder threads tokens. The folder is one of Hugging Face in a single file of BF16. Standard input
holds one token after the other (uint32). The answer to each is a line of JSON: the seconds it took, and
as loss the log of the sum of the exponentials of its logits."""
import math
import sys
import time

sys.dont_write_bytecode = True
from peer_torch import load, read, read_folder, say  # noqa: E402

numpy, torch, F = load(int(sys.argv[2]))
FOLDER, TOKENS = sys.argv[1], int(sys.argv[3])


class Model:
    def __init__(self):
        self.config, weights = read_folder(FOLDER)
        # As F.linear reads it: (out, in), row by row.
        self.weights = {name: weight.t().contiguous() if ".c_" in name and weight.dim() == 2 else weight
                        for name, weight in weights.items()}
        self.heads, width = self.config["n_head"], self.config["n_embd"]
        self.kept = [[torch.empty(self.heads, TOKENS, width // self.heads) for _ in range(2)]
                     for _ in range(self.config["n_layer"])]
        self.count = 0

    def linear(self, name, x):
        return F.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.weights[name + ".weight"], self.weights[name + ".bias"],
                            self.config["layer_norm_epsilon"])

    def attention(self, layer, x):
        at, count = "h.%d.attn." % layer, self.count
        q, k, v = (part.view(self.heads, 1, -1) for part in self.linear(at + "c_attn", x).chunk(3, -1))
        keys, values = self.kept[layer]
        keys[:, count:count + 1], values[:, count:count + 1] = k, v
        scores = q @ keys[:, :count + 1].transpose(1, 2) / math.sqrt(q.shape[-1])
        y = scores.softmax(-1) @ values[:, :count + 1]
        return self.linear(at + "c_proj", y.view(1, -1))

    def take(self, token):
        x = (self.weights["wte.weight"][token] + self.weights["wpe.weight"][self.count]).view(1, -1)
        for layer in range(self.config["n_layer"]):
            at = "h.%d." % layer
            x = x + self.attention(layer, self.norm(at + "ln_1", x))
            y = F.gelu(self.linear(at + "mlp.c_fc", self.norm(at + "ln_2", x)), approximate="tanh")
            x = x + self.linear(at + "mlp.c_proj", y)
        self.count += 1
        return F.linear(self.norm("ln_f", x), self.weights["wte.weight"])[0]


def main():
    torch.set_flush_denormal(True)
    model = Model()
    say(ready=torch.__version__, parameters=sum(w.numel() for w in model.weights.values()))
    with torch.inference_mode():
        while True:
            token = int(read("<u4", 1)[0])
            start, used = time.perf_counter(), time.process_time()
            logits = model.take(token)
            seconds = time.perf_counter() - start
            say(seconds=seconds, processor=time.process_time() - used, loss=logits.double().logsumexp(0).item())


main()
