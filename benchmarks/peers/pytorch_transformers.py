# SPDX-License-Identifier: Apache-2.0
"""ViT-S/16, BERT-base and GPT-2 of benchmarks/cases/transformers.cpp, written with PyTorch's own layers and fused attention; the decoder is
Hugging Face's Llama (PyPI's transformers, or the case is left out)."""
import importlib.util

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.causal = causal
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, tokens, width = x.shape
        q, k, v = self.qkv(x).view(n, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(n, tokens, width))


class Block(nn.Module):
    """A layer: norms in front (ViT, GPT), or after the sums (BERT)."""

    def __init__(self, width, heads, eps, norms_in_front, causal=False, gelu="none"):
        super().__init__()
        self.norms_in_front = norms_in_front
        self.attention = Attention(width, heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(gelu), nn.Linear(4 * width, width))

    def forward(self, x):
        if self.norms_in_front:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class VisionTransformer(nn.Module):
    def __init__(self, width=384, depth=12, heads=6, patch=16, image=224, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + (image // patch) ** 2, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, 1e-6, True) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class Bert(nn.Module):
    def __init__(self, width=768, depth=12, heads=12, classes=2):
        super().__init__()
        self.words, self.positions, self.types = nn.Embedding(30522, width), nn.Embedding(512, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.blocks = nn.Sequential(*(Block(width, heads, 1e-12, False) for _ in range(depth)))
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.positions(places) + self.types(torch.zeros_like(ids)))
        return self.classifier(torch.tanh(self.pooler(self.blocks(x)[:, 0])))


class Gpt(nn.Module):
    def __init__(self, width=768, depth=12, heads=12, positions=1024, vocabulary=50257):
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*(Block(width, heads, 1e-5, True, True, "tanh") for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width, 1e-5), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        logits = self.head(self.norm(self.blocks(self.words(ids) + self.positions(places))))
        return logits.view(-1, logits.shape[-1])


class Transformer:
    """A transformer with its batch and optimizer."""

    def __init__(self, cases, kind, precision, compiled):
        tiny, self.precision = cases.tiny, precision
        self.batch = cases.size({"vit_b16": 256, "bert_base_b64": 64, "gpt2": 4, "gpt2_b16": 16}.get(kind, 8), 2)
        self.device = cases.device.split(":")[0]
        if kind in ("vit_s16", "vit_b16"):
            model = VisionTransformer(*((32, 1, 2, 8, 16, 10) if tiny else (384, 12, 6) if kind == "vit_s16" else (768, 12, 12)))
            edge, classes = cases.size(224, 16), cases.size(1000, 10)
            self.x = cases.normal(self.batch, 3, edge, edge)
        elif kind.startswith("gpt2"):
            model, classes = Gpt(128, 4, 4, 64) if tiny else Gpt(), 50257
            tokens = cases.size(256 if kind == "gpt2" else 1024, 8)
            self.x = torch.arange(self.batch * tokens, device=cases.device).view(self.batch, tokens)
        else:
            model, classes = Bert(128, 2, 2) if tiny else Bert(), 2
            tokens = cases.size(128, 8)
            self.x = torch.arange(1000, 1000 + self.batch * tokens, device=cases.device).view(self.batch, tokens)
        self.model = model.to(cases.device)
        self.adam = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=1e-2, fused=True)
        self.run = torch.compile(self.model) if compiled else self.model
        labels = self.x.numel() if kind.startswith("gpt2") else self.batch
        self.labels = torch.arange(labels, device=cases.device) % classes

    def forward(self):
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.precision == torch.bfloat16):
            return self.run(self.x)

    def train_step(self):
        loss = F.cross_entropy(self.forward().float(), self.labels)
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        self.adam.step()

    def infer_step(self):
        with torch.inference_mode():
            self.forward()


def generate(cases, work, precision, batch):
    """Llama's greedy decoding with its own defaults: a cache, and the dtype of its weights."""
    from transformers import LlamaConfig, LlamaForCausalLM
    width, depth, heads, vocabulary = (32, 1, 2, 100) if cases.tiny else (768, 12, 12, 32000)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, hidden_size=width, intermediate_size=width * 8 // 3, num_hidden_layers=depth,
                                         num_attention_heads=heads, max_position_embeddings=256, tie_word_embeddings=True, bos_token_id=None,
                                         eos_token_id=None)).to(cases.device, precision).eval()
    prompts = torch.tensor([[(i + 1) * (row + 3) % 100 for i in range(64)] for row in range(batch)], device=cases.device)
    tokens = cases.size(128, 4)

    def step():
        with torch.inference_mode():
            made = model.generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=False, max_new_tokens=tokens, pad_token_id=0)
        assert made.shape == (batch, 64 + tokens)

    return work(step, batch * tokens)


def add_transformers(cases, work, name_of):
    for precision in (torch.float32, torch.bfloat16) if importlib.util.find_spec("transformers") else ():
        for batch in (1, 8):
            cases.add(f"decoder_generate_{name_of(precision)}_b{batch}", "tokens/s",
                      lambda precision=precision, batch=batch: generate(cases, work, precision, batch))
    for kind, unit in (("vit_s16", "images/s"), ("bert_base", "sequences/s"), ("gpt2", "sequences/s")):
        for precision in (torch.float32, torch.bfloat16):
            for ending, compiled in (("", False), ("@compiled", True)):
                def prepare(training, kind=kind, precision=precision, compiled=compiled):
                    net = Transformer(cases, kind, precision, compiled)
                    if training:
                        return work(net.train_step, net.batch)
                    net.model.eval()
                    return work(net.infer_step, net.batch)

                name = name_of(precision) + ending
                cases.add(f"{kind}_train_{name}", unit, lambda prepare=prepare: prepare(True))
                cases.add(f"{kind}_infer_{name}", unit, lambda prepare=prepare: prepare(False))
