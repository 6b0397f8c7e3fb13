#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes decoder_folder/: a random Qwen-2 of one layer as Hugging Face's transformers (5.24) saves it, in bf16, in several files with
an index, with byte_level/qwen2's tokenizer; and expected.json, the likeliest tokens after a prompt and the loss of a text."""
import json
import pathlib
import shutil

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, Qwen2Config

HERE = pathlib.Path(__file__).parent
PROMPT, TEXT = "def f(x):", "Hello, world! It's 1234.\n\nSpeak, speak.\n"


def main():
    folder = HERE / "decoder_folder"
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(6)
    config = Qwen2Config(vocab_size=416, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True, initializer_range=0.7,
                         rope_parameters={"rope_type": "default", "rope_theta": 1e6}, eos_token_id=[0, 1], bos_token_id=0)
    AutoModelForCausalLM.from_config(config).bfloat16().save_pretrained(folder, max_shard_size="10KB")
    shutil.copy(HERE / "byte_level/qwen2/tokenizer.json", folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    prompt, ids = (torch.tensor([tokenizer.encode(text).ids]) for text in (PROMPT, TEXT))
    tokens = prompt
    for _ in range(20):
        top = model(tokens).logits[0, -1, :tokenizer.get_vocab_size()].topk(2)
        assert top.values[0] - top.values[1] > 1e-3 and top.indices[0] > 1, "a tie, or an end"
        tokens = torch.cat([tokens, top.indices[None, :1]], 1)
    expected = {"prompt": PROMPT, "ids": tokens[0, prompt.shape[1]:].tolist(), "text": TEXT,
                "loss": model(ids, labels=ids).loss.item()}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


main()
