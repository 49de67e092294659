"""The training step of benches/train.rs in PyTorch: `python train_gbt_mulm.py [threads]`."""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

BATCH, TIME, VOCAB, WIDTH, HEADS, LAYERS = 16, 31, 30, 64, 4, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, d = x.shape
        h = self.norm1(x)
        q, k, v = (f(h).view(b, t, HEADS, d // HEADS).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(TIME, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, betas=(0.9, 0.99), weight_decay=0.01)
    times = []
    for step in range(120):
        ids = torch.tensor([[(i * 7919 + 13 * step) % VOCAB for i in range(r * TIME, (r + 1) * TIME)] for r in range(BATCH)])
        begun = time.perf_counter()
        loss = F.cross_entropy(model(ids).view(-1, VOCAB), ids.view(-1))
        loss.item()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begun)
    times = sorted(times[20:])
    print(f"gbt-mulm training step, {BATCH} x {TIME}: PyTorch {torch.__version__} {1e3 * times[len(times) // 2]:.2f} ms")
