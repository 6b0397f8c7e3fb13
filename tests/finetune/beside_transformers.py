#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""beside_transformers.py FINETUNE [NAME…]: folders go from Hugging Face's transformers to finetune and back with the same predictions.

Random models of each kind, with the tokenizers and labels that people have: a training at a rate of 0 must score them as
transformers does, and transformers must predict the same logits from the checkpoint. Needs `transformers` and `torch`; exit
code 77 without them. A name runs that model alone.

Tolerance: losses are printed with 4 digits; logits of two layers in f32, of size 10, may differ by 1e-5 of the largest.
"""
import ast
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import transformers
    from transformers import (
        AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertTokenizer, DistilBertConfig, DistilBertTokenizer,
        CamembertConfig, CamembertTokenizer, RobertaConfig, RobertaTokenizer, XLMRobertaConfig, XLMRobertaTokenizer)
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(77)

WORDS = "the a good bad film Film Apple apple May may was is é café naïve Café".split()
LETTERS = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZé")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = SPECIAL + WORDS + [c for c in LETTERS if c not in WORDS] + ["##" + c for c in LETTERS]
OTHER_NAMES = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"] + VOCABULARY[5:]
TEXTS = [("the Film was good", "a café"), ("Apple is bad", "the naïve May"), ("apple is Café", "bad bad film"), ("may was é", "good")] * 4
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "initializer_range": 0.5}
POS_NEG = {"id2label": {0: "pos", 1: "neg"}, "label2id": {"pos": 0, "neg": 1}}
MNLI = {"id2label": {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, "label2id": {"CONTRADICTION": 0, "NEUTRAL": 1, "ENTAILMENT": 2}}


def numbered(tokens):
    return {token: i for i, token in enumerate(tokens)}


def word_pieces(kind=BertTokenizer, vocabulary=VOCABULARY, **options):
    return kind(vocab=numbered(vocabulary), **options)


def with_added_tokens():
    tokens = word_pieces()
    tokens.add_tokens(["café film", "GOOD"])
    tokens.add_special_tokens({"additional_special_tokens": ["Apple is"]})
    return tokens


def byte_pairs():
    visible = [chr(b) for b in [*range(33, 127), *range(161, 173), *range(174, 256)]]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *visible, *map(chr, range(256, 324)), "oo", "ood"]
    return RobertaTokenizer(vocab=numbered(tokens), merges=[("o", "o"), ("oo", "d")])


def unigrams(kind):
    names = ["<s>", "<pad>", "</s>", "<unk>"] if kind is XLMRobertaTokenizer else ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"]
    pieces = ["\u2581" + word for word in WORDS] + ["\u2581", "oo", "ood", "\u2581f", "il", *LETTERS]
    return kind(vocab=[(name, 0.0) for name in names] + [(piece, -1.0 - i / 8) for i, piece in enumerate(pieces)])


def bert(tokens, rows=0, **options):
    return BertConfig(vocab_size=max(len(tokens), rows), max_position_embeddings=64, **{**SIZES, **options})


def distilbert(tokens):
    return DistilBertConfig(vocab_size=len(tokens), dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64,
                            initializer_range=0.5, **POS_NEG)


def roberta(tokens, kind=RobertaConfig):
    return kind(vocab_size=len(tokens), max_position_embeddings=66, type_vocab_size=1, **SIZES, **POS_NEG)


# Name: tokenizer, configuration of it, labels of the texts in turn.
MODELS = {
    "bert_uncased": (word_pieces, lambda t: bert(t, **POS_NEG), ["neg", "pos"]),
    "bert_cased": (lambda: word_pieces(do_lower_case=False), lambda t: bert(t, **POS_NEG), ["neg", "pos"]),
    "bert_accents": (lambda: word_pieces(strip_accents=False), bert, ["0", "1"]),
    "bert_padded_gelu_new": (word_pieces, lambda t: bert(t, rows=140, hidden_act="gelu_new", layer_norm_eps=1e-5), ["a", "b"]),
    "bert_relu_mnli": (word_pieces, lambda t: bert(t, hidden_act="relu", **MNLI), ["entailment", "neutral", "contradiction"]),
    "bert_silu": (word_pieces, lambda t: bert(t, hidden_act="silu"), ["a", "b"]),
    "bert_added_tokens": (with_added_tokens, bert, ["a", "b"]),
    "bert_other_names": (lambda: word_pieces(vocabulary=OTHER_NAMES, unk_token="<unk>", cls_token="<s>", sep_token="</s>", pad_token="<pad>",
                                             mask_token="<mask>"), bert, ["a", "b"]),
    "bert_regression": (word_pieces, lambda t: bert(t, num_labels=1, problem_type="regression"), ["0.5", "1.5", "3.0"]),
    "distilbert": (lambda: word_pieces(DistilBertTokenizer), distilbert, ["neg", "pos"]),
    "roberta": (byte_pairs, roberta, ["neg", "pos"]),
    "xlm_roberta": (lambda: unigrams(XLMRobertaTokenizer), lambda t: roberta(t, XLMRobertaConfig), ["neg", "pos"]),
    "camembert": (lambda: unigrams(CamembertTokenizer), lambda t: roberta(t, CamembertConfig), ["neg", "pos"]),
    "roberta_files": (byte_pairs, roberta, ["neg", "pos"]),  # vocab.json and merges.txt in place of tokenizer.json
}


def predict(folder):
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokens = AutoTokenizer.from_pretrained(folder)
    inputs = tokens([a for a, _ in TEXTS], [b for _, b in TEXTS], padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        return model(**inputs).logits, model.config, inputs["input_ids"]


def check(name, program, root):
    """What is wrong with this model; nothing when all is well."""
    tokenizer, configuration, labels = MODELS[name]
    tokens = tokenizer()
    torch.manual_seed(0)
    folder, data = root / name, root / f"{name}.data"
    AutoModelForSequenceClassification.from_config(configuration(tokens)).save_pretrained(folder)
    tokens.save_pretrained(folder)
    if name == "roberta_files":
        (folder / "vocab.json").write_text(json.dumps(tokens.get_vocab()))
        (folder / "merges.txt").write_text("#version: 0.2\no o\noo d\n")
        (folder / "tokenizer.json").unlink()
    data.mkdir()
    written = [labels[i % len(labels)] for i in range(len(TEXTS))]
    rows = "".join(f"{a}\t{b}\t{label}\n" for (a, b), label in zip(TEXTS, written))
    for part in ("train", "dev"):
        (data / f"{part}.tsv").write_text("sentence1\tsentence2\tlabel\n" + rows, encoding="utf-8")
    logits, config, ids = predict(folder)
    regression = config.problem_type == "regression"
    if regression:
        loss = torch.nn.functional.mse_loss(logits[:, 0], torch.tensor([float(label) for label in written]))
    else:
        names = [config.id2label[i].lower() for i in range(len(config.id2label))]
        order = names if set(labels) <= set(names) else sorted(labels)
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor([order.index(label) for label in written]))
    run = subprocess.run([program, "--device", "cpu", "--data", data, "--weights", folder, "--epochs", "1", "--lr", "0", "--out",
                          root / f"{name}.run"], capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith("{'eval_loss'")]
    if run.returncode != 0 or not lines:
        return f"exit code {run.returncode}: {run.stderr[-500:]}"
    mine = ast.literal_eval(lines[-1])
    again, saved, same_ids = predict(next((root / f"{name}.run").glob("checkpoint-*")))
    apart = float((again - logits).abs().max())
    print(f"{name:22} loss {float(loss):.4f} and {mine['eval_loss']:.4f}, logits of {float(logits.abs().max()):.2g} differ by {apart:.1e}")
    wrong = []
    if not abs(mine["eval_loss"] - float(loss)) <= 6e-5 + 1e-5 * float(loss):
        wrong.append("another loss")
    if not apart <= 1e-5 * float(logits.abs().max()):
        wrong.append("other logits from the checkpoint")
    if not torch.equal(ids, same_ids):
        wrong.append("other ids from the checkpoint's tokenizer")
    expected = config.id2label if regression or set(labels) <= {n.lower() for n in config.id2label.values()} else dict(enumerate(sorted(labels)))
    if saved.id2label != expected:
        wrong.append(f"id2label {saved.id2label}, expected {expected}")
    return ", ".join(wrong)


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    program, *names = sys.argv[1:]
    failed = False
    for name in names or MODELS:
        with tempfile.TemporaryDirectory() as root:
            wrong = check(name, program, Path(root))
        if wrong:
            print(f"{name}: {wrong}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
