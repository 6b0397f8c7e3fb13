#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes byte_pair/roberta.json: what Hugging Face's RobertaTokenizer makes of some texts and pairs with the vocabulary of
byte_pair/ and RoBERTa's special tokens after it. Needs PyPI's transformers."""
import json
import pathlib

from transformers import RobertaTokenizer

FOLDER = pathlib.Path(__file__).parent / "byte_pair"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
FIRST_ID = 50257
TEXTS = [
    ("Hello, world!", None),
    ("", None),
    (" two  spaces", None),
    ("First Citizen: hear me speak.", "I'm sure they'll say it's what we've got."),
    ("Speak, speak.", "!"),
    ("a <mask> b  <mask>", "x</s>y <pad> <unk>z<s>"),
    ("<mask", "<|endoftext|> is text <S>"),
]


def main():
    vocabulary = json.loads((FOLDER / "vocab.json").read_text(encoding="utf-8"))
    vocabulary.update({token: FIRST_ID + i for i, token in enumerate(SPECIAL)})
    merges = [tuple(line.split()) for line in (FOLDER / "merges.txt").read_text(encoding="utf-8").splitlines()[1:] if line]
    tokenizer = RobertaTokenizer(vocab=vocabulary, merges=merges)
    cases = []
    for first, second in TEXTS:
        for most in (512, 9, 8, 5):
            pair = () if second is None else (second,)
            ids = tokenizer(first, *pair, truncation="longest_first", max_length=most)["input_ids"]
            cases.append({"first": first, "second": second, "most": most, "ids": ids})
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (FOLDER / "roberta.json").write_text("[\n" + lines + "\n]\n", encoding="utf-8")


main()
