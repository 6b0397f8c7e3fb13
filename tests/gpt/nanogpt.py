#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes nanogpt.pt, a checkpoint as karpathy/nanoGPT's train.py saves it (model_args, no biases, the names that torch.compile gives), and
prints the likeliest text after a prompt. Needs torch."""
import pathlib

import torch
import torch.nn.functional as F

CHARACTERS = "\n abcdefghi"
SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": 32, "bias": False, "vocab_size": 16, "dropout": 0.0}


def logits(w, ids):
    """nanoGPT's forward, whose matrices are those of nn.Linear."""
    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    for i in range(SIZES["n_layer"]):
        h = f"h.{i}."
        norm = F.layer_norm(x, (8,), w[h + "ln_1.weight"])
        q, k, v = (part.view(len(ids), 2, 4).transpose(0, 1) for part in F.linear(norm, w[h + "attn.c_attn.weight"]).split(8, 1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).reshape(len(ids), 8)
        x = x + F.linear(attended, w[h + "attn.c_proj.weight"])
        norm = F.layer_norm(x, (8,), w[h + "ln_2.weight"])
        x = x + F.linear(F.gelu(F.linear(norm, w[h + "mlp.c_fc.weight"])), w[h + "mlp.c_proj.weight"])
    return F.layer_norm(x, (8,), w["ln_f.weight"]) @ w["wte.weight"].T


def main():
    torch.manual_seed(4)
    w = {"wte.weight": torch.randn(16, 8), "wpe.weight": torch.randn(32, 8), "ln_f.weight": torch.rand(8) + 0.5}
    for i in range(SIZES["n_layer"]):
        for name, sizes in (("attn.c_attn", (24, 8)), ("attn.c_proj", (8, 8)), ("mlp.c_fc", (32, 8)), ("mlp.c_proj", (8, 32))):
            w[f"h.{i}.{name}.weight"] = torch.randn(sizes) * 0.6
        for name in ("ln_1", "ln_2"):
            w[f"h.{i}.{name}.weight"] = torch.rand(8) + 0.5
    state = {"_orig_mod.transformer." + name: tensor for name, tensor in w.items()}
    state["_orig_mod.lm_head.weight"] = w["wte.weight"]
    checkpoint = {"model": state, "optimizer": {"state": {}, "param_groups": []}, "model_args": SIZES, "iter_num": 7,
                  "best_val_loss": torch.tensor(1.5), "config": {"dataset": "letters"}}
    torch.save(checkpoint, pathlib.Path(__file__).parent / "nanogpt.pt")
    ids = [CHARACTERS.index(c) for c in "abc"]
    while len(ids) < 32:
        last = logits(w, torch.tensor(ids))[-1, : len(CHARACTERS)]  # the rest of the vocabulary is padding
        top = last.topk(2).values
        assert top[0] - top[1] > 1e-3, "a tie"
        ids.append(int(last.argmax()))
    print(repr("".join(CHARACTERS[i] for i in ids)))


main()
