#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""beside_transformers.py TRAIN_GPT DECODER_LOGITS [NAME…]: transformers reads the folder model/ that train_gpt writes.

A decoder of each family is made from random weights, and trained for some steps: transformers finds each weight by its name, none is
missing, unexpected or of another shape, and logits and settings are Weft's. Needs `transformers` and `torch`; exit code 77 without them. A name
runs that family alone.

Tolerance: logits of two layers in f32, below 10, may differ by 1e-5.
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import torch
    import transformers
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

TOKENIZER = Path(__file__).parents[1] / "golden/decoder_folder/tokenizer.json"
SIZES = {"vocab_size": 416, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": 64}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}
# Name: class of the configuration, and what differs from SIZES.
FAMILIES = {
    "llama": ("LlamaConfig", {"rope_parameters": LLAMA3}),
    "llama_tied": ("LlamaConfig", {"tie_word_embeddings": True, "rope_parameters": LINEAR, "rms_norm_eps": 1e-5}),
    "mistral": ("MistralConfig", {"sliding_window": 8, "head_dim": 16}),
    "qwen2": ("Qwen2Config", {"tie_word_embeddings": True, "rope_parameters": YARN}),
    "qwen3": ("Qwen3Config", {"head_dim": 16}),
}


def check(name, train_gpt, decoder_logits, root):
    """The faults of this family, and the largest difference of its logits."""
    kind, options = FAMILIES[name]
    folder, run = root / name, root / f"{name}.run"
    getattr(transformers, kind)(**{**SIZES, **options}).save_pretrained(folder)
    shutil.copy(TOKENIZER, folder)
    text = root / "text.txt"
    text.write_text("Hello, world! It's 1234.\n\nSpeak, speak.\n" * 60)
    subprocess.run([train_gpt, "--device", "cpu", "--data", text, "--model", folder, "--out", run, "--context", "64", "--batch-size", "2", "--lr", "0.01",
                    "--warmup-steps", "1", "--max-steps", "6"], check=True, stdout=subprocess.DEVNULL)
    model, report = transformers.AutoModelForCausalLM.from_pretrained(run / "model", dtype=torch.float32, output_loading_info=True)
    faults = [f"{what}: {sorted(map(str, names))}" for what, names in report.items() if names]
    if faults:
        return faults, "the names differ"
    before = getattr(transformers, kind).from_pretrained(folder).to_dict()
    after = model.config.to_dict()
    for key in [*SIZES, *options, "hidden_act", "model_type"]:
        expected, got = before[key], after[key]
        if got != expected and not (isinstance(got, dict) and expected.items() <= got.items()):  # Weft writes what transformers leaves to defaults
            faults.append(f"{key}: expected {expected}, got {got}")
    ids = np.random.default_rng(1).integers(0, SIZES["vocab_size"], (3, 48))
    np.save(root / "ids.npy", ids)
    subprocess.run([decoder_logits, run / "model", root / "ids.npy", root / "logits.npy"], check=True)
    with torch.no_grad():
        theirs = model.eval()(torch.from_numpy(ids)).logits.numpy()
    ours = np.load(root / "logits.npy")
    difference = np.abs(ours - theirs).max() if ours.shape == theirs.shape else float("inf")
    if not difference <= 1e-5:
        faults.append(f"logits differ by {difference:.2g}")
    if not np.abs(theirs).max() > 0.5:
        faults.append(f"expected logits that tell, got at most {np.abs(theirs).max():.2g}")
    return faults, f"{len(model.state_dict())} tensors, logits up to {np.abs(theirs).max():.2f} differ by at most {difference:.1e}"


def main(train_gpt, decoder_logits, *names):
    torch.set_num_threads(1)
    failed = False
    for name in names or FAMILIES:
        with tempfile.TemporaryDirectory() as root:
            faults, told = check(name, train_gpt, decoder_logits, Path(root))
        print(f"{name:10}  {told}", *faults, sep="\n            " if faults else "  ")
        failed |= bool(faults)
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
