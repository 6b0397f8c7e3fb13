#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""beside_trainer.py FINETUNE: hands a training back and forth between Hugging Face's Trainer and Weft's finetune.

Two epochs there, one here, one there again must give the weights and losses of four epochs there. Each batch is the whole of the
texts, since the two draw other orders, and a model without dropout, for the same reason; so what is tested is what
a checkpoint holds: weights, AdamW's moments, the schedule, the step, the history. Needs `transformers` and
`torch`; exit code 77 without them.

Tolerance: each step rounds every weight's update, at most the rate, in f32 on both sides, and AdamW divides moments that
are rounded, too: 1e-3 of what the weights have moved in four steps.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import transformers
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

EPOCHS, TEXTS, RATE, LENGTH = 4, 48, 1e-3, 16
WORDS = "a the film plot actor is was not never so very good bad fine dull warm cold long short".split()


def write_texts(folder):
    """train.tsv and dev.tsv of sentences that need no word pieces, and the vocabulary."""
    random = torch.Generator().manual_seed(1)
    (folder / "data").mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    rows = []
    for _ in range(TEXTS):
        picks = torch.randint(len(WORDS), (LENGTH - 2,), generator=random).tolist()
        rows.append((" ".join(WORDS[i] for i in picks), int(sum(picks) % 2)))
    text = "sentence\tlabel\n" + "".join(f"{sentence}\t{label}\n" for sentence, label in rows)
    for part in ("train", "dev"):
        (folder / "data" / f"{part}.tsv").write_text(text)
    return [
        {"input_ids": [2, *(5 + WORDS.index(word) for word in sentence.split()), 3], "attention_mask": [1] * LENGTH,
         "token_type_ids": [0] * LENGTH, "labels": label}
        for sentence, label in rows
    ]


class StopAfter(TrainerCallback):
    def __init__(self, steps):
        self.steps = steps

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.steps:
            control.should_training_stop = True


def train_there(folder, start, rows, resume=None, stop=None):
    """Trains to the end, or to step `stop`; returns the checkpoint's folder."""
    model = BertForSequenceClassification.from_pretrained(start)
    arguments = TrainingArguments(
        output_dir=str(folder), num_train_epochs=EPOCHS, per_device_train_batch_size=TEXTS, learning_rate=RATE, save_strategy="steps",
        save_steps=1, logging_steps=1, report_to=[], use_cpu=True, seed=42, lr_scheduler_type="linear", weight_decay=0.0,
        disable_tqdm=True)
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[StopAfter(stop)] if stop else [])
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return folder / f"checkpoint-{stop or EPOCHS}"


def weights(folder):
    from safetensors.torch import load_file
    return load_file(folder / "model.safetensors")


def losses(folder):
    return [line["loss"] for line in json.loads((folder / "trainer_state.json").read_text())["log_history"] if "loss" in line]


def main():
    finetune = Path(sys.argv[1]).resolve()
    work = Path(tempfile.mkdtemp())
    rows = write_texts(work)
    torch.manual_seed(0)
    start = work / "start"
    BertForSequenceClassification(BertConfig(
        vocab_size=5 + len(WORDS), hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
        max_position_embeddings=512, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)).save_pretrained(start)

    whole = train_there(work / "whole", start, rows)
    two = train_there(work / "there", start, rows, stop=2)
    command = [str(finetune), "--data", str(work / "data"), "--weights", str(two), "--vocab", str(work / "vocab.txt"), "--epochs",
               str(EPOCHS), "--batch-size", str(TEXTS), "--lr", str(RATE), "--max-length", "64", "--logging-steps", "1",
               "--save-steps", "1", "--resume-from-checkpoint", str(two), "--max-steps", "3", "--out", str(work / "here"),
               "--device", "cpu"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode not in (0, 75):
        print(ran.stdout, ran.stderr, sep="\n")
        sys.exit(f"finetune ended with {ran.returncode}")
    there_again = train_there(work / "there", start, rows, resume=work / "here" / "checkpoint-3")

    first, alone, exchanged = weights(start), weights(whole), weights(there_again)
    if sorted(alone) != sorted(exchanged):
        sys.exit(f"other tensors: {sorted(set(alone) ^ set(exchanged))}")
    moved = max(float((alone[name] - first[name]).abs().max()) for name in alone)
    apart = max(float((alone[name] - exchanged[name]).abs().max()) for name in alone)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    print(f"losses of four epochs there: {losses(whole)}")
    print(f"losses of two there, one here, one there: {losses(there_again)}")
    print(f"weights moved by {moved:.3e}, are apart by {apart:.3e}: {apart / moved:.2e}, allowed 1e-3")
    one_there = weights(two)
    without_last = max(float((alone[name] - one_there[name]).abs().max()) for name in alone)
    if without_last < 100 * apart:
        sys.exit(f"the last two steps moved the weights by {without_last:.1e} alone: this test would see no lost step")
    if not apart <= 1e-3 * moved:
        sys.exit("error: the exchanged training is another one")
    if any(abs(a - b) > 1e-3 * abs(a) for a, b in zip(losses(whole), losses(there_again), strict=True)):
        sys.exit("error: other losses")


main()
