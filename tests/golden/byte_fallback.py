#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes byte_fallback/: small tokenizers in the forms of Llama-2's and Mistral's tokenizer.json, and the ids and texts that Hugging
Face's tokenizers (PyPI; 0.23 wrote the files) give. `before` is a text's beginning whose tokens are left out of the ids.

    byte_fallback.py          # the files
    byte_fallback.py FOLDER   # the files with 20,000 random texts into FOLDER, for a check by hand:
    WEFT_BYTE_FALLBACK=FOLDER build/bin/test_data --gtest_filter='ByteFallback.*'
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from byte_level import shared

HERE = pathlib.Path(__file__).parent
TEXTS = [
    "", " ", "  ", "\n", "Hello world", " Hello world", "  Hello  world ", "Hello   world\n\n  next\tline\r\n ",
    "\u4f60\u597d, \u0416\u0443\u043a \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 caf\u00e9 cafe\u0301",
    "a\u2581b \u2581 \u2581\u2581c", "<0x0A> <0x4> <0xZZ>", "<s>Hi</s>", "<s> Hi</s> there</s>  end", "</s></s><s>", " <s> ",
    "[INST] hi [/INST] the answer</s>[INST]again[/INST]", "  <s>x[INST]", "note<sep>this <sep> that", "x <unk> y", "\u2581<s>\u2581",
]
SPACE = "\u2581"


def pipelines():
    llama = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    yield "llama2", llama, None, True
    for scheme in ("first", "always", "never"):
        yield scheme, None, pre_tokenizers.Metaspace(SPACE, prepend_scheme=scheme, split=False), scheme != "never"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "byte_fallback"
    texts, random_text = shared()
    rng = random.Random(7)
    specials = [AddedToken(token, special=True, normalized=False) for token in ("<unk>", "<s>", "</s>")]
    for name, normalizer, cut, strips in pipelines():
        tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")  # words train, as sentencepiece's do
        trainer = trainers.BpeTrainer(vocab_size=500, limit_alphabet=70, show_progress=False,
                                      special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)])
        tokenizer.train_from_iterator(texts + TEXTS, trainer)
        data = json.loads(tokenizer.to_str())
        data["added_tokens"], data["pre_tokenizer"] = [], None
        vocabulary, merges = data["model"]["vocab"], data["model"]["merges"]
        for left, right in ((SPACE, SPACE), (SPACE * 2, SPACE), (SPACE * 2, SPACE * 2), (SPACE, "x"))[0 if name != "always" else 3:]:
            if left + right not in vocabulary:
                vocabulary[left + right] = len(vocabulary)
                merges.insert(0 if right != "x" else len(merges), [left, right])
        if name == "first":  # a token across words
            vocabulary["o" + SPACE] = len(vocabulary)
            merges.append(["o", SPACE])
        tokenizer = Tokenizer.from_str(json.dumps(data))
        if cut:
            tokenizer.pre_tokenizer = cut
        strip = [decoders.Strip(" ", 1, 0)] if strips else []
        tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()] + strip)
        tokenizer.add_special_tokens(specials)
        tokenizer.add_tokens([AddedToken("<sep>", normalized=True), AddedToken("[INST]", normalized=False)])
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
        (folder / name).mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / name / "tokenizer.json"), pretty=False)
        cases = []
        for text in TEXTS + texts + [random_text(rng) for _ in range(20000 if len(sys.argv) > 1 else 40)]:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            case = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
            cases.append(case)
        for before, text in (("[INST] hi [/INST]", " the answer</s>"), ("Hello", "  world</s>next"), ("ask</s>", "Hello"), ("ask[INST]", " hi")):
            first, whole = (tokenizer.encode(t, add_special_tokens=False).ids for t in (before, before + text))
            assert whole[:len(first)] == first
            cases.append({"before": before, "text": text, "ids": whole[len(first):]})
        (folder / name / "cases.json").write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
