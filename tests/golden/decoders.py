# SPDX-License-Identifier: Apache-2.0
"""The decoders of Hugging Face's transformers (5.24 wrote the file), two layers each, with weights from hashed.py, in f64 but for the
angles of rotary positions: logits, loss, digests of gradients, and the tokens that greedy generation gives."""
import torch

from hashed import digest, fill_parameters

COMMON = dict(vocab_size=61, hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=6,
              num_key_value_heads=2, max_position_embeddings=64, attn_implementation="eager")
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)


def families():
    from transformers import LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config
    return {
        "llama3": LlamaConfig(**COMMON, rms_norm_eps=1e-5, rope_parameters=LLAMA3, tie_word_embeddings=False),
        "smollm": LlamaConfig(**COMMON, rms_norm_eps=1e-5, tie_word_embeddings=True,
                              rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=2.0)),
        "mistral": MistralConfig(**COMMON, rms_norm_eps=1e-5, sliding_window=5, head_dim=10,
                                 rope_parameters=dict(rope_type="default", rope_theta=1e6)),
        "qwen2": Qwen2Config(**COMMON, tie_word_embeddings=True, rope_parameters=YARN, use_sliding_window=True,
                             sliding_window=7, max_window_layers=1),
        "qwen3": Qwen3Config(**COMMON, head_dim=16, tie_word_embeddings=True,
                             rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    }


def all_cases():
    from transformers import AutoModelForCausalLM
    result = {}
    ids = (torch.arange(22) * 37 + torch.arange(3)[:, None] * 71) % 61
    for name, config in families().items():
        model = AutoModelForCausalLM.from_config(config).double().eval()
        fill_parameters(model)
        logits = model(ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        model.generation_config.eos_token_id = None
        prompt = ids[:1, :9]
        tokens = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)
        top = model(tokens).logits[0, 8:-1].topk(2).values
        assert (top[:, 0] - top[:, 1]).min() > 1e-3, "a tie"
        result.update({f"{name}.logits": logits[:, ::5].detach().float(), f"{name}.loss": loss.detach().float(),
                       f"{name}.tokens": tokens[0, 9:]})
        for seed, (key, parameter) in enumerate(model.named_parameters()):
            result[f"{name}.gradient_digest.{key}"] = digest(parameter.grad, seed).float()
    return result
