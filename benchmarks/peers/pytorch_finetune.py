#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The steps of finetune in eager PyTorch on made-up pairs of sentences: texts/s, time of a step, peak memory.

  python3 benchmarks/peers/pytorch_finetune.py --model bert_base --batch-size 8 --length 128 --steps 50       # one GPU, f32 as the Trainer
  python3 benchmarks/peers/pytorch_finetune.py --model bert_tiny --batch-size 4 --steps 2 --device cpu

The encoder of BERT (Devlin et al. 2018) with pooler and two classes, dropout 0.1; AdamW, gradients clipped to 1, the rate falling along
a line. Beside it: finetune with the same model, batch size and texts of that length.
"""
import argparse
import sys

from pytorch_steps import WARM_UP, import_torch, report

MODELS = {"bert_tiny": (128, 2, 2), "bert_base": (768, 12, 12)}
VOCABULARY, POSITIONS = 30522, 512


def make_model(torch, name):
    nn, functional = torch.nn, torch.nn.functional
    width, depth, heads = MODELS[name]

    class Layer(nn.Module):
        """Norms after the residual sums."""

        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.dense = (nn.Linear(width, width) for _ in range(4))
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
            self.dropout = nn.Dropout(0.1)

        def attend(self, x, mask):
            count, tokens, _ = x.shape
            q, k, v = (part(x).reshape(count, tokens, heads, width // heads).transpose(1, 2) for part in (self.query, self.key, self.value))
            if hasattr(functional, "scaled_dot_product_attention"):
                y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1 if self.training else 0.0)
            else:
                scores = (q @ k.transpose(-2, -1) / (width // heads) ** 0.5).masked_fill(~mask, float("-inf"))
                y = self.dropout(scores.softmax(-1)) @ v
            return self.dense(y.transpose(1, 2).reshape(count, tokens, width))

        def forward(self, x, mask):
            x = self.norm1(x + self.dropout(self.attend(x, mask)))
            return self.norm2(x + self.dropout(self.down(functional.gelu(self.up(x)))))

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(POSITIONS, width)
            self.types, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
            self.dropout = nn.Dropout(0.1)
            self.layers = nn.ModuleList(Layer() for _ in range(depth))
            self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

        def forward(self, tokens, types, real):
            places = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.dropout(self.norm(self.words(tokens) + self.positions(places) + self.types(types)))
            for layer in self.layers:
                x = layer(x, real[:, None, None, :])
            return self.classifier(self.dropout(torch.tanh(self.pooler(x[:, 0]))))

    return Classifier()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(MODELS), default="bert_base")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--length", type=int, default=128, help="tokens of the longest text; the others have half of them and more")
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--precision", choices=["bf16", "f32"], default="f32")
    parser.add_argument("--steps", type=int, default=50, help="timed, after three that are not")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    args = parser.parse_args()
    torch = import_torch("pytorch_finetune.py", args.device)
    if not 2 <= args.length <= POSITIONS:
        sys.exit(f"pytorch_finetune.py: --length: expected 2 to {POSITIONS}, got {args.length}")
    torch.manual_seed(1)
    model = make_model(torch, args.model).to(args.device)
    fused = {"fused": True} if args.device == "cuda" and torch.__version__ >= "2" else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0, **fused)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / (args.steps + WARM_UP)))
    shape = (args.batch_size, args.length)
    tokens = torch.randint(VOCABULARY, shape, device=args.device)
    types = (torch.arange(args.length, device=args.device) >= args.length // 2).long().expand(shape)
    lengths = torch.randint(args.length // 2, args.length + 1, (args.batch_size, 1), device=args.device)
    real = torch.arange(args.length, device=args.device) < lengths
    labels = torch.randint(2, (args.batch_size,), device=args.device)

    def step():
        with torch.autocast(args.device, torch.bfloat16, enabled=args.precision == "bf16"):
            loss = torch.nn.functional.cross_entropy(model(tokens, types, real), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()

    report(torch, args.device, f"{args.model}_finetune", step, args.steps, args.batch_size, "texts/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
