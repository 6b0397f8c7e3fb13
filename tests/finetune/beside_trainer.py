#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""beside_trainer.py FINETUNE: hands a training of BERT, RoBERTa and DistilBERT back and forth between Hugging Face's Trainer and
Weft's finetune.

Two epochs there, one here, one there again must give the weights and losses of four epochs there. Each batch is the whole of the
texts, since the two draw other orders, and a model without dropout, for the same reason; so what is tested is what
a checkpoint holds: weights, AdamW's moments, the schedule, the step, the history. The texts of RoBERTa are pairs of unequal
length, so that its byte pairs, special tokens and positions beside padding are tested, too. Needs `transformers` and `torch`; exit
code 77 without them.

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
    from transformers import (
        AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertTokenizer, DataCollatorWithPadding, DistilBertConfig,
        DistilBertTokenizer, RobertaConfig, RobertaTokenizer, Trainer, TrainerCallback, TrainingArguments)
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

EPOCHS, TEXTS, RATE, LENGTH = 4, 48, 1e-3, 16
WORDS = "a the film plot actor is was not never so very good bad fine dull warm cold long short".split()


SIZES = {"max_position_embeddings": 512, "pad_token_id": 0}
BERT = {**SIZES, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def word_pieces(folder, kind):
    """The vocabulary of sentences that need no word pieces."""
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n")
    return kind(str(folder / "vocab.txt"))


def byte_pairs(folder):
    """A byte of the words each, a few merges, RoBERTa's special tokens under its numbers."""
    merges = [("\u0120", "t"), ("h", "e"), ("\u0120t", "he"), ("l", "l"), ("o", "o"), ("g", "oo")]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *sorted(set("".join(WORDS)) | {"\u0120"}), *("".join(pair) for pair in merges), "<mask>"]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    return RobertaTokenizer(vocab=vocabulary, merges=merges)


def make(name, folder):
    """The tokenizer, the configuration of a small model, and where finetune finds the vocabulary."""
    if name == "roberta":
        tokens = byte_pairs(folder)
        return tokens, RobertaConfig(**{**BERT, "max_position_embeddings": 514, "pad_token_id": 1}, vocab_size=len(tokens),
                                     type_vocab_size=1, layer_norm_eps=1e-5), folder
    tokens = word_pieces(folder, BertTokenizer if name == "bert" else DistilBertTokenizer)
    if name == "bert":
        return tokens, BertConfig(**BERT, vocab_size=len(tokens)), folder / "vocab.txt"
    return tokens, DistilBertConfig(**SIZES, vocab_size=len(tokens), dim=128, n_layers=2, n_heads=2, hidden_dim=512, dropout=0.0,
                                    attention_dropout=0.0, seq_classif_dropout=0.0), folder / "vocab.txt"


def write_texts(folder, pairs):
    """train.tsv and dev.tsv; the texts and their labels."""
    random = torch.Generator().manual_seed(1)
    (folder / "data").mkdir()
    rows = []
    for i in range(TEXTS):
        picks = torch.randint(len(WORDS), (LENGTH - 2 - (i % 5 if pairs else 0),), generator=random).tolist()
        words = [WORDS[k] for k in picks]
        cut = 1 + i % 4 if pairs else len(words)
        rows.append((" ".join(words[:cut]), *([" ".join(words[cut:])] if pairs else []), int(sum(picks) % 2)))
    header = "sentence1\tsentence2\tlabel\n" if pairs else "sentence\tlabel\n"
    text = header + "".join("\t".join(str(part) for part in row) + "\n" for row in rows)
    for part in ("train", "dev"):
        (folder / "data" / f"{part}.tsv").write_text(text)
    return rows


class StopAfter(TrainerCallback):
    def __init__(self, steps):
        self.steps = steps

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self.steps:
            control.should_training_stop = True


def train_there(folder, start, rows, collator, resume=None, stop=None):
    """Trains to the end, or to step `stop`; returns the checkpoint's folder."""
    model = AutoModelForSequenceClassification.from_pretrained(start)
    arguments = TrainingArguments(
        output_dir=str(folder), num_train_epochs=EPOCHS, per_device_train_batch_size=TEXTS, learning_rate=RATE, save_strategy="steps",
        save_steps=1, logging_steps=1, report_to=[], use_cpu=True, seed=42, lr_scheduler_type="linear", weight_decay=0.0,
        disable_tqdm=True)
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator, callbacks=[StopAfter(stop)] if stop else [])
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return folder / f"checkpoint-{stop or EPOCHS}"


def weights(folder):
    from safetensors.torch import load_file
    return load_file(folder / "model.safetensors")


def losses(folder):
    return [line["loss"] for line in json.loads((folder / "trainer_state.json").read_text())["log_history"] if "loss" in line]


def exchange(name, finetune):
    work = Path(tempfile.mkdtemp())
    tokens, config, vocabulary = make(name, work)
    texts = write_texts(work, pairs=name == "roberta")
    rows = [{**tokens(*text), "labels": label} for *text, label in texts]
    collator = DataCollatorWithPadding(tokens)
    torch.manual_seed(0)
    start = work / "start"
    AutoModelForSequenceClassification.from_config(config).save_pretrained(start)

    whole = train_there(work / "whole", start, rows, collator)
    two = train_there(work / "there", start, rows, collator, stop=2)
    command = [str(finetune), "--data", str(work / "data"), "--weights", str(two), "--vocab", str(vocabulary), "--epochs",
               str(EPOCHS), "--batch-size", str(TEXTS), "--lr", str(RATE), "--max-length", "256", "--logging-steps", "1",
               "--save-steps", "1", "--resume-from-checkpoint", str(two), "--max-steps", "3", "--out", str(work / "here"),
               "--device", "cpu"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode not in (0, 75):
        print(ran.stdout, ran.stderr, sep="\n")
        sys.exit(f"finetune ended with {ran.returncode}")
    there_again = train_there(work / "there", start, rows, collator, resume=work / "here" / "checkpoint-3")
    again = AutoTokenizer.from_pretrained(work / "here" / "checkpoint-3")
    if [again(*text)["input_ids"] for *text, _ in texts] != [row["input_ids"] for row in rows]:
        sys.exit("error: the tokenizer that finetune wrote is another one")

    first, alone, exchanged = weights(start), weights(whole), weights(there_again)
    if sorted(alone) != sorted(exchanged):
        sys.exit(f"other tensors: {sorted(set(alone) ^ set(exchanged))}")
    moved = max(float((alone[key] - first[key]).abs().max()) for key in alone)
    apart = max(float((alone[key] - exchanged[key]).abs().max()) for key in alone)
    print(f"{name}: transformers {transformers.__version__}, torch {torch.__version__}")
    print(f"losses of four epochs there: {losses(whole)}")
    print(f"losses of two there, one here, one there: {losses(there_again)}")
    print(f"weights moved by {moved:.3e}, are apart by {apart:.3e}: {apart / moved:.2e}, allowed 1e-3")
    one_there = weights(two)
    without_last = max(float((alone[key] - one_there[key]).abs().max()) for key in alone)
    if without_last < 100 * apart:
        sys.exit(f"the last two steps moved the weights by {without_last:.1e} alone: this test would see no lost step")
    if not apart <= 1e-3 * moved:
        sys.exit("error: the exchanged training is another one")
    if any(abs(a - b) > 1e-3 * abs(a) for a, b in zip(losses(whole), losses(there_again), strict=True)):
        sys.exit("error: other losses")


for each in ("bert", "roberta", "distilbert"):
    exchange(each, Path(sys.argv[1]).resolve())
